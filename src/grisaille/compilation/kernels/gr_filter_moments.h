/* Takes a step of mean and covariance by an explicit method (filtering/moment_steps.py), with derivatives.
 *
 *   x' = f        P' = A P + P A' + W
 *
 * gr_filter_extended.h and gr_filter_sigma.h define gr_point and gr_moment_rates, which gives f, A, W (full, symmetric)
 * and z at a stage and keeps in a gr_point what its derivatives need; gr_settle puts the moments after the step on the
 * constraints. The generated file says GR_STAGES, 4 for the classical Runge-Kutta method, 1 for Euler's.
 */
#ifndef GR_FILTER_MOMENTS_H
#define GR_FILTER_MOMENTS_H

#include "gr_filter_matrices.h"

/* each stage starts from the slopes of the one before */
#if GR_STAGES == 1
static const double gr_part[] = {0.0}, gr_weight[] = {1.0};
static const int gr_signal[] = {0};
#else
static const double gr_part[] = {0.0, 0.5, 0.5, 1.0}, gr_weight[] = {1.0 / 6.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0};
static const int gr_signal[] = {0, 1, 1, 2};
#endif

typedef struct {
  gr_point at;
  double x[GR_NM], P[GR_MM], z[GR_KEEP], A[GR_MM];
} gr_stage;

typedef struct {
  gr_stage stages[GR_STAGES];
  double moved[GR_NS]; /* the moments after the step, before they are put on the constraints */
  gr_updated updated;
} gr_stepped;

#define GR_UPDATED(k) , &((gr_stepped *)(k)->room)->updated

GR_API long gr_filter_room(long doublings) { return sizeof(gr_stepped) / sizeof(double) + 1 + 0 * doublings; }

GR_FN void gr_carry(gr_filter_task *k, double t, double h, const double *s, const double *u, double *out) {
  gr_stepped *r = (gr_stepped *)k->room;
  GR_OWN double P[GR_MM], f[GR_NM], W[GR_MM], D[GR_MM], AP[GR_MM], mean[GR_NM], spread[GR_MM], z[GR_KEEP];
  int i, j, l, at = GR_NM;
  gr_full(s + GR_NM, P);
  memcpy(z, s + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
  memset(f, 0, sizeof f);
  memset(D, 0, sizeof D);
  memset(mean, 0, sizeof mean);
  memset(spread, 0, sizeof spread);
  for (l = 0; l < GR_STAGES; l++) {
    gr_stage *m = r->stages + l;
    const double by = gr_part[l] * h;
    for (i = 0; i < GR_NM; i++) m->x[i] = s[i] + by * f[i];
    for (i = 0; i < GR_MM; i++) m->P[i] = P[i] + by * D[i];
    memcpy(m->z, z, sizeof(double) * GR_NZ);
    gr_moment_rates(t + by, h, m->x, m->P, m->z, u + gr_signal[l] * GR_NU, k->q, k->nominal, &m->at, f, m->A, W, z);
    gr_times(GR_NM, GR_NM, GR_NM, m->A, GR_NM, m->P, GR_NM, AP, GR_NM, 0);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) D[i * GR_NM + j] = AP[i * GR_NM + j] + AP[j * GR_NM + i] + W[i * GR_NM + j];
    for (i = 0; i < GR_NM; i++) mean[i] += gr_weight[l] * f[i];
    for (i = 0; i < GR_MM; i++) spread[i] += gr_weight[l] * D[i];
  }
  for (i = 0; i < GR_NM; i++) r->moved[i] = s[i] + h * mean[i];
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) r->moved[at++] = P[i * GR_NM + j] + h * spread[i * GR_NM + j];
  memcpy(r->moved + at, z, sizeof(double) * GR_NZ);
  gr_settle(t + h, r->moved, u + 2 * GR_NU, k->q, k->nominal, out);
}

#ifdef GR_ABREAST

