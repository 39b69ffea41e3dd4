"""The Textual front end: the only part of the package that imports textual."""
