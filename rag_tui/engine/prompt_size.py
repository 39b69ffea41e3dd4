"""How large a prompt is, whether it fits, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_tui.engine.prompt_text import estimate_tokens
from rag_tui.engine.types import Answer, Prompt

if TYPE_CHECKING:
    from rag_tui.engine.corpus_facts import Prices
    from rag_tui.engine.settings import AnswerSettings

ESTIMATE = "an estimate: four Latin characters a token"
_MILLIONTH = 1e-6


@dataclass(frozen=True, slots=True)
class PromptSize:
    """The numbers of one prompt."""

    n_tokens: int
    """Of the whole input: rules, sources, tags, question."""
    source_tokens: tuple[int, ...]
    """One a source, its tags included."""
    is_estimate: bool
    note: str
    """Where the numbers are from, or why they are only estimates."""
    context_window: int
    """Tokens the model reads and writes at once."""
    max_tokens: int
    """Kept free for the answer."""
    input_cost: float
    """Of the input read without a cache, in the prices' currency."""
    most_cost: float
    """With an answer of ``max_tokens``."""

    @property
    def n_free(self) -> int:
        """Tokens left in the window beside prompt and answer; negative: it does not fit."""
        return self.context_window - self.n_tokens - self.max_tokens

    @property
    def fits(self) -> bool:
        """Whether prompt and longest answer fit into the window together."""
        return self.n_free >= 0


def prompt_tokens(prompt: Prompt) -> int:
    """About how many tokens a prompt is, rules included; an estimate."""
    rules = estimate_tokens(prompt.system)
    if prompt.kind == "text":
        return rules + estimate_tokens(prompt.user)
    return rules + sum(source_estimates(prompt)) + estimate_tokens(prompt.closing)


def source_estimates(prompt: Prompt) -> tuple[int, ...]:
    """About how many tokens each source is, as it is sent; estimates, one a source."""
    if prompt.kind == "text":
        return tuple(estimate_tokens(prompt.user[start:end]) for _, start, end in prompt.spans)
    return tuple(
        estimate_tokens("".join((source.path, source.heading, *source.blocks)))
        for source in prompt.sources
    )


def estimate_size(
    prompt: Prompt,
    settings: AnswerSettings,
    *,
    context_window: int,
    prices: Prices,
    note: str = ESTIMATE,
) -> PromptSize:
    """The size by `estimate_tokens`, without asking anybody."""
    n_tokens = prompt_tokens(prompt)
    return size_of(
        n_tokens,
        source_estimates(prompt),
        settings,
        context_window=context_window,
        prices=prices,
        is_estimate=True,
        note=note,
    )


def size_of(
    n_tokens: int,
    source_tokens: tuple[int, ...],
    settings: AnswerSettings,
    *,
    context_window: int,
    prices: Prices,
    is_estimate: bool,
    note: str,
) -> PromptSize:
    """A size from counted or estimated tokens."""
    input_cost = n_tokens * prices.input * _MILLIONTH
    return PromptSize(
        n_tokens=n_tokens,
        source_tokens=source_tokens,
        is_estimate=is_estimate,
        note=note,
        context_window=context_window,
        max_tokens=settings.max_tokens,
        input_cost=input_cost,
        most_cost=input_cost + settings.max_tokens * prices.output * _MILLIONTH,
    )


def answer_cost(answer: Answer, prices: Prices) -> float | None:
    """What an answer has cost by the service's own count, in the prices' currency.

    Tokens written to and read from the prompt cache are priced as such; None when the service
    counted nothing.
    """
    if answer.input_tokens is None and answer.output_tokens is None:
        return None
    counted = (
        (answer.input_tokens, prices.input),
        (answer.cache_write_tokens, prices.cache_write),
        (answer.cache_read_tokens, prices.cache_read),
        (answer.output_tokens, prices.output),
    )
    return sum((n or 0) * price for n, price in counted) * _MILLIONTH
