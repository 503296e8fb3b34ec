"""Which reproductions there are, by name; modules are imported when one of their entries runs."""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from grisaille.errors import DataError
from grisaille_reproductions.comparison import Reproduction, Size

if TYPE_CHECKING:
    from concurrent.futures import Executor

Workers: TypeAlias = "Executor | int | str | None"
"""What computes studies, as ``executor`` of ``gr.monte_carlo``."""


@dataclass(frozen=True)
class Entry:
    """A table or figure that can be computed again."""

    name: str
    title: str
    module: str
    function: str

    def run(
        self,
        size: Size = "small",
        folder: Path | None = None,
        executor: Workers = None,
        **numbers: int,
    ) -> Reproduction:
        """Compute it.

        size : ``"small"`` takes seconds, ``"full"`` has the numbers of runs of the source
        folder : where figures go; None: no figures
        executor : of the studies in it, as in ``gr.monte_carlo``
        numbers : instead of those of the size, by the names in ``options``
        """
        strangers = [n for n in numbers if n not in self.options]
        if strangers:
            known = f"it takes {', '.join(self.options)}" if self.options else "it takes none"
            raise DataError(f"{self.name} has no number called '{strangers[0]}'; {known}.")
        result: Reproduction = self._compute(size, folder, executor, **numbers)
        return result

    @property
    def options(self) -> tuple[str, ...]:
        """Numbers that can be given instead of those of a size."""
        return tuple(inspect.signature(self._compute).parameters)[3:]

    @property
    def _compute(self) -> Callable[..., Reproduction]:
        module = importlib.import_module(f"grisaille_reproductions.{self.module}")
        function: Callable[..., Reproduction] = getattr(module, self.function)
        return function


def _fladischer(name: str, title: str, module: str, function: str) -> Entry:
    return Entry(f"fladischer/{name}", title, f"fladischer_{module}", function)


def _abdalmoaty(name: str, title: str, module: str, function: str) -> Entry:
    return Entry(f"abdalmoaty/{name}", title, f"abdalmoaty_{module}", function)


def _varziri(name: str, title: str, module: str, function: str) -> Entry:
    return Entry(f"varziri/{name}", title, f"varziri_{module}", function)


def _kristensen(number: int, title: str) -> Entry:
    module = "kristensen_spread" if number <= 5 else "kristensen_starts"
    return Entry(f"kristensen/table{number}", title, module, f"table{number}")


