"""The paper's figures: RMSE, gain over RS-Mean, and the cost-accuracy trade-off."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.experiments.summary import Summary
from gp_eval.report.curves import matplotlib_figure

__all__ = ["plot_summaries"]

_COLOURS = (
    "#1f6fb2",
    "#d1495b",
    "#6b6b6b",
    "#e9a23b",
    "#2a9d6f",
    "#8a5fbf",
    "#b5651d",
    "#17a2b8",
    "#c2185b",
    "#7a8b00",
)
_ROWS = (
    "RMSE x 100 (log scale)",
    "gain over RS-Mean, dB",
    "RMSE x 100 at the stop",
    "coverage of the 95 % interval",
)


def plot_summaries(summaries: Sequence[Summary], path: Path) -> list[Path]:
    """Draw all settings of one data set, models as lines.

    The rows are RMSE Log and RMSE Gain (Figure 1 of the BayesAME paper), the
    Cost-Accuracy Trade-Off (Figure 2), and coverage.

    Args:
        summaries: Summaries of one data set.
        path: The picture without suffix.

    Returns:
        The pictures written, ``.png`` and ``.svg``.
    """
    settings = list(dict.fromkeys((s.regime, s.reference_fraction) for s in summaries))
    models = list(dict.fromkeys(s.model for s in summaries))
    colour = {m: _COLOURS[i % len(_COLOURS)] for i, m in enumerate(models)}
    figure = matplotlib_figure()(figsize=(4.4 * len(settings), 11.5), dpi=140)
    figure.set_layout_engine("constrained")
    axes = figure.subplots(len(_ROWS), len(settings), squeeze=False)
    for column, (regime, fraction) in enumerate(settings):
        group = [
            s
            for s in summaries
            if (s.regime, s.reference_fraction) == (regime, fraction)
        ]
        _draw_column(axes[:, column], group, colour)
        axes[0, column].set_title(
            f"{regime}, {fraction:.0%} of references", fontsize=10
        )
    for axis, label in zip(axes[:, 0], _ROWS, strict=True):
        axis.set_ylabel(label)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=min(len(labels), 2 + 2 * len(settings)),
        frameon=False,
    )
    figure.suptitle(summaries[0].data, fontsize=11, x=0.01, ha="left")
    written = []
    for suffix in (".png", ".svg"):
        target = path.with_suffix(suffix)
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target)
        written.append(target.absolute())
    return written


def _draw_column(axes: Any, group: list[Summary], colour: dict[str, str]) -> None:
    error, gain, trade, coverage = axes
    baseline = next((s for s in group if s.model == "rs-mean"), None)
    for summary in group:
        style = {"color": colour[summary.model], "lw": 1.3, "label": summary.model}
        n = np.arange(1, summary.rmse.shape[0] + 1)
        x = 100.0 * n / summary.n_items
        rmse = summary.rmse.numpy()
        shown = rmse > 1e-12  # the logarithm has no place for the exact end
        error.plot(x[shown], 100.0 * rmse[shown], **style)
        if baseline is not None:
            both = shown & (baseline.rmse.numpy() > 1e-12)
            ratio = baseline.rmse.numpy()[both] / rmse[both]
            gain.plot(x[both], 20.0 * np.log10(ratio), **style)
        trade.plot(
            [100.0 * stop.mean_fraction for stop in summary.stops],
            [100.0 * stop.rmse for stop in summary.stops],
            marker="o",
            ms=3,
            **style,
        )
        coverage.plot(x, summary.coverage.numpy(), **style)
    error.set_yscale("log")
    gain.axhline(0.0, color="#222222", lw=0.8)
    gain.set_ylim(bottom=max(gain.get_ylim()[0], -10.0))
    coverage.axhline(0.95, color="#222222", lw=0.8, ls="--")
    coverage.set_ylim(0.0, 1.03)
    for axis in (error, gain, coverage):
        axis.set_xlabel("evaluated items, % of N")
    trade.set_xlabel("mean number of items at the stop, % of N")
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
