from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import gp_eval
from plans import population
from typer.main import get_command

from gp_eval.cli.app import app
from gp_eval.planning.settings import DEFAULT_MODELS
from gp_eval.session.config import SessionConfig

RULE = ("--width", 0.25, "--stable", 0.05, "--window", 5)


@pytest.fixture
def refs(tmp_path: Path) -> Path:
    path = tmp_path / "refs.csv"
    population().write(path)
    return path


def plan(refs: Path, *more: object):
    words = ("plan", refs, "--models", "rs-mean,aipw", "--targets", 6, "-j", 1)
    return gp_eval(*words, *RULE, *more)


@pytest.fixture
def planned(refs: Path) -> Path:
    path = refs.with_name("plan.json")
    assert plan(refs, "-o", path).code == 0
    return path


def config(run: Path) -> SessionConfig:
    return SessionConfig.model_validate_json((run / "session.json").read_text())


def start(refs: Path, planned: Path, *more: object):
    run = refs.with_name("run")
    words = ("start", run, "--refs", refs, "--target", "t", "--plan", planned)
    return run, gp_eval(*words, *more)


def test_json_has_forecasts_curves_and_a_recommendation(refs: Path) -> None:
    outcome = plan(refs, "--json")
    assert outcome.code == 0, outcome.err
    records = [json.loads(line) for line in outcome.out.splitlines()]
    kinds = [record["kind"] for record in records]
    assert kinds == ["forecast"] * 16 + ["references"] * 2 + ["recommendation"]
    assert set(records[0]) == {
        "kind", "model", "regime", "width", "items", "spread", "narrow",
        "projected", "rmse", "coverage", "stopped", "runs", "targets",
        "references", "acceptable",
    }  # fmt: skip
    assert set(records[-1]) == {
        "kind", "model", "width", "stable", "window", "items", "acceptable", "reason",
        "n_items", "n_references", "n_max", "fingerprint", "seconds",
    }  # fmt: skip
    assert records[-1]["model"] in ("rs-mean", "aipw")
    assert records[-1]["n_references"] == 12


def test_people_get_tables_an_estimate_of_the_time_and_what_is_next(
    refs: Path, tmp_path: Path
) -> None:
    picture, file = tmp_path / "plan.png", tmp_path / "plan.json"
    outcome = plan(refs, "-o", picture, "-o", file)
    assert outcome.code == 0, outcome.err
    assert "interpolation" in outcome.out
    assert "extrapolation" in outcome.out
    assert "with 10 more" in outcome.out
    assert "s in 1 processes: simulated runs of rs-mean 16, aipw 16" in outcome.err
    assert "Recommended: --model" in outcome.err
    assert f"gp-eval start RUN --refs {refs} --target NAME --plan {file}" in outcome.err
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_one_regime_can_be_asked_for(refs: Path) -> None:
    for regime, curves in (("interpolation", 2), ("extrapolation", 0)):
        outcome = plan(refs, "--json", "--regime", regime)
        records = [json.loads(line) for line in outcome.out.splitlines()]
        regimes = {r["regime"] for r in records if r["kind"] == "forecast"}
        assert regimes == {regime}
        assert sum(r["kind"] == "references" for r in records) == curves


def test_a_cut_is_said(refs: Path) -> None:
    outcome = plan(refs, "--n-max", 6)
    assert "cut after 6 of 40 items" in outcome.err
    assert ">= 6" in outcome.out
    assert "proj. " in outcome.out
    assert "proj.: items if" in outcome.err


def test_a_session_takes_its_settings_from_the_plan(refs: Path, planned: Path) -> None:
    best = json.loads(planned.read_text())["recommendation"]
    run, outcome = start(refs, planned)
    assert outcome.code == 0, outcome.err
    assert f"about {best['items']:.0f} of 40 items" in outcome.err
    found = config(run)
    assert found.model == best["model"]
    assert found.stop.width == best["width"]
    assert (found.stop.stable, found.stop.window) == (0.05, 5)


