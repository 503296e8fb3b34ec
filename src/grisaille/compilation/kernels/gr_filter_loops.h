/* Writes steps and updates of filters as loops over functions of one point, with derivatives: what is compiled grows
 * with the model, not with the matrices of its filter. gr_filter_extended.h and gr_filter_sigma.h have the loops; here
 * is what they share: moments on the hidden constraints, and solutions with the innovations' covariance.
 *
 * The generated file defines GR_LOOPS, GR_NM states, GR_NZ numbers of algebraic unknowns, GR_CONSTRAINED where there are
 * hidden constraints, and then, for a step and for an update,
 *
 *   gr_on_step, gr_on_update(t, x, u, q, nominal, x_out, T)   the point on the constraints, and the slope T, row by row
 *   gr_solve_step, gr_solve_update(t, x, z, u, q, z_out)      algebraic unknowns there, where there are some
 *
 * each also with _forward (directions of x, z and q) or _reverse (their adjoints) at its name.
 */
#ifndef GR_FILTER_LOOPS_H
#define GR_FILTER_LOOPS_H

#include "gr_filter_matrices.h"
#include "gr_filter_task.h"

/* no array is empty */
#define GR_KEEP (GR_NZ + 1)
#define GR_SEEN (GR_NY * GR_NM)
#define GR_YY (GR_NY * GR_NY)

/* the largest last corrections of algebraic unknowns so far: the second half of z */
GR_FN void gr_keep_corrections(double *z, const double *other) {
  int i;
  for (i = GR_NZ / 2; i < GR_NZ; i++) z[i] = gr_max(z[i], other[i]);
}

/* S = L D L' in place: D on the diagonal, L below */
GR_FN void gr_factor_symmetric(double *S) {
  int i, j, k;
  for (j = 0; j < GR_NY; j++) {
    for (k = 0; k < j; k++) S[j * GR_NY + j] -= S[j * GR_NY + k] * S[j * GR_NY + k] * S[k * GR_NY + k];
    for (i = j + 1; i < GR_NY; i++) {
      for (k = 0; k < j; k++) S[i * GR_NY + j] -= S[i * GR_NY + k] * S[j * GR_NY + k] * S[k * GR_NY + k];
      S[i * GR_NY + j] /= S[j * GR_NY + j];
    }
  }
}

#define GR_COLUMN double
#define GR_COLUMNS(name) gr_##name
#include "gr_filter_columns.h"

/* the lower triangle of the innovations' covariance, column by column */
GR_FN void gr_innovation_half(const double *S, double *V) {
  int i, j, at = 0;
  for (j = 0; j < GR_NY; j++)
    for (i = j; i < GR_NY; i++) V[at++] = S[i * GR_NY + j];
}

/* noise of the outputs that are there, and ones on the diagonal for the others */
GR_FN void gr_mask_noise(const double *mask, const double *scale, double *R) {
  int i, j;
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++)
      R[i * GR_NY + j] = mask[i] > 0.0 && mask[j] > 0.0 ? scale[i] * R[i * GR_NY + j] * scale[j] : i == j ? 1.0 : 0.0;
}

