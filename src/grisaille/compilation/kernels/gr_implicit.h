/* Integrates stiff and differential-algebraic systems by Radau IIA of order 5, with error control or with frozen steps.
 *
 *   x' = F_x(t, x, z, u, p),   0 = F_z(t, x, z, u, p),   0 = C(t, x, u, p) kept by projection after every step
 *
 * gr_radau.h holds one step, gr_radau_control.h its length, gr_radau_dense.h the values inside it, gr_radau_tangent.h
 * its derivative. Here they become a run: attempts, acceptance, rows, kinks. The Jacobian is kept while Newton's
 * iteration contracts by 1e-3; the polynomial of the last step predicts the stages of the next, except across a kink.
 *
 * Reference: Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.8 and VI.1.
 */
#ifndef GR_IMPLICIT_H
#define GR_IMPLICIT_H

#include "gr_bends.h"
#include "gr_change.h"
#include "gr_events.h"
#include "gr_output.h"
#include "gr_radau.h"
#include "gr_radau_control.h"
#include "gr_radau_dense.h"
#include "gr_radau_tangent.h"

#define GR_RADAU_SINGULAR_TRIES 6
#ifndef GR_RADAU_MISSED
#define GR_RADAU_MISSED 1.0 /* tolerances that a step may miss at bends */
#endif
#define GR_RADAU_CRAWLS 1e-11 /* of the run: steps so short look whether the branch of z ends */

GR_API long gr_implicit_work(long ns) {
  gr_radau_room r;
  return gr_radau_lay_out(0, ns, &r);
}

GR_FN void gr_radau_copy(double *to, const double *from, long n) {
  for (long i = 0; i < n; i++) to[i] = from[i];
}

/* ---- the point at the start of a step ---- */

GR_FN void gr_radau_load(const gr_task *k, gr_radau_room *r) {
  gr_radau_copy(r->y, k->x, GR_NX);
  gr_radau_copy(r->y + GR_NX, k->z, GR_NZ);
  for (long d = 0; d < k->ns; d++) {
    gr_radau_copy(r->S + d * GR_N, k->sx + d * GR_NX, GR_NX);
    gr_radau_copy(r->S + d * GR_N + GR_NX, k->sz + d * GR_NZ, GR_NZ);
  }
}

GR_FN void gr_radau_store(gr_task *k, const gr_radau_room *r) {
  gr_radau_copy(k->x, r->y, GR_NX);
  gr_radau_copy(k->z, r->y + GR_NX, GR_NZ);
  for (long d = 0; d < k->ns; d++) {
    gr_radau_copy(k->sx + d * GR_NX, r->S + d * GR_N, GR_NX);
    gr_radau_copy(k->sz + d * GR_NZ, r->S + d * GR_N + GR_NX, GR_NZ);
  }
}

/* jac is that of (t, y) now */
GR_FN void gr_radau_new_jacobian(const gr_task *k, gr_radau_room *r) {
  r->s->jacobian_here = 1;
  r->s->h_factored = 0.0;
#if GR_HAS_SIDES
  gr_S(k->t, r->y, r->y + GR_NX, r->u, k->p, r->gaps);
  r->s->gaps_known = 1;
#else
  (void)k;
#endif
}

GR_FN void gr_radau_jacobian_here(gr_task *k, gr_radau_room *r) {
  gr_J(k->t, r->y, r->y + GR_NX, r->u, k->p, r->jac);
  k->jacobians++;
  gr_radau_new_jacobian(k, r);
}

/* derivative of F at the start of a step */
GR_FN void gr_radau_slope_sensitivities(gr_task *k, gr_radau_room *r) {
#if GR_SENSITIVE
  if (k->ns == 0) return;
  if (!r->s->jacobian_here) gr_radau_jacobian_here(k, r);
  gr_radau_tangent_here(k, r, k->t);
#else
  (void)k;
  (void)r;
#endif
}

/* x onto the constraints, z onto its equations with signals from the right, sensitivities likewise; F comes with it.
 * known: r->y is the point with signals from the left. */
GR_FN long gr_radau_settle(gr_task *k, gr_radau_room *r, long known) {
  gr_newton newton = gr_newton_in(r->newton);
  gr_projection projection = gr_projection_in(r->projection);
  newton.valid = r->s->z_valid;
  gr_signals(k, k->t, k->t, r->u);
  const gr_anchor before = {k->t, r->y, r->y + GR_NX, r->s->segment};
  long status = gr_project(k, &projection, k->t, k->x, k->z, r->u);
  if (!status && known) {
    double u_before[GR_LEN(GR_NU)];
    const gr_equations old = {k->x, u_before, k->p};
    gr_signals_from(k, r->s->segment, k->t, u_before);
    status = gr_solve_changed(k, &newton, &before, &old, k->t, k->x, k->z, r->u);
  } else if (!status) {
    status = gr_solve_implicit(k, &newton, 0, k->t, k->x, k->z, r->u);
  }
  r->s->z_valid = newton.valid;
  if (status) return status;
  gr_radau_copy(r->f, newton.f, GR_N);
#if GR_SENSITIVE
  if (k->ns > 0) {
    gr_project_sensitivity(k, &projection, k->t, k->x, k->z, r->u, k->sx);
    status = gr_complete_sensitivity(k, &newton, k->t, k->x, k->z, r->u, k->sx, k->sz, r->emit);
    if (status) return status;
  }
#endif
  gr_radau_load(k, r);
#if GR_SENSITIVE
  if (k->ns > 0 && GR_NZ > 0) {
    gr_radau_copy(r->jac, newton.jac, GR_J_SIZE);
    gr_radau_new_jacobian(k, r);
    r->s->z_valid = 1;
  }
#endif
  return GR_DONE;
}

/* ---- rows ---- */

GR_FN long gr_radau_row(gr_task *k, gr_radau_room *r, const gr_anchor *from, double t, double inside) {
  gr_newton newton = gr_newton_in(r->newton);
  gr_projection projection = gr_projection_in(r->projection);
  newton.valid = r->s->z_valid;
  const long status =
      gr_emit(k, &newton, &projection, from, t, inside, r->row_x, r->row_z, r->row_sx, r->row_sz, r->emit);
  r->s->z_valid = newton.valid;
  return status;
}

