from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from populations import population
from sklearn.decomposition import PCA
from sklearn.linear_model import Ridge

from gp_eval.data import References
from gp_eval.disco import (
    DiscoOptions,
    DiscoPlan,
    Responses,
    disagreement_of_probabilities,
    disagreement_of_scores,
    disagreement_order,
    fit_temperatures,
    soften,
)
from gp_eval.disco.signature_gp import FittedSignatureGP
from gp_eval.errors import DataError


def split(**options: object) -> tuple[References, References]:
    everyone = population(60, **options)  # type: ignore[arg-type]
    return (
        everyone.subset(models=everyone.models[:40]),
        everyone.subset(models=everyone.models[40:]),
    )


def test_the_published_pipeline_step_by_step() -> None:
    references, later = split()
    plan = DiscoPlan.fit(
        references, DiscoOptions(k=12, choice="pds", predictor="ridge", pca=10)
    )
    f = references.probabilities
    assert f is not None
    assert later.probabilities is not None
    pds = [sum(float(f[:, i, c].max()) for c in range(4)) for i in range(f.shape[1])]
    chosen = sorted(range(60), key=lambda i: -pds[i])[:12]
    assert plan.items == tuple(f"q{i}" for i in chosen)
    signatures = f[:, chosen].reshape(40, -1).numpy()
    pca = PCA(10, svd_solver="full").fit(signatures)
    truth = references.scores.mean(0).numpy()
    ridge = Ridge(alpha=10.0).fit(pca.transform(signatures), truth)
    new = later.probabilities[:, chosen].reshape(20, -1).numpy()
    found = plan.predict(later)
    np.testing.assert_allclose(
        found.mean.numpy(), ridge.predict(pca.transform(new)), rtol=1e-9
    )
    assert found.models == later.models
    assert found.n_ignored == 48


def test_scores_are_the_signature_where_there_is_nothing_else() -> None:
    references, later = split()
    bare, frame = (References(r.scores, r.items, r.models) for r in (references, later))
    plan = DiscoPlan.fit(bare, DiscoOptions(k=15, predictor="ridge", pca=None))
    order = disagreement_order(disagreement_of_scores(bare.scores).jsd)[:15]
    assert plan.items == tuple(bare.items[i] for i in order)
    ridge = Ridge(alpha=10.0).fit(bare.scores[order].T, bare.performance)
    expected = ridge.predict(later.scores[order].T)
    np.testing.assert_allclose(plan.predict(frame).mean.numpy(), expected, rtol=1e-9)
    told = DiscoPlan.fit(
        references,
        DiscoOptions(
            k=15, predictor="ridge", pca=None, signature="scores", choose_from="scores"
        ),
    )
    assert told.predict(later).mean.tolist() == plan.predict(frame).mean.tolist()


def test_the_target_is_the_weighted_mean() -> None:
    references, _ = split(weighted=True)
    assert references.is_weighted
    plan = DiscoPlan.fit(references, DiscoOptions(k=40, predictor="knn"))
    expected = references.item_weights @ references.scores
    assert plan.targets.tolist() == expected.tolist()
    nearest = plan.predict(references).mean
    assert nearest.tolist() == expected.tolist()  # each is its own nearest
    macro = DiscoPlan.fit(references.macro(), DiscoOptions(k=40))
    by_group = torch.stack([references.scores[g::3].mean(0) for g in range(3)])
    torch.testing.assert_close(macro.targets, by_group.mean(0))


@pytest.mark.parametrize("choice", ["jsd", "pds", "pds-per-class", "random"])
@pytest.mark.parametrize("predictor", ["gp", "ridge"])
def test_plans_predict_later_models(choice: str, predictor: str) -> None:
    references, later = split()
    options = DiscoOptions(k=30, choice=choice, predictor=predictor)  # type: ignore[arg-type]
    found = DiscoPlan.fit(references, options).predict(later)
    error = float((found.mean - later.performance).abs().mean())
    constant = float((references.performance.mean() - later.performance).abs().mean())
    assert error < 0.3 * constant
    assert (found.interval() is None) == (predictor == "ridge")


