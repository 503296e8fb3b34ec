/* Takes one step of the Radau IIA method with three stages: its nonlinear equations and its error.
 *
 *   M Z_i = h sum_j a_ij F(t + c_j h, y + Z_j),   i = 1, 2, 3,    y(t + h) = y + Z_3,    M = diag(I, 0),  y = (x, z)
 *
 * Order 5, stiffly accurate, L-stable. With A^-1 = T diag(g, [a -b; b a]) T^-1 and Z = T W, simplified Newton needs one
 * real and one complex matrix of the size of the model,
 *
 *   (g/h M - J) dW_1 = ...,     ((a + ib)/h M - J) (dW_2 + i dW_3) = ...
 *
 * (Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.8 and VI.1). Rows of z carry no 1/h, so
 * their residual is driven to zero at every stage.
 */
#ifndef GR_RADAU_H
#define GR_RADAU_H

#include "gr_radau_matrices.h"
#include "gr_radau_room.h"
#include "gr_signal.h"

#define GR_RADAU_C1 0.15505102572168219018
#define GR_RADAU_C2 0.64494897427831780982

#define GR_RADAU_T11 0.091232394870892942792
#define GR_RADAU_T12 (-0.14125529502095420843)
#define GR_RADAU_T13 (-0.030029194105147424492)
#define GR_RADAU_T21 0.24171793270710701896
#define GR_RADAU_T22 0.20412935229379993199
#define GR_RADAU_T23 0.38294211275726193779
#define GR_RADAU_T31 0.96604818261509293619 /* T32 = 1, T33 = 0 */

#define GR_RADAU_TI11 4.3255798900631553510
#define GR_RADAU_TI12 0.33919925181580986954
#define GR_RADAU_TI13 0.54177053993587487119
#define GR_RADAU_TI21 (-4.1787185915519047273)
#define GR_RADAU_TI22 (-0.32768282076106238708)
#define GR_RADAU_TI23 0.47662355450055045196
#define GR_RADAU_TI31 (-0.50287263494578687595)
#define GR_RADAU_TI32 2.5719269498556054292
#define GR_RADAU_TI33 (-0.59603920482822492497)

/* embedded formula of order 3: -(13 + 7 sqrt 6)/3, (-13 + 7 sqrt 6)/3, -1/3 */
#define GR_RADAU_E1 (-10.048809399827415944)
#define GR_RADAU_E2 1.3821427331607492039
#define GR_RADAU_E3 (-0.33333333333333333333)

/* Newton with the exact matrix that shrinks by less has come to rounding: of 12 V, beside an ideal diode's 1e-5 ohm */
#define GR_RADAU_STALLED 0.45
#define GR_RADAU_STALLED_BELOW 0.1
#define GR_RADAU_ONCE 1e-2 /* tolerances: an only iteration that may not have contracted moves by no more */

enum { GR_RADAU_CONVERGED = 0, GR_RADAU_SLOW = 1, GR_RADAU_DIVERGED = 2, GR_RADAU_BAD_VALUE = 3 };

GR_FN double gr_radau_node(long i) { return i == 0 ? GR_RADAU_C1 : i == 1 ? GR_RADAU_C2 : 1.0; }

GR_FN long gr_radau_largest(const double *v, long n) {
  long worst = 0;
  for (long i = 1; i < n; i++)
    if (fabs(v[i]) > fabs(v[worst])) worst = i;
  return worst;
}

/* weighted root mean square of `count` vectors of length GR_N */
GR_FN double gr_radau_rms(const double *v, const double *scale, long count) {
  double sum = 0.0;
  for (long j = 0; j < count; j++)
    for (long i = 0; i < GR_N; i++) {
      const double d = v[i + j * GR_N] / scale[i];
      sum += d * d;
    }
  return sqrt(sum / (double)(GR_LEN(GR_N) * count));
}

/* weights of Z_1, Z_2, Z_3 in the collocation polynomial at t + theta h */
GR_FN void gr_radau_collocation_weights(double theta, double *l) {
  const double c1 = GR_RADAU_C1, c2 = GR_RADAU_C2;
  l[0] = theta * (theta - c2) * (theta - 1.0) / (c1 * (c1 - c2) * (c1 - 1.0));
  l[1] = theta * (theta - c1) * (theta - 1.0) / (c2 * (c2 - c1) * (c2 - 1.0));
  l[2] = theta * (theta - c1) * (theta - c2) / ((1.0 - c1) * (1.0 - c2));
}

