/* Integrates by classical Runge-Kutta steps of fourth order whose ends do not depend on the solution.
 *
 * Between two mandatory points (kinks, requested times, t1) lie ceil(length / fixed_step) equal steps, nothing is
 * rejected, z and the projection are iterated to rounding: the trajectory is a smooth function of p and the start, and
 * S is its exact derivative.
 *
 * Four evaluations per step leave no room for an embedded estimate of the order of the error. So the step is compared
 * with two of half its length (|difference| * 16/15, order h^5), but only where h |k3 - k2| or h |k1 - k2 - k3 + k4|,
 * free and growing with the error, exceeds what it was at the last comparison by a tenth: a handful of times per run.
 */
#ifndef GR_RK4_H
#define GR_RK4_H

#include "gr_bend_tangents.h"
#include "gr_bends.h"
#include "gr_change.h"
#include "gr_events.h"
#include "gr_output.h"
#include "gr_project.h"
#include "gr_signal.h"
#include "gr_task.h"

/* what must survive between slices; doubles only, because it lives in task->work */
typedef struct {
  double kink, from, to, step, steps, segment, ready, valid, seen;
  double missed; /* at the last comparison in pieces */
  double happened, moves, ends; /* 1: an event was the last point; the stretch begins at one, ends at a moving tick */
} gr_rk4_memory;

#define GR_RK4_MEMORY ((long)(sizeof(gr_rk4_memory) / sizeof(double)))

typedef struct {
  gr_task *k;
  gr_rk4_memory *m;
  gr_newton newton;
  gr_projection projection;
  double *k1;            /* N */
  double *fp;            /* N x NP, then dO/d[x; z] and dO/dp */
  double *ks, *s, *sum;  /* NX x ns each: derivative, argument and weighted sum of the stages' sensitivities */
  double *sz;            /* NZ x ns */
  double *ahead;         /* ns: derivative of the instant at which the stretch ends */
  long segment;
#if GR_HAS_E
  gr_event event;        /* that ended the last step */
#endif
} gr_rk4_run;

GR_FN gr_rk4_run gr_rk4_in(gr_task *k) {
  gr_rk4_run r;
  double *w = k->work + gr_event_room(k->ns) + GR_RK4_MEMORY;
  r.k = k;
  r.m = (gr_rk4_memory *)(k->work + gr_event_room(k->ns));
  r.newton = gr_newton_in(w);
  r.projection = gr_projection_in(w += GR_NEWTON_WORK);
  r.k1 = w += GR_PROJECT_WORK;
  r.fp = w += GR_N;
  r.ks = w += GR_OUTPUT_WORK;
  r.s = w += GR_NX * k->ns;
  r.sum = w += GR_NX * k->ns;
  r.sz = w += GR_NX * k->ns;
  r.ahead = w + GR_NZ * k->ns;
#if GR_HAS_E
  r.event.mode = -1;
#endif
  return r;
}

GR_API long gr_rk4_work(long ns) {
  return gr_event_room(ns) + GR_RK4_MEMORY + GR_NEWTON_WORK + GR_PROJECT_WORK + GR_N + GR_OUTPUT_WORK +
         (3 * GR_NX + GR_NZ + 1) * ns;
}

/* f = F at (t, x), z solved as it continues `from`; u is left for whoever needs it at the same point */
GR_FN long gr_rk4_evaluate(gr_rk4_run *r, const gr_anchor *from, double t, const double *x, double *z, double *u,
                           double *f) {
  gr_signals_from(r->k, r->segment, t, u);
  r->newton.f = f;
  return gr_solve_implicit(r->k, &r->newton, from, t, x, z, u);
}

