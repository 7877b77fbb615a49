"""``gp-eval run``: one line that starts, goes on, stops and can be interrupted."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import Outcome, gp_eval

from gp_eval.cli.run_options import RunOptions

SCORE = """#!/bin/sh
while read -r item; do echo "$item=0.$((${#item} % 2))5" >> "$2"; done < "$1"
"""


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    path = tmp_path / "score.sh"
    path.write_text(SCORE)
    path.chmod(0o755)
    return ["--", str(path), "{items}", "{scores}"]


def run(folder: Path, *words: object) -> Outcome:
    return gp_eval("run", "command", folder, *words)


def test_the_same_line_starts_and_goes_on(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    flags = ["--refs", table, "--max-items", 9, "--seed", 3, "--target", "mine"]
    first = run(tmp_path / "run", *flags, *command)
    assert (first.code, first.out) == (0, ""), first.err
    assert "mine: n = 9 of 40" in first.err
    assert "stopped: max_items" in first.err
    again = run(tmp_path / "run", *flags, *command)
    assert again.code == 0
    assert again.err.splitlines()[-1] == first.err.splitlines()[-1]
    assert run(tmp_path / "run", *command).code == 0  # flags may be left out now


def test_events_are_lines_of_json(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    flags = ["--refs", table, "--max-items", 5, "--batch", 3, "--json"]
    outcome = run(tmp_path / "run", *flags, *command)
    events = [json.loads(line) for line in outcome.out.splitlines()]
    assert [e["event"] for e in events] == ["ask", "tell", "ask", "tell", "stop"]
    asked = [pair["item"] for pair in events[0]["items"]]
    assert [score["item"] for score in events[1]["scores"]] == asked
    assert {"n": 5, "N": 40, "skipped": 0, "pending": 0, "done": True}.items() <= (
        events[-1].items()
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--seed", 4], "--seed: was 0, is 4"),
        (["--width", 0.5], "--width: was 0.03, is 0.5"),
        (["--max-items", 8], "--max-items: was 9, is 8"),
        (["--target", "other"], "--target: was ['target'], is ['other']"),
        (["--model", "rs-mean"], "--model: was 'bayesame', is 'rs-mean'"),
        (["--on-alarm", "warn"], "--on-alarm: was 'fallback', is 'warn'"),
    ],
)
def test_other_flags_than_at_the_start_are_exit_code_4(
    tmp_path: Path, table: Path, command: list[str], flags: list[object], message: str
) -> None:
    usual = ["--refs", table, "--max-items", 9]
    assert run(tmp_path / "run", *usual, *command).code == 0
    outcome = run(tmp_path / "run", *flags, *command)
    assert outcome.code == 4
    assert message in outcome.err


def test_other_references_are_exit_code_4(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    run(tmp_path / "run", "--refs", table, "--max-items", 5, *command)
    flags = ["--refs", table, "--exclude", "m0"]
    outcome = run(tmp_path / "run", *flags, *command)
    assert outcome.code == 4
    assert "they lack 'm0'" in outcome.err


def test_another_command_is_exit_code_4_unless_accepted(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    run(tmp_path / "run", "--refs", table, "--max-items", 5, *command)
    outcome = run(tmp_path / "run", *command, "--more")
    assert outcome.code == 4
    assert "driven with other settings" in outcome.err
    assert run(tmp_path / "run", "--accept-changes", *command, "--more").code == 0


def test_wrong_usage_is_exit_code_2(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    assert run(tmp_path / "run", *command).code == 2  # no references
    flags = ["--refs", table, "--on-error", "ignore"]
    assert run(tmp_path / "run", *flags, *command).code == 2
    assert run(tmp_path / "run", "--refs", table, "--width", 0, *command).code == 2
    assert run(tmp_path / "run", "--refs", table).code == 2  # no command
    assert not (tmp_path / "run" / "session.json").exists()


def test_skipped_items_are_counted_in_run_and_status(
    tmp_path: Path, table: Path
) -> None:
    path = tmp_path / "score.sh"
    path.write_text(
        """#!/bin/sh
while read -r item; do
  case "$item" in q??) echo "$item=1" >> "$2" ;; esac
