"""Statements about the score: read strictly, decided by a window of probabilities."""

from __future__ import annotations

import math

import pytest
import torch
from decisions import literal_verdict
from scipy.stats import norm

from gp_eval import References
from gp_eval.decision import Decision, check_threshold
from gp_eval.models.protocol import Performance
from gp_eval.stopping import StoppingRule

SIGNS = (">=", "<=", ">", "<")


def belief(mean: object, variance: object) -> Performance:
    return Performance(
        torch.as_tensor(mean, dtype=torch.float64),
        torch.as_tensor(variance, dtype=torch.float64),
    )


@pytest.mark.parametrize(
    ("text", "relation", "threshold"),
    [
        ("score>=0.70", ">=", 0.7),
        (" score <= 1 ", "<=", 1.0),
        ("score>-2.5", ">", -2.5),
        ("score < +1e-3", "<", 1e-3),
        ("score>=.5", ">=", 0.5),
        ("score>=5.", ">=", 5.0),
    ],
)
def test_a_statement_is_a_relation_and_a_number(
    text: str, relation: str, threshold: float
) -> None:
    decision = Decision.parse(text)
    assert (decision.relation, decision.threshold) == (relation, threshold)
    assert Decision.parse(decision.statement) == decision


@pytest.mark.parametrize(
    "text",
    [
        "", "score", "score>=", ">=0.7", "score=0.7", "score==0.7", "score!=0.7",
        "acc>=0.7", "Score>=0.7", "score>=70%", "score>=nan", "score>=inf",
        "score>=0.7 and score<=0.9", "0.7<=score", "score=>0.7", "score>=0,7",
        "score>=0.7\nscore>=0.8", "score>=0x1", "score>=1_0", "score>=--1",
    ],
)  # fmt: skip
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match=r"until: expected 'score>=NUMBER'"):
        Decision.parse(text)


