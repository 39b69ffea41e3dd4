"""Work that runs beside the event loop: in daemon threads, cancellable, told by messages.

Textual's own thread workers live in an executor that is joined at exit, so a model that is
being loaded would hold up quitting. Here an async worker waits for a daemon thread: cancelling
the worker sets the thread's cancel token and leaves it behind.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from textual.message import Message
from textual.worker import WorkType

from rag_tui.engine.errors import Cancelled, RagTuiError
from rag_tui.engine.events import CancelToken, Progress, StageError
from rag_tui.logfile import log_place, start_log
from rag_tui.tui.backend import Backend, Session
from rag_tui.tui.messages import (
    IndexChanged,
    JobFailed,
    JobProgress,
    SearchFailed,
    SearchFinished,
    SessionReady,
    StageFinished,
)

if TYPE_CHECKING:
    from textual.dom import DOMNode

    from rag_tui.engine.explain import Explanation
    from rag_tui.engine.index import Index
    from rag_tui.engine.types import SearchRequest
    from rag_tui.tui.results import Results

T = TypeVar("T")
Post = Callable[[Message], object]

THREAD_PREFIX = "rag-tui "

log = logging.getLogger("rag_tui")


async def in_thread(work: Callable[[CancelToken], T], name: str) -> T:
    """Run a function in a daemon thread and wait for what it returns or raises.

    Args:
        work: Gets a token that is set as soon as nobody waits for the result any more.
        name: For the thread list.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    cancel = CancelToken()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result: T | None = None
        error: BaseException | None = None
        try:
            result = work(cancel)
        except Exception as raised:
            error = raised
        except BaseException as raised:  # a library's exit must not pass for ours
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
        with suppress(RuntimeError):  # the loop is closed: the app has gone
            loop.call_soon_threadsafe(settle, result, error)

    context = contextvars.copy_context()
    threading.Thread(
        target=context.run, args=(run,), name=THREAD_PREFIX + name, daemon=True
    ).start()
    try:
        return await future
    finally:
        cancel.cancel()


def start(node: DOMNode, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
    """Run work in a worker of its own group: a newer one of the same name replaces it.

    The command palette and other jobs have other groups, so they cancel nothing here.
    """

    async def run() -> None:
        await work()

    coroutine_function: WorkType[None] = run
    node.run_worker(coroutine_function, name=name, group=name, exclusive=True, exit_on_error=False)


def busy_threads() -> int:
    """How many threads of this module are still at work."""
    return sum(thread.name.startswith(THREAD_PREFIX) for thread in threading.enumerate())


def leave(code: int) -> None:
    """End the process at once when a thread is still at work; else return.

    Such a thread may sit in native code for seconds, and the interpreter's own way out is not
    safe for it. What it writes is written atomically, so nothing is damaged.
    """
    if busy_threads():
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def open_session(
    backend: Backend, folder: Path, overrides: Mapping[str, object], post: Post
) -> Session:
    """Read the settings, start the log file and make the (still unloaded) models."""
    settings = backend.load_settings(folder, overrides)
    start_log(log_place(settings.engine.cache_dir))

    def report(progress: Progress) -> None:
        post(JobProgress(progress))

    session = Session(
        settings, backend.models(settings, report), samples=backend.sample_questions(folder)
    )
    post(SessionReady(session))
    return session


def run_index(
    backend: Backend,
    folder: Path,
    overrides: Mapping[str, object],
    session: Session | None,
    *,
    rebuild: bool,
    post: Post,
    cancel: CancelToken,
) -> None:
    """Open the folder's index, bring it up to date, and tell all of it by messages."""
    try:
        is_first = session is None
        if session is None:
            session = open_session(backend, folder, overrides, post)
        cancel.check()
        if is_first and (index := backend.open_index(folder, session.settings)) is not None:
            post(IndexChanged(index, is_final=False))
        cancel.check()
        for item in backend.refresh_index(folder, session, cancel=cancel, rebuild=rebuild):
            cancel.check()
            if isinstance(item, Progress):
                post(JobProgress(item))
            else:
                post(IndexChanged(item.index, is_final=item.is_final, notes=item.notes))
    except Cancelled:
        return
    except Exception as error:
        log.exception("indexing %r failed", str(folder))
        is_expected = isinstance(error, RagTuiError)
        post(JobFailed(StageError.from_exception(error), is_expected=is_expected))


def run_search(
    backend: Backend,
    session: Session,
    index: Index,
    request: SearchRequest,
    *,
    generation: int,
    post: Post,
    cancel: CancelToken,
) -> None:
    """Make the lists of one search and post each with the search's generation number."""
    started = time.perf_counter()
    try:
        for result in backend.search(request, index, session.models, cancel=cancel):
            cancel.check()
            post(StageFinished(generation, result))
        post(SearchFinished(generation, time.perf_counter() - started))
    except Cancelled:
        return
    except Exception as error:
        if not isinstance(error, RagTuiError):
            log.exception("search failed")
        post(SearchFailed(generation, StageError.from_exception(error)))


def explain_chunk(
    backend: Backend, session: Session, results: Results, chunk_id: str, column: str
) -> Explanation | StageError:
    """Why a chunk stands where it does in a column's pipeline, or why that cannot be said."""
    try:
        return backend.explain(
            chunk_id,
            results.request_of(column),
            results.index,
            results.stages(column),
            session.models,
            results.rankings.get(column),
        )
    except Exception as error:
        log.exception("explaining failed")
        return StageError.from_exception(error)
