"""Chunkers: documents are cut into `Chunk` values whose spans are exact."""
