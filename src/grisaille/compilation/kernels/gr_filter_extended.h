/* Computes steps and updates of the extended and the iterated filter as loops (filtering/linearization.py,
 * measurement.py, nonlinear/iterated.py), with derivatives.
 *
 *   x_mid = x + h/2 v,   M v = f(x),   M = I - h/2 A                      A, G, W at x_mid
 *   S = H P H' + R,   a = S^-1 e,   x <- x + P H' a,   P <- (I - K H) P (I - K H)' + K R K',   K' = S^-1 H P
 *
 * K makes P smallest, so that its own changes do not move P: dP <- (I - K H) dP (I - K H)' - K dH P (I - K H)' - its
 * transpose + K dR K'. The iterated filter looks GR_LOOKS times, where the look before has put the mean; the innovation and
 * its covariance are those of the first look, P those of the last.
 *
 * The generated file defines what gr_filter_loops.h asks for, GR_LOOKS, GR_STILL where the drift does not depend on the
 * states, and
 *
 *   gr_rates(t, h, x, z, u, q, f, A, W, z_out)            drift, its slope row by row, the lower triangle of its intensity
 *   gr_measure(t, x, z, u, q, mask, y, H, R, z_out)    outputs, their slope row by row, their noise
 */
#ifndef GR_FILTER_EXTENDED_H
#define GR_FILTER_EXTENDED_H

#include "gr_filter_loops.h"

/* where the update looks, and what it makes of it */
typedef struct {
  double x[GR_NM], z[GR_KEEP], solved[GR_KEEP], H[GR_SEEN], HP[GR_SEEN], S[GR_YY], factors[GR_YY], e[GR_NY], a[GR_NY];
} gr_look;

typedef struct {
  gr_look looks[GR_LOOKS];
  double K[GR_SEEN]; /* of the last look, GR_NM rows */
  double P[GR_MM], once[GR_MM], noise[GR_YY]; /* before, (I - K H) P, noise of the last look */
  double moved[GR_NS]; /* the moments before they are put on the constraints */
} gr_updated;

#ifdef GR_MOMENTS

/* a stage of a step, for its derivatives */
typedef struct {
  double x[GR_NM], z[GR_KEEP];
} gr_point;

GR_APART void gr_moment_rates(double t, double h, const double *x, const double *P, const double *z, const double *u, const double *q,
                              const double *nominal, gr_point *m, double *f, double *A, double *W, double *z_out) {
  GR_OWN double half[GR_HALF];
  (void)P, (void)nominal;
  memcpy(m->x, x, sizeof m->x);
  memcpy(m->z, z, sizeof(double) * GR_NZ);
  gr_rates(t, h, x, z, u, q, f, A, half, z_out);
  gr_full(half, W);
}

#else

/* the middle of a step, for its derivatives */
typedef struct {
  double x[GR_NM], z[GR_KEEP], v[GR_NM], M[GR_MM];
  long order[GR_NM];
} gr_middle;

GR_APART void gr_coefficients(double t, double h, const double *s, const double *ua, const double *um, const double *ub,
                              const double *q, const double *nominal, double *c, gr_middle *m) {
  const double *x = s;
  double f[GR_NM], *A = c, *G = c + GR_MM, *W = G + GR_NG * GR_NM, *z = W + GR_HALF;
  int i, j;
  (void)nominal;
  gr_rates(t, h, x, s + GR_NM + GR_HALF, ua, q, f, A, W, m->z);
  memcpy(m->x, x, sizeof m->x);
#ifndef GR_STILL
  gr_factor(A, h / 2, m->M, m->order);
  memcpy(m->v, f, sizeof f);
  gr_solve(m->M, m->order, m->v, 1);
  for (i = 0; i < GR_NM; i++) m->x[i] += h / 2 * m->v[i];
#endif
#if GR_NG == 1
  gr_rates(t + 0.5 * h, h, m->x, m->z, um, q, f, A, W, z);
  for (i = 0; i < GR_NM; i++) G[i] = f[i];
#else
  {
    GR_OWN double begin[GR_NM], end[GR_NM], Wa[GR_HALF], Wb[GR_HALF], other[GR_KEEP];
    gr_rates(t, h, m->x, m->z, ua, q, begin, A, Wa, z);
    memcpy(other, z, sizeof(double) * GR_NZ);
    gr_rates(t + h, h, m->x, m->z, ub, q, end, A, Wb, z);
    gr_keep_corrections(z, other);
    gr_rates(t + 0.5 * h, h, m->x, m->z, um, q, f, A, W, other);
    gr_keep_corrections(z, other);
    for (i = 0; i < GR_HALF; i++) W[i] = (Wa[i] + 4 * W[i] + Wb[i]) / 6;
    gr_forcing(begin, f, end, G);
  }
#endif
  for (i = 0; i < GR_NM; i++) {
    double sum = 0.0;
    for (j = 0; j < GR_NM; j++) sum += A[i * GR_NM + j] * (x[j] - m->x[j]);
    G[i * GR_NG] += sum;
  }
}

