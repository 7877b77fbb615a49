"""Registered models with calibrated intervals."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from gpytorch.kernels import Kernel

from gp_eval.calibration.learn import learn_inflation
from gp_eval.calibration.model import Calibrated, CalibratedItems
from gp_eval.calibration.targets import CalibratedTargetItems, CalibratedTargets
from gp_eval.data import References
from gp_eval.models.protocol import SupportsItemBelief
from gp_eval.models.registry import (
    check_options,
    is_calibrated,
    make_model,
    takes_seed,
    takes_targets,
)

__all__ = ["calibrated", "calibrated_targets"]


def calibrated(
    references: References,
    *,
    model: str = "bayesame",
    options: Mapping[str, Any] | None = None,
    weights: Sequence[float] | None = None,
    covar_module: Kernel | None = None,
    pseudo_targets: int = 10,
    max_items: int = 600,
    seed: int = 0,
) -> Calibrated:
    """A :class:`Calibrated` model, with a belief about items if the wrapped one has it.

    It costs ``pseudo_targets`` runs of the wrapped model, of up to ``max_items`` items
    each, once in a process for the same ``References`` object (unless an option is no
    JSON value, such as a kernel): with BayesAME on some hundred items some seconds.

    Args:
        references: Complete reference scores of at least two models.
        model: Registered name of a model of one target.
        options: Its options.
        weights: The option of that name, for a wrapped model that takes it.
        covar_module: Likewise.
        pseudo_targets: How many references to run as targets, at most.
        max_items: Items to run each for, at most; beyond, the last factor holds.
        seed: Fixes which references, and random items.

    Raises:
        ValueError: For an unknown model or option, a model of several targets or one
            that is calibrated already, or a single reference.
        DataError: For missing cells.
    """
    if takes_targets(model):
        raise ValueError(
            f"calibrated: model: {model!r} is about several targets, see "
            "'bayesame-multi-calibrated'"
        )
    given = _options(model, options, weights=weights, covar_module=covar_module)
    _check_positive(pseudo_targets=pseudo_targets, max_items=max_items)
    # A kernel is trained in place: pseudo-targets start from what it is now.
    start = copy.deepcopy(given)
    made = make_model(model, references, **given)
    kind = CalibratedItems if isinstance(made, SupportsItemBelief) else Calibrated
    return kind(
        made,
        references,
        learn=lambda: learn_inflation(
            references,
            model,
            start,
            pseudo_targets=pseudo_targets,
            max_items=max_items,
            seed=seed,
        ),
    )


def calibrated_targets(
    references: References,
    *,
    n_targets: int,
    model: str = "bayesame-multi",
    options: Mapping[str, Any] | None = None,
    weights: Sequence[float] | None = None,
    pseudo_targets: int = 10,
    max_items: int = 300,
    seed: int = 0,
    learning_seed: int = 0,
) -> CalibratedTargets:
    """A :class:`CalibratedTargets` model: of several targets, else as ``calibrated``.

    Pseudo-targets are run jointly, as many at once as there are targets; where fewer
    can be left out, fewer, which tell less about each other.

    Args:
        references: Complete reference scores of at least two models.
        n_targets: ``T``.
        model: Registered name of a model of several targets.
        options: Its options.
        weights: The option of that name, for a wrapped model that takes it.
        pseudo_targets: How many references to run as targets, at most.
        max_items: Items to run each for, at most, but twice the initial items at
            least; beyond, the last factor holds.
        seed: Of what the wrapped model draws.
        learning_seed: Fixes which references, and random items.

    Raises:
        ValueError: For an unknown model or option, a model of one target or one that is
            calibrated already, a single reference, or initial items that leave none.
        DataError: For missing cells.
    """
    if not takes_targets(model):
        raise ValueError(f"calibrated: model: {model!r} is about one target")
    given = _options(model, options, weights=weights)
    _check_positive(pseudo_targets=pseudo_targets, max_items=max_items)
    start = copy.deepcopy(given)
    drawn = {"seed": seed} if takes_seed(model) else {}
    made: Any = make_model(model, references, n_targets=n_targets, **{**drawn, **given})
    # Now: a session with a smaller budget lowers it, pseudo-targets have none.
    initial, n_items = made.initial_items, len(references.items)
    if n_items > 1 and not initial < n_items:
        raise ValueError(
            f"calibrated: options: expected fewer initial items than the {n_items} "
            f"there are, got {initial}: after all of them nothing is uncertain"
        )
    believes = isinstance(made, SupportsItemBelief)
    kind = CalibratedTargetItems if believes else CalibratedTargets
    return kind(
        made,
        references,
        learn=lambda: learn_inflation(
            references,
            model,
            start,
            pseudo_targets=pseudo_targets,
            max_items=max(max_items, 2 * initial),
            seed=learning_seed,
            at_once=n_targets,
        ),
    )


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"calibrated: {name}: expected >= 1, got {value}")


def _options(
    model: str, options: Mapping[str, Any] | None, **more: Any
) -> dict[str, Any]:
    """Checked options of the wrapped model."""
    if is_calibrated(model):
        raise ValueError(f"calibrated: model: {model!r} is calibrated already")
    given = dict(options or {})
    for name, value in more.items():
        if value is None:
            continue
        if name in given:
            raise ValueError(f"calibrated: {name}: given twice, in options as well")
        given[name] = value
    check_options(model, given)
    return given
