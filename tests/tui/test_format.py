"""Foreign strings as display text: safe, readable, and never markup."""

from __future__ import annotations

import json
import math
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.widgets import DataTable, Label, OptionList, Static, Tree
from textual.widgets.option_list import Option

from rag_tui.engine.types import ScoreKind
from rag_tui.tui import format as fmt
from tests.hostile import FORBIDDEN, HOSTILE, LONG_LINE
from tests.tui.chunk_samples import screen_text

ANY_TEXT = st.text(st.characters(), max_size=60)
HIDDEN_CATEGORIES = {"Cc", "Cs", "Zl", "Zp"}


def bracket_strings(shared: Path) -> list[str]:
    case = shared / "cases" / "01-markup-crash"
    expected = json.loads((case / "expected.json").read_text(encoding="utf-8"))
    queries = (case / "queries.txt").read_text(encoding="utf-8").splitlines()
    return [*expected["must_appear_verbatim"], *queries]


class Surfaces(App[None]):
    """One string on every surface that is made through the module."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def compose(self) -> ComposeResult:
        static = Static(fmt.content(f"static {self.text}"))
        static.styles.border = ("round", "white")
        static.border_title = fmt.content(f"title {self.text}")
        static.border_subtitle = fmt.content(f"subtitle {self.text}")
        yield static
        yield Label(fmt.content(f"label {self.text}", "bold $error"))
        table: DataTable[object] = DataTable()
        table.add_column(fmt.plain(f"column {self.text}"), width=60)
        table.add_row(fmt.plain(f"cell {self.text}", "bold"))
        yield table
        tree: Tree[None] = Tree(fmt.plain(f"root {self.text}"))
        tree.root.add_leaf(fmt.plain(f"leaf {self.text}"))
        tree.root.expand()
        yield tree
        yield OptionList(Option(fmt.content(f"option {self.text}")))

    def on_mount(self) -> None:
        self.notify(
            fmt.display(f"toast {self.text}"),
            title=fmt.display(f"toast-title {self.text}"),
            markup=False,
            timeout=60,
        )


PLACES = "static title subtitle label column cell root leaf option toast toast-title".split()  # noqa: SIM905


async def read_surfaces(text: str) -> str:
    app = Surfaces(text)
    async with app.run_test(size=(150, 40), notifications=True) as pilot:
        await pilot.pause()
        return screen_text(app)


async def test_bracketed_strings_appear_letter_for_letter_on_every_surface(shared: Path) -> None:
    for text in bracket_strings(shared):
        shown = await read_surfaces(text)
        missing = [place for place in PLACES if f"{place} {text}" not in shown]
        assert missing == [], text


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_strings_are_readable_and_harmless_on_every_surface(text: str) -> None:
    shown = await read_surfaces(text)
    assert [char for char in FORBIDDEN if char in shown] == []
    if text.isascii() and text.isprintable():
        assert [place for place in PLACES if f"{place} {text}" not in shown] == []
    else:
        # A toast wraps; wide characters leave an empty cell out of the strip's text.
        assert f"static {fmt.display(text)}" in shown


@given(ANY_TEXT)
def test_no_control_character_survives(text: str) -> None:
    for newlines in (False, True):
        shown = fmt.display(text, newlines=newlines)
        left = {char for char in shown if unicodedata.category(char) in HIDDEN_CATEGORIES}
        assert left <= ({"\n"} if newlines else set())
        shown.encode("utf-8")  # what cannot be encoded would end the program at the terminal


@given(ANY_TEXT)
def test_displaying_twice_changes_nothing_more(text: str) -> None:
    once = fmt.display(text, newlines=True)
    assert fmt.display(once, newlines=True) == once


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u3164\uffa0")))
def test_letters_digits_and_signs_stay_as_they_are(text: str) -> None:
    fillers = "\u115f\u1160"
    kept = "".join(char for char in text if char not in fillers)
    assert fmt.display(kept) == kept


@given(ANY_TEXT)
def test_newlines_are_kept_or_drawn_as_wished(text: str) -> None:
    assert fmt.display(text, newlines=True).count("\n") == text.count("\n")
    assert "\n" not in fmt.display(text)
    assert fmt.display("a\nb") == "a␊b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b]0;t\x07", "␛]0;t␇"),
        ("\x00\x7f\r", "␀␡␍"),
        ("a\tb", "a    b"),
        ("\x9d0\x85", "\\x9d0\\x85"),
        ("caf\udce9", "caf\\udce9"),
        ("\u202egnp\u202c", "\\u202egnp\\u202c"),
        ("a\u200bb\u2028", "a\\u200bb\\u2028"),
        ("pass\u200dword", "pass\\u200dword"),
        ("می\u200cخواهم 👩\u200d👧", "می\u200cخواهم 👩\u200d👧"),
        ("\u200d👧\u200d", "\\u200d👧\\u200d"),
        ("\U000e0041", "\\U000e0041"),
        ("plain [/b] \\x1b", "plain [/b] \\x1b"),
    ],
)
def test_each_hidden_character_has_its_visible_form(text: str, expected: str) -> None:
    assert fmt.display(text) == expected


def test_text_and_content_carry_no_markup() -> None:
    for text in HOSTILE:
        assert fmt.plain(text).plain == fmt.display(text)
        assert fmt.plain(text).spans == []
        assert fmt.content(text).plain == fmt.display(text)
        assert fmt.content(text).spans == []
        assert [span.style for span in fmt.content(text, "bold").spans] == ["bold"]


@given(ANY_TEXT, st.integers(-1, 30), st.booleans())
def test_clipped_text_fits_its_cells(text: str, width: int, keep_end: bool) -> None:
    clipped = fmt.clip(text, width, keep_end=keep_end)
    assert cell_len(clipped) <= max(width, 0)
    assert cell_len(fmt.fit(text, width, keep_end=keep_end)) == max(width, 0)
    if cell_len(fmt.display(text)) <= width:
        assert clipped == fmt.display(text)


@pytest.mark.parametrize("keep_end", [False, True])
def test_clipped_hostile_text_fits_its_cells(keep_end: bool) -> None:
    for text in (*HOSTILE, "".join(HOSTILE)):
        for width in range(80):
            assert cell_len(fmt.clip(text, width, keep_end=keep_end)) <= width


def test_clipping_keeps_the_start_or_the_end() -> None:
    assert fmt.clip("abcdef", 4) == "abc…"
    assert fmt.clip("abcdef", 4, keep_end=True) == "…def"
    assert fmt.clip("日本語", 4) == "日…"
    assert fmt.clip("日本語", 5) == "日本…"
    assert fmt.clip(LONG_LINE, 5) == "0123…"
    assert fmt.clip(LONG_LINE, 5, keep_end=True) == "…6789"
    assert fmt.clip("abc", 0) == ""


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (0.48449, ScoreKind("cosine", "-1 to 1"), "0.484"),
        (-0.0001, "cosine", "0.000"),
        (12.3456, "BM25 lucene", "12.346"),
        (1 / 61 + 1 / 63, "RRF k=60", "0.03227"),
        (2 / 62, "RRF k=60", "0.03226"),
        (-8.0849, "logit", "-8.08"),
        (1.5, "something else", "1.500"),
        (1.5, "", "1.500"),
        (math.nan, "logit", "nan"),
        (-math.inf, "logit", "-inf"),
    ],
)
def test_scores_have_the_digits_of_their_kind(
    value: float, kind: ScoreKind | str, expected: str
) -> None:
    assert fmt.score(value, kind) == expected


@pytest.mark.parametrize(
    ("fraction", "width", "expected"),
    [
        (0.0, 3, "   "),
        (1.0, 3, "███"),
        (0.5, 3, "█▌ "),  # 12 of 24 eighths: one whole cell and four eighths
        (0.001, 3, "▏  "),
        (7.0, 2, "██"),
        (-1.0, 2, "  "),
        (math.nan, 2, "  "),
        (0.5, 0, ""),
    ],
)
def test_bars_are_drawn_in_eighths(fraction: float, width: int, expected: str) -> None:
    assert fmt.bar(fraction, width) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "0 ms"),
        (0.0001, "<1 ms"),
        (0.0094, "9 ms"),
        (0.9996, "1.0 s"),
        (1.24, "1.2 s"),
        (9.96, "10 s"),
        (59.6, "1 min 0 s"),
        (125, "2 min 5 s"),
        (3840, "1 h 4 min"),
        (-1, "–"),
        (math.nan, "–"),
    ],
)
def test_durations_have_one_fitting_unit(seconds: float, expected: str) -> None:
    assert fmt.duration(seconds) == expected


def test_counts_agree_with_their_nouns() -> None:
    assert fmt.count(1, "chunk") == "1 chunk"
    assert fmt.count(0, "chunk") == "0 chunks"
    assert fmt.count(1234, "query", "queries") == "1,234 queries"


def test_one_line_joins_runs_of_white_space() -> None:
    assert fmt.one_line("  a\n\n\tb \x1bc ") == "a b ␛c"