#endif

/* one look from x and z; returns the noise of the outputs */
GR_FN void gr_look_at(int first, double t, const double *before, const double *P, const double *u, const double *q,
                      const double *y, const double *mask, const double *scale, gr_look *l, double *R) {
  int i, j, k;
  double seen[GR_NY], gain[GR_NY];
  gr_measure(t, l->x, l->z, u, q, mask, seen, l->H, R, l->solved);
  gr_mask_noise(mask, scale, R);
  for (i = 0; i < GR_NY; i++) {
    if (!(mask[i] > 0.0)) {
      seen[i] = 0.0;
      for (j = 0; j < GR_NM; j++) l->H[i * GR_NM + j] = 0.0;
    }
    l->e[i] = mask[i] * y[i] - seen[i];
    if (!first) {
      double sum = 0.0;
      for (j = 0; j < GR_NM; j++) sum += l->H[i * GR_NM + j] * (before[j] - l->x[j]);
      l->e[i] -= sum;
    }
  }
  gr_times(GR_NY, GR_NM, GR_NM, l->H, GR_NM, P, GR_NM, l->HP, GR_NM, 0);
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++) {
      double sum = 0.0;
      for (k = 0; k < GR_NM; k++) sum += l->HP[i * GR_NM + k] * l->H[j * GR_NM + k];
      l->S[i * GR_NY + j] = sum + R[i * GR_NY + j];
    }
  memcpy(l->factors, l->S, sizeof l->S);
  gr_factor_symmetric(l->factors);
  memcpy(gain, l->e, sizeof gain);
  gr_solve_symmetric(l->factors, gain, 1);
  memcpy(l->a, gain, sizeof gain);
}

/* the moments after a sample, not yet on the constraints, and what they are made of */
GR_APART void gr_update_moments(double t, const double *s, const double *u, const double *q, const double *y,
                                const double *mask, const double *scale, gr_updated *m) {
  const gr_look *last = m->looks + GR_LOOKS - 1;
  double gain[GR_SEEN], x[GR_NM], onceH[GR_SEEN], KR[GR_SEEN];
  int i, j, k, look, at = 0;
  gr_full(s + GR_NM, m->P);
  memcpy(x, s, sizeof x);
  for (look = 0; look < GR_LOOKS; look++) {
    gr_look *l = m->looks + look;
    memcpy(l->x, x, sizeof x);
#if GR_NZ
    if (look)
      gr_solve_step(t, x, m->looks[look - 1].solved, u, q, l->z);
    else
      memcpy(l->z, s + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
#endif
    gr_look_at(!look, t, s, m->P, u, q, y, mask, scale, l, m->noise);
    for (i = 0; i < GR_NM; i++) {
      double sum = 0.0;
      for (j = 0; j < GR_NY; j++) sum += l->HP[j * GR_NM + i] * l->a[j];
      x[i] = s[i] + sum;
    }
  }
  memcpy(gain, last->HP, sizeof gain);
  gr_solve_symmetric(last->factors, gain, GR_NM);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) m->K[i * GR_NY + j] = gain[j * GR_NM + i];
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) {
      double sum = 0.0;
      for (k = 0; k < GR_NY; k++) sum += m->K[i * GR_NY + k] * last->HP[k * GR_NM + j];
      m->once[i * GR_NM + j] = m->P[i * GR_NM + j] - sum;
    }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) {
      double sum = 0.0, noise = 0.0;
      for (k = 0; k < GR_NM; k++) sum += m->once[i * GR_NM + k] * last->H[j * GR_NM + k];
      for (k = 0; k < GR_NY; k++) noise += m->K[i * GR_NY + k] * m->noise[k * GR_NY + j];
      onceH[i * GR_NY + j] = sum;
      KR[i * GR_NY + j] = noise;
    }
  memcpy(m->moved, x, sizeof x);
  for (at = GR_NM, j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) {
      double sum = 0.0, noise = 0.0;
      for (k = 0; k < GR_NY; k++) {
        sum += onceH[i * GR_NY + k] * m->K[j * GR_NY + k];
        noise += KR[i * GR_NY + k] * m->K[j * GR_NY + k];
      }
      m->moved[at++] = m->once[i * GR_NM + j] - sum + noise;
    }
  memcpy(m->moved + at, last->solved, sizeof(double) * GR_NZ);
}

