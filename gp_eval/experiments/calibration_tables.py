"""Tables of calibration: coverage, widths with scores, and what holds at the stop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gp_eval.experiments.summary import FRACTIONS, Summary

__all__ = ["coverage_table", "stop_table", "width_table", "with_error"]

SHOWN_STOPS = (0.02, 0.03, 0.05)
"""Wanted widths of the table; the picture has all."""

Table = tuple[list[str], list[list[str]]]


def coverage_table(summaries: Sequence[Summary]) -> Table:
    """Coverage of the 95 % interval by n / N with its standard error.

    The last column is the calibration error of PIT values, a mean over n / N, and the
    mean of what it stays below in 95 % of cases if beliefs hold.
    """

    def cells(record: dict[str, Any], share: str) -> str:
        return with_error(
            record["coverage"].get(share), record["coverage_se"].get(share)
        )

    columns, rows = _by_n("coverage of the 95 % interval", summaries, cells)
    for row, summary in zip(rows, summaries, strict=True):
        found = summary.calibration
        limits = [r.error_limit for r in found.references.values()]
        errors = list(found.errors().values())
        row.append(f"{_mean(errors):.3f} ({_mean(limits):.3f})" if errors else "-")
    return [*columns, "PIT error (limit)"], rows


def width_table(summaries: Sequence[Summary]) -> Table:
    """Mean width of the 95 % interval and its interval score by n / N, times 100."""

    def cells(record: dict[str, Any], share: str) -> str:
        width = record["width"].get(share)
        if width is None:
            return "-"
        return f"{100 * width:.2f} ({100 * record['interval_score'][share]:.2f})"

    return _by_n("width x 100 (interval score x 100)", summaries, cells)


def stop_table(summaries: Sequence[Summary]) -> Table:
    """Coverage of the runs that stop before ``n = N``, and mean n / N of all runs."""
    widths = [w for w in SHOWN_STOPS if any(_stop(s, w) for s in summaries)]
    rows = []
    for summary in summaries:
        row = _names(summary)
        for width in widths:
            stop = _stop(summary, width)
            if stop is None:
                row.append("-")
                continue
            coverage = with_error(stop.coverage_stopped, stop.coverage_stopped_se)
            row.append(f"{coverage} at {stop.mean_fraction:.0%}")
        rows.append(row)
    return ["coverage at the stop", "model", *(f"width {w:g}" for w in widths)], rows


def with_error(value: float | None, error: float | None) -> str:
    """A share and its standard error, ``-`` where there is none."""
    if value is None:
        return "-"
    return f"{value:.2f}" if error is None else f"{value:.2f}±{error:.2f}"


def _by_n(title: str, summaries: Sequence[Summary], cells: Any) -> Table:
    records = [summary.record() for summary in summaries]
    shares = [f"{f:g}" for f in FRACTIONS]
    shares = [s for s in shares if any(s in r["coverage"] for r in records)]
    rows = [
        [*_names(summary), *(cells(record, share) for share in shares)]
        for summary, record in zip(summaries, records, strict=True)
    ]
    return [title, "model", *shares], rows


def _names(summary: Summary) -> list[str]:
    setting = f"{summary.data} {summary.regime} {summary.reference_fraction:g}"
    return [setting, summary.model]


def _stop(summary: Summary, width: float) -> Any:
    return next((stop for stop in summary.stops if stop.width == width), None)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
