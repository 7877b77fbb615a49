"""``--plan`` of ``start`` and ``run``: settings of a plan, where no flag says else."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from gp_eval.cli.output import note
from gp_eval.data import References
from gp_eval.planning.files import check_plan, read_plan
from gp_eval.stopping import StoppingRule

__all__ = ["SETTINGS", "planned"]

SETTINGS = ("model", "width", "stable", "window")
"""What a plan may give."""


def planned(
    path: Path,
    left_open: Collection[str],
    references: References,
    *,
    model: str | None,
    stop: StoppingRule,
) -> tuple[str | None, StoppingRule]:
    """Model and rule of a session by a plan.

    Args:
        path: JSON of the plan.
        left_open: Which of ``model``, ``width``, ``stable`` and ``window`` the plan may
            give.
        references: What the session starts with.
        model: The model otherwise.
        stop: The rule otherwise; its budget stays.

    Raises:
        GpEvalError: For a file that is no plan.
        StateMismatchError: For a plan of other references.
    """
    plan = read_plan(path)
    check_plan(plan, references, path=path)
    best = plan.recommendation
    if "model" in left_open:
        model = best.model
    stop = replace(
        stop,
        width=best.width if "width" in left_open else stop.width,
        stable=best.stable if "stable" in left_open else stop.stable,
        window=best.window if "window" in left_open else stop.window,
    )
    used = [name for name in SETTINGS if name in left_open]
    note(
        f"Plan: {model}, width {stop.width:.4g}, stable {stop.stable:g}, window "
        f"{stop.window} ({', '.join(used) or 'nothing'} of the plan)"
    )
    if len(used) == len(SETTINGS):
        note(f"Expected: about {best.items:.0f} of {plan.n_items} items")
    if not best.acceptable:
        note(f"warning: {best.reason}")
    return model, stop
