"""Where knots go: at the observations, several at one place where an input steps, closer together around steps.

A step of an input makes the slope of a state jump. Without coincident knots there the spline cannot follow, and the
estimates take the blame: rate constants of a stirred tank were off by 1.6 standard deviations. With (order − 1)
coincident knots the two sides are free of each other. The best trajectory under white noise bends at every observation
too; coincident knots there make splines converge with their full order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grisaille.collocation.array_types import Floats, Integers
from grisaille.collocation.spline_mesh import SplineMesh
from grisaille.collocation.spline_options import SplineOptions, by_state
from grisaille.collocation.splines import Spline, make_spline
from grisaille.collocation.trial_record import CollocationRecord
from grisaille.errors import EstimationError

SAME_KNOT = 1e-9
"""Knots closer than this part of the record are one."""
MIN_INTERVALS = 50
"""Intervals that a record has at least, however few its observations."""
HALVINGS_AT_START = 4
"""Halvings of the first interval."""


def place_knots(record: CollocationRecord, options: SplineOptions) -> SplineMesh:
    """Return the mesh of one experiment."""
    model = record.stochastic
    orders, knots = by_state(model, options.order, "order", 4), by_state(model, options.knots, "knots", "auto")
    span = (float(record.times[0]), float(record.times[-1]))
    breaks, kink = record.table.breaks, record.table.kink
    inside = breaks[(kink > 0) & (breaks > span[0]) & (breaks < span[1])]
    folded = steps = merge_knots(inside, np.zeros(0), span)
    if options.kinks == "observations":
        seen = record.times[np.isfinite(record.y).any(axis=1)]
        folded = merge_knots(folded, seen[(seen > span[0]) & (seen < span[1])], span)
    splines = []
    for order, wanted in zip(orders, knots, strict=True):
        breaks = merge_knots(np.concatenate([span, folded]), _base(record, wanted, span), span)
        if isinstance(wanted, str):
            breaks = _graded(_closer(breaks, steps))
        splines.append(make_spline(order, breaks, folded))
    return SplineMesh(tuple(splines))


def halve_intervals(mesh: SplineMesh, cells: Floats) -> SplineMesh:
    """Return the mesh with a further simple knot in the middle of the intervals that hold one of the instants
    ``cells``.
    """
    return SplineMesh(tuple(_halved(s, cells) for s in mesh.splines))


def folded_at(mesh: SplineMesh, times: Floats) -> SplineMesh:
    """Return the mesh with coincident knots, which let slopes jump, at further instants; itself where it has them
    all.
    """
    splines = [_folded_at(s, times) for s in mesh.splines]
    return mesh if all(a is b for a, b in zip(splines, mesh.splines, strict=True)) else SplineMesh(tuple(splines))


def _folded_at(spline: Spline, times: Floats) -> Spline:
    span = float(spline.breaks[-1] - spline.breaks[0])
    nearest = spline.breaks[_nearest(spline.breaks, times)]
    times = np.where(np.abs(nearest - times) <= SAME_KNOT * span, nearest, times)
    folds = spline.breaks[spline.multiplicity >= spline.order - 1]
    if np.isin(times, folds).all():
        return spline
    breaks = np.union1d(spline.breaks, times[(times > spline.breaks[0]) & (times < spline.breaks[-1])])
    return make_spline(spline.order, breaks, np.union1d(folds, times))


def _nearest(breaks: Floats, times: Floats) -> Integers:
    after = np.clip(np.searchsorted(breaks, times), 1, len(breaks) - 1)
    return np.asarray(np.where(times - breaks[after - 1] < breaks[after] - times, after - 1, after), dtype=np.int64)


def merge_knots(first: Floats, second: Floats, span: tuple[float, float]) -> Floats:
    """Return all knots of the first, and those of the second that are not close to one of them."""
    first = np.unique(first)
    if not len(first):
        return np.unique(second)
    after = np.searchsorted(first, second)
    beside = first[np.clip(np.stack([after - 1, after]), 0, len(first) - 1)]
    return np.union1d(first, second[np.abs(beside - second).min(axis=0) > SAME_KNOT * (span[1] - span[0])])


def _halved(spline: Spline, cells: Floats) -> Spline:
    interval = np.unique(np.clip(np.searchsorted(spline.breaks, cells, side="right") - 1, 0, len(spline.breaks) - 2))
    middle = (spline.breaks[interval] + spline.breaks[interval + 1]) / 2
    order = np.argsort(np.concatenate([spline.breaks, middle]), kind="stable")
    multiplicity = np.concatenate([spline.multiplicity, np.ones(len(middle), dtype=np.int64)])
    return Spline(spline.order, np.concatenate([spline.breaks, middle])[order], multiplicity[order])


def _filled(times: Floats, span: tuple[float, float]) -> Floats:
    """Return instants with equal parts between those that are more than a ``MIN_INTERVALS``-th of the record apart."""
    ends = np.union1d(times, span)
    parts = np.maximum(np.ceil(np.diff(ends) * MIN_INTERVALS / (span[1] - span[0]) - 1e-9).astype(int), 1)
    begin = np.repeat(np.cumsum(parts) - parts, parts)
    inside = (np.arange(len(begin)) - begin) * np.repeat(np.diff(ends) / parts, parts) + np.repeat(ends[:-1], parts)
    return np.append(inside, ends[-1])


def _graded(breaks: Floats) -> Floats:
    """Return knots with the first interval halved repeatedly: a free start may lie off what the model makes of it."""
    first = (breaks[1] - breaks[0]) * 0.5 ** np.arange(1, HALVINGS_AT_START + 1)
    return np.union1d(breaks, breaks[0] + first)


def _closer(breaks: Floats, steps: Floats) -> Floats:
    """Return knots with the intervals on both sides of every step halved."""
    at = np.searchsorted(breaks, steps)
    return np.unique(np.concatenate([breaks, (breaks[at] + breaks[at - 1]) / 2, (breaks[at] + breaks[at + 1]) / 2]))


def _base(record: CollocationRecord, knots: Any, span: tuple[float, float]) -> Floats:
    if isinstance(knots, str):
        return _filled(record.times[np.isfinite(record.y).any(axis=1)], span)
    if np.ndim(knots) == 0:
        return np.linspace(*span, int(knots))
    given = np.unique(np.asarray(knots, dtype=float))
    return given[(given > span[0]) & (given < span[1])]


def refuse_knots_outside(records: Sequence[CollocationRecord], knots: str) -> None:
    """Refuse knots that lie outside all records; they may lie outside one."""
    first, last = min(float(r.times[0]) for r in records), max(float(r.times[-1]) for r in records)
    reach = SAME_KNOT * (last - first)
    for label, value in knots.items() if isinstance(knots, Mapping) else [("", knots)]:
        times = np.asarray(value, dtype=float) if np.ndim(value) else np.zeros(0)
        outside = times[(times < first - reach) | (times > last + reach)]
        if len(outside):
            which = f"knots['{label}']" if label else "knots"
            raise EstimationError(
                f"{which} holds {outside[0]:g}{f' and {len(outside) - 1} more' if len(outside) > 1 else ''}, outside "
                f"the data, which last from {first:g} to {last:g}: give times in between, in the same unit."
            )
