"""Errors a user can cause or mend: each says what is wrong and how to put it right."""

from __future__ import annotations


class RagTuiError(Exception):
    """An expected failure: the message names the value and the rule, the hint names the fix."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class UsageError(RagTuiError):
    """A value the user gave is not usable (exit code 2)."""


class CorpusError(RagTuiError):
    """The folder holds nothing that can be indexed, or cannot be read."""


class MissingCorpusError(CorpusError, UsageError):
    """The folder that was named does not exist."""


class BadIndexError(RagTuiError):
    """The index on disk is missing, damaged or was made by something else."""


class ModelError(RagTuiError):
    """A model cannot be found, verified or loaded."""


class AnswerError(RagTuiError):
    """The answering service refused or failed."""


class Cancelled(Exception):  # noqa: N818 - control flow, not a failure
    """Raised inside the engine when its cancel token was set; never shown to a user."""
