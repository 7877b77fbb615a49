"""README and tutorials are code, too."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_set_up_is_two_commands_that_start_from_a_clone() -> None:
    first, second = [b.strip() for b in blocks("sh") if "venv" in b]
    for command, last in ((first, "gp-eval demo"), (second, "-m pytest")):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && .venv/bin/pip install")
        assert command.endswith(last)


def test_continuous_integration_runs_the_readme_command() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert "grep -m 1 'pytest' README.md" in script
    assert next(line for line in README.splitlines() if "pytest" in line) in (
        block.strip() for block in blocks("sh")
    )


def test_python_of_the_readme_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = {f"m{k}": [(3 * i * k + i) % 7 / 6 for i in range(30)] for k in range(1, 6)}
    pd.DataFrame(table, index=[f"q{i}" for i in range(30)]).to_csv("references.csv")
    subjects = [f"q{i},{'law' if i % 3 else 'art'}" for i in range(30)]
    Path("metadata.csv").write_text("\n".join(["item,subject", *subjects]))
    space: dict[str, object] = {
        "score": lambda item: int(item[1:]) % 5 / 4,
        "score_of": lambda target, item: int(item[1:]) % 5 / 4,
    }
    for block in blocks("python"):
        exec(block, space)
    assert int(space["item"]) in range(30)


def test_folders_in_the_readme_exist() -> None:
    named = re.findall(r"`((?:gp_eval/)?[a-z]+/)`", README)
    assert len(named) > 10
    for folder in named:
        assert (ROOT / folder).is_dir() or (ROOT / "gp_eval" / folder).is_dir(), folder


@pytest.mark.parametrize(
    "tutorial", sorted((ROOT / "tutorials").glob("*.py")), ids=lambda path: path.stem
)
def test_tutorial_runs(tutorial: Path, tmp_path: Path) -> None:
    """Its loops are shortened by GP_EVAL_SMOKE."""
    environment = {**os.environ, "GP_EVAL_SMOKE": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(tutorial)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
