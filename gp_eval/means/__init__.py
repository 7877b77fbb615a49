"""Prior means over reference score vectors."""

from gp_eval.means.population import PopulationMean
from gp_eval.means.reference import ReferenceMean

__all__ = ["PopulationMean", "ReferenceMean"]