#if GR_SENSITIVE
/* ks = dF/dx s + dF/dz sz + dF/dp dp; sum += weight ks */
GR_FN long gr_rk4_sensitivity(gr_rk4_run *r, double t, const double *x, const double *z, const double *u,
                              const double *s, double weight) {
  gr_task *k = r->k;
  const double *jac = r->newton.jac;
  gr_J(t, x, z, u, k->p, r->newton.jac);
  k->jacobians++;
  gr_FP(t, x, z, u, k->p, r->fp);
#if GR_HAS_Z
  gr_note_sides(k, &r->newton, t, x, z, u);
  long status = gr_factor_z(k, &r->newton);
  if (status) return status;
#endif
  gr_sensitivity_z(k, &r->newton, r->fp, s, r->sz);
  for (long d = 0; d < k->ns; d++) {
    double *out = r->ks + GR_NX * d;
    GR_ALONG_P(FP, GR_N, r->fp, 0, GR_NX, k->dp + GR_NP * d, out);
    GR_ADD_TIMES(J, GR_N, jac, 0, GR_NX, 0, GR_NX, s + GR_NX * d, out);
    GR_ADD_TIMES(J, GR_N, jac, 0, GR_NX, GR_NX, GR_NZ, r->sz + GR_NZ * d, out);
    for (long i = 0; i < GR_NX; i++) r->sum[i + GR_NX * d] += weight * out[i];
  }
  return GR_DONE;
}
#endif

/* One step from (t, x) to (end, out) with k1 given; k2, k3, k4 are left for the indicator. With `follow`, r->sum becomes
 * the weighted sum of the stages' sensitivities. */
GR_FN long gr_rk4_advance(gr_rk4_run *r, double t, double end, const double *x, double *z, const double *k1,
                          double *k2, double *k3, double *k4, double *out, long follow) {
  double h = end - t, middle = t + 0.5 * h, u[GR_LEN(GR_NU)], at[GR_LEN(GR_NX)], start[GR_LEN(GR_NZ)];
  const gr_anchor from = {t, x, start, r->segment};
  double *k[3];
  const double *before = k1;
  k[0] = k2; k[1] = k3; k[2] = k4;
  for (long i = 0; i < GR_NZ; i++) start[i] = z[i];
#if GR_SENSITIVE
  const double weight[3] = {2.0, 2.0, 1.0};
  if (follow) {
    for (long i = 0; i < GR_NX * r->k->ns; i++) r->sum[i] = 0.0;
    gr_signals_from(r->k, r->segment, t, u);
    long status = gr_rk4_sensitivity(r, t, x, z, u, r->k->sx, 1.0);
    if (status) return status;
  }
#else
  (void)follow;
#endif
  for (long stage = 0; stage < 3; stage++) {
    double step = stage < 2 ? 0.5 * h : h, time = stage < 2 ? middle : end;
    for (long i = 0; i < GR_NX; i++) at[i] = x[i] + step * before[i];
    long status = gr_rk4_evaluate(r, &from, time, at, z, u, k[stage]);
    if (status) return status;
    before = k[stage];
#if GR_SENSITIVE
    if (follow) {
      for (long i = 0; i < GR_NX * r->k->ns; i++) r->s[i] = r->k->sx[i] + step * r->ks[i];
      status = gr_rk4_sensitivity(r, time, at, z, u, r->s, weight[stage]);
      if (status) return status;
    }
#endif
  }
  for (long i = 0; i < GR_NX; i++) out[i] = x[i] + h / 6.0 * (k1[i] + 2.0 * (k2[i] + k3[i]) + k4[i]);
  return GR_DONE;
}

/* the same step in two halves; their difference goes into error_estimate */
GR_FN void gr_rk4_compare(gr_rk4_run *r, double t, double end, const double *whole) {
  gr_task *k = r->k;
  double middle = 0.5 * (t + end), z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  double k1[GR_LEN(GR_N)], k2[GR_LEN(GR_N)], k3[GR_LEN(GR_N)], k4[GR_LEN(GR_N)], half[GR_LEN(GR_NX)], x[GR_LEN(GR_NX)];
  double estimate = HUGE_VAL;
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  const gr_anchor from = {t, k->x, k->z, r->segment};
  if (!gr_rk4_advance(r, t, middle, k->x, z, r->k1, k2, k3, k4, half, 0) &&
      !gr_rk4_evaluate(r, &from, middle, half, z, u, k1) && !gr_rk4_advance(r, middle, end, half, z, k1, k2, k3, k4, x, 0)) {
    for (long i = 0; i < GR_NX; i++) x[i] -= whole[i];
    estimate = 16.0 / 15.0 * sqrt(gr_mean_square(k, whole, x));
  }
  if (!(estimate <= k->error_estimate)) k->error_estimate = estimate;
}

