"""Screens, one per mode, and modals."""
