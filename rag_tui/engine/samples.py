"""Questions that come with a corpus, to begin with."""

from __future__ import annotations

import json
from pathlib import Path

QUESTIONS_FILE = "questions.jsonl"
_N_BYTES = 2**20


def sample_questions(folder: Path, *, limit: int = 20) -> tuple[str, ...]:
    """The first questions of a folder's ``questions.jsonl``, in file order.

    Each line is a JSON object with a ``question``; lines that are anything else are passed over,
    and so is a file that cannot be read: these are suggestions, nothing depends on them.
    """
    try:
        with (folder / QUESTIONS_FILE).open("rb") as file:
            lines = file.read(_N_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
    found: list[str] = []
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue
        question = row.get("question") if isinstance(row, dict) else None
        if isinstance(question, str) and question.strip():
            found.append(question.strip())
        if len(found) == limit:
            break
    return tuple(found)
