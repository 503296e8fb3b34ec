"""Saving and loading: everything comes back; what does not belong together, or is damaged, is refused."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import grisaille as gr
from grisaille.bound_experiment import Discretisation
from grisaille.errors import DataError
from grisaille.estimation.persistence import file_groups, groups_as_bytes, read_groups
from grisaille.filtering import FilterSteps
from grisaille.simulation import SimulationSteps

METHOD = gr.OutputError(rtol=1e-6)
T = np.linspace(0.0, 3.0, 16)


class Decay(gr.Model):
    """x' = −a x + b u."""

    a = gr.Parameter(1.0, "1/s", bounds=(0.01, 50.0))
    b = gr.Parameter(0.5)
    x = gr.Variable(2.0, "m")
    u = gr.Input()
    y, z = gr.Output(x, unit="m"), gr.Output(x**2, noise=0.1)
    equations = [gr.der(x) == -a * x + b * u]


def experiment(name: str, seed: int, **options) -> gr.Experiment:
    random = np.random.default_rng(seed)
    x = 2 * np.exp(-0.7 * T)
    y = x + 0.05 * random.standard_normal(16)
    y[3] = np.nan
    z = (T[::2] + 0.05, (2 * np.exp(-0.7 * (T[::2] + 0.05))) ** 2 + 0.1 * random.standard_normal(8))
    return gr.Experiment(
        np.append(T, 4.0), {"u": np.sin(np.append(T, 4.0))}, {"y": np.append(y, np.nan), "z": z}, name=name, hold="foh",
        units={"u": "s"}, **options,
    )  # fmt: skip


@pytest.fixture(scope="module")
def fit() -> gr.Fit:
    data = [experiment("A", 1, start={"x": gr.Normal(2.0, 0.5)}), experiment("run 2/B", 2, skip=1)]
    joint = gr.MultivariateNormal(["a", "b"], [0.7, 0.1], [[1.0, 0.1], [0.1, 1.0]])
    return gr.fit(Decay(), data, ["a", "b"], METHOD, priors={"a": joint, "b": joint, "start(x)@A": gr.Normal(2.0, 0.5)})


@pytest.fixture
def path(fit: gr.Fit, tmp_path: Path) -> Path:
    target = tmp_path / "fit.nc"
    fit.save(target)
    return target


def test_everything_comes_back(fit: gr.Fit, path: Path) -> None:
    back = gr.load(path)
    assert str(back) == str(fit)
    assert back.parameters.equals(fit.parameters)
    assert back.covariance.equals(fit.covariance)
    for standardized in (False, True):
        assert back.residuals(standardized=standardized).equals(fit.residuals(standardized=standardized))
    assert back.trace.equals(fit.trace)
    assert (back.names, back.why, back.method) == (fit.names, fit.why, fit.method)
    assert back.experiments == fit.experiments and back.initial_model == fit.initial_model
    assert back.estimate.unknowns == fit.estimate.unknowns
    assert np.array_equal(back.estimate.evaluation.jacobian, fit.estimate.evaluation.jacobian)
    assert (back.aic, back.bic, back.converged, back.notes) == (fit.aic, fit.bic, fit.converged, fit.notes)


def test_a_loaded_fit_computes_the_same(fit: gr.Fit, path: Path) -> None:
    back = gr.load(path)
    for case, other in zip(fit.estimate.cases, back.estimate.cases, strict=True):
        a = case.predict(fit.estimate.theta, sensitive=True)
        b = other.predict(back.estimate.theta, sensitive=True)
        assert case.discretisation is not None and case.discretisation == other.discretisation
        assert np.array_equal(a.y, b.y) and np.array_equal(a.sy, b.sy)
    assert fit.diagnose().table.equals(back.diagnose().table)


def test_prediction_and_profile_of_a_loaded_static_fit(tmp_path: Path) -> None:
    class Line(gr.Model):
        p, q = gr.Parameter(0.0), gr.Parameter(0.0)
        x = gr.Input()
        y = gr.Output(p + q * x)

    x = np.linspace(0, 1, 10)
    data = gr.Experiment(inputs={"x": x}, outputs={"y": x + 0.1 * np.cos(9 * x)})
    fit = gr.fit(Line(), data, ["p", "q"], METHOD)
    fit.save(tmp_path / "line.nc")
    back = gr.load(tmp_path / "line.nc")
    assert back.predict().equals(fit.predict())
    assert back.profile("q").interval == fit.profile("q").interval


