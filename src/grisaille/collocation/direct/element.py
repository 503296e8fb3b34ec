"""One element of direct collocation as functions: what it costs, what must hold in it, and both their derivatives.

::

    c_j = X_j − X_prev − h Σ_k a_jk f(t_k, X_k, Z_k, v_k),    0 = g(t_j, X_j, Z_j, v_j)        j = 1 … s
    ℓ   = ½ h Σ_j b_j |v_j|² + ½ eᵀR⁻¹e + ½ log det 2πR        e = y − h(X_s, Z⁺) if there is a sample at the end

An output that is measured by a law adds −log p(y; η) instead, η = (h, numbers of the law), in the form of ``laws``.


Inputs may jump there. The equations of the element see them before the jump, a sample after it, as in a simulation: so
where inputs of algebraic equations jump their unknowns have a second value Z⁺, 0 = g(t_s, X_s, Z⁺, v_s) with the inputs
after the jump; elsewhere Z⁺ = Z_s.

and of the first point, which has no past: hidden constraints, algebraic equations, start conditions, x_w − L ζ = 0,
with cost ½|ζ|² and the sample there. Arguments are a = (X_prev, (Z⁺, X_1, Z_1, …, X_s, Z_s), (v_1 … v_s), θ); slots θ
hold whatever is estimated, with its value for the record at hand. Curvature is exact, ∇²(ℓ + λᵀc), or Gauss–Newton's.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca

from grisaille.cache import Cache
from grisaille.collocation.array_types import Floats
from grisaille.collocation.direct.direct_model import DirectModel
from grisaille.collocation.direct.element_kernel import Kernel, build_kernel
from grisaille.collocation.direct.element_mesh import RADAU_MATRIX, RADAU_NODES, RADAU_POINTS
from grisaille.collocation.direct.law_costs import LawCost, add_laws
from grisaille.numerics.defined_points import at_defined_point, find_defined_points
from grisaille.numerics.flat_functions import FlatEvaluation, flat_function

COMPILE_AFTER_ELEMENTS = 150_000
"""Elements after which a function is compiled: to evaluate these by CasADi took about as long as a build does, whatever
its length (2.5 ns against 0.35 ms per instruction)."""


@dataclass(frozen=True)
class ElementSizes:
    """How long the parts of a are."""

    past: int
    inner: int
    noise: int
    slots: int

    @property
    def total(self) -> int:
        return self.past + self.inner + self.noise + self.slots

    @property
    def parts(self) -> tuple[slice, slice, slice, slice]:
        a = self.past
        b, c = a + self.inner, a + self.inner + self.noise
        return slice(0, a), slice(a, b), slice(b, c), slice(c, c + self.slots)


@dataclass(frozen=True, eq=False)
class ElementDerivatives:
    """Of a batch of E elements."""

    cost: Floats
    """(E, 3): noise, residuals, log det 2πR / 2."""
    c: Floats
    gradient: Floats
    """(E, N) of the whole cost."""
    jacobian: Floats
    """(E, m, N)"""
    hessian: Floats
    """(E, N, N)"""


class ElementFunctions:
    """The functions of one kind of element; evaluated for many at once."""

    def __init__(self, sizes: ElementSizes, a: ca.SX, data: ca.SX, costs: ca.SX, c: ca.SX, gauss: ca.SX) -> None:
        self.sizes, self.a, self.data = sizes, a, data
        self._costs, self._c, self._gauss = costs, c, gauss
        self.multiplier = ca.SX.sym("lam", c.numel())
        self._maps: Cache[FlatEvaluation] = Cache(32)
        self._kernels: dict[str, Kernel] = {}
        self._evaluated: dict[str, int] = {}
        self._built: Cache[ca.Function] = Cache(None)

    def values(self, a: Floats, data: Floats) -> tuple[Floats, Floats]:
        """Return costs (E, 3) and c (E, m)."""
        cost, c = self._call("values", a, data)
        return cost, c

    def derivatives(self, a: Floats, data: Floats, multiplier: Floats, *, exact: bool) -> ElementDerivatives:
        """Return everything a Newton step needs."""
        E, N, m = len(a), self.sizes.total, self.sizes.inner
        cost, c, g, J, H = self._call("exact" if exact else "gauss", a, data, multiplier)
        return ElementDerivatives(cost, c, g, J.reshape(E, N, m).swapaxes(1, 2), H.reshape(E, N, N))

    def slopes(self, a: Floats, data: Floats, multiplier: Floats) -> tuple[Floats, Floats, Floats]:
        """Return c, ∂c/∂a and the gradient of the Lagrangian."""
        E, N, m = len(a), self.sizes.total, self.sizes.inner
        c, J, g = self._call("slopes", a, data, multiplier)
        return c, J.reshape(E, N, m).swapaxes(1, 2), g

    def traced(self, a: Floats, data: Floats, multiplier: Floats, S: Floats, G: Floats) -> Floats:
        """Return gradient (E, N + m) in (a, λ) of ⟨S, ∇²(ℓ + λᵀc)⟩/2 + ⟨G, ∂c/∂a⟩ with fixed S (E, N, N), G (E, m,
        N).
        """
        E = len(a)
        flat = G.swapaxes(1, 2).reshape(E, -1)
        return self._call("traced", a, data, multiplier, S.reshape(E, -1), flat)[0]

    def _call(self, kind: str, *arguments: Floats) -> list[Floats]:
        """Return a function for all elements at once: by CasADi, until it was called so often that a build pays."""
        kernel = self._kernels.get(kind)
        if kernel is not None:
            return kernel(*arguments)
        done = self._evaluated[kind] = self._evaluated.get(kind, 0) + len(arguments[0])
        if done > COMPILE_AFTER_ELEMENTS:
            self._kernels[kind] = build_kernel(self.function(kind))
        return self._evaluate(kind, *arguments)

    def _evaluate(self, kind: str, *arguments: Floats) -> list[Floats]:
        """Evaluate by CasADi's virtual machine; its columns are rows here."""
        E = len(arguments[0])
        mapped = self._maps.get((kind, E), lambda: flat_function(self.function(kind).map(E)))
        return [found.reshape(E, -1) for found in mapped(*arguments)]

    def function(self, kind: str) -> ca.Function:
        """Return ``"values"``: (a, data) → (costs, c); others with derivatives, of (a, data, λ, …)."""
        return self._built.get(kind, lambda: self._build(kind))

    def _build(self, kind: str) -> ca.Function:
        a, lam, cost, c = self.a, self.multiplier, ca.sum1(self._costs), self._c
        if kind == "values":
            return ca.Function(kind, [a, self.data], [ca.densify(self._costs), ca.densify(c)])
        lagrangian, J = cost + ca.dot(lam, c), ca.jacobian(c, a)
        given = [a, self.data, lam]
        if kind == "traced":
            H, S, G = ca.hessian(lagrangian, a)[0], ca.SX.sym("S", a.numel() ** 2), ca.SX.sym("G", J.numel())
            total = 0.5 * ca.dot(S, ca.vec(ca.densify(H))) + ca.dot(G, ca.vec(ca.densify(J)))
            return ca.Function(kind, [*given, S, G], [ca.densify(ca.gradient(total, ca.vertcat(a, lam)))])
        if kind == "slopes":
            outputs = [c, ca.vec(J), ca.gradient(lagrangian, a)]
        else:
            H = ca.hessian(lagrangian, a)[0] if kind == "exact" else self._gauss
            outputs = [self._costs, c, ca.gradient(cost, a), ca.vec(J), ca.vec(H)]
        return ca.Function(kind, given, [ca.densify(o) for o in outputs], {"cse": True})


