from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import RBFKernel
from oracles import Problem, make_problem

from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.means import ReferenceMean
from gp_eval.models import make_model
from gp_eval.models.weighted_prior import weighted_prior
from gp_eval.session import Session
from gp_eval.stopping import StoppingRule

NAMES = ["bayesame", "bayesame-logit"]


def run(model, problem: Problem, items: list[int]):
    model.condition(torch.tensor(items), problem.scores[items])
    return model.performance()


def test_kernel_and_mean_are_appendix_b2_with_the_weights_summing_to_k() -> None:
    problem = make_problem(0)
    w = [0.5, 2.0, 1.0, 0.25, 1.25]
    _, kernel, mean = weighted_prior(problem.references, w, None, None)
    assert kernel is not None
    assert mean is not None
    phi = problem.buckets.phi
    table, prior = kernel.double()(phi).to_dense().detach(), mean(phi)
    for a in range(phi.shape[0]):
        expected = sum(w[k] * float(phi[a, k]) for k in range(5)) / 5.0
        assert float(prior[a]) == pytest.approx(expected, rel=1e-12)
        for b in range(phi.shape[0]):
            distance = sum(
                w[k] * (float(phi[a, k]) - float(phi[b, k])) ** 2 for k in range(5)
            )
            # Not the diagonal's exact zeros alone: the expansion loses some digits.
            expected = math.exp(-distance / 5)
            assert float(table[a, b]) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("counts", [(1,) * 25, (6, 6, 6, 5)])
def test_equal_weights_are_no_weights(name: str, counts: tuple[int, ...]) -> None:
    problem = make_problem(3, counts=counts)
    plain = run(make_model(name, problem.references), problem, [4, 1, 9, 12])
    for weight in (1.0, 0.2):
        model = make_model(name, problem.references, weights=[weight] * 5)
        belief = run(model, problem, [4, 1, 9, 12])
        torch.testing.assert_close(belief.mean, plain.mean, rtol=1e-10, atol=0)
        torch.testing.assert_close(belief.variance, plain.variance, rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_weight_zero_removes_a_reference(name: str) -> None:
    """Even where only that reference tells items apart."""
    problem = make_problem(3, counts=(1,) * 25)
    scores = problem.references.scores.clone()
    scores[1, [0, 1, 3, 4]] = scores[0, [0, 1, 3, 4]]
    scores[2, [0, 1, 3, 4]] = scores[0, [0, 1, 3, 4]]
    references = References(scores, problem.references.items, list("abcde"))
    weights = [1.0, 0.5, 0.0, 2.0, 1.5]
    model = make_model(name, references, weights=weights, margin=0)
    fewer = references.subset(models=["a", "b", "d", "e"])
    expected = make_model(
        name, fewer, weights=[w for w in weights if w > 0.0], margin=0
    )
    items = [4, 1, 9, 12]
    assert float(run(model, problem, items).mean) == float(
        run(expected, problem, items).mean
    )
    assert torch.equal(model.item_groups, expected.item_groups)
    assert model.item_groups[0] == model.item_groups[1] == model.item_groups[2]


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_relative(name: str) -> None:
    problem = make_problem(3, counts=(1,) * 25)
    beliefs = [
        run(
            make_model(name, problem.references, weights=[c, 2 * c, 3 * c, c, 5 * c]),
            problem,
            [7, 3],
        )
        for c in (1.0, 0.01)
    ]
    torch.testing.assert_close(beliefs[0].mean, beliefs[1].mean, rtol=1e-10, atol=0)


def test_a_reference_like_the_target_helps_when_it_counts() -> None:
    """One reference is the target itself, the others are noise."""
    problem = make_problem(5, counts=(1,) * 60, n_references=12)
    scores = problem.references.scores.clone()
    scores[:, 0] = problem.scores
    references = References(scores, problem.references.items, problem.references.models)
    weights = [20.0] + [1.0] * 11
    truth, items = float(problem.scores.mean()), list(range(6))
    plain = run(make_model("bayesame", references), problem, items)
    weighted = run(make_model("bayesame", references, weights=weights), problem, items)
    assert abs(float(weighted.mean) - truth) < abs(float(plain.mean) - truth)


def test_a_session_keeps_weights_as_json(tmp_path: Path) -> None:
    problem = make_problem(3, counts=(1,) * 25)
    weights = [1.0, 0.5, 0.0, 2.0, 1.5]
    rule = StoppingRule(width=1e-9)
    session = Session.create(
        tmp_path / "run",
        problem.references,
        target="t",
        model="bayesame",
        model_options={"weights": weights},
        stop=rule,
    )
    for _ in range(5):
        item = session.ask(1)[0]
        session.tell(item, float(problem.scores[problem.references.items.index(item)]))
    estimate = session.estimate().mean
    session.close()
    stored = json.loads((tmp_path / "run" / "session.json").read_text())
    assert stored["model_options"] == {"weights": weights}
    with Session.open(tmp_path / "run") as again:
        assert again.estimate().mean == estimate
        following = again.ask(1)[0]
    model = make_model("bayesame", problem.references, weights=weights)
    loop = EvaluationLoop(model, problem.references, stop=rule)
    for _ in range(5):
        item = loop.ask()[0]
        loop.tell(item, float(problem.scores[item]))
    assert loop.estimate == estimate
    assert problem.references.items[loop.ask()[0]] == following


@pytest.mark.parametrize("name", NAMES)
def test_weights_that_cannot_be_are_refused(name: str) -> None:
    references = make_problem(0).references
    for weights, message in (
        ([1.0, 2.0], r"weights: expected one per reference \(5\), got 2"),
        ([1.0, 1.0, -1.0, 1.0, 1.0], "weights: expected finite values >= 0"),
        ([1.0, 1.0, math.nan, 1.0, 1.0], "weights: expected finite values >= 0"),
        ([1.0, 1.0, math.inf, 1.0, 1.0], "weights: expected finite values >= 0"),
        ([0.0] * 5, "not all 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make_model(name, references, weights=weights)
    for module in ({"covar_module": RBFKernel()}, {"mean_module": ReferenceMean()}):
        with pytest.raises(ValueError, match="weights: they make a kernel and a mean"):
            make_model(name, references, weights=[1.0] * 5, **module)
