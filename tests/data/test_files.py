"""Reference tables on disk: round trips, foreign files, damage, atomic writes."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from gp_eval.data import References
from gp_eval.errors import DataError, MissingDependencyError

NAN = math.nan
# Ids that a reader could take for numbers, gaps, separators or nothing.
ODD_ITEMS = ["007", "1e3", "NA", "nan", "", " padded ", 'say "a, b"', "naïve/µ"]
ODD_MODELS = ["1.0", "None", "org/model:v1"]
FORMATS = [".npz", ".parquet"]


def odd_references(**changes: Any) -> References:
    """Scores that need all their bits, a gap, and ids that are hard on readers."""
    scores = np.random.default_rng(0).normal(size=(8, 3))
    scores[0] = [0.1 + 0.2, 5e-324, -1.7e308]
    scores[4, 1] = NAN
    arguments: dict[str, Any] = {"missing": "keep"}
    return References(scores, ODD_ITEMS, ODD_MODELS, **(arguments | changes))


def rich_references() -> References:
    """With weights, groups, probabilities, labels and meta."""
    generator = np.random.default_rng(1)
    return odd_references(
        item_weights=generator.random(8),
        groups=["x", "y", "x", "NA", "", "x", "y", "µ"],
        probabilities=generator.random((3, 8, 5)).astype(np.float16),
        labels=np.array([0, 4, 1, 1, 2, 3, 0, 4]),
        meta={"metric": "µ", "nested": {"n": [1, 2.5, None, True]}, "task": ""},
    )


def small_references() -> References:
    scores = np.random.default_rng(2).random((6, 3))
    return References(scores, [f"q{i}" for i in range(6)], ["a", "b", "c"])


def assert_same(actual: References, expected: References) -> None:
    """The same in everything that a file can hold but probabilities."""
    assert actual.items == expected.items
    assert actual.models == expected.models
    assert actual.scores.numpy().tobytes() == expected.scores.numpy().tobytes()
    assert torch.equal(actual.item_weights, expected.item_weights)
    assert actual.is_weighted == expected.is_weighted
    assert actual.groups == expected.groups
    assert actual.meta == expected.meta
    assert (actual.labels is None) == (expected.labels is None)
    if actual.labels is not None and expected.labels is not None:
        assert torch.equal(actual.labels, expected.labels)
    assert actual.fingerprint == expected.fingerprint


# Round trips


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("make", [odd_references, rich_references])
def test_what_is_written_is_read_again_to_the_last_bit(
    tmp_path: Path, suffix: str, make: Any
) -> None:
    references = make()
    references.write(tmp_path / f"refs{suffix}")
    again = References.read(tmp_path / f"refs{suffix}", missing="keep")
    assert_same(again, references)


def test_an_npz_file_holds_probabilities_and_their_precision(tmp_path: Path) -> None:
    references = rich_references()
    references.write(tmp_path / "refs.npz")
    again = References.read(tmp_path / "refs.npz", missing="keep")
    assert again.probabilities is not None
    assert references.probabilities is not None
    assert again.probabilities.dtype == torch.float16
    assert torch.equal(again.probabilities, references.probabilities)


def test_a_parquet_file_leaves_the_probabilities_out(tmp_path: Path) -> None:
    rich_references().write(tmp_path / "refs.parquet")
    again = References.read(tmp_path / "refs.parquet", missing="keep")
    assert again.probabilities is None


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("seed", range(12))
def test_the_fingerprint_of_weighted_references_survives_writing_and_reading(
    tmp_path: Path, suffix: str, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    n_items = int(generator.integers(3, 60))
    references = References(
        generator.random((n_items, 2)),
        [f"q{i}" for i in range(n_items)],
        ["a", "b"],
        item_weights=generator.random(n_items),
    )
    path = tmp_path / f"refs{suffix}"
    fingerprints = set()
    for _ in range(3):
        fingerprints.add(references.fingerprint)
        references.write(path)
        references = References.read(path)
    assert len(fingerprints) == 1


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("n_items", [3, 6, 23])
def test_the_fingerprint_of_equal_weights_survives_writing_and_reading(
    tmp_path: Path, suffix: str, n_items: int
) -> None:
    scores = np.random.default_rng(0).random((n_items, 2))
    items = [f"q{i}" for i in range(n_items)]
    references = References(scores, items, ["a", "b"], item_weights=[0.1] * n_items)
    references.write(tmp_path / f"refs{suffix}")
    again = References.read(tmp_path / f"refs{suffix}")
    assert again.fingerprint == references.fingerprint


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_path_may_be_a_string_in_a_folder_that_is_not_there_yet(
    tmp_path: Path, suffix: str
) -> None:
    path = str(tmp_path / "new" / "folder" / f"refs{suffix}")
    small_references().write(path)
    assert References.read(path).fingerprint == small_references().fingerprint


@pytest.mark.parametrize("suffix", FORMATS)
def test_reading_applies_the_policies(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"refs{suffix}"
    odd_references().write(path)
    with pytest.raises(DataError, match="1 missing cells, on items ''; choose"):
        References.read(path)
    dropped = References.read(path, missing="drop-models")
    assert dropped.models == ("1.0", "org/model:v1")
    with pytest.raises(DataError, match="missing: expected one of"):
        References.read(path, missing="guess")  # type: ignore[arg-type]


def test_the_npz_file_is_plain_numpy_without_pickle(tmp_path: Path) -> None:
    references = rich_references()
    references.write(tmp_path / "refs.npz")
    with np.load(tmp_path / "refs.npz", allow_pickle=False) as file:
        assert file["item_ids"].tolist() == ODD_ITEMS
        assert file["model_ids"].tolist() == ODD_MODELS
        assert file["scores"].shape == (8, 3)
        assert json.loads(str(file["meta"])) == references.meta


def test_the_parquet_file_is_a_table_for_everybody(tmp_path: Path) -> None:
    references = small_references()
    references.write(tmp_path / "refs.parquet")
    frame = pd.read_parquet(tmp_path / "refs.parquet").set_index("item")
    assert np.array_equal(frame.to_numpy(), references.scores.numpy())
    assert list(frame.index) == list(references.items)
    assert list(frame.columns) == list(references.models)


def test_a_model_named_item_goes_into_npz_but_not_into_parquet(tmp_path: Path) -> None:
    references = References([[0.5]], ["q"], ["item"])
    references.write(tmp_path / "refs.npz")
    assert References.read(tmp_path / "refs.npz").models == ("item",)
    with pytest.raises(DataError, match="'item' is the name of the id column"):
        references.write(tmp_path / "refs.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["refs.npz"]


# Foreign files


def test_a_parquet_file_of_pandas_with_the_ids_as_index_is_read(tmp_path: Path) -> None:
    small_references().frame.to_parquet(tmp_path / "wide.parquet")
    again = References.read(tmp_path / "wide.parquet")
    assert_same(again, small_references())


def test_a_parquet_file_of_pandas_with_the_ids_as_first_column_is_read(
    tmp_path: Path,
) -> None:
    frame = small_references().frame.rename_axis("question").reset_index()
    frame.to_parquet(tmp_path / "wide.parquet")
    assert_same(References.read(tmp_path / "wide.parquet"), small_references())
    frame.to_parquet(tmp_path / "wide.parquet", index=False)
    assert_same(References.read(tmp_path / "wide.parquet"), small_references())


def test_a_parquet_file_of_pandas_with_integers_and_gaps_is_read(
    tmp_path: Path,
) -> None:
    columns = {
        "a": pd.array([1, None, 0], dtype="Int64"),
        "b": np.array([1, 0, 1], dtype=np.uint8),
        "c": [True, False, True],
    }
    frame = pd.DataFrame(columns, index=pd.Index([10, 20, 30], name="id"))
    frame.to_parquet(tmp_path / "wide.parquet")
    references = References.read(tmp_path / "wide.parquet", missing="keep")
    assert references.items == ("10", "20", "30")
    expected = [[1, 1, 1], [-1, 0, 0], [0, 1, 1]]
    assert references.scores.nan_to_num(-1).tolist() == expected


def test_a_parquet_file_of_texts_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["yes", "no"]}, index=["q1", "q2"])
    frame.to_parquet(tmp_path / "wide.parquet")
    with pytest.raises(DataError, match="numeric columns"):
        References.read(tmp_path / "wide.parquet")


def test_an_npz_file_of_numpy_is_read_with_its_category_as_groups(
    tmp_path: Path,
) -> None:
    path = tmp_path / "foreign.npz"
    scores = np.array([[1, 0], [0, 0], [1, 1]], dtype=np.uint8)
    arrays: dict[str, Any] = {"item_ids": [1, 2, 3], "model_ids": ["a", "b"]}
    np.savez(path, scores=scores, category=["x", "y", "x"], other=[1], **arrays)
    references = References.read(path)
    assert references.items == ("1", "2", "3")
    assert references.scores.tolist() == scores.tolist()
    assert references.groups == ("x", "y", "x")
    assert references.meta == {}
    np.savez(path, scores=scores, category=["x", "y", "x"], groups=[7, 8, 9], **arrays)
    assert References.read(path).groups == ("7", "8", "9")


def test_a_wide_csv_is_read_with_its_first_column_as_ids(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("question,m1,m2\nq2,1,0.25\nq1,,1e-3\n")
    references = References.read(path, missing="keep")
    assert references.items == ("q2", "q1")
    assert references.models == ("m1", "m2")
    assert references.scores.nan_to_num(-1).tolist() == [[1.0, 0.25], [-1.0, 1e-3]]
    with pytest.raises(DataError, match="1 missing cells, on items 'q1'"):
        References.read(path)
    path.write_text(path.read_text().replace("question", ""))
    assert References.read(path, missing="keep").items == ("q2", "q1")


def test_a_csv_of_pandas_is_read_to_the_last_bit(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        generator.normal(size=(300, 2)) * 10.0 ** generator.integers(-9, 9, (300, 2)),
        index=[f"q{i}" for i in range(300)],
        columns=["a", "b"],
    )
    frame.to_csv(tmp_path / "wide.csv")
    again = References.read(tmp_path / "wide.csv")
    assert np.array_equal(again.scores.numpy(), frame.to_numpy())


@pytest.mark.parametrize("item", ["007", "1e3", "1.0", "NA", "nan", "None", "true"])
def test_ids_of_a_csv_stay_the_text_that_they_are(tmp_path: Path, item: str) -> None:
    (tmp_path / "wide.csv").write_text(f"id,m1,m2\n{item},1,0\nother,0,1\n")
    assert References.read(tmp_path / "wide.csv").items == (item, "other")


def test_repeated_ids_of_a_csv_are_refused_and_named(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("id,m1,m2\ntwin,1,0\ntwin,0,1\n")
    with pytest.raises(DataError, match="items: .*'twin'"):
        References.read(tmp_path / "wide.csv")


def test_repeated_models_of_a_csv_are_refused_or_numbered(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("id,twin,twin\nq1,1,0\nq2,0,1\n")
    numbered = References.read(tmp_path / "wide.csv", duplicate_models="number")
    assert numbered.models == ("twin", "twin#2")
    with pytest.raises(DataError, match="models: .*'twin'"):
        References.read(tmp_path / "wide.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"id,m1\n",
        b"id\nq1\n",
        b"id,m1\nq1,yes\n",
        b"id,m1\nq1,1\nq2,1,0,1\n",
        b"id,m1\n\xff\xfe,1\n",
    ],
)
def test_a_csv_that_is_no_table_of_scores_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "wide.csv").write_bytes(content)
    with pytest.raises(DataError):
        References.read(tmp_path / "wide.csv")


# Files that cannot be used


@pytest.mark.parametrize("suffix", [*FORMATS, ".csv"])
def test_a_missing_file_is_named(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(DataError, match=f"no such file: .*absent{suffix}"):
        References.read(tmp_path / f"absent{suffix}")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(DataError, match="no such file"):
        References.read(tmp_path / "folder.npz")


@pytest.mark.parametrize("name", ["refs", "refs.pkl", "refs.json", "refs.npy"])
def test_an_unknown_suffix_is_refused_with_the_known_ones(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(DataError, match=rf"'.npz', '.parquet', '.csv'\], .*{name}'"):
        References.read(tmp_path / name)
    with pytest.raises(DataError, match=rf"'.npz', '.parquet', '.csv'\], .*{name}'"):
        small_references().write(tmp_path / name)
    assert (tmp_path / name).read_bytes() == b""


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_cut_short_at_any_byte_is_refused_and_named(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"refs{suffix}"
    small_references().write(path)
    content = path.read_bytes()
    for length in [*range(0, len(content), 23), len(content) - 1]:
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=rf"refs\{suffix}"):
            References.read(path)


@pytest.mark.parametrize("mask", [0x01, 0x41, 0xFF])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_changed_byte_is_refused_or_changes_no_score(
    tmp_path: Path, suffix: str, mask: int
) -> None:
    path, references = tmp_path / f"refs{suffix}", small_references()
    references.write(path)
    content = path.read_bytes()
    refused = 0
    for k in range(0, len(content), 2):
        path.write_bytes(content[:k] + bytes([content[k] ^ mask]) + content[k + 1 :])
        try:
            read = References.read(path, missing="keep")
        except DataError:
            refused += 1
        else:
            assert read.fingerprint == references.fingerprint, f"byte {k}"
    assert refused > len(content) / 6


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_content_of_another_format_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"refs{suffix}"
    np.save(tmp_path / "array.npy", np.eye(3))
    for content in (b"id,a\nq,1\n", (tmp_path / "array.npy").read_bytes()):
        path.write_bytes(content)
        with pytest.raises(DataError, match=rf"refs\{suffix}"):
            References.read(path)


@pytest.mark.parametrize("absent", ["scores", "item_ids", "model_ids"])
def test_an_npz_file_that_lacks_an_array_is_refused_with_its_name(
    tmp_path: Path, absent: str
) -> None:
    arrays = {"scores": np.eye(2), "item_ids": ["p", "q"], "model_ids": ["a", "b"]}
    del arrays[absent]
    np.savez(tmp_path / "refs.npz", **arrays)  # type: ignore[arg-type]
    with pytest.raises(DataError, match=rf"refs\.npz' lacks the arrays \['{absent}'\]"):
        References.read(tmp_path / "refs.npz")


@pytest.mark.parametrize("meta", ["{", "[1]", "3"])
def test_an_npz_file_whose_meta_is_no_json_object_is_refused(
    tmp_path: Path, meta: str
) -> None:
    arrays: dict[str, Any] = {"item_ids": ["p", "q"], "model_ids": ["a", "b"]}
    np.savez(tmp_path / "refs.npz", scores=np.eye(2), meta=meta, **arrays)
    with pytest.raises(DataError, match="meta"):
        References.read(tmp_path / "refs.npz")


def test_pickled_arrays_are_refused(tmp_path: Path) -> None:
    ids = np.array(["p", {"a": 1}], dtype=object)
    np.savez(tmp_path / "refs.npz", scores=np.eye(2), item_ids=ids, model_ids=["a", 1])
    with pytest.raises(DataError, match=r"refs\.npz' is not a readable"):
        References.read(tmp_path / "refs.npz")


def test_parquet_without_pyarrow_names_the_package_and_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    references = small_references()
    references.write(tmp_path / "refs.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r"pip install .*or use \.npz"):
        References.read(tmp_path / "refs.parquet")
    with pytest.raises(MissingDependencyError, match=r"pip install .*or use \.npz"):
        references.write(tmp_path / "other.parquet")


# A write is there in full or not at all


def fail(*_: object, **__: object) -> None:
    raise OSError("no space left")


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, step: str
) -> None:
    path = tmp_path / f"refs{suffix}"
    small_references().write(path)
    before = path.read_bytes()
    owner = os if step == "fsync" else Path
    monkeypatch.setattr(owner, step, fail)
    with pytest.raises(OSError, match="no space left"):
        odd_references().write(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_meta_that_is_no_json_leaves_the_old_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"refs{suffix}"
    small_references().write(path)
    before = path.read_bytes()
    with pytest.raises((DataError, TypeError)):
        odd_references(meta={"metric": object()}).write(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_new_file_is_on_disk_in_full_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"refs{suffix}"
    synced: list[int] = []
    replaced: list[int] = []
    fsync, replace = os.fsync, Path.replace

    def spy_fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    def spy_replace(source: Path, target: Path) -> Path:
        assert len(synced) == 1
        replaced.append(source.stat().st_size)
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", spy_fsync)
    monkeypatch.setattr(Path, "replace", spy_replace)
    small_references().write(path)
    assert replaced == [synced[0]] == [path.stat().st_size]


@pytest.mark.parametrize("suffix", FORMATS)
def test_writing_replaces_what_was_there(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"refs{suffix}"
    odd_references().write(path)
    small_references().write(path)
    assert References.read(path).fingerprint == small_references().fingerprint
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


# Real data


def test_every_real_matrix_is_read_as_numpy_sees_it(shared_data: Path) -> None:
    paths = sorted(shared_data.glob("*.npz"))
    assert paths
    for path in paths:
        references = References.read(path, missing="keep", duplicate_models="number")
        with np.load(path, allow_pickle=False) as file:
            raw = {key: file[key] for key in file.files}
        n_items, n_models = raw["scores"].shape
        scores = raw["scores"].astype(np.float64)
        assert references.scores.shape == (n_items, n_models), path.name
        assert np.array_equal(references.scores.numpy(), scores, equal_nan=True)
        assert references.n_missing == np.isnan(scores).sum()
        assert references.items == tuple(raw["item_ids"].astype(str).tolist())
        assert len(set(references.models)) == n_models
        for name, original in zip(references.models, raw["model_ids"], strict=True):
            assert name.partition("#")[0] == str(original).partition("#")[0]
        if "probs" in raw:
            assert references.probabilities is not None
            expected = (n_models, n_items, raw["probs"].shape[2])
            assert references.probabilities.shape == expected
            assert np.array_equal(references.probabilities.numpy(), raw["probs"])
        else:
            assert references.probabilities is None
        if "labels" in raw:
            assert references.labels is not None
            assert np.array_equal(references.labels.numpy(), raw["labels"])
        if "category" in raw:
            assert references.groups == tuple(raw["category"].astype(str).tolist())


def test_the_sparse_real_matrix_follows_every_policy(shared_data: Path) -> None:
    path = shared_data / "livebench_sparse.npz"
    sparse = References.read(path, missing="keep", duplicate_models="number")
    gaps = sparse.scores.isnan()
    assert int(gaps.sum()) == 12614
    filled = References.read(path, missing="mean", duplicate_models="number")
    assert filled.n_missing == 0
    assert torch.equal(filled.scores[~gaps], sparse.scores[~gaps])
    with pytest.raises(DataError, match="missing='drop-items': no complete"):
        References.read(path, missing="drop-items", duplicate_models="number")
    with pytest.raises(DataError, match="12614 missing cells"):
        References.read(path, duplicate_models="number")
