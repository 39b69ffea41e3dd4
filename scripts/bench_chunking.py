"""Measure chunking: what each strategy finds, and how fast it cuts. Nothing is asserted.

    python scripts/bench_chunking.py quality DATA [--corpora NAME,NAME] [--sizes 256,128]
    python scripts/bench_chunking.py speed FOLDER [--megabytes 10]

``quality`` reads a folder with ``corpora/*.md`` and ``spans.jsonl`` (lines with ``text``,
``corpus`` and ``spans``, character offsets), cuts and embeds the corpora with every strategy,
retrieves 5 chunks by vector for each question, and prints token recall, precision and IoU, the
measures of Smith and Troynikov 2024 (`rag_tui.engine.evaluation.token_measures`). Tokens are the
embedding model's.

``speed`` repeats a folder's Markdown until it has so many megabytes and cuts it with every
strategy and with the libraries themselves, without embedding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_tui.config import cache_dir
from rag_tui.engine.chunkers.base import Chunker, ChunkingSettings, Strategy, TokenCounter
from rag_tui.engine.chunkers.factory import STRATEGIES, make_chunker
from rag_tui.engine.documents.loading import load_document
from rag_tui.engine.embedding_cache import EmbeddingCache
from rag_tui.engine.evaluation.token_measures import SpanScores, span_scores
from rag_tui.engine.evaluation.types import Retrieved
from rag_tui.engine.ids import text_hash
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import ModelSettings
from rag_tui.engine.types import Chunk, Document

if TYPE_CHECKING:
    import numpy.typing as npt

    from rag_tui.engine.embedders.base import Vectors

    Ints = npt.NDArray[np.int64]

TOP_K = 5
GROUP = 64


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    doc_id: str
    spans: tuple[tuple[int, int], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["quality", "speed"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpora", default="", help="names without .md; default: all")
    parser.add_argument("--sizes", default="256,128", help="in tokens")
    parser.add_argument("--overlap", type=float, default=0.125, help="as a share of the size")
    parser.add_argument("--strategies", default=",".join(s for s in STRATEGIES if s != "page"))
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--cache", type=Path, default=None, help="folder for models and vectors")
    options = parser.parse_args()
    cache = options.cache or cache_dir()
    models = Models(ModelSettings(), cache)
    strategies: list[Any] = options.strategies.split(",")
    if options.what == "speed":
        speed(options.folder, options.megabytes, strategies, models.token_counter())
        return
    names = [name for name in options.corpora.split(",") if name]
    sizes = [int(size) for size in options.sizes.split(",")]
    sizes_and_overlaps = [(size, int(size * options.overlap)) for size in sizes]
    quality(options.folder, names, sizes_and_overlaps, strategies, models, cache)


def quality(
    folder: Path,
    names: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    strategies: Sequence[Strategy],
    models: Models,
    cache: Path,
) -> None:
    files = [p for p in sorted((folder / "corpora").glob("*.md")) if not names or p.stem in names]
    documents = {p.name: load_document(p, doc_id=p.name) for p in files}
    questions = list(read_questions(folder / "spans.jsonl", documents))
    counter = models.token_counter()
    tokens = {name: token_starts(counter, doc.text) for name, doc in documents.items()}
    embed = cached_embed(models, EmbeddingCache(cache / "embeddings.sqlite"))
    asked = np.stack([models.embed_query(question.text) for question in questions])
    n_characters = sum(len(doc.text) for doc in documents.values())
    print(
        f"{len(documents)} corpora, {n_characters:,} characters, {len(questions)} questions; "
        f"{models.embedder().info.name}, top {TOP_K} by vector\n"
    )
    print("| strategy | size | overlap | chunks | tokens/chunk | recall | precision | IoU |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for strategy in strategies:
        for size, overlap in sizes[:1] if strategy in ("page", "whole") else sizes:
            chosen = ChunkingSettings(strategy=strategy, size=size, overlap=overlap)
            chunker = make_chunker(chosen, counter, embed=embed)
            chunks = [chunk for doc in documents.values() for chunk in chunker.chunk(doc)]
            texts = [chunk.embedded_text for chunk in chunks]
            best = np.argsort(-(asked @ embed(texts).T), axis=1, kind="stable")[:, :TOP_K]
            scores = [
                score(question, [chunks[i] for i in row], tokens)
                for question, row in zip(questions, best, strict=True)
            ]
            mean = float(np.mean(counter.count(texts))) + counter.n_special
            print(
                f"| {strategy} | {size} | {overlap} | {len(chunks)} | {mean:.0f} "
                f"| {percent(s.recall for s in scores)} "
                f"| {percent(s.precision for s in scores)} "
                f"| {percent(s.iou for s in scores)} |",
                flush=True,
            )


def score(question: Question, retrieved: Sequence[Chunk], tokens: dict[str, Ints]) -> SpanScores:
    """Token recall, precision and IoU of the retrieved chunks."""
    rows = [Retrieved(c.chunk_id, c.doc_id, c.start, c.end, 0.0) for c in retrieved]
    found = span_scores(rows, {question.doc_id: question.spans}, token_starts=tokens)
    if found is None:
        raise ValueError(f"nothing is wanted of {question.doc_id}")
    return found


def speed(
    folder: Path, megabytes: float, strategies: Sequence[Strategy], counter: TokenCounter
) -> None:
    sources = [load_document(path, doc_id=path.name) for path in sorted(folder.rglob("*.md"))]
    documents: list[Document] = []
    n_bytes = 0
    while n_bytes < megabytes * 1e6:
        source = sources[len(documents) % len(sources)]
        documents.append(source)
        n_bytes += len(source.text.encode("utf-8", "surrogatepass"))
    print(f"{n_bytes / 1e6:.1f} MB of Markdown, {len(documents)} documents, size 256 tokens\n")
    print("| what | chunks | s | MB/s |")
    print("|---|---:|---:|---:|")
    for name, cut in [*ours(strategies, counter), *theirs(counter)]:
        started = time.perf_counter()
        n_chunks = sum(cut(document) for document in documents)
        elapsed = time.perf_counter() - started
        print(
            f"| {name} | {n_chunks} | {elapsed:.1f} | {n_bytes / 1e6 / elapsed:.2f} |", flush=True
        )


def ours(
    strategies: Sequence[Strategy], counter: TokenCounter
) -> Iterator[tuple[str, Callable[[Document], int]]]:
    def counting(chunker: Chunker) -> Callable[[Document], int]:
        return lambda document: len(chunker.chunk(document))

    for strategy in strategies:
        note = " (without embedding)" if strategy == "semantic" else ""
        chunker = make_chunker(ChunkingSettings(strategy=strategy), counter, embed=pseudo_vectors)
        yield f"rag-tui {strategy}{note}", counting(chunker)


def theirs(counter: TokenCounter) -> Iterator[tuple[str, Callable[[Document], int]]]:
    """The libraries by themselves, in their usual set-up, with the same tokenizer's counts."""

    def count(text: str) -> int:
        return counter.count([text])[0]

    try:
        from semchunk.semchunk import chunkerify
    except ImportError:
        pass
    else:
        # Its memory of counts would know the repeated documents by heart.
        semchunk: Any = chunkerify(count, chunk_size=254, memoize=False)
        yield "semchunk itself", lambda document: len(semchunk(document.text))
    try:
        from chonkie import RecursiveChunker, TokenChunker
    except ImportError:
        return
    tokenizer = getattr(counter, "_tokenizer", None)
    if tokenizer is not None:
        recursive = RecursiveChunker(tokenizer=tokenizer, chunk_size=254)
        yield "chonkie recursive itself", lambda document: len(recursive.chunk(document.text))
        token = TokenChunker(tokenizer=tokenizer, chunk_size=254, chunk_overlap=32)
        yield "chonkie token itself", lambda document: len(token.chunk(document.text))


