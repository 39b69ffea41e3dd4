"""What workers tell the app and the screens; threads speak to widgets in no other way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from rag_tui.engine.events import Progress, StageError, StageResult
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import Answer
    from rag_tui.tui.backend import Session


class SessionReady(Message):
    """Settings are read and the engine is imported."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session


class IndexChanged(Message):
    """An index that can be searched from now on.

    Args:
        index: The index.
        is_final: Whether nothing more is to come from this job.
        notes: Remarks for the user.
    """

    def __init__(self, index: Index, *, is_final: bool, notes: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.index = index
        self.is_final = is_final
        self.notes = notes


class JobProgress(Message):
    """How far the indexing job is; a newer one replaces one that is still waiting."""

    def __init__(self, progress: Progress) -> None:
        super().__init__()
        self.progress = progress

    def can_replace(self, message: Message) -> bool:
        """Only the newest state is worth painting."""
        return isinstance(message, JobProgress)


class JobFailed(Message):
    """The indexing job ended with an error.

    Args:
        error: What to show.
        is_expected: Whether the message is meant for the user; otherwise it is a fault of ours.
    """

    def __init__(self, error: StageError, *, is_expected: bool) -> None:
        super().__init__()
        self.error = error
        self.is_expected = is_expected


class StageFinished(Message):
    """One list of the search with this generation number."""

    def __init__(self, generation: int, result: StageResult) -> None:
        super().__init__()
        self.generation = generation
        self.result = result


class SearchFinished(Message):
    """All lists of the search were delivered."""

    def __init__(self, generation: int, elapsed_s: float) -> None:
        super().__init__()
        self.generation = generation
        self.elapsed_s = elapsed_s


class SearchFailed(Message):
    """The search as a whole could not be made."""

    def __init__(self, generation: int, error: StageError) -> None:
        super().__init__()
        self.generation = generation
        self.error = error


class AnswerGrew(Message):
    """The answer so far, or the finished one."""

    def __init__(self, generation: int, answer: Answer) -> None:
        super().__init__()
        self.generation = generation
        self.answer = answer

    def can_replace(self, message: Message) -> bool:
        """Every answer holds the whole text, so an older one of the same run can go."""
        return isinstance(message, AnswerGrew) and message.generation == self.generation
