"""Inspect driven on chosen samples, with its mock model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import gp_eval
from sessions import score_of, unique_references

from gp_eval import References, Session, StoppingRule
from gp_eval.drivers import InspectDriver, drive
from gp_eval.drivers.inspect_flags import model_name, settings_of
from gp_eval.errors import DriverError
from gp_eval.readers import read_told

inspect_ai = pytest.importorskip(
    "inspect_ai", reason="inspect-ai is not installed: pip install 'gp-eval[inspect]'"
)
pytestmark = pytest.mark.filterwarnings("default")  # those of Inspect are its own
BOTH = pytest.mark.parametrize("one_run", [True, False], ids=["one run", "each batch"])
BUDGET = StoppingRule(width=1e-9, stable=1e-9, max_items=12)

TOY = """
import os, time
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model._providers.mockllm import MockLLM
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate

async def count(self, text):  # tiktoken would be downloaded
    return 1

MockLLM.count_text_tokens = count
HERE = Path(__file__).parent

@scorer(metrics=[mean()])
def table():
    scores = dict(line.split("=") for line in (HERE / "table").read_text().split())
    async def score(state, target):
        item = state.metadata["item"]
        with open(HERE / "calls", "a") as file:
            file.write(item + "\\n")
        if (HERE / "slow").exists():
            (HERE / "on").touch()
            time.sleep(0.3)
        once = HERE / f"fails-{item}"
        if once.exists():
            once.unlink()
            raise ValueError(f"no {item} today")
        return Score(value=float(scores[item]))
    return score

@task
def toy(name: str = "toy", epochs: int = 1):
    samples = [
        Sample(id=f"b[{i}],*", input=f"{i}?", target="x", metadata={"item": f"q{i}"})
        for i in range(24)
    ]
    return Task(
        dataset=MemoryDataset(samples, name="data"),
        solver=generate(),
        scorer=table(),
        name=name,
        epochs=epochs,
    )
