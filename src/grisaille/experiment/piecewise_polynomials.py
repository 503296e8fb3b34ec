"""Known signals as piecewise polynomials: what integrators read without ever calling Python.

Every input — a number, samples held (``zoh``), joined by lines (``foh``) or by a cubic spline (``spline``), or a
function of time — becomes polynomials between breaks,

    u(t) = Σ_k c_k (t − τ)^k,   τ ≤ t < τ',

with flags at the breaks where a value or a slope jumps: steps end there. A function of time is approximated by
polynomials of degree 7 on intervals halved until the error is below 1e-11 of its size, at their own points and at those
of a scan of the whole span; steps end between short ones, so that none passes over what they describe.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from grisaille.errors import DataError, ModelError
from grisaille.model.expression import Expression
from grisaille.structure.delays.moving_breaks import OF_OTHERS
from grisaille.structure.system import Signal

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

HOLDS = ("zoh", "foh", "spline")
MAX_DEGREE = 7
FIRST_PIECES = 16
SCAN_INSTANTS = 1 << 14
"""Instants at which a function is looked at: what is shorter than this part of the span may be missed; give ``breaks``
there, or samples."""
MIN_PIECE_SHARE = 1 / 400
"""Pieces below this part of the span are not passed over: a step ends after every fourth of them."""
MAX_SPIKES = 100
"""So many values that stand out of a scan by themselves are not narrow features but noise or a fast oscillation."""
MAX_NOISE_INTERVALS = 100
"""So many shortest intervals side by side are not a jump but noise."""
FUNCTION_TOLERANCE = 1e-11
MAXIMUM_PIECES = 200_000
MOVING_KINK = 2
"""The flag of a kink that moves with a parameter."""


@dataclass(frozen=True)
class PiecewisePolynomial:
    """One signal: ``coefficients[s, k]`` on [breaks[s], breaks[s+1]); value or slope jump at ``kinks``."""

    breaks: np.ndarray
    coefficients: np.ndarray
    kinks: np.ndarray

    def derivative(self) -> PiecewisePolynomial:
        powers = np.arange(1, self.coefficients.shape[1])
        shorter = self.coefficients[:, 1:] * powers
        return replace(self, coefficients=shorter if shorter.shape[1] else np.zeros((len(self.breaks) - 1, 1)))


Pieces: TypeAlias = dict[tuple[str, int], PiecewisePolynomial]
"""Signals by name and order of derivative."""
Further: TypeAlias = Callable[[Pieces, np.ndarray], tuple[Pieces, np.ndarray]]
"""Makes signals of others, given the instants that stay; and tells which instants of theirs move."""


def constant(value: float, span: tuple[float, float]) -> PiecewisePolynomial:
    """Return a signal that never changes."""
    return PiecewisePolynomial(np.array(span), np.array([[value]]), np.zeros(0))


@dataclass(frozen=True)
class SignalTable:
    """All signals of a system on common breaks, laid out as integrators read them."""

    breaks: np.ndarray
    coef: np.ndarray
    """(segments, nu, degree + 1)"""
    kink: np.ndarray
    """1 where a step must end, 2 where that instant moves with a parameter."""

    def at(self, t: float) -> np.ndarray:
        """Return every signal at one time, right limits at breaks."""
        if self.coef.shape[1] == 0:
            return np.zeros(0)
        s = int(np.clip(np.searchsorted(self.breaks, t, side="right") - 1, 0, len(self.breaks) - 2))
        powers = (t - self.breaks[s]) ** np.arange(self.coef.shape[2])
        return np.asarray(self.coef[s] @ powers)

    def along(self, times: np.ndarray) -> np.ndarray:
        """Return every signal at many times, (times, signals)."""
        s = np.clip(np.searchsorted(self.breaks, times, side="right") - 1, 0, len(self.breaks) - 2)
        powers = (times - self.breaks[s])[:, None] ** np.arange(self.coef.shape[2])
        return np.asarray((self.coef[s] @ powers[:, :, None])[:, :, 0])


def make_table(
    signals: Sequence[Signal],
    inputs: Mapping[str, Any],
    hold: Mapping[str, str] | str | None,
    times: np.ndarray,
    defaults: Mapping[str, float | None],
    switches: Mapping[str, PiecewisePolynomial] | None = None,
    bends: np.ndarray | None = None,
    further: Further | None = None,
) -> SignalTable:
    """Return the table for ``u`` of a system; disturbances are zero here.

    bends : further instants where steps end
    further : makes signals out of those of inputs and switches, such as delayed ones
    """
    span = (float(times[0]), float(times[-1]))
    for given, what in ((inputs, "inputs"), (hold, "hold")):
        if given and isinstance(given, Mapping):
            _refuse_unknown(given, defaults, what)
    pieces: dict[tuple[str, int], PiecewisePolynomial] = {}
    for name in defaults:
        how = hold_of(hold, name)
        if how not in HOLDS:
            raise DataError(f"hold for input '{name}' is {how!r}; it must be one of 'zoh', 'foh', 'spline'.")
        orders = [s.order for s in signals if s.kind == "input" and s.name == name]
        polynomial = _read(name, inputs.get(name, defaults[name]), how, times, span, bends)
        smoothness = smoothness_of(inputs.get(name, defaults[name]), how)
        for order in sorted(orders):
            if order > smoothness:
                refuse_derivative(name, order, how)
            pieces[name, order] = polynomial
            polynomial = polynomial.derivative()
    for s in signals:
        if s.kind == "switch" and s.order == 0 and switches is not None:
            pieces[s.name, 0] = switches[s.name]
    zero = constant(0.0, span)
    extra = np.zeros(0) if bends is None else bends
    moving = np.zeros(0)
    if further is not None:
        kinks = np.concatenate([np.zeros(0), *(p.kinks for p in pieces.values())])
        inner = kinks[(kinks > span[0]) & (kinks < span[1])]
        own, moving = further(pieces, np.unique(np.concatenate([times, extra, inner])))
        pieces.update(own)
    return _join([pieces.get((table_name(s), s.order), zero) for s in signals], times, extra, moving)


def hold_of(hold: Mapping[str, str] | str | None, name: str) -> str:
    """Return how an input goes on between its samples."""
    return hold.get(name, "zoh") if isinstance(hold, Mapping) else hold or "zoh"


def table_name(signal: Signal) -> str:
    """Under which a signal is found; what tells of another one does not bear its name."""
    return f"{signal.kind} {signal.name}" if signal.kind in OF_OTHERS else signal.name


def _refuse_unknown(given: Mapping[str, object], known: Mapping[str, object], what: str) -> None:
    import difflib

    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), list(known), n=3, cutoff=0.3)
            hint = f"Nearest: {', '.join(near)}." if near else f"Its inputs: {', '.join(known) or 'none'}."
            raise DataError(f"{what}= names '{name}', which is not an input of the model. {hint}")


def smoothness_of(value: Any, hold: str) -> int:
    """Return how many derivatives of the signal exist between its kinks without impulses at them."""
    if callable(value) or np.isscalar(value) or (hasattr(value, "dtype") and np.ndim(value) == 0):
        return 10
    return {"zoh": 0, "foh": 1, "spline": 3}[hold]


def refuse_derivative(name: str, order: int, hold: str) -> None:
    how = {"zoh": "held constant between samples", "foh": "joined by straight lines", "spline": "joined by cubics"}
    times = {1: "once", 2: "twice"}.get(order, f"{order} times")
    spline = f"Use hold={{'{name}': 'spline'}}, give" if order <= 3 else "Give"
    raise DataError(
        f"Index reduction differentiates the input '{name}' {times}, but it is {how[hold]} ({hold!r}), so its "
        f"derivative would be impulses. {spline} it as a function of time, or pass it through a filter in the model."
    )


def _read(
    name: str, value: Any, hold: str, times: np.ndarray, span: tuple[float, float], bends: np.ndarray | None
) -> PiecewisePolynomial:
    if value is None:
        raise DataError(f"Input '{name}' has no values: give inputs={{'{name}': …}} (a number, samples or a function).")
    if callable(value):
        return _from_function(name, value, span, np.zeros(0) if bends is None else bends)
    if np.isscalar(value) or (hasattr(value, "dtype") and np.ndim(value) == 0):
        return constant(_number(name, value), span)
    t, y = _samples(name, value, times)
    if len(t) == 1:
        _refuse_gap(name, t[0], np.inf if hold == "zoh" else t[0], span)
        return constant(float(y[0]), span)
    if hold == "zoh":
        # the last sample holds beyond the end, so that the last instant sees it
        end = max(t[-1], span[1]) + (t[-1] - t[-2])
        _refuse_gap(name, t[0], end, span)
        return PiecewisePolynomial(np.append(t, end), y[:, None], t[1:][np.diff(y) != 0])
    _refuse_gap(name, t[0], t[-1], span)
    if hold == "foh":
        slopes = np.diff(y) / np.diff(t)
        bends = np.abs(np.diff(slopes)) * np.diff(t)[1:] > 1e-12 * np.abs(y).max()
        return PiecewisePolynomial(t, np.column_stack([y[:-1], slopes]), t[1:-1][bends])
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(t, y)
    return PiecewisePolynomial(t, np.ascontiguousarray(spline.c[::-1].T), np.zeros(0))


def _number(name: str, value: Any) -> float:
    if isinstance(value, str | Expression):
        raise DataError(f"Input '{name}' is {value!r}; give a number, samples, (times, values) or a function.")
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise DataError(
            f"Input '{name}' is {value!r}; give a number, samples, (times, values) or a function."
        ) from None
    if not np.isfinite(number):
        raise DataError(f"Input '{name}' is {number}; give a finite number.")
    return number


def split_signal(where: str, value: Any, shape: tuple[int, ...]) -> list[Any]:
    """Return the signals of a vector input: a number for all, a function with an array as value, or samples in
    columns.
    """
    count = int(np.prod(shape))
    if callable(value):
        return [lambda t, k=k: np.reshape(value(t), -1)[k] for k in range(count)]
    if np.isscalar(value):
        return [value] * count
    times, samples = (value[0], value[1]) if isinstance(value, tuple) and len(value) == 2 else (None, value)
    columns = np.asarray(samples)
    if columns.ndim != 1 + len(shape) or columns.shape[1:] != shape:
        raise DataError(
            f"{where} has shape {columns.shape}; a vector of shape {shape} needs a number, a function of time, or "
            f"samples of shape (times, {', '.join(map(str, shape))})."
        )
    signals = list(columns.reshape(len(columns), count).T)
    return signals if times is None else [(times, signal) for signal in signals]


def _samples(name: str, value: ArrayLike, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    t, y = _times_and_values(name, value, times)
    if y.ndim != 1:
        raise DataError(
            f"Input '{name}' has the shape {y.shape}; give one value per time in one dimension (values[:, 0]?)."
        )
    if t.ndim != 1 or y.shape != t.shape or not t.size:
        raise DataError(
            f"Input '{name}' has {y.size} values for {t.size} times; give one value per time, or (times, values)."
        )
    for what, array in (("time", t), ("value", y)):
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise DataError(
                f"Input '{name}' has the {what} {array[bad[0]]} in row {bad[0]}; inputs must be known everywhere."
            )
    back = np.flatnonzero(np.diff(t) <= 0)
    if back.size:
        k = int(back[0])
        raise DataError(
            f"The times of input '{name}' do not increase at row {k + 1}: {t[k]:g} is followed by {t[k + 1]:g}."
        )
    return t, y


def _times_and_values(name: str, value: Any, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(value, tuple) and len(value) == 2:
        if all(np.isscalar(v) for v in value):
            raise DataError(
                f"Input '{name}' is {value!r}: a pair is (times, values), each a list. Write samples on `times` as a "
                f"list, [{value[0]}, {value[1]}]."
            )
        return _floats(name, value[0]), _floats(name, value[1])
    if hasattr(value, "index") and hasattr(value, "to_numpy"):
        return _floats(name, value.index.to_numpy()), _floats(name, value.to_numpy())
    if hasattr(value, "dims") and hasattr(value, "coords"):
        labels = value.coords[value.dims[0]] if len(value.dims) == 1 and value.dims[0] in value.coords else None
        return times if labels is None else _floats(name, labels.values), _floats(name, value.values)
    return times, _floats(name, value)


def _floats(name: str, value: ArrayLike) -> np.ndarray:
    try:
        given = np.asarray(value)
        if given.dtype.kind in "MmUSc":
            raise TypeError
        return np.atleast_1d(given.astype(float))
    except (TypeError, ValueError, ModelError):
        raise DataError(
            f"Input '{name}' holds something that is not a number (dates are not: give times as numbers, such as "
            f"seconds since the start)."
        ) from None


def _refuse_gap(name: str, first: float, last: float, span: tuple[float, float]) -> None:
    slack = 1e-9 * max(span[1] - span[0], 1e-300)
    if first > span[0] + slack or last < span[1] - slack:
        raise DataError(
            f"Input '{name}' is known from {first:g} to {last:g}, but the simulation needs {span[0]:g} to {span[1]:g}: "
            f"extend the samples, or shorten the simulation."
        )


def _from_function(
    name: str, function: Callable[[float], Any], span: tuple[float, float], bends: np.ndarray
) -> PiecewisePolynomial:
    """Polynomials of degree 7 through Chebyshev points, intervals halved until they fit."""

    def sample(t: float) -> float:
        try:
            value = function(float(t))
        except Exception as error:
            raise DataError(
                f"The function given for input '{name}' failed at t = {t:g}: {type(error).__name__}: {error}. It takes "
                f"the time and gives one number."
            ) from error
        if isinstance(value, str) or np.ndim(value) or not np.isreal(value):
            raise DataError(f"The function given for input '{name}' gave {value!r} at t = {t:g}; give one number.")
        return _number(f"{name}(t={t:g})", value)

    nodes = 0.5 - 0.5 * np.cos(np.pi * (np.arange(MAX_DEGREE + 1) + 0.5) / (MAX_DEGREE + 1))
    probes = np.array([0.0, 0.11, 0.37, 0.52, 0.81, 1.0])
    fit = np.linalg.inv(np.vander(nodes, MAX_DEGREE + 1, increasing=True))
    check = np.vander(probes, MAX_DEGREE + 1, increasing=True)
    if span[1] == span[0]:
        return constant(sample(span[0]), span)
    shortest = 1e-12 * (span[1] - span[0]) + 4 * np.spacing(max(abs(span[0]), abs(span[1])))
    inside = bends[(bends > span[0]) & (bends < span[1])]
    edges = np.union1d(np.linspace(*span, FIRST_PIECES + 1), inside)
    seen_at, seen = _scan(function, sample, span)
    spacing = (span[1] - span[0]) / SCAN_INSTANTS
    _warn_of_spikes(name, seen_at, seen, inside)
    stack = [(float(a), float(b)) for a, b in zip(edges[-2::-1], edges[:0:-1], strict=True)]
    breaks, rows, tiny, size, in_a_row = [span[0]], [], list[tuple[float, float]](), 1e-300, 0
    while stack:
        a, b = stack.pop()
        values = np.array([sample(a + (b - a) * s) for s in nodes])
        c = fit @ values
        # the right end belongs to the next piece, so that a jump there is not this piece's error
        inner = np.array([sample(a + (b - a) * s) for s in probes[:-1]])
        size = max(size, float(np.abs(values).max()))
        error = float(np.abs(check[:-1] @ c - inner).max())
        # rounding of t moves the value by this much: late times have few digits left for the fraction
        rounding = 4 * np.spacing(max(abs(a), abs(b))) * float(np.ptp(values)) / (b - a)
        allowed = FUNCTION_TOLERANCE * size + rounding + 1e-14
        first, last = int(np.ceil((a - span[0]) / spacing)), int(np.ceil((b - span[0]) / spacing))
        if error <= allowed and last > first and b - a > shortest:
            s, fitted = (seen_at[first:last] - a) / (b - a), c[MAX_DEGREE]
            for k in range(MAX_DEGREE - 1, -1, -1):
                fitted = fitted * s + c[k]
            error = float(np.abs(fitted - seen[first:last]).max())
        if error > allowed and b - a > shortest:
            middle = 0.5 * (a + b)
            stack += [(middle, b), (a, middle)]
            continue
        in_a_row = in_a_row + 1 if b - a <= shortest else 0
        if in_a_row > MAX_NOISE_INTERVALS:
            raise DataError(
                f"Input '{name}' jumps at every instant around t = {b:g}: a function that gives another value at each "
                f"call? Give samples instead: (times, values)."
            )
        if b - a <= shortest:
            c = np.zeros(MAX_DEGREE + 1)
            c[0] = values[0]
        if b - a < 1e-8 * (span[1] - span[0]):
            tiny.append((a, b))
        rows.append(c / (b - a) ** np.arange(MAX_DEGREE + 1))
        breaks.append(b)
        if len(rows) > MAXIMUM_PIECES:
            raise DataError(
                f"Input '{name}' needs more than {MAXIMUM_PIECES} polynomials up to t = {b:g}: it varies too fast for "
                f"a function of time. Give it as samples (times, values)."
            )
    kinks = np.union1d(_centres(tiny, 1e-5 * (span[1] - span[0])), _between_short(np.array(breaks), inside))
    return PiecewisePolynomial(np.array(breaks), np.array(rows), kinks)


def _scan(
    function: Callable[[Any], Any], sample: Callable[[float], float], span: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Instants and values; at once where the function takes arrays and gives the same as for numbers."""
    at = np.linspace(*span, SCAN_INSTANTS + 1)[:-1]
    few = np.linspace(0, SCAN_INSTANTS - 1, 7).astype(int)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            values = np.asarray(function(at), dtype=float)
        except Exception:  # whatever a function says to an array: it is asked with numbers then
            values = np.zeros(0)
    if values.shape == at.shape and np.isfinite(values).all():
        known = np.array([sample(t) for t in at[few]])
        if np.allclose(values[few], known, rtol=1e-9, atol=1e-12 * np.abs(known).max()):
            return at, values
    return at, np.array([sample(t) for t in at])