/* rows at the current point */
GR_FN long gr_radau_rows_here(gr_task *k, gr_radau_room *r) {
  while (gr_row_at(k, k->t)) {
    gr_radau_copy(r->row_x, k->x, GR_NX);
    gr_radau_copy(r->row_z, k->z, GR_NZ);
    gr_radau_copy(r->row_sx, k->sx, GR_NX * k->ns);
    gr_radau_copy(r->row_sz, k->sz, GR_NZ * k->ns);
    const gr_anchor here = {k->t, k->x, k->z, gr_segment(k, k->t, r->s->segment)};
    const long status = gr_radau_row(k, r, &here, k->t, k->t);
    if (status) return status;
  }
  return GR_DONE;
}

/* one row inside the step, at t + s h */
GR_FN long gr_radau_row_inside(gr_task *k, gr_radau_room *r, double h, double s) {
  gr_radau_interpolate(r, h, s, r->row_x);
  gr_radau_guess_z(r, s, r->row_z);
  double w[6];
  gr_radau_quintic(s, r->s->h_previous / h, w);
  for (long d = 0; d < k->ns; d++) {
    const long at = d * GR_N;
    for (long i = 0; i < GR_NX; i++) r->stage[i] = r->S[at + i] + r->V[3 * at + 2 * GR_N + i];
    gr_radau_mix(w, h, r->S + at, r->SF + at, r->stage, r->slope_S + at, r->previous_S + at, r->previous_SF + at,
                 r->row_sx + d * GR_NX);
  }
  const gr_anchor start = {k->t, r->y, r->y + GR_NX, r->s->segment};
  const gr_anchor end = {k->t + h, r->end, r->end + GR_NX, r->s->segment};
  return gr_radau_row(k, r, s < 0.5 ? &start : &end, k->times[k->written], k->t + 0.5 * h);
}

/* ---- one step: from a converged iteration to the next start ---- */

/* the polynomial of this step predicts the stages of the next */
GR_FN void gr_radau_remember_polynomial(const gr_task *k, gr_radau_room *r, double h) {
  r->s->t_poly = k->t;
  r->s->h_poly = h;
  gr_radau_copy(r->poly_y, r->y, GR_N);
  gr_radau_copy(r->poly_Z, r->Z, 3 * GR_N);
  gr_radau_copy(r->poly_S, r->S, GR_N * k->ns);
  gr_radau_copy(r->poly_V, r->V, 3 * GR_N * k->ns);
}

/* F at the end of the step; answers the first entry that is not finite, or -1 */
GR_FN long gr_radau_finish(gr_task *k, gr_radau_room *r, double t, double h) {
  for (long i = 0; i < GR_N; i++) r->end[i] = r->y[i] + r->Z[i + 2 * GR_N];
  gr_F(t + h, r->end, r->end + GR_NX, r->u + 3 * GR_NU, k->p, r->slope);
  k->evaluations++;
  return gr_not_finite(GR_N, r->slope);
}

GR_FN void gr_radau_advance_sensitivities(const gr_task *k, gr_radau_room *r) {
  const long all = GR_N * k->ns;
  gr_radau_copy(r->previous_S, r->S, all);
  gr_radau_copy(r->previous_SF, r->SF, all);
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_N; i++) r->S[i + d * GR_N] += r->V[i + 2 * GR_N + d * 3 * GR_N];
  gr_radau_copy(r->SF, r->slope_S, all);
}

/* With sensitivities the Jacobian of the last stage is there for nothing: it serves the next step if the old one is
 * worn. */
GR_FN void gr_radau_reuse_jacobian(const gr_task *k, gr_radau_room *r) {
  r->s->jacobian_here = 0;
  if (k->ns == 0 || (r->s->theta <= GR_RADAU_KEEP_JACOBIAN && !(k->fixed_step > 0.0))) return;
  gr_radau_copy(r->jac, r->jacs + 2 * GR_J_SIZE, GR_J_SIZE);
  gr_radau_new_jacobian(k, r);
}

#if GR_HAS_E
/* the modes at the current point are others than before: F, and nothing continues smoothly */
GR_COLD long gr_radau_changed(gr_task *k, gr_radau_room *r, const gr_newton *newton) {
  gr_radau *s = r->s;
  gr_radau_copy(r->f, newton->f, GR_N);
#if GR_SENSITIVE
  if (k->ns > 0) {
    gr_newton fresh = *newton;
    long status = gr_complete_sensitivity(k, &fresh, k->t, k->x, k->z, r->u, k->sx, k->sz, r->emit);
    if (status) return status;
  }
#endif
  gr_radau_load(k, r);
  s->h_previous = s->h_poly = s->h_factored = 0.0;
  s->jacobian_here = s->z_valid = s->gaps_known = 0;
  s->first = 1;
  s->theta = 1.0;
  gr_radau_slope_sensitivities(k, r);
  return GR_DONE;
}

GR_COLD long gr_radau_happen(gr_task *k, gr_radau_room *r, const gr_event *event) {
  gr_newton newton = gr_newton_in(r->newton);
  gr_radau_copy(newton.f, r->f, GR_N);
  const long status = gr_happen(k, &newton, event, k->x, k->z, r->u, r->emit);
  for (long i = 0; i < GR_NX; i++) gr_slip(k)[i] = 0.0;
  r->s->happened = 1.0;
  r->s->part = r->s->parts; /* the rest of a frozen stretch is cut anew */
  return status ? status : gr_radau_changed(k, r, &newton);
}

/* steps have become too short right after an event */
GR_COLD long gr_radau_accumulate(gr_task *k, gr_radau_room *r) {
  gr_newton newton = gr_newton_in(r->newton);
  if (!gr_join(k, &newton, k->x, k->z, r->u)) return gr_fail(k, GR_ACCUMULATES, -1, (double)(k->at_once + 1));
  r->s->h = 1e-6 * (k->t1 - k->t0);
  return gr_radau_changed(k, r, &newton);
}

GR_COLD long gr_radau_modes_at_kink(gr_task *k, gr_radau_room *r, long before) {
  gr_newton newton = gr_newton_in(r->newton);
  double u_before[GR_LEN(GR_NU)];
  gr_signals_from(k, before, k->t, u_before);
  const long status = gr_modes_at_kink(k, &newton, k->x, k->z, u_before, r->u, r->emit);
  r->s->happened = (double)gr_is_moving(k, k->dt);
  return status ? status : gr_radau_changed(k, r, &newton);
}
#endif

