"""Which item is in which group: stored in the references, or in a file."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from gp_eval.data import Groups, References
from gp_eval.data.group_sums import GroupSums
from gp_eval.data.groups import is_macro
from gp_eval.errors import DataError

ITEMS = ["q0", "q1", "q2", "q3", "q4", "q5"]
SUBJECTS = ["law", "art", "law", "", "art", "law"]


def references(**options) -> References:
    scores = np.random.default_rng(3).random((6, 4))
    return References(scores, ITEMS, list("abcd"), **options)


def write(path: Path, **columns: object) -> Path:
    frame = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


# Of the references


def test_the_groups_of_the_references_by_their_word() -> None:
    groups = Groups.read("groups", references(groups=SUBJECTS))
    assert groups.names == ("law", "art")
    assert groups.sizes == {"law": 3, "art": 2, "": 1}
    assert groups.of_item == tuple(SUBJECTS)
    assert (groups.source, groups.n_others) == ("groups", 0)


@pytest.mark.parametrize("gap", [None, math.nan, np.nan, "", pd.NA, pd.NaT])
def test_any_kind_of_gap_is_no_group(gap: object) -> None:
    made = references(groups=["law", gap, "art", "nan", gap, "None"])
    assert made.groups == ("law", "", "art", "nan", "", "None")


def test_a_gap_survives_files_and_subsets(tmp_path: Path) -> None:
    made = references(groups=["law", None, "art", "art", None, "law"])
    made.write(tmp_path / "refs.npz")
    assert References.read(tmp_path / "refs.npz").groups == made.groups
    assert made.subset(items=["q4", "q5"]).groups == ("", "law")


def test_a_category_with_gaps_in_a_plain_npz(tmp_path: Path) -> None:
    category = np.array([1.0, np.nan, 2.0, 1.0, 1.0, np.nan])
    np.savez(
        tmp_path / "t.npz",
        scores=np.ones((6, 1)),
        item_ids=np.array(ITEMS),
        model_ids=np.array(["a"]),
        category=category,
    )
    read = References.read(tmp_path / "t.npz")
    assert read.groups == ("1.0", "", "2.0", "1.0", "1.0", "")


def test_references_without_groups_say_what_to_do() -> None:
    with pytest.raises(DataError, match=r"name no groups .* metadata.csv:subject"):
        Groups.read("groups", references())


def test_groups_of_nothing_are_an_error() -> None:
    with pytest.raises(DataError, match="none of the 6 items is in a group"):
        Groups.stored(references(groups=[""] * 6))


def test_a_macro_average_needs_all_items_and_names_those_without() -> None:
    with pytest.raises(DataError, match="there is none for 'q3'$"):
        references(groups=SUBJECTS).macro()


# Of a file


@pytest.mark.parametrize("name", ["meta.csv", "meta.parquet"])
def test_a_column_of_a_table_in_any_order_of_rows(tmp_path: Path, name: str) -> None:
    path = write(
        tmp_path / name,
        note=list("uvwxyz"),
        item=ITEMS[::-1],
        subject=["law", "art", None, "law", "art", "law"],
    )
    groups = Groups.read(f"{path}:subject", references())
    assert groups.of_item == ("law", "art", "law", "", "art", "law")
    assert groups.source == f"{name}:subject"


def test_an_array_of_an_npz(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "t.npz", item_ids=np.array(ITEMS), task=np.array(list("aabbcc"))
    )
    groups = Groups.read(f"{tmp_path / 't.npz'}:task", references())
    assert groups.of_item == tuple("aabbcc")


def test_without_a_column_item_ids_are_in_the_first_one(tmp_path: Path) -> None:
    path = write(tmp_path / "meta.csv", id=ITEMS, subject=SUBJECTS)
    assert Groups.read(f"{path}:subject", references()).of_item == tuple(SUBJECTS)


def test_a_frame_written_with_its_index(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"subject": list("aabbcc")}, index=ITEMS)
    frame.to_parquet(tmp_path / "meta.parquet")
    groups = Groups.read(f"{tmp_path / 'meta.parquet'}:subject", references())
    assert groups.of_item == tuple("aabbcc")


@pytest.mark.parametrize("gap", ["", "  ", "NaN", "nan", "NA", "N/A", "null", "None"])
def test_gaps_of_a_table_are_those_of_scores(tmp_path: Path, gap: str) -> None:
    path = tmp_path / "meta.csv"
    path.write_text(f"item,s\nq0,law\nq1,{gap}\nq2, law \n")
    groups = Groups.read(f"{path}:s", references())
    assert groups.of_item == ("law", "", "law", "", "", "")


def test_items_of_others_are_counted_and_not_used(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", item=["q5", "x", "y"], s=["law", "art", "art"])
    groups = Groups.read(f"{path}:s", references())
    assert (groups.n_others, groups.names) == (2, ("law",))
    assert groups.sizes == {"": 5, "law": 1}


def test_colons_belong_to_the_folder_or_to_the_column(tmp_path: Path) -> None:
    folder = tmp_path / "a:b"
    folder.mkdir()
    path = write(folder / "m.csv", item=ITEMS, **{"s:t.csv:u": list("aabbcc")})
    groups = Groups.read(f"{path}:s:t.csv:u", references())
    assert groups.names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("subject", r"expected 'groups' .* or FILE:COLUMN.*got 'subject'$"),
        ("{}", "got '.*m.csv'; name one of its columns"),
        ("{}:", "got '.*m.csv:'; name one of its columns"),
        ("{}:nope", r"m.csv' has no column 'nope' of groups; it has 's', 'd', 'd'$"),
        ("{}:item", "has no column 'item' of groups"),
        ("{}:d", "has two columns 'd' of groups"),
        ("absent.csv:s", "^group-by: no such file: 'absent.csv'"),
        ("absent.npz:s", "^group-by: no such file: 'absent.npz'"),
        ("", "expected 'groups'"),
    ],
)
def test_what_cannot_be_read_is_named(
    tmp_path: Path, source: str, message: str
) -> None:
    path = tmp_path / "m.csv"
    path.write_text("item,s,d,d\nq0,law,1,2\n")
    with pytest.raises(DataError, match=message):
        Groups.read(source.format(path), references())


def test_an_item_with_two_rows_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", item=["q0", "q1", "q0"], s=["a", "b", "a"])
    with pytest.raises(DataError, match="expected unique ids, repeated: 'q0'"):
        Groups.read(f"{path}:s", references())


def test_a_file_of_another_benchmark_shows_the_ids_of_both(tmp_path: Path) -> None:
    path = write(tmp_path / "m.csv", item=["x", "y"], s=["a", "b"])
    with pytest.raises(DataError, match=r"such as 'q0', 'q1'.*it has 'x', 'y'"):
        Groups.read(f"{path}:s", references())


def test_an_empty_file_is_one_of_another_benchmark(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("item,s\n")
    with pytest.raises(DataError, match="has none of the items"):
        Groups.read(f"{tmp_path / 'm.csv'}:s", references())


# Weights


def test_macro_weights_are_recognised_and_no_others() -> None:
    plain = references(groups=list("aaabbc"))
    assert is_macro(plain.macro())
    assert not is_macro(plain)
    assert not is_macro(references(groups=list("aabbcc")).macro())  # all the same
    weighted = references(groups=list("aaabbc"), item_weights=[1, 2, 3, 1, 1, 1])
    assert not is_macro(weighted)
    assert is_macro(weighted.macro())
    assert not is_macro(references(item_weights=[1, 2, 3, 1, 1, 1]))
    part = plain.macro().subset(items=ITEMS[1:])
    assert not is_macro(part)


def test_macro_weights_survive_a_file(tmp_path: Path) -> None:
    references(groups=list("aaabbc")).macro().write(tmp_path / "m.npz")
    assert is_macro(References.read(tmp_path / "m.npz"))


def test_rows_are_the_means_that_their_names_say() -> None:
    weights = [1.0, 2.0, 3.0, 4.0, 5.0, 0.0]
    made = references(groups=SUBJECTS, item_weights=weights)
    sums = GroupSums.of(made, Groups.stored(made))
    s = torch.tensor([0.3, 0.1, 0.9, 0.5, 0.7, 0.2], dtype=torch.float64)
    law = (1 * 0.3 + 3 * 0.9) / 4
    art = (2 * 0.1 + 5 * 0.7) / 7
    micro = (1 * 0.3 + 2 * 0.1 + 3 * 0.9 + 4 * 0.5 + 5 * 0.7) / 15
    expected = [law, art, 0.5, (law + art) / 2, micro, micro]
    assert (sums.weights @ s / sums.divisors).tolist() == pytest.approx(
        expected, rel=1e-14
    )
    assert sums.shares.tolist() == pytest.approx([4 / 15, 7 / 15, 4 / 15], rel=1e-14)
    assert not sums.stops_on_macro


def test_weights_of_macro_count_every_item_the_same() -> None:
    made = references(groups=list("aaabbc")).macro()
    sums = GroupSums.of(made, Groups.stored(made))
    assert (sums.weights[-2] / sums.divisors[-2]).tolist() == [1 / 6] * 6
    assert sums.shares.tolist() == pytest.approx([3 / 6, 2 / 6, 1 / 6], rel=1e-14)
    assert sums.stops_on_macro
    other = GroupSums.of(made, Groups("f.csv:s", tuple("ababab")))
    assert not other.stops_on_macro


def test_groups_without_weight_are_left_out_and_need_not_be_all() -> None:
    made = references(groups=list("aaabbb"), item_weights=[0, 0, 0, 1, 2, 3])
    assert GroupSums.of(made, Groups.stored(made)).names == ("b",)
    made = references(groups=list("aaa") + [""] * 3, item_weights=[0, 0, 0, 1, 2, 3])
    with pytest.raises(DataError, match="all items in groups have weight 0"):
        GroupSums.of(made, Groups.stored(made))


def test_groups_of_other_items_are_an_error() -> None:
    with pytest.raises(DataError, match="one for each of the 6 items, got 2"):
        GroupSums.of(references(), Groups("x", ("a", "b")))
