"""``rag-tui questions draft``: the cost, the question, then proposals on stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rag_tui.cli.output import narrated, note, write_json, write_text
from rag_tui.cli.session import open_session
from rag_tui.display import count, one_line
from rag_tui.engine.documents.beir import QUESTIONS
from rag_tui.engine.errors import UsageError
from rag_tui.engine.evaluation.drafts import (
    HEADING_NOTE,
    Draft,
    DraftFailure,
    DraftPlan,
    draft_questions,
    plan_drafts,
)
from rag_tui.engine.evaluation.label_rows import Row, evidence_row
from rag_tui.engine.evaluation.question_rows import typed_id
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import Resolver
from rag_tui.engine.events import Progress
from rag_tui.engine.index import Index

EXIT_FAILED = 1
EXIT_DECLINED = 130


def draft_command(
    folder: Path | None,
    questions: Path | None,
    *,
    n: int,
    seed: int,
    from_headings: bool,
    is_agreed: bool,
    as_json: bool,
) -> int:
    """Exit 1 when no passage gave a draft, 130 when the user does not want to pay."""
    session = open_session(folder, {})
    answer = session.settings.engine.answer
    resolver = Resolver(session.index)
    plan = plan_drafts(
        session.index,
        n,
        answer,
        prices=session.settings.token_prices,
        environ=os.environ,
        seed=seed,
        judged=_judged(session.folder, questions, resolver),
        from_headings=from_headings,
    )
    note(_told(plan))
    if not plan.is_free and not is_agreed and not _confirmed():
        note("Nothing was sent.")
        return EXIT_DECLINED
    drafts: list[Draft] = []
    failures: list[DraftFailure] = []
    with narrated() as show:
        for item in draft_questions(plan, resolver, answer, environ=os.environ):
            if isinstance(item, Draft):
                drafts.append(item)
            else:
                failures.append(item)
            show(Progress("situate", len(drafts) + len(failures), len(plan.positions), "drafting"))
    for failure in failures:
        note(f"no draft for {session.index.chunks[failure.position].location}: {failure.reason}")
    if as_json:
        write_json([_row(draft) for draft in drafts])
    else:
        for draft in drafts:
            for line in _lines(draft, session.index):
                write_text(line)
    note("Nothing was written. Accept drafts in the app: ctrl+p, Draft questions.")
    return 0 if drafts else EXIT_FAILED


def _judged(folder: Path, questions: Path | None, resolver: Resolver) -> set[int]:
    """Passages that a question has as evidence already; without a question file none."""
    base = folder if folder.is_dir() else folder.parent
    if questions is None and not (base / QUESTIONS).exists():
        return set()
    try:
        known = read_questions(questions or base / QUESTIONS).questions
    except UsageError:
        if questions is not None:
            raise
        return set()  # an empty file, or one with unlabelled beginnings
    return {
        position
        for question in known
        for place in resolver.resolve(question).places
        for position in place.positions
    }


def _told(plan: DraftPlan) -> str:
    what = count(len(plan.positions), "question")
    if plan.is_free:
        return f"{what} from headings by template, without a model. {HEADING_NOTE}"
    return (
        f"{plan.by} writes {what}, one request each: about {plan.n_input_tokens:,} tokens in, at "
        f"most {plan.most_cost:.2f} {plan.currency} in all."
    )


def _confirmed() -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            "Nothing was sent: this costs money and there is no terminal to ask on.",
            "Run it again with --yes if the estimate is fine, or with --headings.",
        )
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _row(draft: Draft) -> Row:
    """As a line of ``questions.jsonl``."""
    return {
        "id": typed_id(draft.text),
        "question": draft.text,
        "evidence": [evidence_row(draft.evidence)],
        "synthetic": True,
    }


def _lines(draft: Draft, index: Index) -> list[str]:
    return [
        one_line(draft.text),
        f"  {index.chunks[draft.position].location}: “{one_line(draft.evidence.quote)}”",
    ]
