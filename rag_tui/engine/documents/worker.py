"""The process that converters run in: requests on stdin, one line of JSON for each on stdout."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from typing import Any, BinaryIO

_MEMORY_BYTES = 4 << 30
_STACK_BYTES = 256 << 20
_RECURSION = 20_000


def main() -> None:
    """Serve until stdin ends."""
    # what libraries print must not get between the answers
    answers = os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    _limit_memory()
    sys.setrecursionlimit(_RECURSION)
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=_serve, args=(sys.stdin.buffer, answers))
    thread.start()
    thread.join()


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    from rag_tui.engine.documents.converters import convert
    from rag_tui.engine.documents.parts import UnusableFileError

    while header := requests.readline():
        request = json.loads(header)
        raw = requests.read(request["n_bytes"])
        try:
            loaded = convert(
                request["format"], raw, name=request["name"], options=request["options"]
            )
            line = _line(loaded.to_json())
        except UnusableFileError as error:
            line = _refusal(error.message, error.state, error.hint)
        except MemoryError:
            line = _refusal(f"needed more than {_MEMORY_BYTES >> 30} GB of memory")
        except Exception as error:
            first = str(error).strip().split("\n", 1)[0][:200]
            reason = f"{type(error).__name__}: {first}" if first else type(error).__name__
            line = _refusal(reason)
        answers.write(line)
        answers.flush()


def _refusal(reason: str, state: str = "failed", hint: str = "") -> bytes:
    return _line({"reason": reason, "state": state, "hint": hint})


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer, ensure_ascii=True).encode("ascii") + b"\n"


def _limit_memory() -> None:
    """A file that unpacks without end fails by itself instead of filling the machine."""
    if sys.platform != "linux":
        return
    import resource

    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, hard))


if __name__ == "__main__":
    main()
