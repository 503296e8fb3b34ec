/* Takes a filter over a record without derivatives: gr_filter.h where none are asked for (GR_VALUES). */
#ifndef GR_FILTER_VALUES_H
#define GR_FILTER_VALUES_H

#include <string.h>

#ifdef GR_MOMENTS
#include "gr_filter_moments.h"
#else
#include "gr_filter_linearized.h"
#endif

GR_API long gr_filter_work(long directions) { return directions + 1; }
GR_API long gr_filter_lanes(void) { return 1; }
GR_API long gr_filter_size(void) { return (long)sizeof(gr_filter_task); }

GR_FN int gr_filter_sample(gr_filter_task *k, long at, long sample, long *waiting) {
  const double *mask = k->mask + sample * GR_NY;
  double before[GR_NS], e[GR_NY], V[GR_NV], inverse[GR_NY * GR_NY], a[GR_NY], added, slope;
  int i, place = 0;
  memcpy(before, k->s, sizeof before);
  gr_update(k->bounds[at], before, k->signals + at * GR_NU, k->q, k->nominal, k->y + sample * GR_NY, mask,
            k->scale + sample * GR_NY, k->s, e, V GR_UPDATED(k));
  if (!gr_filter_weigh(e, V, k->robust, inverse, a, &added, &slope)) return 0;
  for (i = 0; i < GR_NY; i++) {
    if (mask[i] != 0.0) {
      k->innovations[sample * GR_NY + i] = e[i];
      k->variances[sample * GR_NY + i] = V[place];
      if (!*waiting) k->count++;
    }
    place += GR_NY - i;
  }
  if (!*waiting) k->base[0] += added;
  *waiting = 0;
  return 1;
}

GR_FN void gr_filter_cell(gr_filter_task *k, long cell, const double *u) {
  const long m = k->steps[cell];
  const double length = k->bounds[cell + 1] - k->bounds[cell], h = length / m;
  double after[GR_NS];
  long i;
  for (i = 0; i < m; i++, u += 2 * GR_NU) {
    gr_carry(k, k->bounds[cell] + length * ((double)i / m), h, k->s, u, after);
    memcpy(k->s, after, sizeof after);
    if (k->along) {
      memcpy(k->along, after, sizeof after);
      k->along += GR_NS;
    }
  }
}

GR_API long gr_filter(gr_filter_task *k) {
  const double *u = k->stages;
  long at, waiting = k->condition;
  int i;
  k->count = 0;
  k->failed = -1;
  for (at = 0; at <= k->n_cells; at++) {
    if (at) {
      gr_filter_cell(k, at - 1, u);
      u += (2 * k->steps[at - 1] + 1) * GR_NU;
    }
    if (k->kept) memcpy(k->kept + 2 * at * GR_NS, k->s, sizeof(double) * GR_NS);
    if (k->given)
      for (i = 0; i < GR_NS; i++)
        if (!isnan(k->given[at * GR_NS + i])) k->s[i] = k->given[at * GR_NS + i];
    if (k->sample[at] >= 0 && !gr_filter_sample(k, at, k->sample[at], &waiting)) {
      k->failed = k->sample[at];
      return -1;
    }
    if (k->kept) memcpy(k->kept + (2 * at + 1) * GR_NS, k->s, sizeof(double) * GR_NS);
  }
  return k->count;
}

#endif