GR_APART void gr_update(double t, const double *s, const double *u, const double *q, const double *nominal,
                        const double *y, const double *mask, const double *scale, double *s_out, double *e, double *V,
                        gr_updated *m) {
  gr_update_moments(t, s, u, q, y, mask, scale, m);
  memcpy(e, m->looks->e, sizeof m->looks->e);
  gr_innovation_half(m->looks->S, V);
  gr_settled(1, t, m->moved, u, q, nominal, s_out);
}

#ifdef GR_ABREAST

#ifdef GR_MOMENTS

GR_APART void gr_moment_rates_forward(double t, double h, const double *u, const double *q, const double *nominal, const gr_point *m,
                                      const gr_lanes *dx, const gr_lanes *dP, const gr_lanes *dz, const gr_lanes *dq,
                                      gr_lanes *df, gr_lanes *dA, gr_lanes *dW, gr_lanes *dz_out) {
  GR_OWN gr_lanes half[GR_HALF];
  (void)dP, (void)nominal;
  gr_rates_forward(t, h, m->x, m->z, u, q, dx, dz, dq, df, dA, half, dz_out);
  gr_lanes_full(half, dW);
}

#else

GR_APART void gr_coefficients_forward(double t, double h, const double *s, const double *ua, const double *um,
                                      const double *ub, const double *q, const double *nominal, const gr_lanes *ds,
                                      const gr_lanes *dq, gr_lanes *dc, const gr_middle *m, const double *c) {
  gr_lanes df[GR_NM], dx[GR_NM], dz[GR_KEEP], *dA = dc, *dG = dc + GR_MM, *dW = dG + GR_NG * GR_NM, *dz_out = dW + GR_HALF;
  int i, j;
  (void)nominal, (void)ua, (void)ub;
  memcpy(dx, ds, sizeof dx);
#if GR_NZ || !defined(GR_STILL)
  gr_rates_forward(t, h, s, s + GR_NM + GR_HALF, ua, q, ds, ds + GR_NM + GR_HALF, dq, df, dA, dW, dz);
#endif
#ifndef GR_STILL
  for (i = 0; i < GR_NM; i++) {
    gr_lanes sum = GR_ALL(0.0);
    for (j = 0; j < GR_NM; j++) sum += dA[i * GR_NM + j] * m->v[j];
    df[i] += h / 2 * sum;
  }
  gr_lanes_solve(m->M, m->order, df);
  for (i = 0; i < GR_NM; i++) dx[i] += h / 2 * df[i];
#endif
#if GR_NG == 1
  gr_rates_forward(t + 0.5 * h, h, m->x, m->z, um, q, dx, dz, dq, df, dA, dW, dz_out);
  for (i = 0; i < GR_NM; i++) dG[i] = df[i];
#else
  {
    GR_OWN gr_lanes begin[GR_NM], end[GR_NM], Wa[GR_HALF], Wb[GR_HALF], other[GR_KEEP];
    gr_rates_forward(t, h, m->x, m->z, ua, q, dx, dz, dq, begin, dA, Wa, other);
    gr_rates_forward(t + h, h, m->x, m->z, ub, q, dx, dz, dq, end, dA, Wb, dz_out);
    gr_rates_forward(t + 0.5 * h, h, m->x, m->z, um, q, dx, dz, dq, df, dA, dW, other);
    for (i = 0; i < GR_HALF; i++) dW[i] = (Wa[i] + 4 * dW[i] + Wb[i]) / 6;
    gr_lanes_forcing(begin, df, end, dG);
  }
#endif
  for (i = 0; i < GR_NM; i++) {
    gr_lanes sum = GR_ALL(0.0);
    for (j = 0; j < GR_NM; j++)
      sum += dA[i * GR_NM + j] * (s[j] - m->x[j]) + c[i * GR_NM + j] * (ds[j] - dx[j]);
    dG[i * GR_NG] += sum;
  }
}

