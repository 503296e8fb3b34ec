/* Computes steps and updates of the unscented filter as loops over sigma points (filtering/unscented.py), with
 * derivatives. A model brings functions of one point, so that what is compiled does not grow with the number
 * of points.
 *
 * Averages f, A, W as in unscented.py; middle of a step with T = (I - h/2 A)^-1:
 *
 *   x_mid = x + h/2 T f        P_mid = T (P + h/2 W) T'
 *   S = cov(h) + R,   a = S^-1 e,   C = cov(X, h),   x <- x + C a,   P <- P - C S^-1 C'
 *
 * The generated file defines what gr_filter_loops.h asks for, GR_SPREAD, GR_CENTRE, GR_OTHERS and GR_CENTRE_SPREAD
 * (weights of means and of the centre in covariances), GR_STILL where the drift does not depend on the states, and
 *
 *   gr_flow(t, h, x, z, u, q, f, W, z_out)             drift, intensity (lower triangle), algebraic unknowns solved
 *   gr_slope(t, h, x, z, u, q, A)                      slope of the drift, row by row
 *   gr_seen(t, x, z, u, q, mask, y, R, z_out)       prediction of the outputs, their noise
 *   gr_tangent(t, x, u, q, nominal, Pi)             projector on the constraints' tangent, row by row
 *   gr_turning(t, x, c, u, q, nominal, N)           how it turns along c, row by row
 */
#ifndef GR_FILTER_SIGMA_H
#define GR_FILTER_SIGMA_H

#include "gr_filter_loops.h"

#ifdef GR_UNROLLED
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

#define GR_POINTS (2 * GR_NM + 1)
#define GR_NO_VARIANCE 1e-12
#define GR_LARGEST 1e300
#define GR_SIDE(k) ((k) == 0 ? 0.0 : (k) <= GR_NM ? GR_SPREAD : -GR_SPREAD)
#define GR_COLUMN(k) (((k) - 1) % (GR_NM > 0 ? GR_NM : 1))

/* one evaluation of averages over points */
typedef struct {
  double x[GR_NM], z[GR_KEEP], P[GR_MM], flat[GR_MM]; /* asked for; P along the constraints */
  double solved[GR_KEEP], L[GR_MM], away[GR_POINTS][GR_NM], values[GR_POINTS][GR_NM];
  double f[GR_NM], A[GR_MM], W[GR_MM]; /* averages, before they are made tangent */
  double along[GR_MM], c[GR_NM];
} gr_averaged;

#ifdef GR_MOMENTS
#define gr_point gr_averaged
#define gr_moment_rates gr_sigma_rates
#define gr_moment_rates_forward gr_sigma_rates_forward
#define gr_moment_rates_reverse gr_sigma_rates_reverse
#endif

typedef struct {
  gr_averaged first, begin, mid, end;
  double f[GR_NM], through[GR_MM], P[GR_MM]; /* of the first; P + h/2 W */
} gr_middle;

typedef struct {
  double P[GR_MM], L[GR_MM], away[GR_POINTS][GR_NM], seen[GR_POINTS][GR_NY], mean[GR_NY], S[GR_YY], factors[GR_YY];
  double e[GR_NY], a[GR_NY], C[GR_SEEN], K[GR_SEEN], solved[GR_KEEP]; /* C and K have GR_NM rows */
  double moved[GR_NS];
} gr_updated;

/* L with L L' = P, row by row; directions without variance have zero columns (filtering/sigma_points.py) */
GR_APART void gr_sigma_root(const double *P, double *L) {
  int i, j, k;
  for (i = 0; i < GR_MM; i++) L[i] = 0.0;
  for (j = 0; j < GR_NM; j++) {
    const double diagonal = P[j * GR_NM + j];
    double pivot = diagonal, root;
    for (k = 0; k < j; k++) pivot -= L[j * GR_NM + k] * L[j * GR_NM + k];
    if (pivot <= GR_NO_VARIANCE * gr_min(diagonal, GR_LARGEST)) continue;
    root = sqrt(pivot);
    L[j * GR_NM + j] = root;
    for (i = j + 1; i < GR_NM; i++) {
      double rest = P[i * GR_NM + j];
      for (k = 0; k < j; k++) rest -= L[i * GR_NM + k] * L[j * GR_NM + k];
      L[i * GR_NM + j] = rest / root;
    }
  }
}

/* point number k: the centre, then the columns of the root to one side and to the other; its distance in `away` */
GR_FN void gr_sigma_point(const double *x, const double *L, int k, double *point, double *away) {
  const double by = GR_SIDE(k);
  int i;
  for (i = 0; i < GR_NM; i++) {
    away[i] = k == 0 ? 0.0 : by * L[i * GR_NM + GR_COLUMN(k)];
    point[i] = x[i] + away[i];
  }
}

