"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from oracles import Problem, make_problem

SHARED = Path(
    os.environ.get("GP_EVAL_SHARED", Path(__file__).parents[1] / ".." / "shared")
)


@pytest.fixture
def problem() -> Problem:
    """Uneven buckets, as small as an item-level formula needs."""
    return make_problem(seed=0)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real score matrices, which is not part of the repository."""
    folder = SHARED / "data"
    if not folder.is_dir():
        pytest.skip(f"no real score matrices at {folder}; set GP_EVAL_SHARED")
    return folder


@pytest.fixture(scope="session")
def shared_samples() -> Path:
    """The folder of real log files, which is not part of the repository."""
    folder = SHARED / "samples"
    if not folder.is_dir():
        pytest.skip(f"no log samples at {folder}; set GP_EVAL_SHARED")
    return folder
