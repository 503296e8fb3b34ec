"""Deliberate mistakes in data: each message names the place and says what to do."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import grisaille as gr
from grisaille import der
from grisaille.errors import DataError
from grisaille.experiment import Experiment

T = np.arange(5.0)
Y = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


class Tank(gr.Model):
    """A tank with an outflow."""

    k = gr.Parameter(0.5, bounds=(0.1, 2.0))
    h = gr.Variable(start=1.0, unit="m", bounds=(0.0, 5.0))
    q = gr.Input("m3/s")
    valve = gr.Input(default=1.0)
    w = gr.Disturbance(gr.spectra.lowpass(bandwidth=1.0))
    outflow = k * valve * h
    level = gr.Output(h, unit="m")
    equations = [der(h) == q - outflow + w]


def changed(values, row, value):
    copy = np.array(values, dtype=object if isinstance(value, str) else float)
    copy[row] = value
    return copy


def made(time=T, inputs=None, outputs=None, **options):
    return Experiment(time, {} if inputs is None else inputs, {"y": Y} if outputs is None else outputs, **options)


def csv(text, time="t", inputs=("u",), outputs=("y",), **options):
    return Experiment.from_csv(io.StringIO(text), time, list(inputs), list(outputs), **options)


def static(**options):
    return Experiment(inputs={"q": T}, outputs={"level": Y}, **options)


FRAME = pd.DataFrame({"t": T, "u": T, "y": Y})
CASES = {
    # times
    "unsorted": (lambda: made([0, 1, 3, 2, 4.0]), "go back in row 3: t = 2 follows t = 3. Sort"),
    "several unsorted": (lambda: made([0, 3, 2, 1, 4.0]), "go back in rows 2 and 3"),
    "duplicate": (lambda: made([0, 1, 1, 2, 2.0]), "repeat in rows 2 and 4: t = 1 stands twice"),
    "NaN time": (lambda: made(changed(T, 2, np.nan)), "hold nan in row 2; every row needs a time"),
    "infinite time": (lambda: made(changed(T, 4, np.inf)), "hold inf in row 4"),
    "no times": (lambda: made([], outputs={"y": []}), "times are empty"),
    "text as time": (
        lambda: made(["a", "b"], outputs={"y": [1, 2]}),
        "hold 'a' in rows 0 and 1.* neither a number nor",
    ),
    "matrix of times": (lambda: made(np.ones((5, 1))), "time= has 2 dimensions"),
    "repeated date": (
        lambda: made(pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-02"]), outputs={"y": Y[:3]}),
        "repeat in row 2: 2024-01-02 00:00:00 stands twice",
    ),
    "dates and numbers": (
        lambda: made(pd.date_range("2024-01-01", periods=5), outputs={"y": Y, "z": (T, Y)}),
        "The times are dates, but times of output 'z' are numbers",
    ),
    "zones mixed": (
        lambda: made(
            pd.date_range("2024-01-01", periods=5, tz="UTC"),
            outputs={"y": pd.Series(Y, pd.date_range("2024-01-01", periods=5))},
        ),
        "Times of output 'y': given without a time zone, but other times.* have one",
    ),
    "unit of dates": (lambda: made(pd.date_range("2024-01-01", periods=5), unit="year"), "Unit of time is 'year'.*'d'"),
    "t0 too late": (lambda: made(t0=2.0), "t0 is t = 2, after the first row at t = 0.*skip="),
    "t0 infinite": (lambda: made(t0=-np.inf), "t0 is -inf; give a finite number"),
    "t0 a date": (lambda: made(t0="2024-01-01"), "t0 is a date, but the times of this experiment are numbers"),
    # signals
    "text among values": (
        lambda: made(outputs={"y": changed(Y, 3, "bad")}),
        "Output 'y' holds 'bad' in row 3, which is not a number",
    ),
    "complex values": (lambda: made(outputs={"y": Y + 1j}), "holds .*j.* in row 0.*real and imaginary"),
    "an object": (lambda: made(outputs={"y": [1, 2, 3, [4], 5]}), "Output 'y' holds .4. .list. in row 3; give numbers"),
    "infinite output": (lambda: made(outputs={"y": changed(Y, 1, np.inf)}), "Output 'y' is infinite in row 1. Put NaN"),
    "infinite input": (lambda: made(inputs={"u": changed(Y, 1, -np.inf)}), "Input 'u' is infinite in row 1"),
    "gap in input": (
        lambda: made(inputs={"u": changed(Y, 2, np.nan)}),
        "Input 'u' is missing .NaN. in row 2.*by fill='hold', 'interpolate' or a number",
    ),
    "number is nan": (lambda: made(inputs={"u": np.nan}), "Input 'u' is nan; give a finite number"),
    "input None": (lambda: made(inputs={"u": None}), "Input 'u' is None; give a number"),
    "never measured": (lambda: made(outputs={"y": Y * np.nan}), "no measured value in 5 rows; leave it out"),
    "no outputs": (lambda: Experiment(T, {"u": T}), "outputs= is empty.*gr.simulate"),
    "wrong length": (lambda: made(outputs={"y": Y[:4]}), "Output 'y' has 4 values for 5 times.*own times"),
    "wrong own length": (lambda: made(outputs={"y": (T, Y[:3])}), "has 3 values for 5 times of its own"),
    "own times back": (lambda: made(outputs={"y": (T[::-1], Y)}), "Times of output 'y' go back in rows 1, 2, 3 and 4"),
    "matrix": (lambda: made(outputs={"y": np.ones((5, 2))}), r"Output 'y' has 2 dimensions, \(5, 2\).*'y\[0\]'"),
    "pair of numbers": (lambda: made([0, 1], outputs={"y": (1.0, 2.0)}), r"a pair means \(times, values\).*list"),
    "function": (lambda: made(inputs={"u": np.sin}), r"Input 'u' is a function; data are samples. Give \(t, f\(t\)\)"),
    "name of a column": (lambda: made(inputs={"u": "u"}), "the text 'u'. Names of columns belong to from_csv"),
    "a list of names": (lambda: made(inputs=["u"]), r"inputs= is \['u'\]; give a dict by name"),
    "key not text": (lambda: made(outputs={3: Y}), "outputs= has the key 3"),
    "in and out": (lambda: made(inputs={"y": Y}), "'y' is both an input and an output"),
    "array without times": (
        lambda: Experiment(outputs={"y": (T, Y), "z": Y}),
        "Output 'z' is an array without times.*Give time=",
    ),
    # spans
    "before the input": (
        lambda: made(inputs={"u": (T + 1, Y)}),
        "Input 'u' is known from t = 1 on, but the experiment starts at t = 0",
    ),
    "after the input": (
        lambda: made(inputs={"u": (T[:4], Y[:4])}, hold="foh"),
        r"Output 'y' is sampled at t = 4 \(row 4; 1 of 5 samples\), outside the span.*from t = 0 to t = 3. Extend",
    ),
    "after a held record": (
        lambda: made(inputs={"u": (T / 10, Y)}),
        r"Output 'y' is sampled at t = 1 \(row 1; 4 of 5 samples\).*repeat its last value",
    ),
    "hold unknown": (lambda: made(inputs={"u": T}, hold="linear"), "hold is 'linear'; it must be 'zoh', 'foh' or"),
    "hold of one": (lambda: made(inputs={"u": T}, hold={"u": 1}), "hold for input 'u' is 1"),
    "hold of nobody": (lambda: made(inputs={"u": T}, hold={"v": "foh"}), "hold= names 'v'.*not among inputs="),
    # starts, constants, weights, skip, name
    "start infinite": (lambda: made(start={"h": np.inf}), "Start of 'h' is inf"),
    "start an array": (lambda: made(start={"h": [1, 2]}), "Start of 'h' is .*None .unknown.*gr.Normal"),
    "start in brackets": (lambda: made(start={"start(h)": 1}), r"names 'start\(h\)'; write the variable itself, 'h'"),
    "start as text": (lambda: made(start="steady"), "start= is 'steady'; give a dict"),
    "start of rows": (lambda: static(start={"h": 1.0}), "names 'h', but without time= rows are independent"),
    "t0 of rows": (lambda: static(t0=0.0), "t0 = 0.0 is given without time="),
    "constant text": (lambda: made(constants={"k": "a"}), "Constant 'k' is 'a'; give a number"),
    "negative weight": (lambda: made(weights=-1.0), "Weight of output 'y' is -1.*0 or more"),
    "weight per sample": (lambda: made(weights={"y": changed(Y, 2, -3)}), "Weight of output 'y' is -3 in row 2"),
    "missing weight": (lambda: made(weights={"y": changed(Y, 2, np.nan)}), "is nan in row 2.*wherever the output"),
    "weights too few": (lambda: made(weights=[1.0, 2.0]), "Weight of output 'y' has 2 values for 5 samples"),
    "weight of nobody": (lambda: made(weights={"yy": 1.0}), "weights= names 'yy'.*Did you mean 'y'"),
    "weights all zero": (lambda: made(weights=0), "Every weight of a measured sample is zero"),
    "weight elsewhere": (lambda: made(weights={"y": (T + 1, Y)}), "other times than the output"),
    "skip negative": (lambda: made(skip=-1), "skip is -1; it counts samples"),
    "skip a time": (lambda: made(skip=0.5), "skip is 0.5; it counts samples"),
    "skip all": (lambda: made(skip=5), "skip = 5 leaves nothing of output 'y', which has 5 samples, 5 of them"),
    "name with at": (lambda: made(name="a@b"), "contains '@'.*Choose a name"),
    "name a number": (lambda: made(name=3), "name of an experiment is 3"),
    "unit of nobody": (lambda: made(units={"z": "m"}), "units= names 'z'"),
    "change": (lambda: setattr(made(), "skip", 2), r"Experiments do not change: use experiment.replace\(skip="),
    "replace unknown": (lambda: made().replace(skp=1), "'skp' is not an argument of Experiment. Did you mean 'skip'"),
    # operations
    "measurements of nobody": (lambda: made(name="A").measurements("z"), "Experiment 'A' has no output 'z'"),
    "split above one": (lambda: made().split(3.0), r"fraction is 3; give one between 0 and 1, or split\(time=3\)"),
    "split at nothing": (lambda: made().split(), "split takes a fraction"),
    "split outside": (lambda: made().split(time=9.0), "cut at t = 9 leaves one part empty; .* t = 0 to t = 4"),
    "split with seed": (lambda: made().split(0.5, seed=1), "deals out independent rows"),
    "split rows in time": (lambda: static().split(time=2.0), "have neither time nor start"),
    "resample rows": (lambda: static().resample(1.0), "rows of a static experiment"),
    "resample backwards": (lambda: made().resample(-1.0), "step is -1; outputs span 4 s"),
    "resample beyond": (lambda: made().resample(times=[0, 9.0]), "t = 0 to t = 9 reaches beyond the outputs"),
    "resample how": (lambda: made().resample(1.0, outputs="max"), "outputs is 'max'; it must be 'mean' or"),
    "plot nobody": (lambda: made().plot(["yy"]), "no signal 'yy' to plot. Did you mean 'y'"),
    # files
    "cell": (lambda: csv("t,u,y\n0,1,1\n1,x,2\n"), "Column 'u' .input 'u'. holds 'x' in line 3 of the table.*comment"),
    "cells": (lambda: csv("t,u,y\n0,1,a\n1,1,b\n"), "holds 'a' in line 2 .*2 such cells"),
    "column": (lambda: csv("t,uu,y\n0,1,1\n"), "has no column 'u' .input 'u'.. Did you mean 'uu'"),
    "time column": (lambda: csv("time,u,y\n0,1,1\n"), "has no column 't' .time=.. Did you mean 'time'"),
    "separator": (lambda: csv("t|u|y\n0|1|1\n"), "Only one column was found, 't.u.y': say what separates"),
    "decimal comma": (lambda: csv("t;u;y\n0;1,5;1\n"), "holds '1,5' in line 2.*add decimal=','"),
    "thousands": (lambda: csv("t;u;y\n0;1.500,5;1\n", decimal=","), "holds '1.500,5' in line 2"),
    "point": (lambda: csv("t;u;y\n0;1.5;1\n", decimal=","), "With decimal=',' a point has no meaning"),
    "decimal sign": (lambda: csv("t;u;y\n0;1;1\n", decimal="'"), "it must be '.' or ','"),
    "both signs": (lambda: csv("t,u\n", decimal=",", separator=","), "separator and decimal are both ','"),
    "long separator": (lambda: csv("t,u\n", separator=", "), "give one character"),
    "ragged": (lambda: csv("t,u,y\n0,1,1\n\n1,2\n"), "Line 4 of the table has 2 cells, the header has 3"),
    "empty file": (lambda: csv("# nothing\n"), "is empty; the first line must name the columns"),
    "header only": (lambda: csv("t,u,y\ns,N,m\n"), "has a header but no rows"),
    "no file": (lambda: Experiment.from_csv("nowhere.csv", "t"), "There is no file 'nowhere.csv'"),
    "binary": (lambda: Experiment.from_csv(io.BytesIO(b"t\n"), "t"), "open in binary mode"),
    "lines, not rows": (lambda: csv("# a\nt,u,y\ns,N,m\n0,1,1\n# b\n2,1,1\n1,1,1\n"), "go back in line 7 of the table"),
    "gap by line": (lambda: csv("t,u,y\n0,1,1\n1,,1\n"), "Input 'u' is missing .NaN. in line 3"),
    "blank time": (lambda: csv("t,u,y\n0,1,1\n,1,1\n"), "hold nan in line 3 of the table; every row"),
    "date with slashes": (
        lambda: csv("t,u,y\n01/12/2024 00:00,1,1\n"),
        "hold '01/12/2024 00:00' in line 2.*no row says whether the day or the month",
    ),
    "broken date": (lambda: csv("t,u,y\n2024-01-01,1,1\n2024-13-01,1,1\n"), "hold '2024-13-01' in line 3.*from_frame"),
    "zone of some": (
        lambda: csv("t,u,y\n2024-01-01T00:00Z,1,1\n2024-01-01T01:00,1,1\n"),
        "hold '2024-01-01T01:00' in line 3 of the table without a time zone",
    ),
    "no such hour": (
        lambda: csv("t,u,y\n2024-03-31 02:30,1,1\n", zone="Europe/Berlin"),
        "2024-03-31 02:30:00 in line 2.*does not exist or happens twice in Europe/Berlin",
    ),
    "no such zone": (lambda: csv("t,u,y\n2024-03-31,1,1\n", zone="Mars/Base"), "zone is 'Mars/Base', which is not"),
    "zone of numbers": (lambda: csv("t,u,y\n1,1,1\n", zone="UTC"), "column 't' holds no dates"),
    "zone without time": (lambda: csv("t,u,y\n1,1,1\n", time=None, zone="UTC"), "without time="),
    "same column twice": (lambda: csv("t,u,y,y\n0,1,1,2\n"), "has several columns 'y'"),
    "constant varies": (
        lambda: csv("t,u,y,T\n0,1,1,300\n1,1,1,301\n", constants=["T"]),
        "is not constant: 300 in line 2 of the table, 301 in line 3.*by=",
    ),
    "run without label": (lambda: csv("t,u,y,run\n0,1,1,A\n1,1,1,\n", by="run"), "'run' .by=. is empty in line 3"),
    "run unsorted": (
        lambda: csv("t,u,y,run\n0,1,1,A\n1,1,1,B\n0,1,1,B\n", by="run"),
        "Experiment 'B': the times go back in line 4",
    ),
    "name and by": (lambda: csv("t,u,y,run\n0,1,1,A\n", by="run", name="all"), "runs are named by that column"),
    "list as text": (
        lambda: Experiment.from_frame(FRAME, "t", "u", ["y"]),
        r"inputs='u': give a list of columns, \['u'\]",
    ),
    "unknown option": (lambda: csv("t,u,y\n0,1,1\n", decimals=","), "'decimals' is not an argument"),
    # frames and datasets
    "not a frame": (lambda: Experiment.from_frame({"t": T}, "t"), "needs a pandas DataFrame, got dict"),
    "numbered column": (lambda: Experiment.from_frame(FRAME, "t", [], [2]), "outputs: a column is 2; give a text"),
    "complex number": (lambda: made(inputs={"u": 1 + 2j}), "Input 'u' is .*2j.; give a number"),
    "wrong file": (lambda: Experiment.from_csv(None, "t"), "path is None; give the name of a file"),
    "wrong separator": (lambda: csv("t,u,y\n", separator=3), "separator is 3; give a text"),
    "mixed times": (lambda: made([1, "x", 3, 4, 5]), "times hold 'x' in row 1, which is neither a number"),
    "empty frame": (lambda: Experiment.from_frame(FRAME[:0], "t"), "frame is empty .0 rows"),
    "frame column": (lambda: Experiment.from_frame(FRAME, "t", outputs=["Y"]), "frame has no column 'Y'.*mean 'y'"),
    "frame cell": (
        lambda: Experiment.from_frame(FRAME.astype({"y": object}).replace({"y": {4.0: "4,0"}}), "t", outputs=["y"]),
        "holds '4,0' in row 2, which is not a number",
    ),
    "frame label": (
        lambda: Experiment.from_frame(
            FRAME.set_index(pd.Index(list("abcde"))).assign(t=[0, 1, 1, 2, 3]), "t", [], ["y"]
        ),
        r"repeat in row 2 \(index 'c'\)",
    ),
    "levels": (lambda: Experiment.from_frame(FRAME.set_index(["t", "u"]), outputs=["y"]), "several levels"),
    "dataset": (lambda: Experiment.from_dataset(FRAME.to_xarray()), "not written by Experiment.to_dataset"),
    "dataset variable": (
        lambda: Experiment.from_dataset(FRAME.set_index("t").to_xarray(), [], ["z"], time="t"),
        "dataset has no variable 'z'",
    ),
    "dataset time": (lambda: Experiment.from_dataset(FRAME.to_xarray(), [], ["y"]), "no coordinate 'time'"),
    "dataset dimensions": (
        lambda: Experiment.from_dataset(FRAME.set_index(["t", "u"]).to_xarray(), [], ["y"], time="t"),
        "has the dimensions .*Choose one of 'u'",
    ),
    # models
    "unknown input": (
        lambda: made(inputs={"qq": 1}, name="A").check(Tank()),
        "Experiment 'A': inputs= names 'qq'.*'q'",
    ),
    "missing input": (lambda: made(outputs={"level": Y}).check(Tank()), "Tank needs the input 'q'.*default="),
    "parameter as input": (
        lambda: made(inputs={"k": 1.0}).check(Tank()),
        r"'k' is a parameter: set it with constants=\{'k'",
    ),
    "variable as output": (
        lambda: made(inputs={"q": 1}, outputs={"h": Y}).check(Tank()),
        r"'h', which is not an output of Tank. 'h' is a variable: declare what is measured, y = gr.Output\(h\)",
    ),
    "formula as output": (lambda: made(inputs={"q": 1}, outputs={"outflow": Y}).check(Tank()), "is a formula"),
    "disturbance as input": (lambda: made(inputs={"w": Y}).check(Tank()), "'w' is a disturbance"),
    "constant unknown": (
        lambda: made(inputs={"q": 1}, outputs={"level": Y}, constants={"kk": 1}).check(Tank()),
        "constants= names 'kk', which is not a parameter of Tank. Did you mean 'k'",
    ),
    "start unknown": (
        lambda: made(inputs={"q": 1}, outputs={"level": Y}, start={"level": 1}).check(Tank()),
        "start= names 'level', which is not a variable of Tank. 'level' is an output",
    ),
    "start out of bounds": (
        lambda: made(inputs={"q": 1}, outputs={"level": Y}, start={"h": 7}).check(Tank()),
        r"Start of 'h' is 7, outside the bounds \(0, 5\)",
    ),
    "rows for a dynamic model": (lambda: static().check(Tank()), "no times, .* but Tank has derivatives. Give time="),
}


@pytest.mark.parametrize("case", CASES)
def test_message_says_what_and_where(case):
    mistake, words = CASES[case]
    with pytest.raises(DataError, match=f"(?s){words}"):
        mistake()


def test_encoding_is_named_with_its_line(tmp_path):
    file = tmp_path / "umlaut.csv"
    file.write_bytes("t,y\n0,1\n# Größe\n1,2\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"umlaut.csv is not utf-8 text: line 3 .*encoding='latin-1'"):
        Experiment.from_csv(file, "t", [], ["y"])
    assert Experiment.from_csv(file, "t", [], ["y"], encoding="latin-1").name == "umlaut"


def test_name_of_the_file_is_in_the_message(tmp_path):
    file = tmp_path / "run7.csv"
    file.write_text("t,y\n0,1\n1,oops\n")
    with pytest.raises(DataError, match=r"Column 'y' .* holds 'oops' in line 3 of run7.csv"):
        Experiment.from_csv(file, "t", [], ["y"])