/* the end of the step becomes the start of the next one, at time t; steps may be joined smoothly unless t is a kink */
GR_FN long gr_radau_arrive(gr_task *k, gr_radau_room *r, double t, double h) {
  gr_radau *s = r->s;
  const long kink = t >= s->kink;
  gr_radau_remember_polynomial(k, r, h);
  gr_radau_copy(r->previous_y, r->y, GR_N);
  gr_radau_copy(r->previous_f, r->f, GR_N);
  gr_radau_copy(r->previous_d, r->third, GR_N);
  gr_radau_copy(r->y, r->end, GR_N);
  gr_radau_copy(r->f, r->slope, GR_N);
  gr_radau_copy(r->u, r->u + 3 * GR_NU, GR_NU);
  gr_radau_advance_sensitivities(k, r);
  s->h_previous = kink ? 0.0 : h;
  if (kink) s->h_poly = 0.0;
  s->first = kink;
  s->rejected = 0;
  k->t = t;
  gr_radau_reuse_jacobian(k, r);
  k->steps++;
  gr_radau_store(k, r);
  if (kink) s->kink = gr_next_kink(k, t);
  long status = GR_DONE;
  if (GR_NC > 0 || kink) {
    s->jacobian_here = 0;
    status = gr_radau_settle(k, r, 1);
    if (!status && t < k->t1) gr_radau_slope_sensitivities(k, r);
  }
#if GR_HAS_E
  if (kink && !status) status = gr_radau_modes_at_kink(k, r, s->segment);
#endif
  return status;
}

/* the same, with the rows asked for there */
GR_FN long gr_radau_advance(gr_task *k, gr_radau_room *r, double t, double h) {
  const long status = gr_radau_arrive(k, r, t, h);
  return status ? status : gr_radau_rows_here(k, r);
}

/* ---- steps with error control ---- */

/* Rows inside an acceptable step; answers 0 when the next one has to be the end of a shorter step. */
GR_FN long gr_radau_rows_inside(gr_task *k, gr_radau_room *r, double h) {
  const double leeway = gr_radau_leeway(k), h4 = h * h * h * h;
  if (k->written >= k->n_times) return 1;
  r->s->roughness = leeway * gr_radau_doubt(r, h, 0.5, r->third, r->row_x) / h4;
  while (gr_row_before(k, k->t + h)) {
    const double s = (k->times[k->written] - k->t) / h;
    const double doubt = leeway * gr_radau_doubt(r, h, s, r->third, r->row_x);
    if (!(doubt <= 1.0) || gr_radau_row_inside(k, r, h, s)) {
      r->s->roughness = (doubt > 2.0 ? doubt : 2.0) / h4;
      return 0;
    }
  }
  return 1;
}

/* Newton's matrices for steps of length h; answers 0 or a status. A refused column is named as one of dF/dz, which it
 * is for short steps. */
GR_FN long gr_radau_prepare(gr_task *k, gr_radau_room *r, double h) {
  gr_radau *s = r->s;
  if (s->h_factored > 0.0 && fabs(h - s->h_factored) <= 1e-9 * h && gr_radau_has_factors(r)) return GR_DONE;
  const long bad = gr_not_finite(GR_J_SIZE, r->jac);
  s->h_factored = 0.0;
  if (bad >= 0) return gr_fail(k, GR_NOT_FINITE, gr_J_row_of(bad), r->jac[bad]);
  const long refused = gr_radau_factor(k, r, h);
  if (refused) return gr_fail(k, GR_SINGULAR, refused > GR_NX ? refused - 1 - GR_NX : -1, 0.0);
  s->h_factored = h;
  return GR_DONE;
}

/* after a failed attempt: a shorter step, or a fresh Jacobian where Newton's iteration had an old one */
GR_FN double gr_radau_retreat(gr_task *k, gr_radau_room *r, double h, double factor, long status) {
  r->s->rejected = 1;
  k->rejected++;
  if (!r->s->jacobian_here && status == GR_NEWTON) {
    gr_radau_jacobian_here(k, r);
    return h;
  }
  return factor * h;
}

/* 1 when Newton's Jacobian is that of all stages: beyond a bend corrections with it say nothing. Where it failed with
 * the Jacobian of the start, a bend is likely, on whichever side the last iterate is. */
GR_FN long gr_radau_is_of_one_piece(const gr_task *k, const gr_radau_room *r, double h, long outcome) {
#if GR_HAS_SIDES && GR_HAS_Z
  double gaps[3 * GR_SIDES];
  if (outcome != GR_RADAU_CONVERGED) return !r->s->jacobian_here;
  gr_radau_stage_gaps(k, r, k->t, h, r->Z, gaps);
  for (long j = 0; j < 3; j++)
    if (gr_have_changed(GR_SIDES, r->gaps, gaps + j * GR_SIDES)) return 0;
  return r->s->gaps_known;
#else
  (void)k; (void)r; (void)h; (void)outcome;
  return 1;
#endif
}

/* Newton's iteration for a step of length h and its error; answers 0 or the status that a shorter step may avoid */
GR_FN long gr_radau_attempt(gr_task *k, gr_radau_room *r, double h, double *factor, double *error, double *proposal) {
  const double eps = 10.0 * DBL_EPSILON / k->rtol, loose = sqrt(k->rtol);
  double kappa = loose < 0.03 ? loose : 0.03;
  const long limit = k->ns > 0 ? GR_RADAU_MOST_ITERATIONS + 3 : GR_RADAU_MOST_ITERATIONS, before = k->newton_iterations;
  if (k->ns > 0) kappa *= 0.01;
  if (kappa < eps) kappa = eps;
  *factor = 0.25;
  long status = gr_radau_prepare(k, r, h);
  if (status) return status;
  gr_radau_stage_signals(k, r, k->t, h);
  gr_radau_scales(k, r, r->y);
  gr_radau_predict(r, k->t, h);
  long outcome = gr_radau_iterate(k, r, k->t, h, kappa, limit, factor);
  if (outcome == GR_RADAU_BAD_VALUE) {
    *factor = 0.25;
    r->s->h_poly = 0.0;
    return GR_NOT_FINITE;
  }
  if (!gr_radau_is_of_one_piece(k, r, h, outcome)) {
    for (long i = 0; outcome != GR_RADAU_CONVERGED && i < 3 * GR_N; i++) r->Z[i] = 0.0;
    outcome = gr_radau_iterate_across(k, r, k->t, h, kappa);
  }
  if (outcome != GR_RADAU_CONVERGED) {
    k->where = gr_radau_largest(r->G, 3 * GR_N) % GR_LEN(GR_N);
    k->amount = r->G[k->where];
    return GR_NEWTON;
  }
  for (long i = 0; i < GR_N; i++) r->end[i] = r->y[i] + r->Z[i + 2 * GR_N];
  gr_radau_scales(k, r, r->end);
  *error = gr_radau_error(k, r, k->t, h, r->s->first || r->s->rejected);
  *proposal = gr_radau_propose(r->s, h, *error, k->newton_iterations - before);
  if (!(*error < 1.0)) {
    *factor = r->s->first ? 0.1 : *proposal / h;
    k->where = gr_radau_largest(r->error, GR_N);
    k->amount = *error;
    return GR_STEP_TOO_SMALL;
  }
  return GR_DONE;
}

