from __future__ import annotations

import math

import pytest
import torch
from multi_target_sessions import SharedMean
from populations import population

from gp_eval import MultiTargetLoop, StoppingRule
from gp_eval.calibration import (
    CalibratedTargets,
    Inflation,
    fit_inflation,
    learn,
    own_variances,
)
from gp_eval.models import (
    MultiTargetModel,
    Performance,
    SupportsItemBelief,
    SupportsRefit,
    make_model,
)

NEVER = StoppingRule(width=1e-12)
EVERYONE = population(14, 20)
TABLE = EVERYONE.subset(models=EVERYONE.models[:12])
SCORES = EVERYONE.scores[:, 12:].T
KNOWN = Inflation((0.1, 0.5), (3.0, 1.5))
OPTIONS = {"initial": 0.2, "steps": 20, "refit_every": 4}


def wrapped(**options) -> CalibratedTargets:
    made = make_model(
        "bayesame-multi-calibrated", TABLE, n_targets=2, options=OPTIONS | options
    )
    made.replay_updates({0: KNOWN.record()})
    return made


def rows(*pairs: tuple[int, int]) -> torch.Tensor:
    return torch.tensor(pairs)


def tell(model: MultiTargetModel, *pairs: tuple[int, int]) -> None:
    scores = torch.stack([SCORES[target, item] for item, target in pairs])
    model.condition(rows(*pairs), scores)


def run(model: MultiTargetModel, rounds: int) -> MultiTargetLoop:
    loop = MultiTargetLoop(model, TABLE, stop=NEVER, seed=2)
    for _ in range(2 * rounds):
        for target, item in loop.ask():
            loop.tell(target, item, float(SCORES[target, item]))
    return loop


class Believes:
    """A belief about two targets that is always the same."""

    n_targets, initial_items = 2, 0

    def __init__(self, covariance: list[list[float]], *, dof: float | None) -> None:
        self.covariance = torch.tensor(covariance, dtype=torch.float64)
        self.dof = None if dof is None else torch.full((2,), dof).double()

    def condition(self, items, scores) -> None:
        pass

    def performance(self) -> Performance:
        mean = torch.tensor([0.25, 0.5], dtype=torch.float64)
        variance = self.covariance.diagonal().clone()
        return Performance(mean, variance, self.covariance, dof=self.dof)

    def acquisition(self) -> None:
        return None


def fixed(covariance: list[list[float]], *, dof: float | None = None):
    model = Believes(covariance, dof=dof)
    return CalibratedTargets(model, TABLE, learn=lambda: KNOWN)


def test_variances_are_the_literal_formula_target_by_target() -> None:
    model = fixed([[1e-7, 0.0], [0.0, 0.02]])
    tell(model, (1, 0), (4, 0), (1, 1), (2, 1), (3, 1), (4, 1))
    own = own_variances(TABLE).tolist()
    floor = sum(own[i] for i in range(20) if i not in (1, 4)) / 400
    first = 3.0**2 * max(1e-7, floor)  # 2 of 20 items
    at = 3.0 + (1.5 - 3.0) * math.log(0.2 / 0.1) / math.log(0.5 / 0.1)
    found = model.performance()
    assert found.variance.tolist() == pytest.approx([first, at**2 * 0.02], rel=1e-10)
    assert found.mean.tolist() == [0.25, 0.5]


def test_the_covariance_keeps_its_correlations() -> None:
    model = fixed([[0.01, 0.006], [0.006, 0.04]])
    found = model.performance()
    assert found.covariance is not None
    assert torch.equal(found.covariance.diagonal(), found.variance)
    correlation = found.covariance[0, 1] / found.variance.prod().sqrt()
    assert float(correlation) == pytest.approx(0.3, rel=1e-12)


def test_a_certain_belief_that_is_floored_has_no_correlation() -> None:
    found = fixed([[0.0, 0.0], [0.0, 0.04]]).performance()
    assert found.covariance is not None
    assert float(found.variance[0]) > 0.0
    assert torch.equal(found.covariance, found.variance.diag())


def test_beliefs_of_students_t_count_by_their_intervals() -> None:
    model = fixed([[0.1, 0.02], [0.02, 0.1]], dof=3.0)
    found = model.performance()
    assert found.dof is None
    expected = 3.0 * model.model.performance().width()
    torch.testing.assert_close(found.width(), expected, rtol=1e-10, atol=0)


