"""The working mean of a population model as a GPyTorch mean."""

from __future__ import annotations

from typing import Any

from gpytorch.means import Mean
from torch import Tensor

from gp_eval.kernels.population import PopulationKernel

__all__ = ["PopulationMean"]


class PopulationMean(Mean):
    """Mean of the references, shifted and stretched to the target on the link's scale.

    Args:
        kernel: The kernel whose effects it has.
    """

    def __init__(self, kernel: PopulationKernel) -> None:
        super().__init__()
        # Not a submodule: its parameters are the kernel's, once.
        self.__dict__["kernel"] = kernel

    def forward(self, x: Tensor) -> Tensor:
        """Working mean ``... x n`` of ``... x n x K`` reference scores."""
        kernel: Any = self.__dict__["kernel"]
        return kernel.mean(x)
