"""Results of simulated runs, made up, for tests of what is computed from them."""

from __future__ import annotations

import torch

from gp_eval.experiments.cells import Cell
from gp_eval.experiments.curves import Curves
from gp_eval.experiments.store import CellResult

N = 60


def result(
    seed: int,
    draw: int = 0,
    *,
    model: str = "rs-mean",
    n_max: int = N,
    error: float = 0.05,
    scale: float = 0.05,
    dof: float | None = None,
    n_targets: int = 3,
    fingerprint: str = "x",
    **cell,
) -> CellResult:
    """Estimates with normal errors of size ``error`` and beliefs of size ``scale``."""
    generator = torch.Generator().manual_seed(1000 * draw + seed)
    truth = torch.linspace(0.3, 0.6, n_targets, dtype=torch.float64) + 0.01 * draw
    shrink = 1 - torch.arange(1, n_max + 1, dtype=torch.float64) / N
    shape = (n_targets, n_max)
    noise = torch.randn(shape, generator=generator, dtype=torch.float64)
    variance = (scale * shrink).square().expand(shape).clone()
    defaults = {"data": "toy", "regime": "interpolation", "reference_fraction": 0.5}
    return CellResult(
        cell=Cell(**{**defaults, **cell}, model=model, seed=seed, draw=draw),
        targets=tuple("abcdefghij"[:n_targets]),
        truth=truth,
        curves=Curves(
            truth.unsqueeze(-1) + error * shrink * noise,
            variance,
            None if dof is None else torch.full_like(variance, dof),
        ),
        n_items=N,
        cpu_s=0.5,
        fingerprint=fingerprint,
    )
