/* Evaluates signals u(t): piecewise polynomials, read so that a jump never leaks into the step beside it.
 *
 * A step never crosses a kink, so the segment is found from a point inside the step (its midpoint) and from there only
 * breaks that are no kinks are crossed on the way to t. A stage at the end of a step thus sees the limit from inside
 * even when rounding puts t beyond the break. With inside == t the right limit is taken: rows written at a kink, and
 * the start of the next step, use the values that hold from there on.
 */
#ifndef GR_SIGNAL_H
#define GR_SIGNAL_H

#include <math.h>

#include "gr_task.h"

#define GR_EPS 2.220446049250313e-16
#define GR_MOVING 2        /* flag of a kink that moves with a parameter */
#define GR_VERY_SHORT 1e-6 /* part of the distance between fixed points that one frozen step may always span */

/* Steps below this are rounding: relative to t alone, because a run to 1e11 may have to start with 1e-6. */
GR_FN double gr_smallest_step(const gr_task *k, double t) {
  return 16.0 * GR_EPS * fabs(t) + 1e-24 * (k->t1 - k->t0);
}

/* Largest s with breaks[s] <= inside (0 before the first break, the last segment after the last). The hint is the
 * answer of the previous call: times move forward, so it or its neighbour is nearly always right. */
GR_FN long gr_segment(const gr_task *k, double inside, long hint) {
  const double *b = k->breaks;
  long last = k->n_breaks - 2, low = 0, high;
  if (last <= 0) return 0;
  high = last;
  if (hint >= 0 && hint <= last && b[hint] <= inside) {
    if (hint == last || inside < b[hint + 1]) return hint;
    if (hint + 1 == last || inside < b[hint + 2]) return hint + 1;
    low = hint + 1;
  }
  while (low < high) {
    long middle = low + (high - low + 1) / 2;
    if (b[middle] <= inside) low = middle;
    else high = middle - 1;
  }
  return low;
}

/* u(t) for a step whose midpoint lies in segment s. */
GR_FN void gr_signals_from(const gr_task *k, long s, double t, double *u) {
#if GR_HAS_U
  const double *b = k->breaks, *c;
  long last = k->n_breaks - 2, degree = k->degree, i, j;
  double d;
  if (GR_NU == 0) return;
  while (s < last && t >= b[s + 1] && !k->kink[s + 1]) s++;
  while (s > 0 && t < b[s] && !k->kink[s]) s--;
  d = t - b[s];
  c = k->coef + s * GR_NU * (degree + 1);
  for (i = 0; i < GR_NU; i++, c += degree + 1) {
    double value = c[degree];
    for (j = degree - 1; j >= 0; j--) value = value * d + c[j];
    u[i] = value;
  }
#else
  (void)k; (void)s; (void)t; (void)u;
#endif
}

GR_FN void gr_signals(const gr_task *k, double t, double inside, double *u) {
  gr_signals_from(k, gr_segment(k, inside, 0), t, u);
}

/* 1 when some signal jumps at t from segment s to segment `next` by more than the rounding of its values and of t */
GR_FN long gr_signals_jump(const gr_task *k, long s, long next, double t) {
#if GR_HAS_U
  double before[GR_LEN(GR_NU)], after[GR_LEN(GR_NU)];
  long degree = k->degree;
  if (GR_NU == 0) return 0;
  gr_signals_from(k, s, t, before);
  gr_signals_from(k, next, t, after);
  for (long i = 0; i < GR_NU; i++) {
    double slope = degree > 0 ? fabs(k->coef[(s * GR_NU + i) * (degree + 1) + 1]) : 0.0;
    double noise = 16.0 * (fabs(before[i]) + fabs(after[i])) + 4.0 * slope * fabs(t);
    if (fabs(after[i] - before[i]) > GR_EPS * noise) return 1;
  }
#else
  (void)k; (void)s; (void)next; (void)t;
#endif
  return 0;
}

/* First kink strictly after t, or t1. Scans the breaks up to the kink: ask once per kink, not once per step. */
GR_FN double gr_next_kink_from(const gr_task *k, double t, long hint) {
  double guard = gr_smallest_step(k, t), end = k->t1 - gr_smallest_step(k, k->t1);
  long i;
  if (k->n_breaks < 2) return k->t1;
  for (i = gr_segment(k, t, hint); i < k->n_breaks; i++) {
    if (k->breaks[i] >= end) break;
    if (k->kink[i] && k->breaks[i] > t + guard) return k->breaks[i];
  }
  return k->t1;
}

GR_FN double gr_next_kink(const gr_task *k, double t) { return gr_next_kink_from(k, t, 0); }

/* Where a frozen discretisation must put the end of a step: the next kink or requested time, or t1. */
GR_FN double gr_next_mandatory(const gr_task *k, double t, double kink) {
  double guard = gr_smallest_step(k, t);
  long i;
  for (i = k->written; i < k->n_times; i++)
    if (k->times[i] > t + guard)
      return k->times[i] < kink - gr_smallest_step(k, kink) ? k->times[i] : kink;
  return kink;
}

/* The length by which the number of frozen steps from one mandatory point to the next is chosen: their distance, or,
 * where one of them moves with a parameter, that of the fixed ones around them, so that the number stays while it moves.
 * Very short stretches take one step. */
GR_FN double gr_frozen_length(const gr_task *k, double from, double to, long hint) {
  double left = k->t0, right = k->t1;
  long i, moves = 0;
  if (k->n_breaks < 2) return to - from;
  for (i = gr_segment(k, from, hint); i < k->n_breaks && k->breaks[i] <= to; i++)
    if (k->kink[i] == GR_MOVING && (k->breaks[i] == from || k->breaks[i] == to)) moves = 1;
  if (!moves) return to - from;
  for (; i < k->n_breaks; i++)
    if (k->kink[i] == 1) {
      if (k->breaks[i] < right) right = k->breaks[i];
      break;
    }
  for (i = gr_segment(k, from, hint); i >= 0; i--)
    if (k->kink[i] == 1) {
      if (k->breaks[i] > left) left = k->breaks[i];
      break;
    }
  for (i = k->written; i < k->n_times && k->times[i] <= from; i++) continue;
  if (i > 0 && k->times[i - 1] > left) left = k->times[i - 1];
  if (i < k->n_times && k->times[i] < right) right = k->times[i];
  return to - from > GR_VERY_SHORT * (right - left) ? right - left : to - from;
}

#endif
