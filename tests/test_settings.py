from __future__ import annotations

import warnings

import gpytorch
import pytest
import torch
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.errors import NotPSDError

from gp_eval.settings import exact_inference


def test_no_jitter_is_ever_added() -> None:
    singular = torch.ones(3, 3, dtype=torch.float64)
    with exact_inference(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(NotPSDError):
            psd_safe_cholesky(singular)


def test_no_iterative_methods_at_any_size() -> None:
    with exact_inference():
        assert gpytorch.settings.max_cholesky_size.value() > 10**9
        assert gpytorch.settings.fast_computations.log_prob.off()
        assert gpytorch.settings.fast_computations.solves.off()
        assert gpytorch.settings.fast_computations.covar_root_decomposition.off()
        assert gpytorch.settings.fast_pred_var.off()


def test_everything_is_put_back() -> None:
    def state() -> list[object]:
        s = gpytorch.settings
        return [
            s.max_cholesky_size.value(),
            s.cholesky_max_tries.value(),
            s.cholesky_jitter.value(torch.float64),
            s.fast_pred_var.on(),
            s.fast_computations.solves.on(),
        ]

    before = state()
    with exact_inference():
        assert state() != before
    assert state() == before
