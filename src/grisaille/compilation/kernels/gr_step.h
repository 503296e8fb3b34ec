/* Frozen steps over a batch of realizations: the outer loop is the realization, the inner one the grid.
 *
 * The generated file defines, before it includes this header,
 *
 *   GR_NX, GR_NU, GR_NP   sizes      GR_NY  quantities observed here      GR_NS  sensitivity directions, or 0
 *   GR_NK                 constants of a realization
 *   void gr_once   (p, nominal, c)                              the constants
 *   void gr_step   (t, h, x, ua, um, ub, p, nominal, c, out)    one step; ua, um, ub: signals at t, t + h/2, t + h
 *   void gr_observe(t, x, u, p, out)
 *   with GR_NS > 0:
 *   void gr_once   (p, nominal, dp, c)
 *   void gr_step   (t, h, x, ua, um, ub, sx, p, nominal, dp, c, out, sout)
 *   void gr_observe(t, x, u, p, sx, dp, out, sout)              sx GR_NX x NS, dp GR_NP x NS, columns contiguous
 *
 * gr_once and gr_step take arrays of gr_wide, GR_LANES realizations at a time; gr_observe arrays of double.
 * Outputs may overwrite inputs. Mirrored by compilation/frozen.py (ctypes); keep both in step.
 */
#ifndef GR_STEP_H
#define GR_STEP_H

#include "gr_task.h"
#include "gr_wide.h"

typedef struct {
  long first, last;             /* realizations first <= m < last */
  long n_cells, substeps;       /* grid has n_cells + 1 points; each cell is cut into equal steps */
  const double *grid;
  const double *x0;             /* start of realization m at x0 + m * x0_stride; stride 0: common */
  long x0_stride;
  double *x;                    /* realizations x GR_NX: the end */
  const double *p;
  long p_stride;
  const double *nominal;        /* GR_NX */
  const double *const *signal;  /* GR_NU tables of n_cells + 1 values, realization m at + m * signal_stride[i] */
  const long *signal_stride;
  const unsigned char *held;    /* GR_NU: 1 constant over a cell, 0 linear */
  const double *dp;             /* NS x GR_NP, common */
  const double *sx0;
  long sx0_stride;
  double *sx;                   /* realizations x NS x GR_NX: the end */
  long n_kept;
  const long *kept;             /* grid indices to observe, increasing */
  double *y, *sy;               /* realizations x n_kept (x NS) x GR_NY, or NULL */
  double *mean, *spread;        /* n_kept x GR_NY, or NULL: mean over this call and sum of squared deviations from it */
  double *smean, *scross;       /* n_kept x NS x GR_NY: mean of the sensitivities, sum of products of deviations */
  long *failed;                 /* realizations: grid index where the state was first seen not finite, or -1 */
} gr_batch;

GR_FN void gr_signals_at(const gr_batch *b, long m, long k, double *u) {
  long i;
  for (i = 0; i < GR_NU; i++) u[i] = b->signal[i][m * b->signal_stride[i] + k];
}

/* Running mean and sum of squared deviations (Welford), and the same for products y * sy, with weight = 1 / count. */
GR_FN void gr_accumulate(const gr_batch *b, long row, double weight, const double *y, const double *sy) {
  long i, s;
  for (i = 0; i < GR_NY; i++) {
    double *mean = b->mean + row * GR_NY + i;
    const double before = y[i] - *mean;
    *mean += weight * before;
    b->spread[row * GR_NY + i] += before * (y[i] - *mean);
    for (s = 0; s < GR_NS; s++) {
      const long at = (row * GR_NS + s) * GR_NY + i;
      b->smean[at] += weight * (sy[s * GR_NY + i] - b->smean[at]);
      b->scross[at] += before * (sy[s * GR_NY + i] - b->smean[at]);
    }
  }
}

GR_FN void gr_keep(const gr_batch *b, long m, long row, const double *x, const double *sx, const double *p) {
  double u[GR_LEN(GR_NU)], y[GR_LEN(GR_NY)], sy[GR_LEN(GR_NS * GR_NY)];
  const long k = b->kept[row];
  double check = 0.0;
  long i;
  gr_signals_at(b, m, k, u);
#if GR_NS > 0
  gr_observe(b->grid[k], x, u, p, sx, b->dp, y, sy);
#else
  gr_observe(b->grid[k], x, u, p, y);
#endif
  for (i = 0; i < GR_NX; i++) check += 0.0 * x[i];
  if (check != 0.0 && b->failed[m] < 0) b->failed[m] = k;
  if (b->mean) gr_accumulate(b, row, 1.0 / (double)(m - b->first + 1), y, sy);
  if (b->y) {
    for (i = 0; i < GR_NY; i++) b->y[(m * b->n_kept + row) * GR_NY + i] = y[i];
    for (i = 0; i < GR_NS * GR_NY; i++) b->sy[(m * b->n_kept + row) * GR_NS * GR_NY + i] = sy[i];
  }
}

