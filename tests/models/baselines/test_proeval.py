from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import Problem, make_problem

from gp_eval.data import References
from gp_eval.errors import DataError
from gp_eval.loop import EvaluationLoop
from gp_eval.models import PerformanceModel
from gp_eval.models.baselines.proeval import ProEval, ProEvalVersion
from gp_eval.stopping import StoppingRule

VERSIONS: list[ProEvalVersion] = ["0.1.1", "2026-05"]


def references(scores: object, **options) -> References:
    table = torch.as_tensor(scores, dtype=torch.float64)
    return References(
        table,
        [f"q{i}" for i in range(table.shape[0])],
        [f"m{k}" for k in range(table.shape[1])],
        **options,
    )


def published(problem: Problem, version: ProEvalVersion, noise: float = 0.3):
    """Weight space, dense, from the definition: items, estimates and variances."""
    m, s = problem.references.scores.numpy(), problem.scores.numpy()
    w = problem.weights.numpy()
    u = m.mean(1)
    x = ((m - u[:, None]) / np.sqrt(m.shape[1] - 1)).T
    v, c = x @ w, 1 / noise if version == "0.1.1" else noise
    chosen: list[int] = []
    estimates, variances = [], []
    for _ in range(len(u)):
        xc = x[:, chosen]
        a = np.linalg.inv(np.eye(len(x)) + c * xc @ xc.T)
        gain = [
            -1.0 if i in chosen else (xi @ a @ v) ** 2 * c / (1 + c * xi @ a @ xi)
            for i, xi in enumerate(x.T)
        ]
        chosen.append(int(np.argmax(gain)))
        xc = x[:, chosen]
        a = np.linalg.inv(np.eye(len(x)) + xc @ xc.T / noise)
        mu = u + x.T @ a @ xc @ (s[chosen] - u[chosen]) / noise
        estimates.append(w @ mu)
        variances.append(v @ a @ v)
    return chosen, estimates, variances


def simulate(problem: Problem, model: ProEval, items: list[int]):
    estimates, variances = [], []
    for item in items:
        model.condition(torch.tensor([item]), problem.scores[[item]])
        belief = model.performance()
        estimates.append(float(belief.mean))
        variances.append(float(belief.variance))
    return estimates, variances


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
def test_equals_the_dense_published_formula(
    version: ProEvalVersion, weighted: bool
) -> None:
    problem = make_problem(2, counts=(1,) * 25, n_references=6, weighted=weighted)
    chosen, estimates, variances = published(problem, version)
    model = ProEval(problem.references, version=version)
    never = StoppingRule(width=1e-12)
    loop = EvaluationLoop(model, problem.references, stop=never)
    asked = []
    while not loop.done:
        asked += loop.ask()
        loop.tell(asked[-1], float(problem.scores[asked[-1]]))
    assert asked == chosen
    np.testing.assert_allclose(loop.estimates, estimates, rtol=1e-10)
    fresh = ProEval(problem.references, version=version)
    assert isinstance(fresh, PerformanceModel)
    np.testing.assert_allclose(
        simulate(problem, fresh, chosen)[1], variances, rtol=1e-9
    )


def test_versions_select_differently_and_estimate_alike() -> None:
    problem = make_problem(2, counts=(1,) * 25, n_references=6)
    assert published(problem, "0.1.1")[0] != published(problem, "2026-05")[0]
    items = [4, 19, 7, 0, 11]
    new, old = (ProEval(problem.references, version=v) for v in VERSIONS)
    assert simulate(problem, new, items) == simulate(problem, old, items)


def test_equals_the_package_of_0_1_1() -> None:
    # Printed by proeval 0.1.1 from PyPI, in an environment of its own:
    #   plan = BQPriorSampler(noise_variance=0.3).plan(scores, budget=6)
    #   result = plan.estimate(target[list(plan.indices)])
    #   print(plan.indices, result.estimates, result.integral_variance)
    indices = [2, 4, 3, 1, 5, 0]
    estimates = [0.49085746734809765, 0.5011629521627439, 0.5077519473538522]
    estimates += [0.5048321136703127, 0.5036748422521812, 0.5028601253576025]
    variances = [0.003968389172818474, 0.003581792614578752, 0.003342883677119466]
    variances += [0.003283010009326295, 0.003259228697750364, 0.0032423395148025043]
    scores = [[0.1, 0.9, 0.4, 0.3], [1.0, 0.2, 0.6, 0.7], [0.0, 0.8, 0.5, 1.0]]
    scores += [[0.3, 0.3, 0.9, 0.2], [0.6, 0.1, 0.2, 0.9], [0.5, 0.7, 0.0, 0.4]]
    target = torch.tensor([0.2, 0.9, 0.7, 0.1, 0.8, 0.3], dtype=torch.float64)
    refs = references(scores)
    model, available = ProEval(refs), torch.ones(6, dtype=torch.bool)
    for n, item in enumerate(indices):
        gain = model.acquisition().of_items(torch.arange(6).unsqueeze(-1))
        assert int(torch.where(available, gain, -1.0).argmax()) == item
        available[item] = False
        model.condition(torch.tensor([item]), target[[item]])
        assert float(model.performance().mean) == pytest.approx(estimates[n], rel=1e-10)
        assert float(model.performance().variance) == pytest.approx(
            variances[n], rel=1e-10
        )


