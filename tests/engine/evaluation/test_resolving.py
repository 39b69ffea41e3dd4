"""Labels become chunks: by quote, heading, lines or document, whatever way the text is cut."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.chunkers.base import ChunkingSettings, Strategy
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.documents.loading import load_document, load_folder
from rag_tui.engine.documents.markdown import structure
from rag_tui.engine.evaluation.document_names import DocumentNames, record_name
from rag_tui.engine.evaluation.finding import occurrences
from rag_tui.engine.evaluation.questions import read_questions
from rag_tui.engine.evaluation.resolving import grade_at, resolve, resolve_all
from rag_tui.engine.evaluation.types import Evidence, Place, Question
from rag_tui.engine.index import Index
from rag_tui.engine.loading import Models
from rag_tui.engine.types import Chunk, Document, FileReport
from tests.engine.hand_made import chunk, cut, document, index_of

TEXT = """# Guide

Words before anything.

## Setup { #set-up }

Install the tool.
Then “restart” the   server – twice.

### Linux

Use the package manager.

## Use `run()`

Call it once. Then restart the server.

### Linux

Nothing to do here.

## Setup

A second part with that name.
"""


def guide() -> Document:
    source = document(TEXT, "guide.md")
    return replace(source, title="Guide", headings=structure(TEXT).headings)


def section_chunks(source: Document) -> tuple[Chunk, ...]:
    return cut(source, *[heading.start for heading in source.headings[1:]])


def found(evidence: Evidence, *, index: Index | None = None) -> Place:
    source = guide()
    resolved = resolve(
        Question("q", "?", (evidence,)), index or index_of([source], section_chunks(source))
    )
    assert resolved.unresolved == ()
    return resolved.places[0]


def reason(evidence: Evidence, index: Index | None = None) -> str:
    source = guide()
    resolved = resolve(
        Question("q", "?", (evidence,)), index or index_of([source], section_chunks(source))
    )
    assert resolved.places == ()
    return resolved.unresolved[0][1]


def text_of(place: Place) -> str:
    return TEXT[place.start : place.end]


# ---- quotes --------------------------------------------------------------------------------


def test_a_quote_is_found_whatever_its_blank_space() -> None:
    place = found(Evidence("guide.md", "Install  the\ttool. Then"))
    assert text_of(place) == "Install the tool.\nThen"
    assert place.positions == (1,)
    assert len(place.chunk_ids) == 1


def test_a_quote_with_plain_signs_and_other_case_is_found_where_none_is_exact() -> None:
    place = found(Evidence("guide.md", 'then "RESTART" the server - twice.'))
    assert text_of(place) == "Then “restart” the   server – twice."


def test_an_exact_quote_wins_over_a_folded_one() -> None:
    # "Then" with "restart the server" stands in "Use" only; folded, nothing else fits either.
    place = found(Evidence("guide.md", "restart the server"))
    assert place.positions == (3,)


def test_of_several_occurrences_the_one_under_the_heading_or_near_the_lines_counts() -> None:
    source = document("x y. " * 3 + "\n\n# One\n\nsame words\n\n# Two\n\nsame words\n", "guide.md")
    source = replace(source, headings=structure(source.text).headings)
    index = index_of([source], cut(source, *[h.start for h in source.headings]))
    at = [p.positions for p in (
        found(Evidence("guide.md", "same words"), index=index),
        found(Evidence("guide.md", "same words", "Two"), index=index),
        found(Evidence("guide.md", "same words", lines=(8, 9)), index=index),
        found(Evidence("guide.md", "same words", lines=(3, 4)), index=index),
        found(Evidence("guide.md", "same words", "No such heading"), index=index),
    )]  # fmt: skip
    assert at == [(1,), (2,), (2,), (1,), (1,)]


def test_a_quote_is_found_although_its_heading_was_renamed() -> None:
    assert found(Evidence("guide.md", "Call it once.", "Old name")).positions == (3,)


def test_signs_that_mean_something_to_a_pattern_are_plain_text() -> None:
    source = document("a (b) [c] $d^ \\e .* f? Costs … or more.", "guide.md")
    index = index_of([source], cut(source))
    for quote in ("(b) [c] $d^ \\e .* f?", "costs ... OR more"):
        assert found(Evidence("guide.md", quote), index=index).positions == (0,)


@given(st.text(st.sampled_from("ab \n\u00a0…-–“İß"), max_size=40), st.data())
def test_any_stretch_of_a_text_is_found_where_it_stands(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    quote = text[start:end]
    spans = occurrences(text, quote)
    assert bool(spans) == bool(quote.strip())
    for low, high in spans:
        assert text[low:high].split() == quote.split()
        assert text[low:high] == text[low:high].strip()


@pytest.mark.timeout(60)
def test_a_long_quote_in_a_text_that_repeats_itself_is_no_trap() -> None:
    # Comparing at every word would take 3 * 10 ** 9 steps: minutes.
    assert occurrences("a " * 300_000, "a " * 9_000 + "b") == []


# ---- headings ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "begins", "ends"),
    [
        ("Use `run()`", "## Use `run()`", "Nothing to do here."),
        ("use run()", "## Use `run()`", "Nothing to do here."),
        ("use-run", "## Use `run()`", "Nothing to do here."),
        ("#use-run", "## Use `run()`", "Nothing to do here."),
        ("set-up", "## Setup", "Use the package manager."),
        ("Setup", "## Setup { #set-up }", "Use the package manager."),
        ("setup-1", "## Setup\n\nA second", "that name."),
        ("Setup > Linux", "### Linux\n\nUse", "package manager."),
        ("Use run() > Linux", "### Linux\n\nNothing", "to do here."),
        ("Guide > Setup > Linux", "### Linux\n\nUse", "package manager."),
        ("Guide", "# Guide", "that name."),
    ],
)
def test_a_heading_is_its_whole_section(heading: str, begins: str, ends: str) -> None:
    section = text_of(found(Evidence("guide.md", heading=heading)))
    assert section.startswith(begins)
    assert section.endswith(ends)


def test_of_equal_headings_the_one_near_the_lines_counts() -> None:
    last = len(TEXT.splitlines())
    place = found(Evidence("guide.md", heading="Setup", lines=(last, last)))
    assert "second part" in text_of(place)


def test_a_section_is_held_by_every_chunk_that_lies_in_it() -> None:
    assert found(Evidence("guide.md", heading="use-run")).positions == (3, 4)


# ---- lines and documents -------------------------------------------------------------------


def test_lines_are_counted_from_one_and_both_ends_belong() -> None:
    assert text_of(found(Evidence("guide.md", lines=(7, 8)))).startswith("Install the tool.\nThen")
    assert text_of(found(Evidence("guide.md", lines=(1, 1)))) == "# Guide"
    last = len(TEXT.splitlines())
    assert text_of(found(Evidence("guide.md", lines=(last, last)))).endswith("that name.")


def test_a_whole_document_is_every_chunk_of_it() -> None:
    assert found(Evidence("guide.md")).positions == (0, 1, 2, 3, 4, 5)


# ---- chunks --------------------------------------------------------------------------------


def test_a_chunk_with_half_of_the_place_holds_it_and_less_does_not() -> None:
    source = document("." * 100 + "0123456789" + "." * 100, "guide.md")
    place = Evidence("guide.md", "0123456789")

    def positions(*cuts: int) -> tuple[int, ...]:
        index = index_of([source], cut(source, *cuts))
        return resolve(Question("q", "?", (place,)), index).places[0].positions

    assert positions() == (0,)
    assert positions(104) == (1,)
    assert positions(105) == (0, 1)
    assert positions(106) == (0,)
    assert positions(101, 104, 107, 112) == (1, 2, 3)  # short ones with half of themselves in it


def test_when_no_chunk_holds_enough_the_one_with_most_of_it_counts() -> None:
    source = document("a" * 20 + "bcdefghijklmnopqrs" + "t" * 52, "guide.md")
    pieces = (chunk(source, 0, 23), chunk(source, 34, 90, ordinal=1))  # a gap between them
    place = found(Evidence("guide.md", "bcdefghijklmnopqrs"), index=index_of([source], pieces))
    assert place.positions == (1,)  # 4 characters of 18, the other has 3


def test_the_highest_grade_of_a_chunk_is_known_by_position() -> None:
    source = guide()
    labels = (
        Evidence("guide.md", "Install the tool.", grade=0),
        Evidence("guide.md", "twice.", grade=3),
    )
    resolved = resolve(Question("q", "?", labels), index_of([source], section_chunks(source)))
    assert grade_at(resolved, 1) == 3
    assert grade_at(resolved, 2) is None
    assert resolved.is_judged


# ---- what is nowhere -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "words"),
    [
        (Evidence("guide.md", "never written"), 'the quote "never written" is not in it'),
        (Evidence("guide.md", heading="Windows"), 'the heading "Windows" is not in it'),
        (Evidence("guide.md", heading="Windows > Linux"), "is not in it"),
        (Evidence("guide.md", lines=(400, 401)), "beyond its end (it has 24 lines)"),
        (Evidence("guide.md", lines=(24, 25)), "beyond its end"),
        (Evidence("guide.md", lines=(2, 2)), "are blank"),
        (Evidence("giude.md"), "did you mean guide.md?"),
        (Evidence("docs/guide.md"), "did you mean guide.md?"),
        (Evidence("else.txt"), "no such document"),
        (Evidence("guide.md", "x" * 30_000), "longer than 20,000 characters"),
    ],
)
def test_what_is_nowhere_has_a_reason(evidence: Evidence, words: str) -> None:
    assert words in reason(evidence)


def test_a_document_that_failed_to_load_says_why() -> None:
    source = guide()
    index = index_of([source], section_chunks(source))
    reports = (FileReport("a.pdf", "failed", "encrypted"), FileReport("b.bin", "skipped", "binary"))
    index = Index(
        index.folder, index.manifest, index.documents, index.chunks, index.bm25, None,
        index.n_tokens, reports,
    )  # fmt: skip
    assert reason(Evidence("a.pdf"), index) == "the document could not be loaded: encrypted"
    assert reason(Evidence("b.bin"), index) == "the document was skipped: binary"


def test_a_document_without_chunks_says_so() -> None:
    assert "no chunks" in reason(Evidence("guide.md"), index_of([guide()], ()))


# ---- records -------------------------------------------------------------------------------


def test_record_ids_are_found_both_ways() -> None:
    docs = [document("t", i) for i in ("corpus.jsonl#https://x/y#z", "sub/corpus.jsonl#7", "7.md")]
    names = DocumentNames({d.doc_id: d for d in docs}, ())
    assert names.find("https://x/y#z") == "corpus.jsonl#https://x/y#z"
    assert names.find("7") == "sub/corpus.jsonl#7"
    assert names.find("corpus.jsonl#7") == "sub/corpus.jsonl#7"
    assert names.find("faq.jsonl#7") is None
    assert names.find("7.md") == "7.md"
    assert [record_name(d.doc_id) for d in docs] == ["https://x/y#z", "7", "7.md"]


def test_all_labels_of_a_beir_folder_resolve(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data/ir/anthropic-docs-rag"
    documents = [d for d, _ in load_folder(folder) if d is not None]
    index = index_of(documents, [piece for one in documents for piece in cut(one)])
    labels = resolve_all(read_questions(folder).questions, index)
    assert len(labels) == 100
    assert sum(len(one.places) for one in labels.values()) == 192
    assert all(one.unresolved == () for one in labels.values())


# ---- another way of cutting ----------------------------------------------------------------


@pytest.fixture(scope="module")
def fastapi_docs(shared: Path) -> list[Document]:
    """The documents that the golden questions are about."""
    folder = shared / "data/docs"
    questions = read_questions(folder / "fastapi-en.golden.jsonl").questions
    names = sorted({question.evidence[0].document for question in questions})
    return [load_document(folder / "fastapi-en" / name, doc_id=name) for name in names]


@pytest.mark.parametrize("strategy", ["headings", "recursive", "sentences"])
def test_every_golden_question_resolves_with_every_way_of_cutting(
    shared: Path,
    fastapi_docs: list[Document],
    strategy: Strategy,
    hashing_models: Models,
) -> None:
    settings = ChunkingSettings(strategy=strategy, size=128, overlap=16)
    chunker = make_chunker(settings, hashing_models.token_counter())
    index = index_of(fastapi_docs, [piece for one in fastapi_docs for piece in chunker.chunk(one)])
    questions = read_questions(shared / "data/docs/fastapi-en.golden.jsonl", index=index)
    assert questions.problems == ()
    labels = resolve_all(questions.questions, index)
    assert [one.unresolved for one in labels.values()] == [()] * 32
    for resolved in labels.values():
        (place,) = resolved.places
        assert place.positions
        for position in place.positions:
            held = index.chunks[position]
            assert held.doc_id == place.document
            assert held.start < place.end
            assert held.end > place.start


def test_demo_labels_lead_to_the_section_they_name(corpus: Path, guesthouse: Index) -> None:
    questions = read_questions(corpus / "questions.jsonl").questions
    labels = resolve_all(questions, guesthouse)
    n_places = 0
    for question in questions:
        resolved = labels[question.qid]
        assert resolved.unresolved == ()
        assert resolved.is_judged == question.answerable
        for place in resolved.places:
            n_places += 1
            assert place.evidence.heading in guesthouse.chunks[place.positions[0]].heading_path
    assert n_places >= 19
