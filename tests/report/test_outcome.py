"""Sentences about decisions and costs."""

from __future__ import annotations

import pytest

from gp_eval.costs import ItemCosts
from gp_eval.decision import Decision
from gp_eval.report.outcome import cost_sentence, decision_sentence, shortfall
from gp_eval.report.sentences import stop_sentence
from gp_eval.result import Result
from gp_eval.stopping import StoppingRule

UNTIL = StoppingRule(until=Decision.parse("score>=0.7"), max_cost=5.0)
COSTS = ItemCosts([0.1, 2.0, 3.0], ["a", "b", "c"])


def result(n: int = 2, **more) -> Result:
    usual = {
        "target": "t", "mean": 0.8, "low": 0.7, "high": 0.9, "n": n, "N": 3,
        "stop_reason": None, "items": [], "estimates": [], "widths": [],
    }  # fmt: skip
    return Result(**usual | more)


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        (result(0), "Whether score>=0.7 is not decided: no score is there yet."),
        (result(2), "Whether score>=0.7 is not decided: all scores are equal so far."),
        (
            result(2, probability=0.93),
            "Whether score>=0.7 is not decided: its posterior probability is 0.9300.",
        ),
        (
            result(2, probability=0.99996, verdict=True),
            "score>=0.7 holds: its posterior probability is above 0.9999. How often",
        ),
        (
            result(2, probability=1e-9, verdict=False),
            "score>=0.7 does not hold: its posterior probability is below 0.0001. How",
        ),
        (
            result(3, probability=1.0, verdict=True),
            "score>=0.7 holds: all items were evaluated.",
        ),
    ],
)
def test_a_decision_is_said_with_its_probability(now: Result, sentence: str) -> None:
    said = decision_sentence(now, UNTIL)
    assert said is not None
    assert said.startswith(sentence)
    assert decision_sentence(now, StoppingRule()) is None


def test_costs_are_said_with_the_budget_and_the_whole() -> None:
    now = result(cost=2.1)
    said = cost_sentence(now, UNTIL, COSTS)
    assert said == "Cost so far: 2.1 of at most 5; all 3 items cost 5.1."
    free = cost_sentence(now, StoppingRule(), COSTS)
    assert free == "Cost so far: 2.1; all 3 items cost 5.1."
    assert cost_sentence(result(), UNTIL, None) is None


@pytest.mark.parametrize(
    ("reason", "verdict", "width", "said"),
    [
        ("budget", None, None, "score>=0.7 was decided"),
        ("max_items", None, 0.05, "score>=0.7 was decided"),
        ("budget", True, 0.05, "the wanted width of 0.05 was reached"),
        ("budget", True, None, None),
        ("decided", True, 0.05, None),
        ("complete", None, 0.05, None),
        (None, None, 0.05, None),
    ],
)
def test_what_a_spent_budget_left_open(
    reason: str | None, verdict: bool | None, width: float | None, said: str | None
) -> None:
    stop = StoppingRule(until=UNTIL.until, width=width)
    now = result(stop_reason=reason, verdict=verdict)
    assert shortfall(now, stop) == said


def test_the_rule_in_words_names_statement_and_width() -> None:
    both = StoppingRule(until=UNTIL.until, width=0.03)
    assert stop_sentence(result(), both).endswith(
        "the rule wants score>=0.7 decided, with a probability above 0.95 after each "
        "of the last 30 items, or a width of at most 0.03 and the last 30 estimates "
        "within 0.005."
    )
    spent = result(stop_reason="budget", stopped_at=2)
    assert stop_sentence(spent, UNTIL) == (
        "Stopped after 2 of 3 items: what was left of the budget of 5 did not pay for "
        "another one."
    )