@dataclass(frozen=True, eq=False)
class ElementLayout:
    """The layout of an element's data and of the slots."""

    slots: ca.SX
    constants: ca.SX
    q: ca.SX
    """All quantities as formulas of slots and constants."""
    laws: tuple[LawCost, ...] = ()


def element_functions(model: DirectModel, parts: ElementLayout, jumps: bool) -> ElementFunctions:
    """Return an element with s points; ``jumps``: with Z⁺. Data: t_prev, h, u at the points, u at the end, y, weights,
    constants.
    """
    c, A, points = RADAU_NODES, RADAU_MATRIX, RADAU_POINTS
    n, nz, nv, nu, ny = model.n, model.nz, model.nv, int(model.u.numel()), len(model.outputs)
    past = ca.SX.sym("X0", n)
    X, Z, v = ca.SX.sym("X", n, points), ca.SX.sym("Z", nz, points), ca.SX.sym("v", nv, points)
    t, h = ca.SX.sym("t"), ca.SX.sym("h")
    u, u_end = ca.SX.sym("u", nu, points), ca.SX.sym("ue", nu)
    y, weight = ca.SX.sym("y", ny), ca.SX.sym("weight", ny)
    expanded = ca.SX.sym("expanded", sum(law.width for law in parts.laws))
    data = ca.vertcat(t, h, ca.vec(u), u_end, y, weight, parts.constants, expanded)
    after = ca.SX.sym("Zp", nz if jumps else 0)
    inner = ca.vertcat(after, ca.vec(ca.vertcat(X, Z)))
    a = ca.vertcat(past, inner, ca.vec(v), parts.slots)
    dynamics = ca.Function("dynamics", model.arguments, [model.rates, model.residual])
    found = [dynamics(t + c[j] * h, X[:, j], Z[:, j], v[:, j], u[:, j], parts.q) for j in range(points)]
    F = ca.horzcat(*(f for f, _ in found))
    moved = X - ca.repmat(past, 1, points) - h * ca.mtimes(F, ca.DM(A.T))
    equations = ca.vec(ca.vertcat(moved, ca.horzcat(*(g for _, g in found)) if nz else ca.SX(0, points)))
    noise = 0.5 * h * sum(A[-1, j] * ca.sumsqr(v[:, j]) for j in range(points))
    seen = after if jumps else Z[:, -1]
    if jumps:
        equations = ca.vertcat(dynamics(t + h, X[:, -1], after, v[:, -1], u_end, parts.q)[1], equations)
    match, spread, gauss = _compare(model, parts.q, t + h, X[:, -1], seen, u_end, y, weight, a)
    by_law, bent = add_laws(parts.laws, [t + h, X[:, -1], seen, ca.SX.zeros(nv), u_end, parts.q], expanded, a)
    match, gauss = match + by_law, gauss + bent
    costs = ca.vertcat(noise, match, spread)
    sizes = ElementSizes(n, int(inner.numel()), points * nv, int(parts.slots.numel()))
    return ElementFunctions(sizes, a, data, costs, equations, gauss + ca.hessian(noise, a)[0])


