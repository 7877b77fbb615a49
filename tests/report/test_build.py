"""The content of a report against literal formulas."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import NormalDist

import pytest
from oracles import Problem
from reports import all_scores, session, with_groups
from sessions import grouped_references, score_of, unique_references

from gp_eval import Buckets, Groups, References, Session, StoppingRule
from gp_eval.report.build import build_report
from gp_eval.report.content import Report, TargetReport

Z95 = NormalDist().inv_cdf(0.975)


def oracle(references: References, *, sigma2: float) -> Problem:
    """The joint Gaussian of all items under the kernel as it begins."""
    return Problem(
        references=references,
        buckets=Buckets.from_references(references),
        scores=all_scores(references),
        alpha=1.0,
        beta=1.0,
        sigma2=sigma2,
    )


def coreset_of(made: Session) -> list[int]:
    return [made.references.items.index(i) for i in made.scores_of("my/model")]


def only(report: Report) -> TargetReport:
    (target,) = report.targets
    return target


# Groups


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [0, 1, 9, 24])
def test_scores_of_groups_against_all_item_scores(
    tmp_path: Path, n: int, weighted: bool
) -> None:
    references = with_groups(unique_references(weighted=weighted))
    problem = oracle(references, sigma2=1e-4)
    with session(tmp_path, n=n, references=references) as made:
        target, coreset = only(build_report(made)), coreset_of(made)
    rest, mean, covariance = problem.rest(coreset)
    place = {item: k for k, item in enumerate(rest)}
    assert [group.group for group in target.groups] == ["law", "physics", "art"]
    for group in target.groups:
        members = [i for i in range(24) if references.groups[i] == group.group]
        total = sum(float(problem.weights[i]) for i in members)
        share = {i: float(problem.weights[i]) / total for i in members}
        known = [i for i in members if i in coreset]
        left = [i for i in members if i not in coreset]
        expected = sum(share[i] * float(problem.scores[i]) for i in known)
        expected += sum(share[i] * float(mean[place[i]]) for i in left)
        variance = sum(
            share[i] * share[j] * float(covariance[place[i], place[j]])
            for i in left
            for j in left
        )
        assert group.estimate == pytest.approx(expected, rel=1e-10)
        half = Z95 * math.sqrt(variance)
        # Posterior variances of 1e-6 come from priors of 1: ten digits are not left.
        assert group.high - group.low == pytest.approx(2 * half, rel=1e-7, abs=1e-12)
        assert (group.n, group.N) == (len(known), 8)
        references_mean = sum(
            share[i] * float(references.scores[i].mean()) for i in members
        )
        assert group.references_mean == pytest.approx(references_mean, rel=1e-12)


def test_groups_of_a_bucketed_benchmark_against_all_item_scores(tmp_path: Path) -> None:
    references = with_groups(grouped_references())
    problem = oracle(references, sigma2=0.1)
    with session(tmp_path, n=10, references=references) as made:
        target, coreset = only(build_report(made)), coreset_of(made)
    rest, mean, covariance = problem.rest(coreset)
    place = {item: k for k, item in enumerate(rest)}
    for group in target.groups:
        members = [i for i in range(24) if references.groups[i] == group.group]
        left = [place[i] for i in members if i not in coreset]
        known = sum(float(problem.scores[i]) for i in members if i in coreset)
        expected = (known + float(mean[left].sum())) / 8
        assert group.estimate == pytest.approx(expected, rel=1e-10)
        variance = float(covariance[left][:, left].sum()) / 64
        half = Z95 * math.sqrt(variance)
        assert group.high - group.estimate == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_groups_add_up_to_the_number_where_it_is_the_posterior_mean(
    tmp_path: Path, weighted: bool
) -> None:
    references = with_groups(unique_references(weighted=weighted))
    with session(tmp_path, references=references) as made:
        target = only(build_report(made))
    weights = dict.fromkeys(("law", "physics", "art"), 0.0)
    for group, weight in zip(
        references.groups, references.item_weights.tolist(), strict=True
    ):
        weights[group] += weight
    total = sum(weights[group.group] * group.estimate for group in target.groups)
    assert total == pytest.approx(target.estimate, rel=1e-12)
    assert "add up" not in target.groups_note


def test_where_the_number_is_another_estimator_groups_say_so(tmp_path: Path) -> None:
    references = with_groups(grouped_references())
    with session(tmp_path, n=10, references=references) as made:
        target = only(build_report(made))
    total = sum(group.estimate for group in target.groups) / 3
    assert total != pytest.approx(target.estimate, rel=1e-6)
    assert "do not add up" in target.groups_note
    assert "cannot be relied on" not in target.groups_note


def test_numbers_that_contradict_the_estimate_are_not_to_be_relied_on(
    tmp_path: Path,
) -> None:
    """The control variate moves with the scores, the posterior hardly does."""
    references = with_groups(grouped_references())
    with session(
        tmp_path,
        n=0,
        references=references,
        model_options={"refit_every": None, "noise": 100.0},
    ) as made:
        made.tell_all(dict.fromkeys(made.ask(8), 30.0))
        target = only(build_report(made))
    assert target.micro.estimate < 15.0
    assert target.estimate - target.micro.estimate > target.width / 2
    assert "cannot be relied on" in target.groups_note


def test_a_group_without_weight_is_left_out(tmp_path: Path) -> None:
    plain = unique_references()
    references = References(
        plain.scores,
        plain.items,
        plain.models,
        item_weights=[0.0] * 6 + [1.0] * 18,
        groups=["zero"] * 6 + ["one"] * 18,
    )
    with session(tmp_path, references=references) as made:
        target = only(build_report(made))
    assert [group.group for group in target.groups] == ["one"]
    assert target.groups[0].estimate == pytest.approx(target.estimate, rel=1e-12)


def test_both_means_are_weighted_sums_of_the_groups(tmp_path: Path) -> None:
    references = with_groups(
        unique_references(weighted=True), ("law", "art", "", "law")
    )
    with session(tmp_path, references=references) as made:
        target = only(build_report(made))
    rows = [*target.groups, target.ungrouped]
    assert [row.group for row in rows] == ["law", "art", None]
    for name in ("estimate", "references_mean"):
        values = [getattr(row, name) for row in rows]
        total = sum(v * row.share for v, row in zip(values, rows, strict=True))
        assert getattr(target.micro, name) == pytest.approx(total, rel=1e-12)
        mean = (values[0] + values[1]) / 2
        assert getattr(target.macro, name) == pytest.approx(mean, rel=1e-12)
    assert target.micro.estimate == pytest.approx(target.estimate, rel=1e-12)
    # Variances of 1e-6 come from priors of 1.
    assert target.micro.low == pytest.approx(target.low, rel=1e-7)
    assert target.micro.high == pytest.approx(target.high, rel=1e-7)
    assert target.macro.low < target.macro.estimate < target.macro.high


@pytest.mark.parametrize(
    ("references", "sentence", "word"),
    [
        (
            unique_references(),
            "micro mean, in which every item counts the same",
            "micro",
        ),
        (
            unique_references(weighted=True),
            "micro mean, in which items count by their weights",
            "micro",
        ),
    ],
    ids=["plain", "weighted"],
)
def test_the_report_says_that_the_micro_mean_stops_the_run(
    tmp_path: Path, references: References, sentence: str, word: str
) -> None:
    with session(tmp_path, references=with_groups(references)) as made:
        target = only(build_report(made))
    assert f"The run stops on the {sentence}." in target.groups_note
    assert target.stops_on == word


def test_the_report_says_that_the_macro_mean_stops_the_run(tmp_path: Path) -> None:
    references = with_groups(unique_references(), ("law", "art", "art")).macro()
    with session(tmp_path, references=references) as made:
        target = only(build_report(made))
        other = only(build_report(made, groups=Groups("f:x", ("x", "y") * 12)))
    assert "stops on the macro mean, in which every group counts" in target.groups_note
    assert "macro mean over the groups of the references" in other.groups_note
    assert (target.stops_on, other.stops_on) == ("macro", "estimate")
    assert "macro mean score (every group of items counts the same)" in target.covers
    assert target.macro.estimate == pytest.approx(target.estimate, rel=1e-12)
    assert "add up" not in target.groups_note


def test_given_groups_take_the_place_of_those_of_the_references(tmp_path: Path) -> None:
    groups = Groups("m.csv:level", ("easy", "hard", "") * 8, n_others=1)
    with session(tmp_path, n=1) as made:
        target = only(build_report(made, groups=groups))
        coreset = coreset_of(made)
    assert [group.group for group in target.groups] == ["easy", "hard"]
    assert target.group_by == "m.csv:level"
    assert (target.ungrouped.group, target.ungrouped.N) == (None, 8)
    expected = groups.of_item[coreset[0]] or None
    assert [item.group for item in target.evaluated] == [expected]
    unseen = sum(group.n == 0 for group in target.groups)
    assert f"{unseen} of 2 groups without an evaluated item" in target.groups_note
    assert "8 items in no group" in target.groups_note
    assert "1 item of the file not of this benchmark" in target.groups_note


def test_given_groups_need_a_model_that_tells_items_apart(tmp_path: Path) -> None:
    with (
        session(tmp_path, model="rs-mean") as made,
        pytest.raises(ValueError, match=r"no joint belief .* bayesame, bayesame-multi"),
    ):
        build_report(made, groups=Groups("f:x", ("x", "y") * 12))


def test_without_groups_the_report_says_so(tmp_path: Path) -> None:
    with session(tmp_path, references=unique_references()) as made:
        target = only(build_report(made))
    assert target.groups == []
    assert "name no groups" in target.groups_note
    assert (target.group_by, target.macro, target.micro) == (None, None, None)
    assert all(item.group is None for item in target.evaluated)


@pytest.mark.parametrize("model", ["rs-mean", "bayes-aipw", "proeval"])
def test_a_model_without_a_belief_about_items_invents_none(
    tmp_path: Path, model: str
) -> None:
    with session(tmp_path, model=model) as made:
        target = only(build_report(made))
    assert target.groups == []
    assert target.surprises == []
    assert target.surprise_rms is None
    assert target.groups_note.startswith("Not available for this model")
    assert target.surprises_note.startswith("Not available for this model")
    assert len(target.evaluated) == 9
    assert target.evaluated[0].surprise is None


# Surprise


@pytest.mark.parametrize(
    ("references", "sigma2"),
    [(unique_references(), 1e-4), (grouped_references(), 0.1)],
    ids=["unique", "bucketed"],
)
def test_surprise_is_the_standardised_residual_without_the_item(
    tmp_path: Path, references: References, sigma2: float
) -> None:
    problem = oracle(references, sigma2=sigma2)
    with session(tmp_path, n=12, references=references) as made:
        target, coreset = only(build_report(made)), coreset_of(made)
    sizes = []
    for item, i in zip(target.evaluated, coreset, strict=True):
        mean, covariance = problem.posterior([j for j in coreset if j != i])
        b = int(problem.buckets.item_bucket[i])
        std = math.sqrt(float(covariance[b, b] + problem.item_noise[i, i]))
        assert item.item == references.items[i]
        assert item.score == score_of(item.item)
        # The literal inverse loses some digits where noise is 1e-4 of the variance.
        assert item.predicted == pytest.approx(float(mean[b]), rel=1e-8)
        assert item.predicted_std == pytest.approx(std, rel=1e-8)
        expected = (item.score - float(mean[b])) / std
        assert item.surprise == pytest.approx(expected, rel=1e-7)
        sizes.append(abs(expected))
    assert target.surprise_rms == pytest.approx(
        math.sqrt(sum(size**2 for size in sizes) / 12), rel=1e-7
    )
    assert [abs(item.surprise) for item in target.surprises] == pytest.approx(
        sorted(sizes, reverse=True)[:10], rel=1e-7
    )


def test_an_item_scored_against_all_predictions_comes_first(tmp_path: Path) -> None:
    with session(tmp_path, n=8) as made:
        (item,) = made.ask()
        made.tell(item, score_of(item) - 3.0)
        target = only(build_report(made))
    assert target.surprises[0].item == item
    assert target.surprises[0].surprise < -3.0
    assert target.surprise_rms > 1.5


# The number and where it stands


def test_the_number_is_that_of_the_session(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        result, target = made.estimate(), only(build_report(made))
    assert (target.estimate, target.low, target.high) == (
        result.mean,
        result.low,
        result.high,
    )
    assert (target.n, target.N, target.width) == (9, 24, result.width)
    assert target.curves.estimates == result.estimates
    assert target.curves.widths == result.widths
    assert "this model on these 24 items" in target.covers
    assert "neither re-runs of the model nor other items" in target.covers


def test_a_weighted_mean_is_called_so(tmp_path: Path) -> None:
    references = with_groups(unique_references(weighted=True))
    with session(tmp_path, references=references) as made:
        assert "weighted mean" in only(build_report(made)).covers


def test_all_items_leave_no_interval_and_no_estimate(tmp_path: Path) -> None:
    with session(tmp_path, n=24) as made:
        target = only(build_report(made))
    assert (target.low, target.high) == (target.estimate, target.estimate)
    assert target.kind.startswith("exact")
    assert target.covers.startswith("All items were evaluated")
    assert target.stop == "Stopped after 24 of 24 items: all were evaluated."
    assert target.stopped_at == 24


def test_the_stop_stays_where_it_was_when_more_is_told(tmp_path: Path) -> None:
    stop = StoppingRule(width=1e-9, max_items=6)
    with session(tmp_path, n=6, stop=stop) as made:
        told = made.scores_of("my/model")
        late = [item for item in made.references.items if item not in told][:2]
        made.tell_all({item: score_of(item) for item in late})
        target = only(build_report(made))
    assert (target.n, target.stopped_at, target.stop_reason) == (8, 6, "max_items")
    assert target.stop.endswith("2 items were told after that.")
    assert any("budget" in warning for warning in target.warnings)


def test_places_among_the_references_count_who_is_better(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        report = build_report(made)
        performance = sorted(made.references.performance.tolist(), reverse=True)
    target = only(report)
    assert [r.score for r in report.references] == performance
    for place, score in (
        (target.rank, target.estimate),
        (target.rank_best, target.high),
        (target.rank_worst, target.low),
    ):
        assert place == 1 + sum(other > score for other in performance)


def test_an_estimate_beyond_all_references_is_warned_about(tmp_path: Path) -> None:
    with session(tmp_path, n=0) as made:
        for item in made.ask(12):
            made.tell(item, score_of(item) + 1.0)
        target = only(build_report(made))
    assert target.rank == 1
    assert any("above all reference models" in w for w in target.warnings)


def test_what_is_pending_and_skipped_is_named(tmp_path: Path) -> None:
    with session(tmp_path, n=4) as made:
        failed, open_one = made.ask(2)
        made.skip({failed: "HTTP 500"})
        target = only(build_report(made))
    assert target.pending == [open_one]
    assert [(s.item, s.reason) for s in target.skipped] == [(failed, "HTTP 500")]
    assert any("1 item was skipped" in warning for warning in target.warnings)


def test_before_the_first_item_there_is_the_prior(tmp_path: Path) -> None:
    with session(tmp_path, n=0) as made:
        target = only(build_report(made))
    assert target.n == 0
    assert target.evaluated == target.surprises == []
    assert len(target.groups) == 3
    assert any("mostly what the references scored" in w for w in target.warnings)


def test_provenance_says_what_made_the_numbers(tmp_path: Path) -> None:
    options = {"refit_every": 5}
    with session(tmp_path, seed=7, model_options=options) as made:
        report = build_report(made)
        fingerprint = made.references.fingerprint
    provenance = report.provenance
    assert (provenance.model, provenance.seed) == ("bayesame", 7)
    assert provenance.model_options == options
    assert provenance.fingerprint == fingerprint
    assert provenance.stop.window == 5
    assert provenance.hyperparameters_at == 5
    assert provenance.meta == {"metric": "acc", "task": "arc"}
    assert "torch" in provenance.versions
    assert provenance.created <= provenance.last_event <= provenance.reported


def test_a_read_only_session_gives_the_same_report(tmp_path: Path) -> None:
    with session(tmp_path) as made:
        first = build_report(made)
    with Session.open(tmp_path, read_only=True) as made:
        second = build_report(made)
    assert first.targets == second.targets
    made_at = {"reported": first.provenance.reported}
    assert second.provenance.model_copy(update=made_at) == first.provenance
