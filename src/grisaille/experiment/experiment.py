"""``Experiment``: one run of the plant — what was applied, what was measured, and how it began."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn
from weakref import ref

import numpy as np

from grisaille.arguments import refuse_wrong
from grisaille.calling import checked_methods
from grisaille.errors import DataError
from grisaille.experiment import experiment_content as _record
from grisaille.experiment.censored_cells import marks_kept
from grisaille.experiment.experiment_content import ExperimentContent, compared_rows
from grisaille.experiment.intake import RawRecord, read_experiment
from grisaille.experiment.rows import PLAIN_ROWS, RowNames
from grisaille.experiment.sampled_signals import SampledSignal
from grisaille.experiment.times.clock import UNSTATED_UNIT, Clock
from grisaille.kinds import DICT, TEXT
from grisaille.model.names import suggestion

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.figure import Figure

    from grisaille.drawing import Canvas
    from grisaille.experiment.experiment_summary import ExperimentSummary
    from grisaille.model.classes import Model


class Measurements(NamedTuple):
    """What is compared with the model: measured samples after the skipped ones."""

    times: np.ndarray
    values: np.ndarray
    weights: np.ndarray


@checked_methods
class Experiment(ExperimentContent):
    """One run of the plant; immutable, checked when it is made.

    Parameters
    ----------
    time : increasing times for signals without their own: numbers, a ``DatetimeIndex`` or ISO texts. None: signals have
        their own times, or none at all; then rows are independent samples, for models without derivatives.
    inputs, outputs : by name: a number, an array on ``time``, ``(t, values)`` or a Series indexed by time. NaN in an
        output: not measured. Inputs must be known everywhere. A text such as ``"<0.1"`` or ``">25"`` in an output is a
        sample that is known by a limit alone, at or below 0.1, at or above 25, for laws that take limits from the data
        (``gr.laws.Censored``).
    name : what per-experiment parameters are called after, as in ``"start(x)@A"``.
    hold : ``"zoh"``, ``"foh"`` or ``"spline"``, for all inputs or by input: what they are between samples.
    constants : values of parameters in this run.
    start : variables at ``t0``: a number (known), None (unknown) or a prior (unknown, believed to be near);
        ``{"*": None}``: every state is unknown.
    t0 : when the start holds, if before the first row (the default).
    weights : factors of residuals: a number, a dict by output, or one number per sample; zero: not measured.
    skip : how many first samples of each output, measured or not, are not compared with the model; or for how long from
        the beginning, as in ``"2h"``.
    unit : of time, ``"s"``, ``"min"``, ``"h"`` or ``"d"``; seconds where none is given. Dates are converted to it;
        numbers are taken to be in it (then any text will do).
    units : of signals, by name. Labels, never converted.
    fill : what inputs are where nothing was recorded, in empty cells and in gaps much longer than the usual interval:
        ``"hold"``, ``"interpolate"`` or a number, for all of them or by input. None: empty cells are refused, and a
        held input goes on through a gap, which the summary remarks.
    marks : by output −1 for each sample at or below its value, 1 for one at or above it, 0 for one that was measured:
        what cells such as ``"<0.1"`` say, for values that are numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import grisaille as gr
    >>> times = np.linspace(0.0, 12.0, 41)
    >>> run = gr.Experiment(times, {"u": np.sin(times)}, {"y": np.cos(times)}, name="A", hold="foh")
    >>> train, test = run.split(0.5)
    >>> len(train.measurements("y").values), run.replace(skip=1).skip
    (20, 1)
    """

    def __init__(
        self,
        time: Any = None,
        inputs: Mapping[str, Any] = MappingProxyType({}),
        outputs: Mapping[str, Any] = MappingProxyType({}),
        *,
        name: str | None = None,
        hold: str | Mapping[str, str] = "zoh",
        constants: Mapping[str, float] = MappingProxyType({}),
        start: Mapping[str, Any] = MappingProxyType({}),
        t0: Any = None,
        weights: Any = None,
        skip: int | str = 0,
        unit: str = UNSTATED_UNIT,
        units: Mapping[str, str] = MappingProxyType({}),
        fill: Any = None,
        marks: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        given = RawRecord(
            time, inputs, outputs, name=name, hold=hold, constants=constants, start=start, t0=t0, weights=weights,
            skip=skip, unit=unit, units=units, fill=fill, marks=marks,
        )  # fmt: skip
        super().__init__(**vars(read_experiment(given)))

    @classmethod
    def from_csv(
        cls,
        path: str | Path | Any,
        time: str | None = None,
        inputs: Any = (),
        outputs: Any = (),
        *,
        by: str | None = None,
        constants: Any = MappingProxyType({}),
        name: str | None = None,
        unit: str | None = None,
        zone: str | None = None,
        dayfirst: bool | None = None,
        separator: str | None = None,
        decimal: str = ".",
        comment: str = "#",
        encoding: str = "utf-8",
        units_row: bool | None = None,
        **options: Any,
    ) -> Any:
        """Return an experiment from a text file with a header; with ``by`` a list of them.

        Parameters
        ----------
        path : file name, or an open text file.
        time : name of the column of times: numbers, or dates in ISO 8601, 26.03.2025 or 03/26/2025. None: rows are
            independent samples.
        inputs, outputs : names of columns, or a dict from names in the model to columns. Empty cells, ``NA``, ``NaN``,
            ``null`` and ``-`` are not measured; ``<0.1`` and ``>25`` in an output are limits.
        by : column that tells runs apart; each becomes an experiment named by its value, in order of appearance.
        constants : names of columns that are constant in each run, or a dict to columns or numbers. ``start`` and
            ``weights`` may name columns in the same way: ``start={"x": "x0"}``.
        name : of the experiment; by default the name of the file without its ending.
        unit, zone : unit of time, by default the one in the row of units or the header (``t [h]``), or else seconds;
            the time zone of dates without one, such as ``"Europe/Berlin"``.
        dayfirst : whether 01/02/2025 is the first of February; needed where no row of the column tells.
        separator : ``","``, ``";"`` or a tab; by default the one that occurs in the header.
        decimal : ``","`` for numbers such as 3,14.
        comment : lines that begin with it are passed over, as empty lines are.
        encoding : of the file.
        units_row : whether units stand below the header; by default when that row holds text and no number.
        options : hold, start, t0, weights, skip, units, fill, as in ``Experiment``.
        """
        from grisaille.experiment.frames import WantedColumns, make_experiments
        from grisaille.experiment.text_files import read_table

        table = read_table(path, separator, decimal, comment, encoding, units_row)
        label = name or (None if by is not None else table.label)
        wanted = WantedColumns(time, inputs, outputs, constants, zone, dayfirst)
        return make_experiments(cls, table, wanted, options, name=label, unit=unit, by=by)

    @classmethod
    def from_frame(
        cls,
        frame: pd.DataFrame,
        time: str | None = None,
        inputs: Any = (),
        outputs: Any = (),
        *,
        by: str | None = None,
        constants: Any = MappingProxyType({}),
        name: str | None = None,
        unit: str | None = None,
        zone: str | None = None,
        dayfirst: bool | None = None,
        **options: Any,
    ) -> Any:
        """Return an experiment from a ``DataFrame``; with ``by`` a list of them.

        Parameters
        ----------
        frame : a column per signal.
        time : name of the column of times. None: the index is time when it holds dates, durations or floats, or has a
            name; otherwise it numbers rows, which are independent samples.
        inputs, outputs, by, constants, name, unit, zone, dayfirst, options : as in :meth:`from_csv`.
        """
        from grisaille.experiment.frames import WantedColumns, make_experiments, table_of_frame

        table, time = table_of_frame(frame, time)
        wanted = WantedColumns(time, inputs, outputs, constants, zone, dayfirst)
        return make_experiments(cls, table, wanted, options, name=name, unit=unit, by=by)

    @classmethod
    def from_mat(
        cls,
        path: str | Path,
        inputs: Any = (),
        outputs: Any = (),
        *,
        constants: Any = MappingProxyType({}),
        name: str | None = None,
        unit: str | None = None,
        **options: Any,
    ) -> Experiment:
        """Return an experiment from a file of results of OpenModelica or Dymola: MATLAB (``…_res.mat``) or CSV.

        Units are those of the descriptions of variables. Of two rows at one instant, the sides of an event, the last
        one counts.

        Parameters
        ----------
        path : file name.
        inputs, outputs : names of variables, or a dict from names in the model to variables, such as
            ``{"u": "source.y"}``.
        constants : names of parameters, or a dict from names in the model to parameters or numbers: variables that do
            not change. ``start`` may name variables in the same way, which gives their values at the first instant.
        name : of the experiment; by default the name of the file without its ending.
        unit : unit of time; by default the one in the file, or else seconds.
        options : hold, start, t0, weights, skip, units, fill, as in ``Experiment``. Trajectories are continuous between
            their rows: ``hold="foh"`` for inputs that are.
        """
        from grisaille.experiment.result_files import read_from_results

        return read_from_results(cls, path, inputs, outputs, constants, name, unit, options)

    @classmethod
    def from_dataset(
        cls, dataset: xr.Dataset, inputs: Any = None, outputs: Any = None, *, time: str = "time", **options: Any
    ) -> Experiment:
        """Read what :meth:`to_dataset` wrote or, with ``inputs`` and ``outputs``, variables of a Dataset over ``time``.

        Parameters
        ----------
        dataset : as :meth:`to_dataset`, ``gr.simulate`` or others make it.
        inputs, outputs : names of variables, or a dict from names in the model to variables.
        time : name of the coordinate of times.
        options : other arguments of ``Experiment``.
        """
        from grisaille.experiment.datasets import read_dataset, restore_dataset

        if inputs is None and outputs is None:
            return restore_dataset(cls, dataset, options)
        return read_dataset(
            cls, dataset, () if inputs is None else inputs, () if outputs is None else outputs, time, options
        )

    @property
    def output_times(self) -> np.ndarray:
        """Every time in the rows of some output, sorted; row numbers for static experiments."""
        return np.unique(np.concatenate([samples.times for samples in self.outputs.values()]))

    @property
    def time(self) -> np.ndarray | None:
        """Return the output times; None for static experiments."""
        return None if self.is_static else self.output_times

    def grid(self) -> np.ndarray:
        """Return the times of a simulation: ``t0`` and all output times; row numbers for static experiments."""
        return self.output_times if self.t0 is None else np.union1d(self.output_times, [self.t0])

    def measurements(self, name: str) -> Measurements:
        """Return times, values and weights of one output: measured samples after the skipped ones.

        name : of the output.

        A sample of weight zero counts as not measured, for every estimator and every test. The value of a sample that
        is marked in ``marks`` is its limit.
        """
        if not isinstance(name, str) or name not in self.outputs:
            raise DataError(f"{self._who()} has no output '{name}'. {suggestion(str(name), self.outputs)}")
        times, values = self.outputs[name]
        weights, kept = np.broadcast_to(self.weights[name], values.shape), compared_rows(self, name)
        return Measurements(times[kept], values[kept], weights[kept].astype(float))

    def input_signals(self, model_inputs: Iterable[str] | None = None) -> tuple[dict[str, Any], dict[str, str]]:
        """Return ``(inputs, hold)`` as ``gr.simulate`` takes them.

        model_inputs : names; all inputs by default.
        """
        wanted = list(self.inputs if model_inputs is None else model_inputs)
        given = {name: self.inputs[name] for name in wanted if name in self.inputs}
        return {n: tuple(s) if isinstance(s, SampledSignal) else s for n, s in given.items()}, {
            n: self.hold[n] for n in given
        }

    def check(self, model: Model) -> tuple[str, ...]:
        """Refuses names that the model does not have and inputs that are missing; returns remarks.

        model : what the experiment is to be used with.
        """
        from grisaille.experiment.model_match import match_model
        from grisaille.model.flattening.flatten import flatten

        flat = flatten(model)
        known = vars(self).get("_matched")
        if known is None or known[0]() is not flat:
            known = vars(self)["_matched"] = ref(flat), match_model(self, flat)
        return known[1]

    def _remarks_beside(self, model: Model) -> tuple[str, ...]:
        """On outputs that were recorded in steps of which their law does not know, and on inputs that were not recorded
        for long."""
        from grisaille.experiment.experiment_summary import coarse_outputs, held_gaps
        from grisaille.model.flattening.flatten import flatten
        from grisaille.model.measurement.distributions import stepped_outputs

        return *coarse_outputs(self, stepped_outputs(flatten(model))), *held_gaps(self)

    def split(
        self,
        fraction: Any = None,
        *,
        time: Any = None,
        restart: bool | Mapping[str, Any] = False,
        seed: int | None = None,
    ) -> tuple[Experiment, Experiment]:
        """Return ``(train, test)``: the first part, and the rest.

        Parameters
        ----------
        fraction : of the output times that go into the first part; a whole number of them, at least one in each.
        time : the instant of the cut instead: a number, a date, or a duration from time zero on, ``"2 days"``; samples
            at it belong to the second part.
        restart : False: the second part keeps ``t0``, ``start`` and all inputs, so the model runs through the first
            part without being compared with it, and no start has to be invented at the cut. True: it begins at its
            first output time, where every state is unknown, ``start={"*": None}``. A dict: it begins there with these
            starts. ``skip`` applies to the first part only; an output with nothing to compare in a part is not in it.
        seed : for static experiments, rows are dealt out at random instead of in order.
        """
        from grisaille.experiment.splitting import split

        return split(self, fraction, time, restart, seed)

    def resample(self, step: Any = None, *, times: Any = None, outputs: str = "mean") -> Experiment:
        """Return the experiment on other times.

        Parameters
        ----------
        step : between the new times, which begin at the first output time: a number, or a duration such as ``"1h"``.
        times : the new times themselves, instead.
        outputs : ``"mean"`` or ``"nearest"``, as below.

        Inputs are evaluated there by their hold. Each new time has a window that ends halfway to its neighbours. An
        output becomes the mean of its measured samples in the window, with the weight they had together, w = √Σ wᵢ²,
        mean = Σ wᵢ² yᵢ / w² (``outputs="mean"``), or the one ``"nearest"`` to the new time, with its weight. Either
        stands at the time of its samples, the mean at their mean time, which is the new time where the window is filled
        evenly. A window without measured samples gives NaN: nothing is interpolated. Skipped samples are left out, and
        ``skip`` is 0 afterwards.
        """
        from grisaille.experiment.resampling import resample

        return resample(self, step, times, outputs)

    def replace(self, **changes: Any) -> Experiment:
        """Return a copy with some arguments changed, checked anew; an array for a signal keeps the signal's times.

        changes : arguments of ``Experiment``, by name.
        """
        if not self.is_static and "time" not in changes:
            changes = {
                key: self._timed(value) if key in ("inputs", "outputs") else value for key, value in changes.items()
            }
        kept = self._arguments()
        if isinstance(outputs := changes.get("outputs"), Mapping) and isinstance(kept["weights"], Mapping):
            kept["weights"] = {n: w for n, w in kept["weights"].items() if n in outputs}
        if isinstance(outputs, Mapping) and "marks" not in changes:
            kept["marks"] = marks_kept(self, outputs)
        return self._remade(self.clock, PLAIN_ROWS, **{**kept, **changes})

    def _timed(self, signals: Any) -> Any:
        """Return bare arrays with the times of the signals they replace."""
        if not isinstance(signals, Mapping):
            return signals
        axes = {n: s.times for n, s in {**self.inputs, **self.outputs}.items() if isinstance(s, SampledSignal)}
        bare = {n for n, value in signals.items() if isinstance(value, list | np.ndarray) and n in axes}
        return {n: (axes[n], value) if n in bare else value for n, value in signals.items()}

    def _arguments(self) -> dict[str, Any]:
        """Return what the constructor would take to make this experiment."""
        values = _record.content(self)
        if self.is_static:
            for signals in (values["inputs"], values["outputs"]):
                signals.update({n: s.values for n, s in signals.items() if isinstance(s, SampledSignal)})
        return {k: v for k, v in values.items() if k not in ("is_static", "clock")}

    @classmethod
    def _remade(cls, clock: Clock | None, rows: RowNames, **arguments: Any) -> Experiment:
        """As the constructor, with a clock already set or rows that have names."""
        known = RawRecord._fields
        for key in arguments:
            if key not in known:
                raise DataError(f"'{key}' is not an argument of Experiment. {suggestion(key, known)}")
        refuse_wrong("Experiment", {"unit": TEXT, "hold": TEXT | DICT}, arguments)
        if clock is not None and "unit" in arguments and arguments["unit"] != clock.unit:
            raise DataError(f"unit is {arguments['unit']!r}, but the times are already in {clock.unit!r}.")
        if clock is not None and "unit" in arguments:
            clock = replace(clock, is_said=True)
        return cls._of(read_experiment(RawRecord(**arguments), clock, rows))

    @classmethod
    def _of(cls, read: ExperimentContent) -> Experiment:
        made: Experiment = object.__new__(cls)
        ExperimentContent.__init__(made, **vars(read))
        return made

    def summary(self) -> ExperimentSummary:
        """Summarise the record: spans, samples, gaps, rates, ranges, units, and remarks; ``print`` it."""
        from grisaille.experiment.experiment_summary import summarize

        return summarize(self)

    def plot(self, signals: Iterable[str] | None = None, *, ax: Canvas | None = None) -> Figure:
        """Draw a picture with one panel per signal, outputs first.

        signals : names; all by default
        ax : axes to draw on instead of a new figure, one per signal
        """
        from grisaille.experiment.plotting import draw

        return draw(self, signals, ax)

    def to_frame(self) -> pd.DataFrame:
        """Return one row for each time from ``t0`` to the last output at which a signal has a sample.

        Inputs are evaluated by their hold, outputs are NaN where not measured. Weights, starts and constants are not in
        it; :meth:`to_dataset` keeps everything.
        """
        from grisaille.experiment.frames import to_frame

        return to_frame(self)

    def to_dataset(self) -> xr.Dataset:
        """Return the whole content as an ``xarray.Dataset`` that netCDF can hold; ``from_dataset`` gives it back."""
        from grisaille.experiment.datasets import to_dataset

        return to_dataset(self)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content."""
        return _record.digest(self)

    def _who(self) -> str:
        return f"Experiment '{self.name}'" if self.name else "The experiment"

    def __repr__(self) -> str:
        from grisaille.experiment.experiment_summary import one_line

        return one_line(self)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Experiment) and (self is other or self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __setattr__(self, key: str, value: Any) -> NoReturn:
        raise DataError(f"Experiments do not change: use experiment.replace({key}=…) to get a changed copy.")

    def __delattr__(self, key: str) -> NoReturn:
        self.__setattr__(key, None)

    def __copy__(self) -> Experiment:
        return self

    def __deepcopy__(self, memo: Any) -> Experiment:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (_record.content(self),)


def _unpacked(values: dict[str, Any]) -> Experiment:
    """Arrays lose their protection on the way through pickle; here they get it back."""
    protected: dict[str, Any] = {
        k: MappingProxyType(_protected(v)) if isinstance(v, dict) else v for k, v in values.items()
    }
    return Experiment._of(ExperimentContent(**protected))


def _protected(table: dict[str, Any]) -> dict[str, Any]:
    def one(value: Any) -> Any:
        for array in value if isinstance(value, SampledSignal) else (value,):
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
        return value

    return {name: one(value) for name, value in table.items()}
