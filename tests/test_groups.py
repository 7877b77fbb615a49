"""Scores of groups and their averages against dense conditioning of all items."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
import torch
from multi_target_oracle import make_multi_target_problem, ragged
from multi_target_sessions import TARGETS, score_for
from multi_target_sessions import create as create_joint
from oracles import Problem, make_problem
from reports import session, with_groups
from sessions import grouped_references, score_of, unique_references

from gp_eval import (
    BayesAME,
    Groups,
    Performance,
    References,
    compare,
    group_estimates,
    make_model,
)
from gp_eval.errors import DataError
from gp_eval.groups import GroupEstimates, estimate_groups
from gp_eval.kernels import ReferenceScoreKernel
from gp_eval.models import BucketGP, SupportsItemBelief
from gp_eval.models.registry import model_factory, models_of_items
from gp_eval.settings import exact_inference

CORESET = [1, 4, 2, 9, 12, 3]
NAMES = ("law", "art", "")
"""The groups that :func:`dealt` deals, the last being none."""


def dealt(n_items: int, names: tuple[str, ...] = NAMES) -> Groups:
    """Items dealt in turn."""
    return Groups("dealt", tuple(names[i % len(names)] for i in range(n_items)))


def model_of(problem: Problem, coreset: list[int]) -> BayesAME:
    kernel = ReferenceScoreKernel().double()
    kernel.alpha, kernel.beta = problem.alpha, problem.beta
    model = BayesAME(
        problem.references,
        noise=problem.sigma2,
        covar_module=kernel,
        refit_every=None,
    )
    model.condition(torch.tensor(coreset, dtype=torch.long), problem.scores[coreset])
    return model


def of_problem(problem: Problem, coreset: list[int], groups: Groups) -> GroupEstimates:
    items = problem.references.items
    (made,) = estimate_groups(
        model_of(problem, coreset),
        problem.references,
        groups,
        targets=["t"],
        evaluated=[[items[i] for i in coreset]],
    )
    return made


def by_hand(problem: Problem, coreset: list[int], share: dict[int, float]):
    """Mean and variance of a sum over items, item by item."""
    rest, mean, covariance = problem.rest(coreset)
    place = {item: k for k, item in enumerate(rest)}
    total = 0.0
    for i, v in share.items():
        value = mean[place[i]] if i in place else problem.scores[i]
        total += v * float(value)
    variance = 0.0
    for i, v in share.items():
        for j, w in share.items():
            if i in place and j in place:
                variance += v * w * float(covariance[place[i], place[j]])
    return total, variance


def assert_belief(belief: Performance, expected: tuple[float, float]) -> None:
    assert float(belief.mean) == pytest.approx(expected[0], rel=1e-10)
    assert float(belief.variance) == pytest.approx(expected[1], rel=1e-10, abs=1e-15)


# Against literal formulas


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coreset", [[], [4], CORESET])
def test_groups_and_means_against_all_item_scores(
    coreset: list[int], weighted: bool
) -> None:
    problem = make_problem(1, weighted=weighted)
    groups = dealt(problem.n_items)
    made = of_problem(problem, coreset, groups)
    w = problem.weights.tolist()
    macro: dict[int, float] = {}
    for row, name in zip([*made.rows, made.ungrouped], NAMES, strict=True):
        members = [i for i, g in enumerate(groups.of_item) if g == name]
        total = sum(w[i] for i in members)
        share = {i: w[i] / total for i in members}
        assert_belief(row.belief, by_hand(problem, coreset, share))
        assert (row.name, row.N) == (name, len(members))
        assert row.n == sum(i in coreset for i in members)
        assert row.share == pytest.approx(total, rel=1e-12)
        known = sum(v * float(problem.score_mean[i]) for i, v in share.items())
        assert row.references_mean == pytest.approx(known, rel=1e-12)
        if name:
            macro |= {i: v / 2 for i, v in share.items()}
    assert_belief(made.macro, by_hand(problem, coreset, macro))
    assert_belief(made.micro, by_hand(problem, coreset, dict(enumerate(w))))
    assert_belief(made.micro, problem.performance(coreset))
    assert_belief(made.benchmark, problem.performance(coreset))
    assert made.stops_on == "micro"


def test_the_covariance_of_groups_against_all_item_scores(problem: Problem) -> None:
    groups = dealt(problem.n_items)
    made = of_problem(problem, CORESET, groups)
    rest, _, covariance = problem.rest(CORESET)
    indicator = torch.zeros(2, problem.n_items, dtype=torch.float64)
    for g, name in enumerate(NAMES[:2]):
        members = [i for i, of in enumerate(groups.of_item) if of == name]
        indicator[g, members] = 1.0 / len(members)
    left = indicator[:, rest]
    expected = left @ covariance @ left.T
    torch.testing.assert_close(made.belief.covariance, expected, rtol=1e-10, atol=1e-14)
    assert torch.equal(made.belief.variance, made.belief.covariance.diagonal())
    assert made.names == ("law", "art")


def test_the_exact_gp_of_gpytorch_says_the_same(problem: Problem) -> None:
    groups = dealt(problem.n_items, ("law", "art"))
    made = of_problem(problem, CORESET, groups)
    buckets = problem.buckets
    rows = buckets.inputs[buckets.item_bucket]
    gp = BucketGP(rows[CORESET], problem.scores[CORESET].unsqueeze(-1))
    gp.likelihood.noise = problem.sigma2
    gp.covar_module.alpha, gp.covar_module.beta = problem.alpha, problem.beta
    rest = [i for i in range(problem.n_items) if i not in CORESET]
    with torch.no_grad(), exact_inference():
        got = gp.posterior(buckets.inputs)
    of_item = buckets.item_bucket[rest]
    mean = got.mean.squeeze(-1)[of_item]
    covariance = got.distribution.covariance_matrix[of_item][:, of_item]
    covariance = covariance + problem.sigma2 * buckets.counts[of_item].diag()
    for row in made.rows:
        mine = torch.tensor([groups.of_item[i] == row.name for i in rest]).double()
        told = [i for i in CORESET if groups.of_item[i] == row.name]
        total = float(problem.scores[told].sum() + mine @ mean)
        variance = float(mine @ covariance @ mine)
        assert_belief(row.belief, (total / row.N, variance / row.N**2))


def test_the_interval_is_the_normal_one(problem: Problem) -> None:
    row = of_problem(problem, CORESET, dealt(problem.n_items)).rows[0]
    low, high = row.belief.interval()
    half = NormalDist().inv_cdf(0.975) * math.sqrt(float(row.belief.variance))
    assert float(high - low) == pytest.approx(2 * half, rel=1e-12)


def test_groups_of_each_of_several_targets_against_all_item_scores() -> None:
    problem = make_multi_target_problem(n_targets=3)
    pairs = ragged(problem)
    groups = dealt(problem.n_items, ("law", "art"))

    class Told:
        """The engine of the oracle as a model of the harness."""

        def weighted_sums(self, weights: torch.Tensor) -> Performance:
            return Performance(*problem.model(pairs).weighted_sums(weights))

        def leave_one_out(self) -> None: ...

    items = problem.references.items
    made = estimate_groups(
        Told(),
        problem.references,
        groups,
        targets=list("abc"),
        evaluated=[[items[i] for t, i in pairs if t == u] for u in range(3)],
    )
    mean, covariance = problem.given(pairs)
    blocks = covariance.view(3, problem.n_items, 3, problem.n_items)
    for t, of_target in enumerate(made):
        assert of_target.target == "abc"[t]
        v = torch.zeros(2, problem.n_items, dtype=torch.float64)
        for g, row in enumerate(of_target.rows):
            members = [i for i, of in enumerate(groups.of_item) if of == row.name]
            v[g, members] = 1.0 / len(members)
            assert row.n == sum(u == t and i in members for u, i in pairs)
        torch.testing.assert_close(
            of_target.belief.mean, v @ mean.view(3, -1)[t], rtol=1e-10, atol=1e-13
        )
        torch.testing.assert_close(
            of_target.belief.covariance,
            v @ blocks[t, :, t] @ v.T,
            rtol=1e-9,  # differences of sums over all pairs
            atol=1e-13,
        )


# Properties


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("names", [("law", "art"), NAMES, ("one",)])
def test_groups_add_up_to_the_micro_mean(
    tmp_path: Path, weighted: bool, names: tuple[str, ...]
) -> None:
    references = unique_references(weighted=weighted)
    with session(tmp_path, references=references) as made:
        (by,) = group_estimates(made, dealt(24, names))
        result = made.estimate()
    rows = [*by.rows, *([by.ungrouped] if by.ungrouped else [])]
    assert sum(row.share for row in rows) == pytest.approx(1.0, rel=1e-12)
    total = sum(row.share * float(row.belief.mean) for row in rows)
    assert total == pytest.approx(float(by.micro.mean), rel=1e-12)
    assert float(by.micro.mean) == pytest.approx(result.mean, rel=1e-12)
    # Variances of 1e-6 are differences of terms of order 1.
    assert float(by.micro.width()) == pytest.approx(result.width, rel=1e-7)
    if not weighted:
        items = sum(row.N * float(row.belief.mean) for row in rows) / 24
        assert items == pytest.approx(float(by.micro.mean), rel=1e-12)
    assert sum(row.n for row in rows) == 9


def test_the_variance_of_both_means_follows_from_the_covariance(
    problem: Problem,
) -> None:
    groups = dealt(problem.n_items, ("law", "art", "law", "physics"))
    made = of_problem(problem, CORESET, groups)
    joint = made.belief.covariance
    shares = torch.tensor([row.share for row in made.rows], dtype=torch.float64)
    equal = torch.full((3,), 1 / 3, dtype=torch.float64)
    for belief, v in ((made.micro, shares), (made.macro, equal)):
        assert_belief(belief, (float(v @ made.belief.mean), float(v @ joint @ v)))


@pytest.mark.parametrize("references", [unique_references(), grouped_references()])
def test_a_complete_group_is_its_mean_score_without_any_variance(
    tmp_path: Path, references: References
) -> None:
    references = with_groups(references)
    law = [
        i
        for i, g in zip(references.items, references.groups, strict=True)
        if g == "law"
    ]
    with session(tmp_path, n=0, references=references) as made:
        made.tell_all({item: score_of(item) for item in law})
        (by,) = group_estimates(made)
    row = by.rows[0]
    assert (row.n, row.N) == (8, 8)
    assert float(row.belief.variance) == 0.0
    exact = np.mean([score_of(item) for item in law])
    assert float(row.belief.mean) == pytest.approx(exact, rel=1e-15)
    assert by.belief.covariance[0].tolist() == [0.0, 0.0, 0.0]
    assert all(float(other.belief.variance) > 0.0 for other in by.rows[1:])
    assert float(by.macro.variance) > 0.0


def test_all_items_leave_no_variance_anywhere(tmp_path: Path) -> None:
    with session(tmp_path, n=24) as made:
        (by,) = group_estimates(made)
    for belief in (by.macro, by.micro, by.benchmark, *(r.belief for r in by.rows)):
        assert float(belief.variance) == 0.0


def test_a_complete_target_does_not_complete_the_others(tmp_path: Path) -> None:
    references = with_groups(unique_references())
    options = {"steps": 5, "initial": 0.0}
    with create_joint(
        tmp_path, references=references, model="bayesame-multi", model_options=options
    ) as joint:
        first = TARGETS[0]
        joint.tell_all({(first, i): score_for(first, i) for i in references.items})
        made = group_estimates(joint)
    assert [by.target for by in made] == TARGETS
    assert [float(row.belief.variance) for row in made[0].rows] == [0.0] * 3
    assert [row.n for row in made[1].rows] == [0, 0, 0]
    assert all(float(row.belief.variance) > 0.0 for row in made[1].rows)


def test_evaluating_a_group_narrows_it_more_than_the_others(tmp_path: Path) -> None:
    references = with_groups(unique_references())
    law = [
        i
        for i, g in zip(references.items, references.groups, strict=True)
        if g == "law"
    ]
    with session(tmp_path, n=3, references=references) as made:
        (before,) = group_estimates(made)
        rest = [item for item in law if item not in made.scores_of("my/model")][:-1]
        made.tell_all({item: score_of(item) for item in rest})
        (after,) = group_estimates(made)
    ratio = after.belief.variance / before.belief.variance
    assert float(ratio[0]) < float(ratio[1:].min()) < 1.0


# What is defined for odd groups


def test_one_group_is_both_means(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        (by,) = group_estimates(made, dealt(24, ("all",)))
    assert by.names == ("all",)
    for belief in (by.macro, by.micro):
        assert_belief(belief, (float(by.belief.mean), float(by.belief.variance)))


def test_groups_of_one_item_are_that_item(problem: Problem) -> None:
    groups = Groups("ids", problem.references.items)
    made = of_problem(problem, CORESET, groups)
    for i, row in enumerate(made.rows):
        assert (row.N, row.n) == (1, int(i in CORESET))
        assert_belief(row.belief, by_hand(problem, CORESET, {i: 1.0}))
    assert float(made.rows[CORESET[0]].belief.variance) == 0.0


def test_items_in_no_group_count_in_the_micro_mean_only(problem: Problem) -> None:
    of_item = ["a", "b"] + [""] * (problem.n_items - 2)
    made = of_problem(problem, CORESET, Groups("few", tuple(of_item)))
    assert (made.ungrouped.name, made.ungrouped.N) == ("", problem.n_items - 2)
    assert_belief(made.macro, by_hand(problem, CORESET, {0: 0.5, 1: 0.5}))
    assert_belief(made.micro, problem.performance(CORESET))


def test_macro_weights_stop_on_the_macro_mean_and_leave_items_equal(
    tmp_path: Path,
) -> None:
    plain = unique_references()
    names = ["law"] * 3 + ["art"] * 21
    grouped = References(plain.scores, plain.items, plain.models, groups=names)
    with session(tmp_path / "macro", references=grouped.macro()) as made:
        (by,) = group_estimates(made)
        (other,) = group_estimates(made, dealt(24, ("a", "b", "b")))
        result = made.estimate()
        scores = made.scores_of("my/model")
    assert (by.stops_on, other.stops_on) == ("macro", "estimate")
    assert float(by.macro.mean) == pytest.approx(result.mean, rel=1e-12)
    assert float(by.benchmark.mean) == pytest.approx(result.mean, rel=1e-12)
    assert [row.share for row in by.rows] == pytest.approx([1 / 8, 7 / 8])
    # The same scores told to a session of plain items: the same posterior.
    with session(tmp_path / "plain", n=0, references=grouped) as made:
        made.tell_all(scores)
        (expected,) = group_estimates(made)
        result = made.estimate()
    assert expected.stops_on == "micro"
    assert float(expected.micro.mean) == pytest.approx(result.mean, rel=1e-12)
    for mine, theirs in ((by.micro, expected.micro), (by.macro, expected.macro)):
        assert float(mine.mean) == pytest.approx(float(theirs.mean), rel=1e-10)
        # Small variances are differences of terms of order 1, as above.
        assert float(mine.variance) == pytest.approx(float(theirs.variance), rel=1e-7)


def test_groups_can_be_compared_by_their_joint_belief(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        (by,) = group_estimates(made)
    made = compare(by.names, by.belief.mean, by.belief.covariance)
    pair = made.pair("law", "art")
    a, b = by.names.index("law"), by.names.index("art")
    joint = by.belief.covariance
    variance = float(joint[a, a] + joint[b, b] - 2.0 * joint[a, b])
    half = NormalDist().inv_cdf(0.975) * math.sqrt(variance)
    # The difference of covariances of 1e-5 that came from terms of order 1.
    assert pair.high - pair.low == pytest.approx(2 * half, rel=1e-7)


# Errors


@pytest.mark.parametrize("name", ["rs-mean", "bayes-aipw", "proeval", "irt-2pl"])
def test_a_model_without_a_belief_about_items_names_those_that_have_one(
    name: str,
) -> None:
    binary = (unique_references().scores > 0.5).double()
    plain = unique_references()
    references = with_groups(References(binary, plain.items, plain.models))
    model = make_model(name, references)
    with pytest.raises(ValueError, match=r"^model: it has no joint belief") as raised:
        estimate_groups(model, references, targets=["t"], evaluated=[[]])
    for known in ("bayesame", "bayesame-rs", "bayesame-multi"):
        assert known in str(raised.value)
    assert name not in str(raised.value)


def test_the_named_models_are_those_that_can(problem: Problem) -> None:
    named = models_of_items()
    assert "bayesame-batch5" in named
    for name in named:
        several = {"n_targets": 2} if "multi" in name else {}
        model = model_factory(name)(problem.references, **several)
        assert isinstance(model, SupportsItemBelief)


def test_without_groups_it_is_an_error(tmp_path: Path) -> None:
    with session(tmp_path, references=unique_references()) as made:
        with pytest.raises(DataError, match="name no groups"):
            group_estimates(made)
        with pytest.raises(DataError, match="one for each of the 24 items, got 3"):
            group_estimates(made, dealt(3))


def test_names_of_targets_are_as_many_as_the_model_has(problem: Problem) -> None:
    model = model_of(problem, CORESET)
    options = {"groups": dealt(problem.n_items), "references": problem.references}
    for targets, evaluated in (["a", "b"], [[], []]), (["a"], []):
        with pytest.raises(ValueError, match="one for each of the 1 targets"):
            estimate_groups(model, targets=targets, evaluated=evaluated, **options)


# Real data


def test_categories_of_a_real_benchmark(tmp_path: Path, shared_data: Path) -> None:
    table = References.read(shared_data / "livebench.npz")
    target = table.models[40]
    truth = dict(
        zip(
            table.items,
            table.subset(models=[target]).scores[:, 0].tolist(),
            strict=True,
        )
    )
    references = table.without([target])
    with session(tmp_path, n=0, references=references) as made:
        math_items = [
            i for i, g in zip(table.items, table.groups, strict=True) if g == "math"
        ]
        for item in dict.fromkeys([*math_items, *made.ask(60)]):
            made.tell(item, truth[item])
        (by,) = group_estimates(made)
        tasks = Groups.read(f"{shared_data / 'livebench.npz'}:task", references)
        (by_task,) = group_estimates(made, tasks)
    row = by.rows[by.names.index("math")]
    assert (row.n, row.N, float(row.belief.variance)) == (96, 96, 0.0)
    exact = np.mean([truth[item] for item in math_items])
    assert float(row.belief.mean) == pytest.approx(exact, rel=1e-12)
    assert (len(by.names), len(by_task.names)) == (6, 17)
    for found in (by, by_task):
        total = sum(r.N * float(r.belief.mean) for r in found.rows) / 864
        assert total == pytest.approx(float(found.micro.mean), rel=1e-10)
    # AMPS_Hard and math_comp are all of math.
    assert float(by_task.rows[by_task.names.index("AMPS_Hard")].belief.variance) == 0.0
