"""BEIR data sets: ``corpus.jsonl`` beside ``queries.jsonl`` and ``qrels/``."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import PurePosixPath

from rag_tui.engine.documents.records import Records
from rag_tui.engine.documents.settings import LoadSettings

CORPUS = "corpus.jsonl"
SETTINGS = "rag-tui.toml"
QUESTIONS = "questions.jsonl"
"""Our own labelled questions, at the top of a folder."""
RECORDS = LoadSettings(json_text_fields=("text",), json_id_field="_id")
"""How a corpus file is read: the title goes into the heading path, not into the text."""


def is_corpus(found: Records, doc_id: str) -> bool:
    """Whether a file of records is the corpus of a data set: ``_id`` and ``text`` in a line."""
    if PurePosixPath(doc_id).name != CORPUS or not found.records:
        return False
    first = json.loads(found.records[0].source)
    return isinstance(first, dict) and "_id" in first and "text" in first


def is_evaluation_file(doc_id: str, names: Collection[str]) -> bool:
    """Whether a file holds the questions or labels of the corpus file beside it.

    Args:
        doc_id: The file's path relative to the walked folder.
        names: Such paths of all files found.
    """
    path = PurePosixPath(doc_id)
    if doc_id in (QUESTIONS, SETTINGS):
        return True
    if path.name == "queries.jsonl":
        return str(path.with_name(CORPUS)) in names
    is_label = path.parent.name == "qrels" and path.suffix in (".tsv", ".csv", ".txt")
    return is_label and str(path.parent.with_name(CORPUS)) in names
