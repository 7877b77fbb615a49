"""The embedded digits benchmark: its recipe, its numbers and its cache."""

from __future__ import annotations

import io
import subprocess
import sys
import threading
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gp_eval.data import References
from gp_eval.datasets import digits, load_digits_benchmark
from gp_eval.datasets._classifiers import SPECS
from gp_eval.errors import DataError

K, N, C = 198, 900, 10
CACHE = "digits-v1.npz"

FAMILIES = {
    "logistic regression": 21,
    "nearest neighbours": 14,
    "decision tree": 13,
    "extra tree": 3,
    "Gaussian naive Bayes": 9,
    "Bernoulli naive Bayes": 4,
    "Multinomial naive Bayes": 4,
    "Complement naive Bayes": 1,
    "neural network": 9,
    "random forest": 5,
    "extra trees": 4,
    "bagging": 2,
    "linear discriminant": 5,
    "PCA, logistic regression": 3,
    "PCA, nearest neighbours": 1,
    "label spreading": 1,
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache folder with the benchmark in it, built here for real."""
    folder = tmp_path_factory.mktemp("cache")
    load_digits_benchmark(cache_dir=folder)
    return folder


@pytest.fixture(scope="module")
def stored(cache: Path) -> dict[str, np.ndarray]:
    with np.load(cache / CACHE) as file:
        return {key: file[key] for key in file.files}


@pytest.fixture(scope="module")
def binary(cache: Path) -> References:
    return load_digits_benchmark("binary", cache_dir=cache)


@pytest.fixture(scope="module")
def probability(cache: Path) -> References:
    return load_digits_benchmark(cache_dir=cache)


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch, stored: dict[str, Any]) -> list[bool]:
    """Replaces the builder by one that returns at once; grows with every call of it."""
    calls: list[bool] = []

    def build(progress: bool) -> dict[str, Any]:
        calls.append(progress)
        return stored

    monkeypatch.setattr(digits, "_build", build)
    return calls


def test_table_has_the_families_of_the_recipe() -> None:
    assert Counter(spec.family for spec in SPECS) == FAMILIES
    assert len({spec.name for spec in SPECS}) == 99


@pytest.mark.parametrize("score", ["binary", "probability"])
def test_shapes_and_ids(score: str, request: pytest.FixtureRequest) -> None:
    references = request.getfixturevalue(score)
    assert references.scores.shape == (N, K)
    assert references.probabilities.shape == (K, N, C)
    assert references.labels.shape == (N,)
    assert references.models[:2] == ("logreg_C1_n20_r0", "logreg_C1_n50_r0")
    assert references.models[99] == "logreg_C1_n20_r1"
    assert references.meta["dataset"] == "digits"
    assert references.meta["score"] == score
    assert references.meta["recipe"] == "digits-v1"
    assert "scikit-learn" in references.meta["source"]


def test_items_are_the_images_they_name(probability: References) -> None:
    from sklearn.datasets import load_digits

    truth = load_digits().target
    assert len(set(probability.items)) == N
    for item, group, label in zip(
        probability.items, probability.groups, probability.labels, strict=True
    ):
        prefix, image = item.split("-")
        assert (prefix, len(image)) == ("digit", 4)
        assert int(group) == int(label) == truth[int(image)]


def test_probabilities_are_distributions(probability: References) -> None:
    values = probability.probabilities.numpy()
    assert values.min() >= 0.0
    # Half a unit in the last place of float16 is at most 2^-12 for each of 10 classes.
    assert np.abs(values.sum(-1) - 1.0).max() < C * 2.0**-12


def test_binary_is_the_first_most_probable_class(
    binary: References, stored: dict[str, np.ndarray]
) -> None:
    probs, labels = stored["probabilities"], stored["labels"]
    ties = 0
    for k in range(K):
        top = probs[k].max(1)
        ties += int(((probs[k] == top[:, None]).sum(1) > 1).sum())
        pairs = zip(probs[k], top, strict=True)
        first = np.array([list(row).index(best) for row, best in pairs])
        expected = np.where(first == labels, 1.0, 0.0)
        assert (binary.scores[:, k].numpy() == expected).all()
    assert ties > 1000  # so the rule for ties was tested


def test_probability_is_that_of_the_true_class(
    probability: References, stored: dict[str, np.ndarray]
) -> None:
    one_hot = (stored["labels"][:, None] == np.arange(C)).astype(float)
    expected = (stored["probabilities"].astype(float) * one_hot).sum(-1)
    assert (probability.scores.numpy() == expected.T).all()
    assert (probability.probabilities.numpy() == stored["probabilities"]).all()


def test_accuracies_span_the_measured_range(binary: References) -> None:
    quantiles = np.quantile(binary.scores.numpy().mean(0), [0.0, 0.1, 0.5, 0.9, 1.0])
    np.testing.assert_allclose(quantiles, [0.18, 0.48, 0.79, 0.95, 0.98], atol=0.01)


def test_confidence_is_calibrated(binary: References, probability: References) -> None:
    confidence = probability.probabilities.numpy().max(-1).mean(1)
    accuracy = binary.scores.numpy().mean(0)
    assert np.median(np.abs(confidence - accuracy)) < 0.03
    scores = probability.scores.numpy()
    certain = np.mean((scores == 0.0) | (scores == 1.0))
    assert certain == pytest.approx(0.09, abs=0.005)  # 0.36 without temperatures


def _stderr(monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> io.StringIO:
    """A stand-in for stderr; not a fixture, as pytest sets stderr after those."""
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_rebuild_is_equal_and_leaves_no_trace(
    tmp_path: Path,
    binary: References,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    stderr = _stderr(monkeypatch, is_terminal=True)
    state = np.random.get_state()  # noqa: NPY002
    filters = list(warnings.filters)
    again = load_digits_benchmark("binary", cache_dir=tmp_path)
    assert again.items == binary.items
    assert again.models == binary.models
    assert (again.scores == binary.scores).all()
    difference = (again.probabilities - binary.probabilities).abs().max()
    assert float(difference) <= 1e-3
    after = np.random.get_state()  # noqa: NPY002
    assert (state[1] == after[1]).all()
    assert state[2:] == after[2:]
    assert warnings.filters == filters
    assert capfd.readouterr() == ("", "")
    assert "100%" in stderr.getvalue()  # one step per classifier


@pytest.mark.parametrize(("shown", "is_terminal"), [(False, True), (True, False)])
def test_no_progress_bar_unless_wanted_on_a_terminal(
    shown: bool, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stderr = _stderr(monkeypatch, is_terminal)
    with digits._bar(shown) as advance:
        for _ in range(K):
            advance()
    assert stderr.getvalue() == ""


def test_second_load_reads_the_cache(cache: Path, builds: list[bool]) -> None:
    load_digits_benchmark(cache_dir=cache)
    assert builds == []


def test_builds_once_and_caches(tmp_path: Path, builds: list[bool]) -> None:
    first = load_digits_benchmark(cache_dir=tmp_path / "new" / "folder", progress=False)
    second = load_digits_benchmark(cache_dir=tmp_path / "new" / "folder")
    assert builds == [False]
    assert first.fingerprint == second.fingerprint


def test_only_one_of_two_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: dict[str, Any]
) -> None:
    entered, go, builds = threading.Event(), threading.Event(), []

    def build(progress: bool) -> dict[str, Any]:
        builds.append(progress)
        entered.set()
        assert go.wait(60)
        return stored

    monkeypatch.setattr(digits, "_build", build)
    threads = [
        threading.Thread(target=load_digits_benchmark, kwargs={"cache_dir": tmp_path})
        for _ in range(2)
    ]
    threads[0].start()
    assert entered.wait(60)
    threads[1].start()
    threads[1].join(0.3)
    assert threads[1].is_alive()  # it waits for the first one
    go.set()
    for thread in threads:
        thread.join(60)
    assert len(builds) == 1
    assert (tmp_path / CACHE).is_file()


def _damage(kind: str, path: Path, stored: dict[str, np.ndarray]) -> None:
    content = path.read_bytes()
    middle = len(content) // 2
    if kind == "empty":
        path.write_bytes(b"")
    elif kind == "truncated":
        path.write_bytes(content[:middle])
    elif kind == "flipped byte":
        flipped = bytes([content[middle] ^ 0xFF])
        path.write_bytes(content[:middle] + flipped + content[middle + 1 :])
    elif kind == "text":
        path.write_text("not an archive")
    elif kind == "single array":
        with path.open("wb") as file:
            np.save(file, stored["labels"])
    elif kind == "missing key":
        np.savez(path, **{k: v for k, v in stored.items() if k != "labels"})
    elif kind == "wrong shape":
        np.savez(path, **{**stored, "probabilities": stored["probabilities"][:, :9]})
    elif kind == "other models":
        np.savez(path, **{**stored, "models": stored["models"][::-1]})
    elif kind == "other type":
        wide = stored["probabilities"].astype(np.float32)
        np.savez(path, **{**stored, "probabilities": wide})


@pytest.mark.parametrize(
    "kind",
    [
        "empty",
        "truncated",
        "flipped byte",
        "text",
        "single array",
        "missing key",
        "wrong shape",
        "other models",
        "other type",
    ],
)
def test_damaged_cache_is_rebuilt(
    kind: str,
    tmp_path: Path,
    cache: Path,
    stored: dict[str, np.ndarray],
    probability: References,
    builds: list[bool],
) -> None:
    path = tmp_path / CACHE
    path.write_bytes((cache / CACHE).read_bytes())
    _damage(kind, path, stored)
    assert path.read_bytes() != (cache / CACHE).read_bytes()
    rebuilt = load_digits_benchmark(cache_dir=tmp_path)
    assert len(builds) == 1
    assert rebuilt.fingerprint == probability.fingerprint
    load_digits_benchmark(cache_dir=tmp_path)
    assert len(builds) == 1  # the file was repaired


def test_environment_names_the_cache_and_the_argument_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builds: list[bool]
) -> None:
    monkeypatch.setenv("GP_EVAL_CACHE_DIR", str(tmp_path / "environment"))
    load_digits_benchmark()
    assert (tmp_path / "environment" / CACHE).is_file()
    load_digits_benchmark(cache_dir=tmp_path / "argument")
    assert (tmp_path / "argument" / CACHE).is_file()
    assert len(builds) == 2


def test_default_cache_is_the_platforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builds: list[bool]
) -> None:
    monkeypatch.delenv("GP_EVAL_CACHE_DIR", raising=False)
    monkeypatch.setattr(digits, "user_cache_path", lambda name: tmp_path / name)
    load_digits_benchmark()
    assert (tmp_path / "gp_eval" / CACHE).is_file()
    assert len(builds) == 1


def test_unknown_score_is_named(tmp_path: Path, builds: list[bool]) -> None:
    with pytest.raises(DataError, match=r"^score: expected .*, got 'accuracy'$"):
        load_digits_benchmark("accuracy", cache_dir=tmp_path)  # type: ignore[arg-type]
    assert builds == []
    assert list(tmp_path.iterdir()) == []


def test_import_is_light() -> None:
    code = (
        "import sys, gp_eval.datasets as d; d.load_digits_benchmark; "
        "print([m for m in ('sklearn', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
