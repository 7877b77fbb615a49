"""A whole run in memory: from references and a function that scores an item."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gp_eval.alarm import OnAlarm
from gp_eval.costs import ItemCosts
from gp_eval.data import References
from gp_eval.loop import EvaluationLoop
from gp_eval.models.protocol import PerformanceModel
from gp_eval.models.registry import make_model
from gp_eval.result import Result
from gp_eval.stopping import StoppingRule

__all__ = ["evaluate"]


def evaluate(
    references: References,
    score: Callable[[str], float],
    *,
    target: str = "target",
    model: str | PerformanceModel = "bayesame",
    stop: StoppingRule | None = None,
    seed: int = 0,
    costs: Mapping[str, float] | None = None,
    cost_aware: bool | None = None,
    on_alarm: OnAlarm = "fallback",
) -> Result:
    """Evaluate one target until the rule says stop, in memory.

    For runs that must survive a kill, use :class:`~gp_eval.Session`.

    Args:
        references: Reference scores of the benchmark.
        score: Runs the target on one item id and returns its score.
        target: Name of the target.
        model: A registered name, or a fresh model built from ``references``.
        stop: Default that of :class:`~gp_eval.StoppingRule`.
        seed: Fixes the run.
        costs: What each item costs, by id.
        cost_aware: See :class:`EvaluationLoop`.
        on_alarm: What to do when the target is out of the range of the references.

    Example:
        >>> result = evaluate(references, lambda item: float(my_model_is_right(item)))
        >>> print(result.mean, result.low, result.high, result.n)
    """
    if isinstance(model, str):
        model = make_model(model, references)
    loop = EvaluationLoop(
        model,
        references,
        stop=stop or StoppingRule(),
        seed=seed,
        costs=None if costs is None else ItemCosts.of_items(costs, references.items),
        cost_aware=cost_aware,
        on_alarm=on_alarm,
    )
    while not loop.done:
        for item in loop.ask():
            loop.tell(item, float(score(references.items[item])))
    return loop.result(target, references.items)
