"""Settings of the paper's tables and figures, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from gp_eval.experiments.cells import Regime
from gp_eval.experiments.tables import PAPER_MODELS, PAPER_OPTIONS

__all__ = ["PRESETS", "Preset"]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """What one table or figure of the BayesAME paper needs.

    Attributes:
        models: Registered names.
        regimes: How targets are split off.
        fractions: Shares of the pool used as references.
        options: Options by model where the paper's setting is not our default.
        seeds: Draws of the references.
        draws: Draws of the targets, where they are drawn.
    """

    models: tuple[str, ...]
    regimes: tuple[Regime, ...] = ("interpolation", "extrapolation")
    fractions: tuple[float, ...] = (0.5,)
    options: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    seeds: int = 40
    draws: int = 3


_CORRELATION: tuple[Regime, ...] = ("low-correlation", "high-correlation")
_BATCHES_OF_2 = ("bayesame-batch2", "bayesame-batch2-lookahead")
_BATCHES_OF_5 = ("bayesame-batch5", "bayesame-batch5-lookahead")

PRESETS: dict[str, Preset] = {
    "default": Preset(models=("bayesame", "bayesame-rs", "rs-mean"), seeds=20, draws=1),
    "table1": Preset(models=PAPER_MODELS, options=PAPER_OPTIONS),
    "table2": Preset(
        models=("bayesame", "bayesame-rs", *_BATCHES_OF_2, "bayes-aipw"),
    ),
    "figure1": Preset(
        models=PAPER_MODELS, options=PAPER_OPTIONS, fractions=(0.1, 0.5, 0.9)
    ),
    # Figures 3 and 14 differ in the data alone.
    "figure3": Preset(
        models=("bayesame", "bayesame-multi", "bayes-aipw", "rs-mean"),
        regimes=_CORRELATION,
    ),
    # Figures 4 and 5 of the paper are on GPQA.
    "figure4": Preset(
        models=("bayesame", *_BATCHES_OF_2, *_BATCHES_OF_5, "rs-mean"),
        fractions=(0.5, 0.9),
    ),
    "figure5": Preset(
        models=("bayesame", "bayesame-rs", "bayesame-logit", "bayesame-logit-rs"),
        fractions=(0.5, 0.9),
    ),
    "figure15": Preset(
        models=("bayesame-multi", "bayesame-multi-average", "rs-mean"),
        regimes=_CORRELATION,
    ),
}
