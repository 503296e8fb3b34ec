"""What the models of *Modelica by Example* are: closed forms and SciPy, written from their equations.

``REFERENCES`` has a function for each case of the book: times in, values of named variables out. Several names of
one case are compared; one plant that the book writes in several ways is here once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import expm
from scipy.optimize import brentq

Values = dict[str, Any]


def ode(rates: Callable[..., Any], start: Sequence[float], t: np.ndarray, breaks: Sequence[float] = ()) -> np.ndarray:
    """Return the states at the times, integrated anew at every break."""
    found = np.empty((len(start), len(t)))
    edges = [0.0, *sorted(b for b in breaks if 0.0 < b < t[-1]), max(t[-1], 1e-9) * (1 + 1e-12)]
    state = np.array(start, dtype=float)
    for low, high in pairwise(edges):
        inside = (t >= low) & (t < high)
        middle = 0.5 * (low + high)
        run = solve_ivp(
            lambda s, x, m=middle: rates(s, x, m), (low, high), state, "DOP853", t_eval=[*t[inside], high],
            rtol=1e-10, atol=1e-10,
        )  # fmt: skip
        found[:, inside], state = run.y[:, :-1], run.y[:, -1]
    return found


def dense(rates: Callable[..., Any], start: Sequence[float], stop: float) -> Callable[[Any], Any]:
    """Return the states as a function of time."""
    return solve_ivp(rates, (0.0, stop), start, "DOP853", dense_output=True, rtol=1e-11, atol=1e-12).sol


def linear(matrix: np.ndarray, forcing: np.ndarray, start: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the solution of ``x' = A x + b`` at increasing times."""
    n = len(start)
    if n > 20:  # heat conduction: symmetric, so that modes decay one by one
        rates, modes = np.linalg.eigh(matrix)
        now, goal = modes.T @ start, -(modes.T @ forcing) / rates
        return modes @ (goal[:, None] + (now - goal)[:, None] * np.exp(np.outer(rates, t)))
    whole = np.zeros((n + 1, n + 1))
    whole[:n, :n], whole[:n, n] = matrix, forcing
    return np.array([(expm(whole * s) @ [*start, 1.0])[:n] for s in t]).T


def named(names: str, rows: Any) -> Values:
    """Return rows under the names of a text with blanks."""
    return dict(zip(names.split(), rows, strict=True))


# basic equations


def first_order(t: np.ndarray, start: float, name: str = "x") -> Values:
    return {name: 1 + (start - 1) * np.exp(-t)}


def cooling(t: np.ndarray, ambient: float, start: float, name: str = "T", rate: float = 0.7 / 0.12) -> Values:
    return {name: ambient + (start - ambient) * np.exp(-rate * t)}


def cooling_dynamic(t: np.ndarray, start: float) -> Values:
    rate = 0.7 / 0.12
    ambient = np.where(t <= 0.5, 298.15, 298.15 - 20 * (t - 0.5))
    first = 298.15 + (start - 298.15) * np.exp(-rate * np.minimum(t, 0.5))
    s = np.maximum(t - 0.5, 0)  # for T' = r (T0 - 20 s - T): a ramp with a lag of 1/r
    later = 298.15 - 20 * (s - 1 / rate) + (first - 298.15 - 20 / rate) * np.exp(-rate * s)
    return {"T": np.where(t <= 0.5, first, later), "T_inf": ambient}


def rlc(t: np.ndarray, step: float = 0.0, names: str = "V i_L i_R i_C", extra: bool = False) -> Values:
    def rates(_: float, x: Any, m: float) -> list[float]:
        return [(x[1] - x[0] / 100) / 1e-3, (24.0 if m > step else 0.0) - x[0]]

    v, i = ode(rates, [0, 0], t, [step])
    source = {"Vs": np.where(t > step, 24.0, 0.0)} if extra else {}
    return named(names, [v, i, v / 100, i - v / 100][: len(names.split())]) | source


J1, J2, C1, C2, D1, D2 = 0.4, 1.0, 11.0, 5.0, 0.2, 1.0


