"""Presentations, slide by slide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

from rag_tui.engine.documents.parts import Loaded, Part, join_parts, one_line


def convert_pptx(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """Each slide as a page of Markdown: title, text from top to bottom, tables, notes."""
    from pptx import Presentation

    deck = Presentation(BytesIO(raw))
    slides = (Part(_slide(slide), f"slide {n}") for n, slide in enumerate(deck.slides, start=1))
    text, pages = join_parts(slides)
    title = one_line(deck.core_properties.title or "")
    # what PowerPoint calls every new file
    title = "" if title.lower() == "powerpoint presentation" else title
    return Loaded(text, "pptx", is_markdown=True, title=title, pages=pages)


def _slide(slide: Any) -> str:
    title = slide.shapes.title
    pieces = []
    if title is not None and title.has_text_frame and title.text_frame.text.strip():
        pieces.append(f"## {one_line(title.text_frame.text)}")
    for shape in _in_order(slide.shapes):
        if title is not None and shape.shape_id == title.shape_id:
            continue
        pieces.append("\n".join(_shape(shape)))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = slide.notes_slide.notes_text_frame.text.strip()
        pieces.append(f"Notes: {notes}" if notes else "")
    return "\n\n".join(piece for piece in pieces if piece.strip())


def _in_order(shapes: Any) -> Iterator[Any]:
    for shape in sorted(shapes, key=lambda s: (s.top or 0, s.left or 0)):
        if hasattr(shape, "shapes"):
            yield from _in_order(shape.shapes)
        else:
            yield shape


def _shape(shape: Any) -> Iterator[str]:
    if getattr(shape, "has_table", False):
        rows = [
            [one_line(cell.text).replace("|", "\\|") for cell in row.cells]
            for row in shape.table.rows
        ]
        for number, row in enumerate(rows):
            yield f"| {' | '.join(row)} |"
            if number == 0:
                yield f"|{' --- |' * len(row)}"
    elif getattr(shape, "has_chart", False):
        chart = shape.chart
        if chart.has_title and chart.chart_title.has_text_frame:
            yield f"Chart: {one_line(chart.chart_title.text_frame.text)}"
    elif shape.has_text_frame:
        for paragraph in shape.text_frame.paragraphs:
            text = one_line(paragraph.text)
            if text:
                yield f"{'  ' * paragraph.level}- {text}" if paragraph.level else text