#endif

/* after gr_update of the same sample, whose numbers are in m */
GR_APART void gr_update_forward(double t, const double *s, const double *u, const double *q, const double *nominal,
                                const double *y, const double *mask, const double *scale, const gr_lanes *ds,
                                const gr_lanes *dq, gr_lanes *ds_out, gr_lanes *de, gr_lanes *dV, const gr_updated *m) {
  GR_OWN gr_lanes dP[GR_MM], dx[GR_NM], dz[GR_KEEP], solved[GR_KEEP], dH[GR_SEEN], dR[GR_YY], dHP[GR_SEEN], dS[GR_YY], da[GR_NY];
  gr_lanes HdP[GR_SEEN], next[GR_NM];
  int i, j, k, look, at = 0;
  (void)y;
  gr_lanes_full(ds + GR_NM, dP);
  memcpy(dx, ds, sizeof dx);
  memcpy(dz, ds + GR_NM + GR_HALF, sizeof(gr_lanes) * GR_NZ);
  for (look = 0; look < GR_LOOKS; look++) {
    const gr_look *l = m->looks + look;
#if GR_NZ
    if (look) gr_solve_step_forward(t, l->x, m->looks[look - 1].solved, u, q, dx, solved, dq, dz);
#endif
    gr_measure_forward(t, l->x, l->z, u, q, mask, dx, dz, dq, da, dH, dR, solved);
    gr_lanes_mask_noise(mask, scale, dR);
    for (i = 0; i < GR_NY; i++) {
      if (!(mask[i] > 0.0)) {
        da[i] = GR_ALL(0.0);
        gr_lanes_zero(GR_NM, dH + i * GR_NM);
      }
      da[i] = -da[i];
      if (look)
        for (j = 0; j < GR_NM; j++)
          da[i] -= dH[i * GR_NM + j] * (s[j] - l->x[j]) + l->H[i * GR_NM + j] * (ds[j] - dx[j]);
    }
    gr_lanes_zero(GR_SEEN, HdP);
    gr_lanes_right(GR_NY, GR_NM, GR_NM, l->H, GR_NM, dP, GR_NM, HdP, GR_NM);
    memcpy(dHP, HdP, sizeof dHP);
    gr_lanes_left(GR_NY, GR_NM, GR_NM, dH, GR_NM, m->P, GR_NM, dHP, GR_NM);
    for (i = 0; i < GR_NY; i++)
      for (j = 0; j <= i; j++) {
        gr_lanes sum = dR[i * GR_NY + j];
        for (k = 0; k < GR_NM; k++)
          sum += dHP[i * GR_NM + k] * l->H[j * GR_NM + k] + l->HP[i * GR_NM + k] * dH[j * GR_NM + k];
        dS[i * GR_NY + j] = dS[j * GR_NY + i] = sum;
      }
    if (!look) {
      memcpy(de, da, sizeof da);
      for (j = 0; j < GR_NY; j++)
        for (i = j; i < GR_NY; i++) dV[at++] = dS[i * GR_NY + j];
    }
    for (i = 0; i < GR_NY; i++)
      for (j = 0; j < GR_NY; j++) da[i] -= dS[i * GR_NY + j] * l->a[j];
    gr_lanes_solve_symmetric(l->factors, da, 1);
    for (i = 0; i < GR_NM; i++) {
      next[i] = ds[i];
      for (j = 0; j < GR_NY; j++) next[i] += dHP[j * GR_NM + i] * l->a[j] + l->HP[j * GR_NM + i] * da[j];
    }
    memcpy(dx, next, sizeof dx);
  }
  {
    const gr_look *last = m->looks + GR_LOOKS - 1;
    gr_lanes onceH[GR_SEEN], *moved = ds_out;
    /* dP - K H dP, then minus its product with H' K' */
    for (i = 0; i < GR_NM; i++)
      for (k = 0; k < GR_NY; k++) {
        const double gain = m->K[i * GR_NY + k];
        if (gain != 0.0)
          for (j = 0; j < GR_NM; j++) dP[i * GR_NM + j] -= gain * HdP[k * GR_NM + j];
      }
    /* what is multiplied with K' from the right: half of what noise adds, dH with (I - K H) P, and the last product */
    for (i = 0; i < GR_NM; i++)
      for (k = 0; k < GR_NY; k++) {
        gr_lanes sum = GR_ALL(0.0), slope = GR_ALL(0.0);
        for (j = 0; j < GR_NM; j++) {
          sum += dP[i * GR_NM + j] * last->H[k * GR_NM + j];
          slope += m->once[i * GR_NM + j] * dH[k * GR_NM + j];
        }
        for (j = 0; j < GR_NY; j++) slope -= 0.5 * m->K[i * GR_NY + j] * dR[j * GR_NY + k];
        onceH[i * GR_NY + k] = sum + slope;
        HdP[k * GR_NM + i] = slope;
      }
    memcpy(moved, dx, sizeof dx);
    for (at = GR_NM, j = 0; j < GR_NM; j++)
      for (i = j; i < GR_NM; i++) {
        gr_lanes sum = dP[i * GR_NM + j];
        for (k = 0; k < GR_NY; k++)
          sum -= onceH[i * GR_NY + k] * m->K[j * GR_NY + k] + m->K[i * GR_NY + k] * HdP[k * GR_NM + j];
        moved[at++] = sum;
      }
    memcpy(moved + at, solved, sizeof(gr_lanes) * GR_NZ);
    gr_settled_forward(1, t, m->moved, u, q, nominal, moved, dq);
  }
}

