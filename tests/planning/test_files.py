from __future__ import annotations

from pathlib import Path

import pytest
from plans import population

from gp_eval.errors import GpEvalError, StateMismatchError
from gp_eval.planning import (
    Plan,
    PlanSettings,
    check_plan,
    make_plan,
    read_plan,
    write_plan,
)
from gp_eval.stopping import StoppingRule


@pytest.fixture(scope="module")
def plan() -> Plan:
    rule = StoppingRule(width=0.25, stable=0.05, window=5)
    return make_plan(
        population(),
        PlanSettings(models=("rs-mean", "aipw"), stop=rule, targets=6, jobs=1),
    )


def test_a_plan_is_read_as_it_was_written(plan: Plan, tmp_path: Path) -> None:
    path = write_plan(plan, tmp_path / "plan.json")
    assert read_plan(path) == plan
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_are_written_whole(plan: Plan, tmp_path: Path, suffix: str) -> None:
    path = write_plan(plan, tmp_path / f"plan.{suffix}")
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert path.read_bytes().startswith(start[suffix])
    assert len(list(tmp_path.iterdir())) == 1


def test_a_plan_without_curves_has_a_picture_too(plan: Plan, tmp_path: Path) -> None:
    bare = plan.model_copy(update={"curves": []})
    assert write_plan(bare, tmp_path / "plan.svg").stat().st_size > 1000


def test_a_failure_leaves_the_old_file(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plan.json"
    path.write_text("old")

    def interrupted(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gp_eval._files.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_plan(plan, path)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("content", ["", "[]", '{"format": "gp_eval plan 2"}'])
def test_other_files_are_no_plans(tmp_path: Path, content: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(content)
    with pytest.raises(GpEvalError, match="it is no plan; gp-eval plan REFS"):
        read_plan(path)
    with pytest.raises(GpEvalError, match="No such file"):
        read_plan(tmp_path / "none.json")


def test_other_references_are_refused_with_both_sizes(plan: Plan) -> None:
    check_plan(plan, population(), path="plan.json")
    message = "40 items and 12 references .* these are 40 and 11 "
    with pytest.raises(StateMismatchError, match=message):
        check_plan(plan, population().without(["m3"]), path="plan.json")


def test_places_that_cannot_be_written_are_refused(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="output: expected one of"):
        write_plan(plan, tmp_path / "plan.txt")
    with pytest.raises(FileNotFoundError, match="no such folder"):
        write_plan(plan, tmp_path / "none" / "plan.json")
