"""Models by name; a third party adds its own in one line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from functools import partial
from importlib import import_module
from typing import Any

from gp_eval.data import References
from gp_eval.models.baselines import (
    AIPW,
    BayesianAIPW,
    BayesianRandomSamplingLearn,
    RandomMean,
    RandomSamplingLearn,
    SequentialAnchorPoints,
)
from gp_eval.models.baselines.proeval import ProEval
from gp_eval.models.bayesame import BayesAME
from gp_eval.models.combined import Combined
from gp_eval.models.disco import Disco
from gp_eval.models.irt import ItemResponse2PL, ItemResponseBeta
from gp_eval.models.logit import BayesAMELogit
from gp_eval.models.multi_target_bayesame import MultiTargetBayesAME
from gp_eval.models.population import Population
from gp_eval.models.protocol import PerformanceModel, SupportsItemBelief

__all__ = [
    "check_options",
    "is_calibrated",
    "make_model",
    "model_factory",
    "model_names",
    "models_of_items",
    "register_model",
    "takes_seed",
    "takes_targets",
]

_MODELS: dict[str, Callable[..., Any]] = {
    "population": Population,
    "bayesame": BayesAME,
    "bayesame-multi": MultiTargetBayesAME,
    "bayesame-multi-average": partial(MultiTargetBayesAME, selection="average"),
    "bayesame-rs": partial(BayesAME, selection="random"),
    "bayesame-batch2": partial(BayesAME, batch=2),
    "bayesame-batch2-lookahead": partial(BayesAME, batch=2, lookahead=True),
    "bayesame-batch5": partial(BayesAME, batch=5),
    "bayesame-batch5-lookahead": partial(BayesAME, batch=5, lookahead=True),
    "bayesame-logit": BayesAMELogit,
    "bayesame-logit-rs": partial(BayesAMELogit, selection="random"),
    "rs-mean": RandomMean,
    "seq-apw": SequentialAnchorPoints,
    "aipw": AIPW,
    "bayes-aipw": BayesianAIPW,
    "rs-learn": RandomSamplingLearn,
    "bayes-rs-learn": BayesianRandomSamplingLearn,
    "proeval": ProEval,
    "irt-2pl": ItemResponse2PL,
    "irt-beta": ItemResponseBeta,
    "disco": Disco,
    "combined": Combined,
}

# They run other models, and live above this folder: found when they are asked for.
_CALIBRATED: dict[str, tuple[str, dict[str, str]]] = {
    "calibrated": ("calibrated", {}),
    "bayesame-calibrated": ("calibrated", {"model": "bayesame"}),
    "proeval-calibrated": ("calibrated", {"model": "proeval"}),
    "bayesame-multi-calibrated": ("calibrated_targets", {"model": "bayesame-multi"}),
}


def register_model(name: str, factory: Callable[..., Any]) -> None:
    """Make ``factory(references, **options)`` available under ``name``.

    It returns a :class:`~gp_eval.PerformanceModel`; if it takes ``n_targets``, a
    :class:`~gp_eval.models.MultiTargetModel` of so many.

    Raises:
        ValueError: If the name is taken.
    """
    if name in model_names():
        raise ValueError(f"name: {name!r} is registered already")
    _MODELS[name] = factory


def model_names() -> list[str]:
    """Names of all registered models."""
    return [*_MODELS, *_CALIBRATED]


def is_calibrated(name: str) -> bool:
    """Whether it is another model with calibrated intervals."""
    return name in _CALIBRATED


def takes_targets(name: str) -> bool:
    """Whether the model of that name is about several targets at once."""
    return "n_targets" in inspect.signature(model_factory(name)).parameters


def takes_seed(name: str) -> bool:
    """Whether the model of that name makes random choices of its own."""
    return "seed" in inspect.signature(model_factory(name)).parameters


def models_of_items() -> list[str]:
    """Names of the models with a joint belief about items.

    See :class:`~gp_eval.models.SupportsItemBelief`. A factory that is neither a class
    nor a ``partial`` of one does not tell, and is not named.
    """
    return [name for name, factory in _MODELS.items() if _believes_items(factory)]


def _believes_items(factory: Callable[..., Any]) -> bool:
    while isinstance(factory, partial):
        factory = factory.func
    return inspect.isclass(factory) and issubclass(factory, SupportsItemBelief)


def model_factory(name: str) -> Callable[..., Any]:
    """What builds the model of that name: ``factory(references, **options)``.

    Raises:
        ValueError: For an unknown name, with the known ones.
    """
    if name in _CALIBRATED:
        maker, preset = _CALIBRATED[name]
        return partial(getattr(import_module("gp_eval.calibration"), maker), **preset)
    if name not in _MODELS:
        raise ValueError(f"model: expected one of {model_names()}, got {name!r}")
    return _MODELS[name]


def check_options(name: str, options: Collection[str]) -> None:
    """Raise ``ValueError`` for an unknown model or option, with the known ones."""
    known = list(inspect.signature(model_factory(name)).parameters)[1:]
    unknown = [option for option in options if option not in known]
    if unknown:
        raise ValueError(f"{name}: unknown options {unknown}; it takes {known}")


def make_model(name: str, references: References, **options: Any) -> PerformanceModel:
    """A fresh model of one target, or of ``n_targets``.

    Args:
        name: One of :func:`model_names`.
        references: Reference scores of the benchmark.
        **options: Options of that model, such as ``noise`` or ``covar_module``; a model
            of several targets, such as ``"bayesame-multi"``, needs ``n_targets`` and is
            a :class:`~gp_eval.models.MultiTargetModel`.

    Raises:
        ValueError: For an unknown name or option, with the known ones, or ``n_targets``
            that is missing or out of place.
    """
    if takes_targets(name) != ("n_targets" in options):
        raise ValueError(
            f"model: {name!r} is about several targets and needs n_targets"
            if takes_targets(name)
            else f"model: {name!r} is about one target; several need 'bayesame-multi', "
            "or one model each"
        )
    check_options(name, options)
    return model_factory(name)(references, **options)
