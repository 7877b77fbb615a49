"""Sessions of several targets: resumed to the last bit, without training again."""

from __future__ import annotations

from pathlib import Path

import pytest
from multi_target_sessions import SharedMean, create, evaluate, finish, resume, tell
from sessions import Update, events_of, keep_events

from gp_eval import MultiTargetSession


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a session that is made by the test."""
    return tmp_path / "run"


@pytest.mark.parametrize("q", [1, 3])
def test_a_resumed_session_has_the_same_numbers_and_pairs(run: Path, q: int) -> None:
    with create(run) as session:
        for _ in range(7):
            evaluate(session, q, q=q)
            reader = MultiTargetSession.open(run, read_only=True)
            assert reader.estimates() == session.estimates()
            assert reader.stop_reasons == session.stop_reasons
        session.ask(2)
        pending, estimates = session.pending, session.estimates()
    with MultiTargetSession.open(run) as session:
        assert session.pending == pending
        assert session.estimates() == estimates
        resumed = finish(session)
    with create(run.with_name("2")) as session:
        for _ in range(7):
            evaluate(session, q, q=q)
        session.ask(2)
        assert finish(session) == resumed


def test_resuming_after_every_single_event_changes_nothing(run: Path) -> None:
    with create(run.with_name("2")) as session:
        expected = finish(session)
    create(run).close()
    for _ in range(72):
        with MultiTargetSession.open(run) as session:
            asked = session.ask()
        with MultiTargetSession.open(run) as session:
            assert session.pending == asked
            tell(session, asked)
    assert resume(run) == expected


def no_fit(_: SharedMean) -> float:
    raise AssertionError("the model was trained")


def test_a_replay_does_not_train(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(run) as session:
        evaluate(session, 25)
        estimates = session.estimates()
    assert [e.n for e in events_of(run) if isinstance(e, Update)] == [10, 20]
    monkeypatch.setattr(SharedMean, "fit", no_fit)
    assert resume(run) == estimates
    keep_events(run, lambda event: not isinstance(event, Update))
    with pytest.raises(AssertionError, match="was trained"):
        MultiTargetSession.open(run)


def test_a_replay_without_the_updates_has_the_same_numbers(run: Path) -> None:
    with create(run) as session:
        evaluate(session, 13)
        session.ask(3)
        estimates, pending = session.estimates(), session.pending
    keep_events(run, lambda event: not isinstance(event, Update))
    with MultiTargetSession.open(run) as session:
        assert session.estimates() == estimates
        assert session.pending == pending


def test_training_is_shown_while_it_goes_on(run: Path) -> None:
    steps: list[tuple[int, int]] = []

    def record(step: int, n_steps: int) -> None:
        steps.append((step, n_steps))

    with create(run, progress=record) as session:
        evaluate(session, 10)
        assert steps == []
        evaluate(session, 1)
        assert steps == [(k, 5) for k in range(1, 6)]
    keep_events(run, lambda event: not isinstance(event, Update))
    MultiTargetSession.open(run, progress=record).close()
    assert len(steps) == 10
