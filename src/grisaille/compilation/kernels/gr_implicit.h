/* Stiff and differential-algebraic systems: Radau IIA of order 5 with error control, or with frozen steps.
 *
 *   x' = F_x(t, x, z, u, p),   0 = F_z(t, x, z, u, p),   0 = C(t, x, u, p) (kept by projection after every step)
 *
 * The embedded error has order 3. As a local error of the step itself it would be far too pessimistic at small
 * tolerances, so it is compared with 0.1 rtol^(2/3) in place of rtol (atol in proportion), as Hairer and Wanner do.
 * Steps grow by Gustafsson's predictive controller and stay as they are when the gain would be below 1.2, which saves
 * factorizations. The Jacobian is kept while Newton's iteration contracts by 1e-3.
 *
 * Reference: Hairer, Wanner: Solving Ordinary Differential Equations II, sections IV.8 and VI.1.
 */
#ifndef GR_IMPLICIT_H
#define GR_IMPLICIT_H

#include "gr_dense.h"
#include "gr_output.h"
#include "gr_radau_tangent.h"

#define GR_RADAU_MOST_ITERATIONS 7
#define GR_RADAU_KEEP_JACOBIAN 1e-3
#define GR_RADAU_KEEP_STEP 1.2
#define GR_RADAU_SAFETY 0.9
#define GR_RADAU_GROW 8.0
#define GR_RADAU_SHRINK 0.2
#define GR_RADAU_SINGULAR_TRIES 6

/* ---- memory ---- */

GR_FN double *gr_radau_take(double *base, long *at, long n) {
  double *here = base ? base + *at : base;
  *at += n;
  return here;
}

GR_FN long gr_radau_lay_out(double *base, long ns, gr_radau_room *r) {
  const long n = GR_N;
  long at = 0;
  r->s = (gr_radau *)gr_radau_take(base, &at, (long)((sizeof(gr_radau) + sizeof(double) - 1) / sizeof(double)));
  r->y = gr_radau_take(base, &at, n);
  r->f = gr_radau_take(base, &at, n);
  r->end = gr_radau_take(base, &at, n);
  r->slope = gr_radau_take(base, &at, n);
  r->u = gr_radau_take(base, &at, 4 * GR_NU);
  r->stage = gr_radau_take(base, &at, n);
  r->Z = gr_radau_take(base, &at, 3 * n);
  r->W = gr_radau_take(base, &at, 3 * n);
  r->G = gr_radau_take(base, &at, 3 * n);
  r->scale = gr_radau_take(base, &at, n);
  r->error = gr_radau_take(base, &at, n);
  r->lift = gr_radau_take(base, &at, n);
  r->third = gr_radau_take(base, &at, n);
  r->jac = gr_radau_take(base, &at, n * n);
  r->real = gr_radau_take(base, &at, n * n);
  r->re = gr_radau_take(base, &at, n * n);
  r->im = gr_radau_take(base, &at, n * n);
  r->poly_y = gr_radau_take(base, &at, n);
  r->poly_Z = gr_radau_take(base, &at, 3 * n);
  r->previous_y = gr_radau_take(base, &at, n);
  r->previous_f = gr_radau_take(base, &at, n);
  r->previous_d = gr_radau_take(base, &at, n);
  r->jacs = gr_radau_take(base, &at, 3 * n * n);
  r->whole = gr_radau_take(base, &at, 9 * n * n);
  r->pivot_real = (long *)gr_radau_take(base, &at, n);
  r->pivot_complex = (long *)gr_radau_take(base, &at, n);
  r->pivot_whole = (long *)gr_radau_take(base, &at, 3 * n);
  r->S = gr_radau_take(base, &at, n * ns);
  r->V = gr_radau_take(base, &at, 3 * n * ns);
  r->B = gr_radau_take(base, &at, 3 * n * ns);
  r->poly_S = gr_radau_take(base, &at, n * ns);
  r->poly_V = gr_radau_take(base, &at, 3 * n * ns);
  r->SF = gr_radau_take(base, &at, n * ns);
  r->slope_S = gr_radau_take(base, &at, n * ns);
  r->previous_S = gr_radau_take(base, &at, n * ns);
  r->previous_SF = gr_radau_take(base, &at, n * ns);
  r->fp = gr_radau_take(base, &at, ns > 0 ? n * GR_NP : 0);
  r->row_x = gr_radau_take(base, &at, GR_NX);
  r->row_z = gr_radau_take(base, &at, GR_NZ);
  r->row_sx = gr_radau_take(base, &at, GR_NX * ns);
  r->row_sz = gr_radau_take(base, &at, GR_NZ * ns);
  r->newton = gr_radau_take(base, &at, GR_NEWTON_WORK);
  r->projection = gr_radau_take(base, &at, GR_PROJECT_WORK);
  r->emit = gr_radau_take(base, &at, GR_OUTPUT_WORK);
  return at;
}

