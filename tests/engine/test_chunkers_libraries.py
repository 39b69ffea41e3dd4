"""Other libraries' chunks are believed only as far as they are true."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.chunkers.base import ChunkingSettings, Strategy
from rag_tui.engine.chunkers.factory import make_chunker
from rag_tui.engine.chunkers.libraries import verified
from rag_tui.engine.errors import UsageError
from rag_tui.engine.tokenizing import WordTokenCounter
from rag_tui.engine.types import Document


@pytest.mark.parametrize(
    ("strategy", "module"), [("semchunk", "semchunk.semchunk"), ("chonkie", "chonkie")]
)
def test_a_missing_library_is_named_with_what_to_install(
    strategy: Strategy, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError) as caught:
        make_chunker(ChunkingSettings(strategy=strategy), WordTokenCounter())
    assert strategy in caught.value.message
    assert "pip install 'rag-tui-explorer[chunkers]'" in caught.value.hint


@pytest.mark.parametrize("strategy", ["semchunk", "chonkie"])
def test_a_library_cuts_paragraphs_where_they_end(strategy: Strategy) -> None:
    pytest.importorskip(strategy)
    paragraphs = ["alpha beta gamma delta epsilon.\n\n", "one two three four five.\n\n"] * 3
    text = "".join(paragraphs)
    source = Document("a.md", "", text, sha256="")
    settings = ChunkingSettings(strategy=strategy, size=6, overlap=0, unit="words")
    chunks = make_chunker(settings, WordTokenCounter()).chunk(source)
    assert [c.text.strip() for c in chunks] == [p.strip() for p in paragraphs]


def test_text_that_a_library_left_out_is_a_span_of_its_own() -> None:
    text = "alpha beta gamma delta"
    assert verified(text, 0, len(text), [(0, 5), (11, 16)]) == [(0, 5), (5, 11), (11, 16), (16, 22)]


def test_spans_inside_others_and_outside_the_text_are_left_out() -> None:
    text = "alpha beta"
    assert verified(text, 0, len(text), [(0, 10), (2, 5), (5, 99)]) == [(0, 10)]


def test_a_span_that_tears_a_character_is_moved_to_its_border() -> None:
    text = "a e\u0301 b"
    assert verified(text, 0, len(text), [(0, 3), (3, 6)]) == [(0, 4), (2, 6)]


@given(
    st.text("ab \u0301👨\u200d", max_size=40),
    st.lists(st.tuples(st.integers(-3, 45), st.integers(-3, 45)), max_size=12),
)
def test_whatever_is_claimed_nothing_is_lost(text: str, claimed: list[tuple[int, int]]) -> None:
    spans = verified(text, 0, len(text), claimed)
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(at in covered for at, char in enumerate(text) if not char.isspace())
    assert all(0 <= start < end <= len(text) for start, end in spans)
    starts, ends = [s for s, _ in spans], [e for _, e in spans]
    assert starts == sorted(set(starts))
    assert ends == sorted(set(ends))
