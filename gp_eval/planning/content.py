"""What a plan says, whatever it is written as; the JSON form is this and no more."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from gp_eval.planning.folds import PlanRegime

__all__ = [
    "Estimate",
    "Forecast",
    "Plan",
    "Quantiles",
    "Recommendation",
    "ReferenceCurve",
]


class _Content(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Estimate(_Content):
    """A number and its 95 % interval over the draw of targets.

    Attributes:
        value: The number.
        low: Lower end.
        high: Upper end.
    """

    value: float
    low: float
    high: float


class Quantiles(_Content):
    """Spread over runs: what a single target may need.

    Attributes:
        q10: One run in ten needs fewer.
        q50: The median.
        q90: One run in ten needs more.
    """

    q10: float
    q50: float
    q90: float


class Forecast(_Content):
    """What happens at the stop with one model and one rule.

    Attributes:
        model: Registered name.
        regime: How pseudo-targets were split off.
        width: Threshold on the width of the interval, in score units.
        items: Expected number of items.
        spread: Quantiles of the number of items over runs.
        narrow: Expected number of items after which the interval stays narrow enough:
            what is above it waits for the estimate to be stable.
        projected: ``items``, with those of runs that were cut projected to the wanted
            width as for a random sample.
        rmse: Error at the stop, in score units.
        coverage: Share of runs whose 95 % interval holds the truth at the stop.
        stopped: Share of runs that met the rule, or evaluated everything. The others
            were cut at ``n_max``: items are then at least those.
        runs: Simulated runs, ``R``.
        targets: Different pseudo-targets.
        references: Mean number of references in the simulations.
        acceptable: Whether coverage and error pass the rule of
            :func:`~gp_eval.planning.recommend.acceptable`.
    """

    model: str
    regime: PlanRegime
    width: float
    items: Estimate
    spread: Quantiles
    narrow: float
    projected: float
    rmse: Estimate
    coverage: Estimate
    stopped: float
    runs: int
    targets: int
    references: float
    acceptable: bool


class ReferenceCurve(_Content):
    """Items and error of one model against the number of references.

    Attributes:
        model: Registered name.
        sizes: Numbers of references that were simulated.
        items: Mean items at the stop for each.
        rmse: Error after ``at_n`` items for each.
        at_n: Number of items at which errors are compared.
        references: References of the user, ``K``.
        more: How many more are asked about.
        items_now: Items at ``K`` by the curve ``a + b / K`` through the two largest
            sizes; its interval also holds that of the fit to all sizes.
        items_more: Items with ``more`` references more, an extrapolation.
        items_change: ``items_more / items_now - 1``.
        rmse_now: Error at ``K`` by such a curve for its square.
        rmse_more: Error with ``more`` references more.
        rmse_change: ``rmse_more / rmse_now - 1``; 0 where both are 0.
    """

    model: str
    sizes: list[float]
    items: list[float]
    rmse: list[float]
    at_n: int
    references: int
    more: int
    items_now: Estimate
    items_more: Estimate
    items_change: Estimate
    rmse_now: Estimate
    rmse_more: Estimate
    rmse_change: Estimate


class Recommendation(_Content):
    """What to start a session with.

    Attributes:
        model: Registered name.
        width: Threshold on the width; below the asked one if that model's intervals
            are too narrow to be taken at their word.
        stable: Threshold on the range of the last estimates.
        window: How many last estimates.
        items: Expected items, mean over the regimes; projected, where runs were cut.
        acceptable: Whether coverage and error are acceptable in every regime; if not,
            nothing was, and this is the best there is.
        reason: The same in a sentence.
    """

    model: str
    width: float
    stable: float
    window: int
    items: float
    acceptable: bool
    reason: str


class Plan(_Content):
    """Everything that ``gp-eval plan`` found out.

    Attributes:
        format: What kind of file this is.
        fingerprint: Fingerprint of the references.
        n_items: ``N``.
        n_references: ``K``.
        width: Width that was asked for.
        stable: Threshold on the range of the last estimates.
        window: How many last estimates.
        gap: Share of the references left out below the strongest.
        n_max: Items up to which runs were simulated; ``N`` unless the set is large.
        seed: Seed of all folds.
        seconds: How long the simulations took.
        forecasts: One for each model, regime and width tried, the asked width first.
        curves: One for each model, if there are references enough.
        refused: Models that cannot be used on these references, and why.
        recommendation: What to start with.
    """

    format: Literal["gp_eval plan 1"] = "gp_eval plan 1"
    fingerprint: str
    n_items: int
    n_references: int
    width: float
    stable: float
    window: int
    gap: float
    n_max: int
    seed: int
    seconds: float
    forecasts: list[Forecast]
    curves: list[ReferenceCurve]
    refused: dict[str, str]
    recommendation: Recommendation

    def of(self, model: str, width: float | None = None) -> list[Forecast]:
        """Forecasts of a model at a width, by default the asked one."""
        wanted = self.width if width is None else width
        return [f for f in self.forecasts if (f.model, f.width) == (model, wanted)]
