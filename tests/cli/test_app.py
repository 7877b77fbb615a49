from __future__ import annotations

import subprocess
import sys

import pytest
from command import gp_eval

from gp_eval.cli import app


def test_help_imports_nothing_heavy() -> None:
    """That is what keeps it under half a second."""
    code = (
        "import sys\n"
        "from gp_eval.cli.app import main\n"
        "sys.argv = ['gp-eval', '--help']\n"
        "try:\n"
        "    main()\n"
        "except SystemExit:\n"
        "    pass\n"
        "heavy = {'torch', 'numpy', 'pandas', 'sklearn', 'scipy', 'gpytorch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for command in ("demo", "refs", "start", "ask", "tell", "status", "run", "disco"):
        assert command in done.stdout


@pytest.mark.parametrize("command", ["demo", "start", "ask", "tell", "status"])
def test_every_command_has_help_with_its_environment_variables(command: str) -> None:
    outcome = gp_eval(command, "--help")
    assert outcome.code == 0
    if command != "status":
        assert "GP_EVAL_" in outcome.out


def test_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*args: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("gp_eval.cli.sessions.show_status", interrupted)
    assert gp_eval("status", "anywhere").code == 130


def test_entry_point_is_declared() -> None:
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name="gp-eval")
    assert entry.load() is app.main
