"""Sessions of several targets: ask, tell, refuse without a change, stop."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from multi_target_sessions import (
    TARGETS,
    create,
    evaluate,
    finish,
    resume,
    score_for,
    tell,
)
from sessions import NEVER, Ask, Tell, Update, contents, events_of, unique_references

from gp_eval import MultiTargetSession, StoppingRule, make_model
from gp_eval.errors import ScoreError
from gp_eval.multi_target_loop import MultiTargetLoop

N_ITEMS = 24
INITIAL = 9
"""Pairs of the initial design: three items for each of three targets."""


def budget(max_items: int) -> StoppingRule:
    return StoppingRule(width=1e-9, stable=1e-9, window=5, max_items=max_items)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a session that is made by the test."""
    return tmp_path / "run"


def test_a_new_session_knows_its_prior_and_nothing_else(run: Path) -> None:
    prior = float(unique_references().performance.mean())
    with create(run) as session:
        assert session.targets == TARGETS
        assert [result.target for result in session.estimates()] == TARGETS
        for result in session.estimates():
            assert (result.n, result.N, result.stop_reason) == (0, N_ITEMS, None)
            assert result.mean == pytest.approx(prior, rel=1e-12)
        assert session.stop_reasons == dict.fromkeys(TARGETS)
        assert not session.done
        assert session.pending == []
    assert sorted(contents(run)) == [
        ".lock",
        "events.jsonl",
        "references.npz",
        "session.json",
    ]


def test_a_session_computes_what_the_loop_in_memory_does(run: Path) -> None:
    references = unique_references()
    model: Any = make_model("shared-mean", references, n_targets=3)
    loop = MultiTargetLoop(model, references, stop=NEVER, seed=4)
    while not loop.done:
        for t, i in loop.ask():
            loop.tell(t, i, score_for(TARGETS[t], references.items[i]))
    with create(run, seed=4) as session:
        assert finish(session) == loop.results(TARGETS, references.items)


def test_asked_pairs_are_pending_in_the_order_of_asking_until_told(run: Path) -> None:
    with create(run) as session:
        asked = session.ask(3) + session.ask()
        assert len(set(asked)) == 4
        assert session.pending == asked
        session.tell(*asked[1], 0.5)
        assert session.pending == [asked[0], asked[2], asked[3]]
        assert sum(result.n for result in session.estimates()) == 1


def test_nothing_beyond_the_initial_items_is_asked_before_they_are_told(
    run: Path,
) -> None:
    with create(run) as session:
        initial = session.ask(50)
        assert len(initial) == INITIAL
        by_target = [{item for t, item in initial if t == name} for name in TARGETS]
        assert len(by_target[0]) == 3
        assert by_target[0] == by_target[1] == by_target[2]
        tell(session, initial[:-1])
        assert session.ask(5) == []
        assert not session.done
    with MultiTargetSession.open(run) as session:
        assert session.ask() == []
        tell(session, session.pending)
        assert len(session.ask(5)) == 5


def test_no_pair_is_ever_asked_twice_and_each_is_asked_once(run: Path) -> None:
    with create(run) as session:
        asked = session.ask(INITIAL)
        tell(session, asked)
    for q in (1, 4, 7, 100):
        with MultiTargetSession.open(run) as session:
            asked += session.ask(q)
            session.tell(*session.pending[-1], 0.5)
    assert len(asked) == 3 * N_ITEMS
    assert set(asked) == {(t, i) for t in TARGETS for i in unique_references().items}
    with MultiTargetSession.open(run) as session:
        assert session.ask(5) == []
        assert {result.stop_reason for result in finish(session)} == {"complete"}


def test_a_complete_run_is_exact_for_every_target(run: Path) -> None:
    with create(run) as session:
        results = finish(session, q=4)
        assert session.done
        assert session.ask() == []
    for result in results:
        scores = [score_for(result.target, item) for item in result.items]
        assert result.mean == pytest.approx(math.fsum(scores) / N_ITEMS, rel=1e-12)
        assert result.width == 0.0


@pytest.mark.parametrize("q", [0, -1, 2.5])
def test_asking_for_less_than_one_is_refused(run: Path, q: int) -> None:
    with create(run) as session, pytest.raises(ValueError, match="q: expected a whole"):
        session.ask(q)
    assert events_of(run) == []


def test_five_at_once_up_to_each_update_are_single_asks_and_tells(run: Path) -> None:
    options = {"model_options": {"refit_every": 5, "initial_items": 1}}
    with create(run, **options) as session:
        evaluate(session, 3)
        evaluate(session, 2, q=2)
        at_once = finish(session, q=5)
    with create(run.with_name("2"), **options) as session:
        assert finish(session) == at_once
    updates = [e.n for e in events_of(run) if isinstance(e, Update)]
    assert updates == list(range(5, 72, 5))


# Telling


def test_scores_that_nobody_asked_for_are_taken_in_any_order(run: Path) -> None:
    pairs = [("naïve", "q7"), ("a", "q7"), ("a", "q2")]
    with create(run) as session:
        session.tell_all({pair: score_for(*pair) for pair in pairs})
        results = {result.target: result for result in session.estimates()}
        assert results["a"].items == ["q7", "q2"]
        assert results["naïve"].items == ["q7"]
        assert results["b c"].items == []
        assert not set(session.ask(50)) & set(pairs)
    told = [e for e in events_of(run) if isinstance(e, Tell)]
    assert [(e.target, e.item, e.score) for e in told] == [
        (*pair, score_for(*pair)) for pair in pairs
    ]