def smd_rates(_: float, x: Any, *__: float, backlash: float = 0.0) -> list[float]:
    p1, p2, w1, w2 = x
    between = C1 * (p2 - p1) + D1 * (w2 - w1)
    if backlash:
        gap = p1 - p2
        between -= 1000 * (gap - np.clip(gap, -backlash / 2, backlash / 2))
    return [w1, w2, between / J1, (-between - C2 * p2 - D2 * w2) / J2]


EQUATIONS, INERTIAS = "phi1 phi2 omega1 omega2", "inertia1.phi inertia2.phi inertia1.w inertia2.w"


def smd(t: np.ndarray, start: Sequence[float] = (0, 1, 0, 0), names: str = EQUATIONS, backlash: float = 0.0) -> Values:
    return named(names, ode(partial(smd_rates, backlash=backlash), start, t))


def lotka_volterra(t: np.ndarray, names: str = "x y", start: Sequence[float] = (10, 10)) -> Values:
    return named(names, ode(lambda _, x, __: [x[0] * (0.1 - 0.02 * x[1]), x[1] * (0.02 * x[0] - 0.4)], start, t))


def constant(t: np.ndarray, **values: float) -> Values:
    return {name: np.full(len(t), value) for name, value in values.items()}


# discrete behaviour


def bouncing_ball(t: np.ndarray) -> Values:
    """Return the height of the ball; at rest once the bounces have accumulated."""
    h, begin, speed = np.zeros(len(t)), -np.sqrt(2 / 9.81), np.sqrt(2 * 9.81)
    for _ in range(200):
        s = t - begin
        flies = (s >= 0) & (s < 2 * speed / 9.81)
        h[flies] = (speed * s - 9.81 / 2 * s**2)[flies]
        begin, speed = begin + 2 * speed / 9.81, 0.8 * speed
    return {"h": h}


def square_wave_integral(t: np.ndarray, freq: float) -> Values:
    return {"x": 2 * (np.floor(freq * t) * 0.5 + np.minimum(np.mod(freq * t, 1), 0.5)) / freq, "y": t}


def held(t: np.ndarray, interval: float) -> np.ndarray:
    return np.floor(t / interval + 1e-9) * interval


def sample_hold(t: np.ndarray, actual: str, measured: str) -> Values:
    run = dense(smd_rates, (0, 1, 0, 0), t[-1] + 1)
    return {actual: run(t)[2], measured: run(held(t, 0.125))[2]}


def teeth_passed(stop: float, tooth: float) -> list[float]:
    """Return the instants at which the angle has gone one tooth up or down since the last one."""
    run = dense(smd_rates, (0, 1, 0, 0), stop)
    grid = np.linspace(0, stop, 40001)
    angle, passed, at = run(grid)[0], [], 0.0
    for k in range(1, len(grid)):
        low = grid[k - 1]
        while abs(angle[k] - at) >= tooth:
            level = at + np.sign(angle[k] - at) * tooth
            low = brentq(lambda s, level=level: run(s)[0] - level, low, grid[k], xtol=1e-14)
            passed.append(low)
            at = level
    return passed


def interval_measure(t: np.ndarray, tooth: float, actual: str, measured: str) -> Values:
    passed = np.array([0.0, *teeth_passed(t[-1] + 0.01, tooth)])
    last = np.searchsorted(passed, t, "right") - 1
    speed = np.array([0.0, *(tooth / np.diff(passed))])
    return {actual: dense(smd_rates, (0, 1, 0, 0), t[-1])(t)[2], measured: speed[last]}


def pulse_counter(t: np.ndarray, tooth: float, actual: str, measured: str) -> Values:
    passed = np.array(teeth_passed(t[-1] + 0.01, tooth))
    ends = held(t, 0.125)
    counts = np.searchsorted(passed, ends) - np.searchsorted(passed, ends - 0.125)
    return {actual: dense(smd_rates, (0, 1, 0, 0), t[-1])(t)[2], measured: counts * tooth / 0.125}


def chattering(t: np.ndarray) -> Values:
    """Return the temperature that slides along the set point once it is there."""
    return {"T": np.maximum(285 + 15 * np.exp(-2 * t), 295.0)}


