from __future__ import annotations

import builtins
from pathlib import Path

import pytest

from gp_eval.errors import MissingDependencyError
from gp_eval.report.curves import Curve, check_picture, plot_curves


def curve(**options) -> Curve:
    defaults = {
        "title": "a target",
        "estimates": [0.9, 0.7, 0.65, 0.66],
        "widths": [0.5, 0.3, 0.2, 0.1],
        "truth": 0.64,
        "n_items": 20,
        "stop_reason": "converged",
    }
    return Curve(**{**defaults, **options})


def test_everything_promised_is_in_the_picture(tmp_path: Path) -> None:
    path = plot_curves([curve(random_means=[0.5, 0.6, 0.7, 0.6])], tmp_path / "a.svg")
    drawn = path.read_text()
    for text in (
        "a target",
        "stopped at 4 of 20",
        "true score",
        "95 % interval",
        "random sample",
        "evaluated items n",
    ):
        assert f"<!-- {text} -->" in drawn


def test_truth_and_stop_are_optional(tmp_path: Path) -> None:
    runs = [curve(truth=None, stop_reason=None)] * 3
    drawn = plot_curves(runs, tmp_path / "a.svg").read_text()
    assert "true score" not in drawn
    assert "stopped" not in drawn


def test_a_run_of_one_item_can_be_drawn(tmp_path: Path) -> None:
    run = curve(estimates=[0.5], widths=[0.0], truth=0.5)
    assert plot_curves([run], tmp_path / "a.pdf").stat().st_size > 1000


def test_missing_matplotlib_is_said_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args, **options):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"gp-eval\[plot\]"):
        check_picture(tmp_path / "a.png")
