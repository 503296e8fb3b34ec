/* Takes frozen steps over a batch of realizations: the outer loop is the realization, the inner one the grid.
 * Disturbances are filters of innovations drawn on the way (gr_normal.h); nothing of them is stored.
 *
 * The generated file defines, before it includes this header,
 *
 *   GR_NX, GR_NU, GR_NP   sizes      GR_NY  quantities observed here      GR_NS  sensitivity directions, or 0
 *   GR_NK                 constants of a realization
 *   GR_NT, gr_tabled[]    signals read from tables, their places in u
 *   GR_NV                 standard normals of one step (white noise); cells are then cut into powers of two
 *   void gr_once   (p, nominal, c)                                 the constants
 *   void gr_step   (t, h, x, ua, um, ub, v, p, nominal, c, out)    one step; ua, um, ub: signals at t, t + h/2, t + h
 *   void gr_observe(t, x, u, p, out)
 *   with GR_NS > 0:
 *   void gr_once   (p, nominal, dp, c)
 *   void gr_step   (t, h, x, ua, um, ub, v, sx, da, dm, db, p, nominal, dp, c, out, sout)
 *   void gr_observe(t, x, u, p, sx, du, dp, out, sout)             sx GR_NX x NS, dp GR_NP x NS, columns contiguous
 *
 * and the filters (compilation/coloured_noise_source.py): GR_NG groups with GR_NW states together, GR_ND signals that they drive, GR_NF
 * numbers for a step of them, GR_NR for their start, GR_NM to read the signals; GR_SW is 1 when directions move them, and
 * then da, dm, db, du hold the derivatives of those signals, GR_ND x NS. GR_NB numbers mix, at one instant of a cell,
 * disturbances and their derivatives from the values at both ends; those without derivatives are linear in between.
 *
 * All of these take arrays of gr_wide, GR_LANES realizations at a time. Outputs may overwrite inputs. Mirrored by
 * compilation/batch_native.py (ctypes); keep both in step.
 */
#ifndef GR_STEP_H
#define GR_STEP_H

#include "gr_normal.h"
#include "gr_task.h"
#include "gr_wide.h"

enum { GR_LINEAR = 0, GR_CONSTANT = 1, GR_STAGES = 2, GR_DEEPEST = 24 };

/* What a compiler at run time may be told beforehand (compilation/cuda/launch.py), so that a step has no branches. */
#ifdef GR_FIXED_SUBSTEPS
#define GR_SUBSTEPS(b) ((long)(GR_FIXED_SUBSTEPS))
#else
#define GR_SUBSTEPS(b) ((b)->substeps)
#endif
#ifdef GR_FIXED_HELD
GR_ARRAY unsigned char gr_fixed_held[] = {GR_FIXED_HELD};
#define GR_HELD(b, i) (gr_fixed_held[i])
#else
#define GR_HELD(b, i) ((b)->held[i])
#endif
#ifdef GR_ONE_FILTER
#define GR_WHICH(b, k) ((long)0)
#else
#define GR_WHICH(b, k) ((b)->which[k])
#endif

