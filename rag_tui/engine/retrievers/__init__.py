"""Retrievers: a query becomes a ranking over the whole corpus."""
