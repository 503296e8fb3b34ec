"""Runs whose sizes no declared value describes, and frozen steps of quantities far below their tolerance."""

from __future__ import annotations

import numpy as np
import pytest

import grisaille as gr
from grisaille import der
from grisaille.simulation import NominalSizes, integration


def test_frozen_steps_end_where_a_ladder_has_hardly_moved() -> None:
    """The far end of a ladder is below 1e-20, where two runs never agree to a thousandth."""

    class Ladder(gr.Model):
        v, i = gr.Variable(start=0.0, size=40), gr.Variable(size=40)

        def equations(self):  # type: ignore[no-untyped-def]
            for k in range(40):
                left = 1.0 if k == 0 else self.v[k - 1]
                yield self.i[k] + 0.1 * self.i[k] ** 3 == left - self.v[k]
                yield der(self.v[k]) == self.i[k] - (self.i[k + 1] if k < 39 else 0)

    t = np.linspace(0, 5, 6)
    frozen, free = gr.simulate(Ladder(), t, method="frozen"), gr.simulate(Ladder(), t)
    assert frozen.attrs["steps"] < 2000
    assert float(frozen["v[0]"][-1]) == pytest.approx(float(free["v[0]"][-1]), rel=1e-5)


@pytest.mark.parametrize("L", [1e9, 1e-9])
def test_a_pendulum_begins_where_it_is_declared_in_any_unit(L: float) -> None:
    class Pendulum(gr.Model):
        x, y = gr.Variable(start=0.6 * L), gr.Variable()
        u, v, tension = gr.Variable(start=0.0), gr.Variable(), gr.Variable()
        equations = [
            der(x) == u, der(y) == v, der(u) == -tension * x, der(v) == -tension * y - 9.81 * L, x**2 + y**2 == L**2,
        ]  # fmt: skip

    run = gr.simulate(Pendulum(), [0.0, 0.5])
    assert float(run.x[0]) == pytest.approx(0.6 * L, rel=1e-12)
    assert float(run.x[-1] ** 2 + run.y[-1] ** 2) == pytest.approx(L**2, rel=1e-9)


class Swing(gr.Model):
    """Fifty thousand steps."""

    x = gr.Variable(start=1.0, fixed=True)
    v = gr.Variable(start=0.0, fixed=True)
    equations = [der(x) == v, der(v) == -x]


def test_runs_are_looked_at_after_the_same_steps_however_long_these_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run was made again with other tolerances from where a measured length of time had brought it: 34 534 to 39 506
    steps of one pendulum, with the load of the machine."""
    looks: list[list[tuple[int, float]]] = []
    for share in (1e-9, 1e3):
        monkeypatch.setattr(integration, "SLICE_TIME", share)
        seen: list[tuple[int, float]] = []
        monkeypatch.setattr(
            NominalSizes, "other", lambda self, kernel, task, seen=seen: seen.append((task.tried, task.t))
        )
        gr.simulate(Swing(), [0.0, 20_000.0], rtol=1e-8, method="explicit")
        looks.append(seen)
    assert looks[0] == looks[1]
    assert [tried for tried, _ in looks[0]] == [20_000, 40_000]