ENTRIES = (
    _fladischer("figures-3.1-3.6", "Cost functions of four curve fits", "curves", "cost_functions"),
    _fladischer("table-4.1", "Free fall: one data set, two optimizers", "free_fall", "one_data_set"),
    _fladischer("table-4.2", "Free fall: two data sets, jointly and averaged", "free_fall", "two_data_sets"),
    _fladischer("table-4.3", "Free fall: spread of the drag coefficient", "free_fall_spread", "spread_of_drag"),
    _fladischer("figure-4.10", "Free fall: spread against the number of repeats", "free_fall_spread", "repeats"),
    _fladischer("figures-4.11-4.12", "Free fall: cost over drag and initial conditions", "free_fall", "cost_surfaces"),
    _fladischer("table-4.4", "Free fall: initial conditions unknown", "free_fall_spread", "spread_with_starts"),
    _fladischer("figures-4.15-4.16", "Hardening spring: fits of A, B and both", "duffing", "identification"),
    _fladischer("table-4.5", "Hardening spring: spread of the stiffness", "duffing_spread", "spread_of_stiffness"),
    _fladischer("figure-4.22", "Hardening spring: 784 starts", "duffing", "many_starts"),
    _fladischer("figures-4.25-4.30", "LuGre friction: hysteresis", "lugre", "hysteresis"),
    _fladischer("figures-4.31-4.33", "LuGre friction: sensitivities", "lugre", "sensitivities"),
    _fladischer("figures-4.34-4.38", "LuGre friction: identification", "lugre_fit", "identification"),
    _abdalmoaty("fig1", "Pendulum: estimates over data sets, on a grid", "estimates", "estimates"),
    _abdalmoaty("fig1-gauss-newton", "Pendulum: the same by Gauss–Newton", "estimates", "by_gauss_newton"),
    _abdalmoaty("fig2", "Pendulum: criterion with kept and fresh innovations", "smoothness", "smoothness"),
    _abdalmoaty("finite-m", "Pendulum: bias by the number of realizations", "bias", "finite_ensembles"),
    _abdalmoaty("consistency", "Pendulum: bias and spread against length", "bias", "consistency"),
    _abdalmoaty("coverage", "Pendulum: coverage of 95 % intervals", "coverage", "coverage"),
    _abdalmoaty(
        "disturbance-parameters",
        "Gain, frequency, correlation of disturbances",
        "disturbances",
        "disturbance_parameters",
    ),
    _abdalmoaty("coarse-grid", "Disturbances on a coarse grid: lines, exact paths", "disturbances", "coarse_grid"),
    _abdalmoaty("delta-robot", "Delta robot: identification", "delta_robot", "identification"),
    _kristensen(1, "Fed-batch reactor: estimates without diffusion"),
    _kristensen(2, "Fed-batch reactor: weak diffusion, single records and ten jointly"),
    _kristensen(3, "Fed-batch reactor: strong diffusion, single records and ten jointly"),
    _kristensen(4, "Wall: estimates without diffusion"),
    _kristensen(5, "Wall: estimates with diffusion"),
    _kristensen(6, "Fed-batch reactor: four starts of the diffusion"),
    _kristensen(7, "Fed-batch reactor: the same under low-pass noise"),
    _kristensen(8, "Wall: four starts of the diffusion"),
    _kristensen(9, "Wall: the same under low-pass noise"),
    Entry("gerdin/example", "Two joined bodies: well-posedness, parameters, states", "gerdin_example", "example"),
    _varziri("figures-1.1-1.2", "An unstable model: simulation, splines, output error", "unstable", "unstable"),
    _varziri("figures-3.6-3.7", "Linear stirred tank: weights of the model, output error", "linear", "weights"),
    _varziri("figures-3.9-3.10", "Stirred tank: two parameters, output error", "nonlinear", "two_parameters"),
    _varziri("table-4.1", "Stirred tank: four parameters, output error", "nonlinear", "measured"),
    _varziri("table-4.1-strong", "Stirred tank: the same, larger steps", "nonlinear", "strongly_measured"),
    _varziri("table-4.2", "Stirred tank: concentration unmeasured", "nonlinear", "unmeasured"),
    _varziri("table-4.3", "Stirred tank: a drifting disturbance", "nonlinear", "drifting"),
    _varziri("intensity", "Stirred tank: unknown intensities, Tables 5.1, 5.2", "intensity", "unknown_intensities"),
    _varziri(
        "three-methods",
        "Pendulum of index 3: collocation, Kalman filter, SimulatedPEM",
        "three_methods",
        "three_methods",
    ),
    _varziri("table-6.1", "Nylon 612: eight formulas of the equilibrium constant", "nylon_equilibrium", "selection"),
    _varziri("table-6.2", "Nylon 612: equilibrium constant from steady states", "nylon_equilibrium", "estimates"),
    _varziri(
        "figures-6.1-6.4", "Nylon 612: equilibrium constant, observed and predicted", "nylon_equilibrium", "figures"
    ),
    _varziri("table-6.3", "Nylon 612: intensities of the disturbances", "nylon_fits", "intensities"),
    _varziri("table-6.4", "Nylon 612: estimates at the published intensities", "nylon_fits", "estimates"),
    _varziri("table-6.5", "Nylon 612: correlation of the estimates", "nylon_fits", "correlations"),
    _varziri("table-6.6", "Nylon 612: weighted least squares", "nylon_wnls", "least_squares"),
    _varziri("figures-6.5-6.6", "Nylon 612: trajectories of six runs", "nylon_fits", "figures"),
)


def find(name: str) -> tuple[Entry, ...]:
    """The entries that a name means: one of them, or all of a paper."""
    wanted = name.strip().strip("/").lower()
    found = tuple(e for e in ENTRIES if e.name == wanted or e.name.partition("/")[0] == wanted)
    if found:
        return found
    near = difflib.get_close_matches(wanted, [e.name for e in ENTRIES], n=3, cutoff=0.3)
    hint = f" Near: {', '.join(near)}." if near else ""
    raise DataError(f"There is no reproduction called {name!r}.{hint} 'grisaille reproduce --list' shows all.")


def listing() -> str:
    """Names and titles, one per line."""
    width = max(len(e.name) for e in ENTRIES)
    return "\n".join(f"{e.name:<{width}}  {e.title}" for e in ENTRIES)
