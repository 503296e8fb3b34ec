"""What a search says where the model has no value: the guess is only what the fit began with."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import EstimationError
from grisaille.estimators import build_problem
from grisaille.optimization import Search


class Rooted(gr.Model):
    """Without a value for negative p."""

    p = gr.Parameter(1.0)
    x = gr.Variable(1.0)
    w = gr.Disturbance(gr.spectra.white(), scale=0.1)
    y = gr.Output(x, noise=0.1)
    equations = [der(x) == -gr.sqrt(p) * x + w]


@pytest.mark.parametrize("method", [gr.OutputError(), gr.KalmanML()], ids=["output error", "filter"])
def test_a_point_of_the_search_is_not_called_the_guess(method):
    times = np.arange(5.0)
    data = gr.Experiment(times, outputs={"y": np.exp(-times)})
    problem = build_problem(Rooted(), data, ["p"], method)
    search = Search(problem)
    search.first()
    search.restart(np.array([-2.0]))
    with pytest.raises(EstimationError, match=r"at a point of the search \(p = -2\): .* Give bounds="):
        search.first()
    search.restart(np.array([1.0]))
    assert search.first().completed
    with pytest.raises(EstimationError, match=r"at the guess \(p = -2\)"):
        Search(problem.renewed(guess=np.array([-2.0]))).first()