#if GR_HAS_BENDS
/* the collocation polynomial, with z solved for */
GR_COLD long gr_radau_bend_solved(void *run, double share, double *x, double *z, double *u) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  const gr_radau_room *r = a->r;
  gr_newton newton = gr_newton_in(r->newton);
  gr_radau_bend_inside(run, share, x, z, u);
  const gr_anchor start = {a->k->t, r->y, r->y + GR_NX, r->s->segment};
  r->s->z_valid = 0;
  return gr_solve_implicit(a->k, &newton, &start, a->k->t + share * a->h, x, z, u);
}

/* F - x' on the collocation polynomial */
GR_COLD long gr_radau_drift(void *run, double share, double *d) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  const gr_radau_room *r = a->r;
  const gr_newton newton = gr_newton_in(r->newton);
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], l[3];
  const long status = gr_radau_bend_solved(run, share, x, z, u);
  if (status) return status;
  gr_radau_collocation_slopes(share, l);
  for (long i = 0; i < GR_NX; i++) {
    const double slope = l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
    d[i] = newton.f[i] - slope / a->h;
  }
  return GR_DONE;
}

/* filtered as the error of the step, so that stiff components do not count; without the leeway of smooth solutions */
GR_COLD double gr_radau_missed_size(void *run, const double *d) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  const gr_radau_room *r = a->r;
  for (long i = 0; i < GR_NX; i++) {
    r->error[i] = d[i];
    r->lift[i] = 0.0;
  }
  gr_radau_filtered_error(r);
  return GR_RADAU_EIG_G * gr_radau_leeway(a->k) * gr_radau_rms(r->error, r->scale, 1);
}

/* Of smooth solutions F - x' is, to leading order, the cubic that is zero at the nodes, and at the start what is known
 * there: error control judges that. What else there is has been seen by no stage. */
GR_COLD double gr_radau_defect(void *run, double share) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  const gr_radau_room *r = a->r;
  double d[GR_LEN(GR_NX)], l[3];
  if (gr_radau_drift(run, share, d)) return HUGE_VAL;
  const double c1 = GR_RADAU_C1, c2 = GR_RADAU_C2, part = (share - c1) * (share - c2) * (1.0 - share) / (c1 * c2);
  gr_radau_collocation_slopes(0.0, l);
  for (long i = 0; i < GR_NX; i++) {
    const double slope = l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
    d[i] -= part * (r->f[i] - slope / a->h);
  }
  return gr_radau_missed_size(run, d);
}

/* the share of a step of length h up to which nothing has been passed unseen; what it has missed, in tolerances */
GR_FN double gr_radau_seen(gr_task *k, gr_radau_room *r, double h, double many, double most, double *missed) {
  gr_radau_span a = {k, r, h};
  const gr_span s = {k, &a, h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_radau_bend_inside, gr_radau_defect,
                     gr_radau_bend_solved};
  gr_bend_list bends;
  const double amount = k->amount;
  const long rescues = k->rescues, where = k->where;
  *missed = 0.0;
  double share = 1.0;
  if (gr_lists_bends(&s, many, &bends)) {
#if GR_SENSITIVE
    gr_tangent tangent = {gr_radau_tangent_rate, r->S, GR_N, GR_N, 0};
    if (k->ns > 0 && !(k->fixed_step > 0.0)) share = gr_tangent_upto(&s, &tangent, &bends);
#endif
    share = fmin(share, gr_seen_up_to(&s, &bends, most, missed));
  }
#if GR_HAS_Z
  if (share == 1.0 && !(k->fixed_step > 0.0) && gr_bend_doubts(&s)) share = 0.5;
#endif
  k->rescues = rescues;
  k->where = where;
  k->amount = amount;
  return share;
}
#endif

#if GR_HAS_SIDES
/* the collocation polynomial of a step from k->t */
typedef struct {
  const gr_task *k;
  const gr_radau_room *r;
  double h;
} gr_line_step;

GR_COLD void gr_line_step_gaps(const void *line, double share, double *gaps) {
  const gr_line_step *c = (const gr_line_step *)line;
  const gr_radau_room *r = c->r;
  const double t = c->k->t + share * c->h;
  double l[3], u[GR_LEN(GR_NU)];
  gr_radau_collocation_weights(share, l);
  for (long i = 0; i < GR_N; i++)
    r->stage[i] = r->y[i] + l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
  gr_signals_from(c->k, r->s->segment, t, u);
  gr_S(t, r->stage, r->stage + GR_NX, u, c->k->p, gaps);
}
#endif

/* 1 when a switch has changed at the end of a step. The leeway is for smooth solutions: a step over a jump or a bend is
 * taken only where its error is within the tolerance itself; else *shorter is the length of one that ends before the
 * switch. Where a step passed one just before, the run may slide along it, and steps are judged as all others. */