/* their derivatives */
GR_FN void gr_radau_collocation_slopes(double theta, double *l) {
  const double c1 = GR_RADAU_C1, c2 = GR_RADAU_C2, square = 3.0 * theta * theta;
  l[0] = (square - 2.0 * theta * (c2 + 1.0) + c2) / (c1 * (c1 - c2) * (c1 - 1.0));
  l[1] = (square - 2.0 * theta * (c1 + 1.0) + c1) / (c2 * (c2 - c1) * (c2 - 1.0));
  l[2] = (square - 2.0 * theta * (c1 + c2) + c1 * c2) / ((1.0 - c1) * (1.0 - c2));
}

GR_FN void gr_radau_to_W(const double *Z, double *W, long n) {
  for (long i = 0; i < n; i++) {
    const double a = Z[i], b = Z[i + n], c = Z[i + 2 * n];
    W[i] = GR_RADAU_TI11 * a + GR_RADAU_TI12 * b + GR_RADAU_TI13 * c;
    W[i + n] = GR_RADAU_TI21 * a + GR_RADAU_TI22 * b + GR_RADAU_TI23 * c;
    W[i + 2 * n] = GR_RADAU_TI31 * a + GR_RADAU_TI32 * b + GR_RADAU_TI33 * c;
  }
}

GR_FN void gr_radau_to_Z(const double *W, double *Z, long n) {
  for (long i = 0; i < n; i++) {
    const double a = W[i], b = W[i + n], c = W[i + 2 * n];
    Z[i] = GR_RADAU_T11 * a + GR_RADAU_T12 * b + GR_RADAU_T13 * c;
    Z[i + n] = GR_RADAU_T21 * a + GR_RADAU_T22 * b + GR_RADAU_T23 * c;
    Z[i + 2 * n] = GR_RADAU_T31 * a + b;
  }
}

/* the polynomial y_p + sum l_k Z_k of an earlier step, continued to the stages of the step (t, h) from y */
GR_FN void gr_radau_extrapolate(const gr_radau *s, double t, double h, const double *yp, const double *Zp,
                                const double *y, double *Z) {
  for (long k = 0; k < 3; k++) {
    double l[3];
    gr_radau_collocation_weights((t + gr_radau_node(k) * h - s->t_poly) / s->h_poly, l);
    for (long i = 0; i < GR_N; i++)
      Z[i + k * GR_N] = (yp[i] - y[i]) + l[0] * Zp[i] + l[1] * Zp[i + GR_N] + l[2] * Zp[i + 2 * GR_N];
  }
}

/* a polynomial must not be continued too far: a very short step says nothing about a long one */
GR_FN long gr_radau_predicts(const gr_radau *s, double h) { return h <= 10.0 * s->h_poly; }

/* start of Newton's iteration; without a polynomial the solution stands still */
GR_FN void gr_radau_predict(gr_radau_room *r, double t, double h) {
  if (gr_radau_predicts(r->s, h))
    gr_radau_extrapolate(r->s, t, h, r->poly_y, r->poly_Z, r->y, r->Z);
  else
    for (long i = 0; i < 3 * GR_N; i++) r->Z[i] = 0.0;
  gr_radau_to_W(r->Z, r->W, GR_N);
}

/* signals at the three stages; they do not change during the iteration */
GR_FN void gr_radau_stage_signals(const gr_task *k, gr_radau_room *r, double t, double h) {
  r->s->segment = gr_segment(k, t + 0.5 * h, r->s->segment);
  for (long i = 0; i < 3; i++) gr_signals_from(k, r->s->segment, t + gr_radau_node(i) * h, r->u + (i + 1) * GR_NU);
}

/* F at the stages into G; answers the first entry that is not finite, or -1 */
GR_FN long gr_radau_stage_values(gr_task *k, gr_radau_room *r, double t, double h) {
  for (long j = 0; j < 3; j++) {
    double *g = r->G + j * GR_N;
    for (long i = 0; i < GR_N; i++) r->stage[i] = r->y[i] + r->Z[i + j * GR_N];
    gr_F(t + gr_radau_node(j) * h, r->stage, r->stage + GR_NX, r->u + (j + 1) * GR_NU, k->p, g);
    const long bad = gr_not_finite(GR_N, g);
    if (bad >= 0) return bad;
  }
  k->evaluations += 3;
  return -1;
}