def test_the_gp_sees_whole_signatures() -> None:
    references, later = split()
    plan = DiscoPlan.fit(references, DiscoOptions(k=30))
    assert isinstance(plan.predictor, FittedSignatureGP)
    rows = [references.items.index(item) for item in plan.items]
    assert references.probabilities is not None
    assert later.probabilities is not None
    signatures = references.probabilities[:, rows].reshape(40, -1)
    gp = FittedSignatureGP(
        signatures - signatures.mean(0), plan.targets, plan.predictor.hyperparameters
    )
    new = later.probabilities[:, rows].reshape(20, -1) - signatures.mean(0)
    found, expected = plan.predict(later), gp.predict(new)
    assert found.std is not None
    assert expected.std is not None
    torch.testing.assert_close(found.mean, expected.mean, rtol=1e-8, atol=0.0)
    torch.testing.assert_close(found.std, expected.std, rtol=1e-8, atol=0.0)


def test_intervals_from_few_references_hold() -> None:
    """Of 60 features 14 references span 13: components alone would cover 0.1."""
    covered = []
    for seed in range(12):
        everyone = population(60, seed=seed)
        references = everyone.subset(models=everyone.models[:14])
        later = everyone.subset(models=everyone.models[14:])
        plan = DiscoPlan.fit(references, DiscoOptions(k=15, choice="random", seed=seed))
        interval = plan.predict(later).interval()
        assert interval is not None
        inside = (interval[0] <= later.performance) & (later.performance <= interval[1])
        covered.append(float(inside.double().mean()))
    assert sum(covered) / len(covered) > 0.85


@pytest.mark.parametrize("choice", ["jsd", "pds", "pds-per-class"])
def test_the_plain_mean_of_disagreed_items_is_refused(choice: str) -> None:
    with pytest.raises(ValueError, match="needs choice='random'.*off by 14 to 48"):
        DiscoOptions(choice=choice, predictor="mean")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="chosen by 'given'"):
        DiscoOptions(choice="given", predictor="mean")


def test_the_mean_of_random_items_is_their_weighted_mean() -> None:
    references, later = split(weighted=True)
    plan = DiscoPlan.fit(
        references, DiscoOptions(k=20, choice="random", predictor="mean", seed=5)
    )
    rows = [references.items.index(item) for item in plan.items]
    weights = references.item_weights[rows]
    expected = weights @ later.scores[rows] / weights.sum()
    torch.testing.assert_close(plan.predict(later).mean, expected)


def test_the_seed_fixes_a_plan_and_the_global_generators_play_no_part() -> None:
    references, later = split()
    options = DiscoOptions(k=10, guiding=5, choice="pds", predictor="random-forest")
    first = DiscoPlan.fit(references, options)
    torch.manual_seed(17)
    second = DiscoPlan.fit(references, options)
    assert first.items == second.items
    assert first.predict(later).mean.tolist() == second.predict(later).mean.tolist()
    other = DiscoPlan.fit(references, options.model_copy(update={"seed": 1}))
    assert other.items != first.items


def test_guiding_models_and_strata_decide_the_choice() -> None:
    references, _ = split()
    plan = DiscoPlan.fit(references, DiscoOptions(k=30, stratify=True))
    groups = [references.groups[references.items.index(i)] for i in plan.items]  # type: ignore[index]
    assert {groups.count(g) for g in ("g0", "g1", "g2")} == {10}
    few = DiscoPlan.fit(references, DiscoOptions(k=30, guiding=2))
    assert set(few.items) != set(plan.items)


