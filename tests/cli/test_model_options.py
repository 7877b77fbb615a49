"""``gp-eval start`` with options of the model and weights of the references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import gp_eval
from multi_target_commands import settings, start

from gp_eval.cli.model_options import check_values
from gp_eval.data import References, weights_from_metadata
from gp_eval.models import model_names
from gp_eval.models.registry import takes_targets

ONE = ("--target", "mine")


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.fixture
def metadata(tmp_path: Path) -> Path:
    rows = ["model,size,family", "mine,7.0,a", "007,1.0,b"]
    rows += [f"m{k},{k}.5,{'ab'[k % 2]}" for k in range(5)]
    return write(tmp_path / "metadata.csv", "\n".join(rows))


def test_options_are_json_and_reach_the_model(tmp_path: Path, table: Path) -> None:
    run = tmp_path / "r"
    words = ("--option", "batch=2", "--option", "lookahead=true")
    outcome = start(run, table, *ONE, *words, "--option", "refit_every=null")
    assert outcome.code == 0, outcome.err
    assert settings(run)["model_options"] == {
        "batch": 2,
        "lookahead": True,
        "refit_every": None,
    }
    assert gp_eval("ask", run).code == 0


def test_batches_are_asked_for_as_the_registered_model_does(tmp_path: Path) -> None:
    """Where items are nearly unique; all three would be at random otherwise."""
    scores = np.random.default_rng(0).random((40, 5))
    names = [f"q{i}" for i in range(40)], [f"m{k}" for k in range(5)]
    pd.DataFrame(scores, *names).to_csv(tmp_path / "unique.csv")
    asked = {}
    for name, words in (
        ("option", ("--option", "batch=5", "--option", "lookahead=true")),
        ("name", ("--model", "bayesame-batch5-lookahead")),
        ("other", ()),
    ):
        run = tmp_path / name
        assert start(run, tmp_path / "unique.csv", *ONE, *words).code == 0
        asked[name] = gp_eval("ask", run, "-n", 5).out
    assert asked["option"] == asked["name"] != asked["other"]


def test_options_come_from_the_environment_and_the_config_file(
    tmp_path: Path, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path / "gp-eval.toml", '[start]\noption = ["batch=4"]\n')
    monkeypatch.setenv("GP_EVAL_CONFIG", str(config))
    assert start(tmp_path / "file", table, *ONE).code == 0
    assert settings(tmp_path / "file")["model_options"] == {"batch": 4}
    monkeypatch.setenv("GP_EVAL_OPTION", "batch=2 lookahead=true")
    assert start(tmp_path / "variable", table, *ONE).code == 0
    assert settings(tmp_path / "variable")["model_options"]["batch"] == 2


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["batch"], 2, "expected NAME=JSON, got 'batch'"),
        (["=2"], 2, "expected NAME=JSON, got '=2'"),
        (["batch=2", "batch=3"], 2, "'batch' is given twice"),
        (["lookahead=False"], 2, "lookahead: expected JSON"),
        (["selection=random"], 2, "double quotes, got 'random'"),
        (["bach=2"], 1, "unknown options ['bach']"),
        (["batch=0"], 1, "batch: expected at least 1, got 0"),
        (["batch=2.5"], 1, "batch: Input should be a valid integer; got 2.5"),
        (["batch=true"], 1, "batch: Input should be a valid integer; got True"),
        (['lookahead="no"'], 1, "lookahead: Input should be a valid boolean"),
        (['selection="best"'], 1, "selection: Input should be 'auto' or 'random'"),
        (["weights=3"], 1, "weights: Input should be an instance of Sequence; got 3"),
        (['covar_module="RBFKernel"'], 1, "covar_module: Input should be an instance"),
        (["noise=NaN"], 1, "'noise': not JSON"),
        (["n_targets=2"], 1, "unknown options ['n_targets']"),
    ],
)
def test_options_that_cannot_work_are_refused_before_a_file_is_made(
    tmp_path: Path, table: Path, words: list[str], code: int, message: str
) -> None:
    flags = [part for word in words for part in ("--option", word)]
    outcome = start(tmp_path / "r", table, *ONE, *flags)
    assert outcome.code == code
    assert message in " ".join(outcome.err.replace("│", " ").split())
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize("name", model_names())
def test_signatures_of_all_models_can_be_checked(name: str) -> None:
    check_values(name, {})
    option = "n_targets" if takes_targets(name) else None
    if option is not None:
        check_values(name, {option: 2})
        with pytest.raises(ValueError, match=f"{name}: {option}: .* got 'two'"):
            check_values(name, {option: "two"})


def test_options_that_are_texts_need_no_quotes(tmp_path: Path, table: Path) -> None:
    flags = ("--model", "calibrated", "--option", "pseudo_targets=2")
    for name, value in (("r", "model=bayesame"), ("s", 'model="bayesame"')):
        outcome = start(tmp_path / name, table, *ONE, *flags, "--option", value)
        assert outcome.code == 0, outcome.err
        found = settings(tmp_path / name)["model_options"]
        assert found == {"pseudo_targets": 2, "model": "bayesame"}
    for value, message in (("seed=one", "expected JSON"), ("model=", "expected JSON")):
        outcome = start(tmp_path / "t", table, *ONE, *flags, "--option", value)
        assert outcome.code == 2
        assert message in " ".join(outcome.err.replace("│", " ").split())


def test_weights_from_a_file_reach_the_calibrated_model(
    tmp_path: Path, table: Path
) -> None:
    rows = ["model,weight", "m0,1", "m1,2", "m2,1", "m3,4", "m4,0.5"]
    path = write(tmp_path / "weights.csv", "\n".join(rows))
    flags = ("--model", "calibrated", "--option", "pseudo_targets=2")
    outcome = start(tmp_path / "r", table, *ONE, *flags, "--weights", path)
    assert outcome.code == 0, outcome.err
    assert settings(tmp_path / "r")["model_options"]["weights"][1] == 2.0


def test_weights_from_a_file_are_those_of_the_references_in_their_order(
    tmp_path: Path, table: Path
) -> None:
    rows = ["model,weight", "m4,0.5", "other,9", "m0,1", "m2,0", "m1,2", "m3,4"]
    path = write(tmp_path / "weights.csv", "\n".join(rows))
    outcome = start(tmp_path / "r", table, *ONE, "--weights", path)
    assert outcome.code == 0, outcome.err
    weights = [1.0, 2.0, 0.0, 4.0, 0.5]
    assert settings(tmp_path / "r")["model_options"] == {"weights": weights}
    start(tmp_path / "s", table, *ONE, "--weights", path, "--exclude", "m1")
    kept = [1.0, 0.0, 4.0, 0.5]
    assert settings(tmp_path / "s")["model_options"] == {"weights": kept}


def test_weights_from_metadata_are_by_likeness_to_the_target_or_a_named_row(
    tmp_path: Path, table: Path, metadata: Path
) -> None:
    frame = pd.read_csv(metadata, index_col="model", dtype={"model": str})
    models = References.read(table).models
    for name, words in (("mine", ()), ("m3", ("--like", "m3")), ("007", ())):
        target = "mine" if words else name
        run = tmp_path / f"run-{name}"
        outcome = start(run, table, "--target", target, "--metadata", metadata, *words)
        assert outcome.code == 0, outcome.err
        expected = weights_from_metadata(frame, frame.loc[name], models=models)
        assert settings(run)["model_options"]["weights"] == pytest.approx(expected)
        assert len(set(expected)) > 2


def test_dates_in_metadata_are_near_or_far(tmp_path: Path, table: Path) -> None:
    """As texts they would only be equal or not."""
    models = References.read(table).models
    days = {m: f"2026-01-{1 + 2 * k:02d}" for k, m in enumerate(models)}
    rows = "".join(f"{m},{day}\n" for m, day in days.items())
    path = tmp_path / "dates.csv"
    path.write_text(f"model,released\n{rows}mine,2026-01-02\n")
    outcome = start(tmp_path / "run", table, "--target", "mine", "--metadata", path)
    assert outcome.code == 0, outcome.err
    weights = settings(tmp_path / "run")["model_options"]["weights"]
    # Gower: one minus the distance in days over the range of the references.
    span = 2 * (len(models) - 1)
    shares = [1 - abs(2 * k - 1) / span for k in range(len(models))]
    assert weights == pytest.approx([s / sum(shares) for s in shares])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model,weight\nm0,1\nm1,1", "has nothing for 3 of the references: 'm2'"),
        ("model,weight\nm0,1\nm0,2", "expected unique ids, repeated: 'm0'"),
        ("model,w\nm0,1", "expected the columns model and weight, got ['model', 'w']"),
        ("", "cannot read"),
        ("model,weight\nm0,\nm1,1\nm2,1\nm3,1\nm4,1", "nothing for 1 of the"),
        ("model,weight\nm0,much\nm1,1\nm2,1\nm3,1\nm4,1", "'much'"),
        ("model,weight\nm0,-1\nm1,1\nm2,1\nm3,1\nm4,1", "finite values >= 0"),
    ],
)
def test_files_that_hold_no_weights(
    tmp_path: Path, table: Path, text: str, message: str
) -> None:
    path = write(tmp_path / "weights.csv", text)
    outcome = start(tmp_path / "r", table, *ONE, "--weights", path)
    assert outcome.code == 1
    assert message in outcome.err
    assert not (tmp_path / "r").exists()


def test_metadata_that_says_nothing_of_the_target_or_a_reference(
    tmp_path: Path, table: Path, metadata: Path
) -> None:
    outcome = start(tmp_path / "r", table, "--target", "new", "--metadata", metadata)
    assert outcome.code == 1
    assert "--like: 'new' is no row of" in outcome.err
    fewer = write(tmp_path / "fewer.csv", "model,size\nmine,7\nm0,1\nm1,2\n")
    outcome = start(tmp_path / "r", table, *ONE, "--metadata", fewer)
    assert outcome.code == 1
    assert "has nothing for 3 of the references: 'm2', 'm3', 'm4'" in outcome.err


def test_flags_of_weights_that_contradict_each_other(
    tmp_path: Path, table: Path, metadata: Path
) -> None:
    weights = ("--option", "weights=[1,1,1,1,1]")
    for words in (
        (*ONE, *weights, "--metadata", metadata),
        (*ONE, "--weights", metadata, "--metadata", metadata),
        (*ONE, "--like", "m0"),
        (*ONE, "--target", "b", "--metadata", metadata),
    ):
        assert start(tmp_path / "r", table, *words).code == 2
    refused = start(tmp_path / "r", table, *ONE, *weights, "--model", "rs-mean")
    assert refused.code == 1
    assert "rs-mean: unknown options ['weights']" in refused.err


def test_several_targets_share_their_weights(
    tmp_path: Path, table: Path, metadata: Path
) -> None:
    run = tmp_path / "r"
    words = (*ONE, "--target", "b", "--metadata", metadata, "--like", "mine")
    outcome = start(run, table, *words, "--option", "steps=3")
    assert outcome.code == 0, outcome.err
    assert len(settings(run)["model_options"]["weights"]) == 5
    assert settings(run)["model_options"]["steps"] == 3
