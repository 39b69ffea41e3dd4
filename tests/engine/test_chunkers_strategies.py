"""What every strategy owes, whatever the text."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_tui.engine.chunkers.base import ChunkingSettings, SizeUnit, Strategy, TokenCounter
from rag_tui.engine.chunkers.coverage import gaps
from rag_tui.engine.chunkers.factory import OVERLAP, STRATEGIES, make_chunker
from rag_tui.engine.chunkers.units import is_inside_character, word_spans
from rag_tui.engine.documents.front_matter import read_front_matter
from rag_tui.engine.documents.loading import load_document
from rag_tui.engine.documents.markdown import structure
from rag_tui.engine.errors import UsageError
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.engine.types import Chunk, Document, Page
from tests.engine.minilm_counter import MiniLMCounter

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors

ALL: tuple[Strategy, ...] = get_args(Strategy)
OURS = [strategy for strategy in ALL if strategy not in ("chonkie", "semchunk")]
SIZED: list[Strategy] = [s for s in ALL if s not in ("page", "whole")]

PARTS = st.sampled_from(
    [
        "# One",
        "## Two",
        "",
        "",
        "---",
        "- item one\n  - inner item\n- [x] last",
        "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | four five |",
        "```python\n# no heading\n\nx = 1\nprint(x)\n```",
        "Use v2.10.3. It takes 3.5 s, e.g. on Linux. " * 3,
        "水泵手順。" * 5,
        "เครื่องสูบน้ำทำงาน" * 3,
        "👨\u200d👩\u200d👧 é" * 4,
        "x" * 150,
    ]
)
MARKDOWN = st.lists(PARTS | st.text(st.characters(codec=None), max_size=30), max_size=25).map(
    lambda lines: "\n".join(lines).replace("\r", "\n")
)


def document(text: str, doc_id: str = "a.md") -> Document:
    front = read_front_matter(text)
    found = structure(text, start=front.body_start)
    title = next((h.title for h in found.headings if h.level == 1 and h.title), doc_id)
    return Document(
        doc_id,
        title,
        text,
        sha256="",
        headings=found.headings,
        body_start=front.body_start,
        blocks=found.blocks,
    )


def embed(texts: Sequence[str]) -> Vectors:
    rows = [
        np.frombuffer(hashlib.blake2b(t.encode("utf-8", "replace")).digest(), np.uint8)
        for t in texts
    ]
    raw = np.stack(rows).astype(np.float32) - 127.5
    return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), np.float32)


def cut(
    source: Document | str,
    strategy: Strategy,
    *,
    size: int = 256,
    overlap: int = 32,
    unit: SizeUnit = "tokens",
    counter: TokenCounter | None = None,
    **options: Any,
) -> tuple[Chunk, ...]:
    if strategy in ("chonkie", "semchunk"):
        pytest.importorskip(strategy)
    chosen = ChunkingSettings(strategy=strategy, size=size, overlap=overlap, unit=unit)
    chunker = make_chunker(chosen, counter or WordTokenCounter(limit=256), embed=embed, **options)
    return chunker.chunk(document(source) if isinstance(source, str) else source)


def check_contract(source: Document, chunks: Sequence[Chunk]) -> None:
    for ordinal, chunk in enumerate(chunks):
        assert source.text[chunk.start : chunk.end] == chunk.text
        assert chunk.ordinal == ordinal
        assert chunk.body
        assert 0 <= chunk.body_offset < len(chunk.text)
        assert source.text.count("\n", 0, chunk.start) + 1 <= chunk.line_start <= chunk.line_end
    for one, other in pairwise(chunks):
        assert one.start < other.start
        assert one.end < other.end
    assert "lost" not in {gap.reason for gap in gaps(source, chunks)}
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@pytest.mark.parametrize("strategy", ALL)
@settings(deadline=None, max_examples=40)
@given(
    text=MARKDOWN,
    size=st.integers(1, 40),
    overlap=st.integers(0, 39),
    unit=st.sampled_from(["tokens", "words", "characters"]),
)
def test_any_text_is_covered_by_exact_spans(
    strategy: Strategy, text: str, size: int, overlap: int, unit: SizeUnit
) -> None:
    source = document(text)
    overlap = min(overlap, size - 1)
    chunks = cut(source, strategy, size=size, overlap=overlap, unit=unit)
    check_contract(source, chunks)
    assert cut(source, strategy, size=size, overlap=overlap, unit=unit) == chunks
    for chunk in chunks:
        assert not is_inside_character(text, chunk.start)


@pytest.mark.parametrize("strategy", SIZED)
@settings(deadline=None, max_examples=25)
@given(text=MARKDOWN)
def test_no_chunk_is_longer_than_the_model_reads(strategy: Strategy, text: str) -> None:
    counter = WordTokenCounter(limit=64)
    chunks = cut(text, strategy, counter=counter)
    counts = counter.count([chunk.embedded_text for chunk in chunks])
    assert max(counts, default=0) + counter.n_special <= 64


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("text", ["", " \n\n", "# A\n\n## B", "---\ntitle: x\n---\n", "---\n\n***"])
def test_a_document_without_text_gives_no_chunks(strategy: Strategy, text: str) -> None:
    assert cut(text, strategy) == ()


@pytest.mark.parametrize("strategy", ALL)
def test_front_matter_and_a_last_heading_are_in_no_chunk_and_said_so(strategy: Strategy) -> None:
    text = "---\ntitle: secret\n---\n\n# A\n\nSome body.\n\n## End\n"
    source = document(text)
    chunks = cut(source, strategy)
    found = [(text[gap.start : gap.end], gap.reason) for gap in gaps(source, chunks)]
    assert found == [
        ("---\ntitle: secret\n---", "front matter"),
        ("## End", "heading without text below it"),
    ]


@pytest.mark.parametrize("strategy", SIZED)
def test_real_documents_are_covered_within_the_limit(strategy: Strategy, shared: Path) -> None:
    folder = shared / "data" / "docs" / "fastapi-en"
    corpora = shared / "data" / "chunking-eval" / "corpora"
    if not folder.is_dir() or not corpora.is_dir():
        pytest.skip("the documentation is not beside this checkout")
    files = [*sorted(folder.rglob("*.md"))[::12], corpora / "chatlogs.md"]
    counter = MiniLMCounter()
    for file in files:
        source = load_document(file, doc_id=file.name)
        chunks = cut(source, strategy, counter=counter)
        check_contract(source, chunks)
        counts = counter.count([chunk.embedded_text for chunk in chunks])
        assert max(counts, default=0) + counter.n_special <= 256, file.name


@pytest.mark.parametrize("strategy", OURS)
def test_vietnamese_passages_are_covered(strategy: Strategy, shared: Path) -> None:
    file = shared / "data" / "ir" / "xquad-vi" / "corpus.jsonl"
    if not file.is_file():
        pytest.skip("the passages are not beside this checkout")
    counter = MiniLMCounter()
    for line in file.read_text("utf-8").splitlines()[:60]:
        row = json.loads(line)
        source = document(row["text"], str(row["_id"]))
        check_contract(source, cut(source, strategy, counter=counter, size=64, overlap=8))


@pytest.mark.parametrize("strategy", ALL)
@pytest.mark.parametrize("name", ["repeated.txt", "indent.py.txt", "unicode.txt"])
def test_the_shared_offset_files_hold_their_spans(
    strategy: Strategy, name: str, shared: Path
) -> None:
    file = shared / "cases" / "12-offsets" / name
    if not file.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    text = file.read_bytes().decode("utf-8")
    source = Document(name, name, text, sha256="")
    for size, overlap in ((6, 0), (12, 6), (3, 1)):
        for unit in get_args(SizeUnit)[:3]:
            chunks = cut(source, strategy, size=size, overlap=overlap, unit=unit)
            check_contract(source, chunks)


@pytest.mark.parametrize("strategy", ALL)
def test_the_shared_fence_case_loses_no_line(strategy: Strategy, shared: Path) -> None:
    file = shared / "cases" / "09-code-fences" / "fences.md"
    if not file.is_file():
        pytest.skip("the shared cases are not beside this checkout")
    source = load_document(file, doc_id="fences.md")
    for size in (24, 256):
        chunks = cut(source, strategy, size=size, overlap=0)
        check_contract(source, chunks)
        assert gaps(source, chunks) == ()


@pytest.mark.parametrize("strategy", ALL)
def test_the_shared_front_matter_files_are_covered(strategy: Strategy, shared: Path) -> None:
    folder = shared / "cases" / "10-frontmatter-bom"
    if not folder.is_dir():
        pytest.skip("the shared cases are not beside this checkout")
    for file in sorted(folder.glob("*.md")):
        if file.name == "EXPECT.md":
            continue
        source = load_document(file, doc_id=file.name)
        check_contract(source, cut(source, strategy))


@pytest.mark.parametrize("strategy", SIZED)
def test_the_shared_long_files_are_not_cut_in_silence(strategy: Strategy, shared: Path) -> None:
    folder = shared / "cases" / "16-silent-truncation" / "docs"
    if not folder.is_dir():
        pytest.skip("the shared cases are not beside this checkout")
    counter = MiniLMCounter()
    for file in sorted(folder.glob("*.md")):
        chunks = cut(load_document(file, doc_id=file.name), strategy, counter=counter)
        assert len(chunks) > 1
        counts = counter.count([chunk.embedded_text for chunk in chunks])
        assert max(counts) + counter.n_special <= 256


@pytest.mark.parametrize(("size", "overlap"), [(5, 5), (5, 9), (5, -1), (0, 0)])
@pytest.mark.parametrize("strategy", ALL)
def test_sizes_that_make_no_sense_are_refused(strategy: Strategy, size: int, overlap: int) -> None:
    with pytest.raises(UsageError):
        ChunkingSettings(strategy=strategy, size=size, overlap=overlap)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.sampled_from(["alpha", "beta", "水", "x" * 70]), min_size=1, max_size=60),
    st.integers(1, 20),
    st.integers(0, 19),
)
def test_windows_of_words_share_exactly_the_overlap(
    words: list[str], size: int, overlap: int
) -> None:
    overlap = min(overlap, size - 1)
    text = " ".join(words)
    chunks = cut(text, "words", size=size, overlap=overlap, unit="words")
    assert [len(word_spans(c.text)) for c in chunks[:-1]] == [size] * (len(chunks) - 1)
    for one, other in pairwise(chunks):
        assert len(word_spans(text[other.start : one.end])) == overlap


def test_windows_of_tokens_share_exactly_the_overlap_in_the_models_tokens() -> None:
    counter = MiniLMCounter()
    text = "The unbelievably well-documented retrieval workbench tokenises everything. " * 30
    chunks = cut(text, "tokens", size=40, overlap=10, counter=counter)
    starts = [start for start, _ in counter.spans(text)]
    n_tokens = [sum(c.start <= at < c.end for at in starts) for c in chunks]
    assert max(n_tokens) <= 40 - 2
    assert min(n_tokens[:-1]) >= 40 - 2 - 4
    for one, other in pairwise(chunks):
        assert sum(other.start <= at < one.end for at in starts) == 10


def test_windows_of_words_by_characters_hold_whole_words() -> None:
    chunks = cut("alpha alpha beta alpha", "words", size=12, overlap=6, unit="characters")
    assert [c.text for c in chunks] == ["alpha alpha ", "alpha beta ", "beta alpha"]


def test_sentences_are_counted_and_shared_exactly() -> None:
    text = "one.\n\ntwo.\nthree."
    chunks = cut(text, "sentences", size=2, overlap=1, unit="sentences")
    assert [c.text for c in chunks] == ["one.\n\ntwo.\nthree."]
    text = "One is here. Two is here.\n\nThree is here. Four is here."
    chunks = cut(text, "sentences", size=2, overlap=1, unit="sentences")
    assert [c.text.strip() for c in chunks] == [
        "One is here. Two is here.",
        "Two is here.\n\nThree is here.",
        "Three is here. Four is here.",
    ]


def test_sizes_in_sentences_need_the_strategy_of_that_name() -> None:
    with pytest.raises(UsageError, match="sentences"):
        ChunkingSettings(strategy="words", unit="sentences")


@pytest.mark.parametrize("strategy", ["headings", "recursive", "sentences", "words"])
def test_japanese_without_spaces_is_cut_at_its_sentences_or_characters(
    strategy: Strategy,
) -> None:
    text = "故障コードはシール漏れですポンプを逆洗する手順だ"
    assert len(text) == 24
    chunks = cut(text, strategy, size=10, overlap=0, unit="words")
    assert len(chunks) == 3
    assert max(len(c.text) for c in chunks) <= 10


@pytest.mark.parametrize("strategy", ["headings", "recursive", "sentences"])
def test_chinese_is_cut_behind_its_full_stops(strategy: Strategy) -> None:
    sentences = ["水泵需要反冲洗。", "请先关闭主阀门！", "你检查过密封圈吗？"]
    chunks = cut("".join(sentences), strategy, size=10, overlap=0, unit="characters")
    assert [c.text for c in chunks] == sentences


@pytest.mark.parametrize("strategy", ["headings", "recursive", "sentences", "words", "tokens"])
def test_thai_is_cut_only_between_what_is_read_as_one_character(strategy: Strategy) -> None:
    text = "เครื่องสูบน้ำต้องล้างย้อนกลับทุกสัปดาห์" * 4
    chunks = cut(text, strategy, size=12, overlap=0, unit="characters")
    assert "".join(c.text for c in chunks) == text
    assert len(chunks) > 8
    assert all(len(c.text) <= 13 for c in chunks)
    assert all(c.text[0] not in "\u0e31\u0e33\u0e34\u0e35\u0e37\u0e49\u0e48\u0e4c" for c in chunks)


THAI_DEPENDENT = frozenset(chr(c) for c in (*range(0x0E30, 0x0E3B), 0x0E45, *range(0x0E47, 0x0E4F)))
THAI_LEADING = frozenset(map(chr, range(0x0E40, 0x0E45)))


@pytest.mark.parametrize("unit", ["tokens", "words", "characters"])
@pytest.mark.parametrize("strategy", [s for s in OURS if s in SIZED])
def test_thai_vowels_and_marks_stay_with_their_consonant(
    strategy: Strategy, unit: SizeUnit
) -> None:
    text = "เครื่องสูบน้ำและโรงไฟฟ้าใช้ไอน้ำจะแตะเกาะทำงานเพราะแม่น้ำฤๅษี" * 6
    for size in range(3, 16):
        chunks = cut(text, strategy, size=size, overlap=size // 3, unit=unit)
        assert len(chunks) > 1
        for chunk in chunks:
            assert chunk.text[0] not in THAI_DEPENDENT
            assert chunk.end == len(text) or text[chunk.end] not in THAI_DEPENDENT
            assert chunk.end == len(text) or chunk.text[-1] not in THAI_LEADING
            assert chunk.start == 0 or text[chunk.start - 1] not in THAI_LEADING


def test_size_one_token_never_tears_a_family_emoji() -> None:
    text = "👨‍👩‍👧‍👦水泵🫡"
    for strategy in ("tokens", "words", "recursive"):
        chunks = cut(text, strategy, size=1, overlap=0, unit="characters")
        assert "".join(c.text for c in chunks) == text
        assert chunks[0].text == "👨‍👩‍👧‍👦"


def test_each_page_is_a_chunk_that_knows_its_number() -> None:
    text = "first page\nsecond page\nthird page\n"
    pages = (Page(1, 0, 11), Page(2, 11, 23), Page(3, 23, 34))
    source = Document("a.pdf", "a.pdf", text, sha256="", pages=pages, format="pdf")
    chunks = cut(source, "page")
    assert [(c.text, c.page) for c in chunks] == [
        ("first page\n", 1),
        ("second page\n", 2),
        ("third page\n", 3),
    ]
    assert [c.page for c in cut(source, "whole")] == [1]
    by_words = cut(source, "words", size=2, overlap=0, unit="words")
    assert [c.page for c in by_words] == [1, 2, 3]


def test_chunks_over_several_sections_carry_the_headings_of_all_of_their_text() -> None:
    text = "# House\n\n## Wi-Fi\n\nThe net.\n\n### Speed\n\nVery fast.\n\n## Heat\n\nWarm."
    (whole,) = cut(text, "whole")
    assert whole.heading_path == ("House",)
    assert "## Wi-Fi" in whole.embedded_text
    chunks = cut(text, "words", size=7, overlap=0, unit="words")
    assert chunks[0].heading_path == ("House", "Wi-Fi")
    assert chunks[-1].heading_path == ("House",)


def test_pieces_of_recursive_begin_with_the_last_words_of_the_one_before() -> None:
    text = "\n\n".join("alpha beta gamma delta epsilon zeta" for _ in range(3))
    chunks = cut(text, "recursive", size=8, overlap=2, unit="words")
    assert [c.text.split()[0] for c in chunks] == ["alpha", "epsilon", "epsilon"]
    assert [len(c.text.split()) for c in chunks] == [6, 8, 8]


def test_short_sections_share_a_chunk_with_recursive_only() -> None:
    text = "# A\n\none\n\n# B\n\ntwo"
    assert len(cut(text, "headings")) == 2
    assert len(cut(text, "recursive", overlap=0)) == 1


def test_tokens_kept_free_are_left_free() -> None:
    counter = WordTokenCounter(limit=256)
    text = "word " * 900
    for strategy in SIZED:
        chunks = cut(text, strategy, counter=counter, reserve=100)
        counts = counter.count([c.embedded_text for c in chunks])
        assert max(counts) + counter.n_special <= 156, strategy


def test_semantic_cuts_where_the_subject_changes() -> None:
    sentences = [f"Pump number {n} runs." for n in range(20)]
    sentences += [f"Cats like fish {n}." for n in range(20)]
    text = " ".join(sentences)

    def by_subject(texts: Sequence[str]) -> Vectors:
        raw = np.array([[t.count("Pump") + 0.01, t.count("Cats") + 0.01] for t in texts])
        return np.asarray(raw / np.linalg.norm(raw, axis=1, keepdims=True), np.float32)

    chosen = ChunkingSettings(strategy="semantic", size=1000, overlap=0, unit="words")
    chunks = make_chunker(chosen, WordTokenCounter(), embed=by_subject).chunk(document(text))
    cuts = [text[c.start :].split()[0:2] for c in chunks]
    assert ["Cats", "like"] in cuts
    assert all("Pump" not in c.text for c in chunks if c.start > text.index("Cats"))
    assert len(chunks) <= 4


def test_semantic_needs_an_embedding_model() -> None:
    with pytest.raises(UsageError, match="embedding model"):
        make_chunker(ChunkingSettings(strategy="semantic"), WordTokenCounter())


def test_every_strategy_is_described() -> None:
    assert set(STRATEGIES) == set(OVERLAP) == set(ALL)


@pytest.mark.parametrize("strategy", [s for s in OURS if s != "page"])
def test_a_text_of_one_endless_line_is_cut_in_steps_that_grow_with_it(strategy: Strategy) -> None:
    # Counts the work instead of the time: what the counter is asked for must stay linear.
    class Counting(WordTokenCounter):
        n_characters = 0

        def count(self, texts: Sequence[str]) -> list[int]:
            self.n_characters += sum(map(len, texts))
            return super().count(texts)

        def spans(self, text: str) -> list[tuple[int, int]]:
            self.n_characters += len(text)
            return super().spans(text)

    work = []
    for n in (50_000, 100_000):
        counter = Counting(limit=256)
        cut("a" * n, strategy, counter=counter)
        work.append(counter.n_characters)
    assert work[1] <= 2.5 * work[0]


class Blind(WordTokenCounter):
    """Sees ASCII letters and digits only, as a model's tokenizer passes over odd characters."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(self.spans(text)) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer("[A-Za-z0-9]+", text)]


