"""A sweep in a thread: what it tells the dialog, and what a chosen setting changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.message import Message

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.evaluation.sweep_space import Setting, Space
from rag_tui.engine.evaluation.sweep_types import SweepProgress, SweepResult
from rag_tui.engine.events import CancelToken, StageError
from rag_tui.engine.knobs import make_column, with_knobs
from rag_tui.tui.jobs import Post, log

if TYPE_CHECKING:
    from pathlib import Path

    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.backend import Backend, Session
    from rag_tui.tui.evaluation_jobs import Labelled


class SweepAdvanced(Message):
    """How far a sweep has come."""

    def __init__(self, progress: SweepProgress) -> None:
        super().__init__()
        self.progress = progress


class SweepFinished(Message):
    """A sweep ended, whole or as far as it came."""

    def __init__(self, result: SweepResult) -> None:
        super().__init__()
        self.result = result


class SweepFailed(Message):
    """A sweep ended without anything."""

    def __init__(self, error: StageError) -> None:
        super().__init__()
        self.error = error


@dataclass(frozen=True, slots=True)
class SweepJob:
    """What is tried on what."""

    space: Space
    column: str
    metric: str
    labelled: Labelled
    request: SearchRequest


def run_sweep(
    backend: Backend,
    session: Session,
    folder: Path,
    job: SweepJob,
    *,
    post: Post,
    cancel: CancelToken,
) -> None:
    """Measure all settings and tell it by messages; finished ones are kept at once."""
    try:
        for item in backend.sweep(job, session, folder, cancel=cancel):
            post(SweepAdvanced(item) if isinstance(item, SweepProgress) else SweepFinished(item))
    except Cancelled:
        return
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("sweep failed")
        post(SweepFailed(StageError.from_exception(error)))


def with_setting(request: SearchRequest, column: str, setting: Setting) -> SearchRequest:
    """The request with a setting's knobs of the search; those that the column sets itself there.

    Raises:
        UsageError: When there is no such knob.
    """
    own = next((dict(c.knobs) for c in request.columns if c.name == column), {})
    inside = {name: value for name, value in setting.search.items() if name in own}
    outside = {name: value for name, value in setting.search.items() if name not in own}
    request = with_knobs(request, outside)
    if not inside:
        return request
    columns = tuple(
        make_column(c.name, c.method, {**dict(c.knobs), **inside}) if c.name == column else c
        for c in request.columns
    )
    return replace(request, columns=columns)


def index_overrides(setting: Setting) -> Mapping[str, object]:
    """The settings of the index that a setting changes, by dotted name."""
    return {f"chunking.{name}": value for name, value in setting.chunking.items()}
