"""rag-tui: a terminal workbench for interactive retrieval debugging.

Importing this package imports nothing else; the engine lives in ``rag_tui.engine``.
"""

__version__ = "0.1.0"