GR_API long gr_implicit_work(long ns) {
  gr_radau_room r;
  return gr_radau_lay_out(0, ns, &r);
}

GR_FN void gr_radau_copy(double *to, const double *from, long n) {
  for (long i = 0; i < n; i++)
    to[i] = from[i];
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

GR_FN void gr_radau_jacobian_here(gr_task *k, gr_radau_room *r) {
  gr_J(k->t, r->y, r->y + GR_NX, r->u, k->p, r->jac);
  k->jacobians++;
  r->s->jacobian_here = 1;
  r->s->h_factored = 0.0;
}

/* derivative of F at the start of a step */
GR_FN void gr_radau_slope_sensitivities(gr_task *k, gr_radau_room *r) {
#if GR_SENSITIVE
  if (k->ns == 0)
    return;
  if (!r->s->jacobian_here)
    gr_radau_jacobian_here(k, r);
  gr_radau_tangent_here(k, r, k->t);
#else
  (void)k;
  (void)r;
#endif
}

/* x onto the constraints, z onto its equations with signals from the right, sensitivities likewise; F comes with it */
GR_FN long gr_radau_settle(gr_task *k, gr_radau_room *r) {
  gr_newton newton = gr_newton_in(r->newton);
  gr_projection projection = gr_projection_in(r->projection);
  newton.valid = r->s->z_valid;
  gr_signals(k, k->t, k->t, r->u);
  long status = gr_project(k, &projection, k->t, k->x, k->z, r->u);
  if (!status)
    status = gr_solve_implicit(k, &newton, k->t, k->x, k->z, r->u);
  r->s->z_valid = newton.valid;
  if (status)
    return status;
  gr_radau_copy(r->f, newton.f, GR_N);
#if GR_SENSITIVE
  if (k->ns > 0) {
    gr_project_sensitivity(k, &projection, k->t, k->x, k->z, r->u, k->sx);
    status = gr_complete_sensitivity(k, &newton, k->t, k->x, k->z, r->u, k->sx, k->sz, r->emit);
    if (status)
      return status;
  }
  if (k->ns > 0 && GR_NZ > 0) {
    gr_radau_copy(r->jac, newton.jac, GR_N * GR_N);
    r->s->h_factored = 0.0;
    r->s->jacobian_here = 1;
    r->s->z_valid = 1;
  }
#endif
  gr_radau_load(k, r);
  return GR_DONE;
}

/* ---- rows ---- */

GR_FN long gr_radau_row(gr_task *k, gr_radau_room *r, double t, double inside) {
  gr_newton newton = gr_newton_in(r->newton);
  gr_projection projection = gr_projection_in(r->projection);
  newton.valid = r->s->z_valid;
  const long status = gr_emit(k, &newton, &projection, t, inside, r->row_x, r->row_z, r->row_sx, r->row_sz, r->emit);
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
    const long status = gr_radau_row(k, r, k->t, k->t);
    if (status)
      return status;
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
    for (long i = 0; i < GR_NX; i++)
      r->stage[i] = r->S[at + i] + r->V[3 * at + 2 * GR_N + i];
    gr_radau_mix(w, h, r->S + at, r->SF + at, r->stage, r->slope_S + at, r->previous_S + at, r->previous_SF + at,
                 r->row_sx + d * GR_NX);
  }
  return gr_radau_row(k, r, k->times[k->written], k->t + 0.5 * h);
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
  for (long i = 0; i < GR_N; i++)
    r->end[i] = r->y[i] + r->Z[i + 2 * GR_N];
  gr_F(t + h, r->end, r->end + GR_NX, r->u + 3 * GR_NU, k->p, r->slope);
  k->evaluations++;
  return gr_not_finite(GR_N, r->slope);
}

