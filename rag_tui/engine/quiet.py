"""Keeping model libraries off the terminal: it belongs to the application."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

_ENVIRONMENT = {
    # The tokenizer library warns, or deadlocks, when a process that used its threads is forked.
    "TOKENIZERS_PARALLELISM": "false",
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TRANSFORMERS_NO_ADVISORY_WARNINGS": "1",
}
_LIBRARIES = ("huggingface_hub", "sentence_transformers", "tokenizers", "torch", "transformers")


def quiet_environment() -> None:
    """Set the switches that the libraries read when they are imported; call it before that."""
    os.environ.update(_ENVIRONMENT)
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        # Without any handler Python itself prints warnings; records still reach a root handler,
        # such as the application's log file.
        if not any(isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            logger.addHandler(logging.NullHandler())


@contextmanager
def quietly() -> Iterator[None]:
    """Import and run model libraries without their warnings, bars and log lines."""
    quiet_environment()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def quiet_transformers() -> None:
    """Switch off the loading bars of transformers and the libraries' own stderr handlers."""
    import transformers

    transformers.logging.disable_progress_bar()
    transformers.logging.set_verbosity_error()
    for name in _LIBRARIES:
        logger = logging.getLogger(name)
        for handler in list(logger.handlers):
            if type(handler) is logging.StreamHandler:
                logger.removeHandler(handler)
        logger.propagate = True
