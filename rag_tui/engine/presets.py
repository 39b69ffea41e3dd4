"""Settings of a search as something to keep: presets, TOML and Python text, and a way back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import KNOBS, differing_knobs, knob, with_knobs
from rag_tui.engine.types import Column, KnobValue, SearchRequest

OFF = "off"
"""How a knob that is None is written: TOML has no null."""

MAX_UNDO = 200


@dataclass(frozen=True, slots=True)
class Undo:
    """The requests a person has made, and where in them they are. Immutable."""

    present: SearchRequest
    past: tuple[SearchRequest, ...] = ()
    """Oldest first; at most `MAX_UNDO`."""
    future: tuple[SearchRequest, ...] = ()
    """What was undone, next first."""

    def push(self, request: SearchRequest) -> Undo:
        """After a change; one that changes nothing is ignored, and what was undone is given up."""
        if request == self.present:
            return self
        return Undo(request, (*self.past, self.present)[-MAX_UNDO:])

    def undo(self) -> Undo:
        """One step back; at the first request, the same."""
        if not self.past:
            return self
        return Undo(self.past[-1], self.past[:-1], (self.present, *self.future))

    def redo(self) -> Undo:
        """One step forward again; where nothing was undone, the same."""
        if not self.future:
            return self
        return Undo(self.future[0], (*self.past, self.present), self.future[1:])


def apply_preset(
    request: SearchRequest, presets: Mapping[str, Mapping[str, object]], name: str
) -> SearchRequest:
    """The request with the knobs of a preset.

    Raises:
        UsageError: When there is no such preset (the nearest name is told), or a knob is wrong.
    """
    if name not in presets:
        near = get_close_matches(name, presets, n=1)
        known = f"Presets are: {', '.join(sorted(presets))}." if presets else ""
        hint = f"Did you mean {near[0]}?" if near else known
        raise UsageError(
            f"There is no preset {name!r}.",
            hint or 'Write one into the settings as [presets."name"] with a line for each knob.',
        )
    try:
        return with_knobs(request, presets[name])
    except UsageError as error:
        raise UsageError(f"Preset {name!r}: {error.message}", error.hint) from error


def as_toml(request: SearchRequest, defaults: SearchRequest) -> str:
    """The settings in which a request differs from the defaults, for a settings file.

    Reading them on top of those defaults gives the same knobs and columns; question, filter and
    methods are no settings. Empty when nothing differs.
    """
    differing = differing_knobs(request, defaults)
    blocks: list[str] = []
    for section in dict.fromkeys(spec.name.partition(".")[0] for spec in KNOBS):
        lines = [
            f"{name.partition('.')[2]} = {toml_value(value)}"
            for name, value in differing.items()
            if name.startswith(f"{section}.")
        ]
        if lines:
            blocks.append("\n".join([f"[{section}]", *lines]))
    if request.columns != defaults.columns:
        blocks.extend(_toml_column(column) for column in request.columns)
    return "\n\n".join(blocks) + "\n" if blocks else ""


def as_python(request: SearchRequest, defaults: SearchRequest, *, folder: str = "docs") -> str:
    """A script that searches a folder with a request, written with this package's own functions.

    Models and chunking are those of the settings in force for the folder.

    Args:
        request: What is searched, question and filter included.
        defaults: The settings in force. Knobs that differ from them or from the package's own
            defaults are written, so the script does not depend on a settings file for them.
        folder: The corpus.
    """
    base = SearchRequest(request.query)
    turned = {*differing_knobs(request, base), *differing_knobs(request, defaults)}
    knobs = {spec.name: knob(request, spec.name) for spec in KNOBS if spec.name in turned}
    fields = [f"query={request.query!r}"]
    if request.where:
        fields.append(f"where={request.where!r}")
    if request.methods != base.methods:
        fields.append(f"methods={request.methods!r}")
    if request.columns != base.columns:
        columns = "".join(f"            {_python_column(column)},\n" for column in request.columns)
        fields.append(f"columns=(\n{columns}        )")
    arguments = "".join(f"        {field},\n" for field in fields)
    settings = "".join(f"        {name!r}: {value!r},\n" for name, value in knobs.items())
    uses_columns = "columns=(" in arguments
    return _SCRIPT.format(
        folder=repr(folder),
        arguments=arguments,
        knobs=f"{{\n{settings}    }}" if settings else "{}",
        types="Column, SearchRequest" if uses_columns else "SearchRequest",
    )


def toml_value(value: KnobValue) -> str:
    """A knob's value in TOML; None becomes the text ``off``."""
    match value:
        case bool():
            return "true" if value else "false"
        case None:
            return f'"{OFF}"'
        case str():
            return toml_text(value)
        case _:
            return repr(value)


def toml_text(text: str) -> str:
    """A basic string of TOML. Lone surrogates, which TOML cannot say, become ``?``."""
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

    def escaped(character: str) -> str:
        if character in short:
            return short[character]
        if "\ud800" <= character <= "\udfff":
            return "?"
        if character.isprintable():
            return character
        code = ord(character)
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return f'"{"".join(map(escaped, text))}"'


def toml_knobs(knobs: Mapping[str, KnobValue]) -> list[str]:
    """A line for each knob, its dotted name quoted: the rows of a preset."""
    return [f'"{name}" = {toml_value(value)}' for name, value in knobs.items()]


def _toml_column(column: Column) -> str:
    lines = [
        "[[columns]]",
        f"name = {toml_text(column.name)}",
        f"method = {toml_text(column.method)}",
    ]
    if column.knobs:
        lines.append(f"knobs = {{ {', '.join(toml_knobs(dict(column.knobs)))} }}")
    return "\n".join(lines)


def _python_column(column: Column) -> str:
    knobs = f", {column.knobs!r}" if column.knobs else ""
    return f"Column({column.name!r}, {column.method!r}{knobs})"


_SCRIPT = '''"""One search with fixed settings; each list is printed as soon as it is ready."""

from pathlib import Path

from rag_tui.config import load_settings
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.knobs import with_knobs
from rag_tui.engine.loading import Models
from rag_tui.engine.searching import final_results, search
from rag_tui.engine.types import {types}

FOLDER = Path({folder})

request = with_knobs(
    SearchRequest(
{arguments}    ),
    {knobs},
)

settings = load_settings(FOLDER).engine
models = Models(settings.models, settings.cache_dir)
found = refresh_index(FOLDER, settings, models)
index = next(item.index for item in reversed(list(found)) if isinstance(item, IndexReady))

for result in final_results(search(request, index, models)):
    print(f"\\n{{result.stage}}")
    if result.ranking is None:
        print(f"  {{result.error}}")
        continue
    for hit in result.ranking.hits[: request.top_k]:
        print(f"  {{hit.rank}}  {{hit.score:.6f}}  {{index.chunks[hit.position].location}}")
'''
