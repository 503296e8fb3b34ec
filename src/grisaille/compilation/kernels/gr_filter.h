/* Takes a filter over a record once, with forward derivatives in any number of directions.
 *
 * Sums as in filtering/kalman.py: base = sum of log det V + rho(e' V^-1 e) and its derivatives, and the expected
 * information  de' V^-1 de + 1/2 tr(V^-1 dV V^-1 dV).
 */
#ifndef GR_FILTER_H
#define GR_FILTER_H

#include <string.h>

#include "gr_filter_task.h"
#ifdef GR_LINEARIZED
#include "gr_filter_linearized.h"
#elif defined(GR_MOMENTS)
#include "gr_filter_moments.h"
#else
#include "gr_filter_direct.h"
#endif

/* work: dE (directions, GR_NY), then X = V^-1 dV (directions, GR_NY, GR_NY), then V^-1 de (directions, GR_NY) */
GR_API long gr_filter_work(long directions) { return directions * (2 * GR_NY + GR_NY * GR_NY) + 1; }
GR_API long gr_filter_lanes(void) { return GR_ABREAST; }
GR_API long gr_filter_size(void) { return (long)sizeof(gr_filter_task); }

/* derivatives of one block of directions into the tables in work */
GR_FN void gr_filter_collect(gr_filter_task *k, long block, const gr_lanes *de, const gr_lanes *dV,
                             const double *inverse, const double *a, double slope) {
  const long ns = k->directions;
  double *E = k->work, *X = E + ns * GR_NY, *B = X + ns * GR_NY * GR_NY;
  int lane, i, j, l;
  for (lane = 0; lane < GR_ABREAST; lane++) {
    const long d = block * GR_ABREAST + lane;
    double dS[GR_NY * GR_NY], sum = 0.0;
    int at = 0;
    if (d >= ns) return;
    for (i = 0; i < GR_NY; i++) E[d * GR_NY + i] = ((const double *)(de + i))[lane];
    for (j = 0; j < GR_NY; j++)
      for (i = j; i < GR_NY; i++) dS[i * GR_NY + j] = dS[j * GR_NY + i] = ((const double *)(dV + at++))[lane];
    for (i = 0; i < GR_NY; i++) {
      double b = 0.0;
      for (j = 0; j < GR_NY; j++) {
        double x = 0.0;
        for (l = 0; l < GR_NY; l++) x += inverse[i * GR_NY + l] * dS[l * GR_NY + j];
        X[(d * GR_NY + i) * GR_NY + j] = x;
        b += inverse[i * GR_NY + j] * E[d * GR_NY + j];
        sum -= slope * a[i] * dS[i * GR_NY + j] * a[j];
      }
      B[d * GR_NY + i] = b;
      sum += X[(d * GR_NY + i) * GR_NY + i] + 2 * slope * a[i] * E[d * GR_NY + i];
    }
    k->base[1 + d] += sum;
  }
}

GR_FN void gr_filter_inform(gr_filter_task *k) {
  const long ns = k->directions;
  const double *E = k->work, *X = E + ns * GR_NY, *B = X + ns * GR_NY * GR_NY;
  long a, b;
  int i, j;
  for (a = 0; a < ns; a++)
    for (b = 0; b <= a; b++) {
      double sum = 0.0;
      for (i = 0; i < GR_NY; i++) {
        sum += B[a * GR_NY + i] * E[b * GR_NY + i];
        for (j = 0; j < GR_NY; j++)
          sum += 0.5 * X[(a * GR_NY + i) * GR_NY + j] * X[(b * GR_NY + j) * GR_NY + i];
      }
      k->information[a * ns + b] += sum;
      if (a != b) k->information[b * ns + a] += sum;
    }
}

