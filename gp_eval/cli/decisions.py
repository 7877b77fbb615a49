"""Tables of how often decisions are wrong, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from gp_eval.cli.output import note, print_table
from gp_eval.experiments.decisions import DecisionRates, DecisionSummary

__all__ = ["print_decisions"]


def print_decisions(summaries: Sequence[DecisionSummary]) -> None:
    """All rates of one decision rule, models as rows, at least one."""
    decision = summaries[0].decision
    print_table(
        [decision.statement, "model", "decisions", "wrong", "undecided", "items"],
        [
            [
                _setting(s),
                s.model,
                str(s.overall.runs),
                *(_percent(v) for v in _three(s.overall)),
            ]
            for s in summaries
        ],
    )
    _by("|R - threshold|", summaries, lambda s: s.by_margin)
    _by("threshold away from R by", summaries, lambda s: s.relative)
    note(
        f"Decided once the posterior probability of {decision.statement}, or of its "
        f"contrary, exceeded {decision.level:g} after each of {decision.window} items. "
        "A cell, in per cent: wrong/undecided before the last item/mean share of the "
        "items. The last table sets the threshold at a distance from the true score "
        "of each target, below it and above."
    )


def _by(
    what: str,
    summaries: Sequence[DecisionSummary],
    classes: Callable[[DecisionSummary], Sequence[DecisionRates]],
) -> None:
    names = [_name(rates) for rates in classes(summaries[0])]
    print_table(
        [what, "model", *names],
        [
            [_setting(s), s.model, *(_cell(rates) for rates in classes(s))]
            for s in summaries
        ],
    )


def _setting(summary: DecisionSummary) -> str:
    return f"{summary.data} {summary.regime} {summary.reference_fraction:g}"


def _name(rates: DecisionRates) -> str:
    if rates.low == rates.high:
        return f"{rates.low:g}"
    end = "more" if math.isinf(rates.high) else f"{rates.high:g}"
    return f"{rates.low:g}-{end}"


def _three(rates: DecisionRates) -> list[float | None]:
    return [rates.error, rates.undecided, rates.mean_fraction]


def _cell(rates: DecisionRates) -> str:
    if rates.error is None or rates.undecided is None or rates.mean_fraction is None:
        return "-"
    others = (rates.undecided, rates.mean_fraction)
    return "/".join(
        [f"{100.0 * rates.error:.1f}", *(f"{100.0 * v:.0f}" for v in others)]
    )


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100.0 * value:.3g} %"