/* averages over sigma points at m->x, m->z and m->flat; W is symmetric in full; z_out has the widest corrections */
GR_APART void gr_sigma_averages(double t, double h, const double *u, const double *q, gr_averaged *m, double *z_out) {
  GR_OWN double point[GR_NM], own[GR_HALF], mean[GR_HALF], rest[GR_MM], there[GR_KEEP];
  int i, j, k, l;
  memcpy(m->solved, m->z, sizeof(double) * GR_NZ);
  if (GR_NZ) gr_flow(t, h, m->x, m->z, u, q, m->f, own, m->solved);
  memcpy(z_out, m->solved, sizeof(double) * GR_NZ);
  gr_slope(t, h, m->x, m->z, u, q, m->A);
  gr_sigma_root(m->flat, m->L);
  for (i = 0; i < GR_NM; i++) m->f[i] = 0.0;
  for (i = 0; i < GR_HALF; i++) mean[i] = 0.0;
  for (i = 0; i < GR_MM; i++) rest[i] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point(m->x, m->L, k, point, m->away[k]);
    gr_flow(t, h, point, m->solved, u, q, m->values[k], own, there);
    gr_keep_corrections(z_out, there);
    for (i = 0; i < GR_NM; i++) m->f[i] += weight * m->values[k][i];
    for (i = 0; i < GR_HALF; i++) mean[i] += weight * own[i];
  }
  for (k = 1; k < GR_POINTS; k++)
    for (j = 0; j < GR_NM; j++) {
      double left = m->values[k][j] - m->f[j];
      for (l = 0; l < GR_NM; l++) left -= m->A[j * GR_NM + l] * m->away[k][l];
      for (i = 0; i < GR_NM; i++) rest[i * GR_NM + j] += GR_OTHERS * m->away[k][i] * left;
    }
  gr_full(mean, m->W);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) m->W[i * GR_NM + j] += rest[i * GR_NM + j] + rest[j * GR_NM + i];
}

/* the same at x, P and z, tangent to the constraints (filtering/constraint_projection.py) */
GR_APART void gr_sigma_rates(double t, double h, const double *x, const double *P, const double *z, const double *u, const double *q,
                             const double *nominal, gr_averaged *m, double *f, double *A, double *W, double *z_out) {
  memcpy(m->x, x, sizeof m->x);
  memcpy(m->z, z, sizeof(double) * GR_NZ);
  memcpy(m->P, P, sizeof m->P);
#ifdef GR_CONSTRAINED
  {
    GR_OWN double turning[GR_MM], nothing[GR_MM];
    int i, j;
    memset(nothing, 0, sizeof nothing);
    gr_tangent(t, x, u, q, nominal, m->along);
    gr_between(m->along, GR_NM, P, nothing, m->flat);
    gr_sigma_averages(t, h, u, q, m, z_out);
    for (i = 0; i < GR_NM; i++) m->c[i] = m->f[i] - m->values[0][i];
    gr_turning(t, x, m->c, u, q, nominal, turning);
    for (i = 0; i < GR_NM; i++) {
      f[i] = m->values[0][i];
      for (j = 0; j < GR_NM; j++) f[i] += m->along[i * GR_NM + j] * m->c[j];
    }
    for (i = 0; i < GR_MM; i++) A[i] = m->A[i] + turning[i];
    gr_between(m->along, GR_NM, m->W, nothing, W);
  }
#else
  (void)nominal;
  memcpy(m->flat, P, sizeof m->flat);
  gr_sigma_averages(t, h, u, q, m, z_out);
  memcpy(f, m->f, sizeof m->f);
  memcpy(A, m->A, sizeof m->A);
  memcpy(W, m->W, sizeof m->W);
#endif
}

#ifndef GR_MOMENTS

GR_APART void gr_coefficients(double t, double h, const double *s, const double *ua, const double *um, const double *ub,
                              const double *q, const double *nominal, double *c, gr_middle *m) {
  const double *x = s;
  GR_OWN double P[GR_MM], z[GR_KEEP], f[GR_NM], W[GR_MM], middle[GR_NM], spread[GR_MM];
  double *A = c, *G = c + GR_MM;
  double *z_out = G + GR_NG * GR_NM + GR_HALF;
  int i, j;
  gr_full(s + GR_NM, P);
  gr_sigma_rates(t, h, x, P, s + GR_NM + GR_HALF, ua, q, nominal, &m->first, m->f, A, W, z);
  memcpy(middle, x, sizeof middle);
  memcpy(spread, P, sizeof P);
#ifndef GR_STILL
  {
    GR_OWN double M[GR_MM], nothing[GR_MM];
    long order[GR_NM];
    memset(nothing, 0, sizeof nothing);
    for (i = 0; i < GR_MM; i++) m->through[i] = i % (GR_NM + 1) == 0;
    gr_factor(A, h / 2, M, order);
    gr_solve(M, order, m->through, GR_NM);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) middle[i] += h / 2 * m->through[i * GR_NM + j] * m->f[j];
    for (i = 0; i < GR_MM; i++) m->P[i] = P[i] + h / 2 * W[i];
    gr_between(m->through, GR_NM, m->P, nothing, spread);
  }
#endif
#if GR_NG == 1
  gr_sigma_rates(t + 0.5 * h, h, middle, spread, z, um, q, nominal, &m->mid, f, A, W, z_out);
  for (i = 0; i < GR_NM; i++) G[i] = f[i];
#else
  {
    GR_OWN double V[GR_MM], begin[GR_NM], end[GR_NM], other[GR_KEEP];
    gr_sigma_rates(t, h, middle, spread, z, ua, q, nominal, &m->begin, begin, A, W, other);
    gr_sigma_rates(t + h, h, middle, spread, z, ub, q, nominal, &m->end, end, A, V, z_out);
    gr_keep_corrections(z_out, other);
    for (i = 0; i < GR_MM; i++) W[i] += V[i];
    gr_sigma_rates(t + 0.5 * h, h, middle, spread, z, um, q, nominal, &m->mid, f, A, V, other);
    gr_keep_corrections(z_out, other);
    for (i = 0; i < GR_MM; i++) W[i] = (W[i] + 4 * V[i]) / 6;
    gr_forcing(begin, f, end, G);
  }
