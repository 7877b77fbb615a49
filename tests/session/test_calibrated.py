from __future__ import annotations

from pathlib import Path

import pytest
from sessions import NEVER, score_of, unique_references

from gp_eval import Session
from gp_eval.calibration import learn
from gp_eval.errors import StateMismatchError
from gp_eval.session.journal import Journal, Update

OPTIONS = {"pseudo_targets": 3, "options": {"refit_every": 4}}


def create(path: Path, **changes) -> Session:
    settings = {"target": "mine", "model": "calibrated", "model_options": OPTIONS}
    return Session.create(path, unique_references(), stop=NEVER, **settings | changes)


def step(session: Session, n: int) -> None:
    for _ in range(n):
        for item in session.pending or session.ask():
            session.tell(item, score_of(item))


@pytest.fixture
def unlearnable(monkeypatch: pytest.MonkeyPatch):
    def forbid() -> None:
        def fail(*_, **__):
            raise AssertionError("learned again")

        monkeypatch.setattr(learn, "squared_errors", fail)

    return forbid


def test_the_inflation_is_on_disk_before_the_first_item_is_asked(
    tmp_path: Path, unlearnable
) -> None:
    with create(tmp_path / "run") as session:
        prior = session.estimate()
    events = Journal(tmp_path / "run" / "events.jsonl").read(repair=False)
    assert [type(event) for event in events] == [Update]
    assert events[0].n == 0
    unlearnable()
    with Session.open(tmp_path / "run", read_only=True) as session:
        assert session.estimate() == prior


def test_a_resumed_session_goes_on_as_if_never_closed(
    tmp_path: Path, unlearnable
) -> None:
    with create(tmp_path / "whole") as session:
        step(session, 13)
        whole = session.estimate()
    with create(tmp_path / "parts") as session:
        step(session, 6)
    unlearnable()
    with Session.open(tmp_path / "parts") as session:
        step(session, 7)
        parts = session.estimate()
    assert parts == whole


def test_what_learning_cannot_do_shows_before_a_file_is_made(tmp_path: Path) -> None:
    table = unique_references(n_models=2)
    with pytest.raises(
        ValueError, match="on the 1 of 2 references .* expected at least 2"
    ):
        Session.create(
            tmp_path / "run",
            table,
            target="mine",
            model="calibrated",
            model_options={"model": "proeval"},
        )
    assert not (tmp_path / "run").exists()


def test_a_damaged_inflation_is_not_taken(tmp_path: Path, monkeypatch) -> None:
    with create(tmp_path / "run"):
        pass
    path = tmp_path / "run" / "events.jsonl"
    path.unlink()
    journal = Journal(path)
    journal.create()
    wrong = {"inflation.shares": [0.5], "inflation.factors": [0.5]}
    journal.append([Update(n=0, hyperparameters=wrong)])
    with pytest.raises(StateMismatchError, match="factors >= 1"):
        Session.open(tmp_path / "run")