def pseudo_vectors(texts: Sequence[str]) -> Vectors:
    """Some vectors of norm 1 that depend on the text, for measuring all but the embedding."""
    digests = b"".join(hashlib.blake2b(t.encode("utf-8", "replace")).digest() for t in texts)
    raw = np.frombuffer(digests, np.uint8).reshape(len(texts), -1).astype(np.float32) - 127.5
    vectors: Vectors = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    return vectors


def cached_embed(models: Models, cache: EmbeddingCache) -> Callable[[Sequence[str]], Vectors]:
    def embed(texts: Sequence[str]) -> Vectors:
        embedder = models.embedder()
        hashes = [text_hash(text) for text in texts]
        text_of = dict(zip(hashes, texts, strict=True))
        known = cache.get_many(embedder.info.fingerprint, list(text_of))
        missing = sorted((h for h in text_of if h not in known), key=lambda h: len(text_of[h]))
        for start in range(0, len(missing), GROUP):
            group = missing[start : start + GROUP]
            vectors = embedder.embed_documents([text_of[h] for h in group])
            new = dict(zip(group, vectors, strict=True))
            cache.put_many(embedder.info.fingerprint, new)
            known.update(new)
        return np.stack([known[h] for h in hashes])

    return embed


def read_questions(path: Path, documents: dict[str, Document]) -> Iterator[Question]:
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["corpus"] in documents:
            spans = tuple((int(start), int(end)) for start, end in row["spans"])
            yield Question(row["text"], row["corpus"], spans)


def token_starts(counter: TokenCounter, text: str) -> Ints:
    return np.asarray([start for start, _ in counter.spans(text)], np.int64)


def percent(values: Iterator[float]) -> str:
    return f"{100 * float(np.mean(list(values))):.1f}"


if __name__ == "__main__":
    main()