typedef struct {
  long n_members;
  const long *member;           /* the realizations of this call, in the order in which moments take them up */
  long n_cells, substeps;       /* grid has n_cells + 1 points; each cell is cut into equal steps */
  const double *grid;
  const double *x0;             /* start of realization m at x0 + m * x0_stride; stride 0: common */
  long x0_stride;
  double *x;                    /* realizations x GR_NX: the end */
  const double *p;
  long p_stride;
  const double *nominal;        /* GR_NX */
  const double *const *signal;  /* GR_NU tables, realization m at + m * signal_stride[i]; those of filters are not read */
  const long *signal_stride;
  const unsigned char *held;    /* GR_NU: linear or constant over a cell, one value for each grid point; or stages: one for
                                   each half step of a cell, both ends included, and one for the last grid point */
  const double *dp;             /* NS x GR_NP, common */
  const double *sx0;
  long sx0_stride;
  double *sx;                   /* realizations x NS x GR_NX: the end */
  long n_kept;
  const long *kept;             /* grid indices to observe, not decreasing */
  double *y, *sy;               /* realizations x n_kept (x NS) x GR_NY, or NULL */
  double *mean, *spread;        /* n_kept x GR_NY, or NULL: mean over this call and sum of squared deviations from it */
  double *smean, *scross;       /* n_kept x NS x GR_NY: mean of the sensitivities, sum of products of deviations */
  long *failed;                 /* realizations: grid index where the state was first seen not finite, or -1 */
  long first_realization;       /* number of realization 0 in the streams of innovations */
  long first_point;             /* number of grid point 0, likewise */
  const gr_stream *stream;      /* of each group of filters, then of each group of white noise */
  const long *which;            /* n_cells: which of the distinct steps of the filters */
  const double *filter;         /* distinct steps x GR_NF */
  const double *start;          /* GR_NR */
  const double *reading;        /* GR_NM */
  const double *dfilter, *dstart, *dreading; /* distinct steps x NS x GR_NF, NS x GR_NR, NS x GR_NM */
  const double *w0, *dw0;       /* realizations (x NS) x GR_NW: filters go on from here, unless NULL */
  double *w, *dw;               /* likewise: the end */
  const double *mix;            /* distinct steps x (2 substeps - 1) x GR_NB: derivatives inside a cell from its ends */
} gr_batch;

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

GR_FN void gr_spread(const double *from, long n, gr_wide *to) {
  long i;
  for (i = 0; i < n; i++) to[i] = GR_SPLAT(from[i]);
}

/* Realizations abreast: lanes to spare repeat the last one and are not stored. */
typedef struct {
  long m[GR_LANES];
  gr_u32 number[GR_LANES];      /* in the streams */
  long lanes, position;         /* position of the first one among the members */
  gr_wide x[GR_LEN(GR_NX)], sx[GR_LEN(GR_NS * GR_NX)], p[GR_LEN(GR_NP)], nominal[GR_LEN(GR_NX)];
  gr_wide dp[GR_LEN(GR_NS * GR_NP)], c[GR_LEN(GR_NK)];
  const double *table[GR_LEN(GR_NU)][GR_LANES];
  long which;
  gr_wide w[GR_LEN(GR_NW)], z[GR_LEN(GR_NW)], filter[GR_LEN(GR_NF)], reading[GR_LEN(GR_NM)];
#if GR_SW
  gr_wide dw[GR_LEN(GR_NS * GR_NW)], dfilter[GR_LEN(GR_NS * GR_NF)], dreading[GR_LEN(GR_NS * GR_NM)];
#endif
#ifdef GR_QUICK
  unsigned int far[2];          /* quotients out of range (gr_quick.h) */
#endif
} gr_lanes;

GR_FN void gr_keep(const gr_batch *b, const gr_lanes *g, long row, const gr_wide *u, const gr_wide *du) {
  gr_wide y[GR_LEN(GR_NY)], sy[GR_LEN(GR_NS * GR_NY)];
  double y1[GR_LEN(GR_NY)], sy1[GR_LEN(GR_NS * GR_NY)];
  const long k = b->kept[row];
  long i, l;
#if GR_NS > 0
  gr_observe(b->grid[k], g->x, u, g->p, g->sx, du, g->dp, y, sy);
#else
  (void)du;
  gr_observe(b->grid[k], g->x, u, g->p, y);
#endif
  for (l = 0; l < g->lanes; l++) {
    const long m = g->m[l];
    double check = 0.0;
    for (i = 0; i < GR_NX; i++) check += 0.0 * GR_LANE(g->x[i], l);
    if (check != 0.0 && b->failed[m] < 0) b->failed[m] = k;
    for (i = 0; i < GR_NY; i++) y1[i] = GR_LANE(y[i], l);
    for (i = 0; i < GR_NS * GR_NY; i++) sy1[i] = GR_LANE(sy[i], l);
    if (b->mean) gr_accumulate(b, row, 1.0 / (double)(g->position + l + 1), y1, sy1);
    if (b->y) {
      for (i = 0; i < GR_NY; i++) b->y[(m * b->n_kept + row) * GR_NY + i] = y1[i];
      for (i = 0; i < GR_NS * GR_NY; i++) b->sy[(m * b->n_kept + row) * GR_NS * GR_NY + i] = sy1[i];
    }
  }
}