def hysteresis(t: np.ndarray) -> Values:
    """Return temperature and heat, each arc in closed form."""
    temperature, heat = np.empty(len(t)), np.empty(len(t))
    begin, at, on = 0.0, 300.0, False
    while begin < t[-1]:
        goal, level = (285 + 12.5, 296.0) if on else (285.0, 294.0)
        end = begin + 0.5 * np.log((at - goal) / (level - goal))
        arc = (t >= begin) & (t <= end)
        temperature[arc] = goal + (at - goal) * np.exp(-2 * (t[arc] - begin))
        heat[arc] = 25.0 * on
        begin, at, on = end, level, not on
    return {"T": temperature, "Q": heat}


def clocks(t: np.ndarray, names: str) -> Values:
    rows = {"x": held(t, 0.1), "y": held(t, 0.1), "z": held(t, 0.2), "e": 0 * t}
    return {name: rows[name] for name in names.split()}


# arrays and functions


def rod(t: np.ndarray, n: int = 10) -> Values:
    pi, h, k = 3.14159, 2.0, 10.0
    across, around = pi * 0.01, 2 * pi * 0.1
    capacity, along = 2.0 * across / n * 10.0, k * across * n
    chain = np.diag(np.full(n - 1, 1.0), 1) + np.diag(np.full(n - 1, 1.0), -1)
    chain -= np.diag(chain.sum(axis=1))
    matrix = (along * chain - h * around * np.eye(n)) / capacity
    x = linear(matrix, np.full(n, h * around * 300 / capacity), np.linspace(200, 300, n), t)
    return {f"T[{i + 1}]": x[i] for i in range(n)}


def reactions(t: np.ndarray, names: str) -> Values:
    def rates(_: float, x: Any, __: float) -> list[float]:
        r = 0.1 * x[0] * x[1] - 0.1 * x[2]
        return [-r, -r - 10 * x[1] * x[2], r - 10 * x[1] * x[2]]

    return named(names, ode(rates, [1, 1, 0], t))


def polynomial(t: np.ndarray, slopes: bool) -> Values:
    y = t**2 - 2 * t + 2
    return {"yf": y, "yp": y} | ({"d_yf": 2 * t - 2, "d_yp": 2 * t - 2} if slopes else {})


def triangle(t: np.ndarray) -> Values:
    up, down = np.clip(t - 2, 0, 2), np.clip(t - 4, 0, 2)
    return {"y": np.interp(t, [0, 2, 4, 6, 8], [0, 0, 2, 0, 0]), "z": up**2 / 2 + 2 * down - down**2 / 2}


def sampled_heater(t: np.ndarray) -> Values:
    """Return the temperature of the controller in C: on below 295 − 1, off above 295 + 1, asked every 0.01 s."""
    times, at, on = [300.0], 300.0, False
    for _ in range(int(t[-1] / 0.01) + 1):
        on = (on or at < 294.0) and not at > 296.0
        goal = 285 + 12.5 * on
        at = goal + (at - goal) * np.exp(-0.02)
        times.append(at)
    grid = np.arange(len(times)) * 0.01
    return {"T": np.interp(t, grid, times)}


# components


def heat_network(t: np.ndarray) -> Values:
    series = 0.2 * 0.7 / 0.9
    matrix = np.array([[-(1.3 + 1.1 + 0.8 + series) / 0.12, 1.3 / 0.12], [1.3 / 0.32, -1.3 / 0.32]])
    forcing = np.array([(298.15 * (1.1 + series) + 0.8 * 300) / 0.12, 0.0])
    return named("cap1.node.T cap2.node.T", linear(matrix, forcing, np.full(2, 363.15), t))


def geared(t: np.ndarray, inertia: float, start: float) -> np.ndarray:
    """Return angle and speed of a mass on a spring of 5 and a damper of 1."""
    return ode(lambda _, x, __: [x[1], (-5 * x[0] - x[1]) / inertia], [start, 0], t)


def grounded_gear(t: np.ndarray) -> Values:
    p, w = geared(t, 2.6, 1.0)
    return {"inertia3.phi": p, "inertia2.phi": p, "inertia3.w": w, "inertia2.w": w, "inertia1.phi": 2 * p}