def test_loading_needs_no_class_and_runs_no_code(path: Path) -> None:
    """In a fresh interpreter that never saw the class; pickle must not even be called."""
    code = (
        "import contextlib, pickle, sys\n"
        "with contextlib.suppress(ImportError): import dask.array, dask.delayed  # which pickles its own functions\n"
        "def refuse(*_a, **_k): raise SystemExit('pickle was used')\n"
        "pickle.load = pickle.loads = pickle.Unpickler = refuse\n"
        "import grisaille as gr\n"
        f"fit = gr.load({str(path)!r})\n"
        "print(fit)\n"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(gr.load(path))


def test_a_model_must_match(fit: gr.Fit, path: Path) -> None:
    assert gr.load(path, model=Decay()).initial_model == fit.initial_model
    with pytest.raises(DataError, match="same equations but other values"):
        gr.load(path, model=Decay(b=0.6))

    class Other(Decay):
        y = gr.Output(2 * Decay.x, unit="m")

    with pytest.raises(DataError, match="other equations"):
        gr.load(path, model=Other())
    assert gr.load(path, model=Decay(b=0.6), check=False).initial_model.parameters["b"].value == 0.6


def test_other_and_damaged_files_are_refused(path: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="There is no file"):
        gr.load(tmp_path / "none.nc")
    text = tmp_path / "text.nc"
    text.write_text("not a fit")
    with pytest.raises(DataError, match="not a complete netCDF file"):
        gr.load(text)
    cut = tmp_path / "cut.nc"
    cut.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="not a complete netCDF file"):
        gr.load(cut)
    plain = tmp_path / "plain.nc"
    xr.Dataset({"x": ("t", np.arange(3.0))}).to_netcdf(plain, engine="h5netcdf")
    with pytest.raises(DataError, match="not of a fit"):
        gr.load(plain)


def test_altered_numbers_are_noticed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["theta"][0] *= 1.001
    with pytest.raises(DataError, match="not those that were saved"):
        gr.load(path)


def test_altered_data_are_noticed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        file["experiment_0/y"][0] = 7.0
    with pytest.raises(DataError, match=r"experiment 'A' in .* is not as it was saved"):
        gr.load(path)


