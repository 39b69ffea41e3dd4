"""Size, lengths and costs, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_tui.engine.corpus_facts import (
    ANSWER_TOKENS,
    PROMPT_TOKENS,
    Prices,
    corpus_facts,
    length_histogram,
)
from rag_tui.engine.errors import Cancelled, UsageError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.index import Index
from tests.engine.hand_made import cut, document, index_of
from tests.engine.minilm_counter import MiniLMCounter

PRICES = Prices(input=10.0, cache_write=12.5, cache_read=1.0, output=0.0)


class WordCounter:
    """One token a word."""

    name = "words"
    limit: int | None = None
    n_special = 0

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        raise NotImplementedError


def corpus_of(n_words: int, *, n_tokens: Sequence[int] = (), max_tokens: int = 256) -> Index:
    source = document("word " * n_words)
    n_chunks = len(n_tokens) or 1
    places = [5 * i for i in range(1, n_chunks)]
    return index_of(
        [source], cut(source, *places), n_tokens=n_tokens or [n_words], max_tokens=max_tokens
    )


def test_lengths_are_told_with_what_is_lost_beyond_the_limit() -> None:
    facts = corpus_facts(corpus_of(100, n_tokens=[10, 256, 257, 356]), counter=WordCounter())
    assert (facts.n_documents, facts.n_chunks, facts.n_characters) == (1, 4, 500)
    assert facts.n_tokens == 100
    assert not facts.is_estimate
    assert facts.n_chunk_tokens == 10 + 256 + 257 + 356
    assert (facts.shortest, facts.median, facts.longest) == (10, 256.5, 356)
    assert (facts.n_over_limit, facts.n_lost_tokens) == (2, 1 + 100)
    assert facts.share_over_limit == 0.5


def test_front_matter_is_not_part_of_the_corpus() -> None:
    source = replace(document("---\na: b\n---\none two three"), body_start=13)
    facts = corpus_facts(index_of([source], cut(source)), counter=WordCounter())
    assert facts.n_tokens == 3


def test_a_corpus_that_fits_with_question_and_answer_needs_no_retrieval() -> None:
    room = PROMPT_TOKENS + ANSWER_TOKENS
    index = corpus_of(1000)
    just_fits = corpus_facts(index, counter=WordCounter(), context_window=1000 + room)
    too_large = corpus_facts(index, counter=WordCounter(), context_window=999 + room)
    assert just_fits.fits
    assert "pasting everything would do" in just_fits.verdict
    assert not too_large.fits
    assert "leave no room for question and answer" in too_large.verdict
    far_too_large = corpus_facts(index, counter=WordCounter(), context_window=400)
    assert "2.5 times a context window of 400: retrieval is needed" in far_too_large.verdict


def test_costs_are_tokens_times_prices() -> None:
    index = corpus_of(1_000_000, n_tokens=[100, 300])
    paste = corpus_facts(index, counter=WordCounter(), prices=PRICES, n_sources=5).pasting
    assert paste.uncached == pytest.approx(10.0)
    assert paste.first_cached == pytest.approx(12.5)
    assert paste.next_cached == pytest.approx(1.0)
    assert paste.retrieved == pytest.approx(5 * 200 * 10 / 1_000_000)


def test_the_answer_costs_its_output_every_time() -> None:
    prices = Prices(input=0.0, cache_write=0.0, cache_read=0.0, output=100.0)
    paste = corpus_facts(corpus_of(50), counter=WordCounter(), prices=prices).pasting
    assert paste.uncached == pytest.approx(ANSWER_TOKENS * 100 / 1_000_000)
    assert paste.uncached == paste.first_cached == paste.next_cached == paste.retrieved


@given(read=st.integers(1, 50), write=st.integers(0, 500), cached=st.integers(0, 60))
def test_caching_pays_from_the_first_count_of_questions_that_is_cheaper(
    read: int, write: int, cached: int
) -> None:
    prices = Prices(input=read, cache_write=write, cache_read=cached, output=0.0)
    pays = corpus_facts(corpus_of(10), counter=WordCounter(), prices=prices).pasting
    cheaper = [n for n in range(1, 1000) if write + (n - 1) * cached < n * read]
    if read > cached:
        assert pays.caching_pays_from == cheaper[0]
    else:
        assert pays.caching_pays_from is None


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_that_is_none_is_refused(price: float) -> None:
    with pytest.raises(UsageError, match="cache_read price must be 0 or more"):
        Prices(cache_read=price)


@pytest.mark.parametrize("wrong", [{"context_window": 0}, {"n_sources": 0}])
def test_a_window_or_a_number_of_sources_below_one_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="at least 1"):
        corpus_facts(corpus_of(10), **wrong)  # type: ignore[arg-type]


def test_classes_end_at_the_limit_and_one_holds_what_is_over_it() -> None:
    lengths = np.array([1, 10, 11, 20, 99, 100, 101, 500], np.int32)
    bins = length_histogram(lengths, 100)
    assert [(b.low, b.high) for b in bins[:3]] == [(0, 10), (11, 20), (21, 30)]
    assert [b.n_chunks for b in bins] == [2, 2, 0, 0, 0, 0, 0, 0, 0, 2, 2]
    assert (bins[-1].low, bins[-1].high, bins[-1].is_over) == (101, None, True)
    assert not any(b.is_over for b in bins[:-1])


@pytest.mark.parametrize("limit", [0, 1_000_000])
def test_without_a_near_limit_the_classes_end_at_the_longest(limit: int) -> None:
    bins = length_histogram(np.array([3, 30], np.int32), limit)
    assert bins[-1].high == 30
    assert not bins[-1].is_over


@given(
    lengths=st.lists(st.integers(0, 5000), max_size=60), limit=st.sampled_from([0, 1, 7, 256, 9999])
)
def test_every_chunk_is_in_exactly_one_class(lengths: list[int], limit: int) -> None:
    bins = length_histogram(np.array(lengths, np.int32), limit)
    assert sum(b.n_chunks for b in bins) == len(lengths)
    for before, after in pairwise(bins):
        assert before.high is not None
        assert after.low == before.high + 1
    over = sum(b.n_chunks for b in bins if b.is_over)
    is_far = limit >= 10 * max(lengths, default=1)
    assert over == (0 if limit == 0 or is_far else sum(n > limit for n in lengths))


def test_the_estimate_is_near_what_the_tokenizer_counts(guesthouse: Index) -> None:
    exact = corpus_facts(guesthouse, counter=MiniLMCounter())
    estimate = corpus_facts(guesthouse)
    assert estimate.is_estimate
    assert estimate.verdict.startswith("About ")
    assert estimate.n_tokens == pytest.approx(exact.n_tokens, rel=0.05)


def test_an_empty_index_has_facts_too() -> None:
    facts = corpus_facts(index_of([], []))
    assert (facts.n_tokens, facts.n_chunks, facts.longest, facts.histogram) == (0, 0, 0, ())
    assert facts.share_over_limit == 0.0
    assert facts.fits


def test_cancelled_facts_stop() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        corpus_facts(corpus_of(10), counter=WordCounter(), cancel=token)
