from __future__ import annotations

import math

import gpytorch
import pytest
import torch
from populations import population

from gp_eval.calibration import Calibrated, Inflation, learn, own_variances
from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models import (
    Performance,
    PerformanceModel,
    SupportsItemBelief,
    SupportsRefit,
    make_model,
)
from gp_eval.models.protocol import SupportsScoreCheck
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)
EVERYONE = population(14, 20)
TABLE = EVERYONE.subset(models=EVERYONE.models[:12])
SCORES = EVERYONE.scores[:, 13]
KNOWN = Inflation((0.1, 0.5), (3.0, 1.5))


def wrap(model: PerformanceModel, references: References = TABLE) -> Calibrated:
    return Calibrated(model, references, learn=lambda: KNOWN)


def run(model: PerformanceModel, n: int, references: References = TABLE):
    loop = EvaluationLoop(model, references, stop=NEVER, seed=2)
    for _ in range(n):
        for item in loop.ask():
            loop.tell(item, float(SCORES[item]))
    return loop


class Certain:
    """A belief that is always the same."""

    def __init__(self, variance: float, dof: float | None = None) -> None:
        self.variance, self.dof = variance, dof

    def condition(self, items, scores) -> None:
        pass

    def performance(self) -> Performance:
        dof = None if self.dof is None else torch.tensor(self.dof).double()
        mean, variance = torch.tensor([0.25, self.variance], dtype=torch.float64)
        return Performance(mean, variance, dof=dof)

    def acquisition(self) -> None:
        return None


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("variance", [0.0, 1e-3])
def test_the_variance_is_the_literal_formula(weighted: bool, variance: float) -> None:
    table = population(8, 10, weighted=weighted)
    model = wrap(Certain(variance), table)
    model.condition(torch.tensor([1, 4]), torch.tensor([0.3, 0.9]))
    own, weights = own_variances(table).tolist(), table.item_weights.tolist()
    floor = sum(weights[i] ** 2 * own[i] for i in range(10) if i not in (1, 4))
    at = 3.0 + (1.5 - 3.0) * math.log(0.2 / 0.1) / math.log(0.5 / 0.1)
    expected = at**2 * max(variance, floor)
    assert float(model.performance().variance) == pytest.approx(expected, rel=1e-10)
    assert float(model.performance().mean) == pytest.approx(0.25)


def test_a_belief_of_students_t_counts_by_its_interval() -> None:
    wide = Certain(0.01, dof=3.0)
    belief = wrap(wide).performance()
    assert belief.dof is None
    expected = 3.0 * float(wide.performance().width())
    assert float(belief.width()) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", ["bayesame", "proeval", "rs-mean", "aipw"])
def test_choice_and_estimate_are_those_of_the_wrapped_model(name: str) -> None:
    inner, outer = (
        run(make_model(name, TABLE), 12),
        run(wrap(make_model(name, TABLE)), 12),
    )
    assert list(outer.scores) == list(inner.scores)
    assert outer.estimates == inner.estimates
    pairs = list(zip(outer.widths, inner.widths, strict=True))
    assert all(wide > narrow for wide, narrow in pairs)


@pytest.mark.parametrize("name", ["bayesame", "proeval", "rs-mean"])
def test_with_all_items_the_estimate_is_the_score_and_certain(name: str) -> None:
    loop = run(wrap(make_model(name, TABLE)), 20)
    assert loop.estimate == float(SCORES.sum() / 20)
    assert loop.width == 0.0
    assert loop.stop_reason == "complete"


def test_it_supports_what_the_wrapped_model_supports() -> None:
    of_items = make_model("calibrated", TABLE)
    assert isinstance(of_items, PerformanceModel)
    assert isinstance(of_items, SupportsItemBelief)
    of_score = make_model("calibrated", TABLE, model="proeval")
    assert isinstance(of_score, PerformanceModel)
    assert not isinstance(of_score, SupportsItemBelief)
    assert isinstance(of_score, SupportsRefit)


def test_scores_that_the_wrapped_model_refuses_are_refused() -> None:
    binary = References(
        (TABLE.scores > 0.5).double(), list(TABLE.items), list(TABLE.models)
    )
    model = make_model("calibrated", binary, model="irt-2pl")
    assert isinstance(model, SupportsScoreCheck)
    model.check_score(1.0)
    with pytest.raises(ValueError, match="0"):
        model.check_score(0.5)
    make_model("calibrated", TABLE).check_score(0.5)


def test_batches_are_those_of_the_wrapped_model() -> None:
    options = {"batch": 3, "margin": 20}
    model = make_model("calibrated", TABLE, options=options)
    inner = make_model("bayesame", TABLE, **options)
    assert model.batch_selection == inner.batch_selection
    assert model.item_groups.tolist() == inner.item_groups.tolist()


