"""What was decided and what was spent, in plain words."""

from __future__ import annotations

from gp_eval.costs import ItemCosts
from gp_eval.result import Result
from gp_eval.stopping import StoppingRule

__all__ = ["cost_sentence", "decision_sentence", "shortfall"]


def decision_sentence(result: Result, stop: StoppingRule) -> str | None:
    """What is known about the statement, ``None`` without one."""
    if stop.until is None:
        return None
    statement, p = stop.until.statement, result.probability
    holds = f"{statement} {'holds' if result.verdict else 'does not hold'}"
    if result.n == result.N:
        return f"{holds}: all items were evaluated."
    if p is None:
        why = "all scores are equal so far" if result.n else "no score is there yet"
        return f"Whether {statement} is not decided: {why}."
    chance = f"its posterior probability is {_probability(p)}"
    if result.verdict is None:
        return f"Whether {statement} is not decided: {chance}."
    return (
        f"{holds}: {chance}. How often such a verdict is wrong, gp-eval simulate "
        "--until shows on your references."
    )


def _probability(p: float) -> str:
    """A probability that is never rounded to certainty."""
    if p > 0.9999:
        return "above 0.9999"
    return "below 0.0001" if p < 0.0001 else f"{p:.4f}"


def cost_sentence(
    result: Result, stop: StoppingRule, costs: ItemCosts | None
) -> str | None:
    """What was spent, ``None`` without costs."""
    if costs is None or result.cost is None:
        return None
    limit = "" if stop.max_cost is None else f" of at most {stop.max_cost:g}"
    return (
        f"Cost so far: {result.cost:g}{limit}; all {result.N} items cost "
        f"{costs.total():g}."
    )


def shortfall(result: Result, stop: StoppingRule) -> str | None:
    """What a budget that was spent left open, ``None`` where there is nothing."""
    if result.stop_reason not in ("max_items", "budget"):
        return None
    if stop.until is not None and result.verdict is None:
        return f"{stop.until.statement} was decided"
    if stop.width is not None and result.width > stop.width:
        return f"the wanted width of {stop.width:g} was reached"
    return None
