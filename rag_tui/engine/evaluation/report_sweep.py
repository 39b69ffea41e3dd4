"""What a report of a sweep says."""

from __future__ import annotations

from collections.abc import Iterator

from rag_tui.engine.evaluation.gates import SIGNIFICANT
from rag_tui.engine.evaluation.report_plots import Bar, Dot, bar_chart, scatter
from rag_tui.engine.evaluation.report_sections import Section, chance, comparison_text
from rag_tui.engine.evaluation.sweep_space import Setting, shown
from rag_tui.engine.evaluation.sweep_types import SettingScore, SweepResult
from rag_tui.engine.evaluation.types import Comparison
from rag_tui.engine.presets import toml_value

N_SETTINGS = 100
"""Rows of the table; the rest is counted."""
_N_BARS = 15


def sweep_sections(result: SweepResult) -> Iterator[Section]:
    """The sections of a sweep, those with nothing to say left out."""
    yield Section("What came of it", lines=tuple(verdict(result)))
    yield _settings(result)
    yield from _costs(result)
    failed = [one for one in result.settings if one.reason]
    if failed:
        yield Section(
            "Not compared",
            head=("setting", "reason"),
            rows=tuple((one.setting.name, one.reason) for one in failed),
        )
    if result.notes:
        yield Section("Notes", lines=result.notes)
    toml = best_toml(result)
    if toml:
        yield Section("The best setting, for rag-tui.toml", code=toml)
    yield Section("How it was made", head=("", ""), rows=tuple(_made(result)))


def verdict(result: SweepResult) -> Iterator[str]:
    """What may be believed, one sentence each."""
    n = len(result.settings)
    if not result.is_whole:
        yield f"Interrupted after {n} settings: what follows is about those."
    best = result.settings[result.best] if result.best is not None else None
    if best is None or best.interval is None:
        yield "No setting could be scored."
        return
    mean = best.interval
    name = f"{best.setting.name}{' (as now)' if best.is_present else ''}"
    yield (
        f"Best {result.metric} in {result.column}: {mean.mean:.3f} "
        f"({mean.low:.2f} to {mean.high:.2f}) with {name}."
    )
    if n > 1:
        yield (
            f"It is the best of {n} settings on the very questions it is measured with, so that "
            "figure flatters."
        )
    held = result.cross_validation
    if held is not None:
        yield (
            f"Chosen on other questions ({held.n_folds} folds): {held.held_out.mean:.3f} "
            f"({held.held_out.low:.2f} to {held.held_out.high:.2f}), "
            f"{held.chosen.count(result.best or 0)} of {held.n_folds} folds chose the same setting."
        )
        if held.comparison is not None:
            yield f"Choosing this way against the settings in force: {_gain(held.comparison)}."
    if result.noise:
        yield f"Differences below {result.noise:.3f} are noise on these {mean.n} questions."
    if best.comparison is not None:
        by_chance = best.comparison.p_value >= SIGNIFICANT
        yield (
            f"The best against the settings in force: {_gain(best.comparison)}"
            f"{': chance alone explains that' if by_chance else ''}."
        )
    if mean.n < 30:
        yield f"{mean.n} questions are few: small differences cannot be told apart."


def _gain(compared: Comparison) -> str:
    if not compared.wins and not compared.losses:
        return "no difference on any question"
    return f"{compared.delta:+.3f} ({chance(compared)})"


def best_toml(result: SweepResult) -> str:
    """The best setting as lines of a settings file; empty when it is the present one."""
    best = result.settings[result.best] if result.best is not None else None
    return "" if best is None or best.is_present else toml_of(best.setting)


def toml_of(setting: Setting) -> str:
    """A setting as lines of a settings file."""
    sections: dict[str, list[str]] = {}
    for name, value in setting.knobs:
        section, _, key = name.partition(".")
        sections.setdefault(section, []).append(f"{key} = {toml_value(value)}")
    return "\n\n".join("\n".join([f"[{name}]", *lines]) for name, lines in sections.items()) + "\n"


