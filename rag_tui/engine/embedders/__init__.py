"""Embedders: texts become L2-normalised float32 vectors, queries and documents apart."""
