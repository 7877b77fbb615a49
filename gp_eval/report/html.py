"""The report as one HTML file that needs nothing else: no script, no request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from gp_eval.data.groups import STORED
from gp_eval.report.beside import Beside, Gap, beside
from gp_eval.report.chart import Axis, CurveChart, axis_of, curve_chart
from gp_eval.report.content import Report, TargetReport
from gp_eval.report.group_content import GroupRow, group_rows
from gp_eval.report.sentences import counted
from gp_eval.report.text import Digits, facts, percent, plain, rank

__all__ = ["html_report"]


@dataclass(frozen=True)
class _Target:
    """A target with what the page draws of it."""

    report: TargetReport
    digits: Digits
    chart: CurveChart | None
    axis: Axis | None
    rank: str
    groups: list[GroupRow]
    group_by: str | None
    """Where groups come from, if not from the references."""


def html_report(report: Report) -> str:
    """One self-contained page.

    Names and ids are escaped, and the page forbids itself scripts and requests by a
    content security policy.
    """
    targets = [_target(target, len(report.references)) for target in report.targets]
    rows = beside(report)
    return _template().render(
        report=report,
        targets=targets,
        title=", ".join(plain(target.target) for target in report.targets),
        ranking_axis=_axis([(r.low, r.high) for r in report.comparison.ranking]),
        beside=[(isinstance(row, Gap), row) for row in rows],
        beside_axis=_axis(
            [(row.low, row.high) for row in rows if isinstance(row, Beside)]
        ),
        digits=Digits(min(target.width for target in report.targets)),
        facts=facts(report),
    )


def _target(target: TargetReport, n_references: int) -> _Target:
    scores = [row.score for row in group_rows(target)]
    ends = [(score.low, score.high) for score in scores]
    ends += [(score.references_mean, score.references_mean) for score in scores]
    return _Target(
        report=target,
        digits=Digits(target.width),
        chart=curve_chart(target),
        axis=_axis(ends),
        rank=rank(target, n_references),
        groups=group_rows(target),
        group_by=None if target.group_by == STORED else target.group_by,
    )


def _axis(ends: Sequence[tuple[float, float]]) -> Axis | None:
    return axis_of([value for pair in ends for value in pair]) if ends else None


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(plain=plain, percent=percent, counted=counted)
    source = files("gp_eval.report").joinpath("report.html.j2")
    return environment.from_string(source.read_text(encoding="utf-8"))
