"""Subtitles: what is said, one page a minute."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from rag_tui.engine.documents.parts import Loaded, Part, UnusableFileError, join_parts


def convert_subtitles(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """The captions of a WebVTT or SubRip file, one line each, without their times.

    Pages are minutes, labelled by the time they begin at.

    Raises:
        UnusableFileError: When it is neither.
    """
    import webvtt
    from webvtt.errors import MalformedFileError

    text = raw.decode("utf-8", "surrogatepass")
    read: Any = webvtt.from_string if text.lstrip().startswith("WEBVTT") else _from_srt
    try:
        captions = list(read(text))
    except (MalformedFileError, ValueError) as error:
        raise UnusableFileError(f"not readable subtitles: {error}", state="failed") from error
    parts = [
        Part("\n".join(_line(caption) for caption in group), f"{minute // 60}:{minute % 60:02}")
        for minute, group in groupby(captions, key=lambda c: int(c.start_in_seconds) // 60)
    ]
    text, pages = join_parts(parts)
    return Loaded(text, "subtitles", pages=pages)


def _from_srt(text: str) -> Any:
    from io import StringIO

    import webvtt

    return webvtt.from_buffer(StringIO(text), format="srt")


def _line(caption: Any) -> str:
    said = " ".join(str(caption.text).split())
    speaker = getattr(caption, "voice", None)
    return f"{speaker}: {said}" if speaker else said
