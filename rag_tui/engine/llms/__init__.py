"""Answerers: a prompt becomes a stream of text."""
