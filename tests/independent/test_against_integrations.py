"""Models that jump, bend or have several roots, against integrations in NumPy that share no code with the package.

Every case is run by adaptive methods and with frozen steps, with many and with few outputs. A run agrees within the
case's margin, or it is refused by a sentence that holds one of the case's words, where the case says that a method may
refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
import pytest

import grisaille as gr
from independent import electrical, mechanical, narrow_features, nets, processes, sizes
from independent.cases import Case

CASES: dict[str, Callable[[], Case]] = {
    "diode with a constant drop": electrical.drop,
    "the same in units of 1e-9": lambda: electrical.drop(1e-9),
    "the same in units of 1e9": lambda: electrical.drop(1e9),
    "diode with a constant drop, switched": electrical.drop_switched,
    "bridge of four diodes": electrical.bridge,
    "junction at 0.7 V": lambda: electrical.junction(0.7),
    "junction at 5 V": lambda: electrical.junction(5.0),
    "junction at 230 V": lambda: electrical.junction(230.0),
    "rectifier of the library": electrical.rectifier,
    "battery at constant power": electrical.battery,
    "crank, nothing fed back": lambda: mechanical.crank(1.2, False, 121),
    "crank, fed back, few outputs": lambda: mechanical.crank(1.2, True, 13),
    "long rod, few outputs": lambda: mechanical.crank(2.0, False, 13),
    "ring-down with dry friction": mechanical.coulomb,
    "jump in the acceleration": mechanical.acceleration,
    "pendulum in one-sided wind, index 3": mechanical.pendulum,
    "coupled masses, index 2": mechanical.coupled_masses,
    "preloaded spring, static": mechanical.preload,
    "sign over its gap": processes.sign_over,
    "sign over its gap, units of 1e-9": lambda: processes.sign_over(1e-9),
    "sign through its gap": processes.sign_gap,
    "floor through its gap": processes.floor_gap,
    "floor over its gaps": processes.floor_over,
    "valve in three pieces": processes.three_pieces,
    "relay without hysteresis": processes.thermostat,
    "tank with a pump": processes.pump,
    "saturations": processes.saturations,
    "sine after a jump": processes.sine_root,
    "cubic at ±10": lambda: processes.cubic(10.0),
    "cubic at ±1000": lambda: processes.cubic(1000.0),
    "cascade of five tanks": processes.cascade,
    "grid of resistors of eight powers of ten": lambda: nets.of_resistors(nets.Net.grid(7, 4, 1)),
    "grid of conductances that are parameters": lambda: nets.of_resistors(nets.Net.grid(7, 4, 2), parameters=True),
    "tree of resistors of twelve powers of ten": lambda: nets.of_resistors(nets.Net.tree(100, 6, 1)),
    "tree of conductances, nodes alone": lambda: nets.of_potentials(nets.Net.tree(40, 5, 9)),
    "ladder of diodes of four powers of ten": lambda: nets.of_diodes(2),
}
DEMANDING: dict[str, Callable[[], Case]] = {
    "bump of a road": narrow_features.road,
    "bump of a road, units of 1e-9": lambda: narrow_features.road(1e-9),
    "bumps of a smooth table": narrow_features.smooth_bump,
    "short pulses in time": narrow_features.pulses,
    "teeth of a wheel": narrow_features.wheel,
    "relays that switch together": narrow_features.together,
    "dry friction beside |v|": narrow_features.viscous_and_dry,
    "table that repeats itself": narrow_features.washboard,
    "net in units of 1e9": lambda: sizes.net(1e9),
    "net in units of 1e-9": lambda: sizes.net(1e-9),
    "van der Pol in units of 1e-9": lambda: sizes.van_der_pol(1e-9),
    "van der Pol in units of 1e9": lambda: sizes.van_der_pol(1e9),
    "pendulum of 1e9 m, index 3": lambda: sizes.long_pendulum(1e9),
    "ladder of 45 implicit currents": sizes.ladder,
    "sixty relays": sizes.relays,
}
"""Those that need steps which end at relations and knots, or that are large."""
METHODS = ("auto", "explicit", "implicit", "frozen")
THOROUGH = (
    "diode with a constant drop, switched", "junction at 0.7 V", "junction at 230 V", "crank, nothing fed back",
    "crank, fed back, few outputs", "ring-down with dry friction", "pendulum in one-sided wind, index 3",
    "sign over its gap", "relay without hysteresis",
)  # fmt: skip
"""Those that are run by every method."""
NETS = tuple(name for name in CASES if "powers of ten" in name or "conductances" in name)
LONG = ("relay without hysteresis", "ring-down with dry friction", "coupled masses, index 2", "tank with a pump", *NETS)
"""Those for which frozen steps would take long."""
PENDING: dict[tuple[str, str], str] = {}
"""What is not right yet, and why."""
RTOL = 1e-8


@cache
def case_of(name: str) -> Case:
    return (CASES | DEMANDING)[name]()


@cache
def exact_of(name: str) -> dict[str, np.ndarray]:
    case = case_of(name)
    assert case.exact is not None
    return case.exact(case.times)


def runs(names: Iterable[str], methods: Sequence[str]) -> list[object]:
    """Every name by every method, those marked that are not right yet."""
    return [
        pytest.param(n, m, marks=[pytest.mark.xfail(reason=PENDING[n, m])] if (n, m) in PENDING else [])
        for n in names
        for m in methods
    ]


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *runs((*THOROUGH, *DEMANDING), METHODS),
        *runs([n for n in CASES if n not in THOROUGH], ["auto", "implicit"]),
        *runs([n for n in CASES if n not in (*THOROUGH, *LONG)], ["frozen"]),
    ],
)
def test_runs(name: str, method: str) -> None:
    compare(name, method, every=1 if method == "auto" or name in (*THOROUGH, *DEMANDING) else 2)


@pytest.mark.parametrize(("name", "method"), runs(THOROUGH, ["auto"]))
def test_few_outputs(name: str, method: str) -> None:
    compare(name, method, every=4)


def compare(name: str, method: str, every: int) -> None:
    case = case_of(name)
    times = case.times if case.exact is None else case.times[::every]
    try:
        got = gr.simulate(case.model(), times, case.inputs, rtol=RTOL, method=method)
    except gr.GrisailleError as refusal:
        assert method in case.refused, f"refused: {refusal}"
        assert any(word in str(refusal) for word in case.words), f"names neither of {case.words}: {refusal}"
        return
    assert case.exact is not None, f"completed although there is no solution: {got.attrs['status']}"
    margin = {"frozen": case.frozen_margin, "implicit": case.implicit_margin}.get(method, case.margin)
    for variable, values in exact_of(name).items():
        size = np.abs(values).max() or 1.0
        error = np.abs(got[variable].values - values[::every]) / size
        worst = int(np.argmax(error))
        assert error[worst] <= margin, f"{variable} is off by {error[worst]:.2g} of its size at t = {times[worst]:g}"