def _warn_of_spikes(name: str, at: np.ndarray, values: np.ndarray, known: np.ndarray) -> None:
    """Features of one or two points of the scan: others between its points would not have been seen."""
    rise = np.diff(values)
    large = np.abs(rise) > 0.1 * np.ptp(values)
    pairs = [large[:-w] & large[w:] & (np.sign(rise[:-w]) == -np.sign(rise[w:])) for w in (1, 2)]
    places = np.unique(np.concatenate([np.flatnonzero(p) for p in pairs])) + 1
    width = at[1] - at[0]
    alone = [k for k in places if not (np.abs(known - at[k]) < 3 * width).any()]
    if not 0 < len(alone) <= MAX_SPIKES:
        return
    warnings.warn(
        f"Input '{name}' has a feature near t = {at[alone[0]]:.6g} that is hardly longer than {width:.3g}, the "
        f"distance of the instants at which its function was evaluated: others like it may have been missed. Say "
        f"where they are by breaks=[…] in gr.simulate, or give samples: (times, values).",
        UserWarning,
        stacklevel=7,
    )


def _between_short(breaks: np.ndarray, given: np.ndarray) -> np.ndarray:
    """Return breaks between short pieces: the ends of a row of them, and every fourth inside."""
    short = np.diff(breaks) < MIN_PIECE_SHARE * (breaks[-1] - breaks[0])
    edges = np.flatnonzero(np.diff(short.astype(int), prepend=0, append=0))
    chosen = [np.append(np.arange(a, b, 4), b) for a, b in zip(edges[::2], edges[1::2], strict=True)]
    inner = np.concatenate(chosen) if chosen else np.zeros(0, dtype=int)
    inner = inner[(inner > 0) & (inner < len(breaks) - 1)]
    return np.union1d(breaks[inner], given)


