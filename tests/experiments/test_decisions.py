"""Error rates of decisions against the rule applied run by run."""

from __future__ import annotations

import json
import math

import pytest
import torch
from simulated import N, result

from gp_eval.decision import Decision
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.decisions import first_decision, summarise_decisions
from gp_eval.experiments.store import CellResult
from gp_eval.models.protocol import Performance

RULE = Decision.parse("score>=0.48", level=0.9, window=4)


def overconfident(seed: int) -> CellResult:
    """A belief ten times as narrow as it should be."""
    one = result(seed)
    curves = Curves(one.curves.mean, one.curves.variance / 100.0)
    return CellResult(**vars(one) | {"curves": curves})


def literal(mean: list[float], variance: list[float], truth: float, rule: Decision):
    """Items, verdict and whether it was decided, as a run would find it."""
    seen: list[float] = []
    for m, v in zip(mean, variance, strict=True):
        if len(seen) + 1 == N:
            return N, rule.holds(truth), False
        now = Performance(
            torch.tensor(m, dtype=torch.float64), torch.tensor(v, dtype=torch.float64)
        )
        seen.append(float(rule.probability(now)))
        verdict = rule.verdict(seen)
        if verdict is not None:
            return len(seen), verdict, True
    return len(mean), None, False


@pytest.mark.parametrize("n_max", [N, 20, 3])
@pytest.mark.parametrize("sign", [">=", "<"])
def test_first_decisions_are_those_of_the_rule(n_max: int, sign: str) -> None:
    rule = Decision.parse(f"score{sign}0.48", level=0.9, window=4)
    kinds = set()
    for seed in range(8):
        one = result(seed, n_max=n_max)
        n, verdict, decided = first_decision(
            one.curves.mean, one.curves.variance, rule, truth=one.truth, n_items=N
        )
        for run in range(3):
            expected = literal(
                one.curves.mean[run].tolist(),
                one.curves.variance[run].tolist(),
                float(one.truth[run]),
                rule,
            )
            assert (int(n[run]), bool(decided[run])) == (expected[0], expected[2])
            if expected[1] is not None:
                assert bool(verdict[run]) is expected[1]
            kinds.add((expected[2], expected[1]))
    if n_max > 3:
        assert {(True, True), (True, False)} <= kinds
    else:
        assert kinds == {(False, None)}


def test_curves_that_begin_with_nothing_are_decided_later() -> None:
    one = result(0)
    mean, variance = one.curves.mean.clone(), one.curves.variance.clone()
    mean[:, :10] = variance[:, :10] = math.nan
    n, _, decided = first_decision(mean, variance, RULE, truth=one.truth, n_items=N)
    assert bool(decided[0])
    assert int(n.min()) >= 14


def test_rates_are_shares_of_runs() -> None:
    results = [result(seed) for seed in range(12)]
    (summary,) = summarise_decisions(results, RULE, margins=(0.0, 0.05, math.inf))
    runs = [
        (
            literal(
                r.curves.mean[t].tolist(),
                r.curves.variance[t].tolist(),
                float(r.truth[t]),
                RULE,
            ),
            float(r.truth[t]),
        )
        for r in results
        for t in range(3)
    ]
    for rates, chosen in (
        (summary.overall, runs),
        (summary.by_margin[0], [r for r in runs if abs(r[1] - 0.48) < 0.05]),
        (summary.by_margin[1], [r for r in runs if abs(r[1] - 0.48) >= 0.05]),
    ):
        assert rates.runs == len(chosen) > 0
        wrong = [d and v is not (t >= 0.48) for (_, v, d), t in chosen]
        assert rates.error == pytest.approx(sum(wrong) / len(chosen))
        assert rates.undecided == pytest.approx(
            sum(not d for (_, _, d), _ in chosen) / len(chosen)
        )
        assert rates.mean_fraction == pytest.approx(
            sum(n for (n, _, _), _ in chosen) / len(chosen) / N
        )


