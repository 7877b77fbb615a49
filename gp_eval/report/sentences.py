"""What the numbers of a report mean, in plain words."""

from __future__ import annotations

from collections.abc import Sequence

from gp_eval.data import References
from gp_eval.data.groups import is_macro
from gp_eval.report.outcome import shortfall
from gp_eval.result import Result
from gp_eval.stopping import StoppingRule

__all__ = [
    "counted",
    "covers",
    "kind",
    "number_of",
    "stop_sentence",
    "warnings",
]

_FEW = 10
"""Evaluated items below which no number should be quoted."""


def number_of(n: int, what: str) -> str:
    """A number of things, in the singular or plural."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def counted(n: int, what: str = "item") -> str:
    """A number of things, in the singular or plural, with its verb."""
    return f"{number_of(n, what)} {'was' if n == 1 else 'were'}"


def kind(result: Result) -> str:
    """What kind of interval it is, for a machine-readable form."""
    if result.n == result.N and result.width == 0.0:
        return "exact: all items were evaluated"
    if result.range is not None and result.range.fallen_back:
        return (
            "95 % interval of a random sample with a control variate, design-based, "
            "finite benchmark"
        )
    return "95 % posterior credible interval, model-based, finite benchmark"


def covers(result: Result, references: References) -> str:
    """What the interval covers and what it does not, in one sentence."""
    mean = "weighted mean score" if references.is_weighted else "mean score"
    if is_macro(references):
        mean = "macro mean score (every group of items counts the same)"
    what = f"the {mean} of this model on these {result.N} items"
    if result.n == result.N and result.width == 0.0:
        return (
            f"All items were evaluated: this is {what} itself, and says nothing about "
            "re-runs or other items."
        )
    fallen_back = result.range is not None and result.range.fallen_back
    which = (
        "that of a random sample" if fallen_back else "a model-based credible interval"
    )
    return (
        f"The 95 % interval is {which} for {what}; it covers "
        "neither re-runs of the model nor other items."
    )


def stop_sentence(result: Result, stop: StoppingRule) -> str:
    """Why the run stopped, or what it waits for."""
    at = f"Stopped after {result.stopped_at} of {result.N} items: "
    late = ""
    if result.stopped_at is not None and result.n > result.stopped_at:
        late = f" {counted(result.n - result.stopped_at)} told after that."
    if result.stop_reason == "converged":
        return (
            f"{at}the interval was at most {stop.width:g} wide and the last "
            f"{stop.window} estimates lay within {stop.stable:g}.{late}"
        )
    if result.stop_reason == "decided":
        return f"{at}the statement was decided.{late}"
    if result.stop_reason == "max_items":
        return f"{at}the budget was spent.{late}"
    if result.stop_reason == "budget":
        return (
            f"{at}what was left of the budget of {stop.max_cost:g} did not pay for "
            f"another one.{late}"
        )
    if result.stop_reason == "complete":
        rest = "" if result.n == result.N else " that could be"
        return f"{at}all{rest} were evaluated."
    return (
        f"Not stopped: {result.n} of {result.N} items evaluated so far; the rule "
        f"wants {_rule(stop)}."
    )


def _rule(stop: StoppingRule) -> str:
    """What the rule wants, budgets left out."""
    wanted = []
    if stop.until is not None:
        wanted.append(
            f"{stop.until.statement} decided, with a probability above "
            f"{stop.until.level:g} after each of the last {stop.until.window} items"
        )
    if stop.width is not None:
        wanted.append(
            f"a width of at most {stop.width:g} and the last {stop.window} estimates "
            f"within {stop.stable:g}"
        )
    return ", or ".join(wanted)


def warnings(
    result: Result,
    references: Sequence[float],
    *,
    stop: StoppingRule,
    n_skipped: int,
) -> list[str]:
    """What a reader has to know before the number is used.

    Args:
        result: Where the run stands.
        references: Full-benchmark scores of the reference models.
        stop: The stopping rule.
        n_skipped: Items that could not be evaluated.
    """
    found = []
    if result.n < min(_FEW, result.N):
        found.append(
            f"Only {counted(result.n)} evaluated: the number is mostly what the "
            "references scored."
        )
    state = result.range
    if state is not None and state.sentence is not None:
        found.append(state.sentence)
    elif references and not min(references) <= result.mean <= max(references):
        side = "above" if result.mean > max(references) else "below"
        found.append(
            f"The estimate lies {side} all reference models. There the model "
            "extrapolates, and intervals are more often too narrow: gp-eval simulate "
            "--regime extrapolation shows how often on your references."
        )
    if result.stop_reason is None:
        found.append("The run has not stopped: the number is preliminary.")
    if (why := shortfall(result, stop)) is not None:
        found.append(f"The budget was spent before {why}.")
    if n_skipped:
        found.append(
            f"{counted(n_skipped)} skipped because the evaluation failed. That "
            "counts as unobserved, not as wrong: where hard items fail more often, the "
            "estimate is too high."
        )
    return found
