"""Sessions of several targets with the model they are made for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from multi_target_sessions import TARGETS, create, evaluate, finish, resume, tell
from sessions import Update, events_of, keep_events, unique_references

import gp_eval.models.multi_target_bayesame
from gp_eval import MultiTargetSession
from gp_eval.errors import SessionLockedError

INITIAL = 6
"""Pairs of the initial design: two of twelve items for each of three targets."""


def create_real(path: Path, **options: Any) -> MultiTargetSession:
    """A session whose model trains often and briefly."""
    trained = {"initial": 0.17, "refit_every": 3, "steps": 4}
    return create(
        path,
        model="bayesame-multi",
        references=unique_references(12),
        model_options=trained | options.pop("model_options", {}),
        **options,
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run"


def updates(folder: Path) -> list[int]:
    return [e.n for e in events_of(folder) if isinstance(e, Update)]


def test_it_is_the_model_unless_another_is_named(run: Path) -> None:
    references = unique_references(12)
    MultiTargetSession.create(run, references, targets=TARGETS).close()
    assert json.loads((run / "session.json").read_text())["model"] == "bayesame-multi"


def test_the_seed_of_the_session_is_that_of_the_model(run: Path) -> None:
    def first_update(folder: Path, **options: Any) -> dict[str, list[float]]:
        with create_real(folder, **options) as session:
            session.tell_all({(t, f"q{i}"): 0.5 for t in TARGETS for i in (1, 2)})
            session.ask()
        event = next(e for e in events_of(folder) if isinstance(e, Update))
        return event.hyperparameters

    zero = first_update(run, seed=0)
    assert first_update(run.with_name("1"), seed=0) == zero
    assert first_update(run.with_name("2"), seed=1) != zero
    own = {"model_options": {"seed": 0}}
    assert first_update(run.with_name("3"), seed=1, **own) == zero


@pytest.mark.parametrize("selection", ["round-robin", "average", "random"])
def test_a_resumed_session_asks_for_the_same_pairs(run: Path, selection: str) -> None:
    options = {"model_options": {"selection": selection}}
    with create_real(run.with_name("2"), **options) as session:
        expected = finish(session)
    create_real(run, **options).close()
    for _ in range(36):
        with MultiTargetSession.open(run) as session:
            asked = session.ask()
        with MultiTargetSession.open(run) as session:
            assert session.pending == asked
            tell(session, asked)
    assert resume(run) == expected
    assert updates(run) == updates(run.with_name("2")) == [6, 15, 24, 33]


@pytest.mark.parametrize("selection", ["round-robin", "average", "random"])
def test_nine_at_once_up_to_each_update_are_single_asks(
    run: Path, selection: str
) -> None:
    options = {"model_options": {"selection": selection}}
    with create_real(run, **options) as session:
        evaluate(session, INITIAL, q=INITIAL)
        at_once = finish(session, q=9)
    with create_real(run.with_name("2"), **options) as session:
        assert finish(session) == at_once


def test_a_replay_does_not_train_and_without_the_updates_ends_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_real(run) as session:
        evaluate(session, 20)
        estimates = session.estimates()
    assert updates(run) == [6, 15]

    def no_training(*_: object, **__: object) -> None:
        raise AssertionError("the model was trained")

    module = gp_eval.models.multi_target_bayesame
    with monkeypatch.context() as patch:
        patch.setattr(module, "fit_adamw", no_training)
        assert resume(run) == estimates
    keep_events(run, lambda event: not isinstance(event, Update))
    assert resume(run) == estimates


@pytest.mark.parametrize("told", [INITIAL - 1, 15])
def test_an_interrupt_in_the_middle_of_a_training_loses_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, told: int
) -> None:
    with create_real(run.with_name("2")) as session:
        expected = finish(session)
    session = create_real(run)
    evaluate(session, told)

    def interrupt(step: int, _: int) -> None:
        if step == 2:
            raise KeyboardInterrupt

    session.close()
    session = MultiTargetSession.open(run, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        evaluate(session, 2)
    with pytest.raises(SessionLockedError):
        session.ask()
    with MultiTargetSession.open(run) as session:
        assert finish(session) == expected


def test_training_is_shown(run: Path) -> None:
    steps: list[tuple[int, int]] = []

    def record(step: int, n_steps: int) -> None:
        steps.append((step, n_steps))

    with create_real(run, progress=record) as session:
        evaluate(session, INITIAL - 1)
        assert steps == []
        evaluate(session, 1)
    assert steps[-1] == (4, 4)
