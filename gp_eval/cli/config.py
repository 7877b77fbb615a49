"""The config file: defaults of the flags, weaker than flags and environment."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import platformdirs
import typer

from gp_eval.errors import GpEvalError

__all__ = ["load_config"]


def load_config(context: typer.Context, path: Path | None) -> dict[str, Any]:
    """Defaults by command, from the given file or the first of the usual ones.

    Raises:
        GpEvalError: For a file that is missing, is not TOML, or names a command or
            flag that does not exist.
    """
    usual = [
        Path("gp-eval.toml"),
        platformdirs.user_config_path("gp_eval") / "config.toml",
    ]
    found = path or next((p for p in usual if p.is_file()), None)
    if found is None:
        return {}
    try:
        config = tomllib.loads(found.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GpEvalError(f"config file {str(found)!r}: {error}") from error
    return _checked(config, context.command, str(found))


def _checked(config: Any, command: Any, where: str) -> dict[str, Any]:
    """The config by parameter names, with every name checked."""
    if not isinstance(config, dict):
        raise GpEvalError(
            f"config file {where}: expected a table of flags, got {config!r}"
        )
    commands = getattr(command, "commands", {})
    if commands:
        unknown = sorted(set(config) - set(commands))
        known = sorted(commands)
    else:
        flags = {
            option.lstrip("-"): parameter
            for parameter in command.params
            for option in parameter.opts
            if option.startswith("-")
        }
        unknown, known = sorted(set(config) - set(flags)), sorted(flags)
    if unknown:
        raise GpEvalError(
            f"config file {where!r}: unknown {unknown}; expected some of {known}"
        )
    if not commands:
        return {
            str(flags[name].name): _several(flags[name], value)
            for name, value in config.items()
        }
    return {
        name: _checked(table, commands[name], f"{where} [{name}]")
        for name, table in config.items()
    }


def _several(parameter: Any, value: Any) -> Any:
    """The value, as a list for a flag that may be repeated: a text is one value."""
    if getattr(parameter, "multiple", False) and isinstance(value, str):
        return [value]
    return value
