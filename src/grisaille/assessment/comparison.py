"""Fits side by side.

    AIC = −2 log L + 2k,     BIC = −2 log L + k log N,     2 (log L₁ − log L₀) ~ χ²(k₁ − k₀) if the smaller holds

compare fits of the same measurements by likelihood; where noise was estimated F takes the place of χ² (``law``). Where
the smaller has levels of noise at zero that the larger estimates, the law is the mixture of ``boundary``. Criteria
that are not likelihoods (robust losses, simulated prediction errors) have neither, and the table says so. Reference:
K. Burnham, D. Anderson, Model Selection (2002).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from grisaille.assessment.boundary import mixture_p, mixture_weights, variance_covariance
from grisaille.assessment.deviance_law import law_of
from grisaille.assessment.ratio_test import ROUNDING_OF_LOG_LIKELIHOOD
from grisaille.bound_experiment.unknown import Unknown
from grisaille.errors import EstimationError
from grisaille.estimation.density.criterion_kinds import criterion_around
from grisaille.estimation.estimator import Estimator
from grisaille.estimation.fitted import Fitted
from grisaille.estimation.measurements.law_properties import laws_of
from grisaille.model.lowering.lowering import evaluate
from grisaille.structure.parameters import evaluate_parameters
from grisaille.structure.structure_cache import structure_of

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class ComparedFits:
    """A table of fits, likelihood-ratio tests of those that are nested, and remarks."""

    table: pd.DataFrame
    """One row per fit: parameters, samples, log_likelihood, aic, bic, delta_aic, then rms and fit_percent by output."""
    tests: pd.DataFrame
    """One row per nested pair: ratio, degrees_of_freedom, at_zero (how many of these are levels at zero),
    residual_degrees (of the noise, where p is that of an F test; infinite for χ²), p."""
    notes: tuple[str, ...]
    fits: Mapping[str, Fitted] = field(default_factory=dict, repr=False)
    """What was compared, by label."""

    @property
    def best(self) -> str | None:
        """Return the label of the least AIC; None where AIC cannot be compared."""
        aic = self.table["delta_aic"]
        return None if aic.isna().all() else str(aic.idxmin())

    def __str__(self) -> str:
        lines = [self.table.to_string(float_format=lambda v: f"{v:.6g}", na_rep="—")]
        for label, row in self.tests.iterrows():
            verdict = "the larger fits better" if row.p < 0.05 else "the smaller suffices"
            n, levels = int(row.degrees_of_freedom), int(row.at_zero)
            zero = f", {levels} of them at zero in the smaller" if levels else ""
            zero += f", F with {row.residual_degrees:.4g} of the residuals" if np.isfinite(row.residual_degrees) else ""
            lines.append(
                f"• {label}: likelihood ratio {row.ratio:.4g} on {n} degree{'' if n == 1 else 's'} of freedom{zero}, "
                f"p = {row.p:.3g}: {verdict}."
            )
        return "\n".join([*lines, *(f"• {note}" for note in self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        notes = "".join(f"<li>{escape(n)}</li>" for n in self.notes)
        return f"{self.table.to_html()}{self.tests.to_html() if len(self.tests) else ''}<ul>{notes}</ul>"


def compare_fits(fits: Mapping[str, Fitted], nested: Iterable[tuple[str, str]] = ()) -> ComparedFits:
    """Return the tables of ``gr.compare``."""
    import pandas as pd

    if not isinstance(fits, Mapping) or not fits:
        raise EstimationError("compare takes a dict of fits by label: gr.compare({'first': fit1, 'second': fit2}).")
    for label, fit in fits.items():
        if not isinstance(fit, Fitted):
            raise EstimationError(f"compare: '{label}' is a {type(fit).__name__}, not a fit.")
    table = pd.DataFrame.from_dict({label: _row(fit) for label, fit in fits.items()}, orient="index")
    same = len({_data_key(fit) for fit in fits.values()}) == 1
    aic = table["aic"]
    table.insert(5, "delta_aic", aic - aic.min() if same else np.nan)
    ratios = {f"{small} ⊂ {large}": _ratio(fits, small, large) for small, large in nested}
    columns = ["ratio", "degrees_of_freedom", "at_zero", "residual_degrees", "p"]
    tests = pd.DataFrame.from_dict(ratios, orient="index", columns=columns)
    return ComparedFits(table, tests, tuple(_notes(fits, same)), dict(fits))


def _row(fit: Fitted) -> dict[str, float]:
    e = fit.estimate
    row: dict[str, float] = {
        "parameters": int(e.free.sum()) + len(e.noise),
        "samples": e.count,
        "log_likelihood": e.log_likelihood if e.is_likelihood else np.nan,
        "aic": fit.aic if e.is_likelihood else np.nan,
        "bic": fit.bic if e.is_likelihood else np.nan,
    }
    for output, quality in fit.quality.iterrows():
        row[f"rms({output})"] = float(quality.rms)
        row[f"fit_percent({output})"] = float(quality.fit_percent)
    return row


def _ratio(fits: Mapping[str, Fitted], small: str, large: str) -> tuple[float, int, int, float, float]:
    for label in (small, large):
        if label not in fits:
            raise EstimationError(f"nested= names '{label}'; the fits are {', '.join(fits)}.")
        if not fits[label].estimate.is_likelihood:
            raise EstimationError(
                f"'{label}' minimises a criterion that is not a likelihood ({type(fits[label].method).__name__} with "
                f"{_criterion_remark(fits[label].method)}): a likelihood-ratio test with it means nothing. Compare "
                "rms on other "
                f"data instead."
            )
        if _has_priors(fits[label]):
            raise EstimationError(
                f"'{label}' was fitted with priors, so its likelihood is not at its maximum: no test."
            )
    if _data_key(fits[small]) != _data_key(fits[large]):
        raise EstimationError(
            f"'{small}' and '{large}' were fitted to different measurements: no likelihood-ratio test."
        )
    levels = levels_at_zero(fits[small], fits[large])
    free = [n for n, f in zip(fits[large].names, fits[large].estimate.free, strict=True) if f]
    ordinary = int(_row(fits[large])["parameters"] - _row(fits[small])["parameters"]) - sum(n in free for n in levels)
    more = ordinary + len(levels)
    if more <= 0 or ordinary < 0:
        raise EstimationError(f"'{large}' has no more parameters than '{small}': give pairs as (smaller, larger).")
    ratio = 2 * (fits[large].log_likelihood - fits[small].log_likelihood)
    if ratio < -1e-6 * (1 + abs(fits[small].log_likelihood)):
        raise EstimationError(
            f"'{large}' fits worse than '{small}' ({ratio / 2:.4g} in log-likelihood): they are not nested, or the "
            f"larger is not at its best minimum; fit it again with guess= from the smaller."
        )
    if ratio < ROUNDING_OF_LOG_LIKELIHOOD * (1 + abs(fits[small].log_likelihood)):
        ratio = 0.0
    weights = mixture_weights(_variances(fits[small], fits[large], levels))
    law = law_of(fits[large], _added(fits[small], fits[large], more))
    return ratio, more, len(levels), law.freedom, mixture_p(ratio, ordinary, weights, law)


def _added(small: Fitted, large: Fitted, more: int) -> list[int] | None:
    """Return unknowns that the larger fit has beside the smaller's; None where their number is not that of the test."""
    names = set(small.names)
    found = [k for k, (n, f) in enumerate(zip(large.names, large.estimate.free, strict=True)) if f and n not in names]
    return found if len(found) == more else None


