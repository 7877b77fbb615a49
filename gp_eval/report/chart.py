"""Geometry of the pictures in an HTML report, in numbers that a template can place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gp_eval.report.content import TargetReport
from gp_eval.report.curves import Curve, curve_limits

__all__ = ["Axis", "CurveChart", "as_curve", "axis_of", "curve_chart", "ticks"]

_WIDTH, _HEIGHT = 1000.0, 400.0
"""Units of the drawing; a page stretches it to its own width and height."""
_POINTS = 400
"""Most points of a line: more than a screen can show."""


@dataclass(frozen=True)
class Axis:
    """A range of values and where they lie on it, in per cent.

    Attributes:
        low: Value at 0 %.
        high: Value at 100 %.
    """

    low: float
    high: float

    def __call__(self, value: float) -> float:
        """Place of a value, kept on the axis."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(max(share, 0.0), 1.0), 2)


@dataclass(frozen=True)
class CurveChart:
    """Estimate and interval against ``n``.

    Attributes:
        line: SVG path of the estimates, in the units of ``size``.
        band: SVG path of the intervals.
        size: Width and height of the drawing.
        x_ticks: Places in per cent from the left, and labels.
        y_ticks: Places in per cent from the bottom, and labels.
        stop: Place of the stop in per cent from the left, if it has stopped.
        stopped_at: ``n`` at the stop.
        end: Place of the present estimate, in per cent from the bottom.
    """

    line: str
    band: str
    size: tuple[float, float]
    x_ticks: list[tuple[float, str]]
    y_ticks: list[tuple[float, str]]
    stop: float | None
    stopped_at: int | None
    end: float


def as_curve(target: TargetReport) -> Curve:
    """A target as the pictures take it."""
    return Curve(
        title=target.target,
        estimates=target.curves.estimates,
        widths=target.curves.widths,
        truth=None,
        n_items=target.N,
        stop_reason=target.stop_reason,
        stopped_at=target.stopped_at,
    )


def curve_chart(target: TargetReport) -> CurveChart | None:
    """The chart of a target, ``None`` before its first item."""
    if not target.curves.estimates:
        return None
    n = len(target.curves.estimates)
    x, y = Axis(0.0, float(n)), Axis(*curve_limits(as_curve(target)))
    estimates, widths = target.curves.estimates, target.curves.widths
    shown = _shown(n, target.stopped_at)
    upper = [_point(x, y, k + 1, estimates[k] + widths[k] / 2) for k in shown]
    lower = [_point(x, y, k + 1, estimates[k] - widths[k] / 2) for k in shown]
    return CurveChart(
        line="M" + "L".join(_point(x, y, k + 1, estimates[k]) for k in shown),
        band="M" + "L".join([*upper, *reversed(lower)]) + "Z",
        size=(_WIDTH, _HEIGHT),
        x_ticks=[(x(v), label) for v, label in ticks(0.0, n, whole=True)],
        y_ticks=[(y(v), label) for v, label in ticks(y.low, y.high)],
        stop=None if target.stopped_at is None else x(target.stopped_at),
        stopped_at=target.stopped_at,
        end=y(target.estimate),
    )


def axis_of(values: Sequence[float]) -> Axis:
    """An axis with some room around the values."""
    low, high = min(values), max(values)
    pad = 0.06 * (high - low) or 0.5
    return Axis(low - pad, high + pad)


def ticks(
    low: float, high: float, *, count: int = 5, whole: bool = False
) -> list[tuple[float, str]]:
    """Round numbers from ``low`` to ``high`` with their labels.

    Args:
        low: Lower end.
        high: Upper end, above ``low``.
        count: Most steps between them.
        whole: Whole numbers only.
    """
    raw = (high - low) / count
    size = math.floor(math.log10(raw))
    step = next(s for s in (1, 2, 5, 10) if s * 10.0**size >= raw) * 10.0**size
    if whole:
        step = max(step, 1.0)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    values = [k * step for k in range(first, last + 1)]
    return [(value, f"{value:.{decimals}f}") for value in values]


def _shown(n: int, stopped_at: int | None) -> list[int]:
    """Places of the points drawn: all of few, evenly spaced ones of many."""
    if n <= _POINTS:
        return list(range(n))
    spaced = {round(k * (n - 1) / (_POINTS - 1)) for k in range(_POINTS)}
    return sorted(spaced | ({stopped_at - 1} if stopped_at else set()))


def _point(x: Axis, y: Axis, n: int, value: float) -> str:
    """A point in units of the drawing; it may lie above or below it."""
    across = _WIDTH * (n - x.low) / (x.high - x.low)
    up = _HEIGHT * (1.0 - (value - y.low) / (y.high - y.low))
    return f"{across:.1f} {up:.1f}"