def test_what_a_shell_leaves_of_an_unquoted_statement_is_explained() -> None:
    with pytest.raises(ValueError, match="quote it"):
        Decision.parse("score")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": 0.5}, "level: expected 0.5 < level < 1, got 0.5"),
        ({"level": 1.0}, "level: expected"),
        ({"level": math.nan}, "level: expected"),
        ({"window": 0}, "window: expected at least 1, got 0"),
        ({"threshold": math.inf}, "threshold: expected a finite number"),
        ({"relation": "=="}, "relation: expected one of"),
    ],
)
def test_bad_values_are_named(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Decision(**{"relation": ">=", "threshold": 0.7, **options})


# Probability


@pytest.mark.parametrize("sign", SIGNS)
def test_probability_is_the_tail_of_the_normal_distribution(sign: str) -> None:
    decision = Decision.parse(f"score{sign}0.7")
    for mean in (0.2, 0.69, 0.7, 0.75):
        for std in (1e-3, 0.02, 0.3):
            got = float(decision.probability(belief(mean, std**2)))
            literal = 0.5 * math.erfc((0.7 - mean) / std / math.sqrt(2.0))
            tail = norm.sf(0.7, mean, std)
            if sign in ("<=", "<"):
                literal, tail = 1.0 - literal, norm.cdf(0.7, mean, std)
            assert got == pytest.approx(literal, rel=1e-10, abs=1e-15)
            # The far tail of one minus the other is rounding.
            assert got == pytest.approx(tail, rel=1e-10, abs=1e-15)


def test_a_statement_and_its_contrary_share_the_probability() -> None:
    now = belief([0.1, 0.5, 0.9], [0.01, 0.02, 0.03])
    yes = Decision.parse("score>=0.6").probability(now)
    no = Decision.parse("score<0.6").probability(now)
    torch.testing.assert_close(yes + no, torch.ones(3, dtype=torch.float64))


def test_a_narrower_interval_makes_the_side_it_is_on_more_probable() -> None:
    decision = Decision.parse("score>=0.6")
    p = decision.probability(belief([0.65] * 3, [0.04, 0.01, 0.001]))
    assert bool((p.diff() > 0.0).all())
    assert float(p[0]) > 0.5


def test_no_spread_or_an_unknown_one_has_no_probability() -> None:
    p = Decision.parse("score>=0.6").probability(
        belief([1.0, 1.0, math.nan], [0.0, math.nan, 0.1])
    )
    assert p.isnan().all()


# Verdict


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_verdicts_against_the_rule_spelled_out(batch: int) -> None:
    decision = Decision.parse("score>=0.5", level=0.9, window=3)
    generator = torch.Generator().manual_seed(batch)
    found = set()
    for trial in range(300):
        draw = torch.rand(trial % 11, generator=generator, dtype=torch.float64)
        p = draw.pow(0.05 if trial % 2 else 20.0).tolist()
        verdict = decision.verdict(p, batch=batch)
        assert verdict is literal_verdict(decision, p, batch)
        found.add(verdict)
    assert found == {True, False, None}


def test_one_doubtful_item_in_the_window_holds_the_verdict_back() -> None:
    decision = Decision.parse("score>=0.5", window=3)
    assert decision.verdict([0.99, 0.99, 0.99]) is True
    assert decision.verdict([0.5, 0.99, 0.99, 0.99]) is True
    assert decision.verdict([0.99, 0.95, 0.99]) is None
    assert decision.verdict([0.01, 0.99, 0.99]) is None
    assert decision.verdict([0.01, 0.02, 0.03]) is False
    assert decision.verdict([0.99, math.nan, 0.99]) is None
    assert decision.verdict([0.99, 0.99]) is None
    assert decision.verdict([]) is None


@pytest.mark.parametrize(
    ("sign", "at", "above", "below"),
    [
        (">=", True, True, False),
        (">", False, True, False),
        ("<=", True, False, True),
        ("<", False, False, True),
    ],
)
def test_a_known_score_is_compared_as_it_is_written(
    sign: str, at: bool, above: bool, below: bool
) -> None:
    decision = Decision.parse(f"score{sign}0.7")
    assert decision.holds(0.7) is at
    assert decision.holds(0.7 + 1e-9) is above
    assert decision.holds(0.7 - 1e-9) is below
    # 0.1 * 7 is 0.7000000000000001: the rounding of a mean of decimals.
    assert 0.1 * 7 != 0.7
    assert decision.holds(0.1 * 7) is at
    percent = Decision.parse(f"score{sign}70")
    assert percent.holds(70.0 * (1.0 + 4e-16)) is at


def test_a_threshold_in_other_units_is_refused() -> None:
    references = References([[0.0, 1.0], [1.0, 1.0]], ["a", "b"], ["x", "y"])
    for inside in ("score>=0.7", "score>=0", "score<=1"):
        check_threshold(Decision.parse(inside), references)
    with pytest.raises(ValueError, match=r"score>=70\.0: .* between 0 and 1"):
        check_threshold(Decision.parse("score>=70"), references)


# In the stopping rule


def test_with_a_statement_the_width_stops_nothing_unless_it_is_given() -> None:
    until = Decision.parse("score>=0.7", window=1)
    assert StoppingRule().width == 0.03
    assert StoppingRule(until=until).width is None
    calm = [0.5] * 30
    assert not StoppingRule(until=until).met(calm, 0.0)
    assert StoppingRule(until=until, width=0.03).met(calm, 0.01)


def test_a_budget_below_the_window_of_a_decision_is_refused() -> None:
    until = Decision.parse("score>=0.7")
    with pytest.raises(ValueError, match="nothing is decided before 30 items, got 29"):
        StoppingRule(until=until, max_items=29)
    assert StoppingRule(until=until, max_items=30).max_items == 30


@pytest.mark.parametrize("cost", [-1.0, math.nan, math.inf])
def test_a_budget_of_costs_is_a_number(cost: float) -> None:
    with pytest.raises(ValueError, match="max_cost: expected a finite number >= 0"):
        StoppingRule(max_cost=cost)