GR_FN double gr_rk4_indicator(const gr_task *k, double h, const double *k1, const double *k2, const double *k3,
                              const double *k4) {
  double sum = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    double bend = fabs(k3[i] - k2[i]), curve = fabs(k1[i] - k2[i] - k3[i] + k4[i]);
    double one = h * (bend > curve ? bend : curve) / (k->atol[i] + k->rtol * fabs(k->x[i]));
    sum += one * one;
  }
  return sum;
}

#if GR_HAS_BENDS
/* a step from here to x, with F at its ends */
typedef struct {
  gr_rk4_run *r;
  double h;
  const double *x, *z, *f;
} gr_rk4_span;

GR_FN void gr_rk4_roughly(const void *run, double share, double *x, double *z, double *u) {
  const gr_rk4_span *a = (const gr_rk4_span *)run;
  const gr_task *k = a->r->k;
  for (long i = 0; i < GR_NX; i++) x[i] = gr_cubic(share, k->x[i], a->h * a->r->k1[i], a->x[i], a->h * a->f[i]);
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i] + share * (a->z[i] - k->z[i]);
  gr_signals_from(k, a->r->segment, k->t + share * a->h, u);
}

GR_COLD double gr_rk4_defect(void *run, double share) {
  const gr_rk4_span *a = (const gr_rk4_span *)run;
  gr_task *k = a->r->k;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], f[GR_LEN(GR_N)], sum = 0.0;
  const gr_anchor from = {k->t, k->x, k->z, a->r->segment};
  gr_rk4_roughly(run, share, x, z, u);
  if (gr_rk4_evaluate(a->r, &from, k->t + share * a->h, x, z, u, f)) return HUGE_VAL;
  for (long i = 0; i < GR_NX; i++) {
    const double slope = gr_cubic_slope(share, k->x[i], a->h * a->r->k1[i], a->x[i], a->h * a->f[i]);
    sum += gr_square((a->h * f[i] - slope) / (k->atol[i] + k->rtol * fabs(k->x[i])));
  }
  return sqrt(sum / GR_LEN(GR_NX));
}

/* the step to `end` again in pieces that end at n points; the difference goes into error_estimate */
GR_COLD void gr_rk4_compare_pieces(gr_rk4_run *r, double end, const double *at, long n, const double *whole) {
  gr_task *k = r->k;
  double x[GR_LEN(GR_NX)], y[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], k1[GR_LEN(GR_N)], k2[GR_LEN(GR_N)],
      k3[GR_LEN(GR_N)], k4[GR_LEN(GR_N)];
  const double h = end - k->t;
  const gr_anchor from = {k->t, k->x, k->z, r->segment};
  double t = k->t, estimate = HUGE_VAL;
  long status = GR_DONE;
  for (long i = 0; i < GR_NX; i++) x[i] = k->x[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  for (long j = 0; j <= n && !status; j++) {
    const double next = j < n ? k->t + at[j] * h : end;
    if (!(next > t)) continue;
    status = gr_rk4_evaluate(r, &from, t, x, z, u, k1);
    if (!status) status = gr_rk4_advance(r, t, next, x, z, k1, k2, k3, k4, y, 0);
    for (long i = 0; i < GR_NX; i++) x[i] = y[i];
    t = next;
  }
  for (long i = 0; i < GR_NX; i++) x[i] -= whole[i];
  if (!status) estimate = sqrt(gr_mean_square(k, whole, x));
  if (!(estimate <= k->error_estimate)) k->error_estimate = estimate;
}

/* a step that passes bends is compared with one in pieces, where more may have been missed than at the last time */
GR_FN void gr_rk4_look(gr_rk4_run *r, double end, const double *x, const double *z, const double *f) {
  gr_task *k = r->k;
  gr_rk4_span a = {r, end - k->t, x, z, f};
  const gr_span s = {k, &a, a.h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_rk4_roughly, gr_rk4_defect, 0};
  gr_bend_list bends;
  double *at = bends.at, missed = 0.0;
  const double amount = k->amount;
  const long rescues = k->rescues, where = k->where;
  if (!gr_lists_bends(&s, 2.0, &bends)) return;
  const long n = gr_bend_middles(at, bends.n);
  for (long j = 0; j < n; j++) missed += gr_bend_width(at, n, j) * gr_rk4_defect(&a, at[j]);
  if (bends.upto < 1.0) k->error_estimate = HUGE_VAL;
  if (missed > 1.1 * r->m->missed) {
    r->m->missed = missed;
    gr_rk4_compare_pieces(r, end, at, n, x);
  }
  k->rescues = rescues;
  k->where = where;
  k->amount = amount;
}

#if GR_SENSITIVE
/* ks at a share of a step, for S of a stage; sum += weight ks */
GR_COLD long gr_rk4_sensitivity_inside(const gr_rk4_span *a, double share, const double *s, double weight) {
  gr_task *k = a->r->k;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], f[GR_LEN(GR_N)];
  const gr_anchor from = {k->t, k->x, k->z, a->r->segment};
  const double t = k->t + share * a->h;
  gr_rk4_roughly(a, share, x, z, u);
#if GR_HAS_Z
  const long status = gr_rk4_evaluate(a->r, &from, t, x, z, u, f);
  if (status) return status;
#else
  (void)from;
  (void)f;
#endif
  return gr_rk4_sensitivity(a->r, t, x, z, u, s, weight);
}

