"""Laws evaluated for many samples, each with its arguments: derivatives, information, moments, distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from laws.measuring import CASES, POSITIVE, assert_derivatives_are_differences, filled, free
from scipy import stats

import grisaille as gr
from grisaille import laws


@pytest.mark.parametrize("name", CASES)
def test_derivatives_by_arguments_are_differences(name: str) -> None:
    law = filled(name)
    for share in (0.15, 0.5, 0.9):
        assert_derivatives_are_differences(law, law.quantile(np.full(3, share)))


@pytest.mark.parametrize("name", CASES)
def test_information_is_the_mean_of_squared_scores_and_of_minus_the_curvature(name: str) -> None:
    law = filled(name)
    names = free(law)
    if law.is_discrete:
        values = np.arange(400.0)[:, None] + np.zeros(3)
        share = np.exp(law.log_density(values))
    else:  # the ends of the middle rule need few points where u is spread by a power
        t = np.linspace(-4.0, 4.0, 1601)[1:-1, None]
        u = stats.norm.cdf(np.sinh(t))
        values = law.quantile(u)
        share = stats.norm.pdf(np.sinh(t)) * np.cosh(t) * 0.005
        values = np.where((u > 1e-14) & (u < 1 - 1e-14), values, law.quantile(np.full(3, 0.5)))
        share = np.where((u > 1e-14) & (u < 1 - 1e-14), share, 0.0) * np.ones(3)
    at = law.by_arguments(values, names)
    squares = np.einsum("qn,qni,qnj->nij", share, at.gradient, at.gradient)
    found = law.information(names)
    size = np.sqrt(np.einsum("nii->ni", found))
    scale = size[:, :, None] * size[:, None, :]
    assert found.shape == (3, len(names), len(names))
    np.testing.assert_allclose(found / scale, squares / scale, atol=2e-6)
    np.testing.assert_allclose(found / scale, -np.einsum("qn,qnij->nij", share, at.hessian) / scale, atol=1e-4)


@dataclass(frozen=True)
class _Gumbel(laws.Law):
    """A law from outside: a formula and a location."""

    mode_: float | None
    scale: float
    location: ClassVar[str] = "mode_"

    def formula(self, value):
        z = (value - self.mode_) / self.scale
        return -z - np.exp(-z) - np.log(self.scale)


@dataclass(frozen=True)
class _Geometric(laws.Law):
    """One of counts."""

    level: float | None
    location: ClassVar[str] = "level"
    is_discrete: ClassVar[bool] = True

    @property
    def support(self):
        return 0.0, np.inf

    def formula(self, value):
        return value * np.log(self.level / (1 + self.level)) - np.log(1 + self.level)


OUTSIDE = [
    (_Gumbel(scale=0.7).filled({"mode_": np.array([-2.0, 0.0, 30.0])}), stats.gumbel_r([-2.0, 0.0, 30.0], 0.7)),
    (_Geometric().filled({"level": POSITIVE}), stats.nbinom(1, 1 / (1 + POSITIVE))),
]


@pytest.mark.parametrize(("law", "other"), OUTSIDE, ids=["continuous", "counts"])
def test_a_law_from_outside_needs_a_formula_only(law: laws.Law, other) -> None:
    share = np.array([[1e-9], [0.01], [0.5], [0.97], [1 - 1e-9]])
    x = other.ppf(share)
    np.testing.assert_allclose(law.quantile(share), x, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(law.distribution(x), other.cdf(x), rtol=1e-10)
    np.testing.assert_allclose(law.distribution_below(x), other.cdf(x - 1 if law.is_discrete else x), rtol=1e-9)
    np.testing.assert_allclose(law.mean, other.mean(), rtol=1e-10)
    np.testing.assert_allclose(law.deviation, other.std(), rtol=1e-9)
    assert_derivatives_are_differences(law, x[1])
    if not law.is_discrete:
        euler = 0.5772156649015329
        about = [[1, euler - 1], [euler - 1, (1 - euler) ** 2 + np.pi**2 / 6]]
        np.testing.assert_allclose(law.information(("mode_", "scale"))[1], np.array(about) / 0.49, rtol=1e-6)
        limits = np.full(3, 60.0)
        np.testing.assert_allclose(law.log_interval(limits, np.full(3, np.inf)), other.logsf(60.0), rtol=1e-11)
    else:
        np.testing.assert_allclose(law.information(("level",))[:, 0, 0], 1 / (POSITIVE * (1 + POSITIVE)), rtol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_moments_by_quadrature_are_the_closed_ones(name: str) -> None:
    from grisaille.laws.law_moments import deviation_of, mean_of

    law = filled(name)
    np.testing.assert_allclose(mean_of(law), law.mean, rtol=1e-9)
    np.testing.assert_allclose(deviation_of(law), law.deviation, rtol=1e-4 if name == "narrow gamma" else 1e-6)
    assert laws.Student(0.0, 2.0, 1.0).deviation == np.inf == deviation_of(laws.Student(0.0, 2.0, 1.0))


class Formula:
    is_formula = True


def test_arguments_are_named_through_laws_inside() -> None:
    inner, level = laws.Normal(std=Formula()), Formula()
    law = laws.Censored(below=level, of=laws.Rounded(0.5, inner))
    assert list(law.arguments) == ["below", "above", "of.step", "of.of.mean", "of.of.std"]
    assert law.arguments["below"] is level and law.location_path == "of.of.mean"
    assert law.held_arguments == ("below", "above", "of.step") and laws.Binomial(n=3).held_arguments == ("n",)
    at = law.filled({"below": np.zeros(2), "of.of.mean": np.ones(2), "of.of.std": 0.3})
    assert np.isfinite(at.log_density([0.0, 1.5])).all() and law.of.of.mean is None
    with pytest.raises(gr.ModelError, match=r"no argument 'of\.std'; it has below, above"):
        law.filled({"of.std": 1.0})
    with pytest.raises(gr.ModelError, match="no derivative by 'below'"):
        at.by_arguments(np.zeros(2), ("below",))


def test_there_is_no_density_where_arguments_make_no_law() -> None:
    law = laws.Gamma(shape=2.0).filled({"mean": np.array([-1.0, 1.0, 1.0])})
    at = law.by_arguments(np.array([1.0, -1.0, 1.0]), ("mean",))
    assert (at.value[:2] == -np.inf).all() and np.isfinite(at.value[2])
    assert (at.gradient[:2] == 0).all() and (at.hessian[:2] == 0).all() and at.gradient[2] == 0


REFUSED = [
    (laws.Poisson(), [1.0, 2.5], (1, "is 2.5; counts are whole numbers")),
    (laws.Binomial(n=3), [3.0, 0.0, 4.0], (2, "is 4; counts are whole numbers from 0 to 3")),
    (laws.Gamma(shape=1.0), [0.5, -1.0], (1, "is -1; values of Gamma lie from 0 up")),
    (laws.Rounded(0.5, laws.Normal(std=1.0)), [1.5, 1.7], (1, "is 1.7; rounded values are multiples of step = 0.5")),
    (laws.Censored(0.1, None, laws.LogNormal(log_std=1.0)), [-1.0, 0.1, 2.0], None),
    (laws.Normal(std=1.0), [np.nan, -1e9], None),
]


@pytest.mark.parametrize(("law", "values", "said"), REFUSED)
def test_values_that_cannot_be_are_refused_in_words(law: laws.Law, values: list[float], said) -> None:
    found = law.refused_values(values)
    assert found == said


NO_LAWS = [
    (laws.Censored(of=laws.Normal(std=1.0)), {"below": [0.0, 2.0], "above": 1.0}, (1, "below = 2 is not smaller than")),
    (laws.Truncated(of=laws.Poisson()), {"below": [2.0, 3.0, 4.0], "above": 4.0}, (2, "below = 4 is not smaller than")),
    (laws.Censored(of=laws.Rounded(1.0, laws.Normal(std=1.0))), {"of.step": [0.5, 0.0]}, (1, "step = 0 is not posi")),
    (laws.Binomial(n=3), {"n": [3.0, 2.5]}, (1, "n = 2.5 is not a whole number from 1 up")),
]


@pytest.mark.parametrize(("law", "arguments", "said"), NO_LAWS, ids=lambda x: type(x).__name__)
def test_columns_that_make_no_law_are_refused_in_words(law: laws.Law, arguments, said: tuple[int, str]) -> None:
    found = law.filled(arguments).refused_arguments()
    assert found is not None and found[0] == said[0] and found[1].startswith(said[1])
    assert law.filled({path: np.ravel(v)[0] for path, v in arguments.items()}).refused_arguments() is None


PRIORS = [
    (laws.Poisson(3.0), "is a law of counts, for the distribution= of an output. A prior needs a continuous law"),
    (laws.Rounded(0.1, laws.Normal(0.0, 1.0)), "is a law of values that have been recorded"),
    (laws.Censored(0.1, None, laws.Normal(0.0, 1.0)), "is a law of values that have been recorded"),
    (laws.Truncated(0.0, None, laws.Poisson(3.0)), "is a law of counts"),
    (laws.Normal(0.0, Formula()), "'std' of the prior .* is a formula of the model"),
]


@pytest.mark.parametrize(("law", "said"), PRIORS, ids=lambda x: type(x).__name__)
def test_what_can_be_no_prior_is_refused(law: laws.Law, said: str) -> None:
    from grisaille.laws.law_content import refuse_no_prior

    with pytest.raises(gr.ModelError, match=said):
        refuse_no_prior("k", law)


def test_laws_inside_laws_are_kept_as_data() -> None:
    from grisaille.laws.law_content import call_text, from_data, to_data

    law = laws.Censored(0.1, None, laws.Rounded(0.05, laws.Truncated(0.0, None, laws.Gamma(shape=2.0))))
    assert from_data(to_data(law)) == law
    assert call_text(law.of) == (
        "gr.laws.Rounded(step=0.05, of=gr.laws.Truncated(below=0.0, above=None, of=gr.Gamma(mean=None, shape=2.0)))"
    )
    assert from_data(to_data(laws.NegativeBinomial(size=3.0))) == laws.NegativeBinomial(None, 3.0)
