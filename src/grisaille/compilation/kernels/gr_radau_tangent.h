/* Sensitivities of one Radau IIA step: the derivative of the step that was taken, with its length held fixed.
 *
 *   M V_i = h sum_j a_ij (J_j (S + V_j) + dF/dp_j dp),     S(t + h) = S + V_3,
 *
 * linear, with the Jacobians at the three stages. The matrices factored for Newton's iteration serve here as well: the
 * iteration contracts as Newton's did. Where it does not, or where it would cost more, the 3n x 3n system is factored.
 */
#ifndef GR_RADAU_TANGENT_H
#define GR_RADAU_TANGENT_H

#include "gr_radau.h"

#if GR_SENSITIVE

/* fp holds dF/dp at some point; its product with every direction goes to out + d * stride */
GR_FN void gr_radau_seed(const gr_task *k, const double *fp, double *out, long stride) {
  for (long d = 0; d < k->ns; d++) {
    double *b = out + d * stride;
    GR_ALONG_P(FP, GR_N, fp, 0, GR_N, k->dp + d * GR_NP, b);
  }
}

GR_FN void gr_radau_stage_seeds(const gr_task *k, gr_radau_room *r, double t, double h) {
  for (long j = 0; j < 3; j++) {
    for (long i = 0; i < GR_N; i++) r->stage[i] = r->y[i] + r->Z[i + j * GR_N];
    gr_FP(t + gr_radau_node(j) * h, r->stage, r->stage + GR_NX, r->u + (j + 1) * GR_NU, k->p, r->fp);
    gr_radau_seed(k, r->fp, r->B + j * GR_N, 3 * GR_N);
  }
}

/* J_j (S + V_j) + B_j at the stages */
GR_FN void gr_radau_tangent_values(gr_radau_room *r, const double *S, const double *V, const double *B, double *out) {
  for (long j = 0; j < 3; j++) {
    for (long i = 0; i < GR_N; i++) r->stage[i] = S[i] + V[i + j * GR_N];
    gr_radau_apply(r->jacs + j * GR_J_SIZE, r->stage, B + j * GR_N, out + j * GR_N);
  }
}

/* one direction with the matrices of Newton's iteration; answers 0 when it does not converge */
GR_FN long gr_radau_tangent_iterate(gr_radau_room *r, const double *S, double *V, const double *B, double h,
                                    double tolerance) {
  double old = DBL_MAX;
  const double start = gr_radau_rms(S, r->scale, 1);
  gr_radau_to_W(V, r->W, GR_N);
  for (long m = 0; m < 15; m++) {
    gr_radau_tangent_values(r, S, V, B, r->G);
    gr_radau_transformed_solve(r, h, r->W, r->G);
    const double size = gr_radau_rms(r->G, r->scale, 3), whole = start + gr_radau_rms(V, r->scale, 3);
    if (!(size <= DBL_MAX) || (m > 0 && size > 0.3 * old && size > 1e-13 * whole)) return 0;
    gr_radau_add_update(r->W, V, r->G);
    if (size <= tolerance * whole) return 1;
    old = size;
  }
  return 0;
}

/* all directions with the exact matrix */
GR_FN long gr_radau_tangent_direct(gr_task *k, gr_radau_room *r, double h) {
  if (gr_radau_factor_whole(k, r, h)) return 0;
  for (long d = 0; d < k->ns; d++) {
    double *V = r->V + d * 3 * GR_N;
    for (long i = 0; i < 3 * GR_N; i++) r->G[i] = 0.0;
    gr_radau_tangent_values(r, r->S + d * GR_N, r->G, r->B + d * 3 * GR_N, V);
    gr_radau_solve_whole(r, V);
  }
  return 1;
}

/* V for all directions; answers 0 when the exact matrix is singular. `expected`: iterations that the other way may
 * need. One LU of the whole costs 18 n^3 and 18 n^2 per direction, one iteration 16 n^2 per direction; sparse ones cost
 * about as much as fifteen iterations, and one and a half per direction. */
GR_FN long gr_radau_tangent(gr_task *k, gr_radau_room *r, double t, double h, double tolerance, long expected) {
  gr_radau_stage_jacobians(k, r, t, h);
  gr_radau_stage_seeds(k, r, t, h);
#if GR_SPARSE
  long direct = 30 + 3 * k->ns < 2 * expected * k->ns;
#else
  long direct = 18 * (GR_N + k->ns) < 16 * expected * k->ns;
#endif
  for (long d = 0; d < k->ns && !direct; d++) {
    double *V = r->V + d * 3 * GR_N;
    const double *S = r->S + d * GR_N;
    if (gr_radau_predicts(r->s, h))
      gr_radau_extrapolate(r->s, t, h, r->poly_S + d * GR_N, r->poly_V + d * 3 * GR_N, S, V);
    else
      for (long i = 0; i < 3 * GR_N; i++) V[i] = 0.0;
    direct = !gr_radau_tangent_iterate(r, S, V, r->B + d * 3 * GR_N, h, tolerance);
  }
  return direct ? gr_radau_tangent_direct(k, r, h) : 1;
}

/* derivative of F at the end of the step, from the last stage */
GR_FN void gr_radau_tangent_slope(const gr_task *k, gr_radau_room *r) {
  for (long d = 0; d < k->ns; d++) {
    const double *V = r->V + d * 3 * GR_N + 2 * GR_N, *S = r->S + d * GR_N;
    for (long i = 0; i < GR_N; i++) r->stage[i] = S[i] + V[i];
    gr_radau_apply(r->jacs + 2 * GR_J_SIZE, r->stage, r->B + d * 3 * GR_N + 2 * GR_N, r->slope_S + d * GR_N);
  }
}

/* derivative of F at (t, y), from r->jac */
GR_FN void gr_radau_tangent_here(const gr_task *k, gr_radau_room *r, double t) {
  gr_FP(t, r->y, r->y + GR_NX, r->u, k->p, r->fp);
  gr_radau_seed(k, r->fp, r->B, 3 * GR_N);
  for (long d = 0; d < k->ns; d++) gr_radau_apply(r->jac, r->S + d * GR_N, r->B + d * 3 * GR_N, r->SF + d * GR_N);
}

#endif
#endif
