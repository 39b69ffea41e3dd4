"""Keeps the pauses of memory management out of what moves on screen.

A full collection looks at every object there is and stops all threads meanwhile. With the models'
and the service's libraries loaded that takes 150 to 200 ms, and an answer that streams makes one
due every few seconds: a key pressed then would have to wait.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEVER = 1_000_000_000
"""Collections of the middle generation after which a full one is due."""

_lock = threading.Lock()
_n_open = 0
_before = 0
_is_frozen = False


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Put off full collections until the last such block, in whichever thread, has ended.

    Young objects are collected as ever, so what piles up is bounded by what the block keeps.
    """
    global _n_open, _before
    with _lock:
        _n_open += 1
        if _n_open == 1:
            young, middle, _before = gc.get_threshold()
            gc.set_threshold(young, middle, _NEVER)
    try:
        yield
    finally:
        with _lock:
            _n_open -= 1
            if _n_open == 0:
                young, middle, _ = gc.get_threshold()
                gc.set_threshold(young, middle, _before)


def leave_libraries_alone() -> None:
    """From now on collections pass over what is there; only the first call does it.

    To be called when the large libraries are loaded: nearly all there is then stays until the end.
    """
    global _is_frozen
    with _lock:
        if not _is_frozen:
            _is_frozen = True
            gc.freeze()