/* G: values g(Z) at the stages -> Newton's update of W for M Z = h A g(Z) */
GR_FN void gr_radau_transformed_solve(const gr_radau_room *r, double h, const double *W, double *G) {
  const double g = GR_RADAU_EIG_G / h, a = GR_RADAU_EIG_A / h, b = GR_RADAU_EIG_B / h;
  gr_radau_to_W(G, G, GR_N);
  for (long i = 0; i < GR_NX; i++) {
    G[i] -= g * W[i];
    G[i + GR_N] -= a * W[i + GR_N] - b * W[i + 2 * GR_N];
    G[i + 2 * GR_N] -= b * W[i + GR_N] + a * W[i + 2 * GR_N];
  }
  gr_radau_solve_real(r, G);
  gr_radau_solve_complex(r, G + GR_N, G + 2 * GR_N);
}

GR_FN void gr_radau_add_update(double *W, double *Z, const double *G) {
  for (long i = 0; i < 3 * GR_N; i++) W[i] += G[i];
  gr_radau_to_Z(W, Z, GR_N);
}

/* Simplified Newton until the error of Z is below kappa in the weighted norm. Gives up as soon as the observed
 * contraction says that `limit` iterations will not do; *shrink then says by how much a shorter step would. How earlier
 * steps contracted tells whether one iteration is enough, unless there are pieces: on the next one it says nothing. */
GR_FN long gr_radau_iterate(gr_task *k, gr_radau_room *r, double t, double h, double kappa, long limit,
                            double *shrink) {
  gr_radau *s = r->s;
  double rate = pow(s->rate > DBL_EPSILON ? s->rate : DBL_EPSILON, 0.8), old = 0.0, old_quotient = 0.0;
  s->theta = 1e-3;
  *shrink = 0.5;
  for (long m = 1; m <= limit; m++) {
    const long bad = gr_radau_stage_values(k, r, t, h);
    if (bad >= 0) {
      k->where = bad;
      return GR_RADAU_BAD_VALUE;
    }
    gr_radau_transformed_solve(r, h, r->W, r->G);
    k->newton_iterations++;
    const double size = gr_radau_rms(r->G, r->scale, 3);
    if (!(size <= DBL_MAX)) return GR_RADAU_DIVERGED;
    if (m > 1 && m < limit) {
      const double quotient = size / old;
      s->theta = m == 2 ? quotient : sqrt(quotient * old_quotient);
      old_quotient = quotient;
      if (!(s->theta < 0.99)) return GR_RADAU_DIVERGED;
      rate = s->theta / (1.0 - s->theta);
      const double left = (double)(limit - 1 - m), miss = rate * size * pow(s->theta, left) / kappa;
      if (miss >= 1.0) {
        *shrink = 0.8 * pow(miss > 20.0 ? 20.0 : miss, -1.0 / (4.0 + left));
        return GR_RADAU_SLOW;
      }
    }
    old = size > DBL_EPSILON ? size : DBL_EPSILON;
    gr_radau_add_update(r->W, r->Z, r->G);
    s->rate = rate;
#if GR_HAS_SIDES
    if (m == 1 && size > GR_RADAU_ONCE) continue;
#endif
    if (rate * size <= kappa) return GR_RADAU_CONVERGED;
  }
  return GR_RADAU_DIVERGED;
}

/* Jacobians at the stages */
GR_FN void gr_radau_stage_jacobians(gr_task *k, gr_radau_room *r, double t, double h) {
  for (long j = 0; j < 3; j++) {
    for (long i = 0; i < GR_N; i++) r->stage[i] = r->y[i] + r->Z[i + j * GR_N];
    gr_J(t + gr_radau_node(j) * h, r->stage, r->stage + GR_NX, r->u + (j + 1) * GR_NU, k->p, r->jacs + j * GR_J_SIZE);
  }
  k->jacobians += 3;
}

/* G: values at the stages -> values - A^-1/h (x) M Z */
GR_FN void gr_radau_stage_residual(const double *Z, double *G, double h) {
  for (long b = 0; b < 3; b++)
    for (long c = 0; c < 3; c++) {
      const double a = gr_radau_inverse_entry(b, c) / h;
      for (long i = 0; i < GR_NX; i++) G[b * GR_N + i] -= a * Z[c * GR_N + i];
    }
}

/* Did an update of size `size` after one of size `old` end in rounding? Sizes are relative to the solution. The next
 * update would be size^2 / old if the iteration contracts linearly, and smaller if it does better. */
