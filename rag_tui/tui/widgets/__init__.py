"""Widgets, one file per pane."""
