"""The public surface with arguments that work, and wrong things to put in their places."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import grisaille as gr
from grisaille import der
from grisaille.components.electrical import Resistor
from grisaille.components.signals import Gain


class Tank(gr.Model):
    """A tank that is filled, runs out and is rained into."""

    k = gr.Parameter(0.5, "1/s", bounds=(0.01, 5.0))
    q = gr.Parameter(1.0, bounds=(0.1, 5.0))
    h = gr.Variable(1.0, "m")
    u = gr.Input("m/s")
    rain = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0), scale=0.1)
    y = gr.Output(h, noise=0.01, unit="m")
    equations = [der(h) == q * u - k * h + rain]


class Calm(gr.Model):
    """The same without rain."""

    k = gr.Parameter(0.5, "1/s", bounds=(0.01, 5.0))
    q = gr.Parameter(1.0, bounds=(0.1, 5.0))
    h = gr.Variable(1.0, "m")
    u = gr.Input("m/s")
    y = gr.Output(h, unit="m")
    equations = [der(h) == q * u - k * h]


class Static(gr.Model):
    """A line."""

    a = gr.Parameter(1.0, bounds=(0.0, 9.0))
    u = gr.Input()
    y = gr.Output(a * u)


MODELICA = "model Drive Real x(start = 1.0); Real u; equation der(x) = u - x; u = 2.0; end Drive;"
TIMES = np.linspace(0.0, 4.0, 9)
LEVELS = 2 - np.exp(-0.5 * TIMES) + 0.02 * np.cos(37 * TIMES)


def experiment(**changes: Any) -> gr.Experiment:
    given: dict[str, Any] = {"time": TIMES, "inputs": {"u": 1.0}, "outputs": {"y": LEVELS}, "name": "a", **changes}
    return gr.Experiment(**given)


@dataclass(frozen=True)
class Call:
    """One public function or method, and arguments by which it works."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    without: tuple[str, ...] = ()
    """Arguments that are not tried, each for a reason said where it is listed."""

    @property
    def names(self) -> list[str]:
        """The arguments that are tried."""
        known = inspect.signature(self.function).parameters.values()
        found = [p.name for p in known if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL) and p.name != "self"]
        return [n for n in found if n not in self.without]


def wrong_things(fit: gr.Fit, data: gr.Experiment) -> dict[str, Any]:
    """What people hand over by mistake."""
    return {
        "None": None, "a text": "nonsense", "an empty text": "", "'False'": "False", "bytes": b"k",
        "a number": 3.7, "zero": 0, "a negative number": -2, "a large number": 10**30, "NaN": float("nan"),
        "infinity": float("inf"), "True": True, "a complex number": 1j,
        "a set": {"k", 3}, "an empty list": [], "a list": [1.0, "k"], "a list of names": ["nonsense"],
        "a nested list": [[1.0, 2.0], [3.0]], "a range": range(2), "a slice": slice(0, 2),
        "an empty dict": {}, "a dict": {"nonsense": 1.0}, "a dict of None": {"k": None}, "a dict of numbers": {3: 4},
        "a dict of texts": {"k": "x"},
        "a frame": pd.DataFrame({"u": [1.0, 2.0], "y": [1.0, 2.0]}), "a series": pd.Series([1.0, 2.0]),
        "an object array": np.array([None, "a"], dtype=object), "a matrix": np.ones((2, 2)),
        "an empty array": np.array([]), "an array with NaN": np.array([0.0, np.nan]),
        "dates": pd.date_range("2024-01-01", periods=3), "a date": pd.Timestamp("2024-01-01"),
        "a fit": fit, "an experiment": data, "a model": Tank(), "a model class": Tank,
        "an estimator class": gr.KalmanML, "an estimator": gr.OutputError(), "an expression": Tank.h * 2,
        "an object": object(), "a function of nothing": lambda: 1.0, "a type": int, "a module": np,
        "a generator": (n for n in [object()]), "a path": Path("nowhere"),
    }  # fmt: skip