GR_FN void gr_radau_advance_sensitivities(const gr_task *k, gr_radau_room *r) {
  const long all = GR_N * k->ns;
  gr_radau_copy(r->previous_S, r->S, all);
  gr_radau_copy(r->previous_SF, r->SF, all);
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_N; i++)
      r->S[i + d * GR_N] += r->V[i + 2 * GR_N + d * 3 * GR_N];
  gr_radau_copy(r->SF, r->slope_S, all);
}

/* With sensitivities the Jacobian of the last stage is there for nothing: it serves the next step if the old one is
 * worn. */
GR_FN void gr_radau_reuse_jacobian(const gr_task *k, gr_radau_room *r) {
  r->s->jacobian_here = 0;
  if (k->ns == 0 || (r->s->theta <= GR_RADAU_KEEP_JACOBIAN && !(k->fixed_step > 0.0)))
    return;
  gr_radau_copy(r->jac, r->jacs + 2 * GR_N * GR_N, GR_N * GR_N);
  r->s->h_factored = 0.0;
  r->s->jacobian_here = 1;
}

/* the end of the step becomes the start of the next one, at time t; steps may be joined smoothly unless t is a kink */
GR_FN long gr_radau_advance(gr_task *k, gr_radau_room *r, double t, double h) {
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
  if (kink)
    s->h_poly = 0.0;
  s->first = kink;
  s->rejected = 0;
  gr_radau_reuse_jacobian(k, r);
  k->t = t;
  k->steps++;
  gr_radau_store(k, r);
  if (kink)
    s->kink = gr_next_kink(k, t);
  long status = GR_DONE;
  if (GR_NC > 0 || kink) {
    s->jacobian_here = 0;
    status = gr_radau_settle(k, r);
    if (!status && t < k->t1)
      gr_radau_slope_sensitivities(k, r);
  }
  return status ? status : gr_radau_rows_here(k, r);
}

/* ---- error control ---- */

/* how much looser than rtol the embedded error is judged */
GR_FN double gr_radau_leeway(const gr_task *k) { return 0.1 / cbrt(k->rtol); }

GR_FN void gr_radau_scales(const gr_task *k, gr_radau_room *r, const double *other) {
  const double leeway = gr_radau_leeway(k);
  for (long i = 0; i < GR_N; i++) {
    const double a = fabs(r->y[i]), b = fabs(other[i]);
    const double unit = k->atol[i] + k->rtol * (a > b ? a : b);
    r->scale[i] = leeway * (unit > 1e-300 ? unit : 1e-300);
  }
}

/* relative size of the solution, for iterations to rounding */
GR_FN void gr_radau_sizes(const gr_task *k, gr_radau_room *r) {
  for (long i = 0; i < GR_N; i++) {
    const double size = fabs(r->y[i]) + k->atol[i] / k->rtol;
    r->scale[i] = size > 0.0 ? size : 1.0;
  }
}

/* first step: one hundredth of the time in which x would change by its own size */
GR_FN double gr_radau_first_step(const gr_task *k, gr_radau_room *r) {
  double size = 0.0, speed = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    const double unit = k->atol[i] + k->rtol * fabs(r->y[i]);
    size += (r->y[i] / unit) * (r->y[i] / unit);
    speed += (r->f[i] / unit) * (r->f[i] / unit);
  }
  size = sqrt(size / GR_LEN(GR_NX));
  speed = sqrt(speed / GR_LEN(GR_NX));
  const double most = 1e-3 * (k->t1 - k->t), h = 0.01 * (size > 100.0 ? size : 100.0) / speed;
  return h < most ? h : most;
}

