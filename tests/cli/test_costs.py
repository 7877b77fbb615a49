"""Costs and decisions from the shell."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pytest
from command import gp_eval

COSTS = {f"q{i}": round(0.1 + (i % 7) * 0.3, 1) for i in range(40)}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Forty items whose rows are all different: the model selects by information."""
    scores = {
        f"m{k}": [round(0.5 + 0.45 * math.sin(i * (k + 1)), 3) for i in range(40)]
        for k in range(5)
    }
    path = tmp_path / "references.csv"
    pd.DataFrame(scores, index=list(COSTS)).to_csv(path)
    return path


@pytest.fixture
def costs(tmp_path: Path) -> Path:
    path = tmp_path / "costs.csv"
    rows = [f"{item},{cost}" for item, cost in reversed(COSTS.items())]
    path.write_text("\n".join(["item,cost", *rows, "not-in-the-table,9"]) + "\n")
    return path


def start(folder: Path, table: Path, *words: object):
    return gp_eval("start", folder, "--refs", table, "--target", "mine", *words)


def status(run: Path, *flags: str) -> tuple[int, dict]:
    outcome = gp_eval("status", run, "--json", *flags)
    return outcome.code, json.loads(outcome.out)


def spent(items: list[str]) -> Decimal:
    return sum((Decimal(str(COSTS[item])) for item in items), Decimal(0))


def test_a_run_ends_where_its_budget_does(
    tmp_path: Path, table: Path, costs: Path
) -> None:
    run = tmp_path / "run"
    begun = start(run, table, "--costs", costs, "--max-cost", "3.0")
    assert begun.code == 0, begun.err
    items = gp_eval("ask", run, "-n", 40).out.split()
    assert 0 < spent(items) <= 3
    assert "pending items" in gp_eval("ask", run).err
    gp_eval("tell", run, *(f"{item}=0.5" for item in items))
    code, record = status(run, "--strict")
    assert code == 3
    assert record["stop_reason"] == "budget"
    assert (record["cost"], record["max_cost"]) == (float(spent(items)), 3.0)
    assert status(run)[0] == 0
    assert gp_eval("ask", run, "--strict").code == 3
    assert "stopped: budget" in gp_eval("ask", run).err
    shown = gp_eval("status", run)
    assert f"Cost so far: {float(spent(items)):g} of at most 3" in shown.err
    assert f"all 40 items cost {float(spent(list(COSTS))):g}" in shown.err


def test_awareness_of_costs_can_be_switched_off(
    tmp_path: Path, table: Path, costs: Path
) -> None:
    asked = []
    for name, words in (
        ("aware", ("--costs", costs)),
        ("blind", ("--costs", costs, "--no-cost-aware")),
        ("without", ()),
    ):
        start(tmp_path / name, table, *words)
        asked.append(gp_eval("ask", tmp_path / name, "-n", 10).out.split())
    assert asked[0] != asked[1] == asked[2]
    assert spent(asked[0]) < spent(asked[1])
    at_random = start(
        tmp_path / "rs", table, "--costs", costs, "--model", "rs-mean", "--cost-aware"
    )
    assert at_random.code == 1
    assert "selects items at random" in at_random.err
    assert not (tmp_path / "rs").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,cost\nq0,1\n", "nothing for 39 of the 40 items"),
        ("item,price\nq0,1\n", "expected the columns item and cost"),
        ("q0,1\nq1,1\n", "expected the columns item and cost"),
        ("item,cost\nq0,\n", "cost of 'q0': expected a number, got ''"),
        ("item,cost\nq0,free\n", "cost of 'q0': expected a number, got 'free'"),
        ("item,cost\nq0,1\nq0,1\n", "repeated: 'q0'"),
        ("", "cannot read"),
    ],
)
def test_files_without_all_costs_are_refused(
    tmp_path: Path, table: Path, text: str, message: str
) -> None:
    (tmp_path / "bad.csv").write_text(text)
    outcome = start(tmp_path / "run", table, "--costs", tmp_path / "bad.csv")
    assert outcome.code == 1
    assert message in outcome.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("wrong", ["nan", "inf", "-1", "-0.5"])
def test_a_cost_is_a_finite_number_of_at_least_0(
    tmp_path: Path, table: Path, costs: Path, wrong: str
) -> None:
    costs.write_text(costs.read_text().replace("q3,1.0", f"q3,{wrong}"))
    outcome = start(tmp_path / "run", table, "--costs", costs)
    assert outcome.code == 1
    assert "finite costs >= 0, not so for 'q3'" in outcome.err


