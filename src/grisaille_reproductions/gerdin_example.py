"""The example of the linear SDAE paper: verdicts of Theorem 3, then parameters, noise and states without reduction.

Source as in ``gerdin_bodies``. The theorem asks, with Ē = (λE + F)⁻¹E and λ = 1, for

    [Ēʲ(λE + F)⁻¹J_l] projected along R(Ēⁿ) on N(Ēⁿ)    in the null space of H,    j ≥ p_l

which the source works out by hand. The estimates are ours: the source gives the method, no numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import grisaille as gr
from grisaille.structure.descriptor.finite_variance import projector_on_null
from grisaille_reproductions import gerdin_bodies as bodies, gerdin_standard_form as standard
from grisaille_reproductions.comparison import Reproduction, Row, Size, new_figure, save_figures

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille_reproductions.registry import Workers


UNKNOWNS = ["m_1", "m_2", "d", "scale(w_1)", "scale(w_2)", "noise(y_v)", "noise(y_f)"]
METHOD = gr.KalmanML()
GUESS = {"m_1": 2.0, "m_2": 0.5, "d": 1.0, "scale(w_1)": 1.0, "scale(w_2)": 1.0, "noise(y_v)": 0.1, "noise(y_f)": 0.3}
SPEED_VARIANCE = 0.01
"""Of the start, where the numerical standard form is compared."""
FORCES: dict[str, tuple[str, ...]] = {
    "white w₁, w₂": ("w_1", "w_2"), "white w₁, low-pass w₂": ("w_1",), "low-pass w₁, w₂": ()
}  # fmt: skip
"""Which of the forces are white."""


def example(size: Size, folder: Path | None, executor: Workers, samples: int | None = None) -> Reproduction:
    """Verdicts, estimates by both routes, smoothed states."""
    data, force = bodies.record(samples or (2000 if size == "full" else 150))
    descriptor, reduced = (fit(model, data) for model in (bodies.MeasuredForce(), bodies.OneBodyWithForce()))
    smoothed = [_smoothed_force(f) for f in (descriptor, reduced)]
    rows = [*_theorem(), *_verdicts(), *_estimates(descriptor, reduced)]
    inside = (smoothed[0].sel(statistic="lower") <= force) & (force <= smoothed[0].sel(statistic="upper"))
    rows += [
        Row("smoothed force, largest difference of the routes [N]", _largest(*(s.to_numpy() for s in smoothed))),
        Row("true force inside its smoothed 95 % band [%]", 100 * float(inside.mean()), None, 95.0),
        Row("states of f under white forces", _white_states(data)),
    ]
    notes = (
        f"{len(force)} samples of speed and force; the theory column holds the true values, the published one the "
        f"source's verdicts. Routes: the equations as written and reduced by hand.",
        f"Index of the model as written: {gr.analyze(bodies.JoinedBodies()).index}.",
    )
    figures = {} if folder is None else {"gerdin-example": _figure(data, force, smoothed[0])}
    title = "Two joined bodies: a linear stochastic DAE without reduction"
    return Reproduction(title, tuple(rows), notes, save_figures(figures, folder))


def fit(model: gr.Model, data: gr.Experiment) -> gr.Fit:
    """Masses, friction and all levels of noise."""
    return gr.fit(model, data, UNKNOWNS, METHOD, guess=GUESS, progress=False)


def projected(j: int) -> np.ndarray:
    """The left-hand side of condition (7), one column per force."""
    shifted = bodies.E + bodies.F
    E_bar = np.linalg.solve(shifted, bodies.E)
    found = projector_on_null(E_bar) @ np.linalg.matrix_power(E_bar, j) @ np.linalg.solve(shifted, bodies.J)
    return np.asarray(found.round(12) + 0.0)


def _theorem() -> list[Row]:
    E_bar = np.linalg.solve(bodies.E + bodies.F, bodies.E)
    rank = int(np.linalg.matrix_rank(np.linalg.matrix_power(E_bar, 3)))
    return [
        Row("2 Ē", _text(2 * E_bar), "((1, 1, 0), (1, 1, 0), (1, -1, 0))"),
        Row("rank of Ē³", rank, 1),
        Row("2 × projected vectors of w₁, w₂, j = 0", _text(2 * projected(0).T), "((0, 0, 1), (0, 0, -1))"),
        Row("the same, j = 1", _text(2 * projected(1).T), "((0, 0, 0), (0, 0, 0))"),
    ]


def _verdicts() -> list[Row]:
    rows = []
    for label, noisy in FORCES.items():
        model = bodies.JoinedBodies(**{name: w for name, w in bodies.white().items() if name in noisy})
        found = gr.well_posedness(model, variables=["v_1", "v_2", "f"]).verdicts
        said = {n: _finite(found[n].is_finite) for n in ("v_1", "v_2", "f")}
        rows.append(Row(f"{label}: v₁, v₂ | f", f"{said['v_1']}, {said['v_2']} | {said['f']}", _published(noisy)))
    verdicts = gr.well_posedness(bodies.Presampled()).verdicts
    for name, label, published in (
        ("plain", "z₁ + z₂ of section 4", "infinite"),
        ("filtered", "the same behind a presampling filter", "finite"),
    ):
        rows.append(Row(label, _finite(verdicts[name].is_finite), published))
    return rows


def _published(noisy: tuple[str, ...]) -> str:
    return f"finite, finite | {'infinite' if noisy else 'finite'}"


def _estimates(descriptor: gr.Fit, reduced: gr.Fit) -> list[Row]:
    """The estimates and how far the routes differ."""
    ours, theirs = descriptor.parameters, reduced.parameters
    truth = {"m_1": 1.0, "m_2": 1.0, "d": 0.5, "scale(w_1)": 0.5, "scale(w_2)": 0.3}
    truth |= {"noise(y_v)": 0.02, "noise(y_f)": 0.1}
    rows = [Row(n, f"{ours.loc[n, 'estimate']:.5g} ± {ours.loc[n, 'std_error']:.2g}", None, truth[n]) for n in UNKNOWNS]
    at = {n: float(ours.loc[n, "estimate"]) for n in UNKNOWNS}
    both = [
        gr.evaluate(f.model, f.experiments, METHOD, at, estimate=UNKNOWNS).log_likelihood for f in (descriptor, reduced)
    ]
    return [
        *rows,
        Row("log-likelihood", descriptor.log_likelihood),
        Row("routes: log-likelihood at one point, relative", abs(both[0] / both[1] - 1), None, "< 1e-10"),
        Row("routes: largest of the maxima, relative", abs(descriptor.log_likelihood / reduced.log_likelihood - 1)),
        Row(
            "routes: numerical standard form of section 8, relative", _by_standard_form(descriptor, at), None, "< 1e-10"
        ),
        Row("routes: estimates, relative", _relative(ours["estimate"], theirs["estimate"])),
        Row("routes: standard errors, relative", _relative(ours["std_error"], theirs["std_error"])),
    ]


def _by_standard_form(fit: gr.Fit, at: dict[str, float]) -> float:
    """The likelihood of the package against the source's recipe, for a given variance of the starting speed."""
    method = gr.KalmanML(initial_covariance={"v_1": SPEED_VARIANCE})
    ours = gr.evaluate(fit.model, fit.experiments, method, at, estimate=UNKNOWNS).log_likelihood
    return abs(ours / standard.log_likelihood(at, fit.experiments[0], SPEED_VARIANCE) - 1)


