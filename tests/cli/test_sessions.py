from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pandas as pd
import pytest
from command import Outcome, gp_eval


@pytest.fixture
def run(tmp_path: Path, table: Path) -> Path:
    folder = tmp_path / "run"
    outcome = gp_eval("start", folder, "--refs", table, "--target", "mine")
    assert outcome.code == 0
    assert outcome.out == ""
    assert f"gp-eval ask {folder}" in outcome.err
    return folder


def status(run: Path, *flags: str) -> tuple[Outcome, dict]:
    outcome = gp_eval("status", run, "--json", *flags)
    return outcome, json.loads(outcome.out)


def test_ask_prints_items_and_nothing_else(run: Path) -> None:
    first = gp_eval("ask", run)
    assert first.code == 0
    assert first.out.count("\n") == 1
    more = gp_eval("ask", run, "-n", 3).out.split()
    assert len({first.out.strip(), *more}) == 4


@pytest.mark.parametrize("form", ["json", "csv"])
def test_forms_of_ask(run: Path, form: str) -> None:
    items = gp_eval("ask", run, "-n", 3).out.split()
    printed = gp_eval("ask", run, "--pending", "--as", form).out
    if form == "json":
        assert json.loads(printed) == items
    else:
        assert printed.splitlines() == ["item", *items]


def test_told_scores_show_in_the_status(run: Path) -> None:
    a, b = gp_eval("ask", run, "-n", 2).out.split()
    assert gp_eval("tell", run, f"{a}=1", "q39=0.25").code == 0
    _, record = status(run)
    assert record == {
        "target": "mine",
        "estimate": record["estimate"],
        "low": record["low"],
        "high": record["high"],
        "width": pytest.approx(record["high"] - record["low"]),
        "n": 2,
        "N": 40,
        "pending": 1,
        "skipped": 0,
        "done": False,
        "stop_reason": None,
        "off_range_since": None,
        "off_range": None,
    }
    assert record["low"] < record["estimate"] < record["high"]
    assert b in gp_eval("ask", run, "--pending").out


def test_status_for_people_says_what_the_interval_covers(run: Path) -> None:
    outcome = gp_eval("status", run)
    assert "mine" in outcome.out
    assert "0 of 40" in outcome.out
    assert "neither re-runs nor other items" in outcome.err


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("scores.csv", "item,score\nq1,0.5\nq2,1\n"),
        ("scores.json", '{"q1": 0.5, "q2": 1}'),
        ("scores.jsonl", '{"item": "q1", "score": 0.5}\n{"item": "q2", "score": 1}\n'),
        ("one.jsonl", '{"item": "q1", "score": 0.5}\n'),
    ],
)
def test_scores_from_a_file(run: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert gp_eval("tell", run, "--from", tmp_path / name).code == 0
    assert status(run)[1]["n"] == (1 if name == "one.jsonl" else 2)


def test_scores_from_standard_input(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("item,score\nq1,0.5\n"))
    assert gp_eval("tell", run, "--from", "-").code == 0
    assert status(run)[1]["n"] == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["q1=1", "nope=1"], "'nope' is not among the 40 items"),
        (["q1=1", "q2=nan"], "score of 'q2': expected a finite number"),
        (["q1=1", "q2=yes"], "score of 'q2': expected a number, got 'yes'"),
        (["q1=1", "q1=1"], "'q1' is given twice"),
        (["q1"], "expected ITEM=SCORE, got 'q1'"),
        (["q1=1", "q7=0.1"], "'q7' was told before with score 0.5, now with 0.1"),
    ],
)
def test_one_bad_score_rejects_all(run: Path, words: list[str], message: str) -> None:
    gp_eval("tell", run, "q7=0.5")
    before = (run / "events.jsonl").read_bytes()
    outcome = gp_eval("tell", run, *words)
    assert outcome.code == 1
    assert message in outcome.err
    assert outcome.out == ""
    assert (run / "events.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    "text", ["", "q1,0.5\n", '{"item": "q1"}', '{"q1": 0.5', "a,b\n1,2\n"]
)
def test_files_that_hold_no_scores(run: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "scores").write_text(text)
    outcome = gp_eval("tell", run, "--from", tmp_path / "scores")
    assert outcome.code == 1
    assert "expected" in outcome.err
    assert gp_eval("tell", run, "--from", tmp_path / "absent").code == 1


