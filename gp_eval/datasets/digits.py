"""The embedded benchmark: real classifiers on scikit-learn's handwritten digits."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from filelock import FileLock
from numpy.typing import NDArray
from platformdirs import user_cache_path

from gp_eval._files import atomic_write
from gp_eval.datasets._classifiers import POOL_SIZE, SPECS, ClassifierSpec
from gp_eval.errors import DataError

if TYPE_CHECKING:
    from gp_eval.data import References

__all__ = ["load_digits_benchmark"]

_Score = Literal["binary", "probability"]
_Arrays = dict[str, Any]
_Floats = NDArray[np.float64]
_Ints = NDArray[np.integer[Any]]

_RECIPE = "digits-v1"
_N_ITEMS, _N_CALIBRATION, _N_CLASSES, _REPLICATES = 900, 200, 10, 2
_MODELS = tuple(f"{s.name}_r{r}" for r in range(_REPLICATES) for s in SPECS)
_TEMPERATURES = np.exp(np.linspace(-3.0, 1.5, 19))
_SOURCE = (
    "Optical Recognition of Handwritten Digits (UCI), as bundled with scikit-learn; "
    f"{len(SPECS)} scikit-learn classifiers, each fitted {_REPLICATES} times"
)


def load_digits_benchmark(
    score: Literal["binary", "probability"] = "probability",
    *,
    cache_dir: Path | None = None,
    progress: bool = True,
) -> References:
    """Scores of ``K`` = 198 classifiers on ``N`` = 900 images of ``C`` = 10 digits.

    The classifiers are of 16 families and of many sizes, training sizes and degrees of
    label noise: their accuracies go from 0.18 to 0.98. The first call fits them, which
    takes a few seconds; later calls read the cache.

    Args:
        score: ``"probability"`` of the true digit, or ``"binary"``: 1 where the most
            probable digit is the true one (the lowest digit of a tie), else 0.
        cache_dir: Folder of the cache. Default: ``GP_EVAL_CACHE_DIR`` if it is set,
            else the platform's cache folder.
        progress: Whether to show a progress bar while fitting, if stderr is a terminal.

    Returns:
        ``References`` with ``scores`` ``N x K``, ``probabilities`` ``K x N x C``,
        ``labels`` ``N``, and the true digit of each item in ``groups``.

    Raises:
        DataError: For an unknown ``score``.

    Example:
        >>> load_digits_benchmark("binary").scores.shape  # doctest: +SKIP
        torch.Size([900, 198])
    """
    if score not in get_args(_Score):
        raise DataError(f"score: expected 'binary' or 'probability', got {score!r}")
    folder = _cache_folder() if cache_dir is None else Path(cache_dir)
    return _references(_load_or_build(folder / f"{_RECIPE}.npz", progress), score)


def _references(arrays: _Arrays, score: _Score) -> References:
    from gp_eval.data import References

    probabilities = arrays["probabilities"].astype(np.float64)
    labels = arrays["labels"].astype(np.int64)
    if score == "binary":
        scores = (probabilities.argmax(-1) == labels).T
    else:
        scores = probabilities[:, np.arange(len(labels)), labels].T
    meta = {"dataset": "digits", "score": score, "recipe": _RECIPE, "source": _SOURCE}
    return References(
        scores,
        [f"digit-{image:04d}" for image in arrays["images"]],
        [str(model) for model in arrays["models"]],
        groups=[str(label) for label in labels],
        probabilities=probabilities,
        labels=labels,
        meta=meta,
    )


def _cache_folder() -> Path:
    chosen = os.environ.get("GP_EVAL_CACHE_DIR")
    return Path(chosen) if chosen else user_cache_path("gp_eval")


def _load_or_build(path: Path, progress: bool) -> _Arrays:
    """The cached arrays; of several processes without a cache, one builds it."""
    if (arrays := _read_cache(path)) is not None:
        return arrays
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f"{path.name}.lock")):
        arrays = _read_cache(path)
        if arrays is None:
            arrays = _build(progress)
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **arrays)
            atomic_write(path, buffer.getvalue())
    return arrays


def _read_cache(path: Path) -> _Arrays | None:
    """The cached arrays, or nothing if they are absent or damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except Exception:  # damage shows in many ways, and it is only a cache
        return None
    shapes = {key: array.shape for key, array in arrays.items()}
    expected = {
        "probabilities": (len(_MODELS), _N_ITEMS, _N_CLASSES),
        "labels": (_N_ITEMS,),
        "images": (_N_ITEMS,),
        "models": (len(_MODELS),),
    }
    intact = shapes == expected and tuple(arrays["models"]) == _MODELS
    return arrays if intact and arrays["probabilities"].dtype == np.float16 else None