def test_choice_and_estimates_are_those_of_the_wrapped_model() -> None:
    inner = run(make_model("bayesame-multi", TABLE, n_targets=2, **OPTIONS), 9)
    outer = run(wrapped(), 9)
    assert [list(s) for s in outer.scores] == [list(s) for s in inner.scores]
    ours, theirs = outer.performance(), inner.performance()
    assert torch.equal(ours.mean, theirs.mean)
    assert bool((ours.variance > theirs.variance).all())


def test_with_all_items_a_target_is_its_score_and_certain() -> None:
    model = wrapped()
    tell(model, *((item, 0) for item in range(20)), *((item, 1) for item in range(9)))
    found = model.performance()
    assert float(found.mean[0]) == float(SCORES[0].sum() / 20)
    assert float(found.variance[0]) == 0.0
    assert float(found.variance[1]) > 0.0
    assert found.covariance is not None
    assert found.covariance[0].tolist() == [0.0, 0.0]


def test_sums_have_calibrated_variances_and_are_certain_once_seen() -> None:
    model = wrapped()
    seen = ((0, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1), (4, 1), (9, 1))
    tell(model, *seen)
    whole = model.performance().variance  # trained by that
    weights = torch.zeros(3, 20, dtype=torch.float64)
    weights[0, :4], weights[1, 4:8], weights[2] = 0.25, 0.25, 1 / 20
    sums, inner = model.weighted_sums(weights), model.model.weighted_sums(weights)
    assert torch.equal(sums.mean, inner.mean)
    assert float(sums.variance[0, 0]) == 0.0
    assert float(sums.variance[1, 0]) > 0.0
    floor = float(own_variances(TABLE)[4:8].sum()) / 16
    expected = KNOWN.at(0.2) ** 2 * max(float(inner.variance[0, 1]), floor)
    assert float(sums.variance[0, 1]) == pytest.approx(expected, rel=1e-10)
    floor = float(own_variances(TABLE)[5:8].sum()) / 16  # item 4 is known of target 1
    expected = KNOWN.at(0.25) ** 2 * max(float(inner.variance[1, 1]), floor)
    assert float(sums.variance[1, 1]) == pytest.approx(expected, rel=1e-10)
    torch.testing.assert_close(sums.variance[:, 2], whole, rtol=1e-9, atol=0)
    assert sums.covariance is not None
    flat = sums.covariance.reshape(6, 6)
    assert torch.equal(flat.diagonal(), sums.variance.flatten())
    # Correlations of what is not certain are the wrapped model's.
    before = inner.covariance.reshape(6, 6)
    ratio = flat[1, 4] / before[1, 4]
    of = (flat[1, 1] * flat[4, 4] / (before[1, 1] * before[4, 4])).sqrt()
    assert float(ratio) == pytest.approx(float(of), rel=1e-9)
    assert torch.equal(model.leave_one_out().mean, model.model.leave_one_out().mean)


def test_it_supports_what_the_wrapped_model_supports() -> None:
    assert isinstance(wrapped(), MultiTargetModel)
    assert isinstance(wrapped(), SupportsItemBelief)
    assert isinstance(wrapped(), SupportsRefit)
    plain = make_model(
        "bayesame-multi-calibrated", TABLE, n_targets=2, model="shared-mean"
    )
    assert isinstance(plain, MultiTargetModel)
    assert isinstance(plain.model, SharedMean)
    assert not isinstance(plain, SupportsItemBelief)


@pytest.mark.parametrize(
    ("items", "scores", "message"),
    [
        (rows((3, 0), (2, 0)), [0.1, 0.1], "evaluated already"),
        (rows((3, 1), (3, 1)), [0.1, 0.2], "evaluated already"),
        (rows((3, 0), (3, 1)), [0.1, math.nan], "finite"),
        (
            rows((3, 0), (3, 2)),
            [0.1, 0.2],
            r"targets: expected indices 0..1, got \[2\]",
        ),
        (rows((3, 0), (20, 1)), [0.1, 0.2], r"items: expected indices 0..19"),
        (rows((3, 0)), [0.1, 0.2], r"expected rows \[item, target\] and as many"),
        (torch.tensor([3, 0]), [0.1], r"expected rows \[item, target\] and as many"),
    ],
)
@pytest.mark.parametrize("careless", [False, True])
def test_a_refused_batch_changes_nothing(
    careless: bool, items: torch.Tensor, scores: list[float], message: str
) -> None:
    model = fixed([[0.01, 0.0], [0.0, 0.01]]) if careless else wrapped()
    tell(model, (2, 0))
    before = model.performance()
    with pytest.raises(ValueError, match=message):
        model.condition(items, torch.tensor(scores))
    assert torch.equal(model.performance().variance, before.variance)


