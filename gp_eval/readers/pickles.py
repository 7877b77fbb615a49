"""Pickle files of peers, through an unpickler that makes arrays and nothing else.

A pickle is a program. Only with ``--allow-pickle`` is one read, and even then only the
few names that numpy arrays consist of are known to it.
"""

from __future__ import annotations

import io
import math
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from gp_eval.errors import DataError
from gp_eval.readers import limits
from gp_eval.readers.lm_eval_run import is_wanted
from gp_eval.readers.records import Log, Options, Rows
from gp_eval.readers.source import read_bytes

__all__ = ["read_joblib", "read_leaderboard_pickle"]

_ARRAY_PARTS = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    *(
        (f"numpy.{core}.{module}", name)
        for core in ("core", "_core")
        for module, name in (
            ("multiarray", "_reconstruct"),
            ("multiarray", "scalar"),
            ("numeric", "_frombuffer"),
        )
    ),
}
_WRAPPER = ("joblib.numpy_pickle", "NumpyArrayWrapper")


def _latin1(text: str, encoding: str) -> bytes:
    """What ``_codecs.encode`` is used for in pickles of protocol 2."""
    if not isinstance(text, str) or encoding != "latin1":
        raise DataError(f"refused: it encodes to {encoding!r:.60}")
    return text.encode("latin1")


def _find(module: str, name: str) -> Any:
    """The named part of numpy, or a refusal."""
    if (module, name) == ("_codecs", "encode"):
        return _latin1
    if (module, name) not in _ARRAY_PARTS:
        raise DataError(
            f"refused: it names {module}.{name}, and only plain arrays, lists, tables, "
            "numbers and texts are read"
        )
    module = module.replace("numpy.core", "numpy._core")
    return getattr(__import__(module, fromlist=[name]), name)


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return _find(module, name)


def _load(path: Path, options: Options, *, joblib: bool) -> Any:
    if not options.allow_pickle:
        raise DataError(
            f"{str(path)!r} is a pickle, which may run any code of its author: give "
            "--allow-pickle if you trust where it comes from (it is read by an "
            "unpickler that only knows arrays)"
        )
    data = read_bytes(path)
    try:
        if joblib:
            return _load_joblib(data)
        return _ArraysOnly(io.BytesIO(data)).load()
    except DataError as error:
        raise DataError(f"{str(path)!r}: {error}") from error
    except Exception as error:  # damaged bytes end in any error of numpy or pickle
        raise DataError(f"{str(path)!r}: not a readable pickle: {error}") from error


def _load_joblib(data: bytes) -> Any:
    """A joblib file: a pickle with the bytes of each array behind its description."""
    from joblib import numpy_pickle

    if data[:1] == b"\x78":  # zlib, joblib's usual compression
        unpack = zlib.decompressobj()
        data = unpack.decompress(data, limits.MAX_DOCUMENT_BYTES)
        if unpack.unconsumed_tail:
            raise DataError("unpacks to more than one document may hold: refused")

    class Array(numpy_pickle.NumpyArrayWrapper):
        """Joblib's own would hand arrays of objects to the plain unpickler."""

        def read(self, unpickler: Any, *settings: Any) -> Any:
            count = math.prod(int(side) for side in self.shape)
            if self.dtype.hasobject:
                raise DataError("refused: it holds an array of objects")
            if not 0 <= count * self.dtype.itemsize <= limits.MAX_ARRAY_BYTES:
                raise DataError(f"refused: an array of shape {self.shape}")
            return super().read(unpickler, *settings)

    class Unpickler(numpy_pickle.NumpyUnpickler):
        def find_class(self, module: str, name: str) -> Any:
            return Array if (module, name) == _WRAPPER else _find(module, name)

    stream = io.BytesIO(data)
    return Unpickler("", stream, ensure_native_byte_order=True).load()


def read_joblib(path: Path, options: Options) -> Log:
    """Read scores of benchmark-prediction: an array, models x items.

    Names come from ``<name>_models.jbl`` beside it; without it models are numbered.

    Raises:
        DataError: Without ``allow_pickle``, for another content, or names that do not
            fit.
    """
    scores = _load(path, options, joblib=True)
    log = Log(path, "jbl")
    table = _table(scores, path)
    names_path = path.with_name(f"{path.stem}_models{path.suffix}")
    if names_path.is_file():
        names = _names(_load(names_path, options, joblib=True), names_path)
    else:
        names = [f"model-{k}" for k in range(len(table))]
        log.notes["models without a name, numbered"] += len(table)
    if len(names) != len(table):
        raise DataError(
            f"{str(path)!r}: {len(table)} models (rows), but {len(names)} names"
        )
    _add(log, path.stem, table, names)
    return log


def read_leaderboard_pickle(path: Path, options: Options) -> Log:
    """Read tinyBenchmarks' ``lb.pickle`` or DISCO's ``model_outputs.pickle``.

    ``{"data": {scenario: {"correctness": items x models}}, "models": [...]}``.
    """
    content = _load(path, options, joblib=False)
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not data:
        raise DataError(f"{str(path)!r}: expected a table with 'data' and 'models'")
    log = Log(path, "lb-pickle")
    names = _names(content.get("models"), path)
    for scenario, parts in data.items():
        if not is_wanted(str(scenario), options.tasks):
            log.notes["scenarios not asked for"] += 1
            continue
        if not isinstance(parts, dict) or "correctness" not in parts:
            raise DataError(f"{str(path)!r}: {scenario!r} has no 'correctness'")
        table = _table(parts["correctness"], path).T
        if len(table) != len(names):
            raise DataError(
                f"{str(path)!r}: {scenario!r} has {len(table)} models (columns), but "
                f"there are {len(names)} names"
            )
        _add(log, str(scenario), table, names)
    return log


def _table(value: Any, path: Path) -> np.ndarray:
    if (
        not isinstance(value, np.ndarray)
        or value.ndim != 2
        or value.dtype.kind not in ("biuf")
    ):
        raise DataError(
            f"{str(path)!r}: expected a 2-D array of numbers, got "
            f"{type(value).__name__} {getattr(value, 'shape', '')}"
        )
    return value.astype(np.float64)


def _names(value: Any, path: Path) -> list[str]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, list) or not all(isinstance(n, str) for n in value):
        raise DataError(f"{str(path)!r}: expected a list of model names")
    return list(value)


def _add(log: Log, task: str, table: np.ndarray, names: list[str]) -> None:
    """Blocks of a table of models x items; ids are positions."""
    for name, scores in zip(names, table.tolist(), strict=True):
        rows = Rows()
        for position, score in enumerate(scores):
            rows.add(str(position), {"score": score})
        log.blocks += rows.blocks(model=name, task=task, source=log.path)