def test_temperatures_are_fitted_where_labels_are_known() -> None:
    """A model that is only too sure of itself has the same signature as before."""
    references, later = split()
    options = DiscoOptions(k=40, temperature=True)
    plan = DiscoPlan.fit(references, options)
    assert references.labels is not None
    assert references.probabilities is not None
    temperatures = fit_temperatures(references.probabilities, references.labels)
    scores = disagreement_of_probabilities(
        references.probabilities, temperatures=temperatures
    )
    order = disagreement_order(scores.jsd)[:40].tolist()
    assert plan.items == tuple(references.items[i] for i in order)
    assert later.probabilities is not None
    rows, later_labels = torch.tensor(order), references.labels[order]
    # A step of the grid, so that the fitted temperature moves with it.
    step = torch.full((20,), float(np.exp(-0.25)), dtype=torch.float64)
    sharp = soften(later.probabilities, step)
    moved = fit_temperatures(sharp[:, rows], later_labels).log()
    moved -= fit_temperatures(later.probabilities[:, rows], later_labels).log()
    inside = (moved - 0.25).abs() < 1e-9  # the others are at the end of the grid
    assert int(inside.sum()) >= 5

    def change(plan: DiscoPlan) -> torch.Tensor:
        first, second = (
            plan.predict(Responses(later.items, later.models, probabilities=p)).mean
            for p in (later.probabilities, sharp)
        )
        return (first - second)[inside].abs()

    assert float(change(plan).max()) < 1e-8
    without = DiscoPlan.fit(references, DiscoOptions(k=40))
    assert float(change(without).min()) > 1e-5


def test_one_model_is_predicted_as_it_is_among_others() -> None:
    references, later = split()
    plan = DiscoPlan.fit(references, DiscoOptions(k=20, temperature=True))
    together = plan.predict(later).mean
    alone = plan.predict(later.subset(models=[later.models[7]])).mean
    assert float(alone[0]) == pytest.approx(float(together[7]), rel=1e-12)


def test_responses_come_in_any_order_and_extra_ones_are_counted() -> None:
    references, later = split()
    options = DiscoOptions(k=8, signature="scores", predictor="gp")
    plan = DiscoPlan.fit(references, options)
    expected = plan.predict(later)
    frame = later.frame.sample(frac=1.0, random_state=0)
    found = plan.predict(frame)
    assert found.mean.tolist() == expected.mean.tolist()
    assert found.n_ignored == 52
    exact = frame.loc[list(plan.items)]
    assert plan.predict(exact).n_ignored == 0


def test_missing_chosen_items_are_listed() -> None:
    references, later = split()
    plan = DiscoPlan.fit(references, DiscoOptions(k=8, signature="scores"))
    frame = later.frame
    with pytest.raises(DataError, match=r"2 of the 8 chosen items are missing: ") as e:
        plan.predict(frame.drop(index=list(plan.items[3:5])))
    assert plan.items[3] in str(e.value)
    assert plan.items[4] in str(e.value)
    frame = frame.copy()
    frame.loc[plan.items[2], frame.columns[0]] = np.nan
    with pytest.raises(DataError, match=f"missing scores .*'{plan.items[2]} of m40'"):
        plan.predict(frame)
    frame.loc[plan.items[2], frame.columns[0]] = np.inf
    with pytest.raises(DataError, match="missing finite scores on chosen items"):
        plan.predict(frame)


def test_responses_must_be_what_signatures_are_made_of() -> None:
    references, later = split()
    plan = DiscoPlan.fit(references, DiscoOptions(k=8))
    with pytest.raises(DataError, match="signatures are class probabilities"):
        plan.predict(later.frame)
    assert later.probabilities is not None
    ids = later.items, later.models
    first = f"not so for '{plan.items[0]} of {later.models[0]}'"
    with pytest.raises(DataError, match=first):
        plan.predict(Responses(*ids, probabilities=later.probabilities[..., :3]))
    more = torch.nn.functional.pad(later.probabilities, (0, 1), value=0.1)
    with pytest.raises(DataError, match="expected 4 classes .* got 5"):
        plan.predict(Responses(*ids, probabilities=more))
    padded = torch.nn.functional.pad(later.probabilities, (0, 27))
    assert torch.equal(
        plan.predict(Responses(*ids, probabilities=padded)).mean,
        plan.predict(later).mean,
    )
    with pytest.raises(DataError, match="log-likelihoods go through"):
        plan.predict(Responses(*ids, probabilities=later.probabilities.log()))
    by_scores = DiscoPlan.fit(references, DiscoOptions(k=8, signature="scores"))
    with pytest.raises(DataError, match="signatures are scores, got none"):
        by_scores.predict(Responses(*ids, probabilities=later.probabilities))


