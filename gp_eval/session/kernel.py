"""A session's own copy of the kernel that the user passed in."""

from __future__ import annotations

import copy

import numpy as np
import torch
from gpytorch.kernels import Kernel

from gp_eval.data import References
from gp_eval.errors import StateMismatchError
from gp_eval.linalg.kernel_table import dense_covariance
from gp_eval.session.config import KernelRecord

__all__ = ["describe_kernel", "restore_kernel"]


def _probe(kernel: Kernel, references: References) -> list[float]:
    """Covariances of a few different rows: printing alike is not being alike."""
    rows = torch.unique(references.scores, dim=0)
    phi = rows[torch.linspace(0, rows.shape[0] - 1, 8).long().unique()]
    with torch.no_grad():
        return dense_covariance(kernel, phi).reshape(-1).tolist()


def describe_kernel(kernel: Kernel, references: References) -> KernelRecord:
    """What a session writes down about a kernel, to know it again."""
    return KernelRecord(
        description=repr(kernel),
        covariance=_probe(kernel, references),
        parameters={
            name: parameter.detach().reshape(-1).tolist()
            for name, parameter in kernel.named_parameters()
        },
    )


def restore_kernel(
    record: KernelRecord | None, kernel: Kernel | None, references: References
) -> Kernel | None:
    """A copy of the kernel with the parameters that the session started from."""
    if (record is None) != (kernel is None):
        raise StateMismatchError(
            "covar_module: the session was created "
            + ("without one" if record is None else f"with {record.description}")
        )
    if record is None or kernel is None:
        return None
    kernel = copy.deepcopy(kernel).double()
    if repr(kernel) != record.description:
        raise StateMismatchError(
            f"covar_module: expected {record.description}, got {kernel!r}"
        )
    sizes = {name: p.numel() for name, p in kernel.named_parameters()}
    if sizes != {name: len(start) for name, start in record.parameters.items()}:
        raise StateMismatchError("covar_module: expected other parameters")
    with torch.no_grad():
        for name, parameter in kernel.named_parameters():
            start = torch.tensor(record.parameters[name], dtype=torch.float64)
            parameter.copy_(start.view_as(parameter))
    if not np.allclose(_probe(kernel, references), record.covariance, rtol=1e-9):
        raise StateMismatchError(
            "covar_module: it prints as the one of the session but has other "
            f"covariances: {kernel!r}"
        )
    return kernel
