"""Names with units, for axes and tables."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from grisaille.estimation.fitted import Fitted
from grisaille.experiment.times.dating import clock_of

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


def experiment_of(fit: Fitted, run: str) -> Experiment:
    """Return the experiment of that name."""
    return next(e for e in fit.experiments if e.name == run)


def output_unit(fit: Fitted, run: str, output: str) -> str:
    """Return the unit of an output as the model declares it, or else as the data do."""
    declared = fit.initial_model._content.outputs
    return (declared[output].unit if output in declared else "") or str(experiment_of(fit, run).units.get(output, ""))


def quantity_unit(fit: Fitted, name: str) -> str:
    """Return the unit of any declared quantity."""
    content = fit.initial_model._content
    tables: tuple[dict[str, Any], ...] = (content.outputs, content.variables, content.inputs, content.disturbances)
    return next((str(t[name].unit) for t in tables if name in t), "")


def time_label(experiment: Experiment) -> str:
    """Return the abscissa of an experiment: ``time [h]``, ``time, Europe/Berlin`` over dates, or ``row`` for static
    ones.
    """
    clock = clock_of(experiment)
    return "row" if clock is None else clock.label


def short_number(value: float, digits: int = 5) -> str:
    """Return a number as a reader wants it; a dash where there is none."""
    number = float(value)
    return "—" if number != number else f"{number:.{digits}g}".replace("-", "−")


def as_exact(value: float, error: float) -> str:
    """Return a number with as many digits as its standard error tells: three of the error's, six of its own at most."""
    number, size = float(value), float(error)
    if not (0 < size < math.inf and math.isfinite(number)):
        return short_number(number, 6)
    digits = math.floor(math.log10(max(abs(number), size))) - math.floor(math.log10(size)) + 3
    shown = f"{number:#.{min(max(digits, 3), 6)}g}".rstrip(".")
    return (short_number(number, 6) if "e" in shown else shown).replace("-", "−")


def three_digits(value: float) -> str:
    """Three digits, zeros at the end included."""
    shown = f"{float(value):#.3g}".rstrip(".")
    return (shown if "e" not in shown else short_number(value, 3)).replace("-", "−")


def p_text(p: float) -> str:
    return "—" if p != p else "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(n: int, noun: str) -> str:
    """Return ``1 experiment``, ``2 experiments``."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
