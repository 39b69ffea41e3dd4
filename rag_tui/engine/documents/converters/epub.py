"""Electronic books, chapter by chapter in reading order."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any
from urllib.parse import unquote

from rag_tui.engine.documents.converters import DTD_REFUSED
from rag_tui.engine.documents.converters.html import html_to_markdown
from rag_tui.engine.documents.parts import Loaded, Part, UnusableFileError, join_parts, one_line

_METADATA = ("creator", "language", "publisher", "date", "subject")


def convert_epub(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """Each item of the spine as a page of Markdown.

    Raises:
        UnusableFileError: When the book has no list of contents to go by.
    """
    from defusedxml import (  # type: ignore[import-untyped,unused-ignore]
        DefusedXmlException,
        ElementTree,
    )

    with zipfile.ZipFile(BytesIO(raw)) as archive:
        try:
            container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
            where = next(e.get("full-path") for e in container.iter() if _is(e, "rootfile"))
            package = ElementTree.fromstring(archive.read(where))
        except (KeyError, StopIteration, ElementTree.ParseError) as error:
            raise UnusableFileError("damaged EPUB: no list of its parts", state="failed") from error
        except DefusedXmlException as error:
            raise UnusableFileError(DTD_REFUSED, state="failed") from error
        missing: list[str] = []
        text, pages = join_parts(
            list(_chapters(archive, package, posixpath.dirname(where), missing))
        )
    metadata = {name: ", ".join(found) for name in _METADATA if (found := _values(package, name))}
    notes = (f"{len(missing)} parts of the book are missing",) if missing else ()
    return Loaded(
        text,
        "epub",
        is_markdown=True,
        title=next(iter(_values(package, "title")), ""),
        pages=pages,
        metadata=metadata,
        notes=notes,
        is_partial=bool(missing),
    )


def _chapters(
    archive: zipfile.ZipFile, package: Any, folder: str, missing: list[str]
) -> Iterator[Part]:
    href_of = {e.get("id"): e.get("href") for e in package.iter() if _is(e, "item")}
    seen: set[str] = set()
    for reference in package.iter():
        href = href_of.get(reference.get("idref")) if _is(reference, "itemref") else None
        if not href:
            continue
        path = posixpath.normpath(posixpath.join(folder, unquote(href)))
        if path in seen:  # a list that names one chapter a thousand times is no longer book
            continue
        seen.add(path)
        try:
            html = archive.read(path).decode("utf-8", "replace")
        except KeyError:
            missing.append(path)
            continue
        text, title = html_to_markdown(html)
        yield Part(text, title)


def _is(element: Any, name: str) -> bool:
    return str(element.tag).rsplit("}", 1)[-1] == name


def _values(package: Any, name: str) -> list[str]:
    return [one_line(e.text) for e in package.iter() if _is(e, name) and e.text and e.text.strip()]