/* moments put on the constraints after a step or an update, algebraic unknowns solved there; all packed */
GR_APART void gr_settled(int updated, double t, const double *s, const double *u, const double *q, const double *nominal,
                         double *out) {
  double x[GR_NM], z[GR_KEEP];
  memcpy(z, s + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
#ifdef GR_CONSTRAINED
  {
    GR_OWN double T[GR_MM], P[GR_MM], nothing[GR_MM], after[GR_MM];
    memset(nothing, 0, sizeof nothing);
    if (updated)
      gr_on_update(t, s, u, q, nominal, x, T);
    else
      gr_on_step(t, s, u, q, nominal, x, T);
    gr_full(s + GR_NM, P);
    gr_between(T, GR_NM, P, nothing, after);
    memcpy(out, x, sizeof x);
    gr_half(after, out + GR_NM);
  }
#else
  (void)nominal;
  memcpy(x, s, sizeof x);
  memmove(out, s, sizeof(double) * (GR_NM + GR_HALF));
#endif
#if GR_NZ
  if (updated)
    gr_solve_update(t, x, z, u, q, out + GR_NM + GR_HALF);
  else
    gr_solve_step(t, x, z, u, q, out + GR_NM + GR_HALF);
#else
  (void)z, (void)t, (void)u, (void)q, (void)updated;
#endif
}

GR_FN void gr_settle(double t, const double *s, const double *u, const double *q, const double *nominal, double *out) {
  gr_settled(0, t, s, u, q, nominal, out);
}

#ifdef GR_ABREAST

#define GR_COLUMN gr_lanes
#define GR_COLUMNS(name) gr_lanes_##name
#include "gr_filter_columns.h"

GR_FN void gr_lanes_mask_noise(const double *mask, const double *scale, gr_lanes *R) {
  int i, j;
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++)
      R[i * GR_NY + j] = mask[i] > 0.0 && mask[j] > 0.0 ? scale[i] * scale[j] * R[i * GR_NY + j] : GR_ALL(0.0);
}

/* ds becomes directions of what gr_settled(…, s, …) gives */
GR_APART void gr_settled_forward(int updated, double t, const double *s, const double *u, const double *q,
                                 const double *nominal, gr_lanes *ds, const gr_lanes *dq) {
  double x[GR_NM];
  gr_lanes dx[GR_NM];
#ifdef GR_CONSTRAINED
  {
    GR_OWN double T[GR_MM], P[GR_MM];
    GR_OWN gr_lanes dT[GR_MM], dP[GR_MM], nothing[GR_MM];
    gr_lanes_zero(GR_MM, nothing);
    if (updated) {
      gr_on_update(t, s, u, q, nominal, x, T);
      gr_on_update_forward(t, s, u, q, nominal, ds, dq, dx, dT);
    } else {
      gr_on_step(t, s, u, q, nominal, x, T);
      gr_on_step_forward(t, s, u, q, nominal, ds, dq, dx, dT);
    }
    gr_full(s + GR_NM, P);
    gr_lanes_full(ds + GR_NM, dP);
    gr_lanes_between(T, GR_NM, dT, GR_NM, P, dP, nothing);
    memcpy(ds, dx, sizeof dx);
    gr_lanes_half(dP, ds + GR_NM);
  }
#else
  (void)nominal;
  memcpy(x, s, sizeof x);
  memcpy(dx, ds, sizeof dx);
#endif
#if GR_NZ
  {
    gr_lanes dz[GR_KEEP];
    memcpy(dz, ds + GR_NM + GR_HALF, sizeof(gr_lanes) * GR_NZ);
    if (updated)
      gr_solve_update_forward(t, x, s + GR_NM + GR_HALF, u, q, dx, dz, dq, ds + GR_NM + GR_HALF);
    else
      gr_solve_step_forward(t, x, s + GR_NM + GR_HALF, u, q, dx, dz, dq, ds + GR_NM + GR_HALF);
  }
#else
  (void)x, (void)dx, (void)t, (void)u, (void)q, (void)dq, (void)updated;
#endif
}

GR_FN void gr_settle_forward(double t, const double *s, const double *u, const double *q, const double *nominal,
                             const gr_lanes *ds, const gr_lanes *dq, gr_lanes *out) {
  memmove(out, ds, sizeof(gr_lanes) * GR_NS);
  gr_settled_forward(0, t, s, u, q, nominal, out, dq);
}

#elif !defined(GR_VALUES)

#if defined(GR_NG) && GR_NG == 3
GR_FN void gr_forcing_back(const double *lG, double *begin, double *middle, double *end) {
  int i;
  for (i = 0; i < GR_NM; i++) {
    const double *g = lG + i * GR_NG;
    begin[i] = g[0] - 3 * g[1] + 2 * g[2];
    middle[i] = 4 * (g[1] - g[2]);
    end[i] = 2 * g[2] - g[1];
  }
}
#endif

