from __future__ import annotations

import pytest
import torch
from populations import population

from gp_eval._random import random_order
from gp_eval.data import References
from gp_eval.disco import (
    DiscoOptions,
    DiscoPlan,
    disagreement_of_probabilities,
    disagreement_of_scores,
    disagreement_order,
)
from gp_eval.disco import plan as plan_module
from gp_eval.disco.cross_validation import out_of_fold_errors
from gp_eval.errors import DataError
from gp_eval.experiments.simulators import make_simulator
from gp_eval.loop import EvaluationLoop
from gp_eval.models import PerformanceModel, make_model
from gp_eval.models.disco import Disco
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)
EVERYONE = population(40)


def references() -> References:
    return EVERYONE.subset(models=EVERYONE.models[:30])


TARGET = EVERYONE.subset(models=EVERYONE.models[30:31])
SCORES = TARGET.scores[:, 0]


def run(model: PerformanceModel, table: References, n: int) -> EvaluationLoop:
    loop = EvaluationLoop(model, table, stop=NEVER)
    for _ in range(n):
        (item,) = loop.ask()
        loop.tell(item, float(SCORES[item]))
    return loop


def test_items_come_in_the_order_of_the_plan() -> None:
    table = references()
    loop = run(Disco(table), table, 20)
    assert table.probabilities is not None
    order = disagreement_order(disagreement_of_probabilities(table.probabilities).jsd)
    assert list(loop.scores) == order[:20].tolist()
    batch = EvaluationLoop(Disco(table), table, stop=NEVER)
    assert batch.ask(20) == order[:20].tolist()


def test_the_estimate_is_the_plans_at_every_budget_and_stays_between_them() -> None:
    table = references()
    loop = run(Disco(table, budgets=(10, 25)), table, 30)
    for budget, until in ((10, 24), (25, 30)):
        options = DiscoOptions(k=budget, signature="scores")
        plan = DiscoPlan.fit(table, options)
        expected = plan.predict(TARGET)
        interval = expected.interval()
        assert interval is not None
        for n in range(budget, until + 1):
            # The plan has its items in another order, which moves rounding only.
            assert loop.estimates[n - 1] == pytest.approx(
                float(expected.mean[0]), abs=1e-5
            )
            width = float(interval[1][0] - interval[0][0])
            assert loop.widths[n - 1] == pytest.approx(width, rel=1e-3)
        assert len(set(loop.estimates[budget - 1 : until])) == 1
    prior = table.performance
    assert loop.estimates[:9] == [pytest.approx(float(prior.mean()))] * 9
    assert loop.widths[0] == pytest.approx(2 * 1.959964 * float(prior.std()))


def test_nothing_depends_on_how_items_were_grouped_into_batches() -> None:
    table = references()
    items = random_order(60, 3)[:35]
    whole, parts = (Disco(table, choice="random", budgets=(10, 30)) for _ in range(2))
    whole.condition(items, SCORES[items])
    for part in items.split(4):
        parts.condition(part, SCORES[part])
        parts.performance()
    assert float(whole.performance().mean) == float(parts.performance().mean)
    assert float(whole.performance().variance) == float(parts.performance().variance)
    assert whole.acquisition() is None


@pytest.mark.parametrize("predictor", ["ridge", "knn"])
def test_other_predictors_have_the_error_of_cross_validation(predictor: str) -> None:
    table = references()
    model = Disco(table, predictor=predictor, budgets=(10,))
    items = random_order(60, 1)[:10].sort().values
    model.condition(items, SCORES[items])
    options = DiscoOptions(choice="given", signature="scores", predictor=predictor)  # type: ignore[arg-type]
    plan = DiscoPlan.fit(table, options, items=[table.items[i] for i in items])
    belief = model.performance()
    assert float(belief.mean) == float(plan.predict(TARGET).mean[0])
    expected = float(out_of_fold_errors(table, plan).square().mean())
    assert float(belief.variance) == expected > 0.0


def test_targets_of_the_same_references_share_what_was_fitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, fits = references(), []
    original = plan_module._fit
    monkeypatch.setattr(plan_module, "_fit", lambda *a: fits.append(1) or original(*a))
    targets = EVERYONE.subset(models=EVERYONE.models[30:]).scores.T
    simulate = make_simulator("disco", {"budgets": [10, 20]})
    curves = simulate(table, targets, random_order(60, 0), n_max=25)
    assert len(fits) == 2
    assert curves.mean.shape == (10, 25)
    truth = targets.mean(1)
    errors = (curves.mean - truth.unsqueeze(1)).abs().mean(0)
    assert float(errors[24]) < 0.5 * float(errors[0])
    make_simulator("disco", {"budgets": [10, 20], "pca": 3})(
        table, targets, random_order(60, 0), n_max=10
    )
    assert len(fits) == 3


def test_scores_0_and_1_and_weighted_items_are_supported() -> None:
    table = references()
    generator = torch.Generator().manual_seed(0)
    binary = References(
        (table.scores > 0.5).double(),
        table.items,
        table.models,
        item_weights=torch.rand(60, generator=generator) + 0.1,
    )
    model = make_model("disco", binary)
    order = disagreement_order(disagreement_of_scores(binary.scores).jsd)
    loop = run(model, binary, 60)
    assert list(loop.scores) == order.tolist()
    truth = float(binary.item_weights @ (SCORES > 0.5).double())
    assert loop.stop_reason == "complete"
    assert abs(loop.estimate - truth) < 0.2
    with pytest.raises(ValueError, match="takes only the values 1 and 2"):
        make_model("disco", binary, choice="pds")


def test_strata_and_guiding_models_act_on_the_order() -> None:
    table = references()
    stratified = run(Disco(table, stratify=True), table, 12)
    assert table.groups is not None
    groups = [table.groups[i] for i in stratified.scores]
    assert {groups.count(g) for g in set(groups)} == {4}
    guided = run(Disco(table, guiding=2, seed=1), table, 12)
    assert set(guided.scores) != set(stratified.scores)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"predictor": "mean"}, "'mean' needs choice='random'"),
        ({"predictor": "mean", "choice": "random"}, "use a DiscoPlan, or rs-mean"),
        ({"choice": "given"}, "not in the harness: choice='given'"),
        ({"budgets": [30, 10]}, r"budgets: expected ascending numbers >= 1, got \[30"),
        ({"budgets": []}, "budgets"),
        ({"budgets": [0, 3]}, "budgets"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make_model("disco", references(), **options)


def test_too_few_references_are_refused() -> None:
    names = EVERYONE.models
    with pytest.raises(ValueError, match="at least 2 references, got 1"):
        Disco(EVERYONE.subset(models=names[:1]))
    with pytest.raises(ValueError, match="at least 3 references, got 2"):
        Disco(EVERYONE.subset(models=names[:2]), predictor="ridge")
    gaps = EVERYONE.scores.clone()
    gaps[0, 0] = torch.nan
    holed = References(gaps, EVERYONE.items, names, missing="keep")
    with pytest.raises(DataError, match="disco: 1 missing cells"):
        Disco(holed)
    two = EVERYONE.subset(models=names[:2])
    assert run(Disco(two), two, 10).width > 0.0


def test_what_cannot_be_taken_in_changes_nothing() -> None:
    model = Disco(references())
    model.condition(torch.tensor([3]), torch.tensor([0.5]))
    with pytest.raises(ValueError, match="item: 3 is evaluated already"):
        model.condition(torch.tensor([4, 3]), torch.tensor([0.5, 0.5]))
    assert model.coreset.evaluated == [3]
