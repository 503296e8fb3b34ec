/* Computes sensitivities of one Radau IIA step: the derivative of the step that was taken, with its length held fixed.
 *
 *   M V_i = h sum_j a_ij (J_j (S + V_j) + dF/dp_j dp),     S(t + h) = S + V_3,
 *
 * linear, with the Jacobians at the three stages. The matrices factored for Newton's iteration serve here as well: the
 * iteration contracts as Newton's did. Where it does not, or where it would cost more, the 3n x 3n system is factored.
 */
#ifndef GR_RADAU_TANGENT_H
#define GR_RADAU_TANGENT_H

#include "gr_bend_tangents.h"
#include "gr_radau.h"
#include "gr_radau_dense.h"

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

#if GR_HAS_BENDS
/* the Jacobian at a share of a step of length h and dF/dp there for all directions, 3 N apart */
GR_COLD void gr_radau_tangent_inside(const gr_radau_span *a, double share, double *jac, double *B) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  const double t = a->k->t + share * a->h;
  gr_radau_bend_inside(a, share, x, z, u);
  gr_J(t, x, z, u, a->k->p, jac);
  gr_FP(t, x, z, u, a->k->p, a->r->fp);
  gr_radau_seed(a->k, a->r->fp, B, 3 * GR_N);
  a->k->jacobians++;
}

/* what gr_tangent_upto asks for; V and the Jacobians of the stages are found anew after it */
GR_COLD const double *gr_radau_tangent_rate(void *run, double share, long slot) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  gr_radau_room *r = a->r;
  double *jac = r->jacs + (slot - 1) * GR_J_SIZE, *out = r->V + (slot - 1) * a->k->ns * GR_N;
  gr_radau_tangent_inside(a, share, jac, r->B);
  for (long d = 0; d < a->k->ns; d++) gr_radau_apply(jac, r->S + d * GR_N, r->B + d * 3 * GR_N, out + d * GR_N);
  return out;
}

#endif

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

#if GR_HAS_BENDS
/* V of a frozen step over bends: in pieces that end at them. Answers 0 when a matrix is singular. */
GR_COLD long gr_radau_tangent_pieces(const gr_radau_span *a, const gr_bend_list *l) {
  gr_radau_room *r = a->r;
  const long all = a->k->ns * GR_N;
  double from = 0.0;
  long solved = 1;
  for (long i = 0; i < all; i++) r->slope_S[i] = r->S[i];
  for (long j = 0; j <= l->n && solved; j++) {
    const double to = j < l->n ? l->at[j] : 1.0;
    if (!(to > from)) continue;
    for (long c = 0; c < 3; c++) {
      const double node = c < 2 ? gr_radau_node(c) : 1.0 - GR_TANGENT_ASIDE;
      gr_radau_tangent_inside(a, from + node * (to - from), r->jacs + c * GR_J_SIZE, r->B + c * GR_N);
    }
    solved = gr_radau_tangent_direct(a->k, r, (to - from) * a->h);
    for (long d = 0; d < a->k->ns && solved; d++)
      for (long i = 0; i < GR_N; i++) r->S[i + d * GR_N] += r->V[i + (3 * d + 2) * GR_N];
    from = to;
  }
  for (long d = 0; d < a->k->ns; d++)
    for (long i = 0; i < GR_N; i++) {
      const double start = r->slope_S[i + d * GR_N], whole = r->S[i + d * GR_N] - start;
      for (long c = 0; c < 3; c++) r->V[i + (3 * d + c) * GR_N] = gr_radau_node(c) * whole;
      r->S[i + d * GR_N] = start;
    }
  return solved;
}
#endif

/* V for all directions; answers 0 when the exact matrix is singular. `expected`: iterations that the other way may
 * need. One LU of the whole costs 18 n^3 and 18 n^2 per direction, one iteration 16 n^2 per direction; sparse ones cost
 * about as much as fifteen iterations, and one and a half per direction. */
GR_FN long gr_radau_tangent(gr_task *k, gr_radau_room *r, double t, double h, double tolerance, long expected) {
#if GR_HAS_BENDS
  gr_radau_span a = {k, r, h};
  const gr_span s = {k, &a, h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_radau_bend_inside, 0, 0};
  gr_tangent tangent = {gr_radau_tangent_rate, r->S, GR_N, GR_N, 0};
  gr_bend_list bends;
  if (k->fixed_step > 0.0 && gr_lists_bends(&s, 1.0, &bends) && gr_tangent_upto(&s, &tangent, &bends) < 1.0)
    return gr_radau_tangent_pieces(&a, &bends);
  const long on_bend = gr_tangent_bends_at(&s, &tangent, 1.0);
#endif
  gr_radau_stage_jacobians(k, r, t, h);
  gr_radau_stage_seeds(k, r, t, h);
#if GR_HAS_BENDS
  if (on_bend) /* the last stage takes dF from inside the step */
    gr_radau_tangent_inside(&a, 1.0 - GR_TANGENT_ASIDE, r->jacs + 2 * GR_J_SIZE, r->B + 2 * GR_N);
#endif
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