def test_costs_from_a_spreadsheet_with_columns_swapped(
    tmp_path: Path, table: Path
) -> None:
    frame = pd.DataFrame({"cost": COSTS.values(), "item": COSTS.keys()})
    frame.to_csv(tmp_path / "excel.csv", index=False, encoding="utf-8-sig")
    run = tmp_path / "run"
    outcome = start(run, table, "--costs", tmp_path / "excel.csv")
    assert outcome.code == 0, outcome.err
    kept = json.loads((run / "session.json").read_text())["costs"]
    assert kept["values"] == list(COSTS.values())


def test_flags_that_need_others_say_so(
    tmp_path: Path, table: Path, costs: Path
) -> None:
    run = tmp_path / "run"
    assert "needs the costs" in start(run, table, "--max-cost", "1").err
    assert start(run, table, "--level", "0.9").code == 2
    assert start(run, table, "--costs", costs, "--max-cost", "-1").code == 2
    low = start(run, table, "--costs", costs, "--max-cost", "0.05")
    assert "the cheapest item costs 0.1, got 0.05" in low.err
    several = start(run, table, "--costs", costs, "--target", "other")
    assert several.code == 1
    assert "several targets have no budget in common" in several.err
    assert not run.exists()


# Decisions


def decide(run: Path, score: float) -> dict:
    while not status(run)[1]["done"]:
        items = gp_eval("ask", run, "-n", 3).out.split()
        gp_eval("tell", run, *(f"{item}={score}" for item in items))
    return status(run)[1]


@pytest.mark.parametrize(("score", "verdict"), [(0.1, False), (0.9, True)])
def test_a_run_stops_once_the_statement_is_decided(
    tmp_path: Path, table: Path, score: float, verdict: bool
) -> None:
    run = tmp_path / "run"
    begun = start(run, table, "--until", "score>=0.5", "--window", 6, "--level", "0.9")
    assert begun.code == 0, begun.err
    first = status(run)[1]
    assert (first["statement"], first["level"]) == ("score>=0.5", 0.9)
    assert (first["probability"], first["verdict"]) == (None, None)
    assert "no score is there yet" in gp_eval("status", run).err
    record = decide(run, score)
    assert record["stop_reason"] == "decided"
    assert 6 <= record["n"] < 40
    assert record["verdict"] is verdict
    sure = record["probability"] if verdict else 1.0 - record["probability"]
    assert sure > 0.9
    says = "score>=0.5 holds" if verdict else "score>=0.5 does not hold"
    assert says in gp_eval("status", run).err


def test_a_report_has_verdict_and_cost(
    tmp_path: Path, table: Path, costs: Path
) -> None:
    run = tmp_path / "run"
    start(run, table, "--until", "score>=0.5", "--window", 6, "--costs", costs)
    record = decide(run, 0.9)
    outputs = [tmp_path / f"report.{kind}" for kind in ("json", "md", "html")]
    words = [word for output in outputs for word in ("-o", output)]
    assert gp_eval("report", run, *words).code == 0
    report = json.loads(outputs[0].read_text())
    target = report["targets"][0]
    for key in ("verdict", "probability", "cost", "stop_reason"):
        assert target[key] == record[key]
    assert report["provenance"]["stop"] == {
        "width": None, "stable": 0.005, "window": 6, "max_items": None,
        "max_cost": None, "until": "score>=0.5", "level": 0.95,
    }  # fmt: skip
    assert target["decision"].startswith("score>=0.5 holds: its posterior probability")
    for output in outputs[1:]:
        text = output.read_text()
        assert "score&gt;=0.5 holds" in text
        assert f"Cost so far: {record['cost']:g}; all 40 items cost" in text
        assert "the statement was decided" in text


def test_a_width_beside_the_statement_stops_as_well(
    tmp_path: Path, table: Path
) -> None:
    run = tmp_path / "run"
    start(
        run, table, "--until", "score>=0.5", "--level", "0.999999", "--width", "0.5",
        "--stable", "1", "--window", 3,
    )  # fmt: skip
    record = decide(run, 0.5)
    assert record["stop_reason"] == "converged"
    assert record["verdict"] is None


