"""The picture of a plan: items, error, coverage, and what references do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gp_eval.planning.content import Forecast, Plan, ReferenceCurve
from gp_eval.planning.recommend import ERROR_SHARE, LEAST_COVERAGE
from gp_eval.planning.reference_curve import fit_inverse
from gp_eval.report.curves import matplotlib_figure

__all__ = ["plan_figure"]

_COLOURS = {"interpolation": "#1f6fb2", "extrapolation": "#d1495b"}
_LINES = ("#1f6fb2", "#d1495b", "#6b6b6b", "#e9a23b", "#2a9d6f", "#8a5fbf", "#b5651d")
_BLACK = "#222222"


def plan_figure(plan: Plan) -> Any:
    """A matplotlib figure of four panels."""
    models = list(dict.fromkeys(f.model for f in plan.forecasts))
    height = max(6.0, 0.55 * len(models) + 4.0)
    figure = matplotlib_figure()(figsize=(10.5, height), dpi=140)
    figure.set_layout_engine("constrained")
    axes = figure.subplots(2, 2)
    asked = [f for f in plan.forecasts if f.width == plan.width]
    _draw_items(axes[0, 0], plan, asked, models)
    _draw_errors(axes[0, 1], plan, asked, models)
    _draw_coverage(axes[1, 0], asked, models)
    _draw_curves(axes[1, 1], plan.curves)
    for axis in axes.ravel():
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        title=_title(plan),
        loc="outside upper center",
        ncols=len(labels),
        frameon=False,
    )
    return figure


def _title(plan: Plan) -> str:
    best = plan.recommendation
    return (
        f"{plan.n_items} items, {plan.n_references} references, interval of "
        f"{plan.width:g} asked for.  "
        + ("Recommended" if best.acceptable else "Nothing acceptable; closest")
        + f": {best.model} with width {best.width:.3g}, about {best.items:.0f} items"
    )


def _places(
    asked: Sequence[Forecast], models: Sequence[str]
) -> list[tuple[float, Forecast]]:
    """Height of each forecast: a row for each model, regimes beside each other."""
    regimes = list(dict.fromkeys(f.regime for f in asked))
    step = 0.3
    middle = (len(regimes) - 1) / 2
    return [
        (-models.index(f.model) - step * (regimes.index(f.regime) - middle), f)
        for f in asked
    ]


def _rows(axis: Any, models: Sequence[str]) -> None:
    axis.set_yticks([-i for i in range(len(models))], list(models))
    axis.set_ylim(-len(models) + 0.4, 0.6)


def _draw_items(
    axis: Any, plan: Plan, asked: Sequence[Forecast], models: Sequence[str]
) -> None:
    named: set[str] = set()
    for y, f in _places(asked, models):
        colour = _COLOURS[f.regime]
        axis.plot([f.spread.q10, f.spread.q90], [y, y], color=colour, lw=5, alpha=0.3)
        label = None if f.regime in named else f.regime
        axis.plot([f.items.value], [y], "o", color=colour, ms=6, label=label)
        named.add(f.regime)
        if f.stopped < 1.0:
            text = f" {1 - f.stopped:.0%} cut"
            axis.annotate(text, (f.spread.q90, y), va="center", fontsize=7)
    _rows(axis, models)
    axis.set_xlim(0, plan.n_max * 1.03)
    axis.set_xlabel("items at the stop: mean, and 10 to 90 % of the targets")


def _draw_errors(
    axis: Any, plan: Plan, asked: Sequence[Forecast], models: Sequence[str]
) -> None:
    for y, f in _places(asked, models):
        _estimate(axis, y, 100 * np.array(_numbers(f.rmse)), _COLOURS[f.regime])
    _limit(axis, 100 * ERROR_SHARE * plan.width, "largest acceptable")
    _rows(axis, models)
    axis.set_xlim(left=0)
    axis.set_xlabel("RMSE x 100 at the stop, with 95 % interval")


def _draw_coverage(axis: Any, asked: Sequence[Forecast], models: Sequence[str]) -> None:
    for y, f in _places(asked, models):
        _estimate(axis, y, np.array(_numbers(f.coverage)), _COLOURS[f.regime])
    _limit(axis, LEAST_COVERAGE, "smallest acceptable")
    _rows(axis, models)
    axis.set_xlim(right=1.01)
    axis.set_xlabel("coverage of the 95 % interval at the stop")


def _draw_curves(axis: Any, curves: Sequence[ReferenceCurve]) -> None:
    if not curves:
        axis.set_axis_off()
        axis.text(
            0.5,
            0.5,
            "items against references:\ntoo few references, or no interpolation",
            ha="center",
            transform=axis.transAxes,
        )
        return
    for curve, colour in zip(curves, _cycle(len(curves)), strict=True):
        sizes = np.array(curve.sizes)
        a, b = fit_inverse(sizes[-2:], np.array(curve.items[-2:]))
        last = float(curve.references + curve.more)
        x = np.geomspace(sizes[-1], last, 50)
        axis.plot(x, np.clip(a + b / x, 0, None), "--", color=colour, lw=1.2)
        axis.plot(sizes, curve.items, "o-", color=colour, ms=5, label=curve.model)
        ends = curve.items_more
        bars = [[max(0.0, ends.value - ends.low)], [max(0.0, ends.high - ends.value)]]
        axis.errorbar(
            [last], [ends.value], bars, fmt="D", color=colour, ms=4, capsize=3
        )
    axis.axvline(curves[0].references, color=_BLACK, lw=0.8, ls=":")
    axis.set_ylim(0, 1.05 * axis.get_ylim()[1])
    axis.set_xlabel(
        f"references; dotted: yours, diamonds: {curves[0].more} more by the fit"
    )
    axis.set_ylabel("items at the stop")
    axis.legend(fontsize=8, frameon=False)


def _cycle(size: int) -> list[str]:
    return [_LINES[i % len(_LINES)] for i in range(size)]


def _numbers(estimate: Any) -> tuple[float, float, float]:
    return estimate.value, estimate.low, estimate.high


def _estimate(axis: Any, y: float, numbers: np.ndarray, colour: str) -> None:
    value, low, high = numbers
    axis.plot([low, high], [y, y], color=colour, lw=1.5)
    axis.plot([value], [y], "o", color=colour, ms=6)


def _limit(axis: Any, x: float, text: str) -> None:
    axis.axvline(x, color=_BLACK, lw=0.9, ls="--")
    axis.annotate(
        text,
        (x, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(3, -2),
        textcoords="offset points",
        fontsize=7,
        va="top",
    )
