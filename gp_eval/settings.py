"""Numerical settings: exact inference in double precision, or an error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import gpytorch

__all__ = ["exact_inference"]


@contextmanager
def exact_inference() -> Iterator[None]:
    """Switch off every approximation of GPyTorch for the enclosed block.

    No conjugate gradients, no Lanczos, no added jitter, at any size. GPyTorch's own
    defaults go iterative above 800 points, and ``import botorch`` changes those
    defaults and allows jitter up to ``1e-3``, ten times the noise variance of the
    BayesAME paper; results would depend on size and import order. Everything public
    in gp_eval that goes through GPyTorch runs inside this context; use it around your
    own calls of :class:`~gp_eval.models.BucketGP`.
    """
    settings = gpytorch.settings
    with ExitStack() as stack:
        for setting in (
            settings.fast_computations(False, False, False),
            settings.fast_pred_var(False),
            settings.max_cholesky_size(2**31),
            # One retry with nothing added: with none at all linear_operator's own
            # error message fails.
            settings.cholesky_max_tries(1),
            settings.cholesky_jitter(0.0, 0.0, 0.0),
        ):
            stack.enter_context(setting)
        yield