GR_FN long gr_radau_passes_a_switch(const gr_task *k, gr_radau_room *r, double h, double error, double *shorter) {
  *shorter = 0.0;
#if GR_HAS_SIDES
  gr_radau *s = r->s;
  double here[GR_SIDES], there[GR_SIDES];
  const long strict = error * gr_radau_leeway(k) < 1.0;
  const gr_line_step line = {k, r, h};
  if (strict && !(s->switch_at < HUGE_VAL)) return 0;
  gr_line_step_gaps(&line, 0.0, here);
  gr_line_step_gaps(&line, 1.0, there);
  if (!gr_have_changed(GR_SIDES, here, there)) return 0;
  if (strict) return 1;
  const double share = gr_reach(&line, gr_line_step_gaps, GR_SIDES);
  if (k->t + share * h < s->switched_at + GR_RADAU_SLIDES * s->h_switched) return 1;
  s->switch_at = k->t + share * h;
  *shorter = fmin((1.0 - GR_RADAU_CLOSER) * share, share > 0.99 ? 0.5 : 1.0) * h;
  if (!(*shorter > GR_RADAU_NEAREST * gr_smallest_step(k, k->t))) *shorter = 0.5 * h;
#else
  (void)k; (void)r; (void)h; (void)error;
#endif
  return 0;
}

/* beyond a switch nothing continues smoothly */
GR_FN void gr_radau_leave_switch(const gr_task *k, gr_radau *s, double h) {
  s->switch_at = HUGE_VAL;
  s->switched_at = k->t;
  s->h_switched = h;
  s->h_poly = s->h_previous = 0.0;
  s->first = 1;
  s->theta = 1.0;
}

#if GR_HAS_E
/* A step that may have ended with an event, after which rows are what holds from there on; at a kink all modes have been
 * looked at already. */
GR_FN long gr_radau_ended(gr_task *k, gr_radau_room *r, const gr_event *event, long at_kink, long status) {
  if (!status && event->mode >= 0 && !at_kink) status = gr_radau_happen(k, r, event);
  return status ? status : gr_radau_rows_here(k, r);
}

typedef struct {
  gr_task *k;
  gr_radau_room *r;
  gr_stepper s;
  double factor, error, proposal;
} gr_radau_retake;

#if GR_HAS_C
/* A frozen step ends where its end has been moved onto the constraints: an event is a root of what is computed. A point
 * beyond the event that cannot be moved serves as it is; where the step ends it is asked for again. No row is under way. */
GR_COLD void gr_radau_stand_on_constraints(gr_radau_retake *a) {
  gr_task *k = a->k;
  const gr_radau_room *r = a->r;
  gr_projection projection = gr_projection_in(r->projection);
  const gr_anchor end = {a->s.t, r->end, r->end + GR_NX, r->s->segment};
  const double amount = k->amount;
  const long where = k->where;
  gr_radau_copy(r->row_x, r->end, GR_NX);
  gr_radau_copy(r->row_z, r->end + GR_NX, GR_NZ);
  if (!gr_project(k, &projection, a->s.t, r->row_x, r->row_z, a->s.u) &&
      !gr_solve_implicit(k, a->s.newton, &end, a->s.t, r->row_x, r->row_z, a->s.u)) {
    a->s.x = r->row_x;
    a->s.z = r->row_z;
  }
  k->where = where;
  k->amount = amount;
}
#endif

GR_FN void gr_radau_stand(gr_radau_retake *a, double h) {
  a->s.t = a->k->t + h;
  a->s.x = a->r->end;
  a->s.z = a->r->end + GR_NX;
  gr_radau_copy(a->s.u, a->r->u + 3 * GR_NU, GR_NU);
#if GR_HAS_C
  if (a->k->fixed_step > 0.0) gr_radau_stand_on_constraints(a);
#endif
}

GR_COLD long gr_radau_retry(void *run, double h) {
  gr_radau_retake *a = (gr_radau_retake *)run;
  const long status = gr_radau_attempt(a->k, a->r, h, &a->factor, &a->error, &a->proposal);
  if (!status) gr_radau_stand(a, h);
  return status;
}

/* the collocation polynomial */
GR_FN void gr_radau_inside(const void *run, double share, double *x, double *z, double *u) {
  const gr_radau_retake *a = (const gr_radau_retake *)run;
  const gr_radau_room *r = a->r;
  double l[3];
  gr_radau_collocation_weights(share, l);
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
  gr_radau_guess_z(r, share, z);
  gr_signals_from(a->k, r->s->segment, a->k->t + share * (a->s.t - a->k->t), u);
}

/* the step of length *h that was taken, shortened to the first event in it; *h = 0 where that is at its start */
GR_FN long gr_radau_watch(gr_radau_retake *a, double *h, gr_event *event) {
  gr_task *k = a->k;
  gr_gauge start, end;
  gr_newton newton = gr_newton_in(a->r->newton);
  a->s.newton = &newton;
  a->r->s->z_valid = 0;
  gr_radau_stand(a, *h);
  gr_gauge_at(k, k->t, k->x, k->z, a->r->u, &start);
  gr_gauge_at(k, a->s.t, a->s.x, a->s.z, a->s.u, &end);
  const double share = gr_suspect(k, &a->s, &start, &end, *h);
  if (share < 1.0) {
    const double shorter = share * *h;
    long status = a->s.take(a->s.run, shorter);
    if (status) return status;
    gr_gauge probe;
    gr_gauge_at(k, a->s.t, a->s.x, a->s.z, a->s.u, &probe);
    if (k->fixed_step > 0.0 && !gr_leaves(k, &probe, 0)) { /* frozen steps end where they are meant to, or at events */
      status = a->s.take(a->s.run, *h);
      if (status) return status;
    } else {
      *h = shorter;
      end = probe;
    }
  }
  return gr_find(k, &a->s, &start, &end, *h, h, event);
}
#endif

/* sensitivities and F at the end of an acceptable step */
GR_FN long gr_radau_complete(gr_task *k, gr_radau_room *r, double h, double tolerance, long expected) {
  const long bad = gr_radau_finish(k, r, k->t, h);
  if (bad >= 0) return gr_fail(k, GR_NOT_FINITE, bad, r->slope[bad]);
  gr_radau_third(r->Z, r->third);
#if GR_SENSITIVE
  if (k->ns > 0) {
    if (!gr_radau_tangent(k, r, k->t, h, tolerance, expected)) return gr_fail(k, GR_SINGULAR, -1, 0.0);
    gr_radau_tangent_slope(k, r);
  }
#else
  (void)tolerance;
  (void)expected;
#endif
  return GR_DONE;
}

/* a step that was cut ends exactly where it was meant to */
GR_FN double gr_radau_end_of(const gr_task *k, const gr_radau *s, double end) {
  if (end >= s->kink - gr_smallest_step(k, s->kink)) return s->kink;
  return gr_row_at(k, end) ? k->times[k->written] : end;
}