def gears(t: np.ndarray) -> Values:
    def mounted(_: float, x: Any, __: float) -> list[float]:
        p5, p6, w5, w6 = x
        torque = -(80 * (2 * p6 - p5) + 0.2 * (2 * w6 - w5))
        return [w5, w6, -torque / 1.4, 2 * torque - 5 * p6 - w6]

    p, w = geared(t, 1 + 4 * 1.4, 2.0)
    p5, _, w5, _ = ode(mounted, [4, 2, 0, 0], t)
    both = {f"inertia{k}.phi": 2 * p for k in (1, 3)} | {f"inertia{k}.w": 2 * w for k in (1, 3)}
    return both | {"inertia5.phi": p5, "inertia5.w": w5}


def configurable_gear(t: np.ndarray) -> Values:
    p, w = geared(t, 2.6, 0.2)
    return {f"inertia{k}.phi": 2 * p for k in (1, 4)} | {f"inertia{k}.w": 2 * w for k in (1, 4)}


def three_species(t: np.ndarray) -> Values:
    def rates(_: float, x: Any, __: float) -> list[float]:
        r, f, w = x
        return [r * (0.1 - 0.02 * f - 0.02 * w), f * (0.02 * r - 0.4 - 0.04 * w), w * (0.08 * f + 0.01 * r - 0.4)]

    return named("rabbits.population foxes.population wolves.population", ode(rates, [25, 2, 4], t))


def controlled(t: np.ndarray, gain: float) -> Values:
    rate = (0.7 + gain) / 0.12
    goal = (0.7 * 298.15 + gain * 303.15) / (0.7 + gain)
    return cooling(t, goal, 363.15, "sensor.y", rate)


# subsystems


def backlash_gear(t: np.ndarray, lash: float, before: str = "") -> Values:
    def rates(_: float, x: Any, m: float) -> list[float]:
        pa, pb, wa, wb = x
        gap, speed = 4 * pb - pa, 4 * wb - wa
        spring = 1000 * (gap - np.clip(gap, -lash / 2, lash / 2))
        tau = spring + 2 * speed
        if lash > 0:
            tau = 0.0 if spring * tau <= 0 else spring + np.sign(spring) * min(abs(spring), 2 * speed * np.sign(spring))
        drive = 1.0 if m % 0.8 < 0.4 else -1.0
        return [wa, wb, (drive + tau) / 0.01, (-2 * wb - 4 * tau) / 0.12]

    x = ode(rates, [0, 0, 0, 0], t, [0.4, 0.8, 1.2, 1.6])
    return {f"{before}inertia_a.w": x[2], f"{before}inertia_b.w": x[3]}


def regions(t: np.ndarray, starts: Sequence[tuple[float, float]], migration: bool) -> Values:
    mixing = np.diag([-1.0, -2, -2, -1]) + np.diag([1.0] * 3, 1) + np.diag([1.0] * 3, -1)

    def rates(_: float, x: Any, __: float) -> np.ndarray:
        r, f = x[:4], x[4:]
        moved = (0.001 * mixing @ r, 0.005 * mixing @ f) if migration else (0, 0)
        return np.concatenate([r * (0.1 - 0.02 * f) + moved[0], f * (0.02 * r - 0.4) + moved[1]])

    x = ode(rates, [*(s[0] for s in starts), *(s[1] for s in starts)], t)
    names = [f"{place}.{kind}.population" for kind in ("rabbits", "foxes") for place in "ABCD"]
    return dict(zip(names, x, strict=True))


ALIKE, DIFFERENT = [(10, 10)] * 4, [(10, 10), (5, 12), (12, 5), (7, 7)]