def marks(result: SweepResult, place: int) -> str:
    """What a setting is: best, as now, on the Pareto front."""
    told = ["best"] if place == result.best else []
    told += ["now"] if result.settings[place].is_present else []
    told += ["front"] if place in result.front else []
    return " ".join(told)


def _settings(result: SweepResult) -> Section:
    order = result.ranked()
    unit = next((o.measured.spans.unit for o in result.settings if o.measured.spans), "")
    overlaps = tuple(f"{unit} {name}" for name in ("recall", "precision", "IoU")) if unit else ()
    head = (
        "setting", "", result.metric, "against now", *overlaps, "ms", "prompt tokens", "chunks",
    )  # fmt: skip
    rows = tuple(
        (
            result.settings[place].setting.name,
            marks(result, place),
            *_figures(result.settings[place], has_spans=bool(unit)),
        )
        for place in order[:N_SETTINGS]
    )
    bars = [
        Bar(one.setting.name, one.interval.mean, one.interval.low, one.interval.high, 1 - (i > 0))
        for i, one in enumerate(result.settings[place] for place in order[:_N_BARS])
        if one.interval
    ]
    left = len(order) - N_SETTINGS
    return Section(
        f"Settings, best {result.metric} first",
        lines=(
            f"Mean and 95 % interval over {result.n_scored} questions; difference, won/tied/lost "
            "and p against the settings in force (not corrected for the number of settings). "
            f"Overlaps and prompts are of the first {result.n_sources} rows; times are medians "
            "of five questions asked afresh.",
        ),
        head=head,
        rows=rows,
        after=(f"and {left:,} more",) if left > 0 else (),
        plots=(bar_chart(result.metric, bars),) if bars else (),
    )


def _figures(one: SettingScore, *, has_spans: bool) -> tuple[str, ...]:
    mean, found = one.interval, one.measured
    spans: tuple[str, ...] = ("–",) * 3 if has_spans else ()
    if found.spans is not None:
        spans = tuple(
            f"{v:.3f}" for v in (found.spans.recall, found.spans.precision, found.spans.iou)
        )
    return (
        "–" if mean is None else f"{mean.mean:.4f} ({mean.low:.2f} to {mean.high:.2f})",
        "" if one.is_present else comparison_text(one.comparison),
        *spans,
        "–" if found.latency_ms is None else f"{found.latency_ms:.3g}",
        "–" if found.prompt_tokens is None else f"{found.prompt_tokens:.0f}",
        f"{found.n_chunks:,}",
    )


def _costs(result: SweepResult) -> Iterator[Section]:
    plots = []
    for title, unit, pick in (
        ("Quality against time", "median ms a question", "latency_ms"),
        ("Quality against prompt", "tokens of a prompt (estimate)", "prompt_tokens"),
    ):
        dots = []
        for place in result.ranked():
            one = result.settings[place]
            cost = getattr(one.measured, pick)
            if one.interval is not None and cost is not None:
                note = "best" if place == result.best else "now" if one.is_present else ""
                is_on = place in result.front
                dots.append(Dot(one.setting.name, cost, one.interval.mean, is_on, note))  # type: ignore[arg-type]
        if len(dots) > 1:
            plots.append(scatter(title, unit, result.metric, dots))
    if plots and result.front:
        yield Section(
            "Pareto front",
            lines=(
                "No other setting is at least as good in quality, time (within 10 %) and prompt, "
                "and better in one of them:",
            ),
            head=("setting", result.metric, "ms", "prompt tokens"),
            rows=tuple(_front_row(result.settings[place]) for place in result.front),
            plots=tuple(plots),
        )


def _front_row(one: SettingScore) -> tuple[str, ...]:
    figures = _figures(one, has_spans=False)
    return (one.setting.name, figures[0], figures[-3], figures[-2])


def _made(result: SweepResult) -> Iterator[tuple[str, str]]:
    yield ("folder", result.folder)
    yield ("made (UTC)", result.created)
    yield ("column", f"{result.column} ({result.method})")
    yield ("questions asked", str(result.n_questions))
    yield ("candidates a list", str(result.depth))
    yield ("index in force", result.index_fingerprint)
    yield ("questions", result.questions_fingerprint)
    yield from ((name, shown(value)) for name, value in result.knobs.items())
