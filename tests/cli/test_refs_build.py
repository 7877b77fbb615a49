from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import gp_eval
from logs import inspect_sample, lm_row, write_eval, write_lm_eval
from multi_target_commands import start

from gp_eval.data import References


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Forty items, five models, two metrics."""
    for k in range(5):
        rows = [
            lm_row(i, em=((7 * i + 3 * k * i + k) % 11) / 10, f1=0.5) for i in range(40)
        ]
        write_lm_eval(tmp_path / "logs", rows, model=f"org__m{k}")
    return tmp_path / "logs"


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_a_folder_of_logs_becomes_references(logs: Path, suffix: str) -> None:
    path = logs.parent / f"refs{suffix}"
    outcome = gp_eval("refs", "build", logs, "-o", path, "--metric", "em")
    assert (outcome.code, outcome.out) == (0, "")
    assert "40 items x 5 models, metric em, task task" in outcome.err
    references = References.read(path)
    assert references.items == tuple(str(i) for i in range(40))
    assert references.models == tuple(f"org/m{k}" for k in range(5))
    expected = [
        [((7 * i + 3 * k * i + k) % 11) / 10 for k in range(5)] for i in range(40)
    ]
    np.testing.assert_array_equal(references.scores.numpy(), expected)
    shown = json.loads(gp_eval("refs", "show", path, "--json").out)
    assert shown["metric"] == (None if suffix == ".csv" else "em")


def test_json_holds_every_count(logs: Path) -> None:
    path = logs.parent / "refs.npz"
    outcome = gp_eval("refs", "build", logs, "-o", path, "--metric", "em", "--json")
    report = json.loads(outcome.out)
    assert {k: report[k] for k in ("n_items", "n_models", "metric", "formats")} == {
        "n_items": 40,
        "n_models": 5,
        "metric": "em",
        "formats": {"lm-eval": 5},
    }
    assert {
        *("records", "errored", "unscored", "infinite", "repeats_averaged"),
        *("superseded_by_a_retry", "cells_with_several_runs", "partial_runs"),
        *("missing_cells", "items_dropped", "models_dropped", "items_without_score"),
    } <= set(report["counts"])


def test_a_choice_that_is_left_writes_nothing(logs: Path) -> None:
    path = logs.parent / "refs.npz"
    outcome = gp_eval("refs", "build", logs, "-o", path)
    assert outcome.code == 1
    assert "em (200 scores, mean" in outcome.err
    assert not path.exists()


@pytest.mark.parametrize(
    "flags",
    [
        ["-o", "refs.xlsx"],
        ["-o", "r.npz", "--scale", "3"],
        ["-o", "r.npz", "--runs", "x"],
    ],
)
def test_wrong_flags_are_wrong_usage(logs: Path, flags: list[str]) -> None:
    assert gp_eval("refs", "build", logs, *flags).code == 2


def test_policies_are_flags(logs: Path) -> None:
    write_lm_eval(logs, [lm_row(i, em=1.0) for i in range(30)], model="org__short")
    path = logs.parent / "refs.npz"
    words = ("refs", "build", logs, "-o", path, "--metric", "em")
    refused = gp_eval(*words)
    assert refused.code == 1
    assert "'org/short: 30 of 40'" in refused.err
    assert gp_eval(*words, "--missing", "drop-items").code == 0
    assert len(References.read(path).items) == 30
    assert gp_eval(*words, "--min-coverage", "0.9").code == 0
    assert len(References.read(path).models) == 5
    kept = gp_eval(*words, "--missing", "keep", "--scale", "0,2", "--lower-is-better")
    assert kept.code == 0
    assert "10 missing cells, 0 items and 0 models dropped" in kept.err
    assert "partial runs: org/short (30 of 40)" in kept.err
    table = References.read(path, missing="keep")
    assert float(table.scores[0, 5]) == 0.5


def test_csv_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    log = tmp_path / "a.csv"
    log.write_text("item,model,score,weight\na,m,1,2\nb,m,0,1\n")
    outcome = gp_eval("refs", "build", log, "-o", tmp_path / "refs.csv")
    assert outcome.code == 1
    assert "item weights" in outcome.err
    assert not (tmp_path / "refs.csv").exists()


# From logs to a told session


@pytest.fixture
def run(logs: Path) -> Path:
    refs, run = logs.parent / "refs.npz", logs.parent / "run"
    assert gp_eval("refs", "build", logs, "-o", refs, "--metric", "em").code == 0
    assert gp_eval("start", run, "--refs", refs, "--target", "new").code == 0
    return run


def test_ask_as_lm_eval_then_tell_from_its_log(run: Path, tmp_path: Path) -> None:
    asked = gp_eval("ask", run, "-n", 6, "--as", "lm-eval")
    samples = json.loads(asked.out)
    (ids,) = samples.values()
    assert list(samples) == ["task"]
    assert ids == sorted(set(ids))
    assert len(ids) == 6
    assert "--tasks task" in asked.err
    log = write_lm_eval(
        tmp_path, [lm_row(i, em=0.5, f1=1.0) for i in ids], model="org__new"
    )
    for _ in range(2):  # telling again changes nothing
        told = gp_eval("tell", run, "--from", log)
        assert told.code == 0, told.err
        assert "6 told\nnew: n = 6 of 40" in told.err
    assert gp_eval("ask", run, "--pending").out == ""


def test_several_targets_are_told_from_a_log_each(logs: Path, tmp_path: Path) -> None:
    refs, run = logs.parent / "refs.npz", logs.parent / "joint"
    assert gp_eval("refs", "build", logs, "-o", refs, "--metric", "em").code == 0
    names = ("--target", "a", "--target", "b", "--model", "shared-mean")
    assert start(run, refs, *names).code == 0
    lines = gp_eval("ask", run, "-n", 6, "--as", "lm-eval").out.splitlines()
    asked = {target: json.loads(text) for target, text in map(_halves, lines)}
    assert sorted(asked) == ["a", "b"]
    assert sum(len(samples["task"]) for samples in asked.values()) == 6
    log = write_lm_eval(tmp_path, [lm_row(i, em=0.5) for i in asked["a"]["task"]])
    unnamed = gp_eval("tell", run, "--from", log)
    assert unnamed.code == 1
    assert "name one by --target" in unnamed.err
    assert gp_eval("tell", run, "--target", "a", "--from", log).code == 0
    left = gp_eval("ask", run, "--pending", "--as", "lm-eval").out
    assert _halves(left.strip()) == ("b", json.dumps(asked["b"]))


def _halves(line: str) -> tuple[str, str]:
    target, text = line.split("\t")
    return target, text


def test_nothing_to_ask_prints_nothing_for_a_harness(run: Path) -> None:
    """An empty list would run everything."""
    for form in ("lm-eval", "inspect"):
        outcome = gp_eval("ask", run, "--pending", "--as", form)
        assert (outcome.code, outcome.out) == (0, "")


def test_a_log_that_does_not_fit_tells_nothing(run: Path, tmp_path: Path) -> None:
    rows = [lm_row(2, em=0.5), lm_row(40, em=0.5)]
    outcome = gp_eval("tell", run, "--from", write_lm_eval(tmp_path, rows))
    assert outcome.code == 1
    assert json.loads(gp_eval("status", run, "--json").out)["n"] == 0


def test_a_prefix_is_warned_of(run: Path, tmp_path: Path) -> None:
    log = write_lm_eval(tmp_path, [lm_row(i, em=0.5) for i in range(5)], model="new")
    assert "not a random sample" in gp_eval("tell", run, "--from", log).err


def test_ask_as_inspect_escapes_ids_and_names_what_it_cannot_say(
    tmp_path: Path,
) -> None:
    for name, ids in (("safe", ["b[1]", "x"]), ("comma", ["a,b", "x"])):
        folder = tmp_path / name
        folder.mkdir()
        for k in range(2):
            samples = [inspect_sample(i, "CI"[(j + k) % 2]) for j, i in enumerate(ids)]
            log = {"model": f"m{k}", "task_id": str(k)}
            write_eval(folder / f"{k}.eval", samples, **log)
        refs, run = folder / "refs.npz", folder / "run"
        assert gp_eval("refs", "build", folder, "-o", refs).code == 0
        assert gp_eval("start", run, "--refs", refs, "--target", "new").code == 0
        asked = gp_eval("ask", run, "-n", 2, "--as", "inspect")
        if name == "safe":
            assert sorted(asked.out.strip().split(",")) == ["b[[]1]", "x"]
        else:
            assert asked.code == 1
            assert "cannot express the id 'a,b'" in asked.err
            pending = gp_eval("ask", run, "--pending", "--as", "json").out
            assert sorted(json.loads(pending)) == ids


def test_references_without_a_task_need_it_named(tmp_path: Path) -> None:
    (tmp_path / "refs.csv").write_text("item,a,b\n1,0,1\n2,1,0\n3,1,1\n")
    run = tmp_path / "run"
    gp_eval("start", run, "--refs", tmp_path / "refs.csv", "--target", "new")
    assert "give --task" in gp_eval("ask", run, "--as", "lm-eval").err
    named = gp_eval("ask", run, "--pending", "--as", "lm-eval", "--task", "arc")
    assert list(json.loads(named.out)) == ["arc"]


def test_real_logs_from_folder_to_estimate(
    shared_samples: Path, tmp_path: Path
) -> None:
    folder = shared_samples / "lm_eval" / "own_0.4.13" / "hf_tiny"
    refs, run = tmp_path / "refs.parquet", tmp_path / "run"
    logs = [folder / "tiny-0", folder / "tiny-1"]
    built = gp_eval("refs", "build", *logs, "-o", refs, "--value", "gold-prob")
    assert built.code == 0, built.err
    assert gp_eval("start", run, "--refs", refs, "--target", "tiny-2").code == 0
    told = gp_eval("tell", run, "--from", folder / "tiny-2")
    assert told.code == 0, told.err
    status = json.loads(gp_eval("status", run, "--json").out)
    assert status["n"] == status["N"] == 40
    assert status["estimate"] == pytest.approx(0.379, abs=5e-4)