def _centres(tiny: Sequence[tuple[float, float]], gap: float) -> np.ndarray:
    """Return both ends of the narrowest interval in each cluster of very short ones: there is the kink."""
    clusters: list[list[tuple[float, float]]] = []
    for piece in tiny:
        if clusters and piece[0] - clusters[-1][-1][1] < gap:
            clusters[-1].append(piece)
        else:
            clusters.append([piece])
    return np.array([end for cluster in clusters for end in min(cluster, key=lambda ab: ab[1] - ab[0])])


def _join(
    signals: Sequence[PiecewisePolynomial], times: np.ndarray, bends: np.ndarray, moving: np.ndarray
) -> SignalTable:
    """Return all signals on the union of their breaks."""
    span = (float(times[0]), float(times[-1]))
    distinct = {id(s.breaks): s.breaks for s in signals}
    breaks = np.unique(np.concatenate([np.array(span), bends, *distinct.values()]))
    if (np.diff(breaks) <= rounding(breaks[1:], span)).any():
        signals, bends, moving = _at_once(breaks, signals, times, bends, moving)
        breaks = np.unique(np.concatenate([np.array(span), bends, *(s.breaks for s in signals)]))
    breaks = breaks[breaks >= span[0]]
    if len(breaks) == 1:
        breaks = np.array([span[0], span[0] + 1.0])
    degree = max((s.coefficients.shape[1] for s in signals), default=1)
    coef = np.zeros((len(breaks) - 1, len(signals), degree))
    for k, signal in enumerate(signals):
        coef[:, k, : signal.coefficients.shape[1]] = shifted_coefficients(
            signal.breaks, signal.coefficients, breaks[:-1]
        )
    kink = np.isin(breaks, np.concatenate([bends, *(s.kinks for s in signals)])).astype(np.uint8)
    kink[np.isin(breaks, moving)] = MOVING_KINK
    return SignalTable(breaks, np.ascontiguousarray(coef), kink)