/* the wish of the controller, cut so that the step ends where it must: at a kink, or at a row that cannot be
 * interpolated */
GR_FN double gr_radau_cut(const gr_task *k, const gr_radau *s, double h, long land) {
  if (k->hmax > 0.0 && h > k->hmax)
    h = k->hmax;
  const double left = s->kink - k->t;
  h = h >= left ? left : 2.0 * h > left ? 0.5 * left : h;
  if (!gr_row_before(k, k->t + h))
    return h;
  const double row = k->times[k->written] - k->t;
  return land || s->roughness * h * h * h * h > 1.0 ? row : h;
}

GR_FN double gr_radau_between(double low, double value, double high) {
  return !(value > low) ? low : value < high ? value : high;
}

/* h_new after an attempt of length h with this error */
GR_FN double gr_radau_propose(const gr_radau *s, double h, double error, long iterations) {
  const double most = GR_RADAU_MOST_ITERATIONS;
  double safety = GR_RADAU_SAFETY * (1.0 + 2.0 * most) / ((double)iterations + 2.0 * most);
  if (safety > GR_RADAU_SAFETY)
    safety = GR_RADAU_SAFETY;
  double quotient = gr_radau_between(1.0 / GR_RADAU_GROW, pow(error, 0.25) / safety, 1.0 / GR_RADAU_SHRINK);
  if (error < 1.0 && !s->first && s->h_accepted > 0.0) {
    const double predicted = s->h_accepted / h * pow(error * error / s->error_accepted, 0.25) / GR_RADAU_SAFETY;
    const double bounded = gr_radau_between(1.0 / GR_RADAU_GROW, predicted, 1.0 / GR_RADAU_SHRINK);
    if (bounded > quotient)
      quotient = bounded;
  }
  return h / quotient;
}

/* Rows inside an acceptable step; answers GR_MORE when the next one has to be the end of a shorter step. */
GR_FN long gr_radau_rows_inside(gr_task *k, gr_radau_room *r, double h) {
  const double leeway = gr_radau_leeway(k), h4 = h * h * h * h;
  if (k->written >= k->n_times)
    return GR_DONE;
  r->s->roughness = leeway * gr_radau_doubt(r, h, 0.5, r->third, r->row_x) / h4;
  while (gr_row_before(k, k->t + h)) {
    const double s = (k->times[k->written] - k->t) / h, doubt = leeway * gr_radau_doubt(r, h, s, r->third, r->row_x);
    if (!(doubt <= 1.0)) {
      r->s->roughness = doubt / h4;
      return GR_MORE;
    }
    const long status = gr_radau_row_inside(k, r, h, s);
    if (status)
      return status;
  }
  return GR_DONE;
}

/* where the next step goes on: a step cut short does not shrink the wish unless its own error says so */
GR_FN void gr_radau_next_wish(gr_radau *s, double wish, double h, double proposal, double error) {
  if (s->rejected && proposal > h)
    proposal = h;
  s->h_accepted = h;
  s->error_accepted = error > 1e-2 ? error : 1e-2;
  if (h < 0.999 * wish && proposal >= 0.999 * GR_RADAU_GROW * h && proposal < wish)
    proposal = wish;
  const double gain = proposal / h;
  s->h = gain >= 1.0 && gain <= GR_RADAU_KEEP_STEP && s->theta <= GR_RADAU_KEEP_JACOBIAN ? h : proposal;
}

/* Newton's matrices for steps of length h; answers 0 or a status */
GR_FN long gr_radau_prepare(gr_task *k, gr_radau_room *r, double h) {
  gr_radau *s = r->s;
  if (s->h_factored > 0.0 && fabs(h - s->h_factored) <= 1e-9 * h)
    return GR_DONE;
  const long refused = gr_radau_factor(k, r, h);
  s->h_factored = refused ? 0.0 : h;
  if (!refused)
    return GR_DONE;
  const long bad = gr_not_finite(GR_N * GR_N, r->jac);
  return bad >= 0 ? gr_fail(k, GR_NOT_FINITE, bad % GR_LEN(GR_N), r->jac[bad])
                  : gr_fail(k, GR_SINGULAR, refused - 1, 0.0);
}

