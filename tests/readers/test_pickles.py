"""Pickles of peers: only with the flag, and never as programs."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from gp_eval.errors import DataError
from gp_eval.readers import Log, Options, build_references, read_logs


def read(path: Path, **options: Any) -> Log:
    (log,) = read_logs([path], options=Options(**options)).logs
    return log


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.mkdir, ("evil-was-here",)


def test_pickles_need_the_flag(tmp_path: Path) -> None:
    path = tmp_path / "lb.pickle"
    path.write_bytes(pickle.dumps({"data": {}, "models": []}))
    with pytest.raises(DataError, match="--allow-pickle"):
        read(path)
    (tmp_path / "a.csv").write_text("item,m\na,1\n")
    collection = read_logs([tmp_path])
    assert [p.name for p in collection.pickles] == ["lb.pickle"]


@pytest.mark.parametrize("suffix", ["pickle", "jbl"])
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_code_in_a_pickle_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, protocol: int
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(pickle.dumps({"data": Evil()}, protocol=protocol))
    with pytest.raises(DataError, match=r"refused: it names \w+\.mkdir"):
        read(path, allow_pickle=True)
    assert not (tmp_path / "evil-was-here").exists()


def test_code_in_an_array_of_objects_does_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joblib itself reads such arrays with the plain unpickler."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.jbl"
    joblib.dump(np.array([[Evil()]], dtype=object), path)
    with pytest.raises(DataError, match="refused: it holds an array of objects"):
        read(path, allow_pickle=True)
    assert not (tmp_path / "evil-was-here").exists()
    joblib.load(path)  # the test can fail: this is what would have happened
    assert (tmp_path / "evil-was-here").exists()


@pytest.mark.parametrize("compress", [0, 3])
def test_joblib_scores_are_models_by_items(tmp_path: Path, compress: int) -> None:
    table = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    joblib.dump(table, tmp_path / "bench.jbl", compress=compress)
    joblib.dump(["m1", "m2"], tmp_path / "bench_models.jbl")
    built = build_references(read_logs([tmp_path], options=Options(allow_pickle=True)))
    assert (built.models, built.meta["task"]) == (["m1", "m2"], "bench")
    np.testing.assert_array_equal(built.scores, table.T)
    (tmp_path / "bench_models.jbl").unlink()
    log = read(tmp_path / "bench.jbl", allow_pickle=True)
    assert log.notes["models without a name, numbered"] == 2


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_leaderboard_pickles_are_items_by_models(tmp_path: Path, protocol: int) -> None:
    table = np.array([[1.0, 0.0], [0.5, 1.0], [0.0, 0.0]], dtype=np.float32)
    content = {"data": {"arc": {"correctness": table}}, "models": ["m1", "m2"]}
    path = tmp_path / "lb.pickle"
    path.write_bytes(pickle.dumps(content, protocol=protocol))
    built = build_references(read_logs([path], options=Options(allow_pickle=True)))
    np.testing.assert_array_equal(built.scores, table)
    content["models"] = ["m1"]
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(DataError, match="2 models .* 1 names"):
        read(path, allow_pickle=True)