/* a step that cannot be solved at any length, named as the end of a branch where z cannot be followed on */
GR_COLD long gr_radau_named(gr_task *k, gr_radau_room *r, double h, long status) {
#if GR_HAS_Z
  const gr_anchor start = {k->t, r->y, r->y + GR_NX, r->s->segment};
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], u_from[GR_LEN(GR_NU)], share;
  gr_newton newton = gr_newton_in(r->newton);
  if ((status != GR_NEWTON && status != GR_SINGULAR && status != GR_STEP_TOO_SMALL) || GR_NM > 0) return status;
  const long where = k->where;
  const double amount = k->amount;
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + h * r->f[i];
  gr_signals_from(k, start.segment, k->t + h, u);
  const gr_way w = gr_way_from(k, &start, k->t + h, x, u, u_from);
  r->s->z_valid = 0;
  if (gr_rescue_along(k, &newton, &w, z, GR_STRIDES, &share) && share < 1.0) return GR_BRANCH_ENDS;
  return gr_fail(k, status, where, amount);
#else
  (void)k; (void)r; (void)h;
  return status;
#endif
}

/* what cannot be taken at any length: z jumps where its branch ends */
GR_COLD long gr_radau_give_up(gr_task *k, gr_radau_room *r, double h, long status) {
  status = gr_radau_named(k, r, h, status);
#if GR_HAS_Z
  const double length = gr_beyond(k, h), amount = k->amount;
  const long where = k->where;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  gr_newton newton = gr_newton_in(r->newton);
  if (status != GR_BRANCH_ENDS) return status;
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + length * r->f[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = r->y[GR_NX + i];
  gr_signals_from(k, r->s->segment, k->t + length, u);
  if (gr_snap(k, &newton, k->t + length, x, z, u)) return gr_fail(k, status, where, amount);
  for (long i = 0; i < GR_NZ; i++) k->z[i] = z[i];
  r->s->z_valid = 0;
  status = gr_radau_settle(k, r, 0);
#if GR_HAS_E
  if (!status) status = gr_radau_modes_at_kink(k, r, r->s->segment);
#endif
  if (status) return status;
  gr_radau_leave_switch(k, r->s, 0.0);
  r->s->h_factored = 0.0;
  r->s->jacobian_here = r->s->gaps_known = r->s->rejected = 0;
  r->s->h = gr_radau_first_step(k, r);
#endif
  return status;
}

/* A short step of length h whose equations could not be solved: 1 where z had come to the end of its branch, and has
 * jumped. A step that hardly moves meets the tolerance of its equations beyond that end, too. */
GR_COLD long gr_radau_has_snapped(gr_task *k, gr_radau_room *r, double h) {
#if GR_HAS_Z
  gr_newton newton = gr_newton_in(r->newton);
  const double amount = k->amount;
  const long where = k->where;
  if (k->ns > 0 || h > 10.0 * GR_FOLD_NEAR * (k->t1 - k->t0)) return 0;
  r->s->z_valid = 0;
  gr_note_branch(k, &newton, r->y, r->y + GR_NX, r->u);
  if (h <= GR_RADAU_CRAWLS * (k->t1 - k->t0) && !gr_radau_give_up(k, r, h, GR_NEWTON)) return 1;
  k->where = where;
  k->amount = amount;
#else
  (void)k; (void)r; (void)h;
#endif
  return 0;
}

/* one accepted step */
GR_FN long gr_radau_adaptive_step(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  double factor, shorter, error = 0.0, proposal = 0.0, wish = s->h, try_h = s->h;
  long land = 0, singular = 0, status = gr_fail(k, GR_STEP_TOO_SMALL, -1, 0.0);
  for (;;) {
    if (k->steps + k->rejected >= k->max_steps) return gr_fail(k, GR_TOO_MANY_STEPS, -1, 0.0);
#if GR_HAS_E
    if (!(try_h > gr_smallest_step(k, k->t)) && k->t - k->event_at <= GR_TOGETHER * (k->t1 - k->t0))
      return gr_radau_accumulate(k, r);
#endif
    if (!(try_h > gr_smallest_step(k, k->t))) return gr_radau_give_up(k, r, s->h, status);
    double h = gr_radau_cut(k, s, try_h, land);
    if (!s->jacobian_here && s->theta > GR_RADAU_KEEP_JACOBIAN) gr_radau_jacobian_here(k, r);
    status = gr_radau_attempt(k, r, h, &factor, &error, &proposal);
#if GR_HAS_BENDS
    double missed;
    const double seen = status ? 1.0 : gr_radau_seen(k, r, h, 1.0, GR_RADAU_MISSED, &missed);
    if (seen < 1.0 && seen * h > GR_RADAU_NEAREST * gr_smallest_step(k, k->t)) {
      status = gr_fail(k, GR_STEP_TOO_SMALL, -1, 0.0);
      try_h = seen * h;
      land = 0;
      k->rejected++;
      continue;
    }
#endif
#if GR_HAS_E
    gr_event event = {-1, 0, 0.0, 0.0};
    gr_radau_retake a = {k, r, {&a, gr_radau_retry, gr_radau_inside, 0, 0, r->u, 0.0, {0.0}, 0, 0}, factor, error, proposal};
    const double whole = h;
    if (!status) {
      status = gr_radau_watch(&a, &h, &event);
      if (!status && h == 0.0) return gr_radau_happen(k, r, &event);
      factor = a.factor;
      error = a.error;
      proposal = a.proposal;
    } else if (status != GR_STEP_TOO_SMALL) {
      double next = factor * h;
      if (gr_is_blocked(k, r->u, h, &next, &event)) return gr_radau_happen(k, r, &event);
      factor = next / h;
    }
    if (h < whole) wish = fmax(wish, whole);
#endif
    if (!status) {
      status = gr_radau_complete(k, r, h, 1e-3 * k->rtol, 4);
      factor = 0.25;
    }
    if (status) {
      if (status == GR_NEWTON && gr_radau_has_snapped(k, r, h)) return GR_DONE;
      try_h = gr_radau_retreat(k, r, h, factor, status);
      wish = try_h;
      land = 0;
      if (status == GR_SINGULAR && ++singular >= GR_RADAU_SINGULAR_TRIES) return GR_SINGULAR;
      continue;
    }
    const long passes = gr_radau_passes_a_switch(k, r, h, error, &shorter);
    if (shorter > 0.0) {
      status = gr_fail(k, GR_STEP_TOO_SMALL, -1, 0.0);
      try_h = shorter;
      land = 0;
      k->rejected++;
      continue;
    }
    if (!gr_radau_rows_inside(k, r, h)) {
      gr_radau_remember_polynomial(k, r, h);
      land = 1;
      continue;
    }
    gr_radau_next_wish(s, wish, h, proposal, error);
    k->error_estimate = error;
    const double t = gr_radau_end_of(k, s, k->t + h);
#if GR_HAS_E
    const long at_kink = t >= s->kink;
    status = gr_radau_ended(k, r, &event, at_kink, gr_radau_arrive(k, r, t, h));
#else
    status = gr_radau_advance(k, r, t, h);
#endif
    if (passes) gr_radau_leave_switch(k, s, h);
    return status;
  }
}

/* ---- frozen steps ---- */

GR_FN void gr_radau_next_stretch(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  s->moves = s->happened;
  s->happened = 0.0;
  s->from = k->t;
  s->to = gr_next_mandatory(k, k->t, s->kink);
  s->parts = (long)ceil(gr_frozen_length(k, s->from, s->to, s->segment) / k->fixed_step * (1.0 - 1e-12));
  if (s->parts < 1) s->parts = 1;
  s->part = 0;
#if GR_HAS_E
  s->ends = (double)gr_ends_moving(k, s->from, s->to, s->segment, r->ahead);
#endif
}

/* GR_NEWTON where z at the end of the step is not the root that continues the one at its start */
GR_COLD long gr_radau_verify(gr_task *k, gr_radau_room *r, double h) {
#if GR_HAS_Z
  gr_newton newton = gr_newton_in(r->newton);
  const gr_anchor start = {k->t, r->y, r->y + GR_NX, r->s->segment};
  const double *end = r->Z + 2 * GR_N;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], apart[GR_LEN(GR_NZ)], u_from[GR_LEN(GR_NU)], share;
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + end[i];
  const gr_way w = gr_way_from(k, &start, k->t + h, x, r->u + 3 * GR_NU, u_from);
  r->s->z_valid = 0;
  if (!gr_follow(k, &newton, &w, z, GR_STRIDES, &share)) return GR_DONE;
  if (gr_newton_iterate(k, &newton, w.t, x, z, w.u)) return GR_DONE;
  for (long i = 0; i < GR_NZ; i++) apart[i] = z[i] - r->y[GR_NX + i] - end[GR_NX + i];
  for (long i = 0; i < GR_NZ; i++)
    if (!(fabs(apart[i]) <= 1e-3 * fabs(z[i]) + 10.0 * (k->atol[GR_NX + i] + k->rtol * fabs(z[i]))))
      return gr_fail(k, GR_NEWTON, GR_NX + i, apart[i]);
#else
  (void)k; (void)r; (void)h;
#endif
  return GR_DONE;
}