def test_scores_may_be_a_column() -> None:
    model = wrapped()
    model.condition(rows((3, 0), (4, 1)), SCORES[[0, 1], [3, 4]].unsqueeze(-1))
    found = model.performance()
    again = wrapped()
    tell(again, (3, 0), (4, 1))
    assert torch.equal(found.variance, again.performance().variance)


def test_scores_that_the_wrapped_model_refuses_are_refused() -> None:
    class Strict(Believes):
        def check_score(self, score: float) -> None:
            if score not in (0.0, 1.0):
                raise ValueError(f"expected 0 or 1, got {score}")

    model = CalibratedTargets(
        Strict([[0.1, 0.0], [0.0, 0.1]], dof=None), TABLE, learn=lambda: KNOWN
    )
    model.check_score(1.0)
    with pytest.raises(ValueError, match=r"expected 0 or 1, got 0\.5"):
        model.check_score(0.5)
    wrapped().check_score(0.5)


def test_initial_items_end_when_there_are_no_more() -> None:
    model = wrapped()
    tell(model, (2, 0))
    assert model.model.updates == {}
    model.begin()
    assert set(model.model.updates) == {1}


def test_what_the_wrapped_model_draws_is_by_the_seed() -> None:
    name = "bayesame-multi"
    plain = make_model(name, TABLE, n_targets=2, seed=3, **OPTIONS)
    ours, other = (
        make_model(f"{name}-calibrated", TABLE, n_targets=2, seed=s, options=OPTIONS)
        for s in (3, 4)
    )
    drawn = [
        torch.cat([p.flatten() for p in m.model.covar_module.parameters()])
        for m in (plain, ours.model, other.model)
    ]
    assert torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[0], drawn[2])


def test_pseudo_targets_are_run_jointly_as_many_as_there_are_targets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: dict[str, int] = {}

    def spy(*_, n_targets: int, max_items: int, at_once: int, **__) -> torch.Tensor:
        told.update(n_targets=n_targets, max_items=max_items, at_once=at_once)
        return late.clone()

    late = torch.arange(48, dtype=torch.float64).view(4, 12)
    late[:, :3] = math.nan  # not trained yet

    monkeypatch.setattr(learn, "squared_errors", spy)
    made = make_model(
        "bayesame-multi-calibrated",
        TABLE,
        n_targets=2,
        options=OPTIONS | {"initial": 0.5},
        pseudo_targets=6,
        max_items=7,
    )
    # Only shares with trained beliefs: 4..12 of 20 items.
    assert made.inflation == fit_inflation(late[:, 3:], n_items=20, n_first=4)
    assert made.inflation.shares == (0.2, 0.33, 0.5)
    assert told == {"n_targets": 6, "max_items": 20, "at_once": 2}


def test_learning_runs_the_model_itself() -> None:
    made = make_model(
        "bayesame-multi-calibrated",
        TABLE,
        n_targets=2,
        options=OPTIONS,
        pseudo_targets=3,
        max_items=10,
    )
    factors = made.inflation.factors
    assert all(math.isfinite(f) and f >= 1.0 for f in factors)
    again = make_model(
        "bayesame-multi-calibrated",
        TABLE,
        n_targets=2,
        options=OPTIONS,
        pseudo_targets=3,
        max_items=10,
        seed=5,
    )
    assert again.inflation is made.inflation  # once for a table, whatever is drawn


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "bayesame"}, "'bayesame' is about one target"),
        ({"model": "bayesame-multi-calibrated"}, "calibrated already"),
        ({"options": {"nope": 1}}, "unknown options"),
        ({"pseudo_targets": 0}, "pseudo_targets: expected >= 1, got 0"),
        (
            {"options": {"initial": 1.0}},
            "expected fewer initial items than the 20 there are, got 20",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_model("bayesame-multi-calibrated", TABLE, n_targets=2, **settings)
