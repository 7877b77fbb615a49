"""The settings of a session, ``session.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gp_eval._files import atomic_write
from gp_eval.alarm import OnAlarm
from gp_eval.costs import ItemCosts
from gp_eval.data import References
from gp_eval.errors import DataError, StateMismatchError
from gp_eval.models.protocol import Hyperparameters
from gp_eval.session.checks import json_options
from gp_eval.session.journal import now
from gp_eval.stopping import StoppingRule

__all__ = [
    "BaseConfig",
    "CostRecord",
    "KernelRecord",
    "MultiTargetConfig",
    "SessionConfig",
    "common_settings",
    "has_several_targets",
]

_PACKAGES = ("gp-eval", "torch", "gpytorch", "botorch", "numpy", "scipy")


class KernelRecord(BaseModel):
    """A kernel passed in by the user: what it prints as, and where it started."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    description: str
    covariance: list[float]
    parameters: Hyperparameters


class BaseConfig(BaseModel):
    """Everything that, with targets, references and events, fixes a session."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    target_field: ClassVar[str]

    format: Literal[1] = 1
    model: str
    model_options: dict[str, Any]
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
    def read(cls, path: Path) -> Self:
        """Read and check.

        Raises:
            StateMismatchError: For a file that is missing, damaged, of another version
                or of the other kind of session, naming the field or what to use.
        """
        content = _content(path)
        field = _target_field(content)
        if field not in (None, cls.target_field):
            raise StateMismatchError(
                f"{str(path.parent)!r} is a session of {_OPENED_BY[field]}"
            )
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise StateMismatchError(
                f"{str(path)!r} is damaged: {where}: {first['msg']}"
            ) from error


class CostRecord(BaseModel):
    """What items cost, in the order of the session's items, sealed by a fingerprint."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    values: list[float]
    fingerprint: str
    cost_aware: bool

    @classmethod
    def of(cls, costs: ItemCosts, *, cost_aware: bool) -> CostRecord:
        """The record of these costs."""
        return cls(
            values=costs.values.tolist(),
            fingerprint=costs.fingerprint,
            cost_aware=cost_aware,
        )

    def read(self, items: Sequence[str]) -> ItemCosts:
        """The costs.

        Raises:
            StateMismatchError: If they are not those of the start.
        """
        try:
            costs = ItemCosts(self.values, items)
        except DataError as error:
            raise StateMismatchError(f"session.json is damaged: {error}") from error
        if costs.fingerprint != self.fingerprint:
            raise StateMismatchError(
                "session.json was changed: the fingerprint of its costs is another"
            )
        return costs


class SessionConfig(BaseConfig):
    """Settings of a session of one target."""

    target_field: ClassVar[str] = "target"

    target: str
    covar_module: KernelRecord | None
    costs: CostRecord | None = None
    # Sessions from before there was an alarm go on without one.
    on_alarm: OnAlarm = "warn"


class MultiTargetConfig(BaseConfig):
    """Settings of a session of several targets."""

    target_field: ClassVar[str] = "targets"

    targets: Annotated[list[str], Field(min_length=1)]


_OPENED_BY = {
    "target": "one target: use Session.open or open_session",
    "targets": "several targets: use MultiTargetSession.open or open_session",
}


def has_several_targets(path: Path) -> bool:
    """Whether the settings are those of a :class:`MultiTargetSession`.

    Raises:
        StateMismatchError: If there is no such file.
    """
    return _target_field(_content(path)) == MultiTargetConfig.target_field


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise StateMismatchError(
            f"{str(path.parent)!r} is not a session: it has no {path.name}"
        ) from None


def _target_field(content: bytes) -> str | None:
    """Which of the two fields is there; ``None`` where that does not tell the kind."""
    try:
        settings = json.loads(content)
    except ValueError:  # damaged, which validation says better
        return None
    names = _OPENED_BY.keys() & settings if isinstance(settings, dict) else set()
    return names.pop() if len(names) == 1 else None


def common_settings(
    references: References,
    *,
    model: str,
    model_options: Mapping[str, Any] | None,
    stop: StoppingRule | None,
    seed: int,
) -> dict[str, Any]:
    """Fields of :class:`BaseConfig` for a new session.

    Raises:
        ValueError: For an option that is not JSON.
    """
    return {
        "model": model,
        "model_options": json_options(model_options or {}),
        "stop": stop or StoppingRule(),
        "seed": seed,
        "items": list(references.items),
        "references": references.fingerprint,
        "created": now(),
        "versions": BaseConfig.present_versions(),
    }
