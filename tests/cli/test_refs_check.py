from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command import gp_eval
from populations import answers

from gp_eval.data import References


@pytest.fixture
def faulty(tmp_path: Path) -> Path:
    """A strong model flipped, another one twice."""
    scores = answers(300, 30, seed=0, discrimination=1.5)
    scores[:, 2] = 1.0 - scores[:, int(np.argmax(scores.mean(0)))]
    scores[:, 9] = scores[:, 5]
    return _written(scores, tmp_path / "refs.npz")


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return _written(answers(300, 30, seed=0, discrimination=1.5), tmp_path / "ok.csv")


def _written(scores: np.ndarray, path: Path) -> Path:
    items = [f"q{i}" for i in range(len(scores))]
    models = [f"m{k}" for k in range(scores.shape[1])]
    References(scores, items, models).write(path)
    return path


def test_errors_are_named_with_advice_and_the_exit_code_is_1(faulty: Path) -> None:
    outcome = gp_eval("refs", "check", faulty)
    assert outcome.code == 1
    lines = outcome.out.splitlines()
    assert lines[0].startswith("error: anticorrelated-models: 1 model ('m2') is right")
    assert lines[1].startswith("    Leave them out, or repair them.")
    assert any(line.startswith("warning: duplicate-models: ") for line in lines)
    assert "300 items x 30 models: 1 error, 1 warning" in outcome.err
    assert "2 models would be dropped" in outcome.err
    assert sorted(faulty.parent.iterdir()) == [faulty]


def test_a_clean_table_exits_with_0(clean: Path) -> None:
    outcome = gp_eval("refs", "check", clean)
    assert outcome.code == 0
    assert "error" not in outcome.out
    assert "dropped" not in outcome.err


def test_json_is_one_object(faulty: Path) -> None:
    outcome = gp_eval("refs", "check", faulty, "--json")
    record = json.loads(outcome.out)
    assert outcome.code == 1
    assert outcome.out.count("\n") == 1
    assert record["ok"] is False
    assert record["written"] is None
    assert record["drop_models"] == ["m2", "m9"]
    assert record["counts"]["error"] == 1


@pytest.mark.parametrize("suffix", [".npz", ".parquet", ".csv"])
def test_the_cleaned_table_is_written(faulty: Path, suffix: str) -> None:
    before, output = faulty.read_bytes(), faulty.parent / f"clean{suffix}"
    outcome = gp_eval("refs", "check", faulty, "--drop", output, "--json")
    assert outcome.code == 1  # the table that was checked has not changed
    assert faulty.read_bytes() == before
    written = References.read(output)
    expected = References.read(faulty).without(["m2", "m9"])
    assert written.fingerprint == expected.fingerprint
    assert json.loads(outcome.out)["written"] == {
        "output": str(output),
        "n_items": 300,
        "n_models": 28,
        "dropped_models": ["m2", "m9"],
        "dropped_items": [],
    }
    assert "dropped 2 models ('m2', 'm9'), dropped 0 items" in outcome.err
    assert gp_eval("refs", "check", output).code == 0


def test_models_to_keep_are_not_dropped(faulty: Path) -> None:
    output = faulty.parent / "clean.npz"
    gp_eval("refs", "check", faulty, "--drop", output, "--keep", "m2", "--keep", "m9")
    written = References.read(output)
    assert {"m2", "m9"} <= set(written.models)
    assert "m5" not in written.models  # the copy that goes instead of m9


def test_items_are_dropped_on_request_only(tmp_path: Path) -> None:
    scores = answers(150, 300, seed=0, discrimination=2.0)
    item = int(np.argmin(np.abs(scores.mean(1) - 0.5)))
    scores[item] = 1.0 - scores[item]
    path = _written(scores, tmp_path / "refs.npz")
    for flags, left in (((), 150), (("--drop-items",), 149)):
        output = tmp_path / "clean.npz"
        outcome = gp_eval("refs", "check", path, "--drop", output, *flags)
        assert outcome.code == 0
        assert f"miskeyed-items: 1 item ('q{item}')" in outcome.out
        assert len(References.read(output).items) == left


def test_the_input_is_never_overwritten(
    faulty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = faulty.read_bytes()
    link = faulty.parent / "link.npz"
    os.link(faulty, link)
    monkeypatch.chdir(faulty.parent)
    for output in (faulty, link, "refs.npz", "./refs.npz"):
        outcome = gp_eval("refs", "check", faulty, "--drop", output)
        assert outcome.code == 2
        assert "another file" in outcome.err
    assert faulty.read_bytes() == before


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--drop", "clean.txt"), "expected .npz or .parquet or .csv"),
        (("--drop-items",), "nothing is written"),
        (("--false-alarms", "0.6"), "between 0 and 0.5"),
    ],
)
def test_wrong_usage_is_refused(
    clean: Path, flags: tuple[str, ...], message: str
) -> None:
    outcome = gp_eval("refs", "check", clean, *flags)
    assert outcome.code == 2
    assert message in " ".join(outcome.err.replace("│", " ").split())


def test_unknown_models_to_keep_are_an_error(clean: Path) -> None:
    outcome = gp_eval("refs", "check", clean, "--keep", "nobody")
    assert outcome.code == 1
    assert "'nobody'" in outcome.err


def test_gaps_are_a_finding_not_a_failure(tmp_path: Path) -> None:
    scores = answers(100, 20, seed=0, discrimination=2.0)
    scores[:10, 0] = np.nan
    (tmp_path / "refs.csv").write_text(
        References(
            scores,
            [f"q{i}" for i in range(100)],
            [f"m{k}" for k in range(20)],
            missing="keep",
        ).frame.to_csv(index_label="item")
    )
    outcome = gp_eval("refs", "check", tmp_path / "refs.csv")
    assert outcome.code == 0
    assert "missing-cells: 10 missing cells (0.5%), in 1 of 20 models" in outcome.out


def test_show_says_what_looks_for_faults(clean: Path) -> None:
    assert f"gp-eval refs check {clean}" in gp_eval("refs", "show", clean).err
    assert "check" not in gp_eval("refs", "show", clean, "--json").err
