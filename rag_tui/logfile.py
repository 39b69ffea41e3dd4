"""The log goes to a file; nothing of it ever reaches a terminal."""

from __future__ import annotations

import logging
from pathlib import Path

LOG_BYTES = 1_000_000
log = logging.getLogger("rag_tui")


def log_place(cache_dir: Path) -> Path:
    """Where the log of a cache folder lies."""
    return cache_dir / "log" / "rag-tui.log"


def start_log(path: Path) -> None:
    """Send the program's own log records to a file; nothing goes to the terminal.

    A folder that cannot be written costs the log, not the session.
    """
    from logging.handlers import RotatingFileHandler

    silence()
    log.setLevel(logging.INFO)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(
            path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        return
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(handler)


def silence() -> None:
    """Keep records from the terminal while there is no file for them."""
    for handler in list(log.handlers):
        log.removeHandler(handler)
        handler.close()
    log.propagate = False
    log.addHandler(logging.NullHandler())


def log_path() -> str:
    """The log file of this session, or an empty string."""
    return next((h.baseFilename for h in log.handlers if isinstance(h, logging.FileHandler)), "")
