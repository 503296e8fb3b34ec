"""The Python mirror of gr_task."""

from __future__ import annotations

import re
from importlib import resources
from types import SimpleNamespace

import numpy as np
import pytest
from tasks import task_of

from grisaille.compilation import TASK_FIELDS, Plan, Status

SIZES = SimpleNamespace(nx=2, nz=1, nu=1, np=3, ny=4)
HEADER = (resources.files("grisaille.compilation") / "kernels" / "gr_task.h").read_text()


def test_fields_are_those_of_the_header_in_order():
    body = re.sub(r"/\*.*?\*/", "", HEADER.split("typedef struct {")[1].split("} gr_task;")[0], flags=re.S)
    declared = [
        re.sub(r"[^\w]", "", name.split()[-1]) for part in body.split(";") for name in part.split(",") if name.split()
    ]
    assert declared == [name for name, _ in TASK_FIELDS]


def test_statuses_are_those_of_the_header():
    declared = {name: int(number) for name, number in re.findall(r"GR_([A-Z_]+) = (\d+)", HEADER)}
    assert declared == {status.name: int(status) for status in Status}


def test_tasks_allocate_spread_and_count():
    task = task_of(SIZES, 1.0, 2.0, p=[1, 2, 3], x=[4, 5], dp=np.eye(3)[:2], times=[1.0, 1.5, 2.0], atol=1e-7)
    assert (task.ns, task.n_times, task.n_breaks, task.degree, task.t) == (2, 3, 2, 0, 1.0)
    assert task.y.shape == (3, 4) and task.sy.shape == (3, 2, 4) and task.sx.shape == (2, 2) and task.sz.shape == (2, 1)
    assert task.atol.tolist() == [1e-7] * 3 and task.nominal.tolist() == [1.0, 1.0]


def test_pack_shares_arrays_and_unpack_takes_numbers_back():
    task = task_of(SIZES, 0.0, 1.0, p=[1, 2, 3], x=[4, 5])
    packed = task.pack()
    assert packed.x == task.x.ctypes.data and packed.t1 == 1.0
    packed.steps, packed.status, packed.amount = 17, 5, 0.25
    task.unpack(packed)
    assert (task.steps, Status(task.status), task.amount) == (17, Status.NOT_FINITE, 0.25)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"x": [1.0]}, r"x has shape \(1,\), expected \(2,\)"),
        ({"p": [1.0]}, r"p has shape"),
        ({"breaks": [0, 1, 2], "coef": np.zeros((1, 1, 1))}, r"coef has shape \(1, 1, 1\), expected \(2, 1,"),
        ({"atol": [1.0]}, "atol has shape"),
    ],
)
def test_wrong_shapes_are_refused(wrong, words):
    given = {"p": [1, 2, 3], "x": [4, 5]} | wrong
    with pytest.raises(ValueError, match=words):
        task_of(SIZES, 0.0, 1.0, **given)


def test_an_array_of_the_wrong_kind_never_reaches_c():
    task = task_of(SIZES, 0.0, 1.0, p=[1, 2, 3], x=[4, 5])
    task.x = np.zeros(4, dtype=np.float64)[::2]
    with pytest.raises(TypeError, match=r"task\.x must be a C-contiguous float64"):
        task.pack()


def test_a_plan_stays_as_it_is_when_its_task_runs():
    x, times = np.array([4.0, 5.0]), np.array([0.0, 1.0])
    plan = Plan(SIZES, 0.0, 1.0, times, p=[1, 2, 3], x=x, dp=np.eye(3)[:2], atol=np.full(3, 1e-7), most_events=4)
    task = plan.task()
    task.x += 1.0
    task.p += 1.0
    task.dp += 1.0
    again, still = plan.task(), plan.without_derivatives().replace(t0=0.5).task()
    assert again.x.tolist() == [4.0, 5.0] and again.p.tolist() == [1.0, 2.0, 3.0] and (again.dp == np.eye(3)[:2]).all()
    assert again.times is times and again.atol is plan.atol, "what integrators only read is shared"
    assert (still.t0, still.t, still.ns, still.most_events, again.events.shape) == (0.5, 0.5, 0, 0, (4, 3))