#endif
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) G[i * GR_NG] += A[i * GR_NM + j] * (x[j] - middle[j]);
  gr_half(W, G + GR_NG * GR_NM);
}

#endif

/* the moments after a sample, not yet on the constraints, and what they are made of */
GR_APART void gr_update_moments(double t, const double *s, const double *u, const double *q, const double *y,
                                const double *mask, const double *scale, gr_updated *m) {
  const double *x = s, *z = s + GR_NM + GR_HALF;
  double R[GR_YY], own[GR_YY], point[GR_NM], gain[GR_SEEN], there[GR_KEEP];
  int i, j, k, at = 0;
  gr_full(s + GR_NM, m->P);
  gr_sigma_root(m->P, m->L);
  for (i = 0; i < GR_NY; i++) m->mean[i] = 0.0;
  for (i = 0; i < GR_YY; i++) R[i] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point(x, m->L, k, point, m->away[k]);
    gr_seen(t, point, z, u, q, mask, m->seen[k], own, k ? there : m->solved);
    if (k) gr_keep_corrections(m->solved, there);
    for (i = 0; i < GR_NY; i++) m->mean[i] += weight * (m->seen[k][i] = mask[i] > 0.0 ? m->seen[k][i] : 0.0);
    for (i = 0; i < GR_YY; i++) R[i] += weight * own[i];
  }
  gr_mask_noise(mask, scale, R);
  memcpy(m->S, R, sizeof R);
  for (i = 0; i < GR_SEEN; i++) m->C[i] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE_SPREAD;
    for (j = 0; j < GR_NY; j++) {
      const double left = m->seen[k][j] - m->mean[j];
      for (i = 0; i < GR_NY; i++) m->S[i * GR_NY + j] += weight * (m->seen[k][i] - m->mean[i]) * left;
      for (i = 0; i < GR_NM; i++) m->C[i * GR_NY + j] += weight * m->away[k][i] * left;
    }
  }
  for (i = 0; i < GR_NY; i++) m->a[i] = m->e[i] = mask[i] * y[i] - m->mean[i];
  memcpy(m->factors, m->S, sizeof m->S);
  gr_factor_symmetric(m->factors);
  gr_solve_symmetric(m->factors, m->a, 1);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) gain[j * GR_NM + i] = m->C[i * GR_NY + j];
  gr_solve_symmetric(m->factors, gain, GR_NM);
  for (i = 0; i < GR_NM; i++) {
    m->moved[i] = x[i];
    for (j = 0; j < GR_NY; j++) {
      m->K[i * GR_NY + j] = gain[j * GR_NM + i];
      m->moved[i] += m->K[i * GR_NY + j] * m->e[j];
    }
  }
  for (at = GR_NM, j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) {
      double sum = m->P[i * GR_NM + j];
      for (k = 0; k < GR_NY; k++) sum -= m->C[i * GR_NY + k] * m->K[j * GR_NY + k];
      m->moved[at++] = sum;
    }
  memcpy(m->moved + at, m->solved, sizeof(double) * GR_NZ);
}

GR_APART void gr_update(double t, const double *s, const double *u, const double *q, const double *nominal,
                        const double *y, const double *mask, const double *scale, double *s_out, double *e, double *V,
                        gr_updated *m) {
  gr_update_moments(t, s, u, q, y, mask, scale, m);
  memcpy(e, m->e, sizeof m->e);
  gr_innovation_half(m->S, V);
  gr_settled(1, t, m->moved, u, q, nominal, s_out);
}

#ifdef GR_ABREAST

/* directions of the root, from its value; columns without variance do not move */
GR_APART void gr_sigma_root_forward(const double *L, const gr_lanes *dP, gr_lanes *dL) {
  int i, j, k;
  gr_lanes_zero(GR_MM, dL);
  for (j = 0; j < GR_NM; j++) {
    const double root = L[j * GR_NM + j];
    gr_lanes turn = dP[j * GR_NM + j];
    if (root == 0.0) continue;
    for (k = 0; k < j; k++) turn -= 2 * L[j * GR_NM + k] * dL[j * GR_NM + k];
    turn /= 2 * root;
    dL[j * GR_NM + j] = turn;
    for (i = j + 1; i < GR_NM; i++) {
      gr_lanes rest = dP[i * GR_NM + j];
      for (k = 0; k < j; k++) rest -= dL[i * GR_NM + k] * L[j * GR_NM + k] + L[i * GR_NM + k] * dL[j * GR_NM + k];
      dL[i * GR_NM + j] = (rest - L[i * GR_NM + j] * turn) / root;
    }
  }
}

GR_FN void gr_sigma_point_forward(const gr_lanes *dx, const gr_lanes *dL, int k, gr_lanes *point, gr_lanes *away) {
  const double by = GR_SIDE(k);
  int i;
  for (i = 0; i < GR_NM; i++) {
    away[i] = k == 0 ? GR_ALL(0.0) : by * dL[i * GR_NM + GR_COLUMN(k)];
    point[i] = dx[i] + away[i];
  }
}