"""


def inspect_id(item: str) -> str:
    """Ids that a pattern, a list and a shell would each misread."""
    return f"b[{item[1:]}],*"


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    table = "".join(f"q{i}={score_of(f'q{i}')}\n" for i in range(24))
    (tmp_path / "table").write_text(table)
    (tmp_path / "toy.py").write_text(TOY)
    return tmp_path


def references(**meta: Any) -> References:
    table = unique_references()
    ids = [inspect_id(item) for item in table.items]
    usual = {"tasks": ["toy"], "metric": "table", "scale": "keep"}
    return References(table.scores, ids, table.models, meta=usual | meta)


def session(folder: Path, **options: Any) -> Session:
    usual = {"target": "new", "stop": BUDGET, "model_options": {"refit_every": 5}}
    refs = options.pop("references", None) or references()
    return Session.create(folder / "run", refs, **usual | options)


def flags(folder: Path, *more: str) -> list[str]:
    return [f"{folder}/toy.py@toy", "--model", "mockllm/model", *more]


def calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return [inspect_id(i) for i in path.read_text().split()] if path.exists() else []


def expected(item: str) -> float:
    return score_of(f"q{item[2:].split(']')[0]}")


@pytest.fixture
def straight(toy: Path) -> Any:
    """The result of the same session with scores from a function."""
    (toy / "other").mkdir()
    with session(toy / "other") as run:
        while items := run.ask(5):
            run.tell_all({item: expected(item) for item in items})
        return run.estimate()


# As a run of all samples


@BOTH
def test_chosen_samples_are_run_and_told(
    toy: Path, straight: Any, one_run: bool
) -> None:
    with session(toy) as run:
        drive(run, InspectDriver(flags(toy), sample_source=one_run), batch=5)
        assert run.estimate() == straight
    assert sorted(calls(toy)) == sorted(straight.items)
    logs = sorted((toy / "run" / "logs").rglob("*.eval"))
    assert len(logs) == (1 if one_run else 3)
    refs = references()
    told = read_told(toy / "run" / "logs", items=refs.items, meta=refs.meta).scores
    assert told == {item: expected(item) for item in straight.items}


@BOTH
def test_a_task_in_memory(toy: Path, straight: Any, one_run: bool) -> None:
    module = _module(toy)
    options = {"tasks": module.toy(), "model": "mockllm/model"}
    with session(toy) as run:
        driver = InspectDriver(options=options, sample_source=one_run)
        drive(run, driver, batch=5)
        assert run.estimate() == straight


def _module(folder: Path) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location("toy_in_memory", folder / "toy.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@BOTH
def test_epochs_are_averaged(toy: Path, straight: Any, one_run: bool) -> None:
    with session(toy) as run:
        driver = InspectDriver(flags(toy, "--epochs", "2"), sample_source=one_run)
        drive(run, driver, batch=5)
        assert run.estimate().items == straight.items
    assert sorted(calls(toy)) == sorted(2 * straight.items)


def test_arguments_of_the_task_are_passed_on(toy: Path, straight: Any) -> None:
    refs = references(tasks=["other name"])
    with session(toy, references=refs) as run:
        drive(run, InspectDriver(flags(toy, "-T", "name=other name")), batch=5)
        assert run.estimate().mean == pytest.approx(straight.mean, rel=1e-12)


# What is wrong shows before anything is asked


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--limit", "3"], "limit cannot be given"),
        (["--sample-id", "x"], "sample_id cannot be given"),
        (["--no-score"], "without scoring"),
        (["--no-such-flag"], "[Nn]o such option"),
    ],
)
def test_flags_that_do_not_fit(toy: Path, more: list[str], message: str) -> None:
    with session(toy) as run:
        with pytest.raises(DriverError, match=message):
            drive(run, InspectDriver(flags(toy, *more)))
        assert run.pending == []


def test_items_that_are_no_samples(toy: Path) -> None:
    refs = references(tasks=["toy"])
    odd = [*refs.items[:-1], "nobody"]
    refs = References(refs.scores, odd, refs.models, meta=refs.meta)
    with (
        session(toy, references=refs) as run,
        pytest.raises(DriverError, match="1 items, such as 'nobody'"),
    ):
        drive(run, InspectDriver(flags(toy)))


def test_another_task_than_that_of_the_references(toy: Path) -> None:
    with (
        session(toy, references=references(tasks=["arc"])) as run,
        pytest.raises(DriverError, match="references are of task 'arc'"),
    ):
        drive(run, InspectDriver(flags(toy)))


# Failures and interruptions


@BOTH
def test_samples_that_fail_are_tried_again(
    toy: Path, straight: Any, one_run: bool
) -> None:
    for item in straight.items[1:8:3]:
        (toy / f"fails-q{item[2:].split(']')[0]}").touch()
    with session(toy) as run:
        drive(run, InspectDriver(flags(toy), sample_source=one_run), batch=5)
        assert run.estimate() == straight
    assert len(calls(toy)) == 12 + 3


@BOTH
def test_samples_that_fail_may_be_skipped(
    toy: Path, straight: Any, one_run: bool
) -> None:
    failing = straight.items[1]
    (toy / f"fails-q{failing[2:].split(']')[0]}").touch()
    with session(toy) as run:
        driver = InspectDriver(flags(toy), sample_source=one_run)
        drive(run, driver, batch=5, on_error="skip")
        assert list(run.skipped) == [failing]
        assert run.estimate().n == 12


def test_errors_of_the_session_are_not_lost_in_the_log(toy: Path) -> None:
    with session(toy) as run:
        for i in range(24):
            (toy / f"fails-q{i}").touch()
        with pytest.raises(DriverError, match="failed 1 times.*no q"):
            drive(run, InspectDriver(flags(toy)), batch=5, on_error=_once())


def _once() -> Any:
    from gp_eval.drivers import OnError

    return OnError("retry", tries=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@BOTH
def test_an_interrupted_run_goes_on_without_a_sample_twice(
    toy: Path, straight: Any, one_run: bool, number: int
) -> None:
    references().write(toy / "refs.npz")
    session(toy).close()
    (toy / "slow").touch()
    mode = "--one-run" if one_run else "--run-each-batch"
    words = ["run", "inspect", str(toy / "run"), "--batch", "5", mode]
    words += ["--", *flags(toy, "--max-samples", "1")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen(
        [sys.executable, "-m", "gp_eval.cli.app", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    deadline = time.monotonic() + 150
    while len(calls(toy)) < 8:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    if number == signal.SIGINT:
        assert process.returncode == 130, err
        assert err.splitlines()[-1].startswith("gp-eval run inspect")
    (toy / "slow").unlink()
    outcome = gp_eval(*words)
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    with Session.open(toy / "run", read_only=True) as run:
        assert run.estimate() == straight
    # Only what was running, or not in the log yet, is run again.
    assert len(calls(toy)) - len(set(calls(toy))) <= 2
    assert calls(toy)[:5] == [i for i in calls(toy)[:5] if calls(toy).count(i) == 1]


def test_flags_tell_the_model_and_what_must_not_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ["a.py@t", "--model", "openai/m", "-T", "x=1"]
    assert model_name(words) == "openai/m"
    monkeypatch.setenv("INSPECT_EVAL_MODEL", "openai/other")
    assert model_name(["a.py@t"]) == "openai/other"
    same = settings_of([*words, "--max-connections", "3"], {}, metric=None)
    assert same == settings_of(words, {}, metric=None)
    other = settings_of([*words[:-1], "x=2"], {}, metric=None)
    assert other != same
