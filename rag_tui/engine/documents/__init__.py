"""Loaders: files on disk become `Document` values."""
