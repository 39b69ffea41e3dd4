from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_tui.engine.chunkers.base import ChunkingSettings, TokenCounter
from rag_tui.engine.chunkers.headings import HeadingsChunker
from rag_tui.engine.chunkers.units import is_inside_character, word_spans
from rag_tui.engine.documents.front_matter import read_front_matter
from rag_tui.engine.documents.loading import load_document, load_folder
from rag_tui.engine.documents.markdown import outline
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.engine.types import Chunk, Document
from tests.engine.minilm_counter import MiniLMCounter

LINES = st.sampled_from(
    [
        "# One",
        "## Two",
        "### Three",
        "",
        "",
        "---",
        "word " * 9,
        "水泵手順。" * 5,
        "👨\u200d👩\u200d👧 é" * 4,
    ]
)
MARKDOWN = st.lists(LINES | st.text(st.characters(codec=None), max_size=30), max_size=40).map(
    lambda lines: "\n".join(lines).replace("\r", "\n")
)


def document(text: str, doc_id: str = "a.md") -> Document:
    front = read_front_matter(text)
    headings = outline(text, start=front.body_start)
    title = next((h.title for h in headings if h.level == 1 and h.title), doc_id)
    return Document(doc_id, title, text, sha256="", headings=headings, body_start=front.body_start)


def cut(
    text: str | Document,
    *,
    size: int = 256,
    overlap: int = 32,
    words: bool = False,
    counter: TokenCounter | None = None,
) -> tuple[Chunk, ...]:
    options = ChunkingSettings(size=size, overlap=overlap, unit="words" if words else "tokens")
    chunker = HeadingsChunker(options, counter or WordTokenCounter(limit=256))
    return chunker.chunk(document(text) if isinstance(text, str) else text)


def test_each_section_is_a_chunk_below_title_and_headings() -> None:
    text = "intro\n\n# House\n\n## Wi-Fi\n\nnet\n\n### Speed\n\nfast\n\n## Heat\n\nwarm\n"
    chunks = cut(text)
    assert [c.heading_path for c in chunks] == [
        ("House",),
        ("House", "Wi-Fi"),
        ("House", "Wi-Fi", "Speed"),
        ("House", "Heat"),
    ]
    assert [c.body for c in chunks] == ["intro", "net", "fast", "warm"]
    assert chunks[1].embedded_text == "House > Wi-Fi\n\nnet"
    assert [(c.line_start, c.line_end) for c in chunks] == [(1, 1), (3, 7), (9, 11), (13, 15)]
    assert "".join(c.text for c in chunks) == text


def test_headings_without_text_join_the_next_section() -> None:
    (chunk,) = cut("# A\n\n## B\n\n## C\ntext")
    assert chunk.heading_path == ("A", "C")
    assert chunk.text == "# A\n\n## B\n\n## C\ntext"
    assert chunk.text[chunk.body_offset :] == "text"


def test_a_heading_without_text_at_the_very_end_is_no_chunk() -> None:
    assert [c.body for c in cut("# A\n\ntext\n\n## End\n")] == ["text"]


@pytest.mark.parametrize("text", ["", " \n\n", "# A\n\n## B", "---\ntitle: x\n---\n", "---\n\n***"])
def test_a_document_without_text_gives_no_chunks(text: str) -> None:
    assert cut(text) == ()


def test_six_levels_give_a_path_of_six() -> None:
    chunks = cut("\n".join(f"{'#' * n} {n}\n\nword" for n in range(1, 7)))
    assert [len(c.heading_path) for c in chunks] == [1, 2, 3, 4, 5, 6]
    assert chunks[-1].context == "1 > 2 > 3 > 4 > 5 > 6"


def test_equal_sections_have_different_ids_that_do_not_move_with_the_text_above() -> None:
    chunks = cut("# Steps\na\n# Steps\na\n# Steps\nb")
    assert len({c.chunk_id for c in chunks}) == 3
    moved = cut("# New\n\nabove\n\n# Steps\na\n# Steps\na\n# Steps\nb")
    assert [c.chunk_id for c in moved[1:]] == [c.chunk_id for c in chunks]


def test_front_matter_is_in_no_chunk() -> None:
    text = "---\ntitle: secret\n---\n\n# A\n\nbody"
    (chunk,) = cut(text)
    assert "secret" not in chunk.text
    assert (chunk.line_start, chunk.line_end) == (5, 7)


def test_the_shared_fence_case_has_its_paths_and_loses_nothing(shared: Path) -> None:
    folder = shared / "cases" / "09-code-fences"
    expected = json.loads((folder / "expected.json").read_text())
    source = load_document(folder / "fences.md", doc_id="fences.md")
    chunks = cut(source)
    assert [c.context for c in chunks] == expected["heading_paths"]
    assert all(words in chunks[-1].text for words in expected["last_section_contains"])
    assert "".join(c.text for c in chunks) == source.text


def test_a_long_section_becomes_windows_with_the_stated_overlap_in_words() -> None:
    words = [f"w{i}" for i in range(100)]
    chunks = cut("# A\n\n" + " ".join(words), size=40, overlap=10, words=True)
    bodies = [c.body.split() for c in chunks]
    assert bodies == [words[0:40], words[30:70], words[60:100]]
    assert [c.body_offset for c in chunks] == [4, 0, 0]
    assert {c.heading_path for c in chunks} == {("A",)}


def test_repeated_words_have_the_offsets_of_their_own_place() -> None:
    chunks = cut("alpha alpha beta alpha\nalpha alpha beta alpha", size=2, overlap=0, words=True)
    assert [(c.start, c.end) for c in chunks] == [(0, 12), (12, 23), (23, 35), (35, 45)]


