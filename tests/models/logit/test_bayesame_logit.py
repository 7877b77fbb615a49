from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.means import ConstantMean, Mean
from oracles import Problem, covariance_by_loops, make_problem
from torch import Tensor

from gp_eval.acquisition import qPerformanceInformationGain
from gp_eval.data import References
from gp_eval.likelihoods import BucketGaussianLikelihood
from gp_eval.loop import EvaluationLoop
from gp_eval.models import BucketGP, PerformanceModel, SupportsRefit, make_model
from gp_eval.models.logit import BayesAMELogit
from gp_eval.models.logit.scores import ScoreKind
from gp_eval.session import Session
from gp_eval.settings import exact_inference
from gp_eval.stopping import StoppingRule

KINDS: list[ScoreKind] = ["binary", "continuous"]
THETAS = ["linear", "probit", "monte-carlo"]
UNIQUE, SHARED = (1,) * 24, (6, 1, 5, 6, 4)


def make(kind: ScoreKind, counts: tuple[int, ...], *, weighted: bool = False):
    """A problem whose scores are of that kind, some of them exactly 0 and 1."""
    problem = make_problem(2, counts=counts, n_references=9, weighted=weighted)
    phi = problem.references.scores
    if kind == "binary":
        phi, problem.scores = (phi > 0.5).double(), (problem.scores > 0.4).double()
    else:
        problem.scores = (1.4 * problem.scores - 0.2).clamp(0, 1)
    problem.references = References(
        phi,
        problem.references.items,
        problem.references.models,
        item_weights=problem.references.item_weights if weighted else None,
    )
    problem.buckets = type(problem.buckets).from_references(problem.references)
    return problem


def tell(model, problem: Problem, items: list[int]) -> None:
    model.condition(torch.tensor(items), problem.scores[items])


def prior(problem: Problem) -> tuple[Tensor, Tensor]:
    """Of the latent values at alpha = beta = 1, bucket by bucket."""
    phi = problem.buckets.phi
    n_references = phi.shape[1]
    mean = [
        math.log((float(row.sum()) + 0.5) / (n_references - float(row.sum()) + 0.5))
        for row in phi
    ]
    return torch.tensor(mean, dtype=torch.float64), covariance_by_loops(phi, 1.0, 1.0)


def latent(problem: Problem, coreset: list[int], kind: ScoreKind, sigma2: float):
    """Mean and covariance of the latent values, over the evaluated items."""
    mean, covariance = prior(problem)
    bucket = problem.buckets.item_bucket[coreset]
    k, y = covariance[bucket][:, bucket], problem.scores[coreset]
    cross, mu = covariance[:, bucket], mean[bucket]
    if kind == "continuous":
        clipped = y.clamp(0.01, 0.99)
        logits = torch.log(clipped / (1 - clipped))
        noise = torch.diag(sigma2 * problem.buckets.counts[bucket])
        middle = torch.linalg.inv(k + noise)
        return (
            mean + cross @ middle @ (logits - mu),
            covariance - cross @ middle @ cross.T,
        )
    f, eye = mu, torch.eye(len(coreset)).double()
    for _ in range(50):
        p = 1 / (1 + torch.exp(-f))
        w = torch.diag(p * (1 - p))
        f = mu + k @ torch.linalg.solve(eye + w @ k, w @ (f - mu) + y - p)
    p = 1 / (1 + torch.exp(-f))
    middle = torch.linalg.inv(k + torch.diag(1 / (p * (1 - p))))
    return mean + cross @ (y - p), covariance - cross @ middle @ cross.T


