"""The UI-free retrieval engine: the screens, the commands and the tests all run this code.

Importing it imports nothing heavy; modules are imported by their own names.
"""
