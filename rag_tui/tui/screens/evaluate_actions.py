"""What leads from the Evaluate screen elsewhere: dialogs, files, the Search screen."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rag_tui.engine.knobs import with_knobs
from rag_tui.tui.evaluation_text import remarks
from rag_tui.tui.jobs import in_thread
from rag_tui.tui.screens.evaluate_files import EvaluateFiles

if TYPE_CHECKING:
    from rag_tui.tui.screens.evaluate_thresholds import Rule
    from rag_tui.tui.screens.sweep import SweepChoice


class EvaluateActions(EvaluateFiles):
    """Actions that open something."""

    def filter_questions(self, needle: str) -> None:
        """Show only some questions."""
        raise NotImplementedError

    @property
    def chosen_measure(self) -> str:
        """The measure that a breakdown shows first."""
        raise NotImplementedError

    # -- dialogs -----------------------------------------------------------------------------

    def action_groups(self) -> None:
        """Means by tag, by document, by length."""
        if self.scored is None:
            self.say_no_run()
            return
        from rag_tui.tui.screens.evaluate_groups import GroupsScreen

        def take(needle: str | None) -> None:
            if needle is not None:
                self.filter_questions(needle)

        self.app.push_screen(GroupsScreen(self.scored.table, self.chosen_measure), take)

    def action_remarks(self) -> None:
        """Everything to keep in mind."""
        from rag_tui.tui.screens.evaluate_remarks import RemarksScreen

        problems = self.labelled.questions.problems if self.labelled is not None else ()
        if self.scored is not None:
            self.app.push_screen(RemarksScreen(remarks(self.scored.table, problems)))
        elif self.labelled is not None:
            lost = tuple(
                f"{qid}, {evidence.document}: {reason}"
                for qid, one in self.labelled.resolved.items()
                for evidence, reason in one.unresolved
            )
            found = (
                ("Labels that are nowhere in the documents", lost),
                ("Problems of the question file", tuple(problems)),
            )
            self.app.push_screen(RemarksScreen([one for one in found if one[1]]))
        else:
            self.say_no_run()

    def action_thresholds(self) -> None:
        """Can a score tell unanswerable questions apart?"""
        if self.scored is None:
            self.say_no_run()
            return
        from rag_tui.tui.screens.evaluate_thresholds import ThresholdsScreen

        def take(rule: Rule | None) -> None:
            if rule is not None:
                self.do(partial(self._apply, rule), "applying the rule")

        self.app.push_screen(ThresholdsScreen(self.scored), take)

    async def _apply(self, rule: Rule) -> None:
        """Use a not-found rule until the app is left, and tell how to keep it."""
        app, screen = self.workbench, self.search_screen
        if rule.setting.startswith("answer."):
            app.change_settings({rule.setting: rule.value})
        elif screen is not None:
            await screen.change_knobs(with_knobs(screen.knobs, {rule.setting: rule.value}))
        app.warn(
            f"{rule.setting} is {rule.value:.6g} for this session.\n"
            f"To keep it, put into rag-tui.toml of the folder:\n{rule.toml}"
        )
        self.show_state()

    def action_sweep(self) -> None:
        """Try many settings on the questions."""
        app, labelled, request = self.workbench, self.labelled, self.request
        if labelled is None or request is None or self.is_asking or app.status.is_busy:
            why = self.problem.message if self.problem else "Wait until index and run are there."
            app.warn(f"Settings cannot be tried now.\n{why}")
            return
        from rag_tui.tui.screens.sweep import SweepScreen

        def take(choice: SweepChoice | None) -> None:
            if choice is not None:
                self.do(partial(self._use, choice), "using a setting")

        names = self.column_names
        column = "hybrid" if "hybrid" in names else next(iter(names), "")
        self.app.push_screen(SweepScreen(labelled, request, column=column, metric="nDCG@10"), take)

    async def _use(self, choice: SweepChoice) -> None:
        """Use a setting until the app is left, write it down if asked to, and tell the lines."""
        from rag_tui.engine.evaluation.report_sweep import toml_of
        from rag_tui.engine.evaluation.settings_file import PROJECT_FILE, write_settings
        from rag_tui.tui.sweep_jobs import index_overrides, with_setting

        app, screen, setting = self.workbench, self.search_screen, choice.setting
        folder = app.folder if app.folder.is_dir() else app.folder.parent
        told = f"To keep it, put into {PROJECT_FILE} of the folder:"
        if choice.is_written:
            await in_thread(
                lambda _: write_settings(folder / PROJECT_FILE, dict(setting.knobs)), "settings"
            )
            told = f"Written into {folder / PROJECT_FILE}:"
        if screen is not None:
            await screen.change_knobs(with_setting(screen.knobs, choice.column, setting))
        if setting.chunking:
            app.reindex_with(index_overrides(setting))
        app.warn(f"{setting.name} is used for this session.\n{told}\n{toml_of(setting)}")
        self.show_state()

    def action_pool(self) -> None:
        """Judge blind for all questions that nothing was judged for."""
        from rag_tui.tui.screens.pooled import open_pooled

        open_pooled(self.workbench, all_unjudged=True)

    def action_copy(self) -> None:
        """Copy the report."""
        if self.scored is None:
            self.say_no_run()
            return
        from rag_tui.engine.evaluation.report import report_markdown

        self.app.copy_to_clipboard(report_markdown(self.scored.table, self.scored.run))
        self.workbench.tell("Copied the report as Markdown, with the terminal (OSC 52).")

    # -- to the Search screen ----------------------------------------------------------------

    def open_in_search(self, qid: str, text: str, column: str, rank: int | None) -> None:
        """Ask a question in Search, with a column active and its evidence selected.

        When the evidence is in no row of the column, the dialog that tells where it was lost opens.
        """
        screen, labelled = self.search_screen, self.labelled
        if screen is None or labelled is None:
            return
        resolved = labelled.resolved.get(qid)
        gold = [
            chunk_id
            for place in (resolved.places if resolved is not None else ())
            if place.evidence.grade > 0
            for chunk_id in place.chunk_ids
        ]
        chunk_id = self._gold_at(qid, column, rank, set(gold)) or next(iter(gold), None)

        async def go() -> None:
            await self.app.switch_mode("search")
            screen.show_question(text, column=column, chunk_id=chunk_id)
            if column not in screen.lists:
                self.workbench.warn(f"Search has no column {column} now: m shows the columns.")
            elif rank is None and chunk_id is not None:
                screen.open_passage(chunk_id)

        self.app.call_later(go)

    def _gold_at(self, qid: str, column: str, rank: int | None, gold: set[str]) -> str | None:
        """The chunk at that rank of the run on show, if it is still the evidence."""
        if self.scored is None or rank is None:
            return None
        run = next((c for c in self.scored.run.columns if c.column.name == column), None)
        asked = next((q for q in run.questions if q.qid == qid), None) if run is not None else None
        if asked is None:
            return None
        found = [row.chunk_id for row in asked.rows if row.chunk_id in gold]
        return found[0] if found else None