GR_FN long gr_radau_at_rounding(double size, double old) {
  return size <= 2e-16 || (old < DBL_MAX && size * size <= 1e-16 * old) || (size <= 1e-10 && size > 0.3 * old);
}

/* F - A^-1/h (x) M Z at the stages into G, solved with the factored whole matrix; answers the size of this correction,
 * or a negative number where F is not finite */
GR_FN double gr_radau_correction(gr_task *k, gr_radau_room *r, double t, double h) {
  const long bad = gr_radau_stage_values(k, r, t, h);
  if (bad >= 0) {
    k->where = bad;
    return -1.0;
  }
  gr_radau_stage_residual(r->Z, r->G, h);
  k->where = gr_radau_largest(r->G, 3 * GR_N) % GR_LEN(GR_N);
  gr_radau_solve_whole(r, r->G);
  k->newton_iterations++;
  return gr_radau_rms(r->G, r->scale, 3);
}

#if GR_HAS_SIDES
/* gaps of all switches at the stages, one after the other */
GR_APART void gr_radau_stage_gaps(const gr_task *k, const gr_radau_room *r, double t, double h, const double *Z,
                                  double *gaps) {
  for (long j = 0; j < 3; j++) {
    for (long i = 0; i < GR_N; i++) r->stage[i] = r->y[i] + Z[i + j * GR_N];
    gr_S(t + gr_radau_node(j) * h, r->stage, r->stage + GR_NX, r->u + (j + 1) * GR_NU, k->p, gaps + j * GR_SIDES);
  }
}

/* r->base + share r->W, updates of all stages */
typedef struct {
  const gr_task *k;
  const gr_radau_room *r;
  double t, h;
} gr_line_stages;

GR_COLD void gr_line_stages_gaps(const void *line, double share, double *gaps) {
  const gr_line_stages *l = (const gr_line_stages *)line;
  for (long i = 0; i < 3 * GR_N; i++) l->r->Z[i] = l->r->base[i] + share * l->r->W[i];
  gr_radau_stage_gaps(l->k, l->r, l->t, l->h, l->r->Z, gaps);
}
#endif

/* Newton with the exact 3n x 3n matrix, where the simplified iteration does not contract: to rounding, or until a
 * correction is below `enough` in units of r->scale. A correction (kept in W) ends just beyond the first switch that one
 * of the stages passes, and is halved until the next one with the same matrix would be smaller: Deuflhard's natural
 * monotonicity. */
GR_COLD long gr_radau_iterate_whole(gr_task *k, gr_radau_room *r, double t, double h, double enough) {
  double old = DBL_MAX, trial, share = 1.0;
  for (long m = 0; m < 50; m++) {
    double reach = 1.0;
    gr_radau_stage_jacobians(k, r, t, h);
    if (gr_radau_factor_whole(k, r, h)) return GR_RADAU_DIVERGED;
    const double size = gr_radau_correction(k, r, t, h);
    if (size < 0.0) return GR_RADAU_BAD_VALUE;
    if (!(size <= DBL_MAX)) return GR_RADAU_DIVERGED;
    for (long i = 0; i < 3 * GR_N; i++) r->W[i] = r->G[i];
    for (long i = 0; i < 3 * GR_N; i++) r->base[i] = r->Z[i];
#if GR_HAS_SIDES
    const gr_line_stages line = {k, r, t, h};
    reach = gr_reach(&line, gr_line_stages_gaps, 3 * GR_SIDES);
#endif
    const long stays = reach == 1.0 || size > 0.3 * old;
    const long stalls = enough > 0.0 && reach == 1.0 && size > GR_RADAU_STALLED * old && size <= GR_RADAU_STALLED_BELOW;
    if ((stays && (size <= enough || gr_radau_at_rounding(size, old))) || (enough == 0.0 && size <= 1e-13) || stalls) {
      for (long i = 0; i < 3 * GR_N; i++) r->Z[i] = r->base[i] + r->W[i];
      return GR_RADAU_CONVERGED;
    }
    for (share = fmin(1.0, 4.0 * share);; share *= 0.5) {
      const double part = share * reach;
      if (share < 1e-4) return GR_RADAU_DIVERGED;
      for (long i = 0; i < 3 * GR_N; i++) r->Z[i] = r->base[i] + part * r->W[i];
      trial = gr_radau_correction(k, r, t, h);
      if (trial >= 0.0 && (trial <= (1.0 - 0.25 * part) * size * (1.0 + 1e-9) || trial <= 1e-12)) break;
    }
    old = size;
  }
  return GR_RADAU_DIVERGED;
}