def test_every_truncation_is_refused(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    for part in np.linspace(0, len(content) - 1, 12).astype(int):
        cut = tmp_path / f"cut{part}.nc"
        cut.write_bytes(content[:part])
        with pytest.raises(DataError):
            gr.load(cut)


def test_saving_is_atomic(fit: gr.Fit, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()

    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("h5py.Group.create_dataset", fail)
    with pytest.raises(OSError, match="disk is full"):
        fit.save(path)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_a_missing_folder_is_named(fit: gr.Fit, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no folder"):
        fit.save(tmp_path / "nowhere" / "fit.nc")


def test_unusual_names_survive(tmp_path: Path) -> None:
    class Leg(gr.Model):
        k = gr.Parameter(1.0)
        x = gr.Input()
        y = gr.Output(k * x)

    class Legs(gr.Model):
        legs = gr.copies(Leg(), 2)

    x = np.linspace(0, 1, 8)
    names = {"inputs": {f"legs[{k}].x": x for k in (0, 1)}, "outputs": {f"legs[{k}].y": x + 0.01 * k for k in (0, 1)}}
    fit = gr.fit(Legs(), gr.Experiment(**names), ["legs[*].k"], METHOD)
    fit.save(tmp_path / "legs.nc")
    assert str(gr.load(tmp_path / "legs.nc")) == str(fit)


def test_no_trace_and_long_texts_survive(fit: gr.Fit, tmp_path: Path) -> None:
    """Attributes of HDF5 end at 64 kB; texts here do not."""
    long = gr.Fit(
        fit.initial_model, fit.experiments, fit.method, replace(fit.estimate, trace=(), notes=("µ" * 100_000,)), fit.why
    )
    long.save(tmp_path / "long.nc")
    back = gr.load(tmp_path / "long.nc")
    assert back.notes == long.notes and back.estimate.trace == ()


def test_steps_of_older_files_are_none_where_they_are_empty() -> None:
    assert Discretisation.of({"method": "", "step": 0.0, "filter": {}}) is None
    assert Discretisation.of({}) is None


def test_xarray_reads_what_it_would_have_written(fit: gr.Fit, path: Path, tmp_path: Path) -> None:
    """Every group, with dimensions and attributes; and a file that xarray wrote is loaded as well."""
    other = tmp_path / "by_xarray.nc"
    for name, dataset in file_groups(fit):
        dataset.to_netcdf(other, mode="a" if other.exists() else "w", engine="h5netcdf", group=name or None)
    for name, _ in file_groups(fit):
        ours, theirs = (_plain(p, name) for p in (path, other))
        xr.testing.assert_identical(ours, theirs)
    pd.testing.assert_frame_equal(gr.load(other).parameters, fit.parameters, check_exact=True)


def _plain(path: Path, group: str) -> xr.Dataset:
    with xr.open_dataset(path, engine="h5netcdf", group=group or None, decode_cf=False) as dataset:
        found = dataset.load()
    for name in found.variables:
        found[name].attrs.pop("_FillValue", None)
    return found


def test_axes_without_entries_and_odd_texts_survive(tmp_path: Path) -> None:
    dataset = xr.Dataset(
        {"none": (("a", "b"), np.zeros((0, 3))), "text": ((), np.array("Größe\n∂", dtype=object))},
        {"b": ("b", [1.0, 2.0, 4.0], {"unit": "s"})},
        {"format": 1, "said": "ja"},
    )
    path = tmp_path / "some.nc"
    path.write_bytes(groups_as_bytes([("", dataset), ("inner", dataset)]))
    for found in read_groups(path).values():
        xr.testing.assert_identical(found, dataset)
    with xr.open_dataset(path, engine="h5netcdf", group="inner") as theirs:
        xr.testing.assert_identical(theirs.load(), dataset)


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (METHOD, r"steps of at most 0\.\d+$"),
        (gr.KalmanML(), r"^\d+( to \d+)? steps between samples$"),
        (gr.SimulatedPEM(realizations=2, max_iterations=2), r"^cells of at most 0\.\d+, \d+ steps in each$"),
    ],
    ids=lambda o: type(o).__name__,
)
def test_discretisations_print_themselves_and_come_back_equal(method, words: str, tmp_path: Path) -> None:
    class Tank(gr.Model):
        k = gr.Parameter(0.4, bounds=(0.01, 5.0))
        h = gr.Variable(1.5)
        w = gr.Disturbance(gr.spectra.lowpass(3.0), scale=0.05)
        y = gr.Output(h, noise=0.02)
        equations = [gr.der(h) == 1.0 - k * h**1.5 + w]

    fit = gr.fit(Tank(), gr.Experiment(T, {}, {"y": 1.4 + 0.1 * np.exp(-T) + 0.01 * np.cos(9 * T)}), ["k"], method)
    fit.save(tmp_path / "fit.nc")
    before, after = (f.estimate.cases[0].discretisation for f in (fit, gr.load(tmp_path / "fit.nc")))
    assert before is not None and before == after
    assert re.search(words, str(before)), str(before)
    assert Discretisation.of(before.data) == before


def test_discretisations_of_older_files() -> None:
    assert Discretisation.of({"method": "implicit", "step": 0.25}) == SimulationSteps("implicit", 0.25)
    assert Discretisation.of({"filter": {"substeps": 4, "doublings": 7}}) == FilterSteps(4, doublings=7)
    with pytest.raises(DataError, match=r"Wavelets is no discretisation that is known here: .*Steps"):
        Discretisation.of({"kind": "Wavelets"})


def test_texts_are_sealed_as_numbers_are(tmp_path):
    """The record was read as it stood: another status, other notes, other names."""
    fit = gr.fit(Decay(), experiment("run", 1), ["a"], METHOD)
    for name, old, new in (("record", "converged:", "converged?"), ("model", "Decay", "Decoy")):
        path = tmp_path / f"{name}.nc"
        fit.save(path)
        with h5py.File(path, "a") as file:
            text = file[name][()].decode()
            assert old in text
            del file[name]
            file.create_dataset(name, data=text.replace(old, new), dtype=h5py.string_dtype())
        with pytest.raises(DataError, match=r"texts in .* are not those that were saved"):
            gr.load(path)


def test_older_files_say_what_their_digest_covers(tmp_path):
    fit = gr.fit(Decay(), experiment("run", 1), ["a"], METHOD)
    fit.save(tmp_path / "old.nc")
    with h5py.File(tmp_path / "old.nc", "a") as file:
        del file.attrs["seal"]
    again = gr.load(tmp_path / "old.nc")
    assert again.estimates == fit.estimates and "covers the numbers but not the texts" in str(again)
    assert "covers the numbers" not in str(fit)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("record", '"evaluations": ', '"evaluations": "a", "was": '),
        ("record", '"seconds": ', '"seconds": "x", "was": '),
        ("record", '"status": ', '"status": {}, "was": '),
        ("record", '"target": "a"', '"target": "aa"'),
        ("record", '"kind": "parameter"', '"kind": []'),
        ("record", '"step": ', '"step": "x", "was": '),
        ("record", '"notes": ', '"notes": [[]], "was": '),
        ("model", '"1/h"', "2"),
        ("model", "[0.01,5.0]", '[null,"y"]'),
        ("model", '["#",0.5]', '["#","1; system()"]'),
    ],
)
def test_what_older_files_do_not_seal_is_of_its_kind(tmp_path, text, old, new):
    """Such files loaded, and ended in a TypeError where they were printed or saved."""
    model = Decay(a=gr.Parameter(0.3, "1/h", bounds=(0.01, 5.0)))
    gr.fit(model, experiment("run", 1), ["a"], METHOD).save(tmp_path / "old.nc")
    with h5py.File(tmp_path / "old.nc", "a") as file:
        del file.attrs["seal"]
        written = file[text][()].decode()
        assert old in written
        del file[text]
        file.create_dataset(text, data=written.replace(old, new, 1), dtype=h5py.string_dtype())
    with pytest.raises(gr.GrisailleError):
        gr.load(tmp_path / "old.nc")