def test_does_not_end_at_the_truth() -> None:
    refs = make_problem(2, counts=(1,) * 25, n_references=6).references
    model = ProEval(refs)
    model.condition(torch.arange(25), torch.ones(25))
    belief = model.performance()
    assert float(belief.mean) < 0.95
    assert float(belief.variance) > 1e-4


def test_errors_as_scores_mirror_everything() -> None:
    problem = make_problem(2, counts=(1,) * 25, n_references=6)
    items = [4, 19, 7, 0, 11]
    estimates, variances = simulate(problem, ProEval(problem.references), items)
    problem.scores = 1 - problem.scores
    mirrored = ProEval(references(1 - problem.references.scores))
    errors, same = simulate(problem, mirrored, items)
    np.testing.assert_allclose([1 - e for e in errors], estimates, rtol=1e-12)
    np.testing.assert_allclose(same, variances, rtol=1e-12)


@pytest.mark.parametrize("version", VERSIONS)
def test_order_and_batches_do_not_matter(version: ProEvalVersion) -> None:
    problem = make_problem(0)
    items = torch.tensor([5, 0, 9, 3])
    at_once = ProEval(problem.references, version=version)
    at_once.condition(items, problem.scores[items])
    backwards = ProEval(problem.references, version=version)
    simulate(problem, backwards, items.tolist()[::-1])
    for a, b in (
        (at_once.performance().mean, backwards.performance().mean),
        (at_once.performance().variance, backwards.performance().variance),
    ):
        assert float(a) == pytest.approx(float(b), rel=1e-12)
    candidates = torch.tensor([[1], [2], [13]])
    torch.testing.assert_close(
        at_once.acquisition().of_items(candidates),
        backwards.acquisition().of_items(candidates),
        rtol=1e-10,
        atol=1e-16,
    )


def test_equal_references_never_move() -> None:
    column = torch.tensor([1.0, 0.0, 1.0, 0.5]).double()
    model = ProEval(references(column.unsqueeze(-1).repeat(1, 3)))
    for item in range(4):
        assert model.acquisition()(torch.full((1, 1, 1), float(item))).isfinite()
        model.condition(torch.tensor([item]), torch.tensor([0.0]))
        assert float(model.performance().mean) == pytest.approx(0.625, rel=1e-15)
        assert float(model.performance().variance) == 0.0


@pytest.mark.parametrize("version", VERSIONS)
def test_references_of_equal_means_give_finite_numbers(version: ProEvalVersion) -> None:
    refs = references([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    model = ProEval(refs, version=version)
    loop = EvaluationLoop(model, refs, stop=StoppingRule(width=1e-300, window=10))
    while not loop.done:
        loop.tell(loop.ask()[0], 1.0)
    assert loop.stop_reason == "complete"
    assert loop.estimates == pytest.approx([0.5] * 3, abs=1e-12)


def test_refuses_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="proeval: expected at least 2 references"):
        ProEval(references([[1.0], [0.0]]))
    refs = references([[1.0, 0.0], [0.0, 0.5]])
    with pytest.raises(ValueError, match="expected '0.1.1' or '2026-05', got '1'"):
        ProEval(refs, version="1")
    for noise in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="proeval: noise: expected sigma"):
            ProEval(refs, noise=noise)
    holes = references([[1.0, float("nan")], [0.0, 0.5]], missing="keep")
    with pytest.raises(DataError, match="proeval: 1 missing cells"):
        ProEval(holes)
    model = ProEval(refs)
    model.condition(torch.tensor([1]), torch.tensor([0.5]))
    before = float(model.performance().mean)
    with pytest.raises(ValueError, match="item: 1 is evaluated already"):
        model.condition(torch.tensor([0, 1]), torch.tensor([1.0, 1.0]))
    assert float(model.performance().mean) == before
