"""What collocation cannot do: levels of noise together with trajectories, what splines cannot follow, and jumps.

A level that is minimised with what it divides would only be made large (scales, and the motion of spectra), or small
while trajectories run through the data (measurement noise), unless trajectories are integrated out.

Splines need an ordinary differential equation in every state whose every equation is disturbed by white noise that does
not depend on the states: otherwise the penalty |ẋ − f|²/Q has an infinite weight somewhere.

As a trajectory moves across a switch its equations, and with them every criterion of collocation, change by a jump that
no slope shows. Small jumps (beside what disturbances do between two samples) leave a minimum that a search finds, and
standard errors that are approximate; larger ones do not, and are refused by their name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from grisaille.bound_experiment import ExperimentPoint
from grisaille.bound_experiment.dead_times import moving_dead_times
from grisaille.bound_experiment.unknown import Unknown
from grisaille.collocation.direct.direct import DEFAULT_ELEMENTS, DirectProgram
from grisaille.disturbance import group_correlated
from grisaille.disturbance.free_levels import symbolic_process
from grisaille.disturbance.stochastic_model import StochasticModel, build_stochastic_model
from grisaille.disturbance.unobservable_disturbance import refuse_hidden_disturbances
from grisaille.errors import EstimationError, GrisailleError
from grisaille.estimation.experiment_terms import ExperimentTerm
from grisaille.estimation.fit_request import FitRequest
from grisaille.estimation.measurements.law_refusals import refuse_values, refuse_weights
from grisaille.estimation.measurements.output_law import output_laws
from grisaille.estimation.problem import EstimationProblem
from grisaille.model.expression import Name, postorder
from grisaille.model.measurement.distributions import has_law, law_formulas
from grisaille.simulation.crossings import Crossing
from grisaille.simulation.runner import Runner
from grisaille.structure.parameters import evaluate_parameters, formulas_of
from grisaille.structure.reduction import Structure

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment

JUMP_REMEDY = (
    "use gr.KalmanML(filter='unscented'), which averages over both sides, or gr.SimulatedPEM(), which simulates them"
)
UNDISTURBED_JUMP_REMEDY = "use gr.OutputError(), which follows the switch"


def refuse_open_noise(structure: Structure, data: Sequence[Experiment]) -> None:
    """Refuse undeclared measurement noise where it is not estimated."""
    for e in data:
        for o in e.outputs:
            if structure.model.outputs[o].noise is None and not has_law(structure.model, o):
                raise EstimationError(
                    f"The noise of output '{o}' is unknown, and collocation weighs data against the model by it: "
                    f"declare gr.Output(…, noise=…), or estimate it with gr.Collocation(criterion='laplace')."
                )


def refuse_levels(unknowns: Sequence[Unknown], inside: Iterable[str]) -> None:
    """Refuse measurement noise and parameters ``inside`` formulas of noise and spectra as unknowns."""
    names = set(inside)
    for u in unknowns:
        if u.kind == "noise" or (u.kind == "parameter" and u.target in names):
            raise EstimationError(
                f"'{u.name}' is a noise level, or shapes a spectrum: estimated together with the trajectories it would "
                f"run away. Use gr.Collocation(criterion='laplace'); intensities='estimate' finds scales from known "
                f"noise."
            )


def level_parameters(structure: Structure, unknowns: Sequence[Unknown], outputs: Sequence[str]) -> set[str]:
    """Return estimated parameters that scales, spectra, correlations or measurement noise contain, through formulas
    too.
    """
    system, flat = structure.system, structure.model
    own = {u.target: u.guess for u in unknowns if u.kind == "parameter"}
    known = evaluate_parameters(flat, own)
    numbers = dict(zip(known.names, known.values.tolist(), strict=True))
    place = {n: k for k, n in enumerate(system.parameter_names)}
    parts = []
    for group in group_correlated(flat.disturbances):
        p = symbolic_process(group, (), lambda path: system.p[place[path]], numbers)
        parts += [ca.vec(ca.densify(ca.SX(m))) for m in (p.A, p.B, p.C, p.D) if ca.SX(m).numel()]
    depends = _inside(ca.vertcat(*parts), system.p) if parts else set()
    moved = {system.parameter_names[k] for k in depends} | _in_noise(structure, outputs)
    return parameters_behind(structure, unknowns, moved)


def parameters_behind(structure: Structure, unknowns: Sequence[Unknown], names: Iterable[str]) -> set[str]:
    """Return estimated parameters on which some parameters depend, directly or through formulas."""
    own = {u.target: u.guess for u in unknowns if u.kind == "parameter"}
    tied = formulas_of(structure.model, own).differentiate(own)
    rows = [tied.names.index(n) for n in names if n in tied.names]
    return {n for n in own if np.any(tied.jacobian[rows, tied.names.index(n)])}


def refuse_zero_noise(program: DirectProgram, points: Sequence[ExperimentPoint]) -> None:
    """Refuse noise levels that are not positive at the guess, where they do not depend on states."""
    model, slots = program.model, program.slots
    sigma = ca.densify(ca.diag(model.variance))
    if ca.depends_on(sigma, ca.vertcat(model.t, model.X, model.Z, model.u, model.v)):
        return
    function = model.cached_value("variances", lambda: ca.Function("variances", [model.q], [sigma]))
    for point, values in zip(points, slots.values(program.guess), strict=True):
        levels = dict(zip(slots.names, values.tolist(), strict=True))
        found = np.array(function([point.known.get(n, levels.get(n)) for n in model.quantities])).ravel()
        for output, variance in zip(model.outputs, found, strict=True):
            if not (np.isfinite(variance) and variance > 0):
                raise EstimationError(
                    f"Experiment '{point.trial.name}': the noise of '{output}' is {np.sqrt(max(variance, 0.0)):g}, so "
                    f"its weight is infinite; declare a positive gr.Output(…, noise=…)."
                )


def refuse_impossible_samples(program: DirectProgram, cases: Sequence[ExperimentTerm]) -> None:
    """Refuse weights beside laws, and measurements that a law cannot give along the trajectory at the guess."""
    if not program.functions.laws:
        return
    flat = program.model.structure.model
    laws = {n: law for n, law in output_laws(flat, program.model.outputs).items() if has_law(flat, n)}
    transcription = program.transcribe(DEFAULT_ELEMENTS)
    point = program.simulated(transcription, program.guess)
    for r, case in enumerate(cases):
        refuse_weights(case, laws)
        arguments = transcription.arguments_of_laws(point, r)
        for one in transcription.samples_by_law[r]:
            refuse_values(case, one.samples, one.law(arguments))


def _inside(formulas: ca.SX, symbols: ca.SX) -> set[int]:
    return set(ca.jacobian_sparsity(formulas, symbols).get_col())


def _in_noise(structure: Structure, outputs: Sequence[str]) -> set[str]:
    """Return names of parameters in the noise formulas of some outputs."""
    flat = structure.model
    formulas = [flat.outputs[o].noise for o in outputs]
    formulas += [f for o in outputs for f in law_formulas(flat.outputs[o]).values()]
    formulas += [f for (a, b), f in flat.noise_covariance.items() if a in outputs and b in outputs]
    nodes = postorder(f for f in formulas if f is not None)
    return {node.path for node in nodes if isinstance(node, Name) and node.path in flat.parameters}


def spline_obstacle(
    structure: Structure,
    model: StochasticModel | None,
    data: Sequence[Experiment],
    unknowns: Sequence[Unknown],
    criterion: str,
) -> str:
    """Return why splines do not apply, in words that can follow "because"; empty where they do.

    model : with disturbances, as ``with_slope`` gives it
    """
    system, flat = structure.system, structure.model
    by_law = [o for e in data for o in e.outputs if has_law(flat, o)]
    if by_law:
        return f"'{by_law[0]}' is measured by the law {type(flat.outputs[by_law[0]].distribution).__name__}"
    if system.nz:
        names = system.implicit_names
        return f"{', '.join(names)} of {flat.name} {'is' if len(names) == 1 else 'are'} defined implicitly"
    if system.nc:
        return f"{flat.name} has hidden constraints ({system.constraint_texts[0]})"
    model = model or _stochastic(structure, data, unknowns)
    for i in range(model.n):
        if ca.depends_on(ca.densify(model.noise[i, :]), model.X):
            return f"the noise in the equation of der({model.names[i]}) depends on the states of {flat.name}"
    pattern = ca.mtimes(model.noise, model.noise.T)
    for i in range(model.n):
        if not pattern[i, :].nnz():
            return _undisturbed(model, i)
    if ca.sprank(model.noise) < model.n:
        return f"the {model.n} states {', '.join(model.names)} share {ca.sprank(model.noise)} white noise"
    return "" if criterion == "laplace" else _unknown_gain(structure, model, data, unknowns)


def dead_time_obstacle(question: FitRequest) -> str:
    """Return why splines do not apply where a dead time is estimated; empty where none is."""
    for trial, _ in question.trials:
        moved = moving_dead_times(trial)
        if moved:
            return f"the dead time {trial.moves.names[moved[0]]} is estimated, and knots of splines lie on jumps"
    return ""


def _unknown_gain(
    structure: Structure, model: StochasticModel, data: Sequence[Experiment], unknowns: Sequence[Unknown]
) -> str:
    """Return whether a parameter that is no level of noise lies between a disturbance and a state: C in C ẋ = f + w.

    The penalty |ẋ − f/C|²/(Q/C²) would be made small by a small C; direct collocation weighs w itself.
    """
    inside = {model.quantities[k] for k in ca.jacobian_sparsity(ca.vec(ca.densify(model.noise)), model.q).get_col()}
    outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
    gains = parameters_behind(structure, unknowns, inside) - level_parameters(structure, unknowns, outputs)
    if not gains:
        return ""
    name = min(gains, key=[u.target for u in unknowns].index)
    return f"the unknown {name} decides how strongly a disturbance acts"


def with_slope(structure: Structure, data: Sequence[Experiment], unknowns: Sequence[Unknown]) -> StochasticModel | None:
    """Return the model with disturbances, where it has any.

    Those without a linear effect where they are zero are refused: every search for a path begins there.
    """
    if not structure.model.disturbances:
        return None
    model = _stochastic(structure, data, unknowns)
    refuse_hidden_disturbances(model, "a path of it has no slope to start from")
    return model


def _stochastic(structure: Structure, data: Sequence[Experiment], unknowns: Sequence[Unknown]) -> StochasticModel:
    given = {u.target: u.guess for u in unknowns if u.kind == "parameter" and np.isfinite(u.guess)}
    values = evaluate_parameters(structure.model, given)
    outputs = list(dict.fromkeys(o for e in data for o in e.outputs))
    numbers = dict(zip(values.names, values.values.tolist(), strict=True))
    return build_stochastic_model(structure, outputs, noises=outputs, values=numbers)


def _undisturbed(model: StochasticModel, state: int) -> str:
    if state < model.nx:
        return f"nothing disturbs the equation of der({model.names[state]})"
    owner = model.names[state].rpartition("[")[0]
    count = sum(n.rpartition("[")[0] == owner for n in model.names[model.nx :])
    return f"the spectrum of {owner} is a filter with {count} states, not all of which its noise drives"


def caution(problem: EstimationProblem) -> str:
    """Return the sentence under the table of a fit whose equations jump with states."""
    jumps = [jump for case in problem.cases for jump in case.trial.structure.jumps.of_states]
    if not jumps:
        return ""
    return (
        f"jumps: the equations jump with '{jumps[0].text}', which the slopes that trajectories are fitted by do not "
        f"see: standard errors and intervals are approximate; gr.KalmanML(filter='unscented') or gr.SimulatedPEM() do"
    )


def refuse_unknown_switches(problem: EstimationProblem) -> None:
    """Refuse unknowns that decide where equations jump with states: no slope of a trajectory depends on them there."""
    unknowns = problem.unknowns
    for case in problem.cases:
        structure = case.trial.structure
        system = structure.system
        for jump in structure.jumps.of_states:
            inside = {system.parameter_names[k] for k in _inside(jump.gap, system.p)}
            moved = parameters_behind(structure, unknowns, inside)
            name = next((u.name for u in unknowns if u.kind == "parameter" and u.target in moved), None)
            if name is not None:
                raise EstimationError(
                    f"'{name}' decides where the equations jump ({jump.text}), and collocation fits trajectories by "
                    f"slopes, which do not show where: the criterion would not depend on it, and the search would end "
                    f"where it began. Give {name} as known, or {_jump_remedy(structure)}."
                )


def refuse_jump(problem: EstimationProblem, theta: np.ndarray) -> None:
    """Refuse the switch that a simulation at θ crosses, after a search has failed; nothing where it crosses none."""
    found = _first_crossing(problem, theta)
    if found is not None:
        name, crossing = found
        raise EstimationError(
            f"The equations jump with {crossing} in '{name}', and no minimum was found: collocation fits trajectories "
            f"by slopes, which do not show what lies on the other side of a jump; "
            f"{_jump_remedy(problem.cases[0].trial.structure)}."
        )


def _jump_remedy(structure: Structure) -> str:
    return JUMP_REMEDY if structure.model.disturbances else UNDISTURBED_JUMP_REMEDY


def _first_crossing(problem: EstimationProblem, theta: np.ndarray) -> tuple[str, Crossing] | None:
    for case in problem.cases:
        if not case.trial.structure.jumps.of_states:
            continue
        try:
            crossings = Runner(case.trial, case.trial.data.outputs).crossings(case.own(theta))
        except GrisailleError:
            continue
        if crossings:
            return case.name, crossings[0]
    return None