GR_APART void gr_sigma_averages_forward(double t, double h, const double *u, const double *q, const gr_averaged *m, const gr_lanes *dx,
                                        const gr_lanes *dP, const gr_lanes *dz, const gr_lanes *dq, gr_lanes *df,
                                        gr_lanes *dA, gr_lanes *dW, gr_lanes *centre, gr_lanes *dz_out) {
  GR_OWN gr_lanes dL[GR_MM], away[GR_POINTS][GR_NM], values[GR_POINTS][GR_NM], point[GR_NM], own[GR_HALF], mean[GR_HALF];
  GR_OWN gr_lanes rest[GR_MM], there[GR_KEEP];
  double at[GR_NM];
  int i, j, k, l;
  if (GR_NZ) gr_flow_forward(t, h, m->x, m->z, u, q, dx, dz, dq, df, own, dz_out);
  gr_slope_forward(t, h, m->x, m->z, u, q, dx, dz, dq, dA);
  gr_sigma_root_forward(m->L, dP, dL);
  gr_lanes_zero(GR_NM, df);
  gr_lanes_zero(GR_HALF, mean);
  gr_lanes_zero(GR_MM, rest);
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point_forward(dx, dL, k, point, away[k]);
    for (i = 0; i < GR_NM; i++) at[i] = m->x[i] + m->away[k][i];
    gr_flow_forward(t, h, at, m->solved, u, q, point, dz_out, dq, values[k], own, there);
    for (i = 0; i < GR_NM; i++) df[i] += weight * values[k][i];
    for (i = 0; i < GR_HALF; i++) mean[i] += weight * own[i];
  }
  for (k = 1; k < GR_POINTS; k++)
    for (j = 0; j < GR_NM; j++) {
      gr_lanes turn = values[k][j] - df[j];
      double left = m->values[k][j] - m->f[j];
      for (l = 0; l < GR_NM; l++) {
        left -= m->A[j * GR_NM + l] * m->away[k][l];
        turn -= dA[j * GR_NM + l] * m->away[k][l] + m->A[j * GR_NM + l] * away[k][l];
      }
      for (i = 0; i < GR_NM; i++) rest[i * GR_NM + j] += GR_OTHERS * (away[k][i] * left + m->away[k][i] * turn);
    }
  gr_lanes_full(mean, dW);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) dW[i * GR_NM + j] += rest[i * GR_NM + j] + rest[j * GR_NM + i];
  memcpy(centre, values[0], sizeof values[0]);
}

/* directions of what gr_sigma_rates gave, from what it kept */
GR_APART void gr_sigma_rates_forward(double t, double h, const double *u, const double *q, const double *nominal, const gr_averaged *m,
                                     const gr_lanes *dx, const gr_lanes *dP, const gr_lanes *dz, const gr_lanes *dq,
                                     gr_lanes *df, gr_lanes *dA, gr_lanes *dW, gr_lanes *dz_out) {
  gr_lanes centre[GR_NM];
#ifdef GR_CONSTRAINED
  GR_OWN gr_lanes dalong[GR_MM], dflat[GR_MM], turning[GR_MM], nothing[GR_MM], dc[GR_NM], mean[GR_NM];
  int i, j;
  gr_lanes_zero(GR_MM, nothing);
  gr_tangent_forward(t, m->x, u, q, nominal, dx, dq, dalong);
  memcpy(dflat, dP, sizeof dflat);
  gr_lanes_between(m->along, GR_NM, dalong, GR_NM, m->P, dflat, nothing);
  gr_sigma_averages_forward(t, h, u, q, m, dx, dflat, dz, dq, mean, dA, dW, centre, dz_out);
  for (i = 0; i < GR_NM; i++) dc[i] = mean[i] - centre[i];
  gr_turning_forward(t, m->x, m->c, u, q, nominal, dx, dc, dq, turning);
  for (i = 0; i < GR_NM; i++) {
    df[i] = centre[i];
    for (j = 0; j < GR_NM; j++) df[i] += dalong[i * GR_NM + j] * m->c[j] + m->along[i * GR_NM + j] * dc[j];
  }
  for (i = 0; i < GR_MM; i++) dA[i] += turning[i];
  gr_lanes_between(m->along, GR_NM, dalong, GR_NM, m->W, dW, nothing);
#else
  (void)nominal;
  gr_sigma_averages_forward(t, h, u, q, m, dx, dP, dz, dq, df, dA, dW, centre, dz_out);
#endif
}

#ifndef GR_MOMENTS

GR_APART void gr_coefficients_forward(double t, double h, const double *s, const double *ua, const double *um,
                                      const double *ub, const double *q, const double *nominal, const gr_lanes *ds,
                                      const gr_lanes *dq, gr_lanes *dc, const gr_middle *m, const double *c) {
  GR_OWN gr_lanes dP[GR_MM], dz[GR_KEEP], df[GR_NM], dW[GR_MM], dx[GR_NM], spread[GR_MM];
  gr_lanes *dA = dc, *dG = dc + GR_MM;
  gr_lanes *dz_out = dG + GR_NG * GR_NM + GR_HALF;
  int i, j;
  (void)ub;
  gr_lanes_full(ds + GR_NM, dP);
  memcpy(dx, ds, sizeof dx);
  memcpy(spread, dP, sizeof dP);
#if GR_NZ || !defined(GR_STILL)
  gr_sigma_rates_forward(t, h, ua, q, nominal, &m->first, ds, dP, ds + GR_NM + GR_HALF, dq, df, dA, dW, dz);
#endif
#ifndef GR_STILL
  {
    GR_OWN gr_lanes once[GR_MM], through[GR_MM], nothing[GR_MM];
    gr_lanes_zero(GR_MM, nothing);
    gr_lanes_zero(GR_MM, once);
    gr_lanes_zero(GR_MM, through);
    gr_lanes_right(GR_NM, GR_NM, GR_NM, m->through, GR_NM, dA, GR_NM, once, GR_NM);
    gr_lanes_left(GR_NM, GR_NM, GR_NM, once, GR_NM, m->through, GR_NM, through, GR_NM);
    for (i = 0; i < GR_MM; i++) through[i] *= h / 2;
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++)
        dx[i] += h / 2 * (through[i * GR_NM + j] * m->f[j] + m->through[i * GR_NM + j] * df[j]);
    for (i = 0; i < GR_MM; i++) spread[i] += h / 2 * dW[i];
    gr_lanes_between(m->through, GR_NM, through, GR_NM, m->P, spread, nothing);
  }
