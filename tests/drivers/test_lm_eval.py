"""lm-evaluation-harness driven on chosen documents, without a network."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from command import gp_eval
from killing import start
from toy_lm_eval import (
    full_run,
    make_tasks,
    no_built_in_tasks,
    tiny_model,
    write_references,
)

from gp_eval import References, Session, StoppingRule
from gp_eval.drivers import LmEvalDriver, drive
from gp_eval.drivers.lm_eval_flags import (
    model_name,
    settings_of,
    task_names,
    without_tasks,
)
from gp_eval.drivers.lm_eval_subprocess import LmEvalSubprocessDriver
from gp_eval.errors import DriverError

NEVER = StoppingRule(width=1e-9, stable=1e-9)
Rows = dict[str, list[dict[str, Any]]]

pytest.importorskip(
    "lm_eval", reason="lm-eval is not installed: pip install 'gp-eval[lm-eval]'"
)
pytestmark = pytest.mark.filterwarnings("default")  # those of lm-eval are its own


@pytest.fixture(autouse=True)
def _offline(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path_factory.getbasetemp() / "hf"))
    no_built_in_tasks(monkeypatch)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import datasets

    home = tmp_path_factory.mktemp("datasets")
    datasets.config.HF_DATASETS_CACHE = home  # nothing outside the tests' folder
    return make_tasks(tmp_path_factory.mktemp("tasks"))


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip(
        "transformers", reason="no transformers: pip install 'lm-eval[hf]'"
    )
    return tiny_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def full(tasks: Path, tiny: Path) -> Rows:
    """The full run of the tiny model."""
    return full_run(
        tasks,
        ["toy_mc", "toy_two", "toy_gen"],
        model="hf",
        model_args=f"pretrained={tiny},dtype=float32",
        device="cpu",
        batch_size=8,
    )


@pytest.fixture(scope="module")
def dummy(tasks: Path) -> Rows:
    return full_run(tasks, ["toy_mc", "toy_two", "toy_gen"], model="dummy")


def references(folder: Path, rows: Rows, metric: str, *flags: str) -> References:
    write_references(folder / "logs", rows, metric=metric)
    names = [word for task in rows for word in ("--task", task)]
    path = folder / "refs.npz"
    words = [folder / "logs", "-o", path, *names, "--metric", metric, *flags]
    built = gp_eval("refs", "build", *words)
    assert built.code == 0, built.err
    return References.read(path)


def session(folder: Path, refs: References, **options: Any) -> Session:
    usual = {"target": "new", "model": "rs-mean", "stop": NEVER}
    return Session.create(folder / "run", refs, **usual | options)


def flags(tasks: Path, *names: str, model: str = "dummy") -> list[str]:
    return ["--model", model, "--include_path", str(tasks), "--tasks", ",".join(names)]


def hf(tasks: Path, tiny: Path, *names: str) -> list[str]:
    arguments = f"pretrained={tiny},dtype=float32"
    more = ["--model_args", arguments, "--device", "cpu", "--batch_size", "8"]
    return [*flags(tasks, *names, model="hf"), *more]


def logged(run: Path) -> Rows:
    """All rows of a run, by task, in the order of the files."""
    rows: Rows = {}
    for path in sorted((run / "logs").rglob("samples_*.jsonl")):
        task = path.name.removeprefix("samples_").rpartition("_")[0]
        rows.setdefault(task, []).extend(map(json.loads, path.read_text().splitlines()))
    return rows


def by_document(rows: list[dict[str, Any]]) -> dict[tuple[int, str], dict[str, Any]]:
    found = {(row["doc_id"], row["filter"]): row for row in rows}
    assert len(found) == len(rows)  # none twice
    return found


# As the full run


@pytest.mark.parametrize(("batch", "seed"), [(1, 0), (7, 1), (40, 2)])
def test_chosen_documents_have_prompt_and_score_of_the_full_run(
    tmp_path: Path, tasks: Path, tiny: Path, full: Rows, batch: int, seed: int
) -> None:
    rows = {name: full[name] for name in ("toy_mc", "toy_two")}
    refs = references(tmp_path, rows, "acc")
    with session(tmp_path, refs, seed=seed) as run:
        driver = LmEvalDriver(hf(tasks, tiny, "toy_mc", "toy_two"))
        drive(run, driver, batch=batch)
        told = {run.references.items[i]: s for i, s in run._loop.scores[0].items()}
    assert len(told) == 33
    for task, of_task in rows.items():
        ours = by_document(logged(tmp_path / "run")[task])
        assert ours.keys() == by_document(of_task).keys()
        for key, row in by_document(of_task).items():
            for name in ("prompt_hash", "doc_hash", "target_hash", "acc", "acc_norm"):
                assert ours[key][name] == row[name], (task, key, name)
            logliks = [float(pair[0]) for pair in ours[key]["filtered_resps"]]
            # Padding differs with the documents of a batch: float32 of a forward pass.
            assert logliks == pytest.approx(
                [float(pair[0]) for pair in row["filtered_resps"]], rel=1e-5
            )
            assert told[f"{task}/{key[0]}"] == row["acc"]


def test_generated_answers_and_filters_are_those_of_the_full_run(
    tmp_path: Path, tasks: Path, tiny: Path, full: Rows
) -> None:
    rows = {"toy_gen": full["toy_gen"]}
    refs = references(tmp_path, rows, "exact_match", "--filter", "number")
    with session(tmp_path, refs) as run:
        drive(run, LmEvalDriver(hf(tasks, tiny, "toy_gen")), batch=4)
        assert run.estimate().n == 9
    ours = by_document(logged(tmp_path / "run")["toy_gen"])
    for key, row in by_document(full["toy_gen"]).items():
        assert ours[key]["prompt_hash"] == row["prompt_hash"]
        assert ours[key]["resps"] == row["resps"]
        assert ours[key]["exact_match"] == row["exact_match"]


def test_gold_probabilities_are_told_where_references_have_them(
    tmp_path: Path, tasks: Path, tiny: Path, full: Rows
) -> None:
    import numpy as np

    rows = {"toy_mc": full["toy_mc"]}
    refs = references(tmp_path, rows, "acc")
    refs = References(
        refs.scores,
        refs.items,
        refs.models,
        meta={**refs.meta, "metric": "gold_prob"},
    )
    with session(tmp_path, refs) as run:
        drive(run, LmEvalDriver(hf(tasks, tiny, "toy_mc")))
        told = {run.references.items[i]: s for i, s in run._loop.scores[0].items()}
    for row in full["toy_mc"]:
        logliks = np.array([float(pair[0]) for pair in row["filtered_resps"]])
        shares = np.exp(logliks - logliks.max())
        expected = float(shares[int(row["target"])] / shares.sum())
        assert told[str(row["doc_id"])] == pytest.approx(expected, rel=1e-4)


def test_only_chosen_documents_are_sent(
    tmp_path: Path, tasks: Path, dummy: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = _count_requests(monkeypatch)
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    stop = StoppingRule(width=1e-9, stable=1e-9, max_items=5)
    with session(tmp_path, refs, stop=stop) as run:
        drive(run, LmEvalDriver(flags(tasks, "toy_mc")), batch=2)
        chosen = {int(item) for item in run.estimate().items}
    assert len(sent) == 4 * 5
    assert set(sent) == chosen


def _count_requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    from lm_eval.models.dummy import DummyLM

    sent: list[int] = []
    original = DummyLM.loglikelihood

    def count(self: Any, requests: Any, *rest: Any, **named: Any) -> Any:
        sent.extend(request.doc_id for request in requests)
        return original(self, requests, *rest, **named)

    monkeypatch.setattr(DummyLM, "loglikelihood", count)
    return sent


# What is wrong shows before anything is asked


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--limit", "3"], "--limit cannot be given"),
        (["--samples", '{"toy_mc": [1]}'], "--samples cannot be given"),
        (["--cache_requests", "true"], "--cache_requests cannot be given"),
        (["--no_such_flag"], "lm-eval refuses these flags"),
        (["--tasks", "no_such"], "Tasks not found: no_such"),
        (["--predict_only", "--output_path", "x"], "predict_only gives no scores"),
    ],
)
def test_flags_that_do_not_fit(
    tmp_path: Path, tasks: Path, dummy: Rows, more: list[str], message: str
) -> None:
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    with session(tmp_path, refs) as run:
        with pytest.raises(DriverError, match=message):
            drive(run, LmEvalDriver([*flags(tasks, "toy_mc"), *more]))
        assert run.pending == []


def test_tasks_of_the_references_that_are_not_run(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    with (
        session(tmp_path, refs) as run,
        pytest.raises(DriverError, match="references are of 'toy_mc' too"),
    ):
        drive(run, LmEvalDriver(flags(tasks, "toy_two")))


def test_other_documents_than_the_references_are_refused(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    rows = [dict(row) for row in dummy["toy_mc"]]
    rows[3]["doc_hash"] = "f" * 64
    refs = references(tmp_path, {"toy_mc": rows}, "acc")
    with (
        session(tmp_path, refs) as run,
        pytest.raises(DriverError, match="1 documents, such as '3'"),
    ):
        drive(run, LmEvalDriver(flags(tasks, "toy_mc")))


def test_more_items_than_documents_are_refused(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    rows = [*dummy["toy_mc"], {**dummy["toy_mc"][0], "doc_id": 24}]
    refs = references(tmp_path, {"toy_mc": rows}, "acc")
    with (
        session(tmp_path, refs) as run,
        pytest.raises(DriverError, match="has 24 documents.*one of number 24"),
    ):
        drive(run, LmEvalDriver(flags(tasks, "toy_mc")))


def test_other_prompts_than_the_references_are_warned_of(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    notes: list[str] = []
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    with session(tmp_path, refs) as run:
        shots = [*flags(tasks, "toy_mc"), "--num_fewshot", "1"]
        assert "the prompts of 24 items" in LmEvalDriver(shots).check(run)[0]
        notes += LmEvalDriver(flags(tasks, "toy_mc")).check(run)
    assert notes == []


# Failures and kills


def hashed(requests: Any) -> list[tuple[float, bool]]:
    """Log-likelihoods that depend on nothing but the request."""
    digests = [hashlib.sha256("".join(r.args).encode()).digest() for r in requests]
    return [(-1.0 - digest[0] / 64, False) for digest in digests]


def test_a_document_that_fails_does_not_take_the_batch_with_it(
    tmp_path: Path, tasks: Path, dummy: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lm_eval.models.dummy import DummyLM

    def answer(self: Any, requests: Any, disable_tqdm: bool = False) -> Any:
        if any(request.doc_id == 3 for request in requests):
            raise RuntimeError("document 3 is too long")
        return hashed(requests)

    monkeypatch.setattr(DummyLM, "loglikelihood", answer)
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    with session(tmp_path, refs) as run:
        drive(run, LmEvalDriver(flags(tasks, "toy_mc")), batch=6, on_error="skip")
        assert run.skipped == {"3": "RuntimeError: document 3 is too long"}
        assert (run.estimate().n, run.estimate().stop_reason) == (23, "complete")


DEADLY = """
import os, signal, sys
from functools import partial
import lm_eval.tasks
from lm_eval.models.dummy import DummyLM
sys.path.insert(0, sys.argv[1])
from test_lm_eval import hashed
lm_eval.tasks.TaskManager = partial(lm_eval.tasks.TaskManager, include_defaults=False)
run, calls, death = sys.argv[2], sys.argv[3], int(sys.argv[4])
n = 0