class Literal:
    """Joint Gaussian belief about all item scores, linearised, item by item."""

    def __init__(
        self, problem: Problem, coreset: list[int], kind: ScoreKind, theta: str
    ) -> None:
        self.problem, self.coreset = problem, coreset
        unique = problem.buckets.unique()
        sigma2 = 1e-4 if unique else 1e-1
        f, covariance = latent(problem, coreset, kind, sigma2)
        if theta == "linear":
            problem.alpha = problem.beta = 1.0
            problem.sigma2 = sigma2
            t = problem.posterior(coreset)[0].clamp(0.01, 0.99)
            slope = t * (1 - t)
            self.theta = t + slope * (f - torch.log(t / (1 - t)))
        else:
            root = (1 + math.pi * covariance.diagonal() / 8).sqrt()
            self.theta = 1 / (1 + torch.exp(-f / root))
            slope = self.theta * (1 - self.theta) / root
        b = problem.buckets.item_bucket
        noise = slope
        if kind == "continuous":
            noise = slope**2 * sigma2 * problem.buckets.counts
        self.covariance = torch.outer(slope, slope)[b][:, b] * covariance[b][:, b]
        self.covariance += torch.diag(noise[b])
        self.rest = [i for i in range(problem.n_items) if i not in coreset]

    def variance(self) -> float:
        w = self.problem.weights
        return sum(
            float(w[i] * w[j] * self.covariance[i, j])
            for i in self.rest
            for j in self.rest
        )

    def mean(self, unique: bool) -> float:
        """Eq. (3) or Eq. (4)."""
        w, s, n = self.problem.weights, self.problem.scores, len(self.coreset)
        theta = self.theta[self.problem.buckets.item_bucket]
        if unique:
            observed = sum(float(w[i] * s[i]) for i in self.coreset)
            return observed + sum(float(w[i] * theta[i]) for i in self.rest)
        w = w * self.problem.n_items
        residual = sum(float(w[i] * (s[i] - theta[i])) for i in self.coreset) / n
        return residual + float((w * theta).mean())

    def gain(self, batch: list[int]) -> float:
        covariance = torch.stack(
            [
                sum(self.problem.weights[j] * self.covariance[i, j] for j in self.rest)
                for i in batch
            ]
        )
        block = self.covariance[batch][:, batch]
        taken = float(covariance @ torch.linalg.solve(block, covariance))
        return -0.5 * math.log(1 - taken / self.variance())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("theta", ["linear", "probit"])
@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
@pytest.mark.parametrize("kind", KINDS)
def test_belief_is_the_literal_one(
    kind: ScoreKind, counts: tuple[int, ...], theta: str, weighted: bool
) -> None:
    problem = make(kind, counts, weighted=weighted)
    model = BayesAMELogit(problem.references, theta=theta)
    assert model.kind == kind
    coreset = [3, 8, 0, 21, 15, 9, 4]
    tell(model, problem, coreset)
    literal = Literal(problem, coreset, kind, theta)
    belief = model.performance()
    assert float(belief.mean) == pytest.approx(literal.mean(model.unique), rel=1e-10)
    assert float(belief.variance) == pytest.approx(literal.variance(), rel=1e-9)
    gain = qPerformanceInformationGain(model.model)
    one = gain(torch.tensor(literal.rest).double().reshape(-1, 1, 1))
    for value, item in zip(one, literal.rest, strict=True):
        assert float(value) == pytest.approx(literal.gain([item]), rel=1e-8)
    pair = gain(torch.tensor([[[1.0], [2.0]]]).double())
    assert float(pair) == pytest.approx(literal.gain([1, 2]), rel=1e-8)


class PriorLogits(Mean):
    def forward(self, x: Tensor) -> Tensor:
        n_references = x.shape[-1]
        return torch.logit((x.sum(-1) + 0.5) / (n_references + 1))


@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
def test_continuous_posterior_is_the_exact_gp_of_the_logits(
    counts: tuple[int, ...],
) -> None:
    problem = make("continuous", counts)
    model = BayesAMELogit(problem.references, noise=0.03, theta="probit")
    coreset = [3, 8, 0, 21, 15, 9, 4]
    tell(model, problem, coreset)
    buckets = problem.buckets
    likelihood = BucketGaussianLikelihood().double()
    likelihood.noise = torch.tensor(0.03, dtype=torch.float64)
    logits = torch.logit(problem.scores[coreset].clamp(0.01, 0.99))
    gp = BucketGP(
        buckets.inputs[buckets.item_bucket[coreset]],
        logits.unsqueeze(-1),
        mean_module=PriorLogits(),
        likelihood=likelihood,
    )
    with exact_inference(), torch.no_grad():
        expected = gp.posterior(buckets.inputs)
        mean, variance = expected.mean.squeeze(-1), expected.variance.squeeze(-1)
    found = model.model.latent_posterior
    # GPyTorch's distances lose some digits: about 1e-14 in the covariance.
    torch.testing.assert_close(found.mean, mean, rtol=1e-9, atol=1e-10)
    torch.testing.assert_close(found.variance, variance, rtol=1e-9, atol=1e-10)