done < "$1"
"""
    )
    path.chmod(0o755)
    words = ["--", path, "{items}", "{scores}"]
    flags = ["--refs", table, "--on-error", "skip", "--max-items", 25]
    outcome = run(tmp_path / "run", *flags, *words)
    assert outcome.code == 0, outcome.err
    skipped = outcome.err.count("failed: q")
    assert skipped > 0
    note = f"{skipped} items skipped: they count among the N"
    assert note in outcome.err
    status = gp_eval("status", tmp_path / "run", "--json")
    assert json.loads(status.out)["skipped"] == skipped
    assert note in gp_eval("status", tmp_path / "run").err


def test_a_budget_too_small_is_exit_code_3_when_strict(
    tmp_path: Path, table: Path, command: list[str]
) -> None:
    flags = ["--refs", table, "--max-items", 3, "--width", 1e-6, "--strict"]
    assert run(tmp_path / "run", *flags, *command).code == 3


@pytest.mark.parametrize("flags", [[], ["--on-alarm", "warn"]])
def test_what_to_do_on_an_alarm_is_written_down(
    tmp_path: Path, table: Path, command: list[str], flags: list[str]
) -> None:
    usual = ["--refs", table, "--max-items", 3]
    assert run(tmp_path / "run", *usual, *flags, *command).code == 0
    config = json.loads((tmp_path / "run" / "session.json").read_text())
    assert config["on_alarm"] == (flags[-1] if flags else "fallback")
    assert run(tmp_path / "run", *usual, *flags, *command).code == 0


@pytest.mark.parametrize("tool", ["lm-eval", "inspect", "command"])
def test_every_tool_has_the_same_flags_of_the_session(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tool: str
) -> None:
    told: list[RunOptions] = []
    monkeypatch.setattr(
        "gp_eval.cli.run.run_driver", lambda run, driver, options: told.append(options)
    )
    words = ("--plan", "plan.json", "--on-alarm", "warn", "--until", "score>=0.5")
    own = {
        "lm-eval": ["--model", "hf"],
        "inspect": ["task.py@t"],
        "command": ["score", "{items}", "{scores}"],
    }
    outcome = gp_eval("run", tool, tmp_path / "run", *words, "--", *own[tool])
    assert outcome.code == 0, outcome.err
    (found,) = told
    assert found.plan == Path("plan.json")
    assert (found.on_alarm, found.until) == ("warn", "score>=0.5")


def test_several_targets(tmp_path: Path, table: Path) -> None:
    path = tmp_path / "score.sh"
    path.write_text(SCORE)
    path.chmod(0o755)
    words = ["--", path, "{items}", "{scores}", "{target}"]
    flags = ["--refs", table, "--target", "a", "--target", "b", "--max-items", 6]
    outcome = run(tmp_path / "run", *flags, "--model", "shared-mean", *words)
    assert outcome.code == 0, outcome.err
    assert "a: n = 6 of 40" in outcome.err
    assert "b: n = 6 of 40" in outcome.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_saves_and_prints_the_line_that_goes_on(
    tmp_path: Path, table: Path, command: list[str], number: int
) -> None:
    slow = tmp_path / "slow.sh"
    slow.write_text(SCORE.replace("do echo", 'do touch "$0.on"; sleep 0.2; echo'))
    slow.chmod(0o755)
    words = ["run", "command", tmp_path / "run", "--refs", table, "--batch", 4]
    words = [str(word) for word in [*words, "--", slow, "{items}", "{scores}"]]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-m", "gp_eval.cli.app", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        start_new_session=True,
        # A shell's background jobs ignore an interruption, and hand that down.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 120
    while not Path(f"{slow}.on").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert out == ""
    line = err.splitlines()[-1]
    assert shlex.split(line)[0] == "gp-eval"
    assert shlex.split(line)[1:] == words
    pending = gp_eval("ask", tmp_path / "run", "--pending").out.split()
    assert len(pending) == 4
    Path(slow).write_text(SCORE)
    resumed = gp_eval(*shlex.split(line)[1:])
    assert resumed.code == 0, resumed.err


def test_tools_that_are_not_installed_are_named(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for tool, flags in (
        ("lm-eval", ["--model", "dummy", "--tasks", "t"]),
        ("inspect", ["x.py", "--model", "mockllm/model"]),
    ):
        words = [tmp_path / tool, "--refs", table, "--", *flags]
        outcome = gp_eval("run", tool, *words)
        assert outcome.code == 1
        assert f"pip install 'gp-eval[{tool}]'" in outcome.err
