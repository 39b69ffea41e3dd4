"""The commands: every screen has a headless twin with the same numbers."""
