"""Content-addressed ids and fingerprints: the same input gives the same id on every machine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any


def text_hash(text: str) -> str:
    """A 128-bit hex digest of a text; lone surrogates are hashed as they are."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def chunk_id(doc_id: str, text: str, occurrence: int) -> str:
    """The id of a chunk: 16 hex digits.

    It depends on the document, the chunk's own text and how many chunks with this very text
    came before it in the document, not on its offset: inserting a paragraph above a chunk
    does not change its id, and two equal sections have two ids.
    """
    key = f"{doc_id}\0{occurrence}\0{text}".encode("utf-8", "surrogatepass")
    return blake2b(key, digest_size=8).hexdigest()


def fingerprint(parts: Mapping[str, Any]) -> str:
    """A 128-bit hex digest of settings, independent of the order of their keys."""
    canonical = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return blake2b(canonical.encode(), digest_size=16).hexdigest()
