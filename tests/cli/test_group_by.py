"""``--group-by`` of ``gp-eval status`` and ``gp-eval report``."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from command import gp_eval
from multi_target_commands import start, status

from gp_eval import References

# Those of a report.
KEYS = ["groups", "groups_note", "group_by", "ungrouped", "macro", "micro", "stops_on"]


@pytest.fixture
def subjects(tmp_path: Path) -> Path:
    """Levels of 40 items, the last four in none, and an item of another benchmark."""
    levels = (["easy", "hard", "[bold]odd"] * 12) + [""] * 4
    items = [f"q{i}" for i in range(40)]
    frame = pd.DataFrame({"item": [*items, "x"], "level": [*levels, "easy"]})
    frame.to_csv(tmp_path / "metadata.csv", index=False)
    return tmp_path / "metadata.csv"


@pytest.fixture
def grouped(tmp_path: Path, table: Path) -> Path:
    """References with stored groups of unequal size."""
    read = References.read(table)
    names = ["law"] * 10 + ["art"] * 30
    made = References(read.scores, read.items, read.models, groups=names)
    made.write(tmp_path / "grouped.npz")
    return tmp_path / "grouped.npz"


def records(run: Path, *flags: object) -> list[dict]:
    outcome, lines = status(run, *map(str, flags))
    assert outcome.code == 0, outcome.err
    return lines


def test_status_without_the_flag_is_what_it_was(single: Path) -> None:
    (plain,) = records(single)
    assert " ".join(plain) == (
        "target estimate low high width n N pending skipped done stop_reason "
        "off_range_since off_range"
    )
    outcome = gp_eval("status", single)
    assert outcome.out.count("\n") == 2
    assert "mean" not in outcome.out
    assert outcome.err.count("\n") == 1


def test_keys_of_the_flag_come_after_those_of_the_status(
    single: Path, subjects: Path
) -> None:
    gp_eval("tell", single, "q0=1", "q1=0", "q39=0.5")
    (plain,) = records(single)
    (record,) = records(single, "--group-by", f"{subjects}:level")
    assert list(record) == [*plain, *KEYS]
    assert {key: record[key] for key in plain} == plain
    assert record["group_by"] == "metadata.csv:level"
    assert record["stops_on"] == "micro"
    names = [(g["group"], g["n"], g["N"]) for g in record["groups"]]
    assert names == [("easy", 1, 12), ("hard", 1, 12), ("[bold]odd", 0, 12)]
    rest = record["ungrouped"]
    assert (rest["group"], rest["n"], rest["N"]) == (None, 1, 4)
    rows = [*record["groups"], rest]
    total = sum(row["N"] * row["estimate"] for row in rows) / 40
    assert total == pytest.approx(record["micro"]["estimate"], rel=1e-12)
    # This table repeats items: the estimate is another one, the width is not.
    assert "do not add up to the estimate" in record["groups_note"]
    width = record["micro"]["high"] - record["micro"]["low"]
    assert width == pytest.approx(record["width"], rel=1e-9)
    macro = sum(row["estimate"] for row in record["groups"]) / 3
    assert record["macro"]["estimate"] == pytest.approx(macro, rel=1e-12)
    for entry in (*rows, record["macro"], record["micro"]):
        assert entry["low"] < entry["estimate"] < entry["high"]


def test_a_table_for_people_with_both_means(single: Path, subjects: Path) -> None:
    gp_eval("tell", single, "q0=1")
    outcome = gp_eval("status", single, "--group-by", f"{subjects}:level")
    assert outcome.code == 0
    rows = outcome.out.splitlines()
    first = [row.split("  ")[0].strip() for row in rows[rows.index("") + 1 :]]
    assert first[0] == "group"
    assert [name.split(" 0.")[0] for name in first[1:]] == [
        "easy",
        "hard",
        "[bold]odd",
        "in no group",
        "macro mean, of groups",
        "micro mean, of items",
    ]
    assert "1 of 12" in rows[4]
    assert "The run stops on the micro mean" in outcome.err
    assert "2 of 3 groups without an evaluated item" in outcome.err
    assert "4 items in no group" in outcome.err
    assert "1 item of the file not of this benchmark" in outcome.err


def test_the_groups_of_the_references(tmp_path: Path, grouped: Path) -> None:
    start(tmp_path / "run", grouped, "--target", "a")
    gp_eval("tell", tmp_path / "run", *(f"q{i}=0.5" for i in range(10)))
    (record,) = records(tmp_path / "run", "--group-by", "groups")
    law, art = record["groups"]
    assert (law["group"], law["n"], law["N"], law["share"]) == ("law", 10, 10, 0.25)
    assert (law["low"], law["estimate"], law["high"]) == (0.5, 0.5, 0.5)
    assert art["high"] > art["low"]
    assert (record["group_by"], record["ungrouped"]) == ("groups", None)


def test_a_macro_session_says_that_it_stops_on_the_macro_mean(
    tmp_path: Path, grouped: Path, subjects: Path
) -> None:
    run = tmp_path / "run"
    start(run, grouped, "--target", "a", "--macro")
    gp_eval("tell", run, "q3=1", "q20=0")
    (record,) = records(run, "--group-by", "groups")
    assert record["stops_on"] == "macro"
    # This table repeats items: the estimate is another one, the width is not.
    width = record["macro"]["high"] - record["macro"]["low"]
    assert width == pytest.approx(record["width"], rel=1e-9)
    law, art = (group["estimate"] for group in record["groups"])
    items = (10 * law + 30 * art) / 40
    assert record["micro"]["estimate"] == pytest.approx(items, rel=1e-12)
    (other,) = records(run, "--group-by", f"{subjects}:level")
    assert other["stops_on"] == "estimate"
    outcome = gp_eval("status", run, "--group-by", "groups")
    assert "The run stops on the macro mean" in outcome.err


def test_each_of_several_targets_has_its_own_groups(
    tmp_path: Path, table: Path, subjects: Path
) -> None:
    run, names = tmp_path / "joint", ("--target", "a", "--target", "b c")
    start(run, table, *names, "--option", "initial=0.0", "--option", "steps=5")
    gp_eval("tell", run, "--target", "a", "q0=1", "q3=1", "q1=0")
    first, second = records(run, "--group-by", f"{subjects}:level")
    assert [g["n"] for g in first["groups"]] == [2, 1, 0]
    assert [g["n"] for g in second["groups"]] == [0, 0, 0]
    outcome = gp_eval("status", run, "--group-by", f"{subjects}:level")
    assert "a: group" in outcome.out
    assert "b c: group" in outcome.out


def test_before_the_first_score_groups_are_the_prior(
    single: Path, subjects: Path
) -> None:
    (record,) = records(single, "--group-by", f"{subjects}:level")
    for group in record["groups"]:
        assert group["estimate"] == pytest.approx(group["references_mean"], rel=1e-12)
        assert group["n"] == 0


def test_a_report_by_a_column_of_a_file(
    tmp_path: Path, single: Path, subjects: Path
) -> None:
    gp_eval("tell", single, "q0=1", "q1=0")
    paths = [tmp_path / f"r.{suffix}" for suffix in ("json", "md", "html", "png")]
    flags = [word for path in paths for word in ("-o", path)]
    outcome = gp_eval("report", single, *flags, "--group-by", f"{subjects}:level")
    assert outcome.code == 0, outcome.err
    (target,) = json.loads(paths[0].read_text())["targets"]
    (record,) = records(single, "--group-by", f"{subjects}:level")
    assert {key: target[key] for key in KEYS} == {key: record[key] for key in KEYS}
    for path in paths[1:3]:
        text = path.read_text()
        assert "macro mean, of groups" in text
        assert "metadata.csv:level" in text
        assert str(tmp_path) not in text  # a report goes to others


def test_a_model_that_cannot_tell_items_apart_names_those_that_can(
    tmp_path: Path, table: Path, subjects: Path
) -> None:
    run = tmp_path / "rs"
    start(run, table, "--target", "a", "--model", "rs-mean")
    by = ("--group-by", f"{subjects}:level")
    for words in (("status", run), ("report", run, "-o", tmp_path / "r.json")):
        outcome = gp_eval(*words, *by)
        assert outcome.code == 1
        assert "no joint belief about items" in outcome.err
        assert "bayesame, bayesame-multi" in outcome.err
        assert outcome.out == ""
    assert not (tmp_path / "r.json").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("groups", "the references name no groups of items"),
        ("level", "or FILE:COLUMN"),
        ("{}", "name one of its columns"),
        ("{}:nope", "has no column 'nope'"),
        ("absent.csv:level", "no such file"),
    ],
)
def test_a_source_that_is_none_is_an_error(
    single: Path, subjects: Path, source: str, message: str
) -> None:
    outcome = gp_eval("status", single, "--group-by", source.format(subjects))
    assert (outcome.code, outcome.out) == (1, "")
    assert message in outcome.err
    assert outcome.err.count("\n") == 1


def test_the_environment_sets_it_as_any_flag(
    single: Path, subjects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GP_EVAL_GROUP_BY", f"{subjects}:level")
    (record,) = records(single)
    assert record["group_by"] == "metadata.csv:level"


def test_tasks_and_subjects_of_real_benchmarks(
    tmp_path: Path, shared_data: Path
) -> None:
    live = shared_data / "livebench.npz"
    run = tmp_path / "live"
    assert start(run, live, "--target", "mine").code == 0
    items = gp_eval("ask", run, "-n", 20).out.split()
    gp_eval("tell", run, *(f"{item}=0.5" for item in items))
    (by_task,) = records(run, "--group-by", f"{live}:task")
    assert len(by_task["groups"]) == 17
    (by_category,) = records(run, "--group-by", "groups")
    assert [g["N"] for g in by_category["groups"]].count(150) == 2
    assert sum(g["n"] for g in by_category["groups"]) == 20
    assert by_task["micro"] == pytest.approx(by_category["micro"], rel=1e-9)


def test_subjects_of_a_benchmark_that_stores_none(
    tmp_path: Path, shared_data: Path
) -> None:
    mmlu = References.read(shared_data / "benchpred_mmlu.npz")
    subjects = [f"subject {5 * i // len(mmlu.items)}" for i in range(len(mmlu.items))]
    frame = pd.DataFrame({"item": mmlu.items, "subject": subjects})
    frame.sample(frac=1.0, random_state=1).to_csv(tmp_path / "m.csv", index=False)
    run = tmp_path / "mmlu"
    start(run, shared_data / "benchpred_mmlu.npz", "--target", "mine")
    gp_eval("tell", run, *(f"{item}=1" for item in mmlu.items[:200]))
    (record,) = records(run, "--group-by", f"{tmp_path / 'm.csv'}:subject")
    first = record["groups"][0]
    assert (first["n"], first["low"], first["high"]) == (first["N"], 1.0, 1.0)
    total = sum(g["share"] * g["estimate"] for g in record["groups"])
    assert total == pytest.approx(record["micro"]["estimate"], rel=1e-10)