GR_FN void gr_enter(const gr_batch *b, gr_lanes *g) {
  long i, l;
  for (l = 0; l < GR_LANES; l++) {
    const long m = b->member[g->position + (l < g->lanes ? l : g->lanes - 1)];
    g->m[l] = m;
    g->number[l] = (gr_u32)(b->first_realization + m);
    for (i = 0; i < GR_NX; i++) GR_LANE(g->x[i], l) = b->x0[m * b->x0_stride + i];
    for (i = 0; i < GR_NS * GR_NX; i++) GR_LANE(g->sx[i], l) = b->sx0[m * b->sx0_stride + i];
    for (i = 0; i < GR_NP; i++) GR_LANE(g->p[i], l) = b->p[m * b->p_stride + i];
    for (i = 0; i < GR_NT; i++)
      g->table[gr_tabled[i]][l] = b->signal[gr_tabled[i]] + m * b->signal_stride[gr_tabled[i]];
    b->failed[m] = -1;
  }
  gr_spread(b->nominal, GR_NX, g->nominal);
  gr_spread(b->dp, GR_NS * GR_NP, g->dp);
#if GR_NS > 0
  gr_once(g->p, g->nominal, g->dp, g->c);
#else
  gr_once(g->p, g->nominal, g->c);
#endif
}

GR_FN void gr_enter_filters(const gr_batch *b, gr_lanes *g) {
#if GR_NW > 0
  gr_wide root[GR_LEN(GR_NR)];
  long i, l;
  g->which = -1;
  gr_spread(b->reading, GR_NM, g->reading);
  if (b->w0) {
    for (l = 0; l < GR_LANES; l++)
      for (i = 0; i < GR_NW; i++) GR_LANE(g->w[i], l) = b->w0[g->m[l] * GR_NW + i];
  } else {
    gr_spread(b->start, GR_NR, root);
    gr_filter_draw(b->stream, g->number, (gr_u32)b->first_point, 0, g->z);
    gr_filter_start(root, g->z, g->w);
  }
#if GR_SW
  gr_spread(b->dreading, GR_NS * GR_NM, g->dreading);
  for (i = 0; i < GR_NS; i++) {
    if (b->dw0) continue;
    gr_spread(b->dstart + i * GR_NR, GR_NR, root);
    gr_filter_start(root, g->z, g->dw + i * GR_NW);
  }
  for (l = 0; b->dw0 && l < GR_LANES; l++)
    for (i = 0; i < GR_NS * GR_NW; i++) GR_LANE(g->dw[i], l) = b->dw0[g->m[l] * GR_NS * GR_NW + i];
#endif
#else
  (void)b, (void)g;
#endif
}

/* the filters at the end of cell k; d, dd: the signals they drive there */
GR_FN void gr_advance_filters(const gr_batch *b, gr_lanes *g, long k) {
#if GR_NW > 0
  if (g->which != GR_WHICH(b, k)) {
    g->which = GR_WHICH(b, k);
    gr_spread(b->filter + g->which * GR_NF, GR_NF, g->filter);
#if GR_SW
    gr_spread(b->dfilter + g->which * GR_NS * GR_NF, GR_NS * GR_NF, g->dfilter);
#endif
  }
  gr_filter_draw(b->stream, g->number, (gr_u32)(b->first_point + k + 1), 0, g->z);
#if GR_SW
  for (long s = 0; s < GR_NS; s++)
    gr_filter_tangent(g->filter, g->dfilter + s * GR_NF, g->w, g->dw + s * GR_NW, g->z, g->dw + s * GR_NW);
#endif
  gr_filter_step(g->filter, g->w, g->z, g->w);
#else
  (void)b, (void)g, (void)k;
#endif
}

GR_FN void gr_read_filters(const gr_lanes *g, gr_wide *d, gr_wide *dd) {
#if GR_NW > 0
  gr_filter_read(g->reading, g->w, d);
#if GR_SW
  for (long s = 0; s < GR_NS; s++)
    gr_filter_read_tangent(g->reading, g->dreading + s * GR_NM, g->w, g->dw + s * GR_NW, dd + s * GR_ND);
#else
  (void)dd;
#endif
#else
  (void)g, (void)d, (void)dd;
#endif
}