def test_events_name_targets_and_items_side_by_side(run: Path) -> None:
    with create(run) as session:
        asked = session.ask(4)
    (event,) = events_of(run)
    assert isinstance(event, Ask)
    assert event.targets is not None
    assert list(zip(event.targets, event.items, strict=True)) == asked


def test_telling_the_same_again_changes_nothing(run: Path) -> None:
    with create(run) as session:
        pairs = evaluate(session, 12)
        before, estimates = contents(run), session.estimates()
        tell(session, pairs)
        session.tell_all({pair: score_for(*pair) for pair in pairs})
        session.tell_all({})
        assert contents(run) == before
        assert session.estimates() == estimates


WRONG = [
    (
        {("x", "q1"): 0.5},
        "target: 'x' is not among the targets .*, 'a', 'b c', 'naïve'",
    ),
    ({("q1", "a"): 0.5}, "target: 'q1' is not among"),
    ({(None, "q1"): 0.5}, "target: None is not among"),
    ({("a", "q99"): 0.5}, "item: 'q99' is not among the 24 items"),
    ({("a", "q1"): math.nan}, "score of 'q1' of target 'a': expected a finite number"),
    ({("a", "q1"): "1"}, "score of 'q1' of target 'a': expected a finite number"),
    ({"q1": 0.5}, r"expected \(target, item\), got 'q1'"),
    ({("a", "q1", "q2"): 0.5}, r"expected \(target, item\)"),
]


@pytest.mark.parametrize(("wrong", "complaint"), WRONG)
def test_one_bad_score_rejects_all_and_nothing_changes(
    run: Path, wrong: dict, complaint: str
) -> None:
    with create(run) as session:
        evaluate(session, 12)
        before, estimates = contents(run), session.estimates()
        untold = next(
            ("a", item)
            for item in session.references.items[2:]
            if item not in estimates[0].items
        )
        with pytest.raises(ScoreError, match=complaint):
            session.tell_all({untold: 0.5, **wrong})
        assert contents(run) == before
        assert session.estimates() == estimates
        session.tell(*untold, 0.5)


def test_another_score_for_a_pair_is_refused_and_for_another_target_is_not(
    run: Path,
) -> None:
    with create(run) as session:
        target, item = evaluate(session, 9)[3]
        score = score_for(target, item)
        before = contents(run)
        complaint = f"'{item}' of target '{target}' was told before with score {score}"
        with pytest.raises(ScoreError, match=complaint):
            session.tell(target, item, score + 1e-9)
        assert contents(run) == before
    with (
        MultiTargetSession.open(run) as session,
        pytest.raises(ScoreError, match=complaint),
    ):
        session.tell(target, item, score + 1e-9)
    with create(run.with_name("2")) as session:
        session.tell("a", "q5", 0.25)
        session.tell("b c", "q5", 0.75)


# Stopping


def test_each_target_stops_by_itself_and_informs_the_others_on(run: Path) -> None:
    stop = StoppingRule(width=0.2, stable=0.02, window=4)
    with create(run, stop=stop) as session:
        while not any(session.stop_reasons.values()):
            evaluate(session, 1)
        stopped = [t for t, reason in session.stop_reasons.items() if reason]
        assert len(stopped) == 1
        assert not session.done
        before = {result.target: result for result in session.estimates()}
        later = evaluate(session, 6)
        assert not {target for target, _ in later} & set(stopped)
        after = {result.target: result for result in session.estimates()}
        assert after[stopped[0]].n == before[stopped[0]].n
        finish(session)
        assert session.done
        assert set(session.stop_reasons.values()) == {"converged"}


def test_a_budget_is_each_targets_own_and_counts_pending_items(run: Path) -> None:
    with create(run, stop=budget(5)) as session:
        evaluate(session, INITIAL)
        assert len(session.ask(50)) == 3 * 5 - INITIAL
        assert session.ask() == []
    with MultiTargetSession.open(run) as session:
        assert session.ask() == []
        results = finish(session)
        assert [(result.n, result.stop_reason) for result in results] == [
            (5, "max_items")
        ] * 3


def test_scores_after_the_stop_are_taken_and_the_reason_stays(run: Path) -> None:
    with create(run, stop=budget(3)) as session:
        results = finish(session)
        item = next(i for i in session.references.items if i not in results[0].items)
        session.tell("a", item, 0.5)
        late = session.estimates()
        assert (late[0].n, late[0].stop_reason) == (4, "max_items")
        assert session.done
    assert resume(run) == late


def test_the_joint_belief_is_that_of_the_estimates(run: Path) -> None:
    with create(run) as session:
        evaluate(session, 11)
        belief = session.performance()
        means = [result.mean for result in session.estimates()]
        assert belief.mean.tolist() == means
        assert belief.covariance is not None
        assert torch.equal(belief.covariance.diagonal(), belief.variance)
    assert torch.equal(session.performance().mean, belief.mean)
