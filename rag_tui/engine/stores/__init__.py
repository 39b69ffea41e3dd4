"""Where an index is kept."""
