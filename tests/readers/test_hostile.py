"""Damaged and hostile files: a clear error that names the file, nothing written."""

from __future__ import annotations

import gzip
import json
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import joblib
import numpy as np
import pytest
from logs import (
    inspect_sample,
    lm_row,
    write_eval,
    write_lm_eval,
)

from gp_eval.errors import DataError
from gp_eval.readers import Options, build_references, limits, read_logs
from gp_eval.readers.detect import FORMATS


def read(path: Path, format: str = "auto") -> None:
    read_logs([path], format=format, options=Options(allow_pickle=True))


GARBAGE = {
    "empty": b"",
    "blank": b"\n\n  \n",
    "nul": b"\0" * 100,
    "latin1": '{"doc_id": 0, "resps": "é"}'.encode("latin1"),
    "utf16": '{"doc_id": 0}'.encode("utf-16"),
    "cut": b'{"doc_id": 0, "resps": [',
    "deep": b"[" * 100_000,
    "deep object": b'{"doc_id": 0, "resps": ' + b"[" * 100_000,
    "number": b"3",
    "list of numbers": b"[1, 2, 3]",
    "digits": b'{"doc_id": ' + b"9" * 5000 + b', "resps": []}',
    "zip head": b"PK\x03\x04" + b"\0" * 50,
    "zip end": b"PK\x05\x06" + b"\xff" * 18,
    "parquet head": b"PAR1" + b"\0" * 50 + b"PAR1",
    "gzip head": b"\x1f\x8b\x08\0" + b"\xff" * 30,
    "zstd head": b"\x28\xb5\x2f\xfd" + b"\xff" * 30,
    "pickle": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.",
    "random": random.Random(0).randbytes(5000),
}


@pytest.mark.parametrize("format", ["auto", *FORMATS])
@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_refused_in_every_format(
    tmp_path: Path, kind: str, format: str
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / "samples_t_2026-01-01T00-00-00.jsonl"
    path.write_bytes(GARBAGE[kind])
    with pytest.raises(DataError, match=r"samples_t|no log among"):
        read(path, format)
    assert list(tmp_path.rglob("*")) == [folder, path]


def small_lm_eval(folder: Path) -> Path:
    return write_lm_eval(folder, [lm_row(i, em=1.0) for i in range(3)])


def small_eval(folder: Path) -> Path:
    return write_eval(folder / "a.eval", [inspect_sample(i, "C") for i in range(3)])


def small_array(folder: Path) -> Path:
    joblib.dump(np.ones((2, 3)), folder / "a.jbl")
    return folder / "a.jbl"


def small_parquet(folder: Path) -> Path:
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"item_id": ["a", "b"], "m": [0.0, 1.0]})
    frame.to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


@pytest.mark.parametrize(
    "write", [small_lm_eval, small_eval, small_array, small_parquet]
)
def test_a_file_cut_at_any_byte_is_refused_or_whole_up_to_there(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    """A log of lines cut between them is a shorter log; nothing else is readable."""
    path = write(tmp_path)
    data = path.read_bytes()
    rng = random.Random(1)
    readable = unnamed = 0
    for cut in sorted(rng.sample(range(len(data)), 40)):
        path.write_bytes(data[:cut])
        try:
            read(path)
            readable += 1
            assert write is small_lm_eval
            assert data[cut - 1 : cut] == b"\n" or data[cut : cut + 1] == b"\n"
        except DataError as error:
            unnamed += path.name not in str(error)
    path.write_bytes(data)
    read(path)
    assert readable < 10
    assert unnamed == 0


@pytest.mark.parametrize("write", [small_eval, small_array, small_parquet])
def test_flipped_bytes_end_in_no_other_error(
    tmp_path: Path, write: Callable[[Path], Path]
) -> None:
    path = write(tmp_path)
    data = path.read_bytes()
    rng = random.Random(2)
    refused = 0
    for _ in range(150):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            broken[rng.randrange(len(data))] = rng.randrange(256)
        path.write_bytes(bytes(broken))
        try:
            read(path)
        except DataError:
            refused += 1
    assert refused > 20


def test_an_empty_log_among_others_is_no_other_file(tmp_path: Path) -> None:
    small_lm_eval(tmp_path)
    for name in ("samples_t_2026-01-01T00-00-00.1.jsonl", "x.eval"):
        (tmp_path / name).write_bytes(b"")
        with pytest.raises(DataError, match=name):
            read(tmp_path)
        (tmp_path / name).unlink()


@pytest.mark.parametrize("value", ["1e999", "-1e999", "1" + "0" * 400, "Infinity"])
def test_huge_numbers_are_infinite_and_refused(tmp_path: Path, value: str) -> None:
    path = small_lm_eval(tmp_path)
    text = path.read_text().replace('"em": 1.0', f'"em": {value}', 1)
    path.write_text(text)
    with pytest.raises(DataError, match="1 infinite"):
        build_references(read_logs([path]))


def test_a_gzip_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RATIO_FREE_BYTES", 1000)
    path = small_lm_eval(tmp_path)
    bomb = path.read_bytes() + b"\n" * 10_000_000
    path.write_bytes(gzip.compress(bomb))
    with pytest.raises(DataError, match="unpacks to more than"):
        read(path)


def test_a_line_without_end_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_LINE_BYTES", 1000)
    path = write_lm_eval(tmp_path, [lm_row(0, em=1.0) | {"target": "x" * 2000}])
    with pytest.raises(DataError, match="longer than 1000 bytes"):
        read(path)


def test_a_document_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 100)
    path = tmp_path / "a.json"
    path.write_text(json.dumps([lm_row(0, em=1.0)]))
    with pytest.raises(DataError, match="larger than 100 bytes"):
        read(path)