def test_relative_thresholds_lie_on_both_sides_of_each_truth() -> None:
    results = [overconfident(seed) for seed in range(12)]
    rule = Decision.parse("score>=0.48", level=0.9, window=2)
    (summary,) = summarise_decisions(results, rule, distances=(0.01, 0.05))
    for rates, distance in zip(summary.relative, (0.01, 0.05), strict=True):
        wrong = n = 0
        for r in results:
            for t in range(3):
                truth = float(r.truth[t])
                for threshold in (truth - distance, truth + distance):
                    rule = Decision(
                        relation=">=", threshold=threshold, level=0.9, window=2
                    )
                    items, verdict, decided = literal(
                        r.curves.mean[t].tolist(),
                        r.curves.variance[t].tolist(),
                        truth,
                        rule,
                    )
                    wrong += decided and verdict is not (truth >= threshold)
                    n += items
        assert rates.runs == 72
        assert (rates.low, rates.high) == (distance, distance)
        assert rates.error == pytest.approx(wrong / 72)
        assert rates.mean_fraction == pytest.approx(n / 72 / N)
    near, far = summary.relative
    assert near.error > far.error
    assert near.mean_fraction > far.mean_fraction


def test_a_longer_window_trades_items_for_errors() -> None:
    results = [overconfident(seed) for seed in range(60)]
    rates = [
        summarise_decisions(
            results,
            Decision.parse("score>=0.5", window=window),
            distances=(0.01,),
        )[0].relative[0]
        for window in (1, 2, 4)
    ]
    assert rates[0].error > rates[1].error > rates[2].error
    assert rates[0].mean_fraction < rates[1].mean_fraction < rates[2].mean_fraction


def test_an_honest_belief_that_is_looked_at_once_errs_as_often_as_it_says() -> None:
    """One look, at the end of the window, is what the level is about."""
    generator = torch.Generator().manual_seed(0)
    truth = 0.05 * torch.randn(4000, generator=generator, dtype=torch.float64)
    noise = 0.05 * torch.randn(4000, generator=generator, dtype=torch.float64)
    # Prior and score of the same variance: half the sum is the posterior mean.
    mean, variance = (truth + noise) / 2.0, torch.full((4000, 1), 0.05**2 / 2.0)
    rule = Decision.parse("score>=0", window=1, level=0.9)
    n, verdict, decided = first_decision(
        mean.unsqueeze(-1), variance.double(), rule, truth=truth, n_items=50
    )
    assert bool((n == 1).all())
    error = float((verdict != (truth >= 0))[decided].double().mean())
    # The mean of 1 - P over what lies beyond the level: by simulation of the belief.
    p = rule.probability(Performance(mean, variance.squeeze(-1).double()))
    sure = torch.maximum(p, 1 - p)
    expected = float((1 - sure[sure > 0.9]).mean())
    assert error == pytest.approx(expected, abs=0.01)
    assert error < 0.1


def test_classes_without_a_run_have_no_rates() -> None:
    (summary,) = summarise_decisions([result(0)], RULE, margins=(0.5, 0.6))
    (empty,) = summary.by_margin
    assert (empty.runs, empty.error, empty.undecided) == (0, None, None)
    json.dumps(summary.record(), allow_nan=False)


def test_record_has_the_documented_keys() -> None:
    (summary,) = summarise_decisions([result(0)], RULE)
    record = summary.record()
    rates = ["runs", "error", "undecided", "mean_fraction"]
    assert list(record) == [
        "statement", "level", "window", *rates, "by_margin", "relative",
    ]  # fmt: skip
    assert list(record["by_margin"][0]) == ["low", "high", *rates]
    assert record["by_margin"][-1]["high"] is None
    assert list(record["relative"][0]) == ["distance", *rates]
    assert sum(rates["runs"] for rates in record["by_margin"]) == record["runs"] == 3
    json.dumps(record, allow_nan=False)


def test_one_summary_for_each_model_and_setting() -> None:
    results = [
        result(seed, model=model, regime=regime)
        for seed in range(2)
        for model in ("rs-mean", "bayesame")
        for regime in ("interpolation", "extrapolation")
    ]
    summaries = summarise_decisions(results, RULE)
    assert [(s.model, s.regime) for s in summaries] == [
        ("rs-mean", "interpolation"),
        ("rs-mean", "extrapolation"),
        ("bayesame", "interpolation"),
        ("bayesame", "extrapolation"),
    ]


def test_at_the_end_the_verdict_is_exact_whatever_the_curve_says() -> None:
    one = result(0)
    wrong = CellResult(
        **vars(one)
        | {
            "curves": Curves(
                torch.full((3, N), 9.0, dtype=torch.float64),
                torch.zeros(3, N, dtype=torch.float64),
            )
        }
    )
    (summary,) = summarise_decisions([wrong], RULE)
    assert (summary.overall.error, summary.overall.undecided) == (0.0, 1.0)
    assert summary.overall.mean_fraction == 1.0
