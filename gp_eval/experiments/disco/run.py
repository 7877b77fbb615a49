"""Plans fitted on the references of a split, and what they say of its targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd
from torch import Tensor

from gp_eval.disco import DiscoOptions, DiscoPlan, item_order
from gp_eval.experiments.disco.trials import Trial

__all__ = ["SETTING", "draws_of", "run_trials"]

SETTING = [
    "choice",
    "predictor",
    "k",
    "guiding",
    "stratify",
    "pca",
    "temperature",
    "n_sources",
]
"""Columns that say what was fitted."""

_SEEDS = 1_000_003  # apart, so that no two draws of two splits share a seed
_RANDOM_PREDICTORS = ("random-forest", "boosting")


def draws_of(options: DiscoOptions, n_draws: int) -> list[DiscoOptions]:
    """The same setting with ``n_draws`` seeds; with one where nothing is random.

    Raises:
        ValueError: For no draw.
    """
    if n_draws < 1:
        raise ValueError(f"draws: expected at least 1, got {n_draws}")
    is_random = (
        options.choice == "random"
        or options.guiding is not None
        or options.umap is not None
        or options.predictor in _RANDOM_PREDICTORS
    )
    seeds = range(n_draws if is_random else 1)
    return [options.model_copy(update={"seed": options.seed + s}) for s in seeds]


def run_trials(
    trials: Iterable[Trial], settings: Sequence[DiscoOptions], *, n_draws: int = 1
) -> pd.DataFrame:
    """Every setting on every split.

    Args:
        trials: The splits.
        settings: What to fit. The seed of an option set counts with the number of the
            split, so that guiding subsets and random items differ between splits.
        n_draws: Seeds of each setting and split where something is random.

    Returns:
        One row for each target of each fit, in score units: the columns of
        :data:`SETTING`, ``setting`` (its place in ``settings``), ``regime``, ``split``,
        ``draw``, ``model``, ``truth``, ``predicted``, and ``std``, which is missing
        where the predictor has none.

    Raises:
        ValueError: For options that do not fit the references.
        DataError: Likewise.
    """
    found = [
        _run(trial, place, draw, options, orders)
        for trial in trials
        for orders in [dict[str, Tensor]()]
        for place, setting in enumerate(settings)
        for draw, options in enumerate(draws_of(setting, n_draws))
    ]
    if not found:
        raise ValueError("settings: expected at least one, and one split")
    return pd.concat(found, ignore_index=True)


def _run(
    trial: Trial,
    place: int,
    draw: int,
    options: DiscoOptions,
    orders: dict[str, Tensor],
) -> pd.DataFrame:
    seed = (options.seed + _SEEDS * trial.number) % 2**32
    seeded = options.model_copy(update={"seed": seed})
    prediction = _fit(trial, seeded, orders).predict(trial.targets)
    rows = pd.DataFrame(
        {
            "model": prediction.models,
            "truth": trial.targets.performance.numpy(),
            "predicted": prediction.mean.numpy(),
            "std": float("nan") if prediction.std is None else prediction.std.numpy(),
        }
    )
    # Nullable integers: None is a value here, all models or no projection.
    whole = {"guiding": options.guiding, "pca": options.pca}
    return rows.assign(
        setting=place,
        regime=trial.regime,
        split=trial.number,
        draw=draw,
        choice=options.choice,
        predictor=options.predictor,
        k=options.k,
        stratify=options.stratify,
        temperature=options.temperature,
        n_sources=len(trial.references.models),
        **{n: pd.array([v] * len(rows), dtype="Int64") for n, v in whole.items()},
    )


def _fit(trial: Trial, options: DiscoOptions, orders: dict[str, Tensor]) -> DiscoPlan:
    """The plan; plans that choose alike share the order of items."""
    references = trial.references
    if options.predictor == "mean" or options.k > len(references.items):
        return DiscoPlan.fit(references, options)
    fields = {"choice", "guiding", "stratify", "choose_from", "temperature", "seed"}
    key = options.model_dump_json(include=fields)
    if key not in orders:
        orders[key] = item_order(references, options)
    items = [references.items[i] for i in orders[key][: options.k].tolist()]
    given = options.model_copy(update={"choice": "given"})
    return DiscoPlan.fit(references, given, items=items)
