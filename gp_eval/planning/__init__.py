"""Knowing before spending: what a table of references promises for a new target."""

from gp_eval.planning.content import Plan
from gp_eval.planning.files import check_plan, read_plan, write_plan
from gp_eval.planning.plan import make_plan
from gp_eval.planning.settings import DEFAULT_MODELS, PlanSettings

__all__ = [
    "DEFAULT_MODELS",
    "Plan",
    "PlanSettings",
    "check_plan",
    "make_plan",
    "read_plan",
    "write_plan",
]
