"""The paper's figures: RMSE, gain over RS-Mean, and the cost-accuracy trade-off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.experiments.panels import draw_panels
from gp_eval.experiments.summary import Summary

__all__ = ["model_lines", "plot_summaries"]

_EXACT = 1e-12
"""Below this an error is rounding, for which a logarithm has no place."""

_NO_STOP = "cost-accuracy trade-off:\nno width was met by every run before the cut"


def plot_summaries(summaries: Sequence[Summary], path: Path) -> list[Path]:
    """Draw all settings of one data set, models as lines.

    The rows are RMSE Log, RMSE Gain (both Figure 1 of the BayesAME paper; the gain only
    if ``rs-mean`` is among the models), the Cost-Accuracy Trade-Off (Figure 2), and
    coverage.

    Args:
        summaries: Summaries of one data set.
        path: The picture without suffix.

    Returns:
        The pictures written, ``.png`` and ``.svg``.
    """
    models = {s.model for s in summaries}
    rows = [row for row in _ROWS if row is not _draw_gain or "rs-mean" in models]
    return draw_panels(summaries, rows, path)


def model_lines(
    axis: Any, group: list[Summary], colour: dict[str, str]
) -> Iterator[tuple[Summary, Any, dict[str, Any]]]:
    """Style and place of each model's curve, with ``x`` in percent of ``N``."""
    axis.set_xlabel("evaluated items, % of N")
    for summary in group:
        n = np.arange(1, summary.rmse.shape[0] + 1)
        style = {"color": colour[summary.model], "lw": 1.3, "label": summary.model}
        yield summary, 100.0 * n / summary.n_items, style


def _draw_rmse(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for summary, x, style in model_lines(axis, group, colour):
        rmse = summary.rmse.numpy()
        shown = rmse > _EXACT
        axis.plot(x[shown], 100.0 * rmse[shown], **style)
    axis.set_yscale("log")
    axis.set_ylabel("RMSE x 100 (log scale)")


def _draw_gain(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    baseline = next(s.rmse.numpy() for s in group if s.model == "rs-mean")
    for summary, x, style in model_lines(axis, group, colour):
        rmse = summary.rmse.numpy()
        shown = (rmse > _EXACT) & (baseline > _EXACT)
        axis.plot(x[shown], 20.0 * np.log10(baseline[shown] / rmse[shown]), **style)
    axis.axhline(0.0, color="#222222", lw=0.8)
    axis.set_ylim(bottom=max(axis.get_ylim()[0], -10.0))
    axis.set_ylabel("gain over RS-Mean, dB")


def _draw_trade_off(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    drawn = False
    for summary, _, style in model_lines(axis, group, colour):
        stops = [
            stop
            for stop in summary.stops
            if stop.rmse > _EXACT and (summary.is_complete or stop.stopped == 1.0)
        ]
        cost = [100.0 * stop.mean_fraction for stop in stops]
        error = [100.0 * stop.rmse for stop in stops]
        axis.plot(cost, error, marker="o", ms=3, **style)
        drawn = drawn or bool(stops)
    axis.set_xlabel("mean number of items at the stop, % of N")
    axis.set_yscale("log")
    axis.set_ylabel("RMSE x 100 at the stop (log scale)")
    if not drawn:  # such as runs that were cut early
        axis.set_axis_off()
        axis.text(0.5, 0.5, _NO_STOP, ha="center", transform=axis.transAxes)


def _draw_coverage(axis: Any, group: list[Summary], colour: dict[str, str]) -> None:
    for summary, x, style in model_lines(axis, group, colour):
        axis.plot(x, summary.coverage.numpy(), **style)
    axis.axhline(0.95, color="#222222", lw=0.8, ls="--")
    axis.set_ylim(0.0, 1.03)
    axis.set_ylabel("coverage of the 95 % interval")


_ROWS = (_draw_rmse, _draw_gain, _draw_trade_off, _draw_coverage)
