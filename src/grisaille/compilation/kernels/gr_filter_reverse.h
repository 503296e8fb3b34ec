/* Takes a filter over a record and back: the gradient of base (gr_filter.h) by what it started from and by q.
 *
 * tape: s before every step and every update, in the order of the pass, (all steps + n_cells + 1) GR_NS numbers;
 * behind it what each sample's sums need, (n_cells + 1)(GR_NY + GR_NV).
 */
#ifndef GR_FILTER_REVERSE_H
#define GR_FILTER_REVERSE_H

#include <string.h>

#include "gr_filter_task.h"
#ifdef GR_LINEARIZED
#include "gr_filter_linearized.h"
#elif defined(GR_MOMENTS)
#include "gr_filter_moments.h"
#else
#include "gr_filter_direct.h"
#endif

GR_API long gr_filter_size(void) { return (long)sizeof(gr_filter_task); }
GR_API long gr_filter_tape(long n_cells, long steps) {
  return (steps + n_cells + 1) * GR_NS + (n_cells + 1) * (GR_NY + GR_NV);
}

/* derivatives of what a sample adds by its e and V; ds, q adjoints before the update */
GR_FN void gr_filter_sample_back(gr_filter_task *k, long at, const double *before, const double *eV, int counted) {
  const long sample = k->sample[at];
  const double *y = k->y + sample * GR_NY, *mask = k->mask + sample * GR_NY, *scale = k->scale + sample * GR_NY;
  double inverse[GR_NY * GR_NY], a[GR_NY], le[GR_NY], lV[GR_NV], lq[GR_NQ + 1], added, slope;
  int i, j, place = 0;
  gr_filter_weigh(eV, eV + GR_NY, k->robust, inverse, a, &added, &slope);
  for (i = 0; i < GR_NY; i++) le[i] = counted ? 2 * slope * a[i] : 0.0;
  for (j = 0; j < GR_NY; j++)
    for (i = j; i < GR_NY; i++)
      lV[place++] = counted ? (i == j ? 1.0 : 2.0) * (inverse[i * GR_NY + j] - slope * a[i] * a[j]) : 0.0;
  gr_update_reverse(k->bounds[at], before, k->signals + at * GR_NU, k->q, k->nominal, y, mask, scale, k->ds, le, lV,
                    k->ds, lq GR_UPDATED(k));
  for (i = 0; i < GR_NQ; i++) k->lq[i] += lq[i];
}

GR_API long gr_filter_gradient(gr_filter_task *k) {
  const long K = k->n_cells;
  const double *stages = k->stages;
  double *tape = k->tape, *eVs, after[GR_NS], lq[GR_NQ + 1];
  long at, i, first = -1, all = 0;
  int j;
  for (at = 0; at < K; at++) all += k->steps[at];
  eVs = k->tape + (all + K + 1) * GR_NS;
  k->count = 0;
  k->failed = -1;
  for (at = 0; at <= K; at++) {
    if (at) {
      const long m = k->steps[at - 1];
      const double length = k->bounds[at] - k->bounds[at - 1], h = length / m;
      for (i = 0; i < m; i++, stages += 2 * GR_NU) {
        memcpy(tape, k->s, sizeof after);
        gr_carry(k, k->bounds[at - 1] + length * ((double)i / m), h, tape, stages, k->s);
        tape += GR_NS;
      }
      stages += GR_NU;
    }
    if (k->given)
      for (j = 0; j < GR_NS; j++)
        if (!isnan(k->given[at * GR_NS + j])) k->s[j] = k->given[at * GR_NS + j];
    memcpy(tape, k->s, sizeof after);
    if (k->sample[at] >= 0) {
      const long sample = k->sample[at];
      double inverse[GR_NY * GR_NY], a[GR_NY], added, slope, *eV = eVs + at * (GR_NY + GR_NV);
      gr_update(k->bounds[at], tape, k->signals + at * GR_NU, k->q, k->nominal, k->y + sample * GR_NY,
                k->mask + sample * GR_NY, k->scale + sample * GR_NY, k->s, eV, eV + GR_NY GR_UPDATED(k));
      if (!gr_filter_weigh(eV, eV + GR_NY, k->robust, inverse, a, &added, &slope)) {
        k->failed = sample;
        return -1;
      }
      if (first < 0) first = at;
      if (!(k->condition && at == first)) {
        k->base[0] += added;
        for (j = 0; j < GR_NY; j++) k->count += k->mask[sample * GR_NY + j] != 0.0;
      }
      for (j = 0; j < GR_NY; j++)
        if (k->mask[sample * GR_NY + j] != 0.0) k->innovations[sample * GR_NY + j] = eV[j];
      for (i = 0, j = 0; j < GR_NY; i += GR_NY - j, j++)
        if (k->mask[sample * GR_NY + j] != 0.0) k->variances[sample * GR_NY + j] = eV[GR_NY + i];
    }
    tape += GR_NS;
  }
  memset(k->ds, 0, sizeof after);
  for (at = K; at >= 0; at--) {
    tape -= GR_NS;
    if (k->sample[at] >= 0)
      gr_filter_sample_back(k, at, tape, eVs + at * (GR_NY + GR_NV), !(k->condition && at == first));
    if (k->given)
      for (j = 0; j < GR_NS; j++)
        if (!isnan(k->given[at * GR_NS + j])) k->ds[j] = 0.0;
    if (at) {
      const long m = k->steps[at - 1];
      const double length = k->bounds[at] - k->bounds[at - 1], h = length / m;
      stages -= GR_NU;
      for (i = m - 1; i >= 0; i--) {
        tape -= GR_NS;
        stages -= 2 * GR_NU;
        gr_carry_reverse(k, k->bounds[at - 1] + length * ((double)i / m), h, tape, stages, k->ds, lq);
        for (j = 0; j < GR_NQ; j++) k->lq[j] += lq[j];
      }
    }
  }
  return k->count;
}

#endif