def test_flags_variables_and_the_config_file_win_over_the_plan(
    refs: Path, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(refs.parent)
    Path("gp-eval.toml").write_text("[start]\nstable = 0.04\n")
    monkeypatch.setenv("GP_EVAL_WINDOW", "7")
    run, outcome = start(refs, planned, "--width", 0.03, "--max-items", 9)
    assert outcome.code == 0, outcome.err
    assert "(model of the plan)" in outcome.err
    found = config(run)
    # 0.03 is the default as well: given is given.
    assert (found.stop.width, found.stop.stable, found.stop.window) == (0.03, 0.04, 7)
    assert found.stop.max_items == 9


def run_with(refs: Path, planned: Path, *more: object):
    """``gp-eval run`` with a command that scores by the length of an id."""
    tool = refs.with_name("score.sh")
    loop = 'while read -r item; do echo "$item=0.$((${#item} % 2))5" >> "$2"; done'
    tool.write_text(f'#!/bin/sh\n{loop} < "$1"\n')
    tool.chmod(0o755)
    run = refs.with_name("run")
    words = ("run", "command", run, "--refs", refs, "--plan", planned, *more)
    return run, gp_eval(*words, "--", tool, "{items}", "{scores}")


def test_a_run_takes_its_settings_from_the_plan_and_the_same_line_goes_on(
    refs: Path, planned: Path
) -> None:
    best = json.loads(planned.read_text())["recommendation"]
    for _ in range(2):
        run, outcome = run_with(refs, planned, "--window", 7, "--max-items", 9)
        assert outcome.code == 0, outcome.err
    found = config(run)
    assert (found.model, found.stop.width) == (best["model"], best["width"])
    assert (found.stop.stable, found.stop.window) == (0.05, 7)
    assert found.stop.max_items == 9


def test_a_run_is_ruled_as_a_session_that_was_started_with_the_same_flags(
    refs: Path, planned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(refs.parent)
    Path("gp-eval.toml").write_text("[run.command]\nstable = 0.04\n")
    monkeypatch.setenv("GP_EVAL_MODEL", "rs-mean")
    flags = ("--until", "score>=0.99", "--max-items", 35)
    run, outcome = run_with(refs, planned, *flags)
    assert outcome.code == 0, outcome.err
    ran = config(run)
    assert (ran.model, ran.stop.stable, ran.stop.window) == ("rs-mean", 0.04, 5)
    run.rename(refs.with_name("before"))
    run, outcome = start(refs, planned, *flags, "--stable", 0.04)
    assert outcome.code == 0, outcome.err
    assert config(run).stop == ran.stop


def test_a_run_does_not_go_on_by_another_plan(refs: Path, planned: Path) -> None:
    assert run_with(refs, planned, "--max-items", 9)[1].code == 0
    content = json.loads(planned.read_text())
    content["recommendation"]["stable"] = 0.01
    planned.write_text(json.dumps(content))
    _, outcome = run_with(refs, planned, "--max-items", 9)
    assert outcome.code == 4
    assert "--stable: was 0.05, is 0.01" in outcome.err


def test_a_run_of_several_targets_has_no_plan(refs: Path, planned: Path) -> None:
    run, outcome = run_with(refs, planned, "--target", "a", "--target", "b")
    assert outcome.code == 2
    assert "--plan: is about one target, several are given" in outcome.err
    assert not run.exists()


def test_a_plan_of_other_references_is_refused(refs: Path, planned: Path) -> None:
    run, outcome = start(refs, planned, "--exclude", "m2")
    assert outcome.code == 4
    assert "was made for other references" in outcome.err
    assert not run.exists()


def test_the_same_exclusion_makes_the_plan_fit(refs: Path) -> None:
    path = refs.with_name("plan.json")
    assert plan(refs, "--exclude", "m2", "-o", path).code == 0
    _, outcome = start(refs, path, "--exclude", "m2")
    assert outcome.code == 0, outcome.err


def test_mistakes_are_told_before_the_work(refs: Path, planned: Path) -> None:
    assert plan(refs, "-o", "plan.txt").code == 1
    assert plan(refs, "--gap", 2).code == 1
    assert plan(refs, "--width", 0).code == 2
    assert plan(refs, "--missing", "mean").code == 2
    assert plan(refs, "--models", ",").code == 2
    assert start(refs, planned, "--target", "u")[1].code == 2
    wrong = gp_eval("plan", refs, "--models", "gp")
    assert wrong.code == 1
    assert "model: expected one of" in wrong.err


def test_an_interrupt_leaves_no_file(
    refs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gp_eval.planning.plan.run_tasks", interrupted)
    path = refs.with_name("plan.json")
    assert plan(refs, "-o", path).code == 130
    assert list(refs.parent.iterdir()) == [refs]


def test_help_names_the_default_models() -> None:
    (models,) = [
        parameter
        for parameter in get_command(app).commands["plan"].params
        if parameter.name == "models"
    ]
    assert ",".join(DEFAULT_MODELS) in models.help