GR_FN void gr_spread(const double *from, long n, gr_wide *to) {
  long i;
  for (i = 0; i < n; i++) to[i] = GR_SPLAT(from[i]);
}

GR_FN void gr_keep_all(const gr_batch *b, const long *m, long lanes, long row, const gr_wide *x, const gr_wide *sx,
                       const gr_wide *p) {
  double x1[GR_LEN(GR_NX)], sx1[GR_LEN(GR_NS * GR_NX)], p1[GR_LEN(GR_NP)];
  long i, l;
  for (l = 0; l < lanes; l++) {
    for (i = 0; i < GR_NX; i++) x1[i] = GR_LANE(x[i], l);
    for (i = 0; i < GR_NS * GR_NX; i++) sx1[i] = GR_LANE(sx[i], l);
    for (i = 0; i < GR_NP; i++) p1[i] = GR_LANE(p[i], l);
    gr_keep(b, m[l], row, x1, sx1, p1);
  }
}

/* Realizations first ... first + lanes - 1; lanes to spare repeat the last one and are not stored. */
GR_FN void gr_abreast(const gr_batch *b, long first, long lanes) {
  gr_wide x[GR_LEN(GR_NX)], sx[GR_LEN(GR_NS * GR_NX)], p[GR_LEN(GR_NP)], nominal[GR_LEN(GR_NX)];
  gr_wide dp[GR_LEN(GR_NS * GR_NP)], c[GR_LEN(GR_NK)], ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)];
  gr_wide from[GR_LEN(GR_NU)], to[GR_LEN(GR_NU)];
  const double *table[GR_LEN(GR_NU)][GR_LANES];
  long m[GR_LANES], ahead[GR_LEN(GR_NU)];
  long i, j, k, l, row = 0;
  for (l = 0; l < GR_LANES; l++) m[l] = first + (l < lanes ? l : lanes - 1);
  for (l = 0; l < GR_LANES; l++) {
    for (i = 0; i < GR_NX; i++) GR_LANE(x[i], l) = b->x0[m[l] * b->x0_stride + i];
    for (i = 0; i < GR_NS * GR_NX; i++) GR_LANE(sx[i], l) = b->sx0[m[l] * b->sx0_stride + i];
    for (i = 0; i < GR_NP; i++) GR_LANE(p[i], l) = b->p[m[l] * b->p_stride + i];
    for (i = 0; i < GR_NU; i++) table[i][l] = b->signal[i] + m[l] * b->signal_stride[i];
    b->failed[m[l]] = -1;
  }
  for (i = 0; i < GR_NU; i++) ahead[i] = b->held[i] ? 0 : 1;
  gr_spread(b->nominal, GR_NX, nominal);
  gr_spread(b->dp, GR_NS * GR_NP, dp);
#if GR_NS > 0
  gr_once(p, nominal, dp, c);
#else
  gr_once(p, nominal, c);
#endif
  for (k = 0; k < b->n_cells; k++) {
    const double t = b->grid[k], h = (b->grid[k + 1] - t) / (double)b->substeps;
    if (row < b->n_kept && b->kept[row] == k) gr_keep_all(b, m, lanes, row++, x, sx, p);
    for (i = 0; i < GR_NU; i++) {
      for (l = 0; l < GR_LANES; l++) GR_LANE(from[i], l) = table[i][l][k];
      for (l = 0; l < GR_LANES; l++) GR_LANE(to[i], l) = table[i][l][k + ahead[i]];
      ub[i] = from[i];
    }
    for (j = 0; j < b->substeps; j++) {
      const double part = (double)(j + 1) / (double)b->substeps;
      for (i = 0; i < GR_NU; i++) {
        ua[i] = ub[i];
        ub[i] = j + 1 == b->substeps ? to[i] : from[i] + GR_SPLAT(part) * (to[i] - from[i]);
        um[i] = GR_SPLAT(0.5) * (ua[i] + ub[i]);
      }
#if GR_NS > 0
      gr_step(t + (double)j * h, h, x, ua, um, ub, sx, p, nominal, dp, c, x, sx);
#else
      gr_step(t + (double)j * h, h, x, ua, um, ub, p, nominal, c, x);
#endif
    }
  }
  if (row < b->n_kept && b->kept[row] == b->n_cells) gr_keep_all(b, m, lanes, row, x, sx, p);
  for (l = 0; l < lanes; l++) {
    for (i = 0; i < GR_NX; i++) b->x[m[l] * GR_NX + i] = GR_LANE(x[i], l);
    for (i = 0; i < GR_NS * GR_NX; i++) b->sx[m[l] * GR_NS * GR_NX + i] = GR_LANE(sx[i], l);
  }
}

GR_API long gr_frozen(const gr_batch *b) {
  long m;
  for (m = b->first; m < b->last; m += GR_LANES) gr_abreast(b, m, b->last - m < GR_LANES ? b->last - m : GR_LANES);
  return 0;
}

GR_API long gr_batch_size(void) { return (long)sizeof(gr_batch); }

#endif
