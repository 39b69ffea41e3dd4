"""What has come of one streamed reply of the Messages API."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Any

from rag_tui.engine.types import Answer, AnswerState, Citation, Prompt, Quote

_FENCE_LINE = re.compile(r"(?:^|\n)[ \t>]*(?:`{3,}|~{3,})[ \t]*$")


@dataclass(slots=True)
class Reply:
    """A reply as it grows.

    With native citations the text from the model has no markers: behind each cited block one is
    put, ``[1]`` or ``[1][3]``, in front of the block's trailing blank space.
    """

    prompt: Prompt
    started: float = field(default_factory=time.perf_counter)
    text: str = ""
    thinking: str = ""
    has_thought: bool = False
    """Whether there was a block of thinking, shown or not."""
    is_open: bool = False
    opened_s: float | None = None
    first_token_s: float | None = None
    attempts: int = 1
    stop_reason: str | None = None
    refusal: str = ""
    usage: dict[str, int] = field(default_factory=dict)
    quotes: list[Quote] = field(default_factory=list)
    citations: list[Citation] = field(default_factory=list)
    _held: str = ""
    """Blank space at the end of the block, kept back because a marker may go before it."""
    _block_start: int = 0
    _named: list[Any] = field(default_factory=list)
    """Citations of the block that is open."""

    @property
    def is_native(self) -> bool:
        """Whether citations come beside the text instead of in it."""
        return self.prompt.kind == "search_results"

    def read(self, event: Any) -> bool:
        """Take in one event; whether there is more to show. Unknown events are passed over."""
        if not self.is_open:
            self.is_open = True
            self.opened_s = time.perf_counter() - self.started
        match getattr(event, "type", ""):
            case "message_start":
                # Its count of output tokens is that of the first piece, not of the reply.
                self._count(getattr(event.message, "usage", None), but="output_tokens")
            case "content_block_start":
                self.close_block()
                self.has_thought |= event.content_block.type in ("thinking", "redacted_thinking")
                if event.content_block.type == "text":
                    return self._add(event.content_block.text or "")
                if event.content_block.type == "thinking":
                    return self._think(event.content_block.thinking or "")
            case "content_block_delta":
                return self._delta(event.delta)
            case "content_block_stop":
                return self.close_block()
            case "message_delta":
                self.stop_reason = event.delta.stop_reason
                details = getattr(event.delta, "stop_details", None)
                self.refusal = getattr(details, "explanation", None) or ""
                self._count(getattr(event, "usage", None))
        return False

    def close_block(self) -> bool:
        """End the open block: its marker, and the blank space behind it."""
        before = len(self.text)
        if self._named:
            self._mark()
        self.text += self._held
        self._held = ""
        self._named = []
        self._block_start = len(self.text)
        return len(self.text) > before

    def answer(self, name: str, state: AnswerState = "streaming", detail: str = "") -> Answer:
        """The reply so far as an answer."""
        return Answer(
            text=self.text,
            state=state,
            answerer=name,
            citations=tuple(self.citations),
            detail=detail,
            input_tokens=self.usage.get("input_tokens"),
            output_tokens=self.usage.get("output_tokens"),
            cache_write_tokens=self.usage.get("cache_creation_input_tokens"),
            cache_read_tokens=self.usage.get("cache_read_input_tokens"),
            thinking=self.thinking,
            quotes=tuple(self.quotes),
            knows_citations=self.is_native,
            attempts=self.attempts,
            opened_s=self.opened_s,
            first_token_s=self.first_token_s,
        )

    def _delta(self, delta: Any) -> bool:
        match delta.type:
            case "text_delta":
                return self._add(delta.text or "")
            case "thinking_delta":
                return self._think(delta.thinking or "")
            case "citations_delta" if self.is_native:
                self._named.append(delta.citation)
        return False

    def _add(self, piece: str) -> bool:
        if piece and self.first_token_s is None:
            self.first_token_s = time.perf_counter() - self.started
        if not self.is_native:
            self.text += piece
            return bool(piece)
        joined = self._held + piece
        kept = joined.rstrip()
        self._held = joined[len(kept) :]
        self.text += kept
        return bool(kept)

    def _think(self, piece: str) -> bool:
        self.thinking += piece
        return bool(piece)

    def _mark(self) -> None:
        block = self.text[self._block_start :]
        start = self._block_start + len(block) - len(block.lstrip())
        end = len(self.text)
        found = [quote for named in self._named if (quote := self._quote(named, start, end))]
        numbers = dict.fromkeys(quote.number for quote in found)
        if not numbers:
            return
        # Behind the closing line of a code fence nothing else may stand.
        self.text += "\n\n" if _FENCE_LINE.search(self.text) else " " if block.strip() else ""
        known = {source.number for source in self.prompt.sources}
        for number in numbers:
            marker = f"[{number}]"
            at = len(self.text)
            self.text += marker
            unknown = () if number in known else (number,)
            self.citations.append(Citation(at, len(self.text), (number,), unknown))
        self.quotes += dict.fromkeys(found)

    def _quote(self, named: Any, start: int, end: int) -> Quote | None:
        """One citation; None for kinds that name no search result of the request."""
        index = getattr(named, "search_result_index", None)
        if not isinstance(index, int) or index < 0:
            return None
        quoted = str(getattr(named, "cited_text", None) or "")
        sources = self.prompt.sources
        if index >= len(sources):
            return Quote(index + 1, "", quoted, start, end, is_in_source=False)
        source = sources[index]
        is_in_source = _one_line(quoted) in _one_line("".join(source.blocks))
        return Quote(source.number, source.chunk_id, quoted, start, end, is_in_source)

    def _count(self, usage: Any, *, but: str = "") -> None:
        """Take over what is counted; later counts are cumulative and replace earlier ones."""
        for name in (
            "input_tokens",
            "output_tokens",
            "cache_creation_input_tokens",
            "cache_read_input_tokens",
        ):
            value = getattr(usage, name, None)
            if isinstance(value, int) and name != but:
                self.usage[name] = value


def _one_line(text: str) -> str:
    return " ".join(text.split())
