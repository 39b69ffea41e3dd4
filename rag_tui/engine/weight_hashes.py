"""SHA-256 of large files, remembered so that a start does not read 90 MB for it."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rag_tui.engine.ids import fingerprint

_FILE_NAME = "sha256.json"


def file_sha256(path: Path, *, cache_dir: Path | None = None) -> str:
    """The file's SHA-256 as 64 hex digits.

    Args:
        path: The file to hash.
        cache_dir: Where hashes are remembered by path, size and modification time (ns); None
            reads the file in any case.

    Raises:
        OSError: When the file cannot be read.
    """
    if cache_dir is None:
        return _read_sha256(path)
    stat = path.stat()
    key = f"{path.resolve()}|{stat.st_size}|{stat.st_mtime_ns}"
    store = cache_dir / "models" / _FILE_NAME
    remembered = _load(store)
    if key not in remembered:
        digest = _read_sha256(path)
        _save(store, {**_load(store), key: digest})
        return digest
    return remembered[key]


def files_sha256(paths: Sequence[Path], root: Path, *, cache_dir: Path | None = None) -> str:
    """One digest for a model's weights: the file's own SHA-256, or a hash over several."""
    if len(paths) == 1:
        return file_sha256(paths[0], cache_dir=cache_dir)
    return fingerprint(
        {
            path.relative_to(root).as_posix(): file_sha256(path, cache_dir=cache_dir)
            for path in paths
        }
    )


def _read_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _load(store: Path) -> dict[str, str]:
    try:
        content = json.loads(store.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)}


def _save(store: Path, content: dict[str, str]) -> None:
    # Only a memory: where it cannot be written, the next start reads the weights again.
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=store.parent, prefix=_FILE_NAME)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=0)
        Path(temporary).replace(store)
    except OSError:
        return
