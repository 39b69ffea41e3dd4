"""The exact text a language model is asked with: numbered sources, the question last.

Documents are untrusted. Their text is escaped so that nothing in it can close or open a tag of
the prompt, and characters that a reader of the prompt could not see are written out. How rules,
sources and question are put together is a template's business
(`rag_tui.engine.prompt_templates`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from rag_tui.engine.chunkers.suspicions import instructions
from rag_tui.engine.errors import UsageError
from rag_tui.engine.prompt_order import PromptPlan, choose
from rag_tui.engine.prompt_request import message_content
from rag_tui.engine.prompt_size import prompt_tokens
from rag_tui.engine.prompt_sources import Extra, source_of
from rag_tui.engine.prompt_templates import DEFAULT_TEMPLATE, Template, load_template
from rag_tui.engine.prompt_text import (
    escaped,
    escaped_attribute,
    estimate_tokens,
    visible,
)
from rag_tui.engine.sentences import sentence_spans
from rag_tui.engine.types import NOT_FOUND, Chunk, Prompt, PromptOrder, Source

__all__ = [
    "NOT_FOUND",
    "build_prompt",
    "escaped",
    "escaped_attribute",
    "estimate_tokens",
    "prompt_tokens",
    "source_spans",
]


def build_prompt(
    question: str,
    chunks: Sequence[Chunk],
    *,
    max_sources: int,
    plan: PromptPlan | None = None,
    template: str | None = None,
    order: PromptOrder = "best first",
    extra: Mapping[str, Extra] | None = None,
    max_tokens: int | None = None,
) -> Prompt:
    """The prompt for a question over the given chunks, best first.

    The first ``max_sources`` chunks with any text become sources 1, 2, 3, …; a chunk given twice
    counts once. A source's text is the chunk's body (its heading lines are told in the tag), as
    it stands in the document; escaping touches ``Prompt.user`` only.

    Args:
        question: As it was asked.
        chunks: Candidates, best first; more than become sources if pinned ones are among them.
        max_sources: So many sources at most, pinned ones apart.
        plan: What was changed by hand; what it says about template, order and number of sources
            goes before the other arguments.
        template: A template's name or file; None: the default.
        order: Where the best source stands; numbers follow the order in the prompt.
        extra: Chunk id to the chunks before and after it, in document order, that are to be
            merged into its source. One that is a source itself, or already stands in another
            source, ends the stretch: no text is sent twice.
        max_tokens: Input tokens that may be sent, by `estimate_tokens`; sources that do not fit
            are left out from the last chosen one on, pinned ones last. None: no limit.

    Returns:
        A prompt whose ``sources`` are empty when no chunk has text, and whose ``omitted`` names
        the other chunks in the given order.

    Raises:
        UsageError: When the number of sources is below 1, or the template or the order is not
            usable.
    """
    plan = plan if plan is not None else PromptPlan()
    used_template = load_template(plan.template or template or DEFAULT_TEMPLATE)
    n_sources = max_sources if plan.n_sources is None else plan.n_sources
    while True:
        chosen = choose(chunks, n_sources=n_sources, plan=plan, order=plan.order or order)
        sources = _sources(chosen.used, plan, extra or {})
        prompt = _rendered(question, sources, chosen.used, used_template)
        n_free = sum(not plan.entry(chunk.chunk_id).is_pinned for chunk in chosen.used)
        if max_tokens is None or not n_free or prompt_tokens(prompt) <= max_tokens:
            break
        if len(chosen.used) == 1:
            raise UsageError(
                f"Not even one source fits into {max_tokens:,} input tokens "
                f"(about {prompt_tokens(prompt):,} are needed).",
                "Raise prices.context_window, lower answer.max_tokens, or cut smaller chunks.",
            )
        n_sources = len(chosen.used) - 1
    return replace(
        prompt,
        order=plan.order or order,
        omitted=chosen.omitted,
        switched_off=chosen.switched_off,
    )


def source_spans(prompt: Prompt) -> tuple[tuple[int, int, int], ...]:
    """Where each source stands in ``prompt.user``, tags included.

    Returns:
        ``(number, start, end)`` per source, in order; character offsets, end-exclusive.
    """
    return prompt.spans


def _sources(
    used: Sequence[Chunk], plan: PromptPlan, extra: Mapping[str, Extra]
) -> tuple[Source, ...]:
    taken = {chunk.chunk_id for chunk in used}
    sources = []
    for number, chunk in enumerate(used, start=1):
        entry = plan.entry(chunk.chunk_id)
        source = source_of(chunk, number, extra.get(chunk.chunk_id, ((), ())), taken)
        if entry.edited_text is not None and entry.edited_text != source.text:
            source = replace(source, text=entry.edited_text, is_edited=True, added=())
        sources.append(replace(source, warning=instructions(source.text)))
    return tuple(sources)


def _rendered(
    question: str, sources: tuple[Source, ...], used: Sequence[Chunk], template: Template
) -> Prompt:
    asked = escaped(question.strip())
    prompt = Prompt(
        question=question,
        system=template.system,
        user="",
        sources=sources,
        template=template.name,
        kind=template.kind,
        not_found=template.not_found,
    )
    if template.kind == "search_results":
        cut = tuple(replace(source, blocks=_citable(source.text)) for source in sources)
        prompt = replace(prompt, sources=cut, closing=template.user.format(question=asked))
        return _shown_as_json(prompt)
    blocks = [_block(source, chunk, template) for source, chunk in zip(sources, used, strict=True)]
    inner = template.separator.join(blocks) if blocks else template.empty
    # Cut apart at the sources, so that their places are known without looking for them.
    head, tail = (part.format(question=asked) for part in _halves(template.user))
    spans = []
    at = len(head)
    for source, block in zip(sources, blocks, strict=True):
        spans.append((source.number, at, at + len(block)))
        at += len(block) + len(template.separator)
    is_question_last = "{question}" not in _halves(template.user)[0]
    return replace(
        prompt,
        user=f"{head}{inner}{tail}",
        spans=tuple(spans),
        sources_end=len(head) + len(inner) if is_question_last else 0,
    )


def _halves(user: str) -> tuple[str, str]:
    head, _, tail = user.partition("{sources}")
    return head, tail


def _block(source: Source, chunk: Chunk, template: Template) -> str:
    title, *below = chunk.heading_path or ("",)
    section = " > ".join(below)
    named = (
        ("id", str(source.number)),
        ("file", source.path),
        ("title", title),
        ("section", section),
    )
    attributes = " ".join(f'{name}="{escaped_attribute(value)}"' for name, value in named if value)
    place = ": ".join(part for part in (source.path, source.heading) if part)
    return template.source.format(
        number=source.number,
        attributes=attributes,
        file=escaped_attribute(source.path),
        title=escaped_attribute(title),
        section=escaped_attribute(section),
        heading=escaped_attribute(source.heading),
        place=escaped_attribute(place),
        text=escaped(source.text),
    )


def _citable(text: str) -> tuple[str, ...]:
    """A text in pieces of one sentence each, which together are the text; none is blank.

    A citation of the Messages API names whole text blocks of a search result: sentences make it
    as sharp as a quote.
    """
    shown = visible(text)
    starts = [start for start, _ in sentence_spans(shown)]
    edges = [0, *starts[1:], len(shown)]
    pieces = [shown[a:b] for a, b in pairwise(edges)]
    return tuple(piece for piece in pieces if piece.strip())


def _shown_as_json(prompt: Prompt) -> Prompt:
    """With ``user`` as the JSON of the content that is sent, a block at a time."""
    parts = [json.dumps(one, ensure_ascii=False, indent=1) for one in message_content(prompt)]
    spans = []
    at = 2
    for source, part in zip(prompt.sources, parts, strict=False):
        spans.append((source.number, at, at + len(part)))
        at += len(part) + 2
    sources_end = spans[-1][2] if spans else 0
    return replace(
        prompt, user="[\n" + ",\n".join(parts) + "\n]", spans=tuple(spans), sources_end=sources_end
    )
