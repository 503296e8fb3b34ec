"""An experiment as a picture: outputs as points, inputs as they are between their samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.drawing import abscissae, label_time, labelled, panels
from grisaille.errors import DataError
from grisaille.experiment.experiment_content import ExperimentContent
from grisaille.experiment.sampled_signals import SampledSignal, evaluate
from grisaille.experiment.times.dating import clock_of
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN_POINTS = 2000


def draw(
    record: ExperimentContent, signals: Iterable[str] | None, ax: Axes | Iterable[Axes] | np.ndarray | None = None
) -> Figure:
    """Draw one panel per signal; skipped samples are hollow, limits triangles, inputs end with the last output."""
    names = _chosen(record, signals)
    size = (8, 1.6 * len(names) + 0.8)
    figure, column = panels(ax, len(names), size=size, title=record.name or "", sharex=True)
    for axes, name in zip(column[:, 0], names, strict=True):
        if name in record.outputs:
            _draw_output(axes, record, name)
        else:
            _draw_input(axes, record, name)
        unit = record.units.get(name, "")
        axes.set_ylabel(labelled(name, unit))
        axes.grid(alpha=0.3)
        label_time(axes, clock_of(record), name=axes is column[-1, 0])
    return figure


def _chosen(record: ExperimentContent, signals: Iterable[str] | None) -> list[str]:
    known = [*record.outputs, *record.inputs]
    names = known if signals is None else [signals] if isinstance(signals, str) else list(signals)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise DataError(f"There is no signal '{name}' to plot. {suggestion(str(name), known)}")
    return names or known


def _draw_output(axes: Axes, record: ExperimentContent, name: str) -> None:
    values = record.outputs[name].values
    times = abscissae(clock_of(record), record.outputs[name].times)
    axes.plot(times[record.skip :], values[record.skip :], ".", color="C0", markersize=4)
    marks = record.marks.get(name, np.zeros(len(times)))
    for side, shape in ((-1, "v"), (1, "^")):
        if (marks == side).any():
            axes.plot(times[marks == side], values[marks == side], shape, color="C0", markersize=6, fillstyle="none")
    if record.skip:
        axes.plot(times[: record.skip], values[: record.skip], ".", color="C0", markersize=4, fillstyle="none")


def _draw_input(axes: Axes, record: ExperimentContent, name: str) -> None:
    signal, hold = record.inputs[name], record.hold[name]

    def at(t: Any) -> Any:
        return abscissae(clock_of(record), t)

    times = np.concatenate([y.times for y in record.outputs.values()])
    begin, end = float(times.min() if record.t0 is None else record.t0), float(times.max())
    if record.is_static and isinstance(signal, SampledSignal):
        axes.plot(signal.times, signal.values, ".", color="C1", markersize=4)
    elif not isinstance(signal, SampledSignal):
        axes.plot(at([begin, end]), [signal, signal], color="C1")
    elif hold == "zoh":
        last = max(end, float(signal.times[-1]))
        axes.step(
            at(np.append(signal.times, last)), np.append(signal.values, signal.values[-1]), where="post", color="C1"
        )
    else:
        fine = signal.times if hold == "foh" else np.linspace(signal.times[0], signal.times[-1], DRAWN_POINTS)
        axes.plot(at(fine), evaluate(signal, hold, fine), color="C1")
