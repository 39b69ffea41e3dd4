"""What every command begins with: a folder, its settings, its models, its fresh index."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from rag_tui.cli.output import narrated, note
from rag_tui.config import Settings, bundled_corpus, cache_dir, load_settings
from rag_tui.engine.errors import BadIndexError
from rag_tui.engine.events import Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.indexing_files import check_folder
from rag_tui.engine.loading import Models
from rag_tui.logfile import log_place, start_log


@dataclass(frozen=True, slots=True)
class Session:
    """One folder, opened."""

    folder: Path
    settings: Settings
    models: Models
    ready: IndexReady

    @property
    def index(self) -> Index:
        """The index, up to date."""
        return self.ready.index


STDIN = "-"
"""As a folder: one Markdown document from stdin."""


def _from_stdin() -> Path:
    """What stdin holds, as a one-file corpus in the cache; the same text is the same corpus."""
    raw = sys.stdin.buffer.read()
    place = cache_dir() / "stdin" / sha256(raw).hexdigest()[:16] / "stdin.md"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(raw)
    return place


def open_session(
    folder: Path | None,
    overrides: Mapping[str, object],
    *,
    rebuild: bool = False,
    report: Callable[[Progress], None] | None = None,
) -> Session:
    """Settings, models and an index that is up to date, made or refreshed if need be."""
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    if str(path) == STDIN:
        path = _from_stdin()
    check_folder(path)
    settings = load_settings(path, overrides)
    engine = settings.engine
    start_log(log_place(engine.cache_dir))
    ready: IndexReady | None = None
    with narrated() as show:
        tell = report or show
        models = Models(engine.models, engine.cache_dir, report=tell)
        for item in refresh_index(path, engine, models, rebuild=rebuild):
            if isinstance(item, Progress):
                tell(item)
            else:
                ready = item
    if ready is None:
        raise BadIndexError(f"Indexing {path} ended without an index.", "Run it again.")
    for remark in ready.notes:
        note(remark)
    return Session(path, settings, models, ready)
