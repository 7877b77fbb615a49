"""``gp-eval start | ask | status`` with several targets."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from command import gp_eval
from multi_target_commands import pairs, settings, start, status, told
from rich.console import Console

INITIAL = 6
"""Pairs of the initial design: three items for each of two targets."""


# start


def test_several_targets_get_the_model_for_several(tmp_path: Path, table: Path) -> None:
    assert start(tmp_path / "r", table, "--target", "a", "--target", "b").code == 0
    assert settings(tmp_path / "r")["targets"] == ["a", "b"]
    assert settings(tmp_path / "r")["model"] == "bayesame-multi"


def test_one_target_is_as_before(single: Path) -> None:
    assert settings(single)["target"] == "a"
    assert settings(single)["model"] == "bayesame"


def test_one_target_may_have_the_model_for_several(tmp_path: Path, table: Path) -> None:
    run = tmp_path / "r"
    start(run, table, "--target", "a", "--model", "shared-mean")
    assert settings(run)["targets"] == ["a"]
    ((target, item), *_) = pairs(run, "-n", 2)
    assert target == "a"
    assert gp_eval("tell", run, f"{item}=1").code == 0
    assert told(run) == {"a": 1}


def test_a_model_of_one_target_is_refused_for_several(
    tmp_path: Path, table: Path
) -> None:
    names = ("--target", "a", "--target", "b")
    outcome = start(tmp_path / "r", table, *names, "--model", "rs-mean")
    assert outcome.code == 1
    assert "'rs-mean' is of one target: use 'bayesame-multi'" in outcome.err
    assert "one session each" in outcome.err
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "a"], "targets: expected unique names, repeated: 'a'"),
        (["a", "m2"], "'m2' is one of the reference models"),
        (["a", ""], "expected a name that is not empty"),
        ([""], "expected a name that is not empty"),
    ],
)
def test_targets_that_cannot_be_used(
    tmp_path: Path, table: Path, names: list[str], message: str
) -> None:
    flags = [word for name in names for word in ("--target", name)]
    outcome = start(tmp_path / "r", table, *flags)
    assert outcome.code == 1
    assert message in outcome.err
    assert not (tmp_path / "r").exists()


def test_no_target_is_wrong_usage(tmp_path: Path, table: Path) -> None:
    assert start(tmp_path / "r", table).code == 2


def test_environment_and_config_file_name_targets(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(folder: str, *flags: str) -> list[str]:
        outcome = start(tmp_path / folder, table, *flags)
        assert outcome.code == 0, outcome.err
        found = settings(tmp_path / folder)
        return found["targets"] if "targets" in found else [found["target"]]

    monkeypatch.chdir(tmp_path)
    config = tmp_path / "gp-eval.toml"
    config.write_text('[start]\ntarget = "file"\nexclude = "m3"\n')
    assert named("1") == ["file"]
    config.write_text('[start]\ntarget = ["of a", "file"]\n')
    assert named("2") == ["of a", "file"]
    monkeypatch.setenv("GP_EVAL_TARGET", "variable")
    assert named("3") == ["variable"]
    monkeypatch.setenv("GP_EVAL_TARGET", "a variable")
    assert named("4") == ["a", "variable"]
    assert named("5", "--target", "flag") == ["flag"]
    assert named("6", "--target", "a flag", "--target", "b") == ["a flag", "b"]


def test_a_reference_to_leave_out_may_be_a_text_in_the_config_file(
    tmp_path: Path, table: Path
) -> None:
    (tmp_path / "own.toml").write_text('[start]\nexclude = "m3"\ntarget = "m3"\n')
    words = ("--config", tmp_path / "own.toml", "start", tmp_path / "r")
    outcome = gp_eval(*words, "--refs", table)
    assert outcome.code == 0, outcome.err
    assert "m3: 40 items, 4 references" in outcome.err


# ask


def test_forms_of_ask(joint: Path) -> None:
    asked = pairs(joint, "-n", 4)
    assert len(set(asked)) == 4
    assert {target for target, _ in asked} == {"a", "b c"}
    assert pairs(joint, "--pending") == asked
    as_json = gp_eval("ask", joint, "--pending", "--as", "json").out
    assert json.loads(as_json) == [{"target": t, "item": i} for t, i in asked]
    as_csv = gp_eval("ask", joint, "--pending", "--as", "csv").out
    assert as_csv.splitlines() == ["target,item", *(f"{t},{i}" for t, i in asked)]


@pytest.mark.parametrize(
    ("form", "nothing"), [("ids", ""), ("json", "[]\n"), ("csv", "target,item\n")]
)
def test_nothing_to_ask_before_pending_pairs_are_told(
    joint: Path, form: str, nothing: str
) -> None:
    assert len(pairs(joint, "-n", 50)) == INITIAL
    outcome = gp_eval("ask", joint, "-n", 50, "--as", form)
    assert outcome.code == 0
    assert outcome.out == nothing
    assert "nothing to ask before 6 pending items are told" in outcome.err


def test_what_ask_prints_goes_back_into_tell(joint: Path, tmp_path: Path) -> None:
    rows = gp_eval("ask", joint, "-n", 4, "--as", "csv").out.splitlines()
    scored = [rows[0] + ",score", *(row + ",0.5" for row in rows[1:])]
    (tmp_path / "scores.csv").write_text("\n".join(scored))
    assert gp_eval("tell", joint, "--from", tmp_path / "scores.csv").code == 0
    assert told(joint) == {"a": 2, "b c": 2}
    assert pairs(joint, "--pending") == []


# status


def test_status_is_a_line_for_each_target(joint: Path) -> None:
    ((target, item), *_) = pairs(joint, "-n", 3)
    gp_eval("tell", joint, "--target", target, f"{item}=1")
    outcome, records = status(joint)
    assert outcome.code == 0
    assert [record["target"] for record in records] == ["a", "b c"]
    for record, n, pending in zip(records, (1, 0), (1, 1), strict=True):
        assert record == {
            "target": record["target"],
            "estimate": record["estimate"],
            "low": record["low"],
            "high": record["high"],
            "width": pytest.approx(record["high"] - record["low"]),
            "n": n,
            "N": 40,
            "pending": pending,
            "skipped": 0,
            "done": False,
            "stop_reason": None,
            "off_range_since": None,
            "off_range": None,
        }
    shown = gp_eval("status", joint).out.splitlines()
    assert [line[:3].strip() for line in shown] == ["tar", "a", "b c"]
    assert "1 of 40" in shown[1]
    assert "0 of 40" in shown[2]


def test_a_budget_spent_by_any_target_is_exit_code_3_when_strict(
    tmp_path: Path, table: Path
) -> None:
    run = tmp_path / "short"
    start(
        run, table, "--target", "a", "--target", "b", "--model", "shared-mean",
        "--max-items", 3, "--width", "0.001",
    )  # fmt: skip
    for target, item in pairs(run, "-n", 50):
        assert status(run, "--strict")[0].code == (3 if told(run)["a"] == 3 else 0)
        gp_eval("tell", run, "--target", target, f"{item}=0.5")
    outcome, records = status(run, "--strict")
    assert outcome.code == 3
    assert [record["stop_reason"] for record in records] == ["max_items"] * 2
    assert status(run)[0].code == 0
    asked = gp_eval("ask", run, "--strict")
    assert (asked.code, asked.out) == (3, "")
    assert "stopped: a: max_items, b: max_items" in asked.err


# Training


def test_training_shows_a_bar_on_stderr_and_leaves_stdout_alone(
    joint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()

    def console() -> Console:
        return Console(file=screen, force_terminal=True, width=80)

    monkeypatch.setattr("gp_eval.cli.output.progress_console", console)
    asked = pairs(joint, "-n", 50)
    for target, item in asked:
        gp_eval("tell", joint, "--target", target, f"{item}=0.5")
    for target, item in pairs(joint, "-n", 4):
        gp_eval("tell", joint, "--target", target, f"{item}=0.5")
    assert screen.getvalue() == ""
    outcome = gp_eval("ask", joint)  # the tenth evaluation was told
    assert outcome.out.count("\n") == 1
    assert "Training" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_the_model_for_several_targets_runs_from_the_shell(
    tmp_path: Path, table: Path
) -> None:
    run = tmp_path / "real"
    start(run, table, "--target", "a", "--target", "b")
    initial = pairs(run, "-n", 50)
    assert len(initial) == 8  # a tenth of the items
    for name in ("a", "b"):
        words = [f"{i}={(int(i[1:]) % 5) / 4}" for t, i in initial if t == name]
        outcome = gp_eval("tell", run, "--target", name, *words)
        assert outcome.code == 0, outcome.err
    later = pairs(run, "-n", 4)
    assert {target for target, _ in later} == {"a", "b"}
    assert not set(later) & set(initial)
    for record in status(run)[1]:
        assert record["n"] == 4
        assert record["low"] < record["estimate"] < record["high"]