/* adjoints of an innovation and of its covariance, added to those of both as an update uses them */
GR_FN void gr_innovation_back(const double *le, const double *lV, double *la, double *lS) {
  int i, j, at = 0;
  for (j = 0; j < GR_NY; j++) {
    la[j] += le[j];
    for (i = j; i < GR_NY; i++, at++) {
      lS[i * GR_NY + j] += (i == j ? 1.0 : 0.5) * lV[at];
      if (i != j) lS[j * GR_NY + i] += 0.5 * lV[at];
    }
  }
}

GR_FN void gr_mask_noise_back(const double *mask, const double *scale, double *lR) {
  int i, j;
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++)
      lR[i * GR_NY + j] = mask[i] > 0.0 && mask[j] > 0.0 ? scale[i] * scale[j] * lR[i * GR_NY + j] : 0.0;
}

GR_FN void gr_add(long n, const double *a, double *sum) {
  long i;
  for (i = 0; i < n; i++) sum[i] += a[i];
}

/* ls, adjoints of what gr_settled gives, become those of s; those of q are added to lq */
GR_APART void gr_settled_reverse(int updated, double t, const double *s, const double *u, const double *q,
                                 const double *nominal, double *ls, double *lq) {
  double lx[GR_NM], x[GR_NM], own[GR_NQ + 1];
#ifdef GR_CONSTRAINED
  GR_OWN double T[GR_MM];
  if (updated)
    gr_on_update(t, s, u, q, nominal, x, T);
  else
    gr_on_step(t, s, u, q, nominal, x, T);
#else
  memcpy(x, s, sizeof x);
#endif
  memcpy(lx, ls, sizeof lx);
#if GR_NZ
  {
    double lz[GR_KEEP], also[GR_NM];
    memcpy(lz, ls + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
    if (updated)
      gr_solve_update_reverse(t, x, s + GR_NM + GR_HALF, u, q, lz, also, ls + GR_NM + GR_HALF, own);
    else
      gr_solve_step_reverse(t, x, s + GR_NM + GR_HALF, u, q, lz, also, ls + GR_NM + GR_HALF, own);
    gr_add(GR_NM, also, lx);
    gr_add(GR_NQ, own, lq);
  }
#endif
#ifdef GR_CONSTRAINED
  {
    GR_OWN double P[GR_MM], Y[GR_MM], lT[GR_MM], lP[GR_MM], before[GR_NM];
    memset(lT, 0, sizeof lT);
    memset(lP, 0, sizeof lP);
    gr_full(s + GR_NM, P);
    gr_shared(ls + GR_NM, Y);
    gr_between_back(T, GR_NM, P, Y, lT, lP);
    memset(ls + GR_NM, 0, sizeof(double) * GR_HALF);
    gr_add_gathered(lP, ls + GR_NM);
    if (updated)
      gr_on_update_reverse(t, s, u, q, nominal, lx, lT, before, own);
    else
      gr_on_step_reverse(t, s, u, q, nominal, lx, lT, before, own);
    memcpy(lx, before, sizeof lx);
    gr_add(GR_NQ, own, lq);
  }
#endif
  memcpy(ls, lx, sizeof lx);
  (void)own, (void)x, (void)t, (void)u, (void)q, (void)nominal, (void)updated;
}

GR_FN void gr_settle_reverse(double t, const double *s, const double *u, const double *q, const double *nominal,
                             const double *lout, double *ls, double *lq) {
  memmove(ls, lout, sizeof(double) * GR_NS);
  memset(lq, 0, sizeof(double) * GR_NQ);
  gr_settled_reverse(0, t, s, u, q, nominal, ls, lq);
}

#endif
#endif