/* disturbances with derivatives inside a cell, from their values at its ends */
GR_FN void gr_mix(const double *mix, const gr_wide *left, const gr_wide *right, const gr_wide *dleft,
                  const gr_wide *dright, gr_wide *u, gr_wide *du) {
  gr_wide d[GR_LEN(GR_ND)];
  long s;
  gr_filter_take(u, d);
  gr_filter_mix(mix, left, right, d);
  gr_filter_place(d, u);
  for (s = 0; s < GR_SW * GR_NS; s++) gr_filter_mix(mix, dleft + s * GR_ND, dright + s * GR_ND, du + s * GR_ND);
}

/* table values at the ends of cell k; at the last grid point there is no cell, and `to` is not wanted */
GR_FN void gr_ends(const gr_batch *b, const gr_lanes *g, long k, gr_wide *from, gr_wide *to) {
  const long width = 2 * GR_SUBSTEPS(b) + 1;
  long n, l;
  for (n = 0; n < GR_NT; n++) {
    const long i = gr_tabled[n], at = GR_HELD(b, i) == GR_STAGES ? k * width : k;
    const long next = GR_HELD(b, i) == GR_LINEAR ? at + 1 : at;
    for (l = 0; l < GR_LANES; l++) GR_LANE(from[i], l) = g->table[i][l][at];
    if (to)
      for (l = 0; l < GR_LANES; l++) GR_LANE(to[i], l) = g->table[i][l][next];
  }
}

#if GR_NV > 0
/* Normals of step j of cell k, which has 2^deep steps: halves of halves of the cell's own. `held` keeps, at each depth,
 * the right half that is still to come; step j begins where j has its lowest bit. */
GR_FN void gr_white_step(const gr_batch *b, const gr_lanes *g, long k, long j, gr_wide *held, gr_wide *v) {
  const gr_u32 point = (gr_u32)(b->first_point + k + 1);
  gr_wide fresh[GR_NV];
  long deep = 0, depth = 0, i;
  while ((1L << deep) < GR_SUBSTEPS(b)) deep++;
  if (j == 0) {
    gr_white_draw(b->stream + GR_NG, g->number, point, 0, v);
  } else {
    for (depth = deep; !((j >> (deep - depth)) & 1); depth--) {}
    for (i = 0; i < GR_NV; i++) v[i] = held[depth * GR_NV + i];
  }
  for (; depth < deep; depth++) {
    gr_white_draw(b->stream + GR_NG, g->number, point, (gr_u32)((1L << depth) + (j >> (deep - depth))), fresh);
    gr_white_halve(v, fresh, fresh, held + (depth + 1) * GR_NV);
    for (i = 0; i < GR_NV; i++) v[i] = fresh[i];
  }
}
#endif

/* GR_LANES realizations from the first to the last grid point */
GR_FN void gr_abreast(const gr_batch *b, gr_lanes *g) {
  gr_wide ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)], from[GR_LEN(GR_NU)], to[GR_LEN(GR_NU)];
  gr_wide v[GR_LEN(GR_NV)], d[GR_LEN(GR_ND)], left[GR_LEN(GR_ND)];
#if GR_NV > 0
  gr_wide held[(GR_DEEPEST + 1) * GR_NV];
