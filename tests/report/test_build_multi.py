from __future__ import annotations

from pathlib import Path

import pytest
import torch
from multi_target_sessions import TARGETS, create, evaluate, tell
from reports import with_groups
from sessions import unique_references

from gp_eval import compare
from gp_eval.models import SupportsItemBelief
from gp_eval.report.build import build_report


def joint(path: Path, **options):
    """The model of the paper, trained shortly on a few common items."""
    usual = {
        "references": with_groups(unique_references()),
        "model": "bayesame-multi",
        "model_options": {"steps": 20, "initial": 0.2},
    }
    return create(path, **usual | options)


def test_each_target_has_a_section_with_its_own_scores(tmp_path: Path) -> None:
    with joint(tmp_path) as session:
        pairs = evaluate(session, 21)
        report = build_report(session)
        results = session.estimates()
    assert [target.target for target in report.targets] == TARGETS
    for target, result in zip(report.targets, results, strict=True):
        own = [item for name, item in pairs if name == target.target]
        assert [item.item for item in target.evaluated] == own
        assert (target.estimate, target.low, target.high) == (
            result.mean,
            result.low,
            result.high,
        )
        assert sum(group.n for group in target.groups) == len(own) == target.n


def test_groups_and_surprises_are_of_the_right_target(tmp_path: Path) -> None:
    with joint(tmp_path) as session:
        evaluate(session, 21)
        report, model = build_report(session), session.model
        references = session.references
    assert isinstance(model, SupportsItemBelief)
    law = torch.tensor([float(g == "law") / 8 for g in references.groups])
    belief = model.weighted_sums(law.double().unsqueeze(0))
    left_out = model.leave_one_out()
    for t, target in enumerate(report.targets):
        assert target.groups[0].group == "law"
        mean = float(belief.mean[t, 0])
        assert target.groups[0].estimate == pytest.approx(mean, rel=1e-12)
        mine = left_out.items[:, 1] == t
        predicted = dict(
            zip(
                [references.items[i] for i in left_out.items[mine, 0]],
                left_out.mean[mine].tolist(),
                strict=True,
            )
        )
        assert {item.item: item.predicted for item in target.evaluated} == predicted


def test_the_ranking_is_that_of_the_joint_belief(tmp_path: Path) -> None:
    with joint(tmp_path) as session:
        evaluate(session, 21)
        made = build_report(session).comparison
        belief = session.performance()
    expected = compare(TARGETS, belief.mean, belief.covariance)
    assert [row.target for row in made.ranking] == list(expected.names)
    assert [row.rank_best for row in made.ranking] == [r.best for r in expected.ranking]
    assert len(made.pairs) == 3
    for pair, known in zip(made.pairs, expected.pairs, strict=True):
        assert (pair.a, pair.b, pair.tied) == (known.a, known.b, known.tied)
        assert pair.probability_a_better == known.probability
        assert (pair.low, pair.high) == (known.low, known.high)


def test_pending_and_skipped_pairs_go_to_their_target(tmp_path: Path) -> None:
    with joint(tmp_path) as session:
        evaluate(session, 15)
        pairs = session.ask(4)
        session.skip({pairs[0]: "timed out"})
        report = build_report(session)
    for target in report.targets:
        own = [item for name, item in pairs[1:] if name == target.target]
        assert target.pending == own
    (skipped,) = [t for t in report.targets if t.skipped]
    assert (skipped.target, skipped.skipped[0].item) == pairs[0]


def test_a_model_without_a_belief_about_items_is_compared_all_the_same(
    tmp_path: Path,
) -> None:
    with create(tmp_path) as session:
        evaluate(session, 12)
        report = build_report(session)
    assert len(report.comparison.ranking) == 3
    for target in report.targets:
        assert target.surprises_note.startswith("Not available for this model")


def test_one_target_of_a_joint_session_has_nobody_to_be_ranked_with(
    tmp_path: Path,
) -> None:
    with create(tmp_path, targets=["a"]) as session:
        tell(session, session.ask(3))
        report = build_report(session)
    assert report.comparison.ranking == []
    assert len(report.targets) == 1
