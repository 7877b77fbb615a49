"""Skipped items on disk."""

from __future__ import annotations

from pathlib import Path

import multi_target_sessions
import pytest
from sessions import create, evaluate, events_of, finish, resume, score_of

from gp_eval import MultiTargetSession, Session
from gp_eval.errors import ScoreError
from gp_eval.session.journal import Skip


def test_a_skip_survives_a_resume_with_its_reason(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        evaluate(session, 3)
        first, second = session.ask(2)
        session.skip({first: "no answer"})
        assert session.pending == [second]
        assert session.skipped == {first: "no answer"}
    with Session.open(tmp_path / "run") as session:
        assert session.skipped == {first: "no answer"}
        assert session.pending == [second]
        result = finish(session)
        assert (result.n, result.N, result.stop_reason) == (23, 24, "complete")
        assert first not in result.items
    assert resume(tmp_path / "run") == result


def test_a_resumed_run_asks_what_the_other_one_would_have(tmp_path: Path) -> None:
    asked = []
    for name in ("straight", "resumed"):
        session = create(tmp_path / name)
        evaluate(session, 9)
        session.skip(dict.fromkeys(session.ask(2), "x"))
        if name == "resumed":
            session.close()
            session = Session.open(tmp_path / name)
        asked.append(evaluate(session, 8))
        session.close()
    assert asked[0] == asked[1]


def test_skipping_again_writes_nothing(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        session.skip({"q1": "a"})
        session.skip({"q1": "b"})
        assert session.skipped == {"q1": "a"}
    skips = [e for e in events_of(tmp_path / "run") if isinstance(e, Skip)]
    assert [(e.item, e.reason) for e in skips] == [("q1", "a")]


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ({"q2": "", "zz": ""}, "'zz' is not among"),
        ({"q2": "", "q1": ""}, "told before"),
    ],
)
def test_all_are_skipped_or_none(
    tmp_path: Path, items: dict[str, str], message: str
) -> None:
    with create(tmp_path / "run") as session:
        session.tell("q1", score_of("q1"))
        with pytest.raises(ScoreError, match=message):
            session.skip(items)
        assert session.skipped == {}


def test_a_score_after_all_replaces_the_skip(tmp_path: Path) -> None:
    with create(tmp_path / "run") as session:
        session.skip({"q1": "x"})
        session.tell("q1", 0.5)
        assert session.skipped == {}
    with Session.open(tmp_path / "run") as session:
        assert session.skipped == {}
        assert session.estimate().n == 1


def test_pairs_of_several_targets(tmp_path: Path) -> None:
    with multi_target_sessions.create(tmp_path / "run") as session:
        first, *others = session.ask(4)
        session.skip({first: "down"})
        assert session.pending == others
        with pytest.raises(ScoreError, match="expected \\(target, item\\)"):
            session.skip({"q1": "x"})  # type: ignore[dict-item]
    with MultiTargetSession.open(tmp_path / "run") as session:
        assert session.skipped == {first: "down"}
        assert session.pending == others
