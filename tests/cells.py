"""What the tests of summaries share: made-up results of cells."""

from __future__ import annotations

import torch

from gp_eval.experiments.cells import Cell
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.store import CellResult

N = 60


def result(
    seed: int, draw: int = 0, *, model: str = "rs-mean", n_max: int = N, **cell
) -> CellResult:
    generator = torch.Generator().manual_seed(100 * draw + seed)
    truth = torch.tensor([0.3, 0.5, 0.6], dtype=torch.float64) + 0.01 * draw
    shrink = 1 - torch.arange(1, n_max + 1, dtype=torch.float64) / N
    noise = torch.randn(3, n_max, generator=generator, dtype=torch.float64)
    defaults = {"data": "toy", "regime": "interpolation", "reference_fraction": 0.5}
    return CellResult(
        cell=Cell(**{**defaults, **cell}, model=model, seed=seed, draw=draw),
        targets=("a", "b", "c"),
        truth=truth,
        curves=Curves(
            truth.unsqueeze(-1) + 0.05 * shrink * noise,
            (0.05 * shrink).square().expand(3, -1).clone(),
        ),
        n_items=N,
        cpu_s=0.5,
        fingerprint="x",
    )