@pytest.mark.parametrize("strategy", OURS)
@pytest.mark.parametrize(
    "unseen",
    ["\u0301", "\ufffd", "\ufe0f", "\u0e31", "\u200b ", "\U000e0041"],
    ids=lambda text: f"U+{ord(text[0]):04X}",
)
@settings(deadline=None, max_examples=15)
@given(
    n=st.sampled_from([1, 63, 64, 65, 700, 20_000]),
    size=st.sampled_from([1, 64, 256]),
    wide=st.booleans(),
    around=st.sampled_from(["{}", "A pump runs.\n\n{}\n\nIt stops here.", "# A\n\nOne.\n{} two"]),
)
def test_text_in_which_the_model_sees_no_tokens_is_not_lost(
    strategy: Strategy, unseen: str, n: int, size: int, wide: bool, around: str
) -> None:
    source = document(around.format(unseen * n))
    overlap = size - 1 if wide else 0
    chunks = cut(source, strategy, size=size, overlap=overlap, counter=Blind(limit=256))
    assert chunks
    assert "lost" not in {gap.reason for gap in gaps(source, chunks)}


def test_a_long_text_without_tokens_is_cut_by_characters() -> None:
    for strategy in ("headings", "recursive", "sentences", "words", "tokens"):
        chunks = cut("\ufffd" * 50_000, strategy, overlap=0, counter=Blind(limit=256))
        assert 3 < len(chunks) < 10, strategy
        assert max(len(c.text) for c in chunks) <= 256 * 64, strategy


@pytest.mark.parametrize(
    ("format_name", "label", "expected"),
    [
        ("pdf", "", (3, "page 3")),
        ("pptx", "slide 3", (3, "slide 3")),
        ("csv", "row 3", (None, "row 3")),
        ("jsonl", "record 3", (None, "record 3")),
        ("notebook", "cell 3", (None, "cell 3")),
        ("xlsx", "Pumps", (None, "Pumps")),
        ("xlsx", "", (None, "sheet 3")),
    ],
)
def test_a_chunk_names_its_place_and_only_pages_and_slides_have_a_number(
    format_name: str, label: str, expected: tuple[int | None, str]
) -> None:
    pages = (Page(1, 0, 6, "first"), Page(3, 7, 12, label))
    source = Document("a", "a", "first\n\nthird", sha256="", pages=pages, format=format_name)
    last = cut(source, "page")[-1]
    assert (last.page, last.place) == expected


def test_a_chunk_of_a_document_without_pages_has_no_place() -> None:
    (chunk,) = cut("one", "headings")
    assert (chunk.page, chunk.place) == (None, "")
