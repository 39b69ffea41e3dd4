"""What the engine reports while it works, as plain data, and how it is told to stop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import Literal

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.types import Method, Ranking

Stage = Literal["scan", "read", "chunk", "bm25", "model", "embed", "write", "wait", "situate"]


class CancelToken:
    """A flag that the engine polls at least every 100 ms of work.

    Args:
        event: An event to share, such as a worker's own cancelled event.
    """

    __slots__ = ("_event",)

    def __init__(self, event: Event | None = None) -> None:
        self._event = event if event is not None else Event()

    def cancel(self) -> None:
        """Ask the work to stop."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the work was asked to stop."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise `Cancelled` if the work was asked to stop."""
        if self._event.is_set():
            raise Cancelled


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a long job has come."""

    stage: Stage
    done: int = 0
    total: int = 0
    """0 when unknown."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class StageError:
    """Why one list could not be made; the others stand."""

    message: str
    hint: str = ""

    @classmethod
    def from_exception(cls, error: BaseException) -> StageError:
        """A readable form of any exception."""
        if isinstance(error, RagTuiError):
            return cls(error.message, error.hint)
        return cls(f"{type(error).__name__}: {error}")


@dataclass(frozen=True, slots=True)
class StageResult:
    """One column of a search, or why there is none. Exactly one of ranking and error is set.

    A column whose ranking has ``n_waiting`` above 0 comes again, sharper, under the same name.
    """

    stage: str
    """Name of the column (`Column.name`); the four default columns are named like methods."""
    ranking: Ranking | None = None
    error: StageError | None = None
    elapsed_s: float = 0.0
    inputs: Mapping[Method, Ranking] = field(default_factory=dict)
    """The lists that this column's pipeline is made of, its own last list among them, before the
    steps after ranking; what input ranks and movements are read from."""
