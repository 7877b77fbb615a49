"""Groups of items: those of the references, or a column of a file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch

from gp_eval.data.files import GAPS, read_arrays, read_table
from gp_eval.data.references import References
from gp_eval.data.validation import as_groups, as_ids, some
from gp_eval.errors import DataError

__all__ = ["STORED", "Groups", "is_macro"]

STORED = "groups"
"""What stands for the groups of the references, in place of a file."""

_COLUMN = re.compile(r"(.+?\.(?:csv|parquet|npz)):(.+)", re.DOTALL)
_FILE = re.compile(r".+\.(?:csv|parquet|npz):?", re.DOTALL)
_IDS = "item"
_FORMS = (
    f"{STORED!r} (those of the references) or FILE:COLUMN, such as metadata.csv:subject"
)


@dataclass(frozen=True)
class Groups:
    """A group for each item, or none.

    Args:
        source: Where they come from: ``"groups"``, ``"metadata.csv:subject"`` ...
        of_item: The group of each of the ``N`` items; ``""`` for an item in no group.
        n_others: Items of the source that the benchmark does not have.

    Raises:
        DataError: If no item is in a group.
    """

    source: str
    of_item: tuple[str, ...]
    n_others: int = 0

    def __post_init__(self) -> None:
        if not any(self.of_item):
            raise DataError(
                f"{self.source}: none of the {len(self.of_item)} items is in a group"
            )

    @classmethod
    def stored(cls, references: References) -> Self:
        """The groups of the references.

        Raises:
            DataError: If they have none.
        """
        if references.groups is None:
            raise DataError(
                "groups: the references name no groups of items; name a column of a "
                "file of items, such as metadata.csv:subject"
            )
        return cls(STORED, references.groups)

    @classmethod
    def read(cls, source: str, references: References) -> Self:
        """Groups by their source, as ``--group-by`` takes it.

        A file is a ``.csv`` or ``.parquet`` table with a row for each item, whose id is
        in the column ``item`` or, if there is none, in the first one; or an ``.npz``
        with ``item_ids`` and an array of the same length. Items that are not in the
        file, or have a gap there (empty, ``NaN``, ``NA`` ...), are in no group. Items
        that the references do not have are counted and not used.

        Args:
            source: ``"groups"`` or ``FILE:COLUMN``.
            references: The references, for their items.

        Raises:
            DataError: For another form, a file that cannot be read, a column that is
                not there, an item with two rows, or no item in any group.
        """
        if source == STORED:
            return cls.stored(references)
        found = _COLUMN.fullmatch(source)
        if found is None:
            hint = "; name one of its columns" if _FILE.fullmatch(source) else ""
            raise DataError(f"group-by: expected {_FORMS}; got {source!r}{hint}")
        known = _read(Path(found[1]), found[2])
        items = set(references.items)
        others = [item for item in known if item not in items]
        if len(others) == len(known):
            raise DataError(
                f"group-by: {found[1]!r} has none of the items of the references, such "
                f"as {some(references.items, 3)}; it has {some(others, 3)}"
            )
        of_item = tuple(known.get(item, "") for item in references.items)
        # The name without its folder, which is nobody else's business in a report.
        return cls(f"{Path(found[1]).name}:{found[2]}", of_item, len(others))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the ``G`` groups, in the order of their first items."""
        return tuple(dict.fromkeys(filter(None, self.of_item)))

    @property
    def sizes(self) -> dict[str, int]:
        """Number of items by group; under ``""`` that of the items in no group."""
        return dict(Counter(self.of_item))


def is_macro(references: References) -> bool:
    """Whether item weights are those of ``references.macro()``, and not all the same.

    Then they say how groups are averaged, and nothing about single items.
    """
    groups = references.groups
    if not references.is_weighted or groups is None or "" in groups:
        return False
    size = Counter(groups)
    shares = [1.0 / (len(size) * size[group]) for group in groups]
    expected = torch.tensor(shares, dtype=torch.float64)
    return torch.allclose(references.item_weights, expected, rtol=1e-12, atol=0.0)


def _read(path: Path, column: str) -> Mapping[str, str]:
    """The groups in a file by item, ``""`` for a gap."""
    if not path.is_file():
        raise DataError(f"group-by: no such file: {str(path)!r}")
    ids, values = _npz(path, column) if path.suffix == ".npz" else _table(path, column)
    items = as_ids(f"group-by: {str(path)!r}: {_IDS}", ids)
    groups = as_groups(f"{str(path)!r}: {column}", values)
    texts = ("" if g.strip() in GAPS else g.strip() for g in groups)
    return dict(zip(items, texts, strict=True))


def _npz(path: Path, column: str) -> tuple[list[Any], list[Any]]:
    arrays = read_arrays(path)
    if "item_ids" not in arrays:
        raise DataError(f"group-by: {str(path)!r} lacks the array 'item_ids'")
    shape = arrays["item_ids"].shape
    columns = [name for name, array in arrays.items() if array.shape == shape]
    _check_column(path, column, [name for name in columns if name != "item_ids"])
    return arrays["item_ids"].tolist(), arrays[column].tolist()


def _table(path: Path, column: str) -> tuple[list[Any], list[Any]]:
    frame = read_table(path)
    names = [str(name) for name in frame.columns]
    ids = names.index(_IDS) if _IDS in names else 0
    _check_column(path, column, [name for i, name in enumerate(names) if i != ids])
    return frame.iloc[:, ids].tolist(), frame.iloc[:, names.index(column)].tolist()


def _check_column(path: Path, column: str, columns: list[str]) -> None:
    if columns.count(column) != 1:
        what = "two columns" if column in columns else "no column"
        raise DataError(
            f"group-by: {str(path)!r} has {what} {column!r} of groups; it has "
            f"{some(columns)}"
        )
