"""Fixtures of the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from multi_target_commands import start


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Forty items, five references, nearly all rows different."""
    scores = {
        f"m{k}": [((7 * i + 3 * k * i + k) % 11) / 10 for i in range(40)]
        for k in range(5)
    }
    path = tmp_path / "references.csv"
    pd.DataFrame(scores, index=[f"q{i}" for i in range(40)]).to_csv(path)
    return path


@pytest.fixture
def joint(tmp_path: Path, table: Path) -> Path:
    """A session of the targets ``a`` and ``b c``."""
    folder = tmp_path / "run"
    names = ("--target", "a", "--target", "b c")
    outcome = start(folder, table, *names, "--model", "shared-mean")
    assert outcome.code == 0, outcome.err
    assert outcome.out == ""
    assert "a, b c: 40 items, 5 references" in outcome.err
    return folder


@pytest.fixture
def single(tmp_path: Path, table: Path) -> Path:
    """A session of the one target ``a``."""
    assert start(tmp_path / "single", table, "--target", "a").code == 0
    return tmp_path / "single"
