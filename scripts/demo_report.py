"""Print the tables of the README about the demo corpus, from the real engine and real models.

python scripts/demo_report.py ranks | answers
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_tui.engine.answering import answer
from rag_tui.engine.evaluation.evaluate import evaluate
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import resolve_all
from rag_tui.engine.evaluation.scoring import score
from rag_tui.engine.evaluation.types import EvalRun
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.llms.extractive import ExtractiveAnswerer
from rag_tui.engine.loading import Models
from rag_tui.engine.prompting import build_prompt
from rag_tui.engine.searching import search
from rag_tui.engine.settings import EngineSettings, ModelSettings
from rag_tui.engine.types import METHODS, Answer, Ranking, SearchRequest

CORPUS = Path(__file__).parent.parent / "corpus"
N_SOURCES = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the methods and the extractive answerer made of one question."""

    question: str
    is_answerable: bool
    ranks: dict[str, int | None]
    """Best rank of a right section by method; None: not in the list."""
    best_logit: float
    answer: Answer
    cites_right: bool


def outcomes(index: Index, models: Models) -> list[Outcome]:
    """All questions of the demo corpus."""
    lines = (CORPUS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    return [_outcome(json.loads(line), index, models) for line in lines if line.strip()]


def _outcome(row: dict[str, Any], index: Index, models: Models) -> Outcome:
    request = SearchRequest(row["question"])
    rankings: dict[str, Ranking] = {
        r.stage: r.ranking for r in search(request, index, models) if r.ranking is not None
    }
    right = {
        chunk.chunk_id
        for chunk in index.chunks
        for evidence in row.get("evidence", ())
        if chunk.doc_id == evidence["file"] and chunk.heading_path[-1] == evidence["heading"]
    }
    ranks: dict[str, int | None] = {
        method: min((h.rank for h in rankings[method].hits if h.chunk_id in right), default=None)
        for method in METHODS
    }
    best = rankings["reranked"].hits
    chunks = [index.chunks[hit.position] for hit in best[:N_SOURCES]]
    prompt = build_prompt(row["question"], chunks, max_sources=N_SOURCES)
    final = asyncio.run(_answer(prompt, models))
    cited = {source.chunk_id for source in prompt.sources if source.number in final.cited}
    return Outcome(
        question=row["question"],
        is_answerable=row.get("answerable", True),
        ranks=ranks,
        best_logit=best[0].score,
        answer=final,
        cites_right=bool(cited & right),
    )


async def _answer(prompt: Any, models: Models) -> Answer:
    return [item async for item in answer(prompt, ExtractiveAnswerer(models))][-1]


def rank_table(found: list[Outcome]) -> str:
    """Markdown: question, rank of the right section in each list."""
    lines = ["| question | vector | BM25 | hybrid | reranked |", "|---|---|---|---|---|"]
    for one in found:
        if one.is_answerable:
            cells = " | ".join(str(one.ranks[m]) if one.ranks[m] else "–" for m in METHODS)
            lines.append(f"| {one.question} | {cells} |")
    return "\n".join(lines)


def answer_table(found: list[Outcome]) -> str:
    """Markdown: what the extractive answerer said to each question."""
    lines = ["| question | extractive answer |", "|---|---|"]
    for one in found:
        if one.answer.state == "not found":
            said = "not found" if one.is_answerable else "not found (right: nothing answers it)"
        else:
            said = "cites the right section" if one.cites_right else "cites another section"
        lines.append(f"| {one.question} | {said} |")
    return "\n".join(lines)


def eval_table(index: Index, models: Models) -> str:
    """Markdown: recall at 1 and 3 of each list, as ``rag-tui eval --measures R@1,R@3`` has it."""
    questions = read_questions(CORPUS, index=index)
    runs = [
        item
        for item in evaluate(questions, SearchRequest(""), index, models)
        if isinstance(item, EvalRun)
    ]
    resolved = resolve_all(questions.questions, index)
    table = score(runs[-1], resolved, ("R@1", "R@3"), questions.unit)
    lines = ["| list | R@1 | R@3 | questions |", "|---|---|---|---|"]
    for column in table.columns:
        cells = [
            f"{cell.interval.mean:.3f} ({cell.interval.low:.2f} to {cell.interval.high:.2f})"
            for cell in column.cells
            if cell.interval is not None
        ]
        lines.append(f"| {column.name} | {' | '.join(cells)} | {column.n_scored} |")
    return "\n".join(lines)


def build() -> tuple[Index, Models]:
    """The demo corpus, indexed in a temporary cache."""
    settings = EngineSettings(
        Path(tempfile.mkdtemp(prefix="rag-tui-demo-")), models=ModelSettings(allow_download=False)
    )
    models = Models(settings.models, settings.cache_dir)
    ready = [
        item for item in refresh_index(CORPUS, settings, models) if isinstance(item, IndexReady)
    ]
    return ready[-1].index, models


def main() -> None:
    what = sys.argv[1] if len(sys.argv) > 1 else "ranks"
    found = outcomes(*build())
    print(rank_table(found) if what == "ranks" else answer_table(found))


if __name__ == "__main__":
    main()
