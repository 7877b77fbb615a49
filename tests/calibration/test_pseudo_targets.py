from __future__ import annotations

import pytest
import torch
from populations import population

from gp_eval._random import random_order
from gp_eval.calibration import folds, own_variances, squared_errors
from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models import make_model
from gp_eval.stopping import StoppingRule

TABLE = population(20, 16)


@pytest.mark.parametrize("n_models", [2, 3, 4, 5, 9, 20, 40])
@pytest.mark.parametrize("n_targets", [1, 2, 10])
def test_targets_are_left_out_and_few_at_a_time(n_models: int, n_targets: int) -> None:
    table = population(n_models, 8)
    found = folds(table, n_targets, seed=3)
    total = sum(len(fold.targets) for fold in found)
    assert 1 <= total <= n_targets
    for fold in found:
        assert fold.rest
        assert len(fold.targets) <= max(1, n_models // 5)
        assert not set(fold.targets) & set(fold.rest)
        assert list(fold.rest) == sorted(fold.rest)


def test_the_strongest_are_predicted_from_far_weaker_ones() -> None:
    found = folds(TABLE, 10, seed=0)
    performance = TABLE.performance
    strong, weak = list(found[0].targets), list(found[0].rest)
    assert len(strong) == 4
    assert len(weak) == 12
    assert set(strong) == set(performance.topk(4).indices.tolist())
    assert float(performance[weak].max()) < float(performance[strong].min())


def test_random_targets_are_different_ones_and_predicted_from_all_others() -> None:
    found = folds(TABLE, 10, seed=0)[1:]
    targets = [k for fold in found for k in fold.targets]
    assert len(targets) == len(set(targets)) == 6
    assert all(len(fold.targets) + len(fold.rest) == 20 for fold in found)
    assert folds(TABLE, 10, seed=0)[1:] == found
    assert folds(TABLE, 10, seed=1)[1:] != found


@pytest.mark.parametrize("model", ["bayesame", "rs-mean", "proeval"])
def test_errors_are_those_of_runs_one_by_one(model: str) -> None:
    found = squared_errors(TABLE, model, {}, n_targets=6, max_items=9, seed=4)
    never = StoppingRule(width=1e-12)
    expected = []
    for number, fold in enumerate(folds(TABLE, 6, seed=4), start=1):
        left = TABLE.subset(models=[TABLE.models[k] for k in fold.rest])
        own = float(own_variances(left).mean())
        for k in fold.targets:
            loop = EvaluationLoop(
                make_model(model, left),
                left,
                stop=never,
                order=random_order(16, 4 + number),
            )
            row = []
            for n in range(1, 10):
                (item,) = loop.ask()
                loop.tell(item, float(TABLE.scores[item, k]))
                error = loop.estimate - float(TABLE.scores[:, k].mean())
                floor = own / 16 * (1 - n / 16)
                row.append(error**2 / max(loop.variance, floor))
            expected.append(row)
    # Lock-step and one by one agree to rounding, which conditioning enlarges.
    assert found.numpy() == pytest.approx(torch.tensor(expected).numpy(), rel=1e-6)


def test_runs_never_reach_the_end_where_nothing_is_left_to_be_wrong_about() -> None:
    errors = squared_errors(TABLE, "rs-mean", {}, n_targets=2, max_items=99, seed=0)
    assert errors.shape == (2, 15)
    assert bool(errors.isfinite().all())


def test_a_benchmark_of_one_item_has_no_errors() -> None:
    table = TABLE.subset(items=TABLE.items[:1])
    errors = squared_errors(table, "rs-mean", {}, n_targets=2, max_items=9, seed=0)
    assert errors.numel() == 0


def test_weights_of_references_go_with_them() -> None:
    def run(weights: list[float]) -> torch.Tensor:
        options = {"weights": weights}
        return squared_errors(
            TABLE, "bayesame", options, n_targets=4, max_items=5, seed=0
        )

    # Equal weights are the published prior, so that only who is left out matters.
    plain = squared_errors(TABLE, "bayesame", {}, n_targets=4, max_items=5, seed=0)
    assert run([1.0] * 20).numpy() == pytest.approx(plain.numpy(), rel=1e-6)
    assert not torch.allclose(run([1.0 + k for k in range(20)]), plain)


def test_a_certain_belief_that_is_right_is_no_error() -> None:
    scores = torch.ones(16, 20, dtype=torch.float64)
    scores[:, 0] = 0.0
    table = References(scores, list(TABLE.items), list(TABLE.models))
    errors = squared_errors(table, "rs-mean", {}, n_targets=4, max_items=9, seed=0)
    assert errors[:, 1:].tolist() == [[0.0] * 8] * 4


def test_a_model_that_refuses_what_is_left_says_so() -> None:
    table = TABLE.subset(models=TABLE.models[:2])
    with pytest.raises(ValueError, match="'proeval' cannot run on the 1 of 2 refer"):
        squared_errors(table, "proeval", {}, n_targets=2, max_items=3, seed=0)


@pytest.mark.parametrize("at_once", [1, 2, 3, 9])
def test_folds_have_no_more_targets_than_the_model(at_once: int) -> None:
    found = folds(TABLE, 10, seed=0, at_once=at_once)
    usual = folds(TABLE, 10, seed=0)
    assert max(len(fold.targets) for fold in found) == min(at_once, 4)
    flat = [k for fold in found for k in fold.targets]
    assert flat == [k for fold in usual for k in fold.targets]
    # The strongest are predicted from the same weaker ones, in as many runs.
    strong = [fold for fold in found if set(fold.targets) <= set(usual[0].targets)]
    assert {fold.rest for fold in strong if len(fold.rest) == 12} == {usual[0].rest}