def power_supply(t: np.ndarray, capacity: float = 1e-2, extra: bool = False) -> Values:
    """Return the load's voltage: charged through two diodes when the secondary voltage is above it.

    Exactly, from switch to switch: a charge of the large capacitors lasts a tenth of a millisecond.
    """
    omega, resistance = 2 * np.pi * 60, 2e-5 + 1e-7
    found, now, v, is_open = np.zeros(len(t)), 0.25, 0.0, True
    while now < t[-1]:
        half = (np.floor(now * 120 + 1e-9) + 1) / 120
        end = min(half, 0.7) if extra and now < 0.7 else half
        load = 1 / 100 + 1e-5 + (0.1 if extra and now >= 0.7 else 0.0)
        sign = 1.0 if np.sin(omega * 0.5 * (now + half)) > 0 else -1.0
        rate = (load + (0.0 if is_open else 1 / resistance)) / capacity
        drive = 0.0 if is_open else sign * 12 / (resistance * capacity)

        def course(s: Any, rate: float = rate, drive: float = drive, now: float = now, v: float = v) -> Any:
            def forced(s: Any) -> Any:
                return drive * (rate * np.sin(omega * s) - omega * np.cos(omega * s)) / (rate**2 + omega**2)

            return forced(s) + (v - forced(now)) * np.exp(-rate * (s - now))

        def gap(s: Any, sign: float = sign, course: Any = course, way: float = 1.0 if is_open else -1.0) -> Any:
            return way * (sign * 12 * np.sin(omega * s) - course(s))

        grid = np.linspace(now, end, 3000)[1:]
        over = np.flatnonzero(gap(grid) > 0)
        if over.size:
            low = grid[over[0] - 1] if over[0] else now
            end = brentq(gap, low, grid[over[0]], xtol=1e-15) if gap(low) < 0 else low
        inside = (t >= now) & (t < end)
        found[inside] = course(t[inside])
        now, v = end, float(course(end))
        is_open = is_open != bool(over.size)
    return {"load.v": found}


def heated_rod(t: np.ndarray, n: int) -> np.ndarray:
    chain = np.diag(np.full(n - 1, 1.0), 1) + np.diag(np.full(n - 1, 1.0), -1)
    chain -= np.diag(chain.sum(axis=1))
    matrix = (1.2 * (n - 1) * chain - 2.7 / n * np.eye(n)) / (0.3 / n)
    forcing = np.zeros(n)
    forcing[0] = 10 / (0.3 / n)
    rise = linear(matrix, forcing, np.zeros(n), np.maximum(t - 0.5, 0))
    return 293.15 + rise[-1]


def flat_rod(t: np.ndarray) -> Values:
    chain = 1.2 * np.array([[-1, 1, 0], [1, -2, 1], [0, 1, -1]]) - 0.9 * np.eye(3)
    return {"sensor.T": 293.15 + linear(chain / 0.1, np.array([100.0, 0, 0]), np.zeros(3), np.maximum(t - 0.5, 0))[2]}


def pendula(t: np.ndarray) -> Values:
    found = {}
    for i in (1, 8, 15):
        length = 9.80665 * (54 / (2 * np.pi * (30 + 15 - i))) ** 2
        rate = 9.80665 / length
        found[f"pendulum[{i}].revolute.phi"] = ode(lambda _, x, __, r=rate: [x[1], -r * np.sin(x[0])], [0.5, 0], t)[0]
    return found


# architectures


def shaft(torque: float, x: Any) -> list[float]:
    """Return the rates of two inertias with a spring and damper between them."""
    pa, pb, wa, wb = x
    between = 100 * (pa - pb) + 3 * (wa - wb)
    return [wa, wb, (torque - between) / 0.1, (between - 4 * wb) / 0.3]


def wished(s: float) -> float:
    return 1.0 if (s + 1e-12) % 1.0 < 0.5 else 0.0


def speed_loop(t: np.ndarray, names: str, interval: float = 0.0) -> Values:
    """Return speed, measured speed and set point of a proportional loop, its sensor ideal or sampled."""
    actual, measured, goal = names.split()
    targets = np.array([wished(s) for s in t])
    halves = np.arange(0.5, t[-1], 0.5)
    if not interval:
        x = ode(lambda _, x, m: shaft(20 * (wished(m) - x[3]), x), [0] * 4, t, halves)
        return {actual: x[3], measured: x[3], goal: targets}
    edges = np.unique(np.round([*np.arange(0, t[-1] + interval, interval), *halves], 12))
    state, seen, speed, shown = np.zeros(4), 0.0, np.empty(len(t)), np.empty(len(t))
    matrix = np.array([shaft(0.0, row) for row in np.eye(4)]).T
    for low, high in pairwise(edges):
        if abs(low / interval - round(low / interval)) < 1e-9:
            seen = state[3]
        forcing = np.array([0, 0, 20 * (wished(low) - seen) / 0.1, 0])
        inside = np.flatnonzero((t >= low) & (t < high))
        x = linear(matrix, forcing, state, np.array([*(t[inside] - low), high - low]))
        speed[inside], shown[inside], state = x[3, :-1], seen, x[:, -1]
    return {actual: speed, measured: shown, goal: targets}