def surface(folder: Path) -> Iterator[Call]:
    """Every public function and method with arguments by which it works."""
    model, calm, data = Tank(), Calm(), experiment()
    plain = gr.OutputError()
    other = experiment(outputs={"y": LEVELS + 0.01}, name="b")
    fit = gr.fit(calm, data, ["k", "q"], plain)
    kalman = gr.fit(model, data, ["k"], gr.KalmanML())
    row = gr.Experiment(None, {"u": [1.0, 2.0, 3.0]}, {"y": [1.0, 2.1, 3.0]}, name="rows")
    fit.save(folder / "fit.nc")
    (folder / "data.csv").write_text("t,u,y\n0,1,1\n1,1,2\n2,1,2.5\n")
    frame = pd.DataFrame({"t": TIMES, "u": 1.0, "y": LEVELS})
    # functions of models and data
    yield Call("gr.analyze", gr.analyze, {"model": model})
    yield Call("gr.well_posedness", gr.well_posedness, {"model": model})
    yield Call("gr.simulate", gr.simulate, {"model": calm, "times": TIMES, "inputs": {"u": 1.0}})
    yield Call("gr.Simulator", gr.Simulator, {"model": calm, "times": TIMES})
    simulator = gr.Simulator(calm, TIMES, {"u": 1.0})
    yield Call("Simulator()", simulator, {"parameters": {"k": 0.5}})
    yield Call("Simulator.values", simulator.values, {"parameters": {"k": 0.5}})
    steps = gr.Simulator(calm, TIMES, {"u": 1.0}, method="frozen", step=0.5)
    yield Call("Simulator.gradient", steps.gradient, {"weights": {"y": 1.0}, "by": ["k"]})
    yield Call("gr.sensitivity", gr.sensitivity, {"model": calm, "experiment": data})
    yield Call("gr.fit", gr.fit, {"model": calm, "experiments": data, "method": plain, "estimate": ["k"]})
    yield Call("gr.evaluate", gr.evaluate, {"model": calm, "experiments": data, "method": plain})
    yield Call(
        "gr.log_density", gr.log_density, {"model": calm, "experiments": data, "method": plain, "estimate": ["k"]}
    )
    density = gr.log_density(calm, data, ["k"], plain)
    for name in ("failure", "from_unbounded", "gradient", "parts", "slopes", "to_unbounded", "value_and_gradient"):
        asked_at = "xi" if name in ("from_unbounded", "slopes") else "theta"
        yield Call(f"DensityFunction.{name}", getattr(density, name), {asked_at: [0.5]})
    for name in ("gradient", "value_and_gradient"):
        yield Call(f"UnboundedDensity.{name}", getattr(density.unbounded, name), {"xi": [0.1]})
    study = {"model": calm, "estimate": ["k"], "method": plain, "executor": "serial"}
    yield Call("gr.multistart", gr.multistart, {**study, "experiments": data, "starts": 1})
    yield Call("gr.monte_carlo", gr.monte_carlo, {**study, "plan": data, "runs": 1, "noise": {"y": 0.01}})
    yield Call("gr.bootstrap", gr.bootstrap, {"fit": fit, "runs": 1, "executor": "serial"})
    short = {"draws": 4, "chains": 1, "tune": 4, "executor": "serial"}
    yield Call("gr.posterior", gr.posterior, {**study, "experiments": data, **short})
    yield Call("Fit.posterior", fit.posterior, short)
    yield Call("gr.prior_predictive", gr.prior_predictive, {"model": calm, "experiments": data, "draws": 2})
    yield Call("gr.compare", gr.compare, {"fits": {"a": fit, "b": fit}})
    yield Call("gr.load", gr.load, {"path": folder / "fit.nc"})
    yield Call("gr.load_problem", gr.load_problem, {"folder": folder})
    for estimator in (gr.OutputError, gr.KalmanML, gr.SimulatedPEM, gr.Collocation, gr.ParticleML):
        yield Call(f"gr.{estimator.__name__}", estimator)
    # data
    yield Call("gr.Experiment", gr.Experiment, {"time": TIMES, "inputs": {"u": 1.0}, "outputs": {"y": LEVELS}})
    read = {"time": "t", "inputs": ["u"], "outputs": ["y"]}
    yield Call("Experiment.from_csv", gr.Experiment.from_csv, {"path": folder / "data.csv", **read})
    results = {"path": folder / "data.csv", "inputs": ["u"], "outputs": ["y"]}
    yield Call("Experiment.from_mat", gr.Experiment.from_mat, results)
    yield Call("Experiment.from_frame", gr.Experiment.from_frame, {"frame": frame, **read})
    yield Call("Experiment.from_dataset", gr.Experiment.from_dataset, {"dataset": data.to_dataset()})
    for name, given in {
        "check": {"model": model}, "grid": {}, "input_signals": {}, "measurements": {"name": "y"}, "plot": {},
        "resample": {"step": 1.0}, "split": {"fraction": 0.5}, "summary": {}, "to_dataset": {}, "to_frame": {},
    }.items():  # fmt: skip
        yield Call(f"Experiment.{name}", getattr(data, name), given)
    yield Call("Experiment.split of rows", row.split, {"fraction": 0.5})
    for changed in inspect.signature(gr.Experiment).parameters:
        yield Call(f"Experiment.replace({changed}=)", _keyword(data.replace, changed))
    yield from language()
    # fits
    asked = {
        "begun": {}, "with_errors": {"errors": "plain"}, "curve": {"name": "k"}, "diagnose": {},
        "find_experiment": {"which": "a"}, "intervals": {"method": "wald"},
        "limits": {"method": "wald"}, "plot": {}, "predict": {}, "profile": {"name": "k", "points": 2},
        "report": {"path": folder / "page.html"}, "residuals": {}, "save": {"path": folder / "again.nc"},
        "to_modelica": {"path": folder / "fit.mo"},
        "simulate": {"times": TIMES, "inputs": {"u": 1.0}}, "simulated": {"experiment": data},
        "test": {"hypothesis": {"k": 0.5}}, "validate": {"experiment": other}, "__getitem__": {"name": "k"},
        "surface": {"first": "k", "second": "q", "points": 3},
    }  # fmt: skip
    for name, given in asked.items():
        yield Call(f"Fit.{name}", getattr(fit, name), given)
    filtered = {"diagnose": {}, "intervals": {"method": "wald"}, "states": {}}
    for name, given in filtered.items():
        yield Call(f"Fit by KalmanML.{name}", getattr(kalman, name), given)
    # answers
    sensitive = gr.sensitivity(calm, data, ["k", "q"])
    boot = gr.bootstrap(fit, 2, executor="serial")
    monte = gr.monte_carlo(calm, data, ["k"], plain, 2, noise={"y": 0.01}, executor="serial")
    multi = gr.multistart(calm, data, ["k"], plain, 2, executor="serial")
    answers = {
        "Analysis": gr.analyze(calm), "WellPosedness": gr.well_posedness(model), "Bootstrap": boot, "MonteCarlo": monte,
        "Multistart": multi, "Comparison": gr.compare({"a": fit, "b": fit}),
        "CostSurface": fit.surface("k", "q", points=3),
        "Diagnosis": fit.diagnose(), "Profile": fit.profile("k", points=2), "Sensitivity": sensitive,
        "Posterior": fit.posterior(**short), "PriorPredictive": gr.prior_predictive(calm, data, draws=2),
        "Validation": fit.validate(other),
    }  # fmt: skip
    working = {
        "report": {"path": folder / "page.html"}, "data": {"run": 0}, "repeat": {"run": 0},
        "require": {"purpose": "this"}, "save": {"path": folder / "again.nc"}, "predict": {"draws": 2},
    }  # fmt: skip
    for owner, answer in answers.items():
        for name in dir(type(answer)):
            if name[0] != "_" and inspect.isfunction(inspect.getattr_static(type(answer), name)):
                yield Call(f"{owner}.{name}", getattr(answer, name), working.get(name, {}))