@dataclass(frozen=True)
class _Digits:
    """The images as rows of 64 pixels, their labels, and the rows of each part."""

    pixels: _Floats
    labels: _Ints
    items: _Ints
    calibration: _Ints
    pool: _Ints


def _digits() -> _Digits:
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    items, calibration, pool = np.split(order, [_N_ITEMS, _N_ITEMS + _N_CALIBRATION])
    return _Digits(pixels, labels, items, calibration, pool)


def _build(progress: bool) -> _Arrays:
    """Fit all classifiers; only the stored float16 values count from here on."""
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    digits, probabilities = _digits(), []
    # Many of the classifiers are cut short on purpose.
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with threadpool_limits(1), quiet, _bar(progress) as advance:
        for replicate in range(_REPLICATES):
            for index in range(len(SPECS)):
                probabilities.append(_fit(index, replicate, digits))
                advance()
    return {
        "probabilities": np.array(probabilities).astype(np.float16),
        "labels": digits.labels[digits.items].astype(np.uint8),
        "images": digits.items.astype(np.int16),
        "models": np.array(_MODELS),
    }


@contextmanager
def _bar(shown: bool) -> Iterator[Callable[[], None]]:
    """A progress bar on stderr, if it is a terminal; yields its one-step advance."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=not (shown and console.file.isatty()),
    ) as progress:
        task = progress.add_task("Fitting the digits benchmark", total=len(_MODELS))
        yield lambda: progress.advance(task)


def _fit(index: int, replicate: int, digits: _Digits) -> _Floats:
    """Calibrated class probabilities of one classifier on the items, ``N x C``."""
    spec = SPECS[index]
    random = np.random.RandomState(1000 * (replicate + 1) + index)
    rows, labels = _training_set(spec, replicate, digits, random)
    model = spec.make().fit(digits.pixels[rows][:, spec.columns], labels)

    def predict(images: _Ints) -> _Floats:
        probabilities = np.zeros((len(images), _N_CLASSES))
        pixels = digits.pixels[images][:, spec.columns]
        probabilities[:, model.classes_] = model.predict_proba(pixels)
        return probabilities

    calibration = predict(digits.calibration)
    temperature = _best_temperature(calibration, digits.labels[digits.calibration])
    return _soften(predict(digits.items), temperature)


def _training_set(
    spec: ClassifierSpec, replicate: int, digits: _Digits, random: np.random.RandomState
) -> tuple[_Ints, _Ints]:
    """Training images and their labels; the whole pool is bootstrapped but once."""
    if spec.n_train < POOL_SIZE:
        rows = digits.pool[random.permutation(POOL_SIZE)[: spec.n_train]]
    elif replicate == 0:
        rows = digits.pool
    else:
        rows = digits.pool[random.randint(0, POOL_SIZE, POOL_SIZE)]
    labels = digits.labels[rows]
    if spec.label_noise:
        noisy = random.rand(len(rows)) < spec.label_noise
        labels[noisy] = random.randint(0, _N_CLASSES, noisy.sum())
    return rows, labels


def _soften(probabilities: _Floats, temperature: float) -> _Floats:
    """Probabilities ``N x C`` at another temperature, floored at 1e-4 before."""
    logits = np.log(np.maximum(probabilities, 1e-4)) / temperature
    logits -= logits.max(-1, keepdims=True)
    powers = np.exp(logits)
    return powers / powers.sum(-1, keepdims=True)


def _best_temperature(probabilities: _Floats, labels: _Ints) -> float:
    """Temperature of the grid with the least mean negative log likelihood."""

    def loss(temperature: float) -> float:
        softened = _soften(probabilities, temperature)
        right = softened[np.arange(len(labels)), labels]
        return -float(np.log(np.maximum(right, 1e-6)).mean())

    return min(_TEMPERATURES.tolist(), key=loss)
