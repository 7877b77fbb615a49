"""What a plan is about, and how much work may go into it."""

from __future__ import annotations

from dataclasses import dataclass, field

from gp_eval.models.registry import model_factory, takes_targets
from gp_eval.planning.folds import PlanRegime
from gp_eval.stopping import StoppingRule

__all__ = ["DEFAULT_MODELS", "REGIMES", "PlanSettings", "wanted_width"]

DEFAULT_MODELS = ("population", "bayesame", "rs-mean")
"""Models of a plan, where none are named."""

REGIMES: tuple[PlanRegime, ...] = ("interpolation", "extrapolation")


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """Settings of a plan.

    How much is simulated depends on the speed of the machine, unless ``targets`` is
    given: with it, and with ``n_max`` on a large set, a plan is the same everywhere.

    Attributes:
        models: Registered names of models of one target.
        stop: The rule that is asked for; a budget in it is not looked at.
        regimes: Random references as targets, the strongest, or both.
        gap: Share of the references left out below the strongest. A gap looks more like
            extrapolation, but costs references: forecasts with 0.1 and 0.2 were further
            off than without, also for targets far above all references.
        budget_s: Seconds by the clock, without the pilot.
        targets: Runs in interpolation for each model, in place of ``budget_s``.
        n_max: Items that a run evaluates at most; default all of a set of up to a
            thousand, otherwise what ``budget_s`` allows, up to a thousand.
        more: References more that the curve is extrapolated to; ``None`` for no curve.
        jobs: Processes; default as many as there are cores.
        seed: Fixes folds, orders and resampling.

    Raises:
        ValueError: For a value out of range, or a model that is unknown or of several
            targets.
    """

    models: tuple[str, ...] = DEFAULT_MODELS
    stop: StoppingRule = field(default_factory=StoppingRule)
    regimes: tuple[PlanRegime, ...] = REGIMES
    gap: float = 0.0
    budget_s: float = 60.0
    targets: int | None = None
    n_max: int | None = None
    more: int | None = 10
    jobs: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("models", "regimes"):
            value = getattr(self, name)
            if not value or len(set(value)) < len(value):
                raise ValueError(
                    f"{name}: expected at least one, each once, got {value}"
                )
        for model in self.models:
            model_factory(model)
            if takes_targets(model):
                raise ValueError(
                    f"models: {model!r} is about several targets; a plan is about one"
                )
        wanted_width(self.stop)
        for name in ("targets", "n_max", "more", "jobs"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}: expected at least 1, got {value}")
        if not 0.0 <= self.gap < 1.0:
            raise ValueError(f"gap: expected 0 <= gap < 1, got {self.gap}")
        if not self.budget_s > 0.0:
            raise ValueError(f"budget_s: expected more than 0, got {self.budget_s}")


def wanted_width(stop: StoppingRule) -> float:
    """The width of a rule that has one; a plan checks that."""
    if stop.width is None:
        raise ValueError("stop: a plan is about a width, got a rule without one")
    return stop.width