#endif
#if GR_NG == 1
  gr_sigma_rates_forward(t + 0.5 * h, h, um, q, nominal, &m->mid, dx, spread, dz, dq, df, dA, dW, dz_out);
  for (i = 0; i < GR_NM; i++) dG[i] = df[i];
#else
  {
    GR_OWN gr_lanes V[GR_MM], begin[GR_NM], end[GR_NM], other[GR_KEEP];
    gr_sigma_rates_forward(t, h, ua, q, nominal, &m->begin, dx, spread, dz, dq, begin, dA, dW, other);
    gr_sigma_rates_forward(t + h, h, ub, q, nominal, &m->end, dx, spread, dz, dq, end, dA, V, dz_out);
    for (i = 0; i < GR_MM; i++) dW[i] += V[i];
    gr_sigma_rates_forward(t + 0.5 * h, h, um, q, nominal, &m->mid, dx, spread, dz, dq, df, dA, V, other);
    for (i = 0; i < GR_MM; i++) dW[i] = (dW[i] + 4 * V[i]) / 6;
    gr_lanes_forcing(begin, df, end, dG);
  }
#endif
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++)
      dG[i * GR_NG] += dA[i * GR_NM + j] * (s[j] - m->mid.x[j]) + c[i * GR_NM + j] * (ds[j] - dx[j]);
  gr_lanes_half(dW, dG + GR_NG * GR_NM);
}

#endif

/* after gr_update of the same sample, whose numbers are in m */
GR_APART void gr_update_forward(double t, const double *s, const double *u, const double *q, const double *nominal,
                                const double *y, const double *mask, const double *scale, const gr_lanes *ds,
                                const gr_lanes *dq, gr_lanes *ds_out, gr_lanes *de, gr_lanes *dV, const gr_updated *m) {
  GR_OWN gr_lanes dP[GR_MM], dL[GR_MM], away[GR_POINTS][GR_NM], seen[GR_POINTS][GR_NY], mean[GR_NY], dS[GR_YY], own[GR_YY];
  gr_lanes dC[GR_SEEN], dR[GR_YY], da[GR_NY], point[GR_NM], solved[GR_KEEP], there[GR_KEEP], dx[GR_NM];
  double where[GR_NM];
  int i, j, k, l, at = 0;
  (void)y;
  gr_lanes_full(ds + GR_NM, dP);
  gr_sigma_root_forward(m->L, dP, dL);
  gr_lanes_zero(GR_NY, mean);
  gr_lanes_zero(GR_YY, dR);
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point_forward(ds, dL, k, point, away[k]);
    for (i = 0; i < GR_NM; i++) where[i] = s[i] + m->away[k][i];
    gr_seen_forward(t, where, s + GR_NM + GR_HALF, u, q, mask, point, ds + GR_NM + GR_HALF, dq, seen[k], own,
                    k ? there : solved);
    for (i = 0; i < GR_NY; i++) mean[i] += weight * (seen[k][i] = mask[i] > 0.0 ? seen[k][i] : GR_ALL(0.0));
    for (i = 0; i < GR_YY; i++) dR[i] += weight * own[i];
  }
  gr_lanes_mask_noise(mask, scale, dR);
  memcpy(dS, dR, sizeof dR);
  gr_lanes_zero(GR_SEEN, dC);
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE_SPREAD;
    for (j = 0; j < GR_NY; j++) {
      const double left = m->seen[k][j] - m->mean[j];
      const gr_lanes turn = seen[k][j] - mean[j];
      for (i = 0; i < GR_NY; i++)
        dS[i * GR_NY + j] += weight * ((seen[k][i] - mean[i]) * left + (m->seen[k][i] - m->mean[i]) * turn);
      for (i = 0; i < GR_NM; i++) dC[i * GR_NY + j] += weight * (away[k][i] * left + m->away[k][i] * turn);
    }
  }
  for (j = 0; j < GR_NY; j++)
    for (i = j; i < GR_NY; i++) dV[at++] = dS[i * GR_NY + j];
  for (i = 0; i < GR_NY; i++) {
    da[i] = de[i] = -mean[i];
    for (j = 0; j < GR_NY; j++) da[i] -= dS[i * GR_NY + j] * m->a[j];
  }
  gr_lanes_solve_symmetric(m->factors, da, 1);
  for (i = 0; i < GR_NM; i++) {
    dx[i] = ds[i];
    for (j = 0; j < GR_NY; j++) dx[i] += dC[i * GR_NY + j] * m->a[j] + m->C[i * GR_NY + j] * da[j];
  }
  /* dC - K dS / 2: twice its product with K' is what P loses */
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++)
      for (l = 0; l < GR_NY; l++) dC[i * GR_NY + j] -= 0.5 * m->K[i * GR_NY + l] * dS[l * GR_NY + j];
  memcpy(ds_out, dx, sizeof dx);
  for (at = GR_NM, j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) {
      gr_lanes sum = dP[i * GR_NM + j];
      for (k = 0; k < GR_NY; k++)
        sum -= dC[i * GR_NY + k] * m->K[j * GR_NY + k] + m->K[i * GR_NY + k] * dC[j * GR_NY + k];
      ds_out[at++] = sum;
    }
  memcpy(ds_out + at, solved, sizeof(gr_lanes) * GR_NZ);
  gr_settled_forward(1, t, m->moved, u, q, nominal, ds_out, dq);
}

