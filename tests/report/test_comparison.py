from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from gp_eval.comparison import Comparison, compare
from gp_eval.report.comparison import plot_comparison


def comparison(n_models: int, *, std: float = 0.01, prefix: str = "m") -> Comparison:
    mean = 0.6 + 0.012 * torch.arange(n_models, dtype=torch.float64)
    covariance = std**2 * torch.eye(n_models, dtype=torch.float64)
    names = [f"{prefix}{i}" for i in range(n_models)]
    return compare(names, mean, covariance, level=0.9)


def test_everything_promised_is_in_the_picture(tmp_path: Path) -> None:
    made = comparison(4)
    path = plot_comparison(made, tmp_path / "a.svg")
    assert path.is_absolute()
    drawn = path.read_text()
    for text in ("Ranking", "rank", "benchmark score, 90 % interval", "m0", "m3"):
        assert f"<!-- {text} -->" in drawn
    for ranked in made.ranking:
        assert f"<!-- {ranked.ranks} -->" in drawn
    # 0.012 over 0.01 sqrt(2): Phi(0.849) and its mirror; the far pair is nearly sure.
    assert drawn.count("<!-- 80 -->") == drawn.count("<!-- 20 -->") == 3
    assert drawn.count("<!-- 99 -->") == 1


def test_numbers_never_round_to_certainty(tmp_path: Path) -> None:
    drawn = plot_comparison(comparison(2, std=0.002), tmp_path / "a.svg").read_text()
    assert "<!-- &gt;99 -->" in drawn
    assert "<!-- &lt;1 -->" in drawn
    sure = plot_comparison(comparison(2, std=0.0), tmp_path / "b.svg").read_text()
    assert "<!-- 100 -->" in sure
    assert "<!-- 0 -->" in sure


@pytest.mark.parametrize("n_models", [1, 2, 7, 20])
def test_cells_have_the_same_size_for_any_number_of_models(
    tmp_path: Path, n_models: int
) -> None:
    path = plot_comparison(comparison(n_models), tmp_path / "a.png")
    pixels = np.asarray(Image.open(path).convert("RGB")).astype(int)
    height, width = pixels.shape[:2]
    assert height > 0.42 * 150 * n_models
    assert width > 3.8 * 150 + 0.42 * 150 * n_models
    blue = (pixels[..., 2] - pixels[..., 0]) > 60
    cells = n_models * (n_models - 1) / 2 * (0.42 * 150) ** 2
    assert blue.sum() > 0.3 * cells


def test_long_names_are_cut_unless_they_would_look_alike(tmp_path: Path) -> None:
    cut = comparison(2, prefix="organisation/some-model-checkpoint-")
    drawn = plot_comparison(cut, tmp_path / "a.svg").read_text()
    assert "<!-- organisation/…l-checkpoint-1 -->" in drawn
    mean = torch.tensor([0.5, 0.6], dtype=torch.float64)
    alike = [f"organisation/some-{i}-model-checkpoint-0" for i in range(2)]
    made = compare(alike, mean, torch.eye(2, dtype=torch.float64))
    drawn = plot_comparison(made, tmp_path / "b.svg").read_text()
    assert all(f"<!-- {name} -->" in drawn for name in alike)


def test_names_are_no_formulae(tmp_path: Path) -> None:
    made = compare(
        ["a$x^{$", "b_1"],
        torch.tensor([0.5, 0.6], dtype=torch.float64),
        torch.eye(2, dtype=torch.float64),
    )
    assert plot_comparison(made, tmp_path / "a.pdf").stat().st_size > 1000
