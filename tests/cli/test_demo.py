from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command import gp_eval
from PIL import Image

from gp_eval.datasets import load_digits_benchmark


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GP_EVAL_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_json_has_the_documented_keys_and_true_figures(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    outcome = gp_eval("demo", "--json", "--targets", 2, "-o", picture)
    assert outcome.code == 0
    *runs, last = [json.loads(line) for line in outcome.out.splitlines()]
    assert last == {"picture": str(picture)}
    everything = load_digits_benchmark("probability")
    assert len(runs) == 2
    for run in runs:
        assert list(run) == [
            "target",
            "model",
            "truth",
            "estimate",
            "low",
            "high",
            "n",
            "N",
            "stop_reason",
            "random_estimate",
        ]
        column = everything.subset(models=[run["target"]]).scores
        assert run["truth"] == pytest.approx(float(column.mean()), rel=1e-12)
        assert run["low"] < run["estimate"] < run["high"]
        assert run["high"] - run["low"] <= 0.03
        assert run["stop_reason"] == "converged"
        assert 30 <= run["n"] < run["N"] == 900
        assert abs(run["estimate"] - run["truth"]) < 0.05


def test_picture_is_drawn_and_holds_colour(tmp_path: Path) -> None:
    picture = tmp_path / "demo.png"
    gp_eval("demo", "--targets", 1, "--width", 0.1, "-o", picture)
    pixels = np.asarray(Image.open(picture).convert("RGB")).astype(int)
    assert min(pixels.shape[:2]) > 400
    blue = (pixels[..., 2] - pixels[..., 0]) > 60
    assert blue.mean() > 0.005


def test_table_for_people(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    outcome = gp_eval(
        "demo", "--targets", 1, "--score", "binary", "--width", 0.1, "-o", picture
    )
    header, row = outcome.out.splitlines()
    assert header.split()[:3] == ["target", "true", "estimate"]
    assert "/900" in row
    assert f"Picture: {picture}" in outcome.err
    assert picture.read_text().startswith("<?xml")


def test_mistakes_show_before_the_work(tmp_path: Path) -> None:
    assert "expected one of" in gp_eval("demo", "-o", tmp_path / "demo.txt").err
    absent = gp_eval("demo", "-o", tmp_path / "no" / "demo.png")
    assert absent.code == 1
    assert "no such folder" in absent.err
    assert "bayesame" in gp_eval("demo", "--model", "gp", "-o", tmp_path / "a.png").err