def test_item_ids_may_hold_an_equals_sign(tmp_path: Path) -> None:
    path = tmp_path / "refs.csv"
    pd.DataFrame({"m": [0.1, 0.9]}, index=["a=1", "b=2"]).to_csv(path)
    gp_eval("start", tmp_path / "run", "--refs", path, "--target", "t")
    assert gp_eval("tell", tmp_path / "run", "a=1=0.5").code == 0


def test_budget_spent_is_exit_code_3_when_strict(tmp_path: Path, table: Path) -> None:
    folder = tmp_path / "short"
    gp_eval(
        "start", folder, "--refs", table, "--target", "mine", "--max-items", 2,
        "--width", "0.001",
    )  # fmt: skip
    items = gp_eval("ask", folder, "-n", 9).out.split()
    assert len(items) == 2
    assert "2 pending items" in gp_eval("ask", folder).err
    gp_eval("tell", folder, *(f"{item}=0.5" for item in items))
    outcome, record = status(folder, "--strict")
    assert outcome.code == 3
    assert record["stop_reason"] == "max_items"
    assert status(folder)[0].code == 0
    assert gp_eval("ask", folder, "--strict").code == 3
    asked = gp_eval("ask", folder)
    assert asked.code == 0
    assert asked.out == ""
    assert "stopped: max_items" in asked.err


def test_a_state_that_does_not_match_is_exit_code_4(run: Path, table: Path) -> None:
    again = gp_eval("start", run, "--refs", table, "--target", "mine")
    assert again.code == 4
    assert "holds a session already" in again.err
    (run / "events.jsonl").write_text("damage\n")
    outcome = gp_eval("status", run)
    assert outcome.code == 4
    assert "line 1" in outcome.err
    assert gp_eval("status", run.parent).code == 4


def test_wrong_usage_is_exit_code_2(run: Path) -> None:
    assert gp_eval("start", run, "--width", "wide").code == 2
    assert gp_eval("ask", run, "-n", 0).code == 2
    again = ("start", run, "--refs", "r.csv", "--target", "t", "--width", 0)
    assert gp_eval(*again).code == 2
    assert gp_eval("tell", run).code == 2
    assert gp_eval("tell", run, "q1=1", "--from", "-").code == 2
    assert gp_eval("no-such-command").code == 2


def test_target_among_the_references(tmp_path: Path, table: Path) -> None:
    words = ("start", tmp_path / "new", "--refs", table, "--target", "m2")
    outcome = gp_eval(*words)
    assert outcome.code == 1
    assert "'m2' is one of the reference models" in outcome.err
    assert not (tmp_path / "new").exists()
    assert gp_eval(*words, "--exclude", "m2").code == 0


def test_unknown_model_names_the_known_ones(tmp_path: Path, table: Path) -> None:
    outcome = gp_eval(
        "start", tmp_path / "new", "--refs", table, "--target", "t", "--model", "gp"
    )
    assert outcome.code == 1
    assert "bayesame" in outcome.err
    assert not (tmp_path / "new").exists()


def test_environment_and_config_file_set_flags(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wanted(folder: str, *flags: str) -> float:
        gp_eval("start", tmp_path / folder, "--refs", table, "--target", "t", *flags)
        settings = json.loads((tmp_path / folder / "session.json").read_text())
        return settings["stop"]["width"]

    monkeypatch.chdir(tmp_path)
    assert wanted("default") == 0.03
    (tmp_path / "gp-eval.toml").write_text("[start]\nwidth = 0.04\n")
    assert wanted("file") == 0.04
    monkeypatch.setenv("GP_EVAL_WIDTH", "0.05")
    assert wanted("environment") == 0.05
    assert wanted("flag", "--width", "0.06") == 0.06


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[start]\nwidht = 0.04\n", r"\[start\].*unknown \['widht'\]"),
        ("[begin]\nwidth = 0.04\n", r"unknown \['begin'\]"),
        ("width =", "config file"),
        ("start = 3", "expected a table of flags, got 3"),
    ],
)
def test_mistakes_in_the_config_file(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "own.toml").write_text(text)
    outcome = gp_eval("--config", tmp_path / "own.toml", "status", tmp_path)
    assert outcome.code == 1
    assert re.search(message, outcome.err)


def test_spreadsheets_may_begin_with_a_byte_order_mark(
    run: Path, tmp_path: Path
) -> None:
    (tmp_path / "excel.csv").write_text("item,score\nq1,0.5\n", encoding="utf-8-sig")
    assert gp_eval("tell", run, "--from", tmp_path / "excel.csv").code == 0
