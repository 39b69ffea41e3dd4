"""Runs as files: kept by name, opened, compared, exchanged with other systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.evaluation.run_store import check_name
from rag_tui.engine.evaluation.types import ColumnRun, EvalRun
from rag_tui.tui.evaluation_jobs import compare, export_run, import_column, run_of_import
from rag_tui.tui.jobs import in_thread
from rag_tui.tui.screens.evaluate_asking import AskScreen
from rag_tui.tui.screens.evaluate_state import EvaluateState

if TYPE_CHECKING:
    from rag_tui.tui.screens.evaluate_changes import Opened
    from rag_tui.tui.screens.evaluate_runs import RunChoice

COMPARED_ROWS = 5
"""Rows that count as found when two runs are compared."""


class EvaluateFiles(EvaluateState):
    """What is done with the run on show and with kept ones."""

    def open_in_search(self, qid: str, text: str, column: str, rank: int | None) -> None:
        """Ask a question in Search, with a column active and its evidence selected."""
        raise NotImplementedError

    def say_no_run(self) -> None:
        """A key needs a run, and there is none."""
        self.workbench.warn(
            "Nothing has been measured yet.\nPress r to ask the questions, or o to open a run."
        )

    def action_keep(self) -> None:
        """Keep the run on show under a name."""
        scored, store = self.scored, self.store
        if scored is None or store is None:
            self.say_no_run()
            return
        from rag_tui.tui.screens.evaluate_runs import NAME_HINT

        def check(name: str) -> None:
            check_name(name)
            store.check_free(name)

        def take(name: str | None) -> None:
            if name is not None:
                self.keep_as(name)

        self.app.push_screen(AskScreen("Keep this run as", hint=NAME_HINT, check=check), take)

    def action_runs(self) -> None:
        """The kept runs."""
        labelled, store = self.labelled, self.store
        if labelled is None or store is None:
            self.workbench.warn(
                "Runs are scored with the questions of the folder, and there are none yet."
            )
            return
        from rag_tui.engine.evaluation.fingerprints import index_fingerprint
        from rag_tui.tui.screens.evaluate_runs import RunsScreen

        screen = RunsScreen(
            store,
            shown=self.scored.run.name if self.scored is not None else "",
            index_fingerprint=index_fingerprint(labelled.index),
            differences=self._differences,
        )
        self.app.push_screen(screen, self._take_choice)

    def _differences(self, run: EvalRun) -> str:
        """In what the knobs of a run differ from those of now."""
        from rag_tui.engine.knobs import KNOBS, knob

        request = self.request
        if request is None:
            return ""
        if not run.knobs:
            return "a run of another system: its knobs are not known"
        told = []
        for spec in KNOBS:
            now = knob(request, spec.name)
            then = run.knobs.get(spec.name, now)
            if then != now and spec.name != "search.depth":
                told.append(f"{spec.name} {_shown(then)} (now {_shown(now)})")
        return f"other knobs: {', '.join(told)}" if told else "the same knobs as now"

    def _take_choice(self, choice: RunChoice | None) -> None:
        if choice is None:
            return
        run, app = choice.run, self.workbench
        if choice.action == "open":
            self.run_request = None
            self.show_run(run, is_kept=True)
        elif choice.action == "baseline":
            self.baseline = run
            app.tell(f"Compared with the run {run.name} from now on; b goes back to a column.")
            self.rescore()
        elif choice.action == "export":
            self._ask_export(run)
        elif self.scored is None:
            self.say_no_run()
        else:
            self.do(partial(self._compare, run, self.scored.run), "comparing")

    async def _compare(self, before: EvalRun, after: EvalRun) -> None:
        from rag_tui.tui.screens.evaluate_changes import ChangesScreen

        labelled = self.labelled
        if labelled is None:
            return
        change = await in_thread(
            lambda _: compare(labelled, before, after, COMPARED_ROWS), "comparing"
        )

        def take(opened: Opened | None) -> None:
            if opened is not None:
                self.open_in_search(opened.qid, opened.text, opened.column, opened.rank)

        self.app.push_screen(ChangesScreen(change), take)

    def action_import(self) -> None:
        """Put another system's run beside the columns."""
        labelled = self.labelled
        if labelled is None:
            self.workbench.warn("A run is scored with questions, and there are none yet.")
            return

        def take(text: str | None) -> None:
            if text:
                self.do(partial(self._import, Path(text)), "importing")

        hint = "A TREC run: six columns, question Q0 id rank score tag. Ids of chunks or documents."
        self.app.push_screen(AskScreen("Import a run", hint=hint), take)

    async def _import(self, path: Path) -> None:
        labelled = self.labelled
        if labelled is None:
            return
        taken = [*self.column_names, *(column.column.name for column in self.imported)]
        if self.scored is not None:
            taken += [column.column.name for column in self.scored.run.columns]
        column, problems = await in_thread(
            lambda _: import_column(path, labelled, taken), "importing"
        )
        self.add_column(column, problems)

    def action_export(self) -> None:
        """Write the run on show and the labels as TREC files."""
        if self.scored is None:
            self.say_no_run()
            return
        self._ask_export(self.scored.run)

    def _ask_export(self, run: EvalRun) -> None:
        def take(text: str | None) -> None:
            if text:
                self.do(partial(self._export, Path(text), run), "exporting")

        hint = "With several columns one file each, NAME-COLUMN.trec; labels in NAME.qrels."
        value = str(Path.cwd() / f"{run.name or 'run'}.trec")
        self.app.push_screen(AskScreen("Export the run to", value=value, hint=hint), take)

    async def _export(self, path: Path, run: EvalRun) -> None:
        labelled = self.labelled
        if labelled is not None:
            written = await in_thread(lambda _: export_run(path, run, labelled), "exporting")
            self.workbench.tell("Wrote\n" + "\n".join(str(one) for one in written))

    def keep_as(self, name: str) -> None:
        """Keep the run on show under a name."""
        scored, store = self.scored, self.store
        if scored is None or store is None:
            return

        def work() -> EvalRun:
            if scored.is_kept and scored.run.name:
                store.rename(scored.run.name, name)
                return replace(scored.run, name=name)
            return store.save(replace(scored.run, name=""), name)

        async def keep() -> None:
            run = await in_thread(lambda _: work(), "runs")
            self.scored = replace(
                scored, run=run, is_kept=True, table=replace(scored.table, run=name)
            )
            self.workbench.tell(f"Kept as {name}; o lists the runs.")
            self.show_state()

        self.do(keep, "keeping the run")

    def add_column(self, column: ColumnRun, problems: Sequence[str]) -> None:
        """Put another system's run beside the columns on show, and of those to come."""
        labelled = self.labelled
        if labelled is None:
            return
        self.imported = (*self.imported, column)
        app, scored = self.workbench, self.scored
        if scored is None:
            run, is_whole = run_of_import(column, labelled, app.folder), True
        else:
            run, is_whole = scored.run, scored.is_whole
            run = replace(run, name="", columns=(*run.columns, column))
        told = "\n".join(problems[:3])
        app.tell(f"Added the column {column.column.name} from {column.imported_from}.\n{told}")
        self.show_run(run, is_whole=is_whole)


def _shown(value: object) -> str:
    return "off" if value is None or value == "" else str(value)
