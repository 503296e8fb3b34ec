"""Spectra of disturbances: linear filters driven by white noise of unit intensity, E v(t)v(s) = δ(t − s).

::

    white()                       1
    lowpass(b, order=n)           (b / (s + b))ⁿ
    resonance(ω, ζ)               1 / (s² + 2ζω s + ω²)
    integrated()                  1 / s
    rational(num, den)            num(s) / den(s), coefficients from the highest power down
    state_space(A, B, C)          C (sI − A)⁻¹ B

Coefficients are numbers or formulas of parameters. This file only describes; sampling is done elsewhere. Stationary
filters start from their stationary distribution unless ``start="zero"``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from grisaille.errors import ModelError
from grisaille.model.expression import Call, Constant, Expression, as_expression, postorder
from grisaille.model.notation.text import render

Matrix = list[list[Expression]]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """One filter of unit white noise; built by the functions of this module."""

    name: str
    arguments: tuple[tuple[str, Any], ...]
    """Formulas, or rows of formulas, under the names the user knows."""
    order: int
    """Number of filter states."""
    start: str = "stationary"
    interpretation: str | None = None
    """Of white noise whose strength depends on what it drives: ``"ito"``, ``"stratonovich"`` or not stated."""

    @property
    def is_white(self) -> bool:
        return self.name == "white"

    @property
    def is_stationary(self) -> bool:
        """Return False for an integrator, or a filter given in numbers with a pole on the imaginary axis."""
        if self.is_white:
            return True
        poles = self._numeric_poles()
        return poles is None or bool(np.all(poles.real < -1e-12 * np.maximum(1.0, np.abs(poles))))

    @property
    def pole_excess(self) -> int:
        """Return degree of the denominator minus degree of the numerator: how often the disturbance may be
        differentiated.
        """
        if self.name == "state_space":
            return _structural_excess(*self.state_space())
        if self.name == "rational":
            values = dict(self.arguments)
            return len(values["den"]) - len(values["num"])
        return self.order

    def state_space(self) -> tuple[Matrix, Matrix, Matrix]:
        """Return A, B, C as lists of rows of formulas; empty for white noise, which passes directly."""
        return _REALIZATIONS[self.name](dict(self.arguments), self.order)

    @property
    def stationary_variance(self) -> float:
        """Return the variance of the filtered noise at unit scale; infinite where there is no stationary
        distribution.
        """
        if self.is_white or not self.is_stationary:
            return float("inf")
        a, b, c = self._numeric_state_space()
        n = len(a)
        identity = np.eye(n)
        operator = np.kron(a, identity) + np.kron(identity, a)
        covariance = np.linalg.solve(operator, -(b @ b.T).ravel()).reshape(n, n)
        return float((c @ covariance @ c.T).item())

    def spectral_density(self, omega: ArrayLike) -> np.ndarray:
        """Φ(ω) = |C (iω − A)⁻¹ B|², two-sided; one for white noise."""
        at = np.asarray(omega, dtype=float)
        if self.is_white:
            return np.ones_like(at)
        a, b, c = self._numeric_state_space()
        gain = c @ np.linalg.solve(1j * at[..., None, None] * np.eye(len(a)) - a, b + 0j)
        return np.asarray(np.abs(gain[..., 0, 0]) ** 2)

    def _numeric_state_space(self) -> list[np.ndarray]:
        matrices = [[[_number(entry) for entry in row] for row in m] for m in self.state_space()]
        if any(value is None for m in matrices for row in m for value in row):
            raise ModelError(f"{self} contains parameters: replace them by numbers to ask for its variance or density.")
        return [np.array(m, dtype=float) for m in matrices]

    def mapped(self, change: Callable[[Expression], Expression]) -> Spectrum:
        """Return the same spectrum with every formula changed."""
        return replace(self, arguments=tuple((key, _deep(value, change)) for key, value in self.arguments))

    def leaves(self) -> list[Expression]:
        """Return every formula inside."""
        found: list[Expression] = []
        self.mapped(lambda e: found.append(e) or e)  # type: ignore[func-returns-value]
        return found

    def __str__(self) -> str:
        shown = [f"{key}={_text(value)}" for key, value in self.arguments]
        if self.name == "lowpass" and self.order > 1:
            shown.append(f"order={self.order}")
        if self.start == "zero" and self.name != "integrated":
            shown.append("start='zero'")
        if self.interpretation:
            shown.append(f"interpretation='{self.interpretation}'")
        return f"{self.name}({', '.join(shown)})"

    def _numeric_poles(self) -> np.ndarray | None:
        entries = self.state_space()[0]
        matrix = [[_number(entry) for entry in row] for row in entries]
        if any(value is None for row in matrix for value in row):
            return None
        return np.linalg.eigvals(np.array(matrix, dtype=float).reshape(self.order, self.order))


HIGHEST_ORDER = 100
"""Of a lowpass."""


def white(*, interpretation: str | None = None) -> Spectrum:
    """Return white noise of unit intensity; may enter a model only linearly.

    interpretation : matters where the noise's factor depends on what the noise drives. ``"stratonovich"`` is the limit
        of coloured noise of growing bandwidth, ``"ito"`` takes the factor at the beginning of each instant. Not stated
        means Itô, unless index reduction used the chain rule on such quantities: then the model must say.

    Use it when nothing is known about the spectrum and the equation may be disturbed at every instant anew.
    """
    if not isinstance(interpretation, str | None) or interpretation not in (None, "ito", "stratonovich"):
        raise ModelError(f"white: interpretation must be 'ito' or 'stratonovich', got {interpretation!r}.")
    return Spectrum("white", (), 0, interpretation=interpretation)


def lowpass(bandwidth: float | Expression, order: int = 1, *, start: str = "stationary") -> Spectrum:
    """(b / (s + b))ⁿ: unit gain at low frequencies, bandwidth b in rad/s.

    Use it when an unmeasured load or supply varies slowly up to a bandwidth and is noise beyond it.

    bandwidth : b in rad per unit of time, above zero; a number or a formula of parameters
    order : n, a whole number from 1
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= HIGHEST_ORDER:
        raise ModelError(f"lowpass: order must be a whole number from 1 to {HIGHEST_ORDER}, got {order!r}.")
    return _checked("lowpass", {"bandwidth": _positive("lowpass", "bandwidth", bandwidth)}, order, start)