def test_windows_end_at_a_paragraph_when_one_is_near() -> None:
    paragraph = " ".join(["word"] * 9) + "\n\n"
    chunks = cut(paragraph * 6, size=20, overlap=0, words=True)
    assert [c.text for c in chunks] == [paragraph * 2] * 3


def test_text_without_spaces_is_cut_within_the_limit() -> None:
    chunks = cut("故障コードはシール漏れですポンプを逆洗する手順", size=10, overlap=0, words=True)
    assert [len(c.text) for c in chunks] == [10, 10, 3]


def test_a_heading_path_longer_than_the_model_reads_is_shortened() -> None:
    title, section = "title " * 200, "Section"
    counter = WordTokenCounter(limit=64)
    chunks = cut(f"# {title}\n\n## {section}\n\n" + "body " * 300, counter=counter)
    assert {c.heading_path for c in chunks} == {(section,)}
    counts = counter.count([c.embedded_text for c in chunks])
    assert max(counts) + counter.n_special <= 64
    (only, *_) = cut(f"# {title}\n\n" + "body " * 300, counter=counter)
    assert only.heading_path[0].endswith("…")
    assert title.startswith(only.heading_path[0][:-1])


@pytest.mark.parametrize("text", ["a" * 300_000, "ab" * 50_000 + " " + "水" * 50_000])
def test_one_endless_line_is_cut_without_loss(text: str) -> None:
    chunks = cut(text, counter=MiniLMCounter(), overlap=0)
    assert "".join(c.text for c in chunks) == text
    assert max(len(c.text) for c in chunks) <= 256 * 64


@settings(deadline=None, max_examples=150)
@given(MARKDOWN, st.integers(1, 30), st.integers(0, 29), st.booleans())
def test_any_text_is_tiled_by_exact_spans(text: str, size: int, overlap: int, words: bool) -> None:
    source = document(text)
    chunks = cut(source, size=size, overlap=min(overlap, size - 1), words=words)
    covered = source.body_start
    for ordinal, chunk in enumerate(chunks):
        assert source.text[chunk.start : chunk.end] == chunk.text
        assert chunk.ordinal == ordinal
        assert chunk.body
        assert not source.text[covered : chunk.start].strip()
        assert chunk.end > covered
        covered = chunk.end
        assert chunk.line_start == source.text[: chunk.start].count("\n") + 1 + (
            len(chunk.text) - len(chunk.text.lstrip())
            and chunk.text[: len(chunk.text) - len(chunk.text.lstrip())].count("\n")
        )
    # What is behind the last chunk is headings without text.
    rest = [h for h in source.headings if h.start >= covered]
    left = source.text[covered:]
    for heading in rest:
        left = left.replace(source.text[heading.start : heading.body_start], "", 1)
    assert not left.strip().strip("-*_ \t\n")
    assert len({c.chunk_id for c in chunks}) == len(chunks)
    assert cut(source, size=size, overlap=min(overlap, size - 1), words=words) == chunks


@settings(deadline=None)
@given(st.text("ab é\u0301👨\u200d👩🇩🇪水\ufe0f", max_size=80), st.integers(1, 4))
def test_no_chunk_begins_inside_a_character(text: str, size: int) -> None:
    for chunk in cut(text, size=size, overlap=0):
        assert not is_inside_character(text, chunk.start)


def test_no_chunk_of_real_documentation_is_longer_than_the_model_reads(shared: Path) -> None:
    folder = shared / "data" / "docs" / "fastapi-en"
    if not folder.is_dir():
        pytest.skip("the documentation is not beside this checkout")
    counter = MiniLMCounter()
    n_windows = 0
    for source, _ in load_folder(folder):
        assert source is not None
        chunks = cut(source, counter=counter)
        counts = counter.count([c.embedded_text for c in chunks])
        assert max(counts, default=0) + 2 <= 256, source.doc_id
        assert all(source.text[c.start : c.end] == c.text for c in chunks)
        n_windows += sum(c.body_offset == 0 for c in chunks)
    assert n_windows > 100


def test_windows_of_a_real_endless_line_overlap_by_what_was_asked(shared: Path) -> None:
    file = shared / "data" / "chunking-eval" / "corpora" / "finance.md"
    if not file.is_file():
        pytest.skip("the documents are not beside this checkout")
    text = " ".join(file.read_text("utf-8")[:60_000].replace(".", ",").split())
    source = document(text)
    chunks = cut(source, size=100, overlap=20, words=True)
    pairs = [(a, b) for a, b in pairwise(chunks) if b.start < a.end]
    shared_words = [len(word_spans(text[b.start : a.end])) for a, b in pairs]
    assert len(shared_words) > 50
    assert set(shared_words) == {20}


@pytest.mark.parametrize(
    ("doc_id", "title", "context"),
    [
        ("notes/a.txt", "a.txt", ""),
        ("corpus.jsonl#d2", "d2", ""),
        ("corpus.jsonl#d2", "Pumps", "Pumps"),
    ],
)
def test_a_files_name_or_a_records_id_is_no_context(doc_id: str, title: str, context: str) -> None:
    text = "A pump moves water."
    found = Document(doc_id=doc_id, title=title, text=text, sha256="")
    (chunk,) = HeadingsChunker(ChunkingSettings(), WordTokenCounter()).chunk(found)
    assert chunk.context == context
    assert chunk.embedded_text == (f"{context}\n\n{text}" if context else text)