#elif !defined(GR_VALUES)

/* adjoints of P (both places of an entry together in the lower triangle) from those of the root, which are used up */
GR_APART void gr_sigma_root_reverse(const double *L, double *lL, double *lP) {
  int i, j, k;
  for (j = GR_NM - 1; j >= 0; j--) {
    const double root = L[j * GR_NM + j];
    double turn;
    if (root == 0.0) continue;
    turn = lL[j * GR_NM + j];
    for (i = j + 1; i < GR_NM; i++) {
      const double rest = lL[i * GR_NM + j] / root;
      turn -= rest * L[i * GR_NM + j];
      lP[i * GR_NM + j] += rest;
      for (k = 0; k < j; k++) {
        lL[i * GR_NM + k] -= rest * L[j * GR_NM + k];
        lL[j * GR_NM + k] -= rest * L[i * GR_NM + k];
      }
    }
    turn /= 2 * root;
    lP[j * GR_NM + j] += turn;
    for (k = 0; k < j; k++) lL[j * GR_NM + k] -= 2 * turn * L[j * GR_NM + k];
  }
}

/* adjoints lx, lP (added to), lz and lq (added to) from those of f, A, W (symmetric), the centre and z_out */
GR_APART void gr_sigma_averages_reverse(double t, double h, const double *u, const double *q, const gr_averaged *m, const double *lf,
                                        const double *lA, const double *lW, const double *lcentre, const double *lz_out,
                                        double *lx, double *lP, double *lz, double *lq) {
  GR_OWN double values[GR_POINTS][GR_NM], away[GR_POINTS][GR_NM], slope[GR_MM], mean[GR_NM], lL[GR_MM], half[GR_HALF];
  GR_OWN double own[GR_HALF], at[GR_NM], point[GR_NM], solved[GR_KEEP], there[GR_KEEP], none[GR_KEEP], lqs[GR_NQ + 1];
  int i, j, k, l;
  memcpy(mean, lf, sizeof mean);
  memcpy(slope, lA, sizeof slope);
  memset(values, 0, sizeof values);
  memset(away, 0, sizeof away);
  memset(lL, 0, sizeof lL);
  memset(none, 0, sizeof none);
  memset(half, 0, sizeof half);
  memcpy(solved, lz_out, sizeof(double) * GR_NZ);
  gr_add_gathered(lW, half);
  for (k = 1; k < GR_POINTS; k++)
    for (j = 0; j < GR_NM; j++) {
      double left = m->values[k][j] - m->f[j], back = 0.0;
      for (l = 0; l < GR_NM; l++) left -= m->A[j * GR_NM + l] * m->away[k][l];
      for (i = 0; i < GR_NM; i++) {
        const double w = 2 * GR_OTHERS * lW[i * GR_NM + j];
        away[k][i] += w * left;
        back += w * m->away[k][i];
      }
      values[k][j] += back;
      mean[j] -= back;
      for (l = 0; l < GR_NM; l++) {
        slope[j * GR_NM + l] -= back * m->away[k][l];
        away[k][l] -= back * m->A[j * GR_NM + l];
      }
    }
  for (i = 0; i < GR_NM; i++) values[0][i] += lcentre[i];
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    for (i = 0; i < GR_NM; i++) {
      at[i] = m->x[i] + m->away[k][i];
      values[k][i] += weight * mean[i];
    }
    for (i = 0; i < GR_HALF; i++) own[i] = weight * half[i];
    gr_flow_reverse(t, h, at, m->solved, u, q, values[k], own, none, point, there, lqs);
    gr_add(GR_NZ, there, solved);
    gr_add(GR_NQ, lqs, lq);
    gr_add(GR_NM, point, lx);
    if (k)
      for (i = 0; i < GR_NM; i++) lL[i * GR_NM + GR_COLUMN(k)] += GR_SIDE(k) * (away[k][i] + point[i]);
  }
  gr_sigma_root_reverse(m->L, lL, lP);
  gr_slope_reverse(t, h, m->x, m->z, u, q, slope, point, lz, lqs);
  gr_add(GR_NM, point, lx);
  gr_add(GR_NQ, lqs, lq);
  if (GR_NZ) {
    memset(values, 0, sizeof values);
    memset(own, 0, sizeof own);
    gr_flow_reverse(t, h, m->x, m->z, u, q, values[0], own, solved, point, there, lqs);
    gr_add(GR_NM, point, lx);
    gr_add(GR_NZ, there, lz);
    gr_add(GR_NQ, lqs, lq);
  }
}

