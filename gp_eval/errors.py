"""Errors of gp_eval, each with the exit code that the command line gives it."""

from __future__ import annotations

__all__ = [
    "DataError",
    "DriverError",
    "GpEvalError",
    "MissingDependencyError",
    "NotPositiveDefiniteError",
    "ScoreError",
    "SessionLockedError",
    "StateMismatchError",
]


class GpEvalError(Exception):
    """Base class of all errors raised on purpose by gp_eval."""

    exit_code = 1


class DataError(GpEvalError, ValueError):
    """A table of reference scores that cannot be used, with the offending ids."""


class ScoreError(GpEvalError, ValueError):
    """A told score or item that cannot be accepted; nothing was changed."""


class NotPositiveDefiniteError(GpEvalError, ArithmeticError):
    """A covariance matrix that has no Cholesky factor in double precision."""


class StateMismatchError(GpEvalError):
    """A session folder that is damaged or does not fit what it is opened with."""

    exit_code = 4


class SessionLockedError(GpEvalError):
    """A session that another process has open for writing."""


class DriverError(GpEvalError):
    """A tool that cannot be driven, or that failed; what was scored is told."""


class MissingDependencyError(GpEvalError, ImportError):
    """An optional package that the requested feature needs."""
