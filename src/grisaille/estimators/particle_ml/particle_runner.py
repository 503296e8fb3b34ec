"""One experiment run by a particle filter at values of its unknowns, with random numbers of any seed."""

from __future__ import annotations

import numpy as np

from grisaille.bound_experiment import BoundExperiment, ExperimentPoint
from grisaille.bound_experiment.discretisation import Discretisation
from grisaille.bound_experiment.sample_limits import own_limits
from grisaille.compilation.particles import ParticleAnswer, Walk
from grisaille.disturbance.duals import Floats
from grisaille.disturbance.stochastic_model import StochasticModel
from grisaille.errors import INDEPENDENT_OF_VALUES, EstimationError, GrisailleError
from grisaille.filtering.filter_runner import FilterOptions, FilterRunner
from grisaille.filtering.particles.particle_events import without_discretes
from grisaille.filtering.particles.particle_filter import ParticleFilter, ParticleOptions
from grisaille.laws.censored import censored_path
from grisaille.model.measurement.distributions import law_formulas
from grisaille.structure.time_schedule import why_not_scheduled


class ParticleRunner(FilterRunner):
    """The likelihood of one experiment by a particle filter."""

    def __init__(self, trial: BoundExperiment, options: ParticleOptions) -> None:
        super().__init__(trial, FilterOptions(substeps=options.substeps, initial_covariance=options.initial_covariance))
        self.particle_options = options

    @staticmethod
    def followed(trial: BoundExperiment) -> BoundExperiment:
        """Return the trial with discrete variables as signals where they are known before a run; particles follow
        their own events elsewhere.
        """
        if not trial.flat.whens or why_not_scheduled(trial.structure):
            return trial
        return trial.scheduled()

    def _choose(self, model: StochasticModel, point: ExperimentPoint) -> ParticleFilter:
        nominal = np.asarray(point.initializer.nominal[: model.nx])
        if model.structure.system.reactions is not None:
            model = without_discretes(model)
        return ParticleFilter(model, self.record, self.particle_options, nominal, self._limits())

    def particle_filter(self, steps: Discretisation, theta: Floats, seed: int) -> ParticleFilter:
        """Return the filter with steps and random numbers."""
        found = self.filter_on(steps, theta)
        assert isinstance(found, ParticleFilter)
        return found.with_seed(seed)

    def log_likelihood_at(self, theta: Floats, steps: Discretisation, seed: int) -> tuple[float, str]:
        """Return the estimate of log L with random numbers of a seed, and why there is none."""
        try:
            at = self.posed(theta, False)
            value, failed = self.particle_filter(steps, theta, seed).estimate(at)
        except INDEPENDENT_OF_VALUES:
            raise
        except GrisailleError as error:
            return -np.inf, str(error)
        return value, self._reason(failed) if failed != -1 else ""

    def walked(self, theta: Floats, steps: Discretisation, seed: int, walk: Walk) -> ParticleAnswer:
        """Return a run in which unknowns walk; its q and start are those at ``theta``."""
        return self.particle_filter(steps, theta, seed).run(self.posed(theta, False), walk=walk)

    def _limits(self) -> tuple[dict[str, Floats], ...]:
        """Return the limits that samples have of their own, for each law of an output."""
        flat, found = self.trial.flat, []
        for output in self.trial.data.outputs:
            law = flat.outputs[output].distribution
            if law is None:
                continue
            limits: dict[str, Floats] = {}
            samples = next((s for s in self.trial.data.samples if s.output == output), None)
            for side, own in own_limits(samples) if samples is not None else ():
                assert samples is not None
                path = f"{censored_path(law)}{side}"
                if path in law_formulas(flat.outputs[output]):
                    raise EstimationError(
                        f"Output '{output}' has limits of its own in the data and a limit in its law, "
                        f"{type(law).__name__}: gr.ParticleML takes one of them. Leave {side}= out of the law."
                    )
                column = np.full(len(self.trial.times), np.nan)
                column[samples.rows] = own
                limits[path] = column
            found.append(limits)
        return tuple(found)

    def _reason(self, sample: int) -> str:
        if not 0 <= sample < len(self.trial.times):
            return "the filter was ended by a law of its outputs."
        outputs, t = ", ".join(self.trial.data.outputs), float(self.trial.times[sample])
        return (
            f"no particle explains the measurement of {outputs} at t = {t:g}: the model is far from the data there, or "
            f"disturbances are too small to follow them. Give another guess, more particles, or a wider start, "
            f"initial_covariance={{state: variance}}."
        )
