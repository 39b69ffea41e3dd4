"""Writing a small file so that it is either the old one or the new one, never half of it."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from rag_tui.engine.errors import UsageError


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content, keeping its permissions; it is created if absent.

    A link is followed: what it points at is replaced, not the link.

    Raises:
        UsageError: When it cannot be written; the old file stays.
    """
    target = path.resolve()
    temporary = ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.stat().st_mode & 0o7777 if target.exists() else 0o666 & ~_umask()
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(mode)
        Path(temporary).replace(target)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}.",
            "Give yourself write permission for it and its folder, or name another file.",
        ) from error


@contextlib.contextmanager
def folder_lock(folder: Path, *, timeout_s: float = 5.0) -> Iterator[None]:
    """Keep other processes that ask too out of a folder's files; created if absent.

    The lock is on the folder itself, leaves no file behind and dies with its process. Where the
    system has no such locks, nothing is locked.

    Raises:
        UsageError: When another process holds it for longer than ``timeout_s``, or the folder
            cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{folder} cannot be made: {error.strerror or error}.", "Name another file."
        ) from error
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise UsageError(
                        f"Another rag-tui is writing in {folder}.", "Close it, or try again."
                    ) from None
                time.sleep(0.02)
            except OSError:  # a file system without locks
                break
        yield
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