#if GR_HAS_Z
/* inside a step, z solved for: the line between its ends is too far from it */
GR_COLD long gr_rk4_solved(void *run, double share, double *x, double *z, double *u) {
  const gr_rk4_span *a = (const gr_rk4_span *)run;
  const gr_task *k = a->r->k;
  double f[GR_LEN(GR_N)];
  const gr_anchor from = {k->t, k->x, k->z, a->r->segment};
  gr_rk4_roughly(run, share, x, z, u);
  return gr_rk4_evaluate(a->r, &from, k->t + share * a->h, x, z, u, f);
}
#endif

GR_COLD const double *gr_rk4_tangent_rate(void *run, double share, long slot) {
  const gr_rk4_span *a = (const gr_rk4_span *)run;
  gr_rk4_run *r = a->r;
  if (slot > 2) return r->sum; /* of the stages, six of them in weight: only its size counts */
  if (gr_rk4_sensitivity_inside(a, share, r->k->sx, 0.0)) return 0;
  if (slot > 1) return r->ks;
  for (long i = 0; i < GR_NX * r->k->ns; i++) r->s[i] = r->ks[i];
  return r->s;
}

/* S of a step from here to x, in pieces that end at bends: sx becomes it, and sum zero. Steps that A does not jump in
 * stay what they are. */
GR_COLD long gr_rk4_follow_pieces(gr_rk4_run *r, double end, const double *x, const double *z, const double *f) {
  gr_task *k = r->k;
  gr_rk4_span a = {r, end - k->t, x, z, f};
#if GR_HAS_Z
  const gr_span s = {k, &a, a.h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_rk4_roughly, 0, gr_rk4_solved};
#else
  const gr_span s = {k, &a, a.h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_rk4_roughly, 0, 0};
#endif
  gr_tangent tangent = {gr_rk4_tangent_rate, k->sx, GR_NX, GR_NX, 0};
  const long all = GR_NX * k->ns;
  const double node[4] = {GR_TANGENT_ASIDE, 0.5, 0.5, 1.0 - GR_TANGENT_ASIDE}, way[4] = {0.0, 0.5, 0.5, 1.0};
  const double weight[4] = {1.0, 2.0, 2.0, 1.0};
  gr_bend_list bends;
  bends.n = 0;
  const long jumps = gr_lists_bends(&s, 1.0, &bends) && gr_tangent_upto(&s, &tangent, &bends) < 1.0;
  if (!jumps && !gr_tangent_bends_at(&s, &tangent, 0.0) && !gr_tangent_bends_at(&s, &tangent, 1.0)) return GR_DONE;
#if GR_HAS_Z
  for (long j = 0; j < bends.n; j++) bends.at[j] = gr_bend_refined(&s, bends.of[j], bends.at[j]);
#endif
  double from = 0.0;
  for (long j = 0; j <= bends.n; j++) {
    const double to = j < bends.n ? bends.at[j] : 1.0, part = (to - from) * a.h;
    if (!(to > from)) continue;
    for (long i = 0; i < all; i++) r->sum[i] = 0.0;
    for (long c = 0; c < 4; c++) {
      for (long i = 0; i < all; i++) r->s[i] = k->sx[i] + (c > 0 ? way[c] * part * r->ks[i] : 0.0);
      const long status = gr_rk4_sensitivity_inside(&a, from + node[c] * (to - from), r->s, weight[c]);
      if (status) return status;
    }
    for (long i = 0; i < all; i++) k->sx[i] += part / 6.0 * r->sum[i];
    from = to;
  }
  for (long i = 0; i < all; i++) r->sum[i] = 0.0;
  return GR_DONE;
}
#endif
#endif