def test_a_refused_batch_changes_nothing() -> None:
    model = wrap(make_model("bayesame", TABLE))
    model.condition(torch.tensor([2]), torch.tensor([0.5]))
    before = model.performance()
    for items, scores in (([2], [0.1]), ([3, 3], [0.1, 0.2]), ([3], [math.nan])):
        with pytest.raises(ValueError, match=r"evaluated already|finite"):
            model.condition(torch.tensor(items), torch.tensor(scores))
    assert model.performance() == before


def test_sums_have_calibrated_variances_and_are_certain_once_seen() -> None:
    model = make_model("calibrated", TABLE)
    model.replay_updates({0: KNOWN.record()})
    seen = [0, 1, 2, 3]
    model.condition(torch.tensor(seen), SCORES[seen])
    weights = torch.zeros(3, 20, dtype=torch.float64)
    weights[0, :4], weights[1, 4:8], weights[2] = 0.25, 0.25, 1 / 20
    sums, inner = model.weighted_sums(weights), model.model.weighted_sums(weights)
    assert sums.mean.tolist() == inner.mean.tolist()
    assert float(sums.variance[0]) == 0.0
    floor = float(own_variances(TABLE)[4:8].sum()) / 16
    factor = KNOWN.at(0.2) ** 2
    expected = factor * max(float(inner.variance[1]), floor)
    assert float(sums.variance[1]) == pytest.approx(expected, rel=1e-10)
    whole = float(model.performance().variance)
    assert float(sums.variance[2]) == pytest.approx(whole, rel=1e-9)
    assert torch.equal(model.leave_one_out().mean, model.model.leave_one_out().mean)


def test_an_overconfident_model_is_widened_and_a_timid_one_is_not() -> None:
    # ProEval's noise is that of 0/1 scores; of a thousandth, it is overconfident here.
    def factors(noise: float) -> tuple[float, ...]:
        options = {"noise": noise}
        made = make_model("proeval-calibrated", TABLE, options=options)
        return made.inflation.factors

    assert min(factors(1e-4)) > 1.2
    assert max(factors(30.0)) < min(factors(1e-4))


def test_the_inflation_is_learned_once_for_a_table(monkeypatch) -> None:
    calls = []

    def counted(*args, **settings):
        calls.append(settings)
        return learn_errors(*args, **settings)

    learn_errors = learn.squared_errors
    monkeypatch.setattr(learn, "squared_errors", counted)
    table = EVERYONE.subset(models=EVERYONE.models[:11])
    for _ in range(3):
        make_model("calibrated", table, pseudo_targets=2).performance()
    assert len(calls) == 1
    make_model("calibrated", table, pseudo_targets=3).performance()
    assert len(calls) == 2


def test_updates_carry_the_inflation_and_a_replay_does_not_learn_again() -> None:
    def never() -> Inflation:
        raise AssertionError("learned again")

    options = {"refit_every": 4, "margin": 20}
    first = wrap(make_model("bayesame", TABLE, **options))
    done = run(first, 10)
    assert set(first.updates) == {0, 4, 8}
    again = Calibrated(make_model("bayesame", TABLE, **options), TABLE, learn=never)
    again.replay_updates(first.updates)
    assert again.inflation == KNOWN
    repeated = run(again, 10)
    assert repeated.widths == done.widths
    assert again.updates == first.updates
    assert again.model.fits == {}


def test_a_kernel_of_ones_own_is_trained_by_the_run_alone() -> None:
    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel()).double()
    before = [p.detach().clone() for p in kernel.parameters()]
    model = make_model("calibrated", TABLE, covar_module=kernel, pseudo_targets=2)
    assert float(model.performance().variance) > 0.0
    after = list(kernel.parameters())
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
    assert model.model.model.covar_module is kernel


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings, message in (
        ({"model": "nope"}, "expected one of"),
        ({"options": {"nope": 1}}, "bayesame: unknown options"),
        ({"model": "bayesame-multi"}, "several targets"),
        ({"model": "calibrated"}, "calibrated already"),
        ({"model": "proeval-calibrated"}, "calibrated already"),
        ({"pseudo_targets": 0}, "pseudo_targets: expected >= 1, got 0"),
        ({"max_items": 0}, "max_items: expected >= 1, got 0"),
        ({"weights": [1.0] * 12, "options": {"weights": [1.0] * 12}}, "given twice"),
        ({"weights": [1.0] * 12, "model": "rs-mean"}, "rs-mean: unknown options"),
    ):
        with pytest.raises(ValueError, match=message):
            make_model("calibrated", TABLE, **settings)
    with pytest.raises(ValueError, match="at least 2 different ones, got 1"):
        make_model("calibrated", TABLE.subset(models=TABLE.models[:1]))