def start_functions(model: DirectModel, parts: ElementLayout, conditions: ca.SX, formulas: ca.SX) -> ElementFunctions:
    """Return the first point. Data: t, u, y, weights, is_given and given of the start conditions, constants.

    conditions : formulas of the first point over the model's symbols; formulas : their wanted values over q
    """
    n, nz, nu, ny, nw = model.n, model.nz, int(model.u.numel()), len(model.outputs), model.n - model.nx
    X, Z, zeta = ca.SX.sym("X", n), ca.SX.sym("Z", nz), ca.SX.sym("zeta", nw)
    t, u = ca.SX.sym("t"), ca.SX.sym("u", nu)
    y, weight = ca.SX.sym("y", ny), ca.SX.sym("weight", ny)
    is_given, given = (ca.SX.sym(s, conditions.numel()) for s in ("m", "g"))
    expanded = ca.SX.sym("expanded", sum(law.width for law in parts.laws))
    data = ca.vertcat(t, u, y, weight, is_given, given, parts.constants, expanded)
    a = ca.vertcat(X, Z, zeta, parts.slots)
    here = ca.Function(
        "here", model.arguments, [model.constraints, model.residual, conditions, formulas, model.start_root]
    )
    hidden, residual, met, declared, root = here(t, X, Z, ca.SX.zeros(model.nv), u, parts.q)
    wanted = is_given * given + (1 - is_given) * declared
    filters = X[model.nx :] - ca.mtimes(root, zeta) if nw else ca.SX(0, 1)
    equations = ca.vertcat(hidden, met - wanted, filters, residual)
    match, spread, gauss = _compare(model, parts.q, t, X, Z, u, y, weight, a)
    by_law, bent = add_laws(parts.laws, [t, X, Z, ca.SX.zeros(model.nv), u, parts.q], expanded, a)
    match, gauss = match + by_law, gauss + bent
    noise = 0.5 * ca.sumsqr(zeta) if nw else ca.SX(0)
    sizes = ElementSizes(0, n + nz, nw, int(parts.slots.numel()))
    costs = ca.vertcat(noise, match, spread)
    return ElementFunctions(sizes, a, data, costs, equations, gauss + ca.hessian(noise, a)[0])


def _compare(
    model: DirectModel, q: ca.SX, t: ca.SX, X: ca.SX, Z: ca.SX, u: ca.SX, y: ca.SX, weight: ca.SX, a: ca.SX
) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Return ½ eᵀR⁻¹e, ½ log det 2πR over what was measured, and Fisher's information of a sample in a."""
    observe = ca.Function("observe", model.arguments, [model.measured, ca.densify(model.variance)])
    predicted, R = observe(t, X, Z, ca.SX.zeros(model.nv), u, q)
    there = weight > 0
    for k, point in find_defined_points(model.measured, model.arguments).items():
        here = at_defined_point([t, X, Z, ca.SX.zeros(model.nv), u, q], there[k], point)
        own, own_variance = observe(*here)
        predicted[k], R[k, k] = own[k], own_variance[k, k]
    e = there * weight * (y - predicted)
    scaled = ca.diag(weight) @ ca.diag(there)
    slope = -ca.mtimes(scaled, ca.jacobian(predicted, a))
    if model.variance.sparsity().is_diag():
        r = ca.if_else(there, ca.diag(R), 1.0)
        match = 0.5 * ca.sum1(e**2 / r)
        spread = 0.5 * ca.sum1(there * ca.log(2 * ca.pi * r / ca.if_else(there, weight, 1.0) ** 2))
        levels = ca.mtimes(ca.diag(there), ca.jacobian(ca.log(r), a))
        return match, spread, ca.mtimes(slope.T, ca.mtimes(ca.diag(1 / r), slope)) + 0.5 * ca.mtimes(levels.T, levels)
    mask = ca.diag(there)
    masked = ca.mtimes(mask, ca.mtimes(R, mask)) + ca.diag(1 - there)
    L = ca.chol(masked).T
    white = ca.solve(L, ca.horzcat(e, slope))
    spread = ca.sum1(ca.log(ca.diag(L))) + 0.5 * ca.sum1(
        there * ca.log(2 * ca.pi / ca.if_else(there, weight, 1.0) ** 2)
    )
    return 0.5 * ca.sumsqr(white[:, 0]), spread, ca.mtimes(white[:, 1:].T, white[:, 1:])