#elif !defined(GR_VALUES)

#ifdef GR_MOMENTS

/* lz is written, all else added to */
GR_APART void gr_moment_rates_reverse(double t, double h, const double *u, const double *q, const double *nominal, const gr_point *m,
                                      const double *lf, const double *lA, const double *lW, const double *lz_out, double *lx,
                                      double *lP, double *lz, double *lq) {
  GR_OWN double half[GR_HALF], also[GR_NM], own[GR_NQ + 1];
  (void)lP, (void)nominal;
  memset(half, 0, sizeof half);
  gr_add_gathered(lW, half);
  gr_rates_reverse(t, h, m->x, m->z, u, q, lf, lA, half, lz_out, also, lz, own);
  gr_add(GR_NM, also, lx);
  gr_add(GR_NQ, own, lq);
}

#else

/* after gr_coefficients of the same step, whose numbers are in m and c */
GR_APART void gr_coefficients_reverse(double t, double h, const double *s, const double *ua, const double *um,
                                      const double *ub, const double *q, const double *nominal, const double *lc,
                                      double *ls, double *lq, const gr_middle *m, const double *c) {
  GR_OWN double lA[GR_MM], lf[GR_NM], lW[GR_HALF], lx[GR_NM], also[GR_NM], lz[GR_KEEP], alsoz[GR_KEEP], own[GR_NQ + 1];
  const double *lG = lc + GR_MM, *lz_out = lG + GR_NG * GR_NM + GR_HALF;
  int i, j;
  (void)nominal, (void)ua, (void)ub;
  memset(ls, 0, sizeof(double) * GR_NS);
  memcpy(lA, lc, sizeof lA);
  memcpy(lW, lG + GR_NG * GR_NM, sizeof lW);
  for (i = 0; i < GR_NM; i++) {
    lf[i] = lG[i * GR_NG];
    for (j = 0; j < GR_NM; j++) {
      lA[i * GR_NM + j] += lf[i] * (s[j] - m->x[j]);
      ls[j] += c[i * GR_NM + j] * lf[i];
    }
  }
#if GR_NG == 1
  gr_rates_reverse(t + 0.5 * h, h, m->x, m->z, um, q, lf, lA, lW, lz_out, lx, lz, lq);
#else
  {
    GR_OWN double begin[GR_NM], end[GR_NM], mid[GR_NM], none[GR_KEEP], nothing[GR_MM];
    memset(none, 0, sizeof none);
    memset(nothing, 0, sizeof nothing);
    gr_forcing_back(lG, begin, mid, end);
    for (i = 0; i < GR_HALF; i++) lW[i] *= 4.0 / 6.0;
    gr_rates_reverse(t + 0.5 * h, h, m->x, m->z, um, q, mid, lA, lW, none, lx, lz, lq);
    for (i = 0; i < GR_HALF; i++) lW[i] *= 0.25;
    gr_rates_reverse(t, h, m->x, m->z, ua, q, begin, nothing, lW, none, also, alsoz, own);
    gr_add(GR_NM, also, lx);
    gr_add(GR_NZ, alsoz, lz);
    gr_add(GR_NQ, own, lq);
    gr_rates_reverse(t + h, h, m->x, m->z, ub, q, end, nothing, lW, lz_out, also, alsoz, own);
    gr_add(GR_NM, also, lx);
    gr_add(GR_NZ, alsoz, lz);
    gr_add(GR_NQ, own, lq);
  }
#endif
  /* x_mid is x + h/2 v, and s - x_mid was multiplied with A */
  for (i = 0; i < GR_NM; i++) {
    lx[i] -= ls[i];
    ls[i] += lx[i];
  }
#if GR_NZ || !defined(GR_STILL)
  memset(lf, 0, sizeof lf);
  memset(lA, 0, sizeof lA);
  memset(lW, 0, sizeof lW);
#ifndef GR_STILL
  for (i = 0; i < GR_NM; i++) lf[i] = h / 2 * lx[i];
  gr_solve_transposed(m->M, m->order, lf);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) lA[i * GR_NM + j] = h / 2 * lf[i] * m->v[j];