def answer(self, requests, disable_tqdm=False):
    global n
    n += 1
    if n == death:
        os.kill(os.getpid(), signal.SIGKILL)
    with open(calls, "a") as file:
        file.writelines(f"{i}\\n" for i in dict.fromkeys(r.doc_id for r in requests))
    return hashed(requests)

DummyLM.loglikelihood = answer
fsync = os.fsync

def mortal(descriptor):
    fsync(descriptor)
    if death < 0 and n == -death:
        newest = max(os.listdir(f"{run}/logs"))
        if any(p.startswith("samples_") for p in os.listdir(f"{run}/logs/{newest}")):
            os.kill(os.getpid(), signal.SIGKILL)

os.fsync = mortal
from gp_eval import Session
from gp_eval.drivers import LmEvalDriver, drive
with Session.open(run) as session:
    drive(session, LmEvalDriver(sys.argv[5:]), batch=5)
"""


def test_killed_at_any_point_no_score_is_lost_and_none_evaluated_twice(
    tmp_path: Path, tasks: Path, dummy: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the model's second call; then once rows are written and not told."""
    from lm_eval.models.dummy import DummyLM

    def answer(self: Any, requests: Any, disable_tqdm: bool = False) -> Any:
        return hashed(requests)

    monkeypatch.setattr(DummyLM, "loglikelihood", answer)
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    options = {"model": "bayesame", "model_options": {"refit_every": 5}}
    options["stop"] = StoppingRule(width=1e-9, stable=1e-9, max_items=18)
    (tmp_path / "straight").mkdir()
    with session(tmp_path / "straight", refs, **options) as run:
        drive(run, LmEvalDriver(flags(tasks, "toy_mc")), batch=5)
        straight = run.estimate()
    session(tmp_path, refs, **options).close()
    calls = tmp_path / "calls"
    here = Path(__file__).parent
    told: list[int] = []
    for death in (2, -3, 0):
        words = [here, tmp_path / "run", calls, death, *flags(tasks, "toy_mc")]
        process = start(DEADLY, *words)
        process.communicate(timeout=200)
        assert process.returncode == (-signal.SIGKILL if death else 0)
        with Session.open(tmp_path / "run", read_only=True) as run:
            told.append(run.estimate().n)
            result = run.estimate()
    assert told == [5, 15, 18]
    assert result == straight
    assert sorted(calls.read_text().split()) == sorted(straight.items)


