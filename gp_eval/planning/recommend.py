"""Which model and which width to start with."""

from __future__ import annotations

from collections.abc import Sequence

from gp_eval.planning.content import Forecast, Recommendation
from gp_eval.planning.settings import wanted_width
from gp_eval.stopping import StoppingRule

__all__ = [
    "ERROR_SHARE",
    "FACTORS",
    "LEAST_COVERAGE",
    "LEAST_STOPPED",
    "acceptable",
    "recommend",
]

FACTORS = (1.0, 0.85, 0.7, 0.5)
"""Widths that are tried, as shares of the asked one."""

LEAST_COVERAGE = 0.9
"""Nominal are 0.95; a few dozen pseudo-targets cannot tell that from less."""

ERROR_SHARE = 1 / 3
"""Largest error as a share of the width; an exact interval has 1 / 3.92 = 0.255."""

LEAST_STOPPED = 0.9
"""Where more runs are cut than that, nobody knows how many items they need."""


def acceptable(*, rmse: float, coverage: float, stopped: float, asked: float) -> bool:
    """Whether a forecast keeps what the asked width promises.

    All of: the 95 % interval holds the truth at the stop in at least 90 % of the runs;
    the error there is at most a third of the asked width; at least 90 % of the runs
    stopped.
    """
    return (
        coverage >= LEAST_COVERAGE
        and rmse <= ERROR_SHARE * asked
        and stopped >= LEAST_STOPPED
    )


def recommend(forecasts: Sequence[Forecast], stop: StoppingRule) -> Recommendation:
    """The fewest items among models that are acceptable in every regime.

    Each model enters with the widest of the tried widths at which it is acceptable in
    every regime. Of these the one of the fewest expected items, averaged over the
    regimes, is taken; the first of equal ones. If there is none, the model and width of
    the highest coverage in its worst regime is, and the answer says so.

    Args:
        forecasts: Those of all models, regimes and widths.
        stop: The asked rule.

    Raises:
        ValueError: Without any forecast.
    """
    if not forecasts:
        raise ValueError("forecasts: expected at least one")
    settings: dict[tuple[str, float], list[Forecast]] = {}
    for found in forecasts:
        settings.setdefault((found.model, found.width), []).append(found)
    candidates = {
        model: max(
            (
                width
                for (name, width), group in settings.items()
                if name == model and all(f.acceptable for f in group)
            ),
            default=None,
        )
        for model, _ in settings
    }
    entered = [(m, w) for m, w in candidates.items() if w is not None]
    if entered:
        best = min(entered, key=lambda key: _items(settings[key]))
        return _recommendation(best, settings[best], stop, acceptable=True)
    best = max(
        settings,
        key=lambda key: (
            min(f.stopped for f in settings[key]) >= LEAST_STOPPED,
            min(f.coverage.value for f in settings[key]),
            -_items(settings[key]),
        ),
    )
    return _recommendation(best, settings[best], stop, acceptable=False)


def _items(group: Sequence[Forecast]) -> float:
    return sum(f.projected for f in group) / len(group)


def _recommendation(
    setting: tuple[str, float],
    group: Sequence[Forecast],
    stop: StoppingRule,
    *,
    acceptable: bool,
) -> Recommendation:
    model, width = setting
    coverage = min(f.coverage.value for f in group)
    rmse = max(f.rmse.value for f in group)
    stopped = min(f.stopped for f in group)
    found = f"coverage {coverage:.0%}, error {rmse:.4f} in its worst regime"
    if acceptable:
        reason = f"fewest items of the acceptable models: {found}"
    else:
        reason = (
            f"no model is acceptable (coverage at least {LEAST_COVERAGE:.0%}, error at "
            f"most {ERROR_SHARE * wanted_width(stop):.4f}, {LEAST_STOPPED:.0%} of runs "
            "stop); "
            f"this one has the highest coverage: {found}"
        )
        if stopped < LEAST_STOPPED:
            reason += f", {1 - stopped:.0%} of runs were cut before the stop"
    return Recommendation(
        model=model,
        width=width,
        stable=stop.stable,
        window=stop.window,
        items=_items(group),
        acceptable=acceptable,
        reason=reason,
    )