def pid_loop(t: np.ndarray, k: float, ti: float, td: float, limit: float, bound: float, h: float = 1e-4) -> Values:
    """Return the loop with a limited PID controller, a delay of 5 ms and a limited actuator, by Runge–Kutta steps."""
    lag, state, seen = round(0.005 / h), np.zeros(6), 0.0
    said: list[tuple[float, float]] = []
    speeds, shown = [0.0], []

    def command(x: Any, goal: float) -> tuple[float, float]:
        """Return what the controller asks for, without its limits and with them."""
        slope = td / (td / 10) * (-seen - x[5])
        y = k * (goal - seen + x[4] + slope)
        return y, float(np.clip(y, -limit, limit))

    def rates(x: Any, goal: float, torque: float) -> np.ndarray:
        y, limited = command(x, goal)
        wound = (goal - seen + (limited - y) / (0.9 * k)) / ti
        return np.array([*shaft(float(np.clip(torque, -bound, bound)), x[:4]), wound, (-seen - x[5]) / (td / 10)])

    for step in range(round(t[-1] / h) + 2):
        goal = wished(step * h)
        if step % round(0.01 / h) == 0:
            seen = state[3]
        begin = command(state, goal)[1]
        old = said[step - lag] if step >= lag else (said[0][0] if said else begin,) * 2
        a = rates(state, goal, old[0])
        b = rates(state + h / 2 * a, goal, sum(old) / 2)
        c = rates(state + h / 2 * b, goal, sum(old) / 2)
        d = rates(state + h * c, goal, old[1])
        state = state + h / 6 * (a + 2 * b + 2 * c + d)
        said.append((begin, command(state, goal)[1]))
        speeds.append(state[3])
        shown.append(seen)
    at = np.minimum((t / h).astype(int), len(shown) - 1)
    return {"plant.inertia1.w": np.interp(t, np.arange(len(speeds)) * h, speeds), "sensor.w": np.array(shown)[at]}


def setpoint(s: float) -> float:
    s %= 20.0
    return 300 + 5 * min(s, 1.0, max(12.0 - s, 0.0))


def three_zones(t: np.ndarray, control: str) -> Values:
    """Return the room's temperature under a PI controller or a relay that chatters, on a fine grid."""
    matrix = np.array([[-4.0, 1, 1], [1, -4, 1], [1, 1, -4]]) / 2
    h, grid = 5e-4, [293.15]
    x, on = np.array([293.15] * 3 + [0.0]), False

    def rates(s: float, x: np.ndarray, on: bool) -> np.ndarray:
        heat = max(-20 * (x[3] + x[2] - setpoint(s)), 0.0) if control == "PI" else 500.0 * on
        zones = matrix @ x[:3] + 278.15
        return np.array([zones[0] + heat / 2, zones[1], zones[2], x[2] - setpoint(s)])

    for step in range(int(t[-1] / h) + 1):
        s = step * h
        on = setpoint(s) > x[2]
        a = rates(s, x, on)
        b = rates(s + h / 2, x + h / 2 * a, on)
        c = rates(s + h / 2, x + h / 2 * b, on)
        x = x + h / 6 * (a + 2 * b + 2 * c + rates(s + h, x + h * c, on))
        grid.append(x[2])
    return {"sensor.room.T": np.interp(t, np.arange(len(grid)) * h, grid)}