# The command line


def test_the_command_line_from_logs_to_a_number(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    words = ["run", "lm-eval", tmp_path / "run", "--refs", tmp_path / "refs.npz"]
    words += ["--max-items", 8, "--batch", 3, "--json", "--"]
    words += [*flags(tasks, "toy_mc"), "--model_args", "model=org/new"]
    for _ in range(2):  # the same line goes on, here to where it is
        outcome = gp_eval(*words)
        assert outcome.code == 0, outcome.err
        events = [json.loads(line) for line in outcome.out.splitlines()]
        assert events[-1]["event"] == "stop"
        assert (events[-1]["target"], events[-1]["n"]) == ("org/new", 8)
    other = gp_eval(*words[:-1], "model=org/other")
    assert other.code == 4
    assert "--model_args: was ['model=org/new'], is ['model=org/other']" in other.err


def test_a_process_for_each_batch_runs_the_needed_tasks_only(
    tmp_path: Path, tasks: Path, dummy: Rows
) -> None:
    names = ("toy_mc", "toy_two")
    references(tmp_path, {name: dummy[name] for name in names}, "acc")
    words = ["run", "lm-eval", tmp_path / "run", "--refs", tmp_path / "refs.npz"]
    words += ["--max-items", 2, "--subprocess", "--seed", 1]
    outcome = gp_eval(*words, "--", *flags(tasks, *names), "--model_args", "model=a/b")
    assert outcome.code == 0, outcome.err
    rows = logged(tmp_path / "run")
    ids = [f"{task}/{row['doc_id']}" for task, of in rows.items() for row in of]
    with Session.open(tmp_path / "run", read_only=True) as run:
        assert sorted(run.estimate().items) == sorted(ids)
    assert len(ids) == 2
    for task, of_task in rows.items():
        full_rows = by_document(dummy[task])
        for row in of_task:
            assert row["doc_hash"] == full_rows[row["doc_id"], "none"]["doc_hash"]


@pytest.mark.parametrize("flag", ["-L", "--limit=3", "--lim", "--sampl", "-E"])
def test_a_process_is_given_no_flags_that_choose_documents(
    tmp_path: Path, dummy: Rows, flag: str
) -> None:
    refs = references(tmp_path, {"toy_mc": dummy["toy_mc"]}, "acc")
    driver = LmEvalSubprocessDriver(["--tasks", "toy_mc", flag, "3"])
    with (
        session(tmp_path, refs) as run,
        pytest.raises(DriverError, match="cannot be given"),
    ):
        drive(run, driver)


def test_tasks_are_taken_out_of_the_flags_however_they_are_given() -> None:
    """lm-eval adds up the values of repeated flags: left in, a task runs in full."""
    words = [
        "--tasks",
        "a,b",
        "c",
        "--model",
        "x",
        "-t",
        "d",
        "--task=e",
        "--seed",
        "1",
    ]
    assert without_tasks(words) == ["--model", "x", "--seed", "1"]
    assert task_names(words) == ["a", "b", "c", "d", "e"]


def test_flags_tell_the_model_and_what_must_not_change() -> None:
    words = ["run", "--model", "hf", "-a", "pretrained=org/m,dtype=float32"]
    assert model_name(words) == "org/m"
    assert model_name(["--model", "hf", "--model_args=pretrained=/x/y/m-1"]) == "m-1"
    assert model_name(["--model_args", '{"pretrained": "org/m"}']) == "org/m"
    assert model_name(["--model", "dummy"]) == "dummy"
    assert model_name(["--tasks", "t"]) is None
    more = [*words, "--batch_size", "4", "--device", "cuda", "--log_samples"]
    same = settings_of(more, metric=None, filter=None)
    assert same == settings_of(words, metric=None, filter=None)
    shots = settings_of([*words, "--num_fewshot", "5"], metric=None, filter=None)
    assert shots != same
