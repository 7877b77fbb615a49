from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from populations import population

from gp_eval.data import References
from gp_eval.disco import DiscoOptions, DiscoPlan, read_responses
from gp_eval.errors import DataError


def long_table(table: References) -> pd.DataFrame:
    assert table.probabilities is not None
    rows = [
        {
            "item": item,
            "model": model,
            "score": float(table.scores[i, k]),
            **{f"p{c}": float(p) for c, p in enumerate(table.probabilities[k, i])},
        }
        for k, model in enumerate(table.models)
        for i, item in enumerate(table.items)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_wide_table_holds_scores(tmp_path: Path, suffix: str) -> None:
    table = population(3, 8)
    path = tmp_path / f"wide.{suffix}"
    if suffix == "csv":
        table.frame.to_csv(path)
    else:
        table.frame.to_parquet(path)
    found = read_responses(path)
    assert (found.items, found.models) == (table.items, table.models)
    assert found.probabilities is None
    torch.testing.assert_close(found.scores, table.scores, rtol=1e-15, atol=0)


def test_a_table_that_gp_eval_wrote_is_wide(tmp_path: Path) -> None:
    table = population(3, 8)
    table.write(tmp_path / "written.parquet")
    found = read_responses(tmp_path / "written.parquet")
    assert (found.items, found.models) == (table.items, table.models)
    assert torch.equal(torch.as_tensor(found.scores), table.scores)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_long_table_holds_probabilities_in_any_order(
    tmp_path: Path, suffix: str
) -> None:
    table = population(3, 8)
    path = tmp_path / f"long.{suffix}"
    shuffled = long_table(table).sample(frac=1.0, random_state=0)
    if suffix == "csv":
        shuffled.to_csv(path, index=False)
    else:
        shuffled.to_parquet(path, index=False)
    found = read_responses(path).on(table.items)
    order = [found.models.index(model) for model in table.models]
    assert found.scores is not None
    assert found.probabilities is not None
    torch.testing.assert_close(found.scores[:, order], table.scores, rtol=1e-15, atol=0)
    torch.testing.assert_close(
        found.probabilities[order], table.probabilities, rtol=1e-15, atol=0
    )


def test_npz_holds_scores_or_probabilities_or_both(tmp_path: Path) -> None:
    table = population(3, 8)
    assert table.probabilities is not None
    ids = {"item_ids": np.array(table.items), "model_ids": np.array(table.models)}
    np.savez(tmp_path / "probs.npz", probs=table.probabilities.numpy(), **ids)
    found = read_responses(tmp_path / "probs.npz")
    assert found.scores is None
    assert torch.equal(torch.as_tensor(found.probabilities), table.probabilities)
    table.write(tmp_path / "both.npz")
    found = read_responses(tmp_path / "both.npz")
    assert torch.equal(torch.as_tensor(found.scores), table.scores)
    np.savez(tmp_path / "none.npz", **ids)
    with pytest.raises(DataError, match="expected item_ids, model_ids and scores or"):
        read_responses(tmp_path / "none.npz")


def test_log_likelihoods_become_probabilities(tmp_path: Path) -> None:
    table = population(3, 8)
    assert table.probabilities is not None
    ids = {"item_ids": np.array(table.items), "model_ids": np.array(table.models)}
    raw = table.probabilities.log().numpy() - 3.0
    np.savez(tmp_path / "logs.npz", probs=raw, **ids)
    found = read_responses(tmp_path / "logs.npz", log_likelihoods=True)
    torch.testing.assert_close(
        found.probabilities, table.probabilities, rtol=1e-12, atol=1e-15
    )
    frame = pd.DataFrame(
        {"item": ["a", "b"], "model": "m", "p0": [-1.0, -1.0], "p1": [-1.0, np.nan]}
    )
    frame.to_csv(tmp_path / "logs.csv", index=False)
    found = read_responses(tmp_path / "logs.csv", log_likelihoods=True)
    assert torch.as_tensor(found.probabilities).tolist() == [[[0.5, 0.5], [1.0, 0.0]]]
    table.frame.to_csv(tmp_path / "scores.csv")
    with pytest.raises(DataError, match=r"log_likelihoods: .* holds scores only"):
        read_responses(tmp_path / "scores.csv", log_likelihoods=True)


def test_classes_that_an_item_lacks_are_padding(tmp_path: Path) -> None:
    text = "item,model,p0,p1,p2\na,m,0.5,0.5,\nb,m,0.2,0.2,0.6\n"
    (tmp_path / "ragged.csv").write_text(text)
    found = read_responses(tmp_path / "ragged.csv")
    assert torch.as_tensor(found.probabilities).tolist() == [
        [[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]]
    ]


def test_items_that_no_model_answered_are_absent(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text("item,x,y\na,1,0\nb,,NA\nc,,0.5\n")
    found = read_responses(tmp_path / "wide.csv")
    assert found.items == ("a", "c")
    (tmp_path / "empty.csv").write_text("item,x\na,\n")
    with pytest.raises(DataError, match="expected numbers, found none"):
        read_responses(tmp_path / "empty.csv")


def test_a_missing_answer_of_one_model_is_named(tmp_path: Path) -> None:
    references = population(30, 20)
    plan = DiscoPlan.fit(references, DiscoOptions(k=4, predictor="ridge"))
    frame = long_table(references.subset(models=["m0", "m1"]))
    gone = (frame["item"] == plan.items[2]) & (frame["model"] == "m1")
    frame[~gone].to_csv(tmp_path / "gap.csv", index=False)
    with pytest.raises(
        DataError,
        match=f"missing probabilities on chosen items: '{plan.items[2]} of m1'$",
    ):
        plan.predict(read_responses(tmp_path / "gap.csv"))
    scores = DiscoOptions(k=4, predictor="ridge", signature="scores")
    plan = DiscoPlan.fit(references, scores)
    with pytest.raises(DataError, match=f"missing scores on .* '{plan.items[2]} of m1"):
        plan.predict(read_responses(tmp_path / "gap.csv"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("item,model,p0,p2\na,m,0.5,0.5\n", r"expected columns p0, p1"),
        ("item,model\na,m\n", "expected a column score, or p0"),
        ("item,model,score\na,m,1\na,m,0\n", "given twice: 'a of m'"),
        ("item,model,score\na,m,right\n", "expected numbers, got .*right"),
        ("item,m\na,right\n", "expected numeric columns"),
        ("item\na\n", "expected ids and a column of scores"),
    ],
)
def test_tables_of_no_such_form_are_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        read_responses(tmp_path / "table.csv")


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_responses(tmp_path / "none.parquet")
    with pytest.raises(DataError, match="expected one of"):
        read_responses(tmp_path / "responses.txt")
    (tmp_path / "broken.npz").write_bytes(b"PK")
    with pytest.raises(DataError, match=r"not a readable \.npz"):
        read_responses(tmp_path / "broken.npz")