#if GR_HAS_E
/* a step whose end is looked at */
typedef struct {
  gr_rk4_run *r;
  gr_stepper s;
  double x[GR_CAP(GR_NX, GR_MOST_X)], z[GR_CAP(GR_NZ, GR_MOST_Z)], k2[GR_CAP(GR_N, GR_MOST_N)];
  double k3[GR_CAP(GR_N, GR_MOST_N)], k4[GR_CAP(GR_N, GR_MOST_N)];
} gr_rk4_retake;

/* x, z on the equations at the end of a step */
GR_FN long gr_rk4_stand(gr_rk4_retake *a, double end) {
  gr_rk4_run *r = a->r;
  const gr_anchor from = {r->k->t, r->k->x, r->k->z, r->segment};
  a->s.t = end;
  a->s.x = a->x;
  a->s.z = a->z;
  gr_signals_from(r->k, r->segment, end, a->s.u);
  long status = gr_project(r->k, &r->projection, end, a->x, a->z, a->s.u);
  return status ? status : gr_rk4_evaluate(r, &from, end, a->x, a->z, a->s.u, a->k4);
}

GR_COLD long gr_rk4_take(void *run, double length) {
  gr_rk4_retake *a = (gr_rk4_retake *)run;
  gr_task *k = a->r->k;
  const double end = k->t + length;
  for (long i = 0; i < GR_NZ; i++) a->z[i] = k->z[i];
  long status = gr_rk4_advance(a->r, k->t, end, k->x, a->z, a->r->k1, a->k2, a->k3, a->k4, a->x, 0);
  return status ? status : gr_rk4_stand(a, end);
}

GR_FN void gr_rk4_inside(const void *run, double share, double *x, double *z, double *u) {
  const gr_rk4_retake *a = (const gr_rk4_retake *)run;
  const gr_task *k = a->r->k;
  const double h = a->s.t - k->t;
  gr_between(share, h, k->x, a->r->k1, k->z, a->x, a->k4, a->z, x, z);
  gr_signals_from(k, a->r->segment, k->t + share * h, u);
}

/* the end of the step from here to *end, whose outcome is x, z, moved to the first event in it */
GR_FN long gr_rk4_watch(gr_rk4_run *r, double *end, const double *x, const double *z, gr_event *event) {
  gr_task *k = r->k;
  gr_rk4_retake a;
  gr_gauge from, to;
  double u[GR_LEN(GR_NU)], noise[GR_NE], length = *end - k->t;
  event->mode = -1;
  a.r = r;
  a.s.run = &a;
  a.s.take = gr_rk4_take;
  a.s.inside = gr_rk4_inside;
  a.s.rough = 0;
  a.s.u_start = u;
  a.s.newton = &r->newton;
  for (long i = 0; i < GR_NX; i++) a.x[i] = x[i];
  for (long i = 0; i < GR_NZ; i++) a.z[i] = z[i];
  long status = gr_rk4_stand(&a, *end);
  if (status) return status;
  gr_signals_from(k, r->segment, k->t, u);
  gr_gauge_at(k, k->t, k->x, k->z, u, &from);
  gr_gauge_at(k, a.s.t, a.s.x, a.s.z, a.s.u, &to);
  const double share = gr_suspect(k, &a.s, &from, &to, length);
  if (share < 1.0) {
    status = gr_rk4_take(&a, share * length);
    if (status) return status;
    gr_gauge probe;
    gr_gauge_at(k, a.s.t, a.s.x, a.s.z, a.s.u, &probe);
    gr_gauge_noise(k, a.s.t, a.s.x, a.s.z, a.s.u, &probe, noise);
    if (gr_leaves(k, &probe, noise)) {
      to = probe;
      length = share * length;
    }
  }
  status = gr_find(k, &a.s, &from, &to, length, &length, event);
  if (event->mode >= 0) *end = k->t + length;
  return status;
}

