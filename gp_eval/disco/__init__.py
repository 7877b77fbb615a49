"""DISCO: choose items once by disagreement, predict scores from responses to them."""

from gp_eval.disco.choose import disagreement_order, guiding_models
from gp_eval.disco.probabilities import (
    fit_temperatures,
    probabilities_from_log_likelihoods,
    soften,
)
from gp_eval.disco.selection_scores import (
    Disagreement,
    disagreement_of_probabilities,
    disagreement_of_scores,
)

__all__ = [
    "Disagreement",
    "disagreement_of_probabilities",
    "disagreement_of_scores",
    "disagreement_order",
    "fit_temperatures",
    "guiding_models",
    "probabilities_from_log_likelihoods",
    "soften",
]