/* the stages of a step of length h, to rounding */
GR_FN long gr_radau_exact(gr_task *k, gr_radau_room *r, double h) {
  long strained;
  long status = gr_radau_prepare(k, r, h);
  if (status) return status;
  gr_radau_stage_signals(k, r, k->t, h);
  gr_radau_sizes(k, r);
  gr_radau_predict(r, k->t, h);
  const long outcome = gr_radau_iterate_exact(k, r, k->t, h, &strained);
  if (outcome != GR_RADAU_CONVERGED) return outcome == GR_RADAU_BAD_VALUE ? GR_NOT_FINITE : GR_NEWTON;
  if (strained && GR_NM == 0) status = gr_radau_verify(k, r, h);
  return status;
}

#if GR_HAS_E
GR_FN void gr_radau_exact_end(gr_radau_room *r) {
  for (long i = 0; i < GR_N; i++) r->end[i] = r->y[i] + r->Z[i + 2 * GR_N];
}

GR_COLD long gr_radau_retry_exact(void *run, double h) {
  gr_radau_retake *a = (gr_radau_retake *)run;
  const long status = gr_radau_exact(a->k, a->r, h);
  if (status) return status;
  gr_radau_exact_end(a->r);
  gr_radau_stand(a, h);
  return GR_DONE;
}
#endif

#if GR_HAS_E && GR_SENSITIVE
/* The outcome x, z of the step of length h from here where its start is moved by `first`, along the motion, and its end by
 * `last`, both in time; *moved is by how much its end has, which rounding decides. */
GR_COLD long gr_radau_displaced(gr_task *k, gr_radau_room *r, double h, double first, double last, double *x, double *z,
                                double *moved) {
  const double t = k->t, end = t + h, stop = end + last;
  gr_projection projection = gr_projection_in(r->projection);
  double kept[GR_LEN(GR_NX)];
  k->t = t + first;
  for (long i = 0; i < GR_NX; i++) {
    kept[i] = r->y[i];
    r->y[i] += (k->t - t) * r->f[i];
  }
  *moved = stop - end;
  long status = gr_radau_exact(k, r, stop - k->t);
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + r->Z[i + 2 * GR_N];
  for (long i = 0; i < GR_NZ; i++) z[i] = r->y[GR_NX + i] + r->Z[GR_NX + i + 2 * GR_N];
  if (!status) status = gr_project(k, &projection, stop, x, z, r->u + 3 * GR_NU);
  for (long i = 0; i < GR_NX; i++) r->y[i] = kept[i];
  k->t = t;
  return status;
}

/* gr_rk4_excess for a step of length h from here; the stages are to be solved for again */
GR_COLD void gr_radau_excess(gr_task *k, gr_radau_room *r, double h, double first, double last, double *excess) {
  const double by = GR_DISPLACEMENT * k->fixed_step, amount = k->amount;
  const long where = k->where;
  double high[GR_LEN(GR_NX)], low[GR_LEN(GR_NX)], x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], up, down;
  gr_newton newton = gr_newton_in(r->newton);
  long status = gr_radau_displaced(k, r, h, by * first, by * last, high, z, &up);
  if (!status) status = gr_radau_displaced(k, r, h, -by * first, -by * last, low, z, &down);
  if (!status) status = gr_radau_displaced(k, r, h, 0.0, 0.0, x, z, excess);
  if (!status) status = gr_solve_implicit(k, &newton, 0, k->t + h, x, z, r->u + 3 * GR_NU);
  r->s->z_valid = 0;
  for (long i = 0; i < GR_NX; i++)
    excess[i] = status ? 0.0 : (high[i] - low[i] - (up - down) * newton.f[i]) / (2.0 * by);
  k->where = where;
  k->amount = amount;
}