#if GR_SENSITIVE
/* The outcome x of the step from here to `end` where its start is moved by `first`, along the motion, and its end by
 * `last`, both in time; *moved is by how much its end has, which rounding decides. */
GR_COLD long gr_rk4_displaced(gr_rk4_run *r, double end, double first, double last, double *x, double *moved) {
  gr_task *k = r->k;
  double k1[GR_LEN(GR_N)], k2[GR_LEN(GR_N)], k3[GR_LEN(GR_N)], k4[GR_LEN(GR_N)];
  double z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], from[GR_LEN(GR_NX)];
  const gr_anchor here = {k->t, k->x, k->z, r->segment};
  const double begin = k->t + first, stop = end + last;
  for (long i = 0; i < GR_NX; i++) from[i] = k->x[i] + (begin - k->t) * r->k1[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  *moved = stop - end;
  long status = gr_rk4_evaluate(r, &here, begin, from, z, u, k1);
  if (!status) status = gr_rk4_advance(r, begin, stop, from, z, k1, k2, k3, k4, x, 0);
  if (status) return status;
  gr_signals_from(k, r->segment, stop, u);
  return gr_project(k, &r->projection, stop, x, z, u);
}

/* By how much faster than F says the outcome x of the step from here to `end` moves, where its start moves along the motion
 * at the rate `first` and its end at the rate `last`: the discretisation error, to which a difference is sharp enough.
 * Zero where a step beyond a switch cannot be taken. */
GR_COLD void gr_rk4_excess(gr_rk4_run *r, double end, double first, double last, const double *x, const double *z,
                           double *excess) {
  gr_task *k = r->k;
  const gr_anchor here = {k->t, k->x, k->z, r->segment};
  const double by = GR_DISPLACEMENT * k->fixed_step, amount = k->amount;
  const long where = k->where;
  double high[GR_LEN(GR_NX)], low[GR_LEN(GR_NX)], f[GR_LEN(GR_N)], w[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], up, down;
  for (long i = 0; i < GR_NZ; i++) w[i] = z[i];
  long status = gr_rk4_displaced(r, end, by * first, by * last, high, &up);
  if (!status) status = gr_rk4_displaced(r, end, -by * first, -by * last, low, &down);
  if (!status) status = gr_rk4_evaluate(r, &here, end, x, w, u, f);
  for (long i = 0; i < GR_NX; i++) excess[i] = status ? 0.0 : (high[i] - low[i] - (up - down) * f[i]) / (2.0 * by);
  k->where = where;
  k->amount = amount;
}

/* sensitivities at the end of a step that scales with its stretch, one of whose ends moves by dt; `first` and `last` are the
 * shares of that which the ends of the step take */
GR_COLD void gr_rk4_scale(gr_rk4_run *r, double end, double first, double last, const double *x, const double *z,
                          const double *dt) {
  gr_task *k = r->k;
  double excess[GR_LEN(GR_NX)];
  gr_rk4_excess(r, end, first, last, x, z, excess);
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_NX; i++) k->sx[i + GR_NX * d] += excess[i] * dt[d];
}
#endif

/* the event at the current point, after which the rest of the stretch is planned anew */
GR_COLD long gr_rk4_happen(gr_rk4_run *r) {
  gr_task *k = r->k;
  double u[GR_LEN(GR_NU)], z[GR_LEN(GR_NZ)];
  const gr_anchor here = {k->t, k->x, z, r->segment};
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  long status = gr_rk4_evaluate(r, &here, k->t, k->x, k->z, u, r->k1);
  if (!status) status = gr_happen(k, &r->newton, &r->event, k->x, k->z, u, r->fp);
  r->m->happened = 1.0;
  for (long i = 0; i < GR_NX; i++) gr_slip(k)[i] = 0.0;
  r->event.mode = -1;
  r->m->step = r->m->steps;
  return status;
}
#endif

