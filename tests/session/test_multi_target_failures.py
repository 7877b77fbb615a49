"""Sessions of several targets: one writer, and failures in the middle."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from multi_target_sessions import SharedMean, create, evaluate, finish, resume
from sessions import contents

from gp_eval import MultiTargetSession
from gp_eval.errors import SessionLockedError


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a session that is made by the test."""
    return tmp_path / "run"


def test_a_second_writer_is_refused_and_a_reader_is_not(run: Path) -> None:
    with create(run) as session:
        evaluate(session, 4)
        asked = session.ask(2)
        with pytest.raises(SessionLockedError, match="open for writing in another"):
            MultiTargetSession.open(run)
        reader = MultiTargetSession.open(run, read_only=True)
        assert reader.estimates() == session.estimates()
        assert reader.pending == asked
        before = contents(run)
        for call in (
            lambda: reader.ask(),
            lambda: reader.tell("a", "q0", 0.5),
            lambda: reader.tell_all({}),
        ):
            with pytest.raises(SessionLockedError, match="read-only"):
                call()
        assert contents(run) == before
    with pytest.raises(SessionLockedError, match="closed"):
        session.ask()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_interrupt_in_the_middle_of_a_training_loses_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def interrupt(model: SharedMean) -> float:
        model.strength = 99.0
        raise error

    with create(run.with_name("2")) as session:
        expected = finish(session)
    session = create(run)
    evaluate(session, 10)
    with monkeypatch.context() as patch:
        patch.setattr(SharedMean, "fit", interrupt)
        with pytest.raises(error):
            session.ask()
    # The object refuses from here on, so that it cannot spoil the folder.
    with pytest.raises(SessionLockedError):
        session.ask()
    with MultiTargetSession.open(run) as session:
        assert finish(session) == expected


def test_a_tell_that_could_not_be_written_can_be_told_again(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left")

    with create(run) as session:
        evaluate(session, 3)
        pair, *_ = session.ask()
        before = session.estimates()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fail)
            with pytest.raises(OSError, match="no space left"):
                session.tell(*pair, 0.25)
        assert session.estimates() == before
        with contextlib.suppress(SessionLockedError):
            session.tell(*pair, 0.25)
    with MultiTargetSession.open(run) as session:
        session.tell(*pair, 0.25)
        expected = session.estimates()
    assert resume(run) == expected
