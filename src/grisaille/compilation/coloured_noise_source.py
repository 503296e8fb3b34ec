"""Disturbances inside a batch: filters of innovations, stepped from grid point to grid point and never stored.

::

    w_0 = R z_0        w_k = F w_{k−1} + L z_k        u = C w            one group of correlated disturbances
    dw_k = F dw_{k−1} + dF w_{k−1} + dL z_k           du = C dw + dC w   in every direction that moves the filters

White noise has increments ΔW = √h z over a step and, for schemes that need it, H = (1/h)∫(W − W₀)dt − ΔW/2 = √(h/12) y,
z and y independent normals. Those of a whole cell are drawn like z_k; halves of an interval have, with fresh a and b,

    z = (z ± (√3/2 y + a/2))/√2        y = (y/2 − √3/2 a ± b)/√2        (where y is not needed: z = (z ± a)/√2)

drawn under the number of the interval in the tree of halvings: a path stays what it is, however many steps resolve it.

z_k is drawn under (realization, number of the grid point) from the group's stream; sums run from the first column to
the last, so that digits are those of the same path computed anywhere else. Which groups there are and which signals
they drive is a ``ColouredNoiseLayout``, printed as straight-line C; the matrices are ``ColouredNoise``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Normals(Protocol):
    """A stream of standard normals as a function of their indices."""

    @property
    def key(self) -> tuple[int, int]: ...
    @property
    def antithetic(self) -> bool: ...
    def normals(
        self, realization: int | np.ndarray, step: int | np.ndarray, components: int, node: int | np.ndarray = 0
    ) -> Floats: ...


@dataclass(frozen=True)
class ColouredNoiseLayout:
    """What a build depends on."""

    orders: tuple[int, ...] = ()
    """States of each group."""
    outputs: tuple[tuple[int, int], ...] = ()
    """(place in u, group) of each signal that a filter drives, groups in order."""
    white: tuple[int, ...] = ()
    """Standard normals that each group of white noise draws in a step."""
    paired: bool = False
    """Whether the second half of them are those of the integrals beside the increments."""
    sensitive: bool = False
    """Whether sensitivity directions move the filters."""
    chains: tuple[tuple[int, ...], ...] = ()
    """Outputs that are one disturbance and its derivatives, in order: between grid points they are mixed."""

    @property
    def nw(self) -> int:
        return sum(self.orders)

    @property
    def nd(self) -> int:
        return len(self.outputs)

    @property
    def nv(self) -> int:
        return sum(self.white)

    @property
    def nb(self) -> int:
        """Numbers that mix all chains at one instant."""
        return sum(2 * len(chain) ** 2 for chain in self.chains)

    @property
    def places(self) -> tuple[int, ...]:
        return tuple(place for place, _ in self.outputs)


@dataclass(frozen=True, eq=False)
class NoiseFilterGroup:
    """Matrices of one group; those with d in front have one more dimension, the direction, after the steps."""

    stream: Normals
    F: Floats
    """(distinct steps, n, n)"""
    L: Floats
    R: Floats
    """(n, n)"""
    C: Floats
    """(signals, n)"""
    dF: Floats | None = None
    dL: Floats | None = None
    dR: Floats | None = None
    dC: Floats | None = None


@dataclass(frozen=True, eq=False)
class ColouredNoise:
    """The numbers of one run."""

    which: NDArray[np.int64]
    """(cells,): index of the distinct step."""
    groups: tuple[NoiseFilterGroup, ...] = ()
    white: tuple[Normals, ...] = ()
    first_realization: int = 0
    first_point: int = 0
    w: Floats | None = None
    """(M, nw) states at the first grid point instead of drawn ones, to go on from there."""
    dw: Floats | None = None
    mix: Floats | None = None
    """(distinct steps, 2 substeps - 1, nb): each chain at the halves of a cell's steps from its values at both ends,
    row by row; where there are chains."""

    def packed_steps(self) -> Floats:
        """Return (distinct steps, …): F and L of every group, row by row."""
        return _side_by_side([m for g in self.groups for m in (g.F, g.L)], 1)

    def packed_start(self) -> Floats:
        return _side_by_side([g.R for g in self.groups], 0)

    def packed_reading(self) -> Floats:
        return _side_by_side([g.C for g in self.groups], 0)

    def packed_derivatives(self) -> tuple[Floats, Floats, Floats]:
        """Return the same three, (distinct steps, ns, …), (ns, …) and (ns, …)."""
        steps = _side_by_side([m for g in self.groups for m in (g.dF, g.dL)], 2)
        return steps, _side_by_side([g.dR for g in self.groups], 1), _side_by_side([g.dC for g in self.groups], 1)


def _side_by_side(matrices: list[Floats | None], leading: int) -> Floats:
    rows = [m.reshape(*m.shape[:leading], -1) for m in matrices if m is not None]
    return np.ascontiguousarray(np.concatenate(rows, axis=-1)) if rows else np.zeros(1)


def coloured_noise_source(layout: ColouredNoiseLayout, nu: int) -> str:
    """Return the C functions of the filters and where signals come from, for gr_step.h."""
    sizes = {
        "NG": len(layout.orders), "NW": layout.nw, "ND": layout.nd, "NV": layout.nv, "SW": int(layout.sensitive),
        "NF": 2 * sum(n * n for n in layout.orders), "NR": sum(n * n for n in layout.orders),
        "NM": sum(layout.orders[g] for _, g in layout.outputs), "NT": nu - layout.nd, "NB": layout.nb,
    }  # fmt: skip
    tabled = [i for i in range(nu) if i not in layout.places] or [0]
    return "\n".join(
        [
            *(f"#define GR_{name} {size}" for name, size in sizes.items()),
            f"GR_ARRAY int gr_tabled[] = {{{', '.join(map(str, tabled))}}};",
            '#include "gr_normal_wide.h"',
            _function("gr_filter_step", "a w z", "out", _step_rows(layout)),
            _function("gr_filter_start", "a z", "out", _start_rows(layout)),
            _function("gr_filter_read", "a w", "out", _read_rows(layout)),
            _function("gr_filter_place", "d", "u", ((str(i), f"d[{k}]") for k, i in enumerate(layout.places))),
            _function("gr_filter_take", "u", "d", ((str(k), f"u[{i}]") for k, i in enumerate(layout.places))),
            _mixing(layout),
            _function("gr_filter_tangent", "a da w dw z", "out", _step_tangent_rows(layout)),
            _function("gr_filter_read_tangent", "a da w dw", "out", _read_tangent_rows(layout)),
            _draw("gr_filter_draw", layout.orders),
            _draw("gr_white_draw", layout.white),
            _halve(layout),
        ]
    )


def _function(name: str, inputs: str, output: str, rows: Iterator[tuple[str, str]]) -> str:
    entries = list(rows)
    declared = ", ".join(f"const gr_wide *{n}" for n in inputs.split())
    values = [f"  const gr_wide r{i} = {text};" for i, (_, text) in enumerate(entries)]
    stores = [f"  {output}[{place}] = r{i};" for i, (place, _) in enumerate(entries)]
    return "\n".join([f"GR_FN void {name}({declared}, gr_wide *{output}) {{", *values, *stores, "}"])


def _mixing(layout: ColouredNoiseLayout) -> str:
    """Return the C text that computes chains from their values at both ends of a cell; other outputs are left as they
    are.
    """
    lines, first = [], 0
    for chain in layout.chains:
        for k in chain:
            ends = [f"{side}[{i}]" for side in ("from", "to") for i in chain]
            terms = [f"GR_SPLAT(b[{first + i}]) * {end}" for i, end in enumerate(ends)]
            lines.append(f"  out[{k}] = {' + '.join(terms)};")
            first += len(ends)
    body = lines or ["  (void)b, (void)from, (void)to, (void)out;"]
    arguments = "const double *b, const gr_wide *from, const gr_wide *to, gr_wide *out"
    return "\n".join([f"GR_FN void gr_filter_mix({arguments}) {{", *body, "}"])


def _row(matrix: str, first: int, vector: str, offset: int, n: int) -> str:
    return "(" + " + ".join(f"{matrix}[{first + j}] * {vector}[{offset + j}]" for j in range(n)) + ")"


def _blocks(layout: ColouredNoiseLayout) -> Iterator[tuple[int, int, int]]:
    """Yield (order, first state, n² summed over the groups before) of each group."""
    state = squares = 0
    for n in layout.orders:
        yield n, state, squares
        state, squares = state + n, squares + n * n


def _step_rows(layout: ColouredNoiseLayout) -> Iterator[tuple[str, str]]:
    for n, state, squares in _blocks(layout):
        for i in range(n):
            F, L = 2 * squares + i * n, 2 * squares + n * n + i * n
            yield str(state + i), f"{_row('a', F, 'w', state, n)} + {_row('a', L, 'z', state, i + 1)}"


def _step_tangent_rows(layout: ColouredNoiseLayout) -> Iterator[tuple[str, str]]:
    for n, state, squares in _blocks(layout):
        for i in range(n):
            F, L = 2 * squares + i * n, 2 * squares + n * n + i * n
            moved = f"({_row('da', F, 'w', state, n)} + {_row('da', L, 'z', state, i + 1)})"
            yield str(state + i), f"{_row('a', F, 'dw', state, n)} + {moved}"


def _start_rows(layout: ColouredNoiseLayout) -> Iterator[tuple[str, str]]:
    for n, state, squares in _blocks(layout):
        yield from ((str(state + i), _row("a", squares + i * n, "z", state, i + 1)) for i in range(n))


def _read_rows(layout: ColouredNoiseLayout) -> Iterator[tuple[str, str]]:
    for k, (first, n, state) in enumerate(_readings(layout)):
        yield str(k), _row("a", first, "w", state, n)


def _read_tangent_rows(layout: ColouredNoiseLayout) -> Iterator[tuple[str, str]]:
    for k, (first, n, state) in enumerate(_readings(layout)):
        yield str(k), f"{_row('a', first, 'dw', state, n)} + {_row('da', first, 'w', state, n)}"


def _readings(layout: ColouredNoiseLayout) -> Iterator[tuple[int, int, int]]:
    blocks, first = list(_blocks(layout)), 0
    for _, group in layout.outputs:
        n, state, _ = blocks[group]
        yield first, n, state
        first += n


def _draw(name: str, counts: tuple[int, ...]) -> str:
    offsets = np.cumsum([0, *counts])
    calls = [f"  gr_normals_wide(s + {g}, m, step, node, {n}, z + {offsets[g]});" for g, n in enumerate(counts)]
    arguments = "const gr_stream *s, const gr_u32 *m, gr_u32 step, gr_u32 node, gr_wide *z"
    return "\n".join(
        [
            f"GR_FN void {name}({arguments}) {{",
            *(calls or ["  (void)s, (void)m, (void)step, (void)node, (void)z;"]),
            "}",
        ]
    )


HALF, QUARTER, MIXED = 0.7071067811865476, 0.3535533905932738, 0.6123724356957945
"""√½, √2/4 and √6/4, the weights of a halving."""


def white_noise_pairs(layout: ColouredNoiseLayout) -> list[tuple[int, int | None]]:
    """Return places of the increment of each independent noise and, where it has one, of its integral."""
    pairs: list[tuple[int, int | None]] = []
    first = 0
    for n in layout.white:
        count = n // 2 if layout.paired else n
        pairs += [(first + i, first + count + i if layout.paired else None) for i in range(count)]
        first += n
    return pairs


def _halve(layout: ColouredNoiseLayout) -> str:
    """Return normals z of both halves of an interval from those of the whole and fresh ones."""
    lines = []
    for i, k in white_noise_pairs(layout):
        z, a = f"whole[{i}]", f"fresh[{i}]"
        if k is None:
            # left may be where the fresh ones are
            lines.append(f"  right[{i}] = GR_SPLAT({HALF}) * ({z} - {a}); left[{i}] = GR_SPLAT({HALF}) * ({z} + {a});")
            continue
        y, b = f"whole[{k}]", f"fresh[{k}]"
        lines += [
            f"  {{ const gr_wide p = GR_SPLAT({HALF}) * {z}, q = GR_SPLAT({MIXED}) * {y} + GR_SPLAT({QUARTER}) * {a};",
            f"    const gr_wide r = GR_SPLAT({QUARTER}) * {y} - GR_SPLAT({MIXED}) * {a}, s = GR_SPLAT({HALF}) * {b};",
            f"    left[{i}] = p + q; right[{i}] = p - q; left[{k}] = r + s; right[{k}] = r - s; }}",
        ]
    arguments = "const gr_wide *whole, const gr_wide *fresh, gr_wide *left, gr_wide *right"
    body = lines or ["  (void)whole, (void)fresh, (void)left, (void)right;"]
    return "\n".join([f"GR_FN void gr_white_halve({arguments}) {{", *body, "}"])
