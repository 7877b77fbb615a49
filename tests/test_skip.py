"""Items that cannot be evaluated: in N, unobserved, asked no more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from multi_target_sessions import SharedMean
from sessions import NEVER, grouped_references, score_of, unique_references

from gp_eval import (
    MultiTargetBayesAME,
    MultiTargetSession,
    References,
    StoppingRule,
    make_model,
)
from gp_eval.loop import EvaluationLoop
from gp_eval.multi_target_loop import MultiTargetLoop

BOTH = pytest.mark.parametrize(
    "references", [unique_references, grouped_references], ids=["by gain", "at random"]
)


def loop_of(references: References, stop: StoppingRule = NEVER) -> EvaluationLoop:
    return EvaluationLoop(make_model("bayesame", references), references, stop=stop)


def tell(loop: EvaluationLoop, items: list[int]) -> None:
    for item in items:
        loop.tell(item, score_of(f"q{item}"))


@BOTH
def test_a_skipped_item_is_asked_no_more_and_stays_unobserved(
    references: Callable[[], References],
) -> None:
    loop = loop_of(references())
    first, second = loop.ask(2)
    loop.skip(first)
    tell(loop, [second])
    asked = loop.ask(100)
    assert sorted(asked) == sorted(set(range(24)) - {first, second})
    tell(loop, asked)
    assert (loop.n, loop.stop_reason, loop.stopped_at) == (23, "complete", 23)
    assert loop.width > 0.0


@BOTH
def test_a_skip_changes_no_belief(references: Callable[[], References]) -> None:
    """The estimate after a skip is that of the same scores without one."""
    with_skip, without = loop_of(references()), loop_of(references())
    for loop in (with_skip, without):
        tell(loop, [3, 8, 15])
    with_skip.skip(5)
    assert (with_skip.estimate, with_skip.width) == (without.estimate, without.width)
    assert with_skip.estimates == without.estimates


def test_the_next_item_is_chosen_as_if_the_skipped_one_did_not_exist() -> None:
    """Unlike a pending item, which is counted on."""
    loop = loop_of(unique_references())
    tell(loop, [3, 8])
    (best,) = loop.ask(1)
    loop.skip(best)
    fresh = loop_of(unique_references())
    tell(fresh, [3, 8])
    fresh._available[best] = False
    assert loop.ask(1) == fresh.ask(1)


def test_skipped_items_take_none_of_the_budget() -> None:
    loop = loop_of(
        unique_references(), StoppingRule(width=1e-9, stable=1e-9, max_items=4)
    )
    for item in loop.ask(3):
        loop.skip(item)
    assert len(loop.ask(100)) == 4


def test_a_run_that_can_only_skip_ends() -> None:
    loop = loop_of(unique_references())
    for item in range(24):
        assert not loop.done
        loop.skip(item)
    assert (loop.stop_reason, loop.n, loop.ask(1)) == ("complete", 0, [])


def test_a_late_score_of_a_skipped_item_is_taken_in() -> None:
    loop = loop_of(unique_references())
    loop.skip(4)
    tell(loop, [4])
    assert 4 not in loop.skipped
    tell(loop, [i for i in range(24) if i != 4])
    assert loop.width == pytest.approx(0.0, abs=1e-9)


# Several targets


def joint(stop: StoppingRule = NEVER) -> MultiTargetLoop:
    references = unique_references()
    return MultiTargetLoop(SharedMean(references, n_targets=2), references, stop=stop)


def test_an_initial_item_that_is_skipped_does_not_hold_up_the_others() -> None:
    loop = joint()
    initial = loop.ask(100)
    assert len(initial) == 6
    loop.skip(*initial[0])
    for pair in initial[1:]:
        loop.tell(*pair, 0.5)
    later = loop.ask(4)
    assert len(later) == 4
    assert not set(later) & set(initial)


def test_a_target_whose_items_are_told_or_skipped_is_complete() -> None:
    loop = joint()
    while pairs := loop.ask(7):
        for target, item in pairs:
            if (target, item % 5) == (0, 0):
                loop.skip(target, item)
            else:
                loop.tell(target, item, 0.5)
    assert loop.stop_reasons == ["complete", "complete"]
    assert [len(scores) for scores in loop.scores] == [19, 24]
    assert loop.results(["a", "b"], unique_references().items)[0].stopped_at == 19


def test_budgets_of_targets_do_not_count_skipped_items() -> None:
    loop = joint(StoppingRule(width=1e-9, stable=1e-9, max_items=5))
    for target, item in loop.ask(100):
        loop.skip(target, item)
    asked = torch.tensor([target for target, _ in loop.ask(100)])
    assert torch.bincount(asked).tolist() == [5, 5]


# The first training


def trained_loop() -> tuple[MultiTargetLoop, MultiTargetBayesAME]:
    references = unique_references()
    model = MultiTargetBayesAME(references, n_targets=2, steps=4, initial=0.125)
    return MultiTargetLoop(model, references, stop=NEVER), model


@pytest.mark.parametrize("last", ["told", "skipped"])
def test_the_first_training_comes_where_initial_items_are_skipped(last: str) -> None:
    loop, model = trained_loop()
    initial = loop.ask(100)
    assert len(initial) == 6
    dealt = initial[1:] if last == "told" else [*initial[1:], initial[0]]
    if last == "told":
        loop.skip(*initial[0])
    for left, pair in zip(range(5, 0, -1), dealt, strict=False):
        assert (loop.initial_left(), model.updates) == (left + (last != "told"), {})
        assert len(loop.ask(1)) == 0
        loop.tell(*pair, score_of(f"q{pair[1]}"))
    if last == "skipped":
        assert (loop.initial_left(), model.updates) == (1, {})
        loop.skip(*initial[0])
    assert (loop.initial_left(), list(model.updates)) == (0, [5])
    loop.ask(1)
    loop.tell(*initial[0], 0.5)  # a late score: no second beginning
    loop.performance()
    assert list(model.updates) == [5]


def test_the_first_training_waits_for_a_score_where_all_initial_items_are_skipped() -> (
    None
):
    loop, model = trained_loop()
    for pair in loop.ask(100):
        loop.skip(*pair)
    assert (loop.initial_left(), model.updates) == (0, {})
    (pair,) = loop.ask(1)
    loop.tell(*pair, 1.0)
    assert list(model.updates) == [1]


def test_a_training_brought_by_a_skip_is_written_down(tmp_path: Path) -> None:
    with MultiTargetSession.create(
        tmp_path / "run",
        unique_references(),
        targets=["a", "b"],
        model_options={"steps": 4, "initial": 0.125},
        stop=NEVER,
    ) as session:
        initial = session.ask(100)
        session.tell_all({pair: score_of(pair[1]) for pair in initial[1:]})
        assert session.initial_left == 1
        session.skip({initial[0]: "too long"})
        assert session.initial_left == 0
        before, updates = session.estimates(), session.model.updates  # type: ignore[attr-defined]
        later = session.ask(4)
    written = (tmp_path / "run" / "events.jsonl").read_text()
    assert written.index('"skip"') < written.index('"update"') < written.rindex('"ask"')
    with MultiTargetSession.open(tmp_path / "run") as session:
        assert session.estimates() == before
        assert session.model.updates == updates  # type: ignore[attr-defined]
        assert session.model.fits == {}  # type: ignore[attr-defined]
        assert session.pending == later
