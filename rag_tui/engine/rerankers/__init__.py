"""Rerankers: a query and a passage, read together, become one score."""