def test_binary_belief_is_near_the_exact_posterior() -> None:
    """Rescaled probit on Laplace, beside importance sampling of f and unseen scores.

    Means within 0.01; the variance within 10 %: f, and with it theta, is not Gaussian.
    """
    problem = make("binary", UNIQUE)
    model = BayesAMELogit(problem.references, theta="probit")
    coreset = list(range(12))
    tell(model, problem, coreset)
    mean, covariance = prior(problem)
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(200_000, 24, generator=generator, dtype=torch.float64)
    draws = draws[:, : mean.shape[0]]  # binary rows: not all of them differ
    theta = torch.sigmoid(mean + draws @ torch.linalg.cholesky(covariance).T)
    theta = theta[:, problem.buckets.item_bucket]
    y = problem.scores[coreset]
    weight = torch.where(y == 1, theta[:, coreset], 1 - theta[:, coreset]).prod(1)
    weight = weight / weight.sum()
    rest = theta[:, 12:].sum(1)
    expected = weight @ rest
    variance = weight @ (rest - expected).square()
    variance = variance + weight @ (theta * (1 - theta))[:, 12:].sum(1)
    belief = model.performance()
    truth = float(y.sum() + expected) / 24
    assert float(belief.mean) == pytest.approx(truth, abs=0.01)
    assert float(belief.variance) == pytest.approx(float(variance) / 24**2, rel=0.1)


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("counts", [UNIQUE, SHARED])
@pytest.mark.parametrize("kind", KINDS)
def test_all_items_known_is_exact(
    kind: ScoreKind, counts: tuple[int, ...], theta: str
) -> None:
    for weighted in (False, True):
        problem = make(kind, counts, weighted=weighted)
        model = BayesAMELogit(problem.references, theta=theta, refit_every=7)
        tell(model, problem, list(range(problem.n_items)))
        belief = model.performance()
        truth = float(problem.weights @ problem.scores)
        assert float(belief.mean) == pytest.approx(truth, rel=1e-14)
        if not weighted:
            assert float(belief.mean) == float(problem.scores.mean())
        assert float(belief.variance) == 0.0