def test_items_of_another_method_can_be_given() -> None:
    references, later = split()
    items = ["q7", "q3", "q50", "q11"]
    plan = DiscoPlan.fit(references, DiscoOptions(choice="given"), items=items)
    assert plan.items == tuple(items)
    assert plan.predict(later).mean.shape == (20,)
    with pytest.raises(DataError, match="items: not in these references: 'nope'"):
        DiscoPlan.fit(references, DiscoOptions(choice="given"), items=["nope"])
    with pytest.raises(ValueError, match="expected with choice='given' only"):
        DiscoPlan.fit(references, items=items)
    with pytest.raises(ValueError, match="without items"):
        DiscoPlan.fit(references, DiscoOptions(choice="given"))


def test_what_the_references_lack_is_named() -> None:
    references, _ = split()
    bare = References(references.scores, references.items, references.models)
    for options, message in (
        (DiscoOptions(k=61), "k: expected at most the 60 items, got 61"),
        (DiscoOptions(k=5, stratify=True), "stratify: the references have no groups"),
        (DiscoOptions(k=5, signature="probabilities"), "signature: .* no prob"),
        (DiscoOptions(k=5, choose_from="probabilities"), "choose_from: .* no prob"),
        (DiscoOptions(k=5, guiding=41), "guiding: expected 2..40 models, got 41"),
    ):
        with pytest.raises(ValueError, match=message):
            DiscoPlan.fit(bare, options)
    gaps = references.scores.clone()
    gaps[2, 3] = torch.nan
    holed = References(gaps, references.items, references.models, missing="keep")
    with pytest.raises(DataError, match="1 missing cells"):
        DiscoPlan.fit(holed)
    unlabelled = References(
        references.scores,
        references.items,
        references.models,
        probabilities=references.probabilities,
    )
    with pytest.raises(DataError, match="temperature: needs the labels"):
        DiscoPlan.fit(unlabelled, DiscoOptions(k=5, temperature=True))


def test_pds_of_scores_0_and_1_is_refused_by_a_plan() -> None:
    references, _ = split()
    binary = References(
        (references.scores > 0.5).double(), references.items, references.models
    )
    with pytest.raises(ValueError, match="takes only the values 1 and 2"):
        DiscoPlan.fit(binary, DiscoOptions(k=5, choice="pds"))
    assert len(DiscoPlan.fit(binary, DiscoOptions(k=5)).items) == 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 0}, "k"),
        ({"guiding": 1}, "guiding"),
        ({"choice": "kl"}, "choice"),
        ({"predictor": "mlp"}, "predictor"),
        ({"colour": 1}, "colour"),
        (
            {"choice": "random", "predictor": "mean", "signature": "probabilities"},
            "the mean is of scores",
        ),
        (
            {"choice": "random", "predictor": "mean", "predictor_options": {"a": 1}},
            "'mean' takes none",
        ),
        ({"choice": "random", "stratify": True}, "'random' is a uniform sample"),
        ({"choice": "random", "guiding": 5}, "'random' is a uniform sample"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        DiscoOptions(**options)  # type: ignore[arg-type]


def test_responses_are_checked() -> None:
    with pytest.raises(DataError, match=r"scores: expected shape \(2, 1\)"):
        Responses(("a", "b"), ("m",), torch.zeros(3, 1))
    with pytest.raises(DataError, match=r"probabilities: expected shape \(1, 2\) \+"):
        Responses(("a", "b"), ("m",), probabilities=torch.zeros(2, 1, 4))
    with pytest.raises(DataError, match="responses: expected numeric columns"):
        Responses.from_frame(pd.DataFrame({"item": ["a", "b"], "m": [0.0, 1.0]}))
    with pytest.raises(DataError, match="items: expected unique ids"):
        Responses.from_frame(pd.DataFrame({"m": [0.0, 1.0]}, index=["a", "a"]))
