"""Item response theory: items from the references, a target's ability on a grid."""

from gp_eval.models.irt.beta import BetaResponse
from gp_eval.models.irt.family import ItemFamily
from gp_eval.models.irt.item_parameters import ItemParameters, fit_items
from gp_eval.models.irt.item_response import ItemResponse2PL, ItemResponseBeta
from gp_eval.models.irt.two_parameter import TwoParameterLogistic

__all__ = [
    "BetaResponse",
    "ItemFamily",
    "ItemParameters",
    "ItemResponse2PL",
    "ItemResponseBeta",
    "TwoParameterLogistic",
    "fit_items",
]