def test_a_budget_without_a_verdict_falls_short(tmp_path: Path, table: Path) -> None:
    run = tmp_path / "run"
    start(
        run, table, "--until", "score>=0.5", "--level", "0.999999", "--window", 3,
        "--max-items", 4,
    )  # fmt: skip
    record = decide(run, 0.5)
    assert (record["stop_reason"], record["verdict"]) == ("max_items", None)
    assert status(run, "--strict")[0] == 3
    gp_eval("report", run, "-o", tmp_path / "report.md")
    said = (tmp_path / "report.md").read_text()
    assert "The budget was spent before score>=0.5 was decided" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--until", "acc>=0.5"), "expected 'score>=NUMBER'"),
        (("--until", "score"), "quote it"),
        (("--until", "score>=0.5", "--level", "1"), "expected 0.5 < level < 1"),
        (("--until", "score>=0.5", "--max-items", "9"), "nothing is decided before 30"),
    ],
)
def test_mistakes_in_a_statement_are_wrong_usage(
    tmp_path: Path, table: Path, words: tuple[str, ...], message: str
) -> None:
    outcome = start(tmp_path / "run", table, *words)
    assert outcome.code == 2
    # The frame of the message folds it.
    assert message in " ".join(outcome.err.replace("│", " ").split())
    assert not (tmp_path / "run").exists()


def test_several_targets_are_decided_one_by_one(tmp_path: Path, table: Path) -> None:
    run = tmp_path / "run"
    begun = start(
        run, table, "--target", "other", "--model", "shared-mean", "--until",
        "score>=0.5", "--window", 4,
    )  # fmt: skip
    assert begun.code == 0, begun.err
    for _ in range(40):
        asked = gp_eval("ask", run, "-n", 2).out.splitlines()
        for target, item in (line.split("\t") for line in asked):
            score = 0.9 if target == "mine" else 0.1
            gp_eval("tell", run, "--target", target, f"{item}={score}")
    records = [json.loads(x) for x in gp_eval("status", run, "--json").out.splitlines()]
    assert [r["verdict"] for r in records] == [True, False]
    assert {r["stop_reason"] for r in records} == {"decided"}
    assert "mine: score>=0.5 holds" in gp_eval("status", run).err


# gp-eval run


def test_a_driven_run_minds_costs_and_goes_on_by_the_same_line(
    tmp_path: Path, table: Path, costs: Path
) -> None:
    script = "for i in $(cat $0); do echo $i=0.9 >> $1; done"
    run = tmp_path / "run"

    def line(*words: object, tool: str = script) -> tuple[object, ...]:
        return (
            "run", "command", run, "--refs", table, "--batch", 4, "--costs", costs,
            *words, "--json", "--", "sh", "-c", tool, "{items}", "{scores}",
        )  # fmt: skip

    rule = ("--until", "score>=0.5", "--max-cost", "2.5", "--window", 20)
    done = gp_eval(*line(*rule, "--strict"))
    assert done.code == 3, done.err
    last = json.loads(done.out.splitlines()[-1])
    assert (last["stop_reason"], last["verdict"]) == ("budget", None)
    assert last["cost"] <= 2.5
    assert "Whether score>=0.5 is not decided" in done.err
    again = gp_eval(*line(*rule))
    assert again.code == 0, again.err
    for other in (
        ("--until", "score>=0.6"),
        ("--level", "0.9"),
        ("--max-cost", "3"),
        ("--no-cost-aware",),
    ):
        refused = gp_eval(*line(*other))
        assert refused.code == 4
        assert f"{other[0].replace('no-', '')}: was" in refused.err
    costs.write_text(costs.read_text().replace("q3,1.0", "q3,1.1"))
    assert "--costs: was" in gp_eval(*line()).err


# gp-eval simulate


def test_simulate_prints_how_often_decisions_are_wrong(
    tmp_path: Path, table: Path
) -> None:
    line = (
        "simulate", table, "--models", "bayesame-rs,rs-mean", "--seeds", 2,
        "--targets", 1, "--regime", "interpolation", "--no-figures", "-o",
        tmp_path / "results", "--until", "score>=0.5", "--window", 5,
    )  # fmt: skip
    outcome = gp_eval(*line, "--json")
    assert outcome.code == 0, outcome.err
    records = [json.loads(text) for text in outcome.out.splitlines()]
    assert [r["model"] for r in records] == ["bayesame-rs", "rs-mean"]
    for record in records:
        decision = record["decision"]
        assert (decision["statement"], decision["window"]) == ("score>=0.5", 5)
        assert decision["runs"] == 2
        assert 0.0 <= decision["error"] <= 1.0
        assert [r["distance"] for r in decision["relative"]] == [
            0.005, 0.01, 0.02, 0.03, 0.05, 0.1,
        ]  # fmt: skip
    shown = gp_eval(*line)
    for heading in ("score>=0.5", "|R - threshold|", "threshold away from R by"):
        assert any(text.startswith(heading) for text in shown.out.splitlines())
    plain = gp_eval(*line[:-4], "--json")
    assert "decision" not in json.loads(plain.out.splitlines()[0])
    units = gp_eval(*line[:-4], "--until", "score>=50")
    assert units.code == 1
    assert "expected a threshold in these units" in units.err
