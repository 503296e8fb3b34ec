"""Bootstrap: parametric agrees with theory, blocks keep correlation, and what is redrawn is what was measured."""

from __future__ import annotations

import numpy as np
import pytest
from study.examples import METHOD, Line

import grisaille as gr
from grisaille.errors import EstimationError
from grisaille.study import block_positions

N = 60
X = np.linspace(-1.0, 2.0, N)


class Quiet(Line):
    y = gr.Output(Line.p + Line.q * Line.x)


def fitted(correlated: bool) -> gr.Fit:
    random = np.random.default_rng(4)
    e = 0.1 * random.standard_normal(N)
    if correlated:
        for k in range(1, N):
            e[k] += 0.8 * e[k - 1]
    y = 1.5 - 0.4 * X + e
    y[10] = np.nan
    return gr.fit(Quiet(), gr.Experiment(inputs={"x": X}, outputs={"y": y}), ["p", "q"], METHOD)


@pytest.mark.parametrize("kind", ["parametric", "residual"])
def test_agrees_with_the_covariance_when_residuals_are_independent(kind: str) -> None:
    fit = fitted(False)
    study = gr.bootstrap(fit, 150, kind, block=1, executor="serial")
    assert np.allclose(study.estimates.std(), fit.std_errors, rtol=4 / np.sqrt(2 * 150))
    assert np.allclose(np.diag(study.covariance), study.estimates.var())
    assert study.truth.tolist() == fit.estimate.theta.tolist()
    ends = study.intervals(0.9)
    assert ((ends["lower"] < study.truth) & (study.truth < ends["upper"])).all()


def test_blocks_see_correlation() -> None:
    fit = fitted(True)
    study = gr.bootstrap(fit, 100, "residual", block=12, executor="serial")
    assert study.estimates["p"].std() > 1.4 * fit.std_errors[0]


def test_gaps_stay_and_runs_repeat() -> None:
    study = gr.bootstrap(fitted(False), 2, executor="serial")
    again = study.repeat(1)
    assert again.estimate.theta.tolist() == study.estimates.loc[1].tolist()
    assert np.flatnonzero(np.isnan(again.experiments[0].outputs["y"].values)).tolist() == [10]


def test_blocks_cover_every_position_alike() -> None:
    shares = (np.arange(30) + 0.5) / 30
    assert sorted(block_positions(30, 1, shares)) == list(range(30))
    runs = block_positions(30, 7, shares)
    assert len(runs) == 30 and (np.diff(runs[:7]) % 30 == 1).all()
    assert sorted(block_positions(5, 99, shares)) == list(range(5))


def test_mistakes() -> None:
    fit = fitted(False)
    for options, words in (({"kind": "jackknife"}, "give 'parametric'"), ({"block": 0}, "whole number above zero")):
        with pytest.raises(EstimationError, match=words):
            gr.bootstrap(fit, 2, **options)


def test_what_it_makes_of_priors_is_said() -> None:
    """A prior stays in every run: the spread is less than the standard error, which contains what the prior leaves."""
    y = 1.5 - 0.4 * X + np.random.default_rng(4).standard_normal(N)
    data = gr.Experiment(inputs={"x": X}, outputs={"y": y})
    priors = {"p": gr.laws.Student(1.5, 4.0, 0.05), "q": gr.Uniform(-2.0, 2.0)}
    study = gr.bootstrap(gr.fit(Quiet(), data, ["p", "q"], METHOD, priors=priors), 20, executor="serial")
    assert study.estimates["p"].std() < 0.5 * study.table["std_error(p)"].mean()
    assert any(note.startswith("priors: those of p stay as they are") for note in study.notes)
    assert "priors: those of p" in str(study) and not gr.bootstrap(fitted(False), 2, executor="serial").notes
