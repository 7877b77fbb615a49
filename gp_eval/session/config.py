"""The settings of a session, ``session.json``."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gp_eval._files import atomic_write
from gp_eval.errors import StateMismatchError
from gp_eval.models.protocol import Hyperparameters
from gp_eval.stopping import StoppingRule

__all__ = ["KernelRecord", "SessionConfig"]

_PACKAGES = ("gp-eval", "torch", "gpytorch", "botorch", "numpy", "scipy")


class KernelRecord(BaseModel):
    """A kernel passed in by the user: what it prints as, and where it started."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str
    covariance: list[float]
    parameters: Hyperparameters


class SessionConfig(BaseModel):
    """Everything that, with the references and the events, fixes a session."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    format: Literal[1] = 1
    target: str
    model: str
    model_options: dict[str, Any]
    covar_module: KernelRecord | None
    stop: StoppingRule
    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)]
    items: list[str]
    references: str
    created: str
    versions: dict[str, str]

    @staticmethod
    def present_versions() -> dict[str, str]:
        """Versions of the packages that the numbers depend on."""
        return {name: version(name) for name in _PACKAGES}

    def write(self, path: Path) -> None:
        """Write in one atomic step."""
        atomic_write(path, self.model_dump_json(indent=2).encode())

    @classmethod
    def read(cls, path: Path) -> SessionConfig:
        """Read and check.

        Raises:
            StateMismatchError: For a file that is missing, damaged or of another
                version, naming the field.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            raise StateMismatchError(
                f"{str(path.parent)!r} is not a session: it has no {path.name}"
            ) from None
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            raise StateMismatchError(
                f"{str(path)!r} is damaged: {field}: {first['msg']}"
            ) from error
