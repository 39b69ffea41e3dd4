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
QUERIES = "queries.jsonl"
_OURS = frozenset((QUESTIONS, "questions.json", "questions.toml", "questions.csv", SETTINGS))
RECORDS = LoadSettings(json_text_fields=("text",), json_id_field="_id")
"""How a corpus file is read: the title goes into the heading path, not into the text."""


def is_corpus(found: Records, doc_id: str) -> bool:
    """Whether a file of records is the corpus of a data set: ``_id`` and ``text`` in a line."""
    if PurePosixPath(doc_id).name != CORPUS or not found.records:
        return False
    first = json.loads(found.records[0].source)
    return isinstance(first, dict) and "_id" in first and "text" in first


def is_evaluation_file(doc_id: str, names: Collection[str]) -> bool:
    """Whether a file holds questions, labels or a description of the corpus file beside it.

    Beside ``corpus.jsonl`` and ``queries.jsonl`` nothing else is a document: what lies there tells
    of the collection, and would compete with it in every list.

    Args:
        doc_id: The file's path relative to the walked folder.
        names: Such paths of all files found.
    """
    path = PurePosixPath(doc_id)
    if doc_id in _OURS:
        return True
    has_corpus = str(path.with_name(CORPUS)) in names
    if has_corpus and path.name != CORPUS and str(path.with_name(QUERIES)) in names:
        return True
    is_label = path.parent.name == "qrels" and path.suffix in (".tsv", ".csv", ".txt")
    return is_label and str(path.parent.with_name(CORPUS)) in names