def test_a_zip_entry_that_unpacks_to_far_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "RATIO_FREE_BYTES", 1000)
    samples = [inspect_sample(1, "C") | {"input": " " * 1_000_000}]
    path = write_eval(tmp_path / "a.eval", samples)
    with pytest.raises(DataError, match="'summaries.json' unpacks to 1000"):
        read(path)


def test_a_zip_entry_that_lies_about_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 50_000)
    samples = [inspect_sample(1, "C") | {"input": "x" * 100_000}]
    path = write_eval(tmp_path / "a.eval", samples)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo("summaries.json").file_size
    path.write_bytes(data.replace(struct.pack("<L", size), struct.pack("<L", 10)))
    with pytest.raises(DataError, match=r"summaries.json"):
        read(path)


def test_too_many_entries_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_eval(
        tmp_path / "a.eval",
        [inspect_sample(1, "C")],
        extra={f"samples/{i}.json": b"{}" for i in range(50)},
    )
    monkeypatch.setattr(limits, "MAX_ENTRIES", 40)
    with pytest.raises(DataError, match="52 entries, over 40"):
        read(path)
    monkeypatch.setattr(limits, "MAX_DIRECTORY_BYTES", 1000)
    with pytest.raises(DataError, match="table of contents has"):
        read(path)


def test_too_many_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("")
    monkeypatch.setattr(limits, "MAX_FILES", 4)
    with pytest.raises(DataError, match="more than 4 files"):
        read(tmp_path)


def test_an_array_larger_than_memory_is_refused(tmp_path: Path) -> None:
    path = small_array(tmp_path)
    # The shape (2, 3) as pickled: two one-byte numbers in a tuple.
    data = path.read_bytes()
    huge = data.replace(b"K\x02K\x03\x86", b"J\xff\xff\xff\x7fK\x03\x86")
    assert huge != data
    path.write_bytes(huge)
    with pytest.raises(DataError, match="an array of shape"):
        read(path)


def test_links_out_of_a_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    small_lm_eval(outside)
    folder = tmp_path / "logs"
    small_eval_folder = folder / "x"
    small_eval_folder.mkdir(parents=True)
    small_eval(small_eval_folder)
    (folder / "link").symlink_to(outside, target_is_directory=True)
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    assert read_logs([folder]).formats == {"inspect": 1}


def test_paths_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file or folder: .*absent"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="no log among 0 files"):
        read(tmp_path)


def test_other_files_of_a_folder_are_passed_over_and_counted(tmp_path: Path) -> None:
    small_lm_eval(tmp_path)
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "config.json").write_text("{}")
    collection = read_logs([tmp_path])
    assert sorted(p.name for p in collection.other_files) == [
        "config.json",
        "notes.txt",
    ]
    with pytest.raises(DataError, match="of no known format"):
        read(tmp_path / "notes.txt")
