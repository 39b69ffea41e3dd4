"""``rag-tui contextualise``: the estimate, the question, then the pass itself."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from rag_tui.cli.output import narrated, note, write_json, write_text
from rag_tui.cli.session import open_session
from rag_tui.config import Settings, bundled_corpus, load_settings
from rag_tui.engine.contextual import (
    ContextualSettings,
    ModelPrices,
    Plan,
    Situation,
    SituationFailure,
    Usage,
    contextualise,
    plan,
    prices_of,
)
from rag_tui.engine.errors import BadIndexError, UsageError
from rag_tui.engine.events import Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.loading import Models
from rag_tui.engine.situations import SituationStore

EXIT_FAILED = 1
_ON = {"chunking.situations": True}
_SHOWN_FAILURES = 5


def contextualise_command(
    folder: Path | None,
    model: str | None,
    prices: ModelPrices | None,
    *,
    is_agreed: bool,
    as_json: bool,
) -> int:
    """Exit 1 when a chunk got no situation, 130 when the user does not want to pay."""
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    settings = load_settings(path, _ON)
    is_on = load_settings(path).chunking.situations
    wanted = ContextualSettings(
        base_url=settings.answer.base_url, timeout_s=settings.answer.timeout_s
    )
    if model is not None:
        wanted = replace(wanted, model=model)
    prices = prices if prices is not None else prices_of(wanted.model)
    index = _cut(path, settings)
    store = SituationStore.in_cache(settings.engine.cache_dir)
    planned = plan(index, wanted, store=store)
    for line in _estimate(planned, prices):
        note(line)
    written: list[Situation] = []
    failures: list[SituationFailure] = []
    if planned.n_chunks:
        if not is_agreed and not _confirmed():
            note("Nothing was sent.")
            return 130
        asyncio.run(_run(index, wanted, store, written, failures))
    if is_on:
        open_session(path, _ON)
    used = sum((one.usage for one in written), Usage())
    _tell_failures(failures)
    if as_json:
        write_json(_as_json(planned, prices, written, failures, used))
    else:
        spent = "" if prices is None else f", {_dollars(used.cost_usd(prices))}"
        write_text(
            f"{len(written):,} situations written{spent}; "
            f"{planned.n_known:,} were known, {len(failures):,} failed"
        )
    if not is_on:
        note(
            "Searches use them when chunking.situations is true: set it in a settings file, "
            "or RAG_TUI_CHUNKING__SITUATIONS=true."
        )
    return EXIT_FAILED if failures or planned.skipped else 0


def _cut(folder: Path, settings: Settings) -> Index:
    """The chunks as they are cut when they carry situations; nothing is embedded or written."""
    engine = settings.engine
    with narrated() as show:
        models = Models(engine.models, engine.cache_dir, report=show)
        for item in refresh_index(folder, engine, models):
            if isinstance(item, IndexReady):
                return item.index
            show(item)
    raise BadIndexError(f"Indexing {folder} ended without an index.", "Run it again.")


def _estimate(planned: Plan, prices: ModelPrices | None) -> list[str]:
    usage = planned.usage
    lines = [
        f"{planned.n_chunks:,} chunks of {planned.n_documents:,} documents are to be placed by "
        f"{planned.model}; {planned.n_known:,} are already."
    ]
    if not planned.n_chunks:
        return lines
    if planned.n_windowed:
        lines.append(f"{planned.n_windowed:,} documents are too long and are sent in windows.")
    if planned.skipped:
        lines.append(f"{len(planned.skipped):,} chunks are too long and are skipped.")
    lines.append(
        f"Estimated tokens: {usage.input_tokens:,} input, {usage.cache_write_tokens:,} written to "
        f"the cache, {usage.cache_read_tokens:,} read from it, {usage.output_tokens:,} output."
    )
    if prices is None:
        lines.append(
            f"What that costs is not known: the prices of {planned.model} are not known here. "
            "Give them with --input-price and --output-price (US dollars per million tokens)."
        )
    else:
        lines.append(f"Estimated cost: {_dollars(usage.cost_usd(prices))}.")
    return lines


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 0.1 else f"${amount:.4f}"


def _confirmed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "Nothing was sent: this costs money and there is no terminal to ask on.",
            "Run it again with --yes if the estimate is fine.",
        )
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _run(
    index: Index,
    settings: ContextualSettings,
    store: SituationStore,
    written: list[Situation],
    failures: list[SituationFailure],
) -> None:
    with narrated() as show:
        report: Callable[[Progress], None] = show
        async for item in contextualise(index, settings, os.environ, store=store):
            match item:
                case Progress():
                    report(item)
                case Situation():
                    written.append(item)
                case SituationFailure():
                    failures.append(item)


def _tell_failures(failures: list[SituationFailure]) -> None:
    for failure in failures[:_SHOWN_FAILURES]:
        note(f"failed: {failure.doc_id} (chunk {failure.chunk_id}): {failure.reason}")
    if len(failures) > _SHOWN_FAILURES:
        note(f"and {len(failures) - _SHOWN_FAILURES:,} more; run it again to try only those")


def _as_json(
    planned: Plan,
    prices: ModelPrices | None,
    written: list[Situation],
    failures: list[SituationFailure],
    used: Usage,
) -> Mapping[str, object]:
    return {
        "plan": {
            **asdict(planned),
            "cost_usd": None if prices is None else planned.usage.cost_usd(prices),
        },
        "usage": asdict(used),
        "cost_usd": None if prices is None else used.cost_usd(prices),
        "situations": [asdict(one) for one in written],
        "failed": [asdict(one) for one in failures],
    }
