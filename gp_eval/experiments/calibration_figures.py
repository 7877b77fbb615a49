"""Pictures of calibration: coverage, widths and scores by n, and PIT values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.experiments.calibration import histogram
from gp_eval.experiments.figures import model_lines
from gp_eval.experiments.panels import by_setting, draw_panels, new_figure, save_figure
from gp_eval.experiments.summary import Summary

__all__ = ["plot_calibration", "plot_pit"]

_EXACT = 1e-12
_NO_STOP = "coverage at the stop:\nno run met a width before n = N"
_HOW_TO_READ = (
    "PIT values are uniform if beliefs hold. U: intervals too narrow; hump: too wide; "
    "one side: estimates off."
)
_SHADES = ("#a6cee3", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08234f")


def plot_calibration(summaries: Sequence[Summary], path: Path) -> list[Path]:
    """Draw all settings of one data set, models as lines.

    The rows are coverage with two standard errors, the mean width of the 95 % interval,
    its interval score, and coverage at the stop by the wanted width.

    Args:
        summaries: Summaries of one data set.
        path: The picture without suffix.

    Returns:
        The pictures written, ``.png`` and ``.svg``.
    """
    return draw_panels(summaries, _ROWS, path)


def _draw_coverage(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for summary, x, style in model_lines(axis, group, colour):
        coverage = summary.coverage.numpy()
        error = 2.0 * summary.calibration.coverage_se.numpy()
        low, high = (coverage - error).clip(0.0), (coverage + error).clip(None, 1.0)
        axis.plot(x, coverage, **style)
        axis.fill_between(x, low, high, color=style["color"], alpha=0.15, lw=0)
    # A variance from very few items, or of very few left, may be off by far.
    lowest = [
        np.nanmin(
            s.coverage[round(0.05 * s.n_items) : round(0.95 * s.n_items)].numpy(),
            initial=1.0,
        )
        for s in group
    ]
    _mark_level(axis, min(lowest))
    axis.set_ylabel("coverage of the 95 % interval\nand 2 standard errors")


def _draw_width(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for summary, x, style in model_lines(axis, group, colour):
        _positive(axis, x, summary.calibration.width.numpy(), style)
    axis.set_ylabel("mean width of it x 100 (log scale)")


def _draw_score(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for summary, x, style in model_lines(axis, group, colour):
        _positive(axis, x, summary.calibration.interval_score.numpy(), style)
    axis.set_ylabel("interval score x 100 (log scale)\nlower is better")


def _positive(axis: Any, x: Any, values: Any, style: dict[str, Any]) -> None:
    shown = values > _EXACT
    axis.plot(x[shown], 100.0 * values[shown], **style)
    axis.set_yscale("log")


def _draw_stops(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for i, (summary, _, style) in enumerate(model_lines(axis, group, colour)):
        known = [s for s in summary.stops if s.coverage_stopped is not None]
        if not known:
            continue
        shift = 1.0 + 0.02 * (i - (len(group) - 1) / 2)  # bars side by side
        coverage = np.array([s.coverage_stopped for s in known])
        error = np.array([2.0 * (s.coverage_stopped_se or 0.0) for s in known])
        bars = [np.minimum(error, coverage), np.minimum(error, 1.0 - coverage)]
        axis.errorbar(
            [100.0 * s.width * shift for s in known],
            coverage,
            bars,
            marker="o",
            ms=3,
            elinewidth=0.8,
            **style,
        )
    if not any(axis.lines):
        axis.set_axis_off()
        axis.text(0.5, 0.5, _NO_STOP, ha="center", transform=axis.transAxes)
        return
    axis.set_xscale("log")
    ticks = [100.0 * stop.width for stop in group[0].stops]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.set_xlabel("wanted width x 100, of runs that stop before n = N")
    shown = [s.coverage_stopped for summary in group for s in summary.stops]
    _mark_level(axis, min(x for x in shown if x is not None))
    axis.set_ylabel("coverage at the stop\nand 2 standard errors")


def _mark_level(axis: Any, lowest: float) -> None:
    """The level, and no more room below than the curves need, to see it close."""
    axis.axhline(0.95, color="#222222", lw=0.8, ls="--")
    axis.set_ylim(max(min(lowest - 0.05, 0.75), -0.03), 1.03)


_ROWS = (_draw_coverage, _draw_width, _draw_score, _draw_stops)


def plot_pit(summaries: Sequence[Summary], path: Path) -> list[Path]:
    """Draw PIT values of one data set: settings side by side, models from the top.

    On the left a histogram over all n / N. On the right ``F(u) - u`` for the empirical
    distribution function ``F`` at each n / N, with the band in which 95 % of such
    curves stay as a whole if beliefs hold and runs of a target and of a seed are as
    alike as here; of the bands of several n / N the widest is drawn. The legend has the
    calibration error and what it stays below in as many cases.

    Args:
        summaries: Summaries of one data set.
        path: The picture without suffix.

    Returns:
        The pictures written, ``.png`` and ``.svg``.
    """
    settings = by_setting(summaries)
    models = list(dict.fromkeys(s.model for s in summaries))
    figure, axes = new_figure(len(models), 2 * len(settings), size=(3.4, 2.8))
    for column, (title, group) in enumerate(settings.items()):
        found = {summary.model: summary for summary in group}
        for row, model in enumerate(models):
            left, right = axes[row, 2 * column : 2 * column + 2]
            if model not in found or not found[model].calibration.pit:
                left.set_axis_off()
                right.set_axis_off()
                continue
            left.set_title(f"{title}\n{model}" if row == 0 else model, fontsize=9)
            _draw_histogram(left, found[model])
            _draw_gap(right, found[model])
    figure.suptitle(_HOW_TO_READ, fontsize=9)
    return save_figure(figure, path)


def _draw_histogram(axis: Any, summary: Summary) -> None:
    pit = summary.calibration.pit.values()
    shares = np.mean([histogram(values).numpy() for values in pit], axis=0)
    edges = np.linspace(0.0, 1.0, len(shares) + 1)
    axis.stairs(100.0 * shares, edges, fill=True, color="#9ecae1")
    axis.axhline(100.0 / len(shares), color="#222222", lw=0.8, ls="--")
    axis.set_xlim(0.0, 1.0)
    axis.set_xlabel("PIT: probability given to lower scores")
    axis.set_ylabel("% of runs")


def _draw_gap(axis: Any, summary: Summary) -> None:
    calibration = summary.calibration
    references = calibration.references
    errors = calibration.errors()
    widest = max(references.values(), key=lambda r: float((r.high - r.low).sum()))
    grid = np.concatenate([[0.0], widest.grid.numpy(), [1.0]])
    ends = [
        np.concatenate([[0.0], e.numpy(), [0.0]]) for e in (widest.low, widest.high)
    ]
    axis.fill_between(grid, *ends, color="#dddddd", lw=0)
    axis.axhline(0.0, color="#222222", lw=0.8, ls="--")
    for colour, (share, pit) in zip(_SHADES, calibration.pit.items(), strict=False):
        ordered = np.sort(pit.numpy())
        gap = np.searchsorted(ordered, grid, side="right") / len(ordered) - grid
        label = (
            f"n/N {share:g}: {errors[share]:.3f} ({references[share].error_limit:.3f})"
        )
        axis.plot(grid, gap, color=colour, lw=1.1, label=label)
    axis.set_xlim(0.0, 1.0)
    reach = 1.15 * max(map(abs, axis.get_ylim()))
    axis.set_ylim(-reach, reach)
    axis.set_xlabel("u")
    axis.set_ylabel("F(u) - u")
    axis.legend(
        fontsize=5.5,
        frameon=False,
        title="calibration error (limit)",
        title_fontsize=5.5,
        ncols=2,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
    )