/* For steps that pass a bend: the Jacobian of the start does not contract there, or contracts to no solution. */
GR_COLD long gr_radau_iterate_across(gr_task *k, gr_radau_room *r, double t, double h, double kappa) {
  const long outcome = gr_radau_iterate_whole(k, r, t, h, kappa);
  if (outcome != GR_RADAU_CONVERGED) return GR_RADAU_DIVERGED;
  gr_radau_to_W(r->Z, r->W, GR_N);
  r->s->theta = 1.0;
  return GR_RADAU_CONVERGED;
}

/* Simplified Newton to rounding; r->scale must be the size of the solution, not a tolerance. *strained: it did not
 * contract by a half, as the Jacobian of the start makes it near one root. */
GR_FN long gr_radau_iterate_exact(gr_task *k, gr_radau_room *r, double t, double h, long *strained) {
  double old = DBL_MAX;
  *strained = 0;
  for (long m = 0; m < 50; m++) {
    if (gr_radau_stage_values(k, r, t, h) >= 0) break;
    gr_radau_transformed_solve(r, h, r->W, r->G);
    k->newton_iterations++;
    const double size = gr_radau_rms(r->G, r->scale, 3);
    if (!(size <= DBL_MAX) || (m > 1 && size > 0.9 * old && size > 1e-10)) break;
    if (size > 0.5 * old && size > 1e-7) *strained = 1;
    gr_radau_add_update(r->W, r->Z, r->G);
    if (gr_radau_at_rounding(size, old)) return GR_RADAU_CONVERGED;
    old = size;
  }
  *strained = 1;
  gr_radau_predict(r, t, h);
  if (gr_radau_stage_values(k, r, t, h) >= 0)
    for (long i = 0; i < 3 * GR_N; i++) r->Z[i] = 0.0;
  return gr_radau_iterate_whole(k, r, t, h, 0.0);
}

/* (g/h M - J)^-1 M (F + (e_1 Z_1 + e_2 Z_2 + e_3 Z_3)/h), F given in `error`. Its rows of z are what Newton left, which
 * the step does not feel; the error of z is what that of x makes of it. */
GR_FN void gr_radau_filtered_error(const gr_radau_room *r) {
  for (long i = 0; i < GR_NX; i++) r->error[i] += r->lift[i];
  for (long i = GR_NX; i < GR_N; i++) r->error[i] = 0.0;
  gr_radau_solve_real(r, r->error);
}

/* The scaled embedded error; with `again`, filtered a second time where it is above one, which removes the overestimate
 * of stiff components on the first step and after a rejection. */
GR_FN double gr_radau_error(gr_task *k, gr_radau_room *r, double t, double h, long again) {
  for (long i = 0; i < GR_NX; i++)
    r->lift[i] = (GR_RADAU_E1 * r->Z[i] + GR_RADAU_E2 * r->Z[i + GR_N] + GR_RADAU_E3 * r->Z[i + 2 * GR_N]) / h;
  for (long i = 0; i < GR_N; i++) r->error[i] = r->f[i];
  gr_radau_filtered_error(r);
  double size = gr_radau_rms(r->error, r->scale, 1);
  if (again && size >= 1.0) {
    for (long i = 0; i < GR_N; i++) r->stage[i] = r->y[i] + r->error[i];
#if GR_HAS_SIDES
    /* beyond a switch F of the other side would make a jump look like the stiffness that is filtered */
    double here[GR_SIDES], there[GR_SIDES];
    gr_S(t, r->y, r->y + GR_NX, r->u, k->p, here);
    gr_S(t, r->stage, r->stage + GR_NX, r->u, k->p, there);
    if (gr_have_changed(GR_SIDES, here, there)) return size <= DBL_MAX ? size : DBL_MAX;
#endif
    gr_F(t, r->stage, r->stage + GR_NX, r->u, k->p, r->error);
    k->evaluations++;
    if (gr_not_finite(GR_N, r->error) < 0) {
      gr_radau_filtered_error(r);
      size = gr_radau_rms(r->error, r->scale, 1);
    }
  }
  return size > 1e-10 ? size : size <= 1e-10 ? 1e-10 : DBL_MAX;
}

#endif