def language() -> Iterator[Call]:
    """Declarations, formulas, spectra and priors."""
    x = Calm.h
    for declared, given in {
        gr.Parameter: {"value": 1.0}, gr.Variable: {"start": 1.0}, gr.Input: {}, gr.Output: {"definition": 1.0},
        gr.Disturbance: {"spectrum": gr.spectra.white()}, gr.Potential: {}, gr.Flow: {},
        gr.Discrete: {"start": 1.0},
    }.items():  # fmt: skip
        yield Call(f"gr.{declared.__name__}", _declaring(declared), given)
    yield Call("gr.der", gr.der, {"expression": x})
    yield Call("gr.array", gr.array, {"items": [x, x]})
    yield Call("gr.copies", gr.copies, {"prototype": Calm(), "count": 2})
    yield Call("gr.where", gr.where, {"condition": x > 1, "yes": 1.0, "no": 2.0})
    yield Call("gr.clock", gr.clock, {"period": 1.0, "start": 0.0})
    yield Call("gr.pre", gr.pre, {"variable": x})
    yield Call("gr.reinit", gr.reinit, {"variable": x, "value": 1.0})
    action = gr.reinit(x, 1.0)
    yield Call("gr.when", _positions(gr.when, "condition", "action"), {"condition": x > 1, "action": action})
    yield Call("gr.table", gr.table, {"x": x, "xs": [0.0, 1.0], "ys": [0.0, 1.0]})
    yield Call("gr.delay", gr.delay, {"x": x, "tau": 1.0})
    tables = {"x": x, "y": x, "xs": [0.0, 1.0], "ys": [0.0, 1.0], "values": [[0.0, 1.0], [2.0, 3.0]]}
    yield Call("gr.table2", gr.table2, tables)
    yield Call("gr.connect", _positions(gr.connect, "first", "second"), {"first": Calm().h, "second": Tank().h})
    for name in gr.__all__:
        function = getattr(gr, name)
        if getattr(function, "__module__", "") == "grisaille.model.functions" and name not in ("array", "der", "where"):
            taken = list(inspect.signature(function).parameters)
            yield Call(f"gr.{name}", _positions(function, *taken), dict.fromkeys(taken, x))
    yield Call("gr.Smoothness", gr.Smoothness, {"scale": 1.0})
    yield Call("gr.Normal", gr.Normal, {"mean": 1.0, "std": 1.0})
    yield Call("gr.LogNormal", gr.LogNormal, {"median": 1.0, "log_std": 1.0})
    yield Call("gr.Gamma", gr.Gamma, {"mean": 1.0, "shape": 2.0})
    yield Call("gr.Beta", gr.Beta, {"mean": 0.5, "precision": 4.0})
    yield Call("gr.HalfNormal", gr.HalfNormal, {"scale": 1.0})
    yield Call("gr.HalfCauchy", gr.HalfCauchy, {"scale": 1.0})
    yield Call("gr.Uniform", gr.Uniform, {"low": 1.0, "high": 2.0})
    joint = {"names": ("k", "q"), "mean": (1.0, 1.0), "cov": ((1.0, 0.0), (0.0, 1.0))}
    yield Call("gr.MultivariateNormal", gr.MultivariateNormal, joint)
    numbers = {"num": [1.0], "den": [1.0, 1.0], "A": [[-1.0]], "B": [[1.0]], "C": [[1.0]]}
    for name in dir(gr.spectra):
        if name[0].islower() and inspect.isfunction(function := getattr(gr.spectra, name)):
            taken = [p for p in inspect.signature(function).parameters if p not in ("start", "interpretation", "order")]
            yield Call(f"gr.spectra.{name}", function, {p: numbers.get(p, 1.0) for p in taken})
    model = Calm()
    yield Call("Model", Calm)
    yield Call("Model(start=)", _keyword(Calm, "start"))
    yield Call("Model(k=)", _keyword(Calm, "k"))
    yield Call("Model(h=)", _keyword(Calm, "h"))
    yield Call("Model(u=)", _keyword(Calm, "u"))
    yield Call("Model.replace", model.replace)
    yield Call("gr.read_modelica", gr.read_modelica, {"source": MODELICA})
    yield Call("Model.with_inputs", Calm().with_inputs, {"inputs": {"h": 1.0}})
    yield Call("Model.with_outputs", Calm().with_outputs, {"outputs": {"level": "h"}})
    signal = {"name": "u", "spectrum": gr.spectra.lowpass(1.0)}
    yield Call("Model.with_disturbance", gr.read_modelica(MODELICA).with_disturbance, signal)
    yield Call("Model.replace(k=)", _keyword(model.replace, "k"))
    yield Call("Resistor(R=)", _keyword(Resistor, "R"))
    yield Call("Gain(k=)", _keyword(Gain, "k"))


def _declaring(declaration: Callable[..., Any]) -> Callable[..., Any]:
    """A declaration as the member of a model, which is where it is read."""

    def call(**given: Any) -> Any:
        x = gr.Variable(1.0)
        base = gr.Connector if declaration in (gr.Potential, gr.Flow) else gr.Model
        member = declaration(**given)
        events = [gr.when(x < 0.5, member == 1)] if declaration is gr.Discrete else []
        rest = {} if base is gr.Connector else {"x": x, "equations": [der(x) == -x, *events]}
        made = type("Plant", (base,), {"member": member, **rest})()
        if base is gr.Model:
            gr.analyze(made)

    call.__signature__ = inspect.signature(declaration)  # type: ignore[attr-defined]
    return call


def _positions(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """A function by the names of its positions."""

    def call(**given: Any) -> Any:
        return function(*(given[n] for n in names))

    kind = inspect.Parameter.KEYWORD_ONLY
    call.__signature__ = inspect.Signature([inspect.Parameter(n, kind) for n in names])  # type: ignore[attr-defined]
    return call


def _keyword(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function of one named argument."""

    def call(**given: Any) -> Any:
        return function(**given)

    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None)]
    )
    return call