#endif
  gr_rates_reverse(t, h, s, s + GR_NM + GR_HALF, ua, q, lf, lA, lW, lz, also, alsoz, own);
  gr_add(GR_NM, also, ls);
  memcpy(ls + GR_NM + GR_HALF, alsoz, sizeof(double) * GR_NZ);
  gr_add(GR_NQ, own, lq);
#endif
  (void)also, (void)alsoz, (void)own;
}

#endif

GR_APART void gr_update_reverse(double t, const double *s, const double *u, const double *q, const double *nominal,
                                const double *y, const double *mask, const double *scale, const double *lout,
                                const double *le, const double *lV, double *ls, double *lq, gr_updated *m) {
  GR_OWN double lmoved[GR_NS], lP[GR_MM], lH[GR_SEEN], lR[GR_YY], lx[GR_NM], lz[GR_KEEP], sum[GR_NM], Y[GR_MM], YK[GR_SEEN];
  double own[GR_NQ + 1];
  int i, j, k, look;
  gr_update_moments(t, s, u, q, y, mask, scale, m);
  memcpy(lmoved, lout, sizeof lmoved);
  memset(lq, 0, sizeof(double) * GR_NQ);
  memset(sum, 0, sizeof sum);
  memset(lP, 0, sizeof lP);
  gr_settled_reverse(1, t, m->moved, u, q, nominal, lmoved, lq);
  gr_shared(lmoved + GR_NM, Y);
  memcpy(lx, lmoved, sizeof lx);
  memcpy(lz, lmoved + GR_NM + GR_HALF, sizeof(double) * GR_NZ);
  {
    const gr_look *last = m->looks + GR_LOOKS - 1;
    GR_OWN double BYB[GR_MM], HY[GR_SEEN];
    gr_times(GR_NM, GR_NM, GR_NY, Y, GR_NM, m->K, GR_NY, YK, GR_NY, 0);
    /* lH = -2 K' Y (I - K H) P and lR = K' Y K */
    for (k = 0; k < GR_NY; k++)
      for (j = 0; j < GR_NM; j++) {
        double product = 0.0;
        for (i = 0; i < GR_NM; i++) product += YK[i * GR_NY + k] * m->once[i * GR_NM + j];
        lH[k * GR_NM + j] = -2 * product;
      }
    memset(lR, 0, sizeof lR);
    gr_transposed_times(GR_NY, GR_NM, GR_NY, m->K, GR_NY, YK, GR_NY, lR, GR_NY);
    /* lP = (I - K H)' Y (I - K H) */
    memcpy(BYB, Y, sizeof Y);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++)
        for (k = 0; k < GR_NY; k++) BYB[i * GR_NM + j] -= YK[i * GR_NY + k] * last->H[k * GR_NM + j];
    memset(HY, 0, sizeof HY);
    gr_transposed_times(GR_NY, GR_NM, GR_NM, m->K, GR_NY, BYB, GR_NM, HY, GR_NM);
    memcpy(lP, BYB, sizeof lP);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++)
        for (k = 0; k < GR_NY; k++) lP[i * GR_NM + j] -= last->H[k * GR_NM + i] * HY[k * GR_NM + j];
  }
  for (look = GR_LOOKS - 1; look >= 0; look--) {
    const gr_look *l = m->looks + look;
    double lHP[GR_SEEN], la[GR_NY], lh[GR_NY], lS[GR_YY], point[GR_NM], before[GR_KEEP];
    gr_add(GR_NM, lx, sum);
    for (i = 0; i < GR_NY; i++) {
      la[i] = 0.0;
      for (j = 0; j < GR_NM; j++) {
        la[i] += l->HP[i * GR_NM + j] * lx[j];
        lHP[i * GR_NM + j] = l->a[i] * lx[j];
      }
    }
    gr_solve_symmetric(l->factors, la, 1);
    for (i = 0; i < GR_NY; i++)
      for (j = 0; j < GR_NY; j++) lS[i * GR_NY + j] = -0.5 * (la[i] * l->a[j] + l->a[i] * la[j]);
    if (!look) gr_innovation_back(le, lV, la, lS);
    for (i = 0; i < GR_NY; i++)
      for (k = 0; k < GR_NY; k++)
        for (j = 0; j < GR_NM; j++) {
          lHP[i * GR_NM + j] += lS[i * GR_NY + k] * l->H[k * GR_NM + j];
          lH[i * GR_NM + j] += lS[i * GR_NY + k] * l->HP[k * GR_NM + j];
        }
    gr_add(GR_YY, lS, lR);
    gr_times(GR_NY, GR_NM, GR_NM, lHP, GR_NM, m->P, GR_NM, lH, GR_NM, 1);
    gr_transposed_times(GR_NM, GR_NY, GR_NM, l->H, GR_NM, lHP, GR_NM, lP, GR_NM);
    memset(point, 0, sizeof point);
    for (i = 0; i < GR_NY; i++) {
      lh[i] = mask[i] > 0.0 ? -la[i] : 0.0;
      if (look)
        for (j = 0; j < GR_NM; j++) {
          lH[i * GR_NM + j] -= la[i] * (s[j] - l->x[j]);
          point[j] += l->H[i * GR_NM + j] * la[i];
        }
      if (!(mask[i] > 0.0)) memset(lH + i * GR_NM, 0, sizeof(double) * GR_NM);
    }
    for (j = 0; j < GR_NM; j++) sum[j] -= point[j];
    gr_mask_noise_back(mask, scale, lR);
    gr_measure_reverse(t, l->x, l->z, u, q, mask, lh, lH, lR, lz, lx, before, own);
    memcpy(lz, before, sizeof(double) * GR_NZ);
    gr_add(GR_NM, point, lx);
    gr_add(GR_NQ, own, lq);
#if GR_NZ
    if (look) {
      gr_solve_step_reverse(t, l->x, m->looks[look - 1].solved, u, q, lz, point, before, own);
      memcpy(lz, before, sizeof(double) * GR_NZ);
      gr_add(GR_NM, point, lx);
      gr_add(GR_NQ, own, lq);
    }
#endif
    memset(lH, 0, sizeof lH);
    memset(lR, 0, sizeof lR);
  }
  /* the first look is at the mean itself */
  gr_add(GR_NM, lx, sum);
  memcpy(ls, sum, sizeof sum);
  memset(ls + GR_NM, 0, sizeof(double) * GR_HALF);
  gr_add_gathered(lP, ls + GR_NM);
  memcpy(ls + GR_NM + GR_HALF, lz, sizeof(double) * GR_NZ);
}

#endif
#endif