/* the next attempt after one that failed: a shorter step, or a fresh Jacobian where Newton's iteration had an old one
 */
GR_FN double gr_radau_retreat(gr_task *k, gr_radau_room *r, double h, double factor, long status) {
  r->s->rejected = 1;
  k->rejected++;
  if (!r->s->jacobian_here && status == GR_NEWTON) {
    gr_radau_jacobian_here(k, r);
    return h;
  }
  return factor * h;
}

/* Newton's iteration for a step of length h and its error; answers 0 or the status that a shorter step may avoid */
GR_FN long gr_radau_attempt(gr_task *k, gr_radau_room *r, double h, double *factor, double *error, double *proposal) {
  const double eps = 10.0 * DBL_EPSILON / k->rtol, loose = sqrt(k->rtol);
  double kappa = loose < 0.03 ? loose : 0.03;
  const long limit = k->ns > 0 ? GR_RADAU_MOST_ITERATIONS + 3 : GR_RADAU_MOST_ITERATIONS, before = k->newton_iterations;
  if (k->ns > 0)
    kappa *= 0.01;
  if (kappa < eps)
    kappa = eps;
  *factor = 0.25;
  long status = gr_radau_prepare(k, r, h);
  if (status)
    return status;
  gr_radau_stage_signals(k, r, k->t, h);
  gr_radau_scales(k, r, r->y);
  gr_radau_predict(r, k->t, h);
  const long outcome = gr_radau_iterate(k, r, k->t, h, kappa, limit, factor);
  if (outcome == GR_RADAU_BAD_VALUE) {
    *factor = 0.25;
    r->s->h_poly = 0.0;
    return GR_NOT_FINITE;
  }
  if (outcome != GR_RADAU_CONVERGED) {
    k->where = gr_radau_largest(r->G, 3 * GR_N) % GR_LEN(GR_N);
    k->amount = r->G[k->where];
    return GR_NEWTON;
  }
  for (long i = 0; i < GR_N; i++)
    r->end[i] = r->y[i] + r->Z[i + 2 * GR_N];
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

/* sensitivities and F at the end of an acceptable step */
GR_FN long gr_radau_complete(gr_task *k, gr_radau_room *r, double h, double tolerance, long expected) {
  const long bad = gr_radau_finish(k, r, k->t, h);
  if (bad >= 0)
    return gr_fail(k, GR_NOT_FINITE, bad, r->slope[bad]);
  gr_radau_third(r->Z, r->third);
#if GR_SENSITIVE
  if (k->ns > 0) {
    if (!gr_radau_tangent(k, r, k->t, h, tolerance, expected))
      return gr_fail(k, GR_SINGULAR, 0, 0.0);
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
  if (end >= s->kink - gr_smallest_step(k, s->kink))
    return s->kink;
  return gr_row_at(k, end) ? k->times[k->written] : end;
}

/* one accepted step */
GR_FN long gr_radau_adaptive_step(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  double factor, error = 0.0, proposal = 0.0, wish = s->h, try_h = s->h;
  long land = 0, singular = 0, more_rows;
  for (;;) {
    if (k->steps + k->rejected >= k->max_steps)
      return GR_TOO_MANY_STEPS;
    const double h = gr_radau_cut(k, s, try_h, land);
    if (!s->jacobian_here && s->theta > GR_RADAU_KEEP_JACOBIAN)
      gr_radau_jacobian_here(k, r);
    long status = gr_radau_attempt(k, r, h, &factor, &error, &proposal);
    if (status == GR_SINGULAR && ++singular >= GR_RADAU_SINGULAR_TRIES)
      return GR_SINGULAR;
    if (!status) {
      status = gr_radau_complete(k, r, h, 1e-3 * k->rtol, 4);
      factor = 0.25;
    }
    if (status) {
      try_h = gr_radau_retreat(k, r, h, factor, status);
      wish = try_h;
      land = 0;
      if (!(try_h > gr_smallest_step(k, k->t)))
        return status;
      continue;
    }
    more_rows = gr_radau_rows_inside(k, r, h);
    if (more_rows == GR_MORE) {
      gr_radau_remember_polynomial(k, r, h);
      land = 1;
      continue;
    }
    if (more_rows)
      return more_rows;
    gr_radau_next_wish(s, wish, h, proposal, error);
    k->error_estimate = error;
    return gr_radau_advance(k, r, gr_radau_end_of(k, s, k->t + h), h);
  }
}

/* ---- frozen steps ---- */

GR_FN void gr_radau_next_stretch(gr_task *k, gr_radau *s) {
  s->from = k->t;
  s->to = gr_next_mandatory(k, k->t, s->kink);
  s->parts = (long)ceil((s->to - s->from) / k->fixed_step * (1.0 - 1e-12));
  if (s->parts < 1)
    s->parts = 1;
  s->part = 0;
}

GR_FN long gr_radau_frozen_step(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  if (k->steps >= k->max_steps)
    return GR_TOO_MANY_STEPS;
  if (s->part == s->parts)
    gr_radau_next_stretch(k, s);
  const double h = (s->to - s->from) / (double)s->parts;
  if (!s->jacobian_here)
    gr_radau_jacobian_here(k, r);
  long status = gr_radau_prepare(k, r, h);
  if (status)
    return status;
  gr_radau_stage_signals(k, r, k->t, h);
  gr_radau_sizes(k, r);
  gr_radau_predict(r, k->t, h);
  const long outcome = gr_radau_iterate_exact(k, r, k->t, h);
  if (outcome != GR_RADAU_CONVERGED)
    return outcome == GR_RADAU_BAD_VALUE ? GR_NOT_FINITE : GR_NEWTON;
  status = gr_radau_complete(k, r, h, 1e-15, 8);
  if (status)
    return status;
  gr_radau_scales(k, r, r->end);
  const double error = gr_radau_error(k, r, k->t, h, 0);
  if (error > k->error_estimate)
    k->error_estimate = error;
  s->part++;
  status = gr_radau_advance(k, r, s->part == s->parts ? s->to : s->from + (double)s->part * h, h);
  return status;
}

/* ---- the run ---- */

GR_FN long gr_radau_start(gr_task *k, gr_radau_room *r) {
  gr_radau *s = r->s;
  s->h_factored = s->h_poly = s->t_poly = s->h_previous = s->h_accepted = s->error_accepted = s->roughness = 0.0;
  s->theta = s->rate = 1.0;
  s->from = s->to = k->t;
  s->part = s->parts = s->rejected = s->jacobian_here = s->segment = s->z_valid = 0;
  s->first = 1;
  s->kink = gr_next_kink(k, k->t);
  k->resumed = 1;
  gr_radau_load(k, r);
  gr_signals(k, k->t, k->t, r->u);
  gr_F(k->t, r->y, r->y + GR_NX, r->u, k->p, r->f);
  k->evaluations++;
  const long bad = gr_not_finite(GR_N, r->f);
  if (bad >= 0)
    return gr_fail(k, GR_NOT_FINITE, bad, r->f[bad]);
  gr_radau_slope_sensitivities(k, r);
  const long status = gr_radau_rows_here(k, r);
  s->h = k->h > 0.0 ? k->h : gr_radau_first_step(k, r);
  return status;
}

GR_FN long gr_radau_run(gr_task *k, gr_radau_room *r) {
  long status = k->resumed ? GR_DONE : gr_radau_start(k, r);
  for (long done = 0; !status && k->t < k->t1; done++) {
    if (k->slice > 0 && done >= k->slice)
      return GR_MORE;
    status = k->fixed_step > 0.0 ? gr_radau_frozen_step(k, r) : gr_radau_adaptive_step(k, r);
  }
  return status;
}

GR_API long gr_implicit(gr_task *task) {
  gr_radau_room r;
  gr_radau_lay_out(task->work, task->ns, &r);
  task->status = gr_radau_run(task, &r);
  if (task->status == GR_DONE || task->status == GR_MORE)
    task->where = -1;
  task->h = r.s->h;
  return task->status;
}

#endif
