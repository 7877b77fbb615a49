"""DISCO: choose items once by disagreement, predict scores from responses to them."""

from gp_eval.disco.choose import disagreement_order, guiding_models
from gp_eval.disco.options import DiscoOptions
from gp_eval.disco.plan import DiscoPlan
from gp_eval.disco.prediction import Prediction
from gp_eval.disco.predictors import fit_predictor, predictor_names
from gp_eval.disco.probabilities import (
    fit_temperatures,
    probabilities_from_log_likelihoods,
    soften,
)
from gp_eval.disco.response_files import read_responses
from gp_eval.disco.responses import Responses
from gp_eval.disco.selection import item_order, reference_disagreement
from gp_eval.disco.selection_scores import (
    Disagreement,
    disagreement_of_probabilities,
    disagreement_of_scores,
)

__all__ = [
    "Disagreement",
    "DiscoOptions",
    "DiscoPlan",
    "Prediction",
    "Responses",
    "disagreement_of_probabilities",
    "disagreement_of_scores",
    "disagreement_order",
    "fit_predictor",
    "fit_temperatures",
    "guiding_models",
    "item_order",
    "predictor_names",
    "probabilities_from_log_likelihoods",
    "read_responses",
    "reference_disagreement",
    "soften",
]
