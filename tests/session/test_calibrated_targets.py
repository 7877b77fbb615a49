"""Sessions of several targets whose intervals are learned on the references."""

from __future__ import annotations

from pathlib import Path

import pytest
from multi_target_sessions import TARGETS, SharedMean, create, evaluate
from populations import population

from gp_eval import MultiTargetSession, StoppingRule
from gp_eval.calibration import CalibratedTargets, learn

SESSION = {
    "model": "bayesame-multi-calibrated",
    "model_options": {"model": "shared-mean", "pseudo_targets": 3},
}


def test_a_resumed_session_does_not_learn_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path / "run", **SESSION) as session:
        evaluate(session, 14)
        before = session.estimates()

    def forbidden(*_, **__):
        raise AssertionError("learned again")

    monkeypatch.setattr(learn, "squared_errors", forbidden)
    with MultiTargetSession.open(tmp_path / "run") as session:
        assert session.estimates() == before


def test_the_inflation_is_on_disk_before_the_first_pair_is_asked(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "run", **SESSION) as session:
        assert isinstance(session.model, CalibratedTargets)
        assert isinstance(session.model.model, SharedMean)
    assert "inflation.factors" in (tmp_path / "run" / "events.jsonl").read_text()
    assert len(TARGETS) == session.model.n_targets


def test_a_small_budget_does_not_keep_pseudo_targets_from_training(
    tmp_path: Path,
) -> None:
    options = {"options": {"initial": 0.5, "steps": 20}, "max_items": 3}
    with MultiTargetSession.create(
        tmp_path / "run",
        population(12, 20),
        targets=["a", "b"],
        model="bayesame-multi-calibrated",
        model_options=options | {"pseudo_targets": 2},
        stop=StoppingRule(max_items=4),
    ) as session:
        assert session.model.initial_items == 4
        # Pseudo-targets are trained after 10 of 20 items, and go on to 19.
        assert session.model.inflation.shares == (0.5, 0.75, 0.9)


def test_a_model_that_cannot_learn_makes_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_, **__):
        raise ValueError("cannot learn")

    monkeypatch.setattr(learn, "squared_errors", fail)
    with pytest.raises(ValueError, match="cannot learn"):
        create(tmp_path / "run", **SESSION)
    assert not (tmp_path / "run").exists()


def test_what_a_kill_left_unlearned_is_learned_at_the_next_opening(
    tmp_path: Path,
) -> None:
    with create(tmp_path / "run", **SESSION) as session:
        known = session.model.inflation
    events = tmp_path / "run" / "events.jsonl"
    written = events.read_text()
    events.write_text("")
    with MultiTargetSession.open(tmp_path / "run") as session:
        assert session.model.inflation == known
    assert events.read_text().count("inflation.factors") == 1
    assert written.count("inflation.factors") == 1


def test_progress_and_the_initial_items_are_those_of_the_wrapped_model(
    tmp_path: Path,
) -> None:
    told: list[tuple[int, int]] = []
    with create(
        tmp_path / "run", **SESSION, progress=lambda *step: told.append(step)
    ) as session:
        evaluate(session, 14)
        assert session.model.initial_items == session.model.model.initial_items == 3
    assert (5, 5) in told
