"""The population model: a prior from how the references vary item by item."""

from gp_eval.models.population.model import SequentialPopulationModel
from gp_eval.models.population.population import Population
from gp_eval.models.population.prior import PopulationPrior, fit_population_prior

__all__ = [
    "Population",
    "PopulationPrior",
    "SequentialPopulationModel",
    "fit_population_prior",
]
