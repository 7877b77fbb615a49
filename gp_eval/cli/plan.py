"""``gp-eval plan``: what a new model will need, from the references alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from gp_eval.cli.load import load_scores
from gp_eval.cli.output import note, print_json, print_table, progress_console
from gp_eval.data.validation import DuplicateModels, Missing
from gp_eval.planning.content import Forecast, Plan, ReferenceCurve
from gp_eval.planning.files import check_output, write_plan
from gp_eval.planning.plan import make_plan
from gp_eval.planning.recommend import LEAST_STOPPED
from gp_eval.planning.settings import PlanSettings
from gp_eval.planning.work import Outlook

__all__ = ["run_plan"]


def run_plan(
    source: str,
    settings: PlanSettings,
    *,
    exclude: Sequence[str],
    macro: bool,
    score: str,
    missing: Missing,
    duplicate_models: DuplicateModels,
    outputs: Sequence[Path],
    as_json: bool,
) -> None:
    """Make a plan, print it and write it."""
    for output in outputs:
        check_output(output)
    _, references = load_scores(
        source, score=score, missing=missing, duplicate_models=duplicate_models
    )
    if exclude:
        references = references.without(exclude)
    if macro:
        references = references.macro()
    note("Pilot: measuring what a run of each model costs")
    with _Bar(len(references.items)) as bar:
        plan = make_plan(references, settings, watch=bar)
    if as_json:
        for record in _records(plan):
            print_json(record)
    else:
        _print(plan)
    for output in outputs:
        path = write_plan(plan, output)
        kind = "Plan" if output.suffix == ".json" else "Picture"
        note(f"{kind}: {path}")
    if json := next((o for o in outputs if o.suffix == ".json"), None):
        note(f"Next: gp-eval start RUN --refs {source} --target NAME --plan {json}")


class _Bar:
    """A bar on stderr, from the end of the pilot on."""

    def __init__(self, n_items: int) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=progress_console(), transient=True)
        self._n_items = n_items

    def begin(self, outlook: Outlook) -> None:
        runs = ", ".join(f"{model} {n}" for model, n in outlook.runs.items())
        note(
            f"About {outlook.seconds:.0f} s in {outlook.jobs} processes: simulated "
            f"runs of {runs}"
        )
        if outlook.n_max < self._n_items:
            note(
                f"Large set: runs are cut after {outlook.n_max} of {self._n_items} "
                "items; what needs more is only known to need more (--n-max)"
            )
        self._bar.start()
        self._bar.add_task("Planning", total=1.0)

    def advance(self, share: float) -> None:
        self._bar.advance(self._bar.task_ids[0], share)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


def _records(plan: Plan) -> list[dict[str, object]]:
    """For ``--json``: a line for each forecast and curve, the recommendation last."""
    return [
        *({"kind": "forecast", **f.model_dump()} for f in plan.forecasts),
        *({"kind": "references", **c.model_dump()} for c in plan.curves),
        *(
            {"kind": "refused", "model": model, "reason": reason}
            for model, reason in plan.refused.items()
        ),
        {
            "kind": "recommendation",
            **plan.recommendation.model_dump(),
            "n_items": plan.n_items,
            "n_references": plan.n_references,
            "n_max": plan.n_max,
            "fingerprint": plan.fingerprint,
            "seconds": plan.seconds,
        },
    ]


def _print(plan: Plan) -> None:
    best = plan.recommendation
    shown = [
        f
        for f in plan.forecasts
        if f.width == plan.width or (f.model, f.width) == (best.model, best.width)
    ]
    print_table(
        [
            "model",
            "targets",
            "width",
            "items",
            "10-90 %",
            "error",
            "95 % of it",
            "coverage",
            "runs",
            "acceptable",
        ],
        [_row(f) for f in shown],
    )
    if plan.curves:
        more = f"with {plan.curves[0].more} more"
        columns = ["model", "references: items", "now", more, "items", "error"]
        print_table(columns, [_curve_row(curve) for curve in plan.curves])
    for model, reason in plan.refused.items():
        note(f"{model} refused: {reason}")
    for line in _notes(plan):
        note(line)


def _row(f: Forecast) -> list[str]:
    return [
        f.model,
        f.regime,
        f"{f.width:.3g}",
        ("" if f.stopped == 1.0 else ">= ") + f"{f.items.value:.0f}",
        f"{f.spread.q10:.0f}-{f.spread.q90:.0f}"
        if f.stopped == 1.0
        else f"proj. {f.projected:.0f}",
        f"{f.rmse.value:.4f}",
        f"{f.rmse.low:.4f}-{f.rmse.high:.4f}",
        f"{f.coverage.value:.2f}",
        str(f.runs),
        "yes" if f.acceptable else "no",
    ]


def _curve_row(curve: ReferenceCurve) -> list[str]:
    seen = ", ".join(
        f"{size:.0f}: {items:.0f}"
        for size, items in zip(curve.sizes, curve.items, strict=True)
    )
    change, error = curve.items_change, curve.rmse_change
    return [
        curve.model,
        seen,
        f"{curve.items_now.value:.0f}",
        f"{curve.items_more.value:.0f}",
        f"{change.value:+.1%} [{change.low:+.1%}, {change.high:+.1%}]",
        f"{error.value:+.1%} [{error.low:+.1%}, {error.high:+.1%}]",
    ]


def _waits(forecast: Forecast) -> bool:
    late = forecast.narrow < 0.8 * forecast.items.value
    return late and forecast.stopped >= LEAST_STOPPED


def _notes(plan: Plan) -> list[str]:
    best = plan.recommendation
    lines = [
        "Interpolation: random references as targets. Extrapolation: the strongest"
        + (f", from those below a gap of {plan.gap:.0%}" if plan.gap else "")
        + ". Errors are in score units.",
    ]
    if late := [f for f in plan.of(best.model, best.width) if _waits(f)]:
        lines.append(
            f"{best.model} waits for a stable estimate: its interval is narrow enough "
            + ", ".join(f"after {f.narrow:.0f} items ({f.regime})" for f in late)
            + f"; on {plan.n_items} items --stable {plan.stable:g} is strict."
        )
    if any(f.stopped < 1.0 for f in plan.forecasts):
        lines.append(
            "proj.: items if the interval of the cut runs went on to narrow like that "
            "of a random sample."
        )
    if plan.curves:
        more = plan.curves[0].more
        lines.append(
            f"With {more} more references, by a + b / K: change of the items at the "
            "stop, and of the error after a fixed number of items."
        )
    lines.append(
        f"Recommended: --model {best.model} --width {best.width:.4g} --stable "
        f"{best.stable:g} --window {best.window}, about {best.items:.0f} of "
        f"{plan.n_items} items ({best.reason})."
    )
    return lines