GR_FN int gr_filter_sample(gr_filter_task *k, long at, long sample, long *waiting) {
  const double t = k->bounds[at], *u = k->signals + at * GR_NU;
  const double *y = k->y + sample * GR_NY, *mask = k->mask + sample * GR_NY, *scale = k->scale + sample * GR_NY;
  const long ns = k->directions, blocks = (ns + GR_ABREAST - 1) / GR_ABREAST;
  double before[GR_NS], e[GR_NY], V[GR_NV], inverse[GR_NY * GR_NY], a[GR_NY], added, slope;
  double *E = k->work;
  long b, d;
  int i, place = 0;
  memcpy(before, k->s, sizeof before);
  gr_update(t, before, u, k->q, k->nominal, y, mask, scale, k->s, e, V GR_UPDATED(k));
  if (!gr_filter_weigh(e, V, k->robust, inverse, a, &added, &slope)) return 0;
  if (*waiting) slope = 0.0;
  for (b = 0; b < blocks; b++) {
    gr_lanes *ds = (gr_lanes *)k->ds + b * GR_NS;
    gr_lanes de[GR_NY], dV[GR_NV];
    double kept[GR_ABREAST];
    for (i = 0; i < GR_ABREAST; i++) kept[i] = b * GR_ABREAST + i < ns ? k->base[1 + b * GR_ABREAST + i] : 0.0;
    gr_update_forward(t, before, u, k->q, k->nominal, y, mask, scale, ds, (const gr_lanes *)k->dq + b * GR_NQ, ds, de, dV GR_UPDATED(k));
    gr_filter_collect(k, b, de, dV, inverse, a, slope);
    if (*waiting)
      for (i = 0; i < GR_ABREAST && b * GR_ABREAST + i < ns; i++) k->base[1 + b * GR_ABREAST + i] = kept[i];
  }
  for (i = 0; i < GR_NY; i++) {
    if (mask[i] != 0.0) {
      k->innovations[sample * GR_NY + i] = e[i];
      k->variances[sample * GR_NY + i] = V[place];
      for (d = 0; d < ns; d++) k->slopes[(sample * ns + d) * GR_NY + i] = E[d * GR_NY + i];
      if (!*waiting) k->count++;
    }
    place += GR_NY - i;
  }
  if (!*waiting) {
    k->base[0] += added;
    gr_filter_inform(k);
  }
  *waiting = 0;
  return 1;
}

/* signals u begin with those of the cell */
GR_FN void gr_filter_cell(gr_filter_task *k, long cell, const double *u) {
  const long m = k->steps[cell], blocks = (k->directions + GR_ABREAST - 1) / GR_ABREAST;
  const double length = k->bounds[cell + 1] - k->bounds[cell], h = length / m;
  double after[GR_NS];
  long i, b;
  for (i = 0; i < m; i++, u += 2 * GR_NU) {
    const double t = k->bounds[cell] + length * ((double)i / m);
    gr_carry(k, t, h, k->s, u, after);
    for (b = 0; b < blocks; b++) {
      gr_lanes *ds = (gr_lanes *)k->ds + b * GR_NS;
      gr_carry_forward(k, t, h, k->s, u, ds, (const gr_lanes *)k->dq + b * GR_NQ);
    }
    memcpy(k->s, after, sizeof after);
    if (k->along) {
      memcpy(k->along, after, sizeof after);
      k->along += GR_NS;
    }
  }
}

GR_FN void gr_filter_replace(gr_filter_task *k, const double *given) {
  const long blocks = (k->directions + GR_ABREAST - 1) / GR_ABREAST;
  long b;
  int i;
  for (i = 0; i < GR_NS; i++)
    if (!isnan(given[i])) {
      k->s[i] = given[i];
      for (b = 0; b < blocks; b++) ((gr_lanes *)k->ds)[b * GR_NS + i] = GR_ALL(0.0);
    }
}

GR_API long gr_filter(gr_filter_task *k) {
  const double *u = k->stages;
  long at, waiting = k->condition;
  k->count = 0;
  k->failed = -1;
  for (at = 0; at <= k->n_cells; at++) {
    if (at) {
      gr_filter_cell(k, at - 1, u);
      u += (2 * k->steps[at - 1] + 1) * GR_NU;
    }
    if (k->kept) memcpy(k->kept + 2 * at * GR_NS, k->s, sizeof(double) * GR_NS);
    if (k->given) gr_filter_replace(k, k->given + at * GR_NS);
    if (k->sample[at] >= 0 && !gr_filter_sample(k, at, k->sample[at], &waiting)) {
      k->failed = k->sample[at];
      return -1;
    }
    if (k->kept) memcpy(k->kept + (2 * at + 1) * GR_NS, k->s, sizeof(double) * GR_NS);
  }
  return k->count;
}

#endif