#endif
  gr_wide da[GR_LEN(GR_NS * GR_ND)], dm[GR_LEN(GR_NS * GR_ND)], db[GR_LEN(GR_NS * GR_ND)];
  gr_wide dfrom[GR_LEN(GR_NS * GR_ND)], dto[GR_LEN(GR_NS * GR_ND)];
  const long n = GR_SUBSTEPS(b), width = 2 * n + 1;
  long i, j, k, l, row = 0, next;
  gr_enter(b, g);
  gr_enter_filters(b, g);
  gr_read_filters(g, d, dto);
  next = b->n_kept > 0 ? b->kept[0] : -1;
  for (k = 0; k < b->n_cells; k++) {
    const double t = b->grid[k], h = (b->grid[k + 1] - t) / (double)n;
    gr_ends(b, g, k, from, to);
    gr_filter_place(d, from);
    for (i = 0; i < GR_SW * GR_NS * GR_ND; i++) dfrom[i] = dto[i];
    while (next == k) {
      gr_keep(b, g, row++, from, dfrom);
      next = row < b->n_kept ? b->kept[row] : -1;
    }
    for (i = 0; i < GR_ND; i++) left[i] = d[i];
    gr_advance_filters(b, g, k);
    gr_read_filters(g, d, dto);
    gr_filter_place(d, to);
    for (i = 0; i < GR_NU; i++) ub[i] = from[i];
    for (i = 0; i < GR_SW * GR_NS * GR_ND; i++) db[i] = dfrom[i];
    for (j = 0; j < n; j++) {
      const double part = (double)(j + 1) / (double)n;
      const int last = j + 1 == n;
      for (i = 0; i < GR_NU; i++) {
        ua[i] = ub[i];
        ub[i] = last ? to[i] : from[i] + GR_SPLAT(part) * (to[i] - from[i]);
        um[i] = GR_SPLAT(0.5) * (ua[i] + ub[i]);
      }
      for (i = 0; i < GR_NT; i++)
        if (GR_HELD(b, gr_tabled[i]) == GR_STAGES)
          for (l = 0; l < GR_LANES; l++) {
            const double *stage = g->table[gr_tabled[i]][l] + k * width + 2 * j;
            GR_LANE(ua[gr_tabled[i]], l) = stage[0];
            GR_LANE(um[gr_tabled[i]], l) = stage[1];
            GR_LANE(ub[gr_tabled[i]], l) = stage[2];
          }
      for (i = 0; i < GR_SW * GR_NS * GR_ND; i++) {
        da[i] = db[i];
        db[i] = last ? dto[i] : dfrom[i] + GR_SPLAT(part) * (dto[i] - dfrom[i]);
        dm[i] = GR_SPLAT(0.5) * (da[i] + db[i]);
      }
      if (GR_NB > 0) {
        const double *mix = b->mix + (g->which * (width - 2) + 2 * j) * GR_NB;
        gr_mix(mix, left, d, dfrom, dto, um, dm);
        if (!last) gr_mix(mix + GR_NB, left, d, dfrom, dto, ub, db);
      }
#if GR_NV > 0
      gr_white_step(b, g, k, j, held, v);
#endif
#if GR_NS > 0
      gr_step(t + (double)j * h, h, g->x, ua, um, ub, v, g->sx, da, dm, db, g->p, g->nominal, g->dp, g->c, g->x,
              g->sx GR_TOLD(g));
#else
      gr_step(t + (double)j * h, h, g->x, ua, um, ub, v, g->p, g->nominal, g->c, g->x GR_TOLD(g));
#endif
    }
  }
  if (row < b->n_kept && b->kept[row] == b->n_cells) {
    gr_ends(b, g, b->n_cells, from, 0);
    gr_filter_place(d, from);
    while (row < b->n_kept) gr_keep(b, g, row++, from, dto);
  }
}

GR_FN void gr_leave(const gr_batch *b, const gr_lanes *g) {
  long i, l;
  for (l = 0; l < g->lanes; l++) {
    const long m = g->m[l];
    for (i = 0; i < GR_NX; i++) b->x[m * GR_NX + i] = GR_LANE(g->x[i], l);
    for (i = 0; i < GR_NS * GR_NX; i++) b->sx[m * GR_NS * GR_NX + i] = GR_LANE(g->sx[i], l);
    for (i = 0; i < GR_NW; i++) b->w[m * GR_NW + i] = GR_LANE(g->w[i], l);
#if GR_SW
    for (i = 0; i < GR_NS * GR_NW; i++) b->dw[m * GR_NS * GR_NW + i] = GR_LANE(g->dw[i], l);
#endif
  }
}

GR_API long gr_frozen(const gr_batch *b) {
  gr_lanes g;
  for (g.position = 0; g.position < b->n_members; g.position += GR_LANES) {
    const long left = b->n_members - g.position;
    g.lanes = left < GR_LANES ? left : GR_LANES;
    gr_abreast(b, &g);
    gr_leave(b, &g);
  }
  return 0;
}

GR_API long gr_batch_size(void) { return (long)sizeof(gr_batch); }

#endif