def _criterion_remark(method: Estimator) -> str:
    """Return the option because of which a criterion is not a likelihood."""
    return method.density.because


def levels_at_zero(small: Fitted, large: Fitted) -> list[str]:
    """Return levels that the larger fit estimates and the smaller model has at zero, or not at all."""
    if not large.method.density.has_levels:
        return []
    return [
        u.name
        for u in large.estimate.unknowns
        if u.name not in small.names and u.kind != "start" and u.lower == 0 and _value(small, u) == 0
    ]


def _value(fit: Fitted, unknown: Unknown) -> float:
    """Return what a model that does not estimate it has for a level or parameter; zero for what it does not have."""
    flat = structure_of(fit.initial_model).model
    if unknown.kind == "parameter":
        return float(evaluate_parameters(flat)[unknown.target]) if unknown.target in flat.parameters else 0.0
    if unknown.kind == "noise":
        return np.nan
    declared = flat.disturbances.get(unknown.target)
    if declared is None or declared.scale is None:
        return 0.0 if declared is None else 1.0
    values = evaluate_parameters(flat)
    known = dict(zip(values.names, values.values.tolist(), strict=True))
    return float(evaluate([declared.scale], known)[0])


def _variances(small: Fitted, large: Fitted, levels: list[str]) -> np.ndarray:
    """Return covariance of the variances at the smaller fit; needed from two levels on."""
    if len(levels) < 2:
        return np.eye(len(levels))
    known = dict(zip(small.names, small.estimate.theta.tolist(), strict=True))
    values = dict(zip(large.names, large.estimate.theta.tolist(), strict=True))
    theta = np.array([0.0 if n in levels else known.get(n, values[n]) for n in large.names])
    return variance_covariance(criterion_around(large), theta, [large.names.index(n) for n in levels])


def _notes(fits: Mapping[str, Fitted], same: bool) -> Iterator[str]:
    for label, fit in fits.items():
        if not fit.estimate.is_likelihood:
            yield f"{label}: its criterion is not a likelihood, so it has no log-likelihood, AIC or BIC."
        if _has_priors(fit):
            yield f"{label}: fitted with priors; its log-likelihood is that of the data alone, not at its maximum."
        if not fit.converged:
            yield f"{label}: did not converge."
        if not fit.estimate.free.all():
            at = [n for n, f in zip(fit.names, fit.estimate.free, strict=True) if not f]
            where = "zero or a bound" if any(fit.estimates[n] == 0 for n in at) else "a bound"
            where += " or a kink" * bool(fit.estimate.at_kink.any())
            yield f"{label}: {', '.join(at)} at {where}, not counted among the parameters."
    if same and len(_measures(fits)) > 1:
        yield (
            "counts have probabilities where laws are discrete and densities elsewhere: their log-likelihoods are "
            "compared as if a density held over a whole count, which is close where the counts scatter by several."
        )
    if not same:
        yield "the fits are of different measurements: their AIC, BIC and log-likelihoods cannot be compared."


def _measures(fits: Mapping[str, Fitted]) -> set[tuple[tuple[str, bool], ...]]:
    """Return which outputs are discrete, in each of the fits."""
    laws = [(f, laws_of(f.estimate)) for f in fits.values()]
    return {tuple(sorted((str(o), o in of and of[o].is_discrete) for o in f.quality.index)) for f, of in laws}


def _has_priors(fit: Fitted) -> bool:
    return len(fit.estimate.evaluation.residuals) > fit.estimate.count


def _data_key(fit: Fitted) -> str:
    """Return SHA-256 of what was compared with the model: outputs, times, values and weights."""
    parts = []
    for case in fit.estimate.cases:
        for s in case.samples:
            sha = hashlib.sha256(f"{s.output};{len(s.values)};".encode())
            for array in (case.grid[s.rows], s.values, s.weights):
                sha.update(np.ascontiguousarray(array + 0.0).tobytes())
            parts.append(sha.hexdigest())
    return "".join(sorted(parts))