/* one step, from the evaluated start of it to a projected point */
GR_FN long gr_rk4_step(gr_rk4_run *r, double end) {
  gr_task *k = r->k;
  double k2[GR_LEN(GR_N)], k3[GR_LEN(GR_N)], k4[GR_LEN(GR_N)], x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  double h = end - k->t;
#if GR_HAS_E && GR_SENSITIVE
  const double from = r->m->step / r->m->steps, to = (r->m->step + 1.0) / r->m->steps; /* of the stretch */
#endif
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  long status = gr_rk4_advance(r, k->t, end, k->x, z, r->k1, k2, k3, k4, x, k->ns > 0);
#if GR_HAS_E
  const double whole = end;
  for (long n = 0; status == GR_NOT_FINITE && n < GR_MOST_RETAKES; n++) { /* what is held may end at its switch */
    double next = 0.5 * (end - k->t);
    gr_signals_from(k, r->segment, k->t, u);
    if (gr_is_blocked(k, u, end - k->t, &next, &r->event)) return GR_DONE;
    end = k->t + next;
    for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
    status = gr_rk4_advance(r, k->t, end, k->x, z, r->k1, k2, k3, k4, x, k->ns > 0);
  }
#endif
  if (status) return status;
#if GR_HAS_E
  status = gr_rk4_watch(r, &end, x, z, &r->event);
  if (status || end == k->t) return status;
  if (end != whole) {
    h = end - k->t;
    r->m->step = r->m->steps; /* the rest of the stretch is planned anew */
    for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
    status = gr_rk4_advance(r, k->t, end, k->x, z, r->k1, k2, k3, k4, x, k->ns > 0);
    if (status) return status;
  }
#endif
  double indicator = gr_rk4_indicator(k, h, r->k1, k2, k3, k4);
  if (indicator > 1.21 * r->m->seen) {
    r->m->seen = indicator;
    gr_rk4_compare(r, k->t, end, x);
  }
#if GR_HAS_BENDS
  gr_rk4_look(r, end, x, z, k4);
#endif
#if GR_HAS_C
  gr_signals_from(k, r->segment, end, u);
  status = gr_project(k, &r->projection, end, x, z, u);
  if (status) return status;
#else
  (void)u;
#endif
#if GR_SENSITIVE
  if (k->ns > 0) {
#if GR_HAS_BENDS
    status = gr_rk4_follow_pieces(r, end, x, z, k4);
    if (status) return status;
#endif
    for (long i = 0; i < GR_NX * k->ns; i++) k->sx[i] += h / 6.0 * r->sum[i];
    gr_project_sensitivity(k, &r->projection, end, x, z, u, k->sx);
#if GR_HAS_E
    if (r->m->moves != 0.0) gr_rk4_scale(r, end, 1.0 - from, end != whole ? 0.0 : 1.0 - to, x, z, k->dt);
    if (r->m->ends != 0.0) gr_rk4_scale(r, end, from, end != whole ? 0.0 : to, x, z, r->ahead);
    if (r->event.mode >= 0) gr_rk4_excess(r, end, 0.0, 1.0, x, z, gr_slip(k));
#endif
    long bad = gr_not_finite(GR_NX * k->ns, k->sx);
    if (bad >= 0) return gr_fail(k, GR_NOT_FINITE, bad % GR_LEN(GR_NX), k->sx[bad]);
  }
#endif
  for (long i = 0; i < GR_NX; i++) k->x[i] = x[i];
  for (long i = 0; i < GR_NZ; i++) k->z[i] = z[i];
  k->t = end;
  k->steps++;
  return GR_DONE;
}

/* the next stretch of equal steps, when the last one is finished */
GR_FN void gr_rk4_plan(gr_rk4_run *r) {
  gr_task *k = r->k;
  gr_rk4_memory *m = r->m;
  if (m->step < m->steps) return;
  if (k->t >= m->kink) m->kink = gr_next_kink_from(k, k->t, r->segment);
  m->moves = m->happened;
  m->happened = 0.0;
  m->from = k->t;
  m->to = gr_next_mandatory(k, k->t, m->kink);
  m->step = 0.0;
  m->steps = ceil(gr_frozen_length(k, m->from, m->to, r->segment) / k->fixed_step - 1e-9);
  if (m->steps < 1.0) m->steps = 1.0;
#if GR_HAS_E
  m->ends = (double)gr_ends_moving(k, m->from, m->to, r->segment, r->ahead);
#endif
}

