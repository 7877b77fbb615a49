"""Zip archives of logs: single entries read by name, nothing ever unpacked to disk."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gp_eval.errors import DataError, MissingDependencyError
from gp_eval.readers import limits

__all__ = ["Archive", "open_archive"]

_ZSTD_METHOD = 93
_END, _END_SIZE = b"PK\x05\x06", 22
_LOCATOR, _LOCATOR_SIZE = b"PK\x06\x07", 20
_BROKEN = (OSError, EOFError, KeyError, ValueError, RuntimeError, zlib.error)


class Archive:
    """An open zip archive.

    Args:
        path: The file.
        archive: Its ``ZipFile``.
    """

    def __init__(self, path: Path, archive: Any) -> None:
        self._path, self._archive = path, archive
        infos = archive.infolist()
        if len(infos) > limits.MAX_ENTRIES:
            raise DataError(
                f"{str(path)!r}: has {len(infos)} entries, over {limits.MAX_ENTRIES}: "
                "refused"
            )
        self._infos = {info.filename: info for info in infos}

    @property
    def names(self) -> list[str]:
        """Names of all entries."""
        return list(self._infos)

    def read(self, name: str) -> bytes:
        """One entry, unpacked in memory.

        Raises:
            DataError: For an entry that is damaged or larger than a document may be,
                whatever size it claims.
        """
        info = self._infos[name]
        limit = limits.MAX_DOCUMENT_BYTES
        if info.file_size > max(
            limits.RATIO_FREE_BYTES, limits.MAX_RATIO * info.compress_size
        ):
            limit = -1
        try:
            if 0 <= info.file_size <= limit:
                with self._archive.open(info) as stream:
                    data = stream.read(limit + 1)
                if len(data) <= limit:
                    return data
        except NotImplementedError as error:
            if info.compress_type != _ZSTD_METHOD:
                raise self._damaged(name, error) from error
            raise MissingDependencyError(
                f"{str(self._path)!r} is packed with zstd: pip install 'gp-eval[logs]'"
            ) from error
        except _BROKEN as error:
            raise self._damaged(name, error) from error
        except Exception as error:
            if type(error).__name__ not in ("ZstdError", "BadZipFile", "error"):
                raise
            raise self._damaged(name, error) from error
        raise DataError(
            f"{str(self._path)!r}: entry {name!r} unpacks to {info.file_size} bytes "
            f"from {info.compress_size}: refused"
        )

    def _damaged(self, name: str, error: Exception) -> DataError:
        return DataError(
            f"{str(self._path)!r}: entry {name!r} cannot be read: {error or 'damaged'}"
        )


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open a zip archive; zstd entries need Python 3.14 or ``backports.zstd``.

    Raises:
        DataError: For a damaged archive or too large a table of contents.
    """
    _check_directory(path)
    try:
        archive = _zip_class()(path)
    except (zipfile.BadZipFile, OSError, ValueError, struct.error) as error:
        raise DataError(f"{str(path)!r}: not a readable zip: {error}") from error
    except NotImplementedError as error:
        raise DataError(f"{str(path)!r}: unknown kind of zip: {error}") from error
    except Exception as error:
        if type(error).__name__ != "BadZipFile":  # the backport has its own
            raise
        raise DataError(f"{str(path)!r}: not a readable zip: {error}") from error
    with archive:
        yield Archive(path, archive)


def _zip_class() -> Any:
    if hasattr(zipfile, "ZIP_ZSTANDARD"):
        return zipfile.ZipFile
    try:
        from backports.zstd import zipfile as with_zstd
    except ImportError:
        return zipfile.ZipFile
    return with_zstd.ZipFile


def _check_directory(path: Path) -> None:
    """Refuse an enormous table of contents before it becomes objects in memory."""
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(max(0, size - 65_535 - _END_SIZE - _LOCATOR_SIZE))
            tail = stream.read()
            end = tail.rfind(_END)
            if end < 0 or end + _END_SIZE > len(tail):
                raise DataError(
                    f"{str(path)!r}: not a readable zip: cut short, or no zip at all"
                )
            directory = struct.unpack_from("<L", tail, end + 12)[0]
            locator = end - _LOCATOR_SIZE
            if locator >= 0 and tail[locator:].startswith(_LOCATOR):
                stream.seek(struct.unpack_from("<Q", tail, locator + 8)[0])
                record = stream.read(56)
                if len(record) == 56:
                    directory = struct.unpack_from("<Q", record, 40)[0]
    except (OSError, OverflowError) as error:
        raise DataError(f"{str(path)!r}: cannot be read: {error}") from error
    if directory > limits.MAX_DIRECTORY_BYTES:
        raise DataError(
            f"{str(path)!r}: its table of contents has {directory} bytes, over "
            f"{limits.MAX_DIRECTORY_BYTES}: refused"
        )