/* the same for gr_sigma_rates; lz is written, all else added to */
GR_APART void gr_sigma_rates_reverse(double t, double h, const double *u, const double *q, const double *nominal, const gr_averaged *m,
                                     const double *lf, const double *lA, const double *lW, const double *lz_out, double *lx,
                                     double *lP, double *lz, double *lq) {
#ifdef GR_CONSTRAINED
  GR_OWN double along[GR_MM], flat[GR_MM], inner[GR_MM], lc[GR_NM], also[GR_NM], back[GR_NM], own[GR_NQ + 1], centre[GR_NM];
  GR_OWN double Y[GR_MM];
  int i, j;
  memset(along, 0, sizeof along);
  memset(flat, 0, sizeof flat);
  memset(inner, 0, sizeof inner);
  gr_between_back(m->along, GR_NM, m->W, lW, along, inner);
  gr_turning_reverse(t, m->x, m->c, u, q, nominal, lA, also, back, own);
  gr_add(GR_NM, also, lx);
  gr_add(GR_NQ, own, lq);
  for (j = 0; j < GR_NM; j++) {
    lc[j] = back[j];
    for (i = 0; i < GR_NM; i++) {
      lc[j] += m->along[i * GR_NM + j] * lf[i];
      along[i * GR_NM + j] += lf[i] * m->c[j];
    }
  }
  for (i = 0; i < GR_NM; i++) centre[i] = lf[i] - lc[i];
  gr_sigma_averages_reverse(t, h, u, q, m, lc, lA, inner, centre, lz_out, lx, flat, lz, lq);
  /* flat has its adjoints in the lower triangle */
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j <= i; j++) Y[i * GR_NM + j] = Y[j * GR_NM + i] = (i == j ? 1.0 : 0.5) * (flat[i * GR_NM + j] + (i == j ? 0.0 : flat[j * GR_NM + i]));
  gr_between_back(m->along, GR_NM, m->P, Y, along, lP);
  gr_tangent_reverse(t, m->x, u, q, nominal, along, also, own);
  gr_add(GR_NM, also, lx);
  gr_add(GR_NQ, own, lq);
#else
  double none[GR_NM];
  (void)nominal;
  memset(none, 0, sizeof none);
  gr_sigma_averages_reverse(t, h, u, q, m, lf, lA, lW, none, lz_out, lx, lP, lz, lq);
#endif
}

#ifndef GR_MOMENTS

/* after gr_coefficients of the same step, whose numbers are in m and c */
GR_APART void gr_coefficients_reverse(double t, double h, const double *s, const double *ua, const double *um,
                                      const double *ub, const double *q, const double *nominal, const double *lc,
                                      double *ls, double *lq, const gr_middle *m, const double *c) {
  GR_OWN double lA[GR_MM], lf[GR_NM], lW[GR_MM], lx[GR_NM], lz[GR_KEEP], lP[GR_MM], alsoz[GR_KEEP], Y[GR_MM];
  const double *lG = lc + GR_MM, *lz_out = lG + GR_NG * GR_NM + GR_HALF;
  int i, j;
  (void)ub;
  memset(ls, 0, sizeof(double) * GR_NS);
  memset(lq, 0, sizeof(double) * GR_NQ);
  memset(lx, 0, sizeof lx);
  memset(lP, 0, sizeof lP);
  memcpy(lA, lc, sizeof lA);
  gr_shared(lG + GR_NG * GR_NM, lW);
  for (i = 0; i < GR_NM; i++) {
    lf[i] = lG[i * GR_NG];
    for (j = 0; j < GR_NM; j++) {
      lA[i * GR_NM + j] += lf[i] * (s[j] - m->mid.x[j]);
      ls[j] += c[i * GR_NM + j] * lf[i];
    }
  }
#if GR_NG == 1
  gr_sigma_rates_reverse(t + 0.5 * h, h, um, q, nominal, &m->mid, lf, lA, lW, lz_out, lx, lP, lz, lq);
#else
  {
    GR_OWN double begin[GR_NM], end[GR_NM], mid[GR_NM], none[GR_KEEP], nothing[GR_MM];
    memset(none, 0, sizeof none);
    memset(nothing, 0, sizeof nothing);
    gr_forcing_back(lG, begin, mid, end);
    for (i = 0; i < GR_MM; i++) lW[i] *= 4.0 / 6.0;
    gr_sigma_rates_reverse(t + 0.5 * h, h, um, q, nominal, &m->mid, mid, lA, lW, none, lx, lP, lz, lq);
    for (i = 0; i < GR_MM; i++) lW[i] *= 0.25;
    gr_sigma_rates_reverse(t, h, ua, q, nominal, &m->begin, begin, nothing, lW, none, lx, lP, alsoz, lq);
    gr_add(GR_NZ, alsoz, lz);
    gr_sigma_rates_reverse(t + h, h, ub, q, nominal, &m->end, end, nothing, lW, lz_out, lx, lP, alsoz, lq);
    gr_add(GR_NZ, alsoz, lz);
  }
#endif
  /* the middle is x + h/2 T f, and x less it was multiplied with A */
  for (i = 0; i < GR_NM; i++) {
    lx[i] -= ls[i];
    ls[i] += lx[i];
  }
#if GR_NZ || !defined(GR_STILL)
  memset(lf, 0, sizeof lf);
  memset(lA, 0, sizeof lA);
  memset(lW, 0, sizeof lW);
  memcpy(Y, lP, sizeof Y);
#ifndef GR_STILL
  {
    GR_OWN double through[GR_MM], once[GR_MM];
    gr_symmetric(Y);
    memset(through, 0, sizeof through);
    memset(lP, 0, sizeof lP);
    gr_between_back(m->through, GR_NM, m->P, Y, through, lP);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) {
        through[i * GR_NM + j] += h / 2 * lx[i] * m->f[j];
        lf[j] += h / 2 * m->through[i * GR_NM + j] * lx[i];
      }
    for (i = 0; i < GR_MM; i++) lW[i] = h / 2 * lP[i];
    memset(once, 0, sizeof once);
    gr_transposed_times(GR_NM, GR_NM, GR_NM, m->through, GR_NM, through, GR_NM, once, GR_NM);
    gr_times_transposed(GR_NM, GR_NM, GR_NM, once, GR_NM, m->through, GR_NM, lA, GR_NM, h / 2);
  }