GR_FN double gr_rk4_time(const gr_rk4_memory *m, double step) {
  return step >= m->steps ? m->to : m->from + step * ((m->to - m->from) / m->steps);
}

/* at an accepted point: F and z with the values that hold from here on, then the rows asked for here */
GR_FN long gr_rk4_arrive(gr_rk4_run *r, long done) {
  gr_task *k = r->k;
  double u[GR_LEN(GR_NU)], inside = done ? k->t : 0.5 * (k->t + gr_rk4_time(r->m, r->m->step + 1.0));
  double z[GR_LEN(GR_NZ)];
  const long segment = r->segment;
  const gr_anchor before = {k->t, k->x, z, segment};
  r->segment = gr_segment(k, inside, r->segment);
  if (!done || GR_NZ > 0) {
    for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
    double u_old[GR_LEN(GR_NU)];
    const gr_equations old = {k->x, u_old, k->p};
    gr_signals_from(k, segment, k->t, u_old);
    gr_signals_from(k, r->segment, k->t, u);
    r->newton.f = r->k1;
    long status = gr_solve_changed(k, &r->newton, &before, &old, k->t, k->x, k->z, u);
#if GR_HAS_E
    if (!status && gr_signals_jump(k, segment, r->segment, k->t)) {
      double u_before[GR_LEN(GR_NU)];
      gr_signals_from(k, segment, k->t, u_before);
      status = gr_modes_at_kink(k, &r->newton, k->x, k->z, u_before, u, r->fp);
      r->m->moves = (double)gr_is_moving(k, k->dt);
    }
#endif
    if (status) return status;
  } else {
    gr_signals_from(k, r->segment, k->t, u);
  }
  while (gr_row_at(k, k->t)) {
    long status = gr_write_row(k, &r->newton, k->t, k->x, k->z, u, k->sx, k->sz, r->fp);
    if (status) return status;
  }
#if GR_SENSITIVE
  if (done && k->ns > 0) return gr_complete_sensitivity(k, &r->newton, k->t, k->x, k->z, u, k->sx, k->sz, r->fp);
#endif
  return GR_DONE;
}

GR_FN long gr_rk4_loop(gr_rk4_run *r) {
  gr_task *k = r->k;
  gr_rk4_memory *m = r->m;
  long taken = 0;
  for (;;) {
    long done = k->t >= k->t1;
    if (!m->ready) {
      if (!done) gr_rk4_plan(r);
      long status = gr_rk4_arrive(r, done);
      if (status || done) return status;
      m->ready = 1.0;
    }
    if (k->steps >= k->max_steps) return gr_fail(k, GR_TOO_MANY_STEPS, -1, k->t);
    if (k->slice > 0 && taken++ >= k->slice) return GR_MORE;
    long status = gr_rk4_step(r, gr_rk4_time(m, m->step + 1.0));
    if (status) return status;
    m->step += 1.0;
    m->ready = 0.0;
#if GR_HAS_E
    if (r->event.mode >= 0) status = gr_rk4_happen(r);
    if (status) return status;
#endif
  }
}

GR_ENTRY long gr_rk4(gr_task *k) {
  gr_rk4_run r = gr_rk4_in(k);
  if (!k->resumed) {
    const gr_rk4_memory fresh = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    *r.m = fresh;
    r.m->kink = gr_next_kink(k, k->t);
    r.m->segment = (double)gr_segment(k, k->t, 0);
  }
  r.segment = (long)r.m->segment;
  r.newton.valid = r.m->valid != 0.0;
  long status = GR_DONE;
#if GR_HAS_E
  if (!k->resumed && k->t == k->t0) {
    double u[GR_LEN(GR_NU)];
    gr_signals_from(k, r.segment, k->t, u);
    status = gr_first_modes(k, &r.newton, k->x, k->z, u, r.fp);
    r.m->happened = (double)gr_is_moving(k, k->dt);
  }
#endif
  k->resumed = 1;
  gr_end(k, status ? status : gr_rk4_loop(&r));
  r.m->segment = (double)r.segment;
  r.m->valid = (double)r.newton.valid;
  return k->status;
}

#endif
