"""The report as Markdown, for a pull request or a model card."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from gp_eval.data.groups import STORED
from gp_eval.report.beside import Gap, beside
from gp_eval.report.content import Report, TargetReport
from gp_eval.report.group_content import group_rows
from gp_eval.report.sentences import counted
from gp_eval.report.text import Digits, facts, percent, plain, rank

__all__ = ["markdown_report"]

_SPECIAL = re.compile(r"([\\`*_\[\]|~#@$]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
_LISTED = 50
"""Pending or skipped items named."""


def markdown_report(report: Report) -> str:
    """The report as GitHub-flavoured Markdown; names are escaped."""
    parts = ["# gp-eval report"]
    if len(report.targets) > 1:
        parts += _ranking(report)
    for target in report.targets:
        parts += _target(target, len(report.references))
    parts += _beside(report)
    parts += ["## Settings and provenance"]
    rows = [(_text(name), _text(value)) for name, value in facts(report)]
    parts += [_table(["setting", "value"], rows, numbers=False)]
    return "\n\n".join(parts) + "\n"


def _ranking(report: Report) -> list[str]:
    parts = ["## Ranking", report.comparison.note]
    digits = Digits(min(target.width for target in report.targets))
    if not report.comparison.ranking:
        return parts
    ranking = [
        [
            _text(row.target),
            str(row.rank_best)
            if row.rank_best == row.rank_worst
            else f"{row.rank_best} to {row.rank_worst}",
            digits(row.estimate),
            digits.interval(row.low, row.high),
            _text(", ".join(row.tied_with)),
        ]
        for row in report.comparison.ranking
    ]
    pairs = [
        [
            f"{_text(pair.a)} - {_text(pair.b)}",
            digits(pair.difference),
            digits.interval(pair.low, pair.high),
            percent(pair.probability_a_better),
            "yes" if pair.tied else "no",
        ]
        for pair in report.comparison.pairs
    ]
    return [
        *parts,
        _table(["target", "rank", "estimate", "95 % interval", "tied with"], ranking),
        _table(
            ["pair", "difference", "95 % interval", "P(first is better)", "tied"], pairs
        ),
    ]


def _target(target: TargetReport, n_references: int) -> list[str]:
    digits = Digits(target.width)
    by = f" ({_text(target.group_by)})" if target.group_by not in (None, STORED) else ""
    parts = [
        f"## {_text(target.target)}",
        f"**{digits(target.estimate)}**, 95 % interval "
        f"{digits.interval(target.low, target.high)} ({digits(target.width)} wide), "
        + ("estimated " if target.n < target.N else "")
        + f"from {target.n} of {target.N} items.",
        target.covers,
        target.stop,
        *(_text(s) for s in (target.decision, target.spending) if s is not None),
        f"Beside the references: {rank(target, n_references)}.",
        *(f"> {warning}" for warning in target.warnings),
        f"### Score by group{by}",
        target.groups_note,
    ]
    if target.groups:
        parts.append(_groups(target, digits))
    parts += ["### Where it differs most from what was predicted"]
    parts += [target.surprises_note]
    if target.surprises:
        parts.append(_surprises(target))
    if target.skipped:
        names = [f"{item.item} ({item.reason})" for item in target.skipped]
        parts.append(f"{counted(len(names))} skipped: {_some(names)}.")
    if target.pending:
        names = target.pending
        parts.append(f"{counted(len(names))} asked for and not told: {_some(names)}.")
    return parts


def _groups(target: TargetReport, digits: Digits) -> str:
    rows = [
        [
            _text(row.label) if row.is_group else f"*{row.label}*",
            row.counts,
            digits(row.score.estimate),
            digits.interval(row.score.low, row.score.high),
            digits(row.score.references_mean),
        ]
        for row in group_rows(target)
    ]
    return _table(["group", "n", "score", "95 % interval", "references"], rows)


def _surprises(target: TargetReport) -> str:
    rows = [
        [
            _text(item.item),
            "" if item.group is None else _text(item.group),
            f"{item.score:.4g}",
            f"{item.predicted:.3f} ± {item.predicted_std:.3f}",
            f"{item.references_mean:.3f}",
            f"{item.surprise:+.1f}",
        ]
        for item in target.surprises
    ]
    columns = ["item", "group", "score", "predicted", "references", "surprise"]
    return _table(columns, rows)


def _beside(report: Report) -> list[str]:
    digits = Digits(min(target.width for target in report.targets))
    rows = []
    for row in beside(report):
        if isinstance(row, Gap):
            rows.append([f"{row.n} more", "", ""])
        elif row.is_target:
            name = f"**{_text(row.name)}**"
            rows.append([name, digits(row.score), digits.interval(row.low, row.high)])
        else:
            rows.append([_text(row.name), digits(row.score), ""])
    return [
        "## Beside the reference models",
        _table(["model", "score", "95 % interval"], rows),
    ]


def _table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: bool = True
) -> str:
    """A table whose first column holds names and the others numbers or texts."""
    rule = ["---"] + ["---:" if numbers else "---"] * (len(columns) - 1)
    lines = [columns, rule, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(_text(name) for name in names[:_LISTED]) + more


def _text(text: str) -> str:
    """A name that is shown as it is: neither Markdown nor HTML, nor a link."""
    return _SPECIAL.sub(r"\\\1", html.escape(plain(text), quote=False))
