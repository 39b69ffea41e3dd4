"""Mail messages."""

from __future__ import annotations

from collections.abc import Mapping
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from rag_tui.engine.documents.converters.html import html_to_markdown
from rag_tui.engine.documents.parts import Loaded, UnusableFileError, one_line

_HEADERS = ("Subject", "From", "To", "Cc", "Date")


def convert_email(raw: bytes, _options: Mapping[str, Any]) -> Loaded:
    """Headers and body; of plain and HTML bodies the plain one. Attachments are named, not read.

    Raises:
        UnusableFileError: When there is neither header nor body.
    """
    message = message_from_bytes(raw, policy=policy.default)
    headers = {name: one_line(str(message[name])) for name in _HEADERS if message[name]}
    part = message.get_body(preferencelist=("plain", "html"))
    body = _content(part) if part is not None else ""
    if not headers and not body.strip():
        raise UnusableFileError("not a mail message", state="failed")
    attached = [a.get_filename() or a.get_content_type() for a in message.iter_attachments()]
    names = ", ".join(one_line(name) for name in attached[:3]) + (" …" if len(attached) > 3 else "")
    plural = "s" if len(attached) > 1 else ""
    head = "\n".join(f"{name}: {value}" for name, value in headers.items())
    return Loaded(
        f"{head}\n\n{body.strip()}\n" if head else body,
        "email",
        title=headers.get("Subject", ""),
        metadata={name.lower(): value for name, value in headers.items()},
        notes=(f"{len(attached)} attachment{plural} not read: {names}",) if attached else (),
        is_partial=bool(attached),
    )


def _content(part: Any) -> str:
    if not isinstance(part, EmailMessage):
        return ""
    try:
        text = str(part.get_content())
    except (LookupError, UnicodeError):  # a character set that does not exist
        payload = part.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else str(payload)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return html_to_markdown(text)[0] if part.get_content_type() == "text/html" else text