GR_FN void gr_radau_scale(const gr_task *k, gr_radau_room *r, const double *excess, const double *dt) {
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_NX; i++) r->V[i + 2 * GR_N + d * 3 * GR_N] += excess[i] * dt[d];
}
#endif

GR_FN long gr_radau_frozen_step(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  if (k->steps >= k->max_steps) return gr_fail(k, GR_TOO_MANY_STEPS, -1, 0.0);
  if (s->part == s->parts) gr_radau_next_stretch(k, r);
  double h = (s->to - s->from) / (double)s->parts;
  if (!s->jacobian_here) gr_radau_jacobian_here(k, r);
  long status = gr_radau_exact(k, r, h);
#if GR_HAS_E
  gr_event event = {-1, 0, 0.0, 0.0};
  const double planned = h;
  for (long n = 0; status && n < GR_MOST_RETAKES; n++) { /* what is held may end at its switch */
    double next = 0.5 * h;
    if (gr_is_blocked(k, r->u, h, &next, &event)) return gr_radau_happen(k, r, &event);
    if (next == 0.5 * h) break;
    h = next;
    status = gr_radau_exact(k, r, h);
  }
#endif
  if (status) return status;
#if GR_HAS_E
  gr_radau_retake a = {k, r, {&a, gr_radau_retry_exact, gr_radau_inside, 0, 0, r->u, 0.0, {0.0}, 0, 0}, 0.0, 0.0, 0.0};
  gr_radau_exact_end(r);
  status = gr_radau_watch(&a, &h, &event);
  if (status) return status;
  if (h == 0.0) return gr_radau_happen(k, r, &event);
#if GR_SENSITIVE
  double begun[GR_LEN(GR_NX)], ended[GR_LEN(GR_NX)]; /* steps scale with a stretch whose ends move */
  const double from = (double)s->part / (double)s->parts, to = (double)(s->part + 1) / (double)s->parts;
  const long moves = k->ns > 0 && s->moves != 0.0, ends = k->ns > 0 && s->ends != 0.0;
  const long slips = k->ns > 0 && event.mode >= 0;
  if (moves) gr_radau_excess(k, r, h, 1.0 - from, h < planned ? 0.0 : 1.0 - to, begun);
  if (ends) gr_radau_excess(k, r, h, from, h < planned ? 0.0 : to, ended);
  if (slips) gr_radau_excess(k, r, h, 0.0, 1.0, gr_slip(k));
  if (moves || ends || slips) status = gr_radau_exact(k, r, h);
  if (status) return status;
  gr_radau_exact_end(r);
#endif
#endif
  status = gr_radau_complete(k, r, h, 1e-15, 8);
  if (status) return status;
#if GR_HAS_E && GR_SENSITIVE
  if (moves) gr_radau_scale(k, r, begun, k->dt);
  if (ends) gr_radau_scale(k, r, ended, r->ahead);
#endif
  gr_radau_scales(k, r, r->end);
  double error = gr_radau_error(k, r, k->t, h, 0);
#if GR_HAS_BENDS
  double missed;
  gr_radau_seen(k, r, h, 2.0, HUGE_VAL, &missed);
  error = fmax(error, missed / gr_radau_leeway(k));
#endif
  if (error > k->error_estimate) k->error_estimate = error;
#if GR_HAS_E
  if (h < planned) { /* the rest of the stretch is cut anew */
    s->part = s->parts;
    return gr_radau_ended(k, r, &event, 0, gr_radau_arrive(k, r, k->t + h, h));
  }
#endif
  s->part++;
  return gr_radau_advance(k, r, s->part == s->parts ? s->to : s->from + (double)s->part * h, h);
}

/* ---- the run ---- */

GR_COLD long gr_radau_start(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  s->h_factored = s->h_poly = s->t_poly = s->h_previous = s->h_accepted = s->error_accepted = s->roughness = 0.0;
  s->theta = s->rate = 1.0;
  s->switch_at = HUGE_VAL;
  s->switched_at = -HUGE_VAL;
  s->h_switched = 0.0;
  s->from = s->to = k->t;
  s->happened = s->moves = s->ends = 0.0;
  s->part = s->parts = s->rejected = s->jacobian_here = s->segment = s->gaps_known = s->z_valid = 0;
  s->first = 1;
  s->kink = gr_next_kink(k, k->t);
  s->h = k->h;
  k->resumed = 1;
#if GR_HAS_E
  if (k->t == k->t0) {
    gr_newton newton = gr_newton_in(r->newton);
    gr_signals(k, k->t, k->t, r->u);
    const long unsettled = gr_first_modes(k, &newton, k->x, k->z, r->u, r->emit);
    s->happened = (double)gr_is_moving(k, k->dt);
    if (unsettled) return unsettled;
  }
#endif
  long status = gr_radau_settle(k, r, 0);
  if (status) return status;
  gr_radau_slope_sensitivities(k, r);
  status = gr_radau_rows_here(k, r);
  s->h = k->h > 0.0 ? k->h : gr_radau_first_step(k, r);
  return status;
}

GR_FN long gr_radau_run(gr_task *k, gr_radau_room *r) {
  long status = k->resumed ? GR_DONE : gr_radau_start(k, r);
  for (long done = 0; !status && k->t < k->t1; done++) {
    if (k->slice > 0 && done >= k->slice) return GR_MORE;
    status = k->fixed_step > 0.0 ? gr_radau_frozen_step(k, r) : gr_radau_adaptive_step(k, r);
  }
  return status;
}

GR_ENTRY long gr_implicit(gr_task *task) {
  gr_radau_room r;
  gr_radau_lay_out(task->work, task->ns, &r);
#if GR_SPARSE
  r.factors = gr_all_factors_of(task);
#endif
  task->status = gr_radau_run(task, &r);
  if (task->status == GR_DONE || task->status == GR_MORE) task->where = -1;
  task->h = r.s->h;
  return task->status;
}

#endif
