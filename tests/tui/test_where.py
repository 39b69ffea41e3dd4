"""A filter inside the question, on the Search screen."""

from __future__ import annotations

from rag_tui.engine.types import METHODS
from rag_tui.tui.app import RagTuiApp
from tests.tui.conftest import SmallBackend, ask, screen_text, search_screen, settle

WIDE = (160, 45)


async def test_a_filter_in_the_question_holds_in_all_lists_and_is_shown(
    app: RagTuiApp, backend: SmallBackend
) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        assert app.index is not None
        name = app.index.documents[0].doc_id
        screen = await ask(pilot, f"check-in where: path={name}")
        assert (backend.requests[-1].query, backend.requests[-1].where) == (
            "check-in",
            f"path={name}",
        )
        for method in METHODS:
            assert screen.lists[method].rows
            shown = {app.index.chunk(row.chunk_id).doc_id for row in screen.lists[method].rows}
            assert shown == {name}
        assert f"only path={name}" in screen_text(pilot)
        assert screen.results is not None
        outside = next(c for c in app.index.chunks if c.doc_id != name)
        screen.selected = outside.chunk_id
        await settle(pilot)
        assert "● not listed" in str(screen.lists["vector"].border_subtitle)


async def test_a_broken_filter_is_told_and_the_next_question_works(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "check-in where: page>[/b]")
        for method in METHODS:
            assert "page at column 1 is compared with a number" in screen.lists[method].message
        screen = await ask(pilot, "check-in where: owner=me")
        assert "which no document here has" in screen.lists["bm25"].message
        screen = await ask(pilot, "where: path=a.md")
        assert "question is empty" in screen.lists["bm25"].message
        await ask(pilot, "check-in")
        assert search_screen(pilot).lists["bm25"].rows


async def test_another_filter_for_the_same_question_begins_at_the_top_again(app: RagTuiApp) -> None:
    async with app.run_test(size=WIDE) as pilot:
        await settle(pilot)
        screen = await ask(pilot, "check-in")
        assert screen.results is not None
        before = screen.results.request
        screen.lists["vector"].focus()
        await pilot.press("j")
        await settle(pilot)
        assert [screen._follows_top] == [False]
        await ask(pilot, "check-in where: path~*.md")
        assert screen.results.request.query == before.query
        assert [screen._follows_top] == [True]