def three_zones_hysteresis(t: np.ndarray) -> Values:
    """Return the room's temperature under a relay with hysteresis, from switch to switch."""
    matrix = np.array([[-4.0, 1, 1], [1, -4, 1], [1, 1, -4]]) / 2
    found, x, s, on = np.full(len(t), np.nan), np.array([293.15] * 3), 0.0, True
    kinks = [20.0 * k + bend for k in range(int(t[-1] / 20) + 1) for bend in (0.0, 1.0, 11.0, 12.0)] + [t[-1] + 1e-9]
    while s < t[-1]:
        sign, heat = (1.0, 250.0) if on else (-1.0, 0.0)

        def beyond(at: float, y: np.ndarray, sign: float = sign) -> float:
            return float(sign * (y[2] - setpoint(at)) - 0.5)

        def rates(_at: float, y: np.ndarray, heat: float = heat) -> np.ndarray:
            return matrix @ y + 278.15 + np.array([heat, 0.0, 0.0])

        beyond.terminal, beyond.direction = True, 1.0
        end = min(k for k in kinks if k > s + 1e-12)
        settings = {"rtol": 1e-10, "atol": 1e-10, "max_step": 0.05, "dense_output": True}
        run = solve_ivp(rates, (s, end), x, events=beyond, **settings)
        for k in np.flatnonzero((t >= s) & (t <= run.t[-1])):
            found[k] = run.sol(t[k])[2]
        s, x, on = run.t[-1], run.y[:, -1], on ^ (run.status == 1)
    return {"sensor.room.T": found}


TOOTH, PI_TOOTH = 2 * 3.14159 / 200, 2 * np.pi / 200
FLAT, PARTS = "inertia1.w speedSensor.w feedback.u1", "plant.inertia1.w sensor.w controller.setpoint"
SPEED = ("inertia1.w", "intervalMeasure.w")