#endif
  gr_sigma_rates_reverse(t, h, ua, q, nominal, &m->first, lf, lA, lW, lz, ls, lP, alsoz, lq);
  memcpy(ls + GR_NM + GR_HALF, alsoz, sizeof(double) * GR_NZ);
#endif
  gr_add_gathered(lP, ls + GR_NM);
  (void)Y, (void)alsoz, (void)ua, (void)t;
}

#endif

GR_APART void gr_update_reverse(double t, const double *s, const double *u, const double *q, const double *nominal,
                                const double *y, const double *mask, const double *scale, const double *lout,
                                const double *le, const double *lV, double *ls, double *lq, gr_updated *m) {
  GR_OWN double lmoved[GR_NS], Y[GR_MM], lP[GR_MM], lL[GR_MM], lC[GR_SEEN], lS[GR_YY], la[GR_NY], mean[GR_NY], lR[GR_YY];
  GR_OWN double seen[GR_POINTS][GR_NY], away[GR_POINTS][GR_NM], YK[GR_SEEN], own[GR_YY], where[GR_NM], point[GR_NM];
  double lz[GR_KEEP], there[GR_KEEP], none[GR_KEEP], lqs[GR_NQ + 1], lx[GR_NM];
  int i, j, k, l;
  gr_update_moments(t, s, u, q, y, mask, scale, m);
  memcpy(lmoved, lout, sizeof lmoved);
  memset(lq, 0, sizeof(double) * GR_NQ);
  memset(lL, 0, sizeof lL);
  memset(lz, 0, sizeof lz);
  memset(none, 0, sizeof none);
  gr_settled_reverse(1, t, m->moved, u, q, nominal, lmoved, lq);
  gr_shared(lmoved + GR_NM, Y);
  memcpy(lP, Y, sizeof lP);
  memcpy(lx, lmoved, sizeof lx);
  gr_times(GR_NM, GR_NM, GR_NY, Y, GR_NM, m->K, GR_NY, YK, GR_NY, 0);
  for (j = 0; j < GR_NY; j++) {
    la[j] = 0.0;
    for (i = 0; i < GR_NM; i++) {
      la[j] += m->C[i * GR_NY + j] * lx[i];
      lC[i * GR_NY + j] = m->a[j] * lx[i] - 2 * YK[i * GR_NY + j];
    }
  }
  gr_solve_symmetric(m->factors, la, 1);
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++) {
      lS[i * GR_NY + j] = -0.5 * (la[i] * m->a[j] + m->a[i] * la[j]);
      for (l = 0; l < GR_NM; l++) lS[i * GR_NY + j] += m->K[l * GR_NY + i] * YK[l * GR_NY + j];
    }
  gr_innovation_back(le, lV, la, lS);
  for (j = 0; j < GR_NY; j++) mean[j] = -la[j];
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE_SPREAD;
    for (i = 0; i < GR_NM; i++) away[k][i] = 0.0;
    for (j = 0; j < GR_NY; j++) {
      double back = 0.0;
      for (i = 0; i < GR_NY; i++)
        back += weight * (lS[i * GR_NY + j] + lS[j * GR_NY + i]) * (m->seen[k][i] - m->mean[i]);
      for (i = 0; i < GR_NM; i++) {
        back += weight * lC[i * GR_NY + j] * m->away[k][i];
        away[k][i] += weight * lC[i * GR_NY + j] * (m->seen[k][j] - m->mean[j]);
      }
      seen[k][j] = back;
      mean[j] -= back;
    }
  }
  memcpy(lR, lS, sizeof lS);
  gr_mask_noise_back(mask, scale, lR);
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    for (i = 0; i < GR_NM; i++) where[i] = s[i] + m->away[k][i];
    for (j = 0; j < GR_NY; j++) seen[k][j] = mask[j] > 0.0 ? seen[k][j] + weight * mean[j] : 0.0;
    for (i = 0; i < GR_YY; i++) own[i] = weight * lR[i];
    gr_seen_reverse(t, where, s + GR_NM + GR_HALF, u, q, mask, seen[k], own, k ? none : lmoved + GR_NM + GR_HALF, point,
                    there, lqs);
    gr_add(GR_NZ, there, lz);
    gr_add(GR_NQ, lqs, lq);
    gr_add(GR_NM, point, lx);
    if (k)
      for (i = 0; i < GR_NM; i++) lL[i * GR_NM + GR_COLUMN(k)] += GR_SIDE(k) * (away[k][i] + point[i]);
  }
  gr_sigma_root_reverse(m->L, lL, lP);
  memcpy(ls, lx, sizeof lx);
  memset(ls + GR_NM, 0, sizeof(double) * GR_HALF);
  gr_add_gathered(lP, ls + GR_NM);
  memcpy(ls + GR_NM + GR_HALF, lz, sizeof(double) * GR_NZ);
}

#endif

#ifdef GR_UNROLLED
#pragma GCC pop_options
#endif
#endif
