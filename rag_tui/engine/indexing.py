"""Building and refreshing an index: a generator of progress that ends in an index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import EngineSettings


@dataclass(frozen=True, slots=True)
class IndexReady:
    """An index that can be searched from now on."""

    index: Index
    is_final: bool
    """False for a first, keyword-only index that is shown while embedding goes on."""
    added: tuple[str, ...] = ()
    """Document ids, compared with the index that was there before."""
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    n_embedded: int = 0
    """Chunks that had to be embedded now; the others came from the cache."""
    notes: tuple[str, ...] = ()
    """Remarks for the user, e.g. that another process was waited for."""


def open_index(folder: Path, settings: EngineSettings) -> Index | None:
    """The folder's index as it lies on disk, or None when there is none that can be used."""
    raise NotImplementedError


def refresh_index(
    folder: Path,
    settings: EngineSettings,
    models: Models,
    *,
    cancel: CancelToken | None = None,
    rebuild: bool = False,
) -> Iterator[Progress | IndexReady]:
    """Bring the folder's index up to date and yield it; unchanged chunks cost no embedding."""
    raise NotImplementedError
