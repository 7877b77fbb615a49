from __future__ import annotations

import pytest
import torch
from oracles import make_problem
from populations import population

from gp_eval.acquisition import DisagreementSelection
from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models import PerformanceModel, make_model
from gp_eval.stopping import StoppingRule

NEVER = StoppingRule(width=1e-12)
EVERYONE = population(30)
TABLE = EVERYONE.subset(models=EVERYONE.models[:25])
SCORES = EVERYONE.scores[:, 27]


def run(model: PerformanceModel, n: int = 12) -> EvaluationLoop:
    loop = EvaluationLoop(model, TABLE, stop=NEVER, seed=2)
    for _ in range(n):
        (item,) = loop.ask()
        loop.tell(item, float(SCORES[item]))
    return loop


@pytest.mark.parametrize(
    ("estimator", "selector"),
    [
        ("disco", "bayesame"),
        ("bayesame", "disco"),
        ("rs-learn", "disco"),
        ("disco", "seq-apw"),
        ("rs-learn", "rs-mean"),
    ],
)
def test_the_choice_is_of_one_and_the_estimate_of_the_other(
    estimator: str, selector: str
) -> None:
    combined = make_model("combined", TABLE, estimator=estimator, selector=selector)
    assert isinstance(combined, PerformanceModel)
    loop = run(combined)
    items = list(loop.scores)
    assert items == list(run(make_model(selector, TABLE)).scores)
    alone = make_model(estimator, TABLE)
    alone.condition(torch.tensor(items), SCORES[items])
    assert loop.estimate == pytest.approx(float(alone.performance().mean), rel=1e-12)
    assert loop.width == pytest.approx(float(alone.performance().width()), rel=1e-9)


def test_asking_many_equals_asking_one_by_one() -> None:
    options = {"estimator": "disco", "selector": "bayesame"}
    batch = EvaluationLoop(
        make_model("combined", TABLE, **options), TABLE, stop=NEVER, seed=2
    )
    assert batch.ask(12) == list(run(make_model("combined", TABLE, **options)).scores)


def test_options_go_to_the_two_models() -> None:
    combined = make_model(
        "combined",
        TABLE,
        estimator="disco",
        estimator_options={"predictor": "ridge", "choice": "random"},
        selector="disco",
        selector_options={"stratify": True},
    )
    assert combined.estimator.options.predictor == "ridge"  # type: ignore[attr-defined]
    assert isinstance(combined.acquisition(), DisagreementSelection)
    groups = [TABLE.groups[i] for i in run(combined).scores]  # type: ignore[index]
    assert {groups.count(g) for g in ("g0", "g1", "g2")} == {4}
    with pytest.raises(ValueError, match=r"disco: unknown options \['colour'\]"):
        make_model("combined", TABLE, selector="disco", selector_options={"colour": 1})


@pytest.mark.parametrize("estimator", ["rs-mean", "aipw", "bayes-aipw"])
def test_means_over_items_chosen_by_disagreement_are_refused(estimator: str) -> None:
    with pytest.raises(ValueError, match="rests on a mean over random items"):
        make_model("combined", TABLE, estimator=estimator, selector="disco")
    allowed = make_model(
        "combined",
        TABLE,
        estimator=estimator,
        selector="disco",
        selector_options={"choice": "random"},
    )
    assert allowed.acquisition() is None


def test_bayesame_is_refused_where_it_reports_a_control_variate() -> None:
    repeated = make_problem(0, counts=(6, 7, 8)).references
    table = References(
        repeated.scores, repeated.items, repeated.models, item_weights=None
    )
    with pytest.raises(ValueError, match="'bayesame' rests on a mean"):
        make_model("combined", table, estimator="bayesame", selector="disco")