def _white_states(data: gr.Experiment) -> str:
    """What ``states`` says of the force when it has infinite variance."""
    speed = gr.Experiment(data.grid(), data.input_signals()[0], {"y_v": data.outputs["y_v"].values})
    found = gr.fit(bodies.JoinedBodies(**bodies.white()), speed, ["d"], METHOD, progress=False)
    try:
        found.states(names=["f"])
    except gr.GrisailleError:
        return "refused"
    return "given"


def _smoothed_force(fit: gr.Fit) -> xr.DataArray:
    return fit.states(names=["f"])["f"].sel(given="smoothed")


def _relative(a: np.ndarray, b: np.ndarray) -> float:
    x, y = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return float(np.max(np.abs(x / y - 1)))


def _largest(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.max(np.abs(a - b)))


def _text(matrix: np.ndarray) -> str:
    return str(tuple(tuple(round(float(v)) for v in row) for row in matrix))


def _finite(is_finite: bool) -> str:
    return "finite" if is_finite else "infinite"


def _figure(data: gr.Experiment, force: np.ndarray, smoothed: xr.DataArray) -> Figure:
    figure, (axis,) = new_figure(width=7.0)
    shown = slice(0, 150)
    times = data.grid()[shown]
    lower, upper = (smoothed.sel(statistic=s).to_numpy()[shown] for s in ("lower", "upper"))
    axis.fill_between(times, lower, upper, color="tab:blue", alpha=0.3, label="smoothed, 95 %")
    axis.plot(times, force[shown], "k", linewidth=0.8, label="true")
    axis.plot(times, data.outputs["y_f"].values[shown], ".", color="0.6", markersize=3, label="measured")
    axis.set(xlabel="time [s]", ylabel="force of the joint [N]")
    axis.legend(fontsize=8)
    return figure