/* after gr_carry of the same step */
GR_FN void gr_carry_forward(gr_filter_task *k, double t, double h, const double *s, const double *u, gr_lanes *ds,
                            const gr_lanes *dq) {
  const gr_stepped *r = (const gr_stepped *)k->room;
  GR_OWN gr_lanes dP[GR_MM], dx[GR_NM], here[GR_MM], df[GR_NM], dA[GR_MM], dW[GR_MM], dD[GR_MM], dAP[GR_MM];
  GR_OWN gr_lanes mean[GR_NM], spread[GR_MM], dz[GR_KEEP], solved[GR_KEEP], moved[GR_NS];
  int i, j, l, at = GR_NM;
  (void)s;
  gr_lanes_full(ds + GR_NM, dP);
  memcpy(dz, ds + GR_NM + GR_HALF, sizeof(gr_lanes) * GR_NZ);
  gr_lanes_zero(GR_NM, df);
  gr_lanes_zero(GR_MM, dD);
  gr_lanes_zero(GR_NM, mean);
  gr_lanes_zero(GR_MM, spread);
  for (l = 0; l < GR_STAGES; l++) {
    const gr_stage *m = r->stages + l;
    const double by = gr_part[l] * h;
    for (i = 0; i < GR_NM; i++) dx[i] = ds[i] + by * df[i];
    for (i = 0; i < GR_MM; i++) here[i] = dP[i] + by * dD[i];
    gr_moment_rates_forward(t + by, h, u + gr_signal[l] * GR_NU, k->q, k->nominal, &m->at, dx, here, dz, dq, df, dA, dW, solved);
    memcpy(dz, solved, sizeof(gr_lanes) * GR_NZ);
    gr_lanes_zero(GR_MM, dAP);
    gr_lanes_left(GR_NM, GR_NM, GR_NM, dA, GR_NM, m->P, GR_NM, dAP, GR_NM);
    gr_lanes_right(GR_NM, GR_NM, GR_NM, m->A, GR_NM, here, GR_NM, dAP, GR_NM);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) dD[i * GR_NM + j] = dAP[i * GR_NM + j] + dAP[j * GR_NM + i] + dW[i * GR_NM + j];
    for (i = 0; i < GR_NM; i++) mean[i] += gr_weight[l] * df[i];
    for (i = 0; i < GR_MM; i++) spread[i] += gr_weight[l] * dD[i];
  }
  for (i = 0; i < GR_NM; i++) moved[i] = ds[i] + h * mean[i];
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) moved[at++] = dP[i * GR_NM + j] + h * spread[i * GR_NM + j];
  memcpy(moved + at, dz, sizeof(gr_lanes) * GR_NZ);
  gr_settle_forward(t + h, r->moved, u + 2 * GR_NU, k->q, k->nominal, moved, dq, ds);
}

#elif !defined(GR_VALUES)

/* adjoints of P are symmetric matrices: what a symmetric change is multiplied with, entry by entry */
GR_FN void gr_carry_reverse(gr_filter_task *k, double t, double h, const double *s, const double *u, double *ls,
                            double *lq) {
  gr_stepped *r = (gr_stepped *)k->room;
  GR_OWN double lmoved[GR_NS], Y[GR_MM], lx[GR_NM], lP[GR_MM], sum_x[GR_NM], sum_P[GR_MM], lf[GR_NM], lD[GR_MM];
  GR_OWN double lA[GR_MM], lz[GR_KEEP], before[GR_KEEP];
  int i, l;
  gr_carry(k, t, h, s, u, lmoved);
  gr_settle_reverse(t + h, r->moved, u + 2 * GR_NU, k->q, k->nominal, ls, lmoved, lq);
  gr_shared(lmoved + GR_NM, Y);
  memcpy(lz, lmoved + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
  memcpy(sum_x, lmoved, sizeof sum_x);
  memcpy(sum_P, Y, sizeof sum_P);
  memset(lx, 0, sizeof lx);
  memset(lP, 0, sizeof lP);
  for (l = GR_STAGES - 1; l >= 0; l--) {
    const gr_stage *m = r->stages + l;
    const double next = l + 1 < GR_STAGES ? gr_part[l + 1] * h : 0.0;
    for (i = 0; i < GR_NM; i++) lf[i] = h * gr_weight[l] * lmoved[i] + next * lx[i];
    for (i = 0; i < GR_MM; i++) lD[i] = h * gr_weight[l] * Y[i] + next * lP[i];
    gr_times(GR_NM, GR_NM, GR_NM, lD, GR_NM, m->P, GR_NM, lA, GR_NM, 0);
    for (i = 0; i < GR_MM; i++) lA[i] *= 2;
    memset(lx, 0, sizeof lx);
    memset(lP, 0, sizeof lP);
    gr_transposed_times(GR_NM, GR_NM, GR_NM, m->A, GR_NM, lD, GR_NM, lP, GR_NM);
    gr_times(GR_NM, GR_NM, GR_NM, lD, GR_NM, m->A, GR_NM, lP, GR_NM, 1);
    gr_moment_rates_reverse(t + gr_part[l] * h, h, u + gr_signal[l] * GR_NU, k->q, k->nominal, &m->at, lf, lA, lD, lz, lx, lP,
                            before, lq);
    gr_symmetric(lP);
    memcpy(lz, before, sizeof(double) * GR_NZ);
    gr_add(GR_NM, lx, sum_x);
    gr_add(GR_MM, lP, sum_P);
  }
  memcpy(ls, sum_x, sizeof sum_x);
  memset(ls + GR_NM, 0, sizeof(double) * GR_HALF);
  gr_add_gathered(sum_P, ls + GR_NM);
  memcpy(ls + GR_NM + GR_HALF, lz, sizeof(double) * GR_NZ);
}

#endif
#endif