def resonance(frequency: float | Expression, damping: float | Expression, *, start: str = "stationary") -> Spectrum:
    """1 / (s² + 2ζω s + ω²): a resonance at ω in rad/s with damping ratio ζ.

    Use it when waves, rotating parts or flexible structures push at one frequency.

    frequency : ω in rad per unit of time, above zero; a number or a formula of parameters
    damping : ζ, from zero up
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    arguments = {
        "frequency": _positive("resonance", "frequency", frequency),
        "damping": _positive("resonance", "damping", damping, zero=True),
    }
    return _checked("resonance", arguments, 2, start)


def integrated() -> Spectrum:
    """1 / s: a Wiener process; starts at zero because it has no stationary distribution.

    Use it when something drifts and never returns: fouling, ageing, offsets.
    """
    return Spectrum("integrated", (), 1, "zero")


def rational(num: Any, den: Any, *, start: str = "stationary") -> Spectrum:
    """Return num(s) / den(s); coefficients from the highest power down, the denominator's degree above the numerator's.

    Use it when the filter is known as a transfer function.

    num, den : coefficients of numerator and denominator, numbers or formulas of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    numerator, denominator = _trimmed("num", num), _trimmed("den", den)
    if len(numerator) >= len(denominator):
        raise ModelError(
            f"rational: the filter is improper: the numerator has degree {len(numerator) - 1} and the denominator "
            f"{len(denominator) - 1}. The disturbance would contain white noise or its derivatives; "
            "add poles, or use white() for white noise itself."
        )
    return _checked("rational", {"num": numerator, "den": denominator}, len(denominator) - 1, start)


def state_space(A: FormulaLike, B: FormulaLike, C: FormulaLike, *, start: str = "stationary") -> Spectrum:
    """Return C (sI − A)⁻¹ B with one white noise and one output: A is n × n, B and C have n entries.

    Use it when the disturbance has a model of its own, with several states and parameters.

    A, B, C : numbers or formulas of parameters
    start : ``"stationary"``, drawn from its stationary distribution, or ``"zero"``
    """
    a, b, c = (np.array(m, dtype=object) for m in (A, B, C))
    n = a.shape[0] if a.ndim else 0
    if not n or a.shape != (n, n) or b.size != n or c.size != n:
        raise ModelError(
            f"state_space: A must be n × n and B and C must have n entries; got shapes {a.shape}, {b.shape}, {c.shape}."
        )
    rows = tuple(tuple(as_expression(entry) for entry in row) for row in a)
    arguments = {"A": rows, "B": tuple(map(as_expression, b.flat)), "C": tuple(map(as_expression, c.flat))}
    return _checked("state_space", arguments, n, start)


def _checked(name: str, arguments: dict[str, Any], order: int, start: str) -> Spectrum:
    if not isinstance(start, str) or start not in ("stationary", "zero"):
        raise ModelError(f"{name}: start must be 'stationary' or 'zero', got {start!r}.")
    spectrum = Spectrum(name, tuple(arguments.items()), order, start)
    poles = spectrum._numeric_poles()
    if poles is not None and np.any(poles.real > 1e-12 * np.maximum(1.0, np.abs(poles))):
        raise ModelError(
            f"{name}: the filter is unstable: a pole lies at {complex(poles[np.argmax(poles.real)]):.4g}, right of the "
            "imaginary axis. Coefficients run from the highest power of s down."
        )
    return spectrum


def _positive(owner: str, name: str, value: float | Expression, zero: bool = False) -> Expression:
    expression = as_expression(value)
    number = _number(expression)
    if number is not None and not (number > 0 or (zero and number == 0)):
        raise ModelError(f"{owner}: {name} must be {'zero or ' if zero else ''}positive, got {number:g}.")
    return expression


