"""Opening logs: packed or not, within limits, with errors that name the file."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from gp_eval.errors import DataError, MissingDependencyError
from gp_eval.readers import limits

__all__ = [
    "head",
    "json_document",
    "json_lines",
    "json_rows",
    "opened",
    "parse_json",
    "read_bytes",
    "require_zstd",
]

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def require_zstd() -> Any:
    """A module with ``ZstdFile``, of Python itself or of ``backports.zstd``.

    Raises:
        MissingDependencyError: If there is none; says how to get it.
    """
    try:
        from compression import zstd  # Python 3.14
    except ImportError:
        try:
            from backports import zstd
        except ImportError as error:
            raise MissingDependencyError(
                "this log is packed with zstd: pip install 'gp-eval[logs]'"
            ) from error
    return zstd


class _Guarded(io.RawIOBase):
    """An unpacking stream that refuses to unpack without end."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path = stream, path
        self._allowed = max(
            limits.RATIO_FREE_BYTES, limits.MAX_RATIO * path.stat().st_size
        )
        self._seen = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._seen += len(data)
        if self._seen > self._allowed:
            raise DataError(
                f"{str(self._path)!r}: unpacks to more than {self._allowed} bytes, "
                f"over {limits.MAX_RATIO} times its size: refused"
            )
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if gzip or zstd, whatever its name.

    Raises:
        DataError: For a file that cannot be read, is damaged, or unpacks to far more
            than its size.
    """
    try:
        with path.open("rb") as raw:
            magic = raw.peek(4)[:4]
            if magic.startswith(_GZIP):
                yield io.BufferedReader(_Guarded(gzip.GzipFile(fileobj=raw), path))
            elif magic == _ZSTD:
                stream = require_zstd().ZstdFile(raw)
                yield io.BufferedReader(_Guarded(stream, path))
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{str(path)!r}: cannot be read: {error}") from error
    except Exception as error:
        # ZstdError derives from Exception only and exists only where zstd does.
        if type(error).__name__ == "ZstdError":
            raise DataError(f"{str(path)!r}: damaged: {error}") from error
        raise


def head(path: Path, size: int = 2**20) -> bytes:
    """The first bytes, unpacked, without a byte order mark."""
    with opened(path) as stream:
        data = stream.read(size)
    return data.removeprefix(b"\xef\xbb\xbf")


def read_bytes(path: Path) -> bytes:
    """A whole file, unpacked, up to the limit of one document."""
    with opened(path) as stream:
        data = stream.read(limits.MAX_DOCUMENT_BYTES + 1)
    if len(data) > limits.MAX_DOCUMENT_BYTES:
        raise DataError(
            f"{str(path)!r}: larger than {limits.MAX_DOCUMENT_BYTES} bytes, which is "
            "too much for one document"
        )
    return data


def parse_json(data: bytes, where: str) -> Any:
    """JSON as logs hold it: UTF-8, with NaN and Infinity.

    The standard library's parser, because faster ones refuse NaN.

    Raises:
        DataError: For anything else, naming ``where``.
    """
    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{where}: not UTF-8: {error}") from error
    except RecursionError:
        raise DataError(f"{where}: nested too deeply to be a log") from None
    except ValueError as error:
        raise DataError(f"{where}: not valid JSON: {error}") from error


def json_document(path: Path) -> Any:
    """The one JSON value of a file."""
    return parse_json(read_bytes(path), repr(str(path)))


def json_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a JSON lines file with their line numbers; blank lines are skipped.

    Lines end at a line feed only: texts may hold other separators of Unicode.
    """
    with opened(path) as stream:
        line_number = 0
        while line := stream.readline(limits.MAX_LINE_BYTES + 1):
            line_number += 1
            if len(line) > limits.MAX_LINE_BYTES:
                raise DataError(
                    f"{str(path)!r}, line {line_number}: longer than "
                    f"{limits.MAX_LINE_BYTES} bytes"
                )
            if not line.strip():
                continue
            where = f"{str(path)!r}, line {line_number}"
            row = parse_json(line, where)
            if not isinstance(row, dict):
                raise DataError(f"{where}: expected a JSON object, got {row!r:.60}")
            yield line_number, row


def json_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects of a JSON lines file or of one JSON array, numbered from 1."""
    if not head(path).lstrip().startswith(b"["):
        yield from json_lines(path)
        return
    document = json_document(path)
    for position, row in enumerate(document, start=1):
        if not isinstance(row, dict):
            raise DataError(
                f"{str(path)!r}, entry {position}: expected a JSON object, got "
                f"{row!r:.60}"
            )
        yield position, row