@pytest.mark.parametrize("theta", THETAS)
@pytest.mark.parametrize("kind", KINDS)
def test_order_of_items_does_not_matter_between_updates(
    kind: ScoreKind, theta: str
) -> None:
    problem = make(kind, SHARED)
    one, two = (BayesAMELogit(problem.references, theta=theta) for _ in range(2))
    items = [3, 8, 0, 21, 15, 9, 4]
    tell(one, problem, items)
    for item in reversed(items):
        tell(two, problem, [item])
        two.performance()  # every mode is the start of the next
    first, second = one.performance(), two.performance()
    torch.testing.assert_close(first.mean, second.mean, rtol=1e-10, atol=0)
    torch.testing.assert_close(first.variance, second.variance, rtol=1e-9, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_relabelled_items_have_the_same_belief(kind: ScoreKind) -> None:
    problem = make(kind, SHARED)
    order = torch.randperm(22, generator=torch.Generator().manual_seed(0))
    names = [problem.references.items[i] for i in order]
    model = BayesAMELogit(problem.references)
    other = BayesAMELogit(problem.references.subset(items=names))
    coreset = [3, 8, 0, 21, 15]
    tell(model, problem, coreset)
    place = torch.argsort(order)
    other.condition(place[coreset], problem.scores[coreset])
    first, second = model.performance(), other.performance()
    torch.testing.assert_close(first.mean, second.mean, rtol=1e-10, atol=0)
    torch.testing.assert_close(first.variance, second.variance, rtol=1e-10, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_updates_lower_the_objective_and_can_be_replayed(kind: ScoreKind) -> None:
    problem = make(kind, UNIQUE)
    model = BayesAMELogit(problem.references, refit_every=8)
    tell(model, problem, list(range(18)))
    assert list(model.updates) == [8, 16]
    names = ["raw_alpha", "raw_beta", "auxiliary.raw_alpha", "auxiliary.raw_beta"]
    assert list(model.updates[8]) == names
    fresh = BayesAMELogit(problem.references)
    tell(fresh, problem, list(range(8)))
    start, _ = fresh.model.objective()(torch.ones(2, dtype=torch.float64))
    assert model.fits[8].value < float(start)
    again = BayesAMELogit(problem.references, refit_every=8)
    again.replay_updates(model.updates)
    tell(again, problem, list(range(18)))
    assert again.fits == {}
    assert again.updates == model.updates
    assert float(again.performance().mean) == float(model.performance().mean)


def test_an_update_acts_from_the_next_step_on() -> None:
    problem = make("binary", UNIQUE)
    model = BayesAMELogit(problem.references, refit_every=5)
    never = BayesAMELogit(problem.references, refit_every=None)
    tell(model, problem, [0, 1, 2, 3, 4])
    tell(never, problem, [0, 1, 2, 3, 4])
    assert float(model.performance().mean) == float(never.performance().mean)
    model.acquisition()
    assert list(model.updates) == [5]
    assert float(model.performance().mean) != float(never.performance().mean)


@pytest.mark.parametrize("kind", KINDS)
def test_runs_in_the_loop_and_several_asked_items_differ(kind: ScoreKind) -> None:
    problem = make(kind, UNIQUE)
    model = make_model("bayesame-logit", problem.references, refit_every=8)
    assert isinstance(model, PerformanceModel)
    assert isinstance(model, SupportsRefit)
    rule = StoppingRule(width=1e-9)
    loop = EvaluationLoop(model, problem.references, stop=rule)
    while not loop.done:
        items = loop.ask(3)
        assert len(set(items)) == len(items) > 0
        for item in items:
            loop.tell(item, float(problem.scores[item]))
    assert loop.estimate == pytest.approx(float(problem.scores.mean()), rel=1e-14)
    assert loop.width == 0.0


def test_regime_and_selection_are_bayesames() -> None:
    unique, shared = make("binary", UNIQUE), make("binary", SHARED)
    assert make_model("bayesame-logit", shared.references).acquisition() is None
    assert make_model("bayesame-logit-rs", unique.references).acquisition() is None
    active = make_model("bayesame-logit", unique.references).acquisition()
    assert isinstance(active, qPerformanceInformationGain)


def test_any_kernel_serves_and_the_auxiliary_model_has_its_own() -> None:
    problem = make("binary", UNIQUE)
    kernel = ScaleKernel(MaternKernel(nu=1.5)).double()
    model = BayesAMELogit(problem.references, covar_module=kernel, refit_every=10)
    tell(model, problem, list(range(12)))
    assert model.model.covar_module is kernel
    assert model.auxiliary is not None
    assert model.auxiliary.model.covar_module is not kernel
    scale = float(kernel.outputscale.detach())
    other = float(model.auxiliary.model.covar_module.outputscale.detach())
    assert scale != pytest.approx(other, rel=0.01)


def test_a_session_resumes_without_fitting_again(tmp_path: Path) -> None:
    problem = make("binary", UNIQUE)
    session = Session.create(
        tmp_path / "run",
        problem.references,
        target="t",
        model="bayesame-logit",
        model_options={"refit_every": 4, "theta": "linear"},
        stop=StoppingRule(width=1e-9),
    )
    for _ in range(10):
        item = session.ask(1)[0]
        session.tell(item, float(problem.scores[problem.references.items.index(item)]))
    mean = session.estimate().mean
    session.close()
    with Session.open(tmp_path / "run") as again:
        assert again.estimate().mean == mean


def test_what_cannot_be_is_refused() -> None:
    binary, continuous = make("binary", UNIQUE), make("continuous", UNIQUE)
    model = BayesAMELogit(binary.references)
    with pytest.raises(ValueError, match=r"expected 0 or 1, got 0.5 of item 3"):
        model.condition(torch.tensor([2, 3]), torch.tensor([1.0, 0.5]))
    assert model.model.n == 0
    model = BayesAMELogit(continuous.references)
    with pytest.raises(ValueError, match=r"expected 0 to 1, got 1.5 of item 3"):
        model.condition(torch.tensor([3]), torch.tensor([1.5]))
    for options, message in (
        ({"theta": "exact"}, "theta: expected one of"),
        ({"scores": "ordinal"}, "scores: expected one of"),
        ({"selection": "best"}, "selection: expected 'auto' or 'random'"),
        ({"clip": 0.5}, "clip: expected 0 < clip < 0.5"),
        ({"draws": 0}, "draws: expected at least 1"),
        ({"noise": 0.0}, r"noise: expected sigma\^2 > 0"),
        ({"noise": 0.1}, "noise: binary scores have no"),
        ({"refit_every": 0}, "refit_every: expected >= 1"),
        ({"mean_module": ConstantMean()}, None),
    ):
        if message is not None:
            with pytest.raises(ValueError, match=message):
                BayesAMELogit(binary.references, **options)
    outside = ConstantMean()
    outside.constant.data.fill_(1.5)
    with pytest.raises(ValueError, match=r"mean_module: expected means in \[0, 1\]"):
        BayesAMELogit(binary.references, mean_module=outside)
    wide = References(
        2 * continuous.references.scores,
        continuous.references.items,
        continuous.references.models,
    )
    with pytest.raises(ValueError, match=r"for scores in \[0, 1\], got"):
        BayesAMELogit(wide)
    with pytest.raises(RuntimeError, match="cannot be moved or cast"):
        BayesAMELogit(binary.references).model.float()