def _trimmed(name: str, coefficients: np.ndarray | Sequence[float | Expression]) -> tuple[Expression, ...]:
    entries = [as_expression(c) for c in np.atleast_1d(np.array(coefficients, dtype=object))]
    while entries and _number(entries[0]) == 0:
        entries.pop(0)
    if not entries:
        raise ModelError(f"rational: {name} has no coefficient that differs from zero.")
    return tuple(entries)


def _number(root: Expression) -> float | None:
    """Return the value of a formula of numbers; ``None`` when anything else than arithmetic is inside."""
    done: dict[int, float | None] = {}
    for node in postorder((root,)):
        if isinstance(node, Call):
            values = [done[id(a)] for a in node.arguments]
            known = node.operation in _ARITHMETIC and None not in values
            done[id(node)] = _ARITHMETIC[node.operation](*values) if known else None
        else:
            done[id(node)] = node.value if isinstance(node, Constant) else None
    return done[id(root)]


_ARITHMETIC: dict[str, Callable[..., float]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "pow": operator.pow,
    "neg": operator.neg,
}  # fmt: skip


def _deep(value: Any, change: Callable[[Expression], Expression]) -> Any:
    return tuple(_deep(item, change) for item in value) if isinstance(value, tuple) else change(value)


def _text(value: Any) -> str:
    return f"[{', '.join(_text(item) for item in value)}]" if isinstance(value, tuple) else render(value)


_ZERO, _ONE = Constant(0.0), Constant(1.0)


def _realize_lowpass(values: dict[str, Any], order: int) -> tuple[Matrix, Matrix, Matrix]:
    # a chain of first-order filters: better conditioned than the companion form
    b = values["bandwidth"]
    A: Matrix = [[-b if i == j else b if i == j + 1 else _ZERO for j in range(order)] for i in range(order)]
    B: Matrix = [[b if i == 0 else _ZERO] for i in range(order)]
    return A, B, [[_ONE if i == order - 1 else _ZERO for i in range(order)]]


def _realize_resonance(values: dict[str, Any], order: int) -> tuple[Matrix, Matrix, Matrix]:
    w, z = values["frequency"], values["damping"]
    return [[_ZERO, _ONE], [-(w**2), -(2 * z * w)]], [[_ZERO], [_ONE]], [[_ONE, _ZERO]]


def _realize_rational(values: dict[str, Any], order: int) -> tuple[Matrix, Matrix, Matrix]:
    # controllable companion form, state i = (1/den) s^i v
    lead, *tail = values["den"]
    monic = [_ratio(c, lead) for c in tail]
    A: Matrix = [[_ONE if j == i + 1 else _ZERO for j in range(order)] for i in range(order - 1)]
    A.append([-c for c in reversed(monic)])
    numerator = [_ratio(c, lead) for c in reversed(values["num"])]
    C = [numerator + [_ZERO] * (order - len(numerator))]
    return A, [[_ONE if i == order - 1 else _ZERO] for i in range(order)], C


def _ratio(a: Expression, b: Expression) -> Expression:
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(a.value / b.value)
    return a if isinstance(b, Constant) and b.value == 1 else a / b


def _realize_state_space(values: dict[str, Any], order: int) -> tuple[Matrix, Matrix, Matrix]:
    return [list(row) for row in values["A"]], [[entry] for entry in values["B"]], [list(values["C"])]


_REALIZATIONS: dict[str, Callable[[dict[str, Any], int], tuple[Matrix, Matrix, Matrix]]] = {
    "white": lambda values, order: ([], [], []),
    "integrated": lambda values, order: ([[_ZERO]], [[_ONE]], [[_ONE]]),
    "lowpass": _realize_lowpass,
    "resonance": _realize_resonance,
    "rational": _realize_rational,
    "state_space": _realize_state_space,
}


def _structural_excess(A: Matrix, B: Matrix, C: Matrix) -> int:
    """Return the first k with C Aᵏ⁻¹ B structurally different from zero."""
    a, b, c = (np.array([[_number(entry) != 0 for entry in row] for row in m]) for m in (A, B, C))
    for k in range(1, len(a) + 1):
        if (c @ b).any():
            return k
        b = a @ b
    raise ModelError("state_space: the output does not depend on the noise: C A^k B = 0 for every k.")


# the catalogue builds on the filters above and is offered beside them
from grisaille.model.catalogue import (  # noqa: E402
    double_integrated,
    from_spectral_density,
    matern12,
    matern32,
    matern52,
    ornstein_uhlenbeck,
    periodic,
    quasi_periodic,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from grisaille.model.expression import FormulaLike

__all__ = [
    "Spectrum",
    "double_integrated",
    "from_spectral_density",
    "integrated",
    "lowpass",
    "matern12",
    "matern32",
    "matern52",
    "ornstein_uhlenbeck",
    "periodic",
    "quasi_periodic",
    "rational",
    "resonance",
    "state_space",
    "white",
]


def __dir__() -> list[str]:
    return list(__all__)
