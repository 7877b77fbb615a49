"""A cell of an experiment: one model, one reference set, a set of targets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from gp_eval.data import References
from gp_eval.experiments.splits import (
    Split,
    chronological,
    extrapolation,
    high_correlation,
    interpolation,
)

__all__ = ["Cell", "Regime", "plan_cells"]

Regime = Literal[
    "interpolation",
    "extrapolation",
    "low-correlation",
    "high-correlation",
    "chronological",
]

# Section 5.2 of the BayesAME paper: the low-correlation set is a random one.
_DRAWN = ("interpolation", "low-correlation")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Everything that fixes one simulation.

    Attributes:
        data: Name of the data set.
        regime: How targets are split off.
        reference_fraction: Share of the pool that is used as references.
        model: Registered name of the model.
        options: Options of the model; JSON values only.
        n_targets: Number of targets ``T``.
        draw: Seed of the draw of targets, where they are drawn.
        seed: Seed of the references and of everything random in the model.
        n_max: Number of items to evaluate; ``None`` for all.
    """

    data: str
    regime: Regime
    reference_fraction: float
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    n_targets: int = 10
    draw: int = 0
    seed: int = 0
    n_max: int | None = None

    def __post_init__(self) -> None:
        """Check what becomes a path, and keep options as a file gives them back."""
        for name in ("data", "model"):
            value = getattr(self, name)
            if value in ("", ".", "..") or "/" in value or "\\" in value:
                raise ValueError(f"{name}: cannot name a folder: {value!r}")
        if self.n_max is not None and self.n_max < 1:
            raise ValueError(f"n_max: expected at least 1 or None, got {self.n_max}")
        options = json.loads(json.dumps(dict(self.options), allow_nan=False))
        object.__setattr__(self, "options", options)

    @property
    def path(self) -> Path:
        """Where its result lands, below the folder of the experiment."""
        setting = f"{self.regime}-{self.reference_fraction:g}-{self.n_targets}"
        name = f"draw{self.draw:03d}-seed{self.seed:04d}.parquet"
        return Path(self.data) / setting / self.model / name

    def record(self) -> dict[str, Any]:
        """The cell as JSON values."""
        return {**asdict(self), "options": dict(self.options)}

    def split(self, scores: References) -> Split:
        """Targets and pool of this cell."""
        if self.regime in _DRAWN:
            return interpolation(
                scores, n_targets=self.n_targets, target_seed=self.draw
            )
        fixed = {
            "extrapolation": extrapolation,
            "high-correlation": high_correlation,
            "chronological": chronological,
        }
        return fixed[self.regime](scores, n_targets=self.n_targets)


def plan_cells(
    data: list[str],
    *,
    models: list[str],
    regimes: list[Regime],
    reference_fractions: list[float],
    seeds: int,
    n_targets: int,
    draws: int,
    n_max: int | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> list[Cell]:
    """All cells of an experiment, seeds outermost, so that early results are broad.

    Regimes without a draw of targets have one set of them, whatever ``draws`` is.

    Raises:
        ValueError: For options of a model that is not among ``models``.
    """
    unused = [model for model in options or {} if model not in models]
    if unused:
        raise ValueError(f"options: not among the models: {unused}")
    return [
        Cell(
            data=name,
            regime=regime,
            reference_fraction=fraction,
            model=model,
            options=dict((options or {}).get(model, {})),
            n_targets=n_targets,
            draw=draw,
            seed=seed,
            n_max=n_max,
        )
        for seed in range(seeds)
        for draw in range(draws)
        for name in data
        for regime in regimes
        if regime in _DRAWN or draw == 0
        for fraction in reference_fractions
        for model in models
    ]