def rounding(t: float | np.ndarray, span: tuple[float, float]) -> float | np.ndarray:
    """Instants that are closer to each other are one: steps that are not taken, gr_smallest_step in gr_signal.h."""
    return 16 * np.finfo(float).eps * np.abs(t) + 1e-24 * (span[1] - span[0])


def _at_once(
    breaks: np.ndarray, signals: Sequence[PiecewisePolynomial], times: np.ndarray, bends: np.ndarray, moving: np.ndarray
) -> tuple[list[PiecewisePolynomial], np.ndarray, np.ndarray]:
    """Breaks that differ by rounding are one instant, or the second one would be passed over: 3 · 0.1 and 0.3.

    Of a group it is the requested time in it, or else the first break.
    """
    every = np.unique(np.concatenate([breaks, times]))
    group = np.cumsum(np.diff(every, prepend=every[0]) > rounding(every, (float(times[0]), float(times[-1]))))
    asked = np.isin(every, times)
    best = np.lexsort((np.arange(len(every)), ~asked, group))
    chosen = every[best[np.searchsorted(group[best], np.arange(group[-1] + 1))]]

    def moved(instants: np.ndarray) -> np.ndarray:
        known = instants[np.isin(instants, every)]
        return np.asarray(chosen[group[np.searchsorted(every, known)]])

    return (
        [replace(s, breaks=moved(s.breaks), kinks=np.unique(moved(s.kinks))) for s in signals],
        np.unique(moved(bends)),
        np.unique(moved(moving)),
    )


def shifted_coefficients(breaks: np.ndarray, coefficients: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return polynomials (segments, …, degree + 1) between breaks, re-expanded at new left ends: (starts, …, degree +
    1).
    """
    segment = np.clip(np.searchsorted(breaks, starts, side="right") - 1, 0, len(coefficients) - 1)
    c = coefficients[segment]
    shift = (starts - breaks[segment]).reshape(-1, *(1,) * (c.ndim - 2))
    if not shift.any():
        return c
    moved = np.zeros_like(c)
    for k in range(c.shape[-1]):
        for j in range(k, c.shape[-1]):
            moved[..., k] += comb(j, k) * c[..., j] * shift ** (j - k)
    return moved