REFERENCES: Mapping[str, Callable[[np.ndarray], Values]] = {
    "FO": partial(first_order, start=0), "FOI": partial(first_order, start=2), "FOE": partial(first_order, start=2),
    "FOS": partial(constant, x=1), "NCWD": partial(cooling, ambient=25, start=90), "RLC1": rlc,
    "SOSIP": smd, "SOSIP1": partial(smd, start=(1, 1, 0, 0)),
    "LVCM": lotka_volterra, "LVQM": partial(constant, x=0, y=0), "LVQMUS": partial(constant, x=20, y=5),
    "NCD": partial(cooling_dynamic, start=363.15), "NCSTD": partial(cooling_dynamic, start=298.15),
    "BB1": bouncing_ball, "BB2": bouncing_ball,
    **dict.fromkeys(("Decay1", "Decay2", "Decay3"), lambda t: {"x": np.maximum(1 - t / 2, 0) ** 2}),
    **dict.fromkeys(("WC", "WOC"), lambda t: {"x": np.maximum(2 - t, 1)}),
    "WE": partial(square_wave_integral, freq=1), "WEf": partial(square_wave_integral, freq=5),
    "WNE": partial(square_wave_integral, freq=1), "WNEf": partial(square_wave_integral, freq=5),
    "SRLC": partial(rlc, step=0.5, extra=True),
    "SampleAndHold": partial(sample_hold, actual="omega1", measured="omega1_measured"),
    "IntervalMeasure": partial(interval_measure, tooth=TOOTH, actual="omega1", measured="omega1_measured"),
    "IntervalMeasure_Coarse": partial(
        interval_measure, tooth=10 * TOOTH, actual="omega1", measured="omega1_measured"),
    "SpeedCounter": partial(pulse_counter, tooth=TOOTH, actual="omega1", measured="omega1_measured"),
    "CC1": chattering, "Hyst": hysteresis, "HystA": hysteresis,
    "SIS": partial(clocks, names="x y e"), "SSS": partial(clocks, names="x y e"), "SSI": partial(clocks, names="x y z"),
    "FO_LTI": partial(first_order, start=0, name="x[1]"),
    "NC_LTI": partial(cooling, ambient=27.5, start=20, name="x[1]"),
    "RLC_LTI": partial(rlc, names="rlc_comp.x[1] rlc_comp.x[2]"),
    "Ro_LTI": partial(smd, names="x[1] x[2] x[3] x[4]"), "RoC_LTI": partial(smd, names="x[1] x[2] x[3] x[4]"),
    "LV_ABCD": partial(lotka_volterra, names="x[1] x[2]"), "RFL": rod,
    "RNA": partial(reactions, names="cA cB cX"),
    **dict.fromkeys(("RA", "RE", "REM"), partial(reactions, names="C[1] C[2] C[3]")),
    "Eval1": partial(polynomial, slopes=False), "Diff2": partial(polynomial, slopes=True),
    "IIV": triangle, "IIEV": triangle, "SIL": sampled_heater,
    "NLEE": lambda t: {"y": 2 * t**2 + 3 * t + 1}, "NLIE": lambda t: {"y": (np.sqrt(9 + 8 * t) - 3) / 4},
    "HTA": lambda t: {"cap.node.T": 0 * t + 363.15}, "HT_CN": heat_network,
    **dict.fromkeys(("HT_CTA", "HT_C"), partial(cooling, ambient=298.15, start=363.15, name="cap.node.T")),
    "SMD": partial(smd, names=INERTIAS), "SMD_WB": partial(smd, start=(0, 0, 5, 0), names=INERTIAS, backlash=0.5),
    "SMD_GG": grounded_gear, "SMD_GC": gears, "SMD_CG": configurable_gear,
    "CLV": partial(lotka_volterra, names="rabbits.population foxes.population"), "ThirdS": three_species,
    "ThreeS": lambda t: constant(t, **{"rabbits.population": 80 / 3, "foxes.population": 5 / 3,
                                       "wolves.population": 10 / 3}),
    "PBase": partial(smd, names=INERTIAS),
    "PwSH": partial(sample_hold, actual="inertia1.w", measured="sampleHold.w"),
    "PwIM": partial(interval_measure, tooth=PI_TOOTH, actual=SPEED[0], measured=SPEED[1]),
    "PwIMf": partial(interval_measure, tooth=10 * PI_TOOTH, actual=SPEED[0], measured=SPEED[1]),
    "PwPC": partial(pulse_counter, tooth=PI_TOOTH, actual="inertia1.w", measured="pulseCounter.w"),
    "BNC": partial(cooling, ambient=298.15, start=363.15, name="T.y"),
    "MDC": partial(controlled, gain=2.0), "MDC_hg": partial(controlled, gain=10.0),
    "ABX": partial(reactions, names="solution.C[1] solution.C[2] solution.C[3]"),
    "FSWB": partial(backlash_gear, lash=0.17453292519943), "FSWB_nolash": partial(backlash_gear, lash=0.0),
    "SWB": partial(backlash_gear, lash=0.17453292519943, before="gearWithBacklash."),
    "Uncon": partial(regions, starts=ALIKE, migration=False), "ID": partial(regions, starts=DIFFERENT, migration=False),
    "WM": partial(regions, starts=DIFFERENT, migration=True),
    "FC": power_supply, "SSC": power_supply, "SSC_AL": partial(power_supply, extra=True),
    "SSC_ALC": partial(power_supply, capacity=0.1, extra=True),
    "SSC_ALC2": partial(power_supply, capacity=100.0, extra=True), "FR": flat_rod,
    "SegC": lambda t: {f"rod{n}.sensor.T": heated_rod(t, n) for n in (3, 6, 10, 100, 200)}, "Harm": pendula,
    "AFS": partial(speed_loop, names=FLAT), "AFS_SH": partial(speed_loop, names=FLAT, interval=0.036),
    "SV1": partial(speed_loop, names=PARTS, interval=0.01), "SV1U": partial(speed_loop, names=PARTS, interval=0.036),
    "SV2": partial(pid_loop, k=20, ti=0.1, td=0.1, limit=15, bound=10),
    "SV2T": partial(pid_loop, k=4, ti=0.07, td=0.01, limit=50, bound=50),
    **dict.fromkeys(("TCB", "TCE"), partial(three_zones, control="PI")),
    "TCE_BB": partial(three_zones, control="relay"), "TCE_Hy": three_zones_hysteresis,
}  # fmt: skip

# solutions besides: from equal starts Newton's method comes to the state without wolves
ALSO: dict[str, Callable[[np.ndarray], Values]] = {
    "ThreeS": lambda t: constant(t, **{"rabbits.population": 20, "foxes.population": 5, "wolves.population": 0}),
}
