/* Computes the derivative of sum_rows weights . y by the start and by every parameter from frozen steps in reverse, for
 * the price of a few simulations, however many parameters there are.
 *
 * gr_adjoint_forward runs from t0 to t1 and keeps, for every step, the point it began at (implicit: and its stages);
 * gr_adjoint_back goes through them in reverse. What it gives is the derivative of that very trajectory. With
 *
 *   pull(l) = F'l,    F' with z eliminated:  (rhs_x)'l + (res_x)'w,  (res_z)'w = -(rhs_z)'l
 *
 * a Runge-Kutta step is undone stage by stage, and one of Radau IIA by
 *
 *   K' eta = (0, 0, lambda),   lambda <- lambda + sum_j J_j' eta_j,   K = A^-1/h (x) M - diag(J_1, J_2, J_3),
 *
 * solved with the transposes of Newton's matrices, or K' itself where that does not contract.
 *
 * Besides the functions of gr_task.h the model gives, with a vector l after p:
 *
 *   gr_FV (..., l, out)  NX+NZ  (dF/d[x;z])'l      gr_FQ (..., l, out)  NP  (dF/dp)'l
 *   gr_OV (..., l, out)  NX+NZ  (dO/d[x;z])'l      gr_OQ (..., l, out)  NP  (dO/dp)'l
 *   gr_CV (..., l, out)  NX     (dC/dx)'l          gr_CQ (..., l, out)  NP  (dC/dp)'l
 *
 * and defines GR_IMPLICIT_STEPS, 1: steps of Radau IIA, 0: Runge-Kutta. Only for models without modes (gr_events.h).
 * Mirrored by compilation/adjoint_kernel.py.
 */
#ifndef GR_ADJOINT_H
#define GR_ADJOINT_H

#define GR_ENTRY GR_FN

#include "gr_implicit.h"
#include "gr_rk4.h"
#include "gr_transposed.h"

typedef struct {
  gr_task *task;          /* with fixed_step; its rows are answered on the way forward */
  long room, taken;       /* points that path holds; how many it has */
  double *path;
  const double *weights;  /* n_times x NY */
  double *lambda;         /* NX: derivative by x; at t1 coming in, at t0 going out */
  double *gradient;       /* NP: added to */
  double *work;           /* gr_adjoint_work() */
} gr_adjoint;

/* one point of the path: t, end of the step that begins here, segment of its signals, rows written up to here; x, z;
 * implicit: stages of that step */
#define GR_POINT_HEAD 4
#define GR_POINT_SIZE (GR_POINT_HEAD + (GR_IMPLICIT_STEPS ? 4 : 1) * GR_N)

#if GR_SPARSE
#define GR_SQUARE_WORK 0
#else
#define GR_SQUARE_WORK (GR_NC * (GR_NC + 1))
#endif

GR_API long gr_adjoint_point(void) { return GR_POINT_SIZE; }
GR_API long gr_forward_work(void) { return GR_IMPLICIT_STEPS ? gr_implicit_work(0) : gr_rk4_work(0); }
GR_API long gr_adjoint_work(void) { return GR_NEWTON_WORK + GR_PROJECT_WORK + GR_SQUARE_WORK + 1; }
GR_API long gr_adjoint_size(void) { return (long)sizeof(gr_adjoint); }

GR_FN double *gr_point(const gr_adjoint *a, long n) { return a->path + n * GR_POINT_SIZE; }

/* the current point; answers 0 where the path is full */
GR_FN long gr_note_point(gr_adjoint *a, long segment) {
  const gr_task *k = a->task;
  if (a->taken >= a->room) return 0;
  double *point = gr_point(a, a->taken++);
  point[0] = point[1] = k->t;
  point[2] = (double)segment;
  point[3] = (double)k->written;
  for (long i = 0; i < GR_NX; i++) point[GR_POINT_HEAD + i] = k->x[i];
  for (long i = 0; i < GR_NZ; i++) point[GR_POINT_HEAD + GR_NX + i] = k->z[i];
  return 1;
}

/* ---- forward ---- */

GR_FN long gr_record_explicit(gr_adjoint *a) {
  gr_task *k = a->task;
  gr_rk4_run r = gr_rk4_in(k);
  const gr_rk4_memory fresh = {0, 0, 0, 0, 0, 0, 0, 0, 0};
  *r.m = fresh;
  r.m->kink = gr_next_kink(k, k->t);
  r.segment = gr_segment(k, k->t, 0);
  for (;;) {
    const long done = k->t >= k->t1;
    if (!done) gr_rk4_plan(&r);
    long status = gr_rk4_arrive(&r, done);
    if (status) return status;
    if (!gr_note_point(a, r.segment)) return GR_MORE;
    if (done) return GR_DONE;
    const double end = gr_rk4_time(r.m, r.m->step + 1.0);
    gr_point(a, a->taken - 1)[1] = end;
    status = gr_rk4_step(&r, end);
    if (status) return status;
    r.m->step += 1.0;
  }
}

GR_FN gr_radau_room gr_room_of(gr_task *k) {
  gr_radau_room r;
  gr_radau_lay_out(k->work, k->ns, &r);
#if GR_SPARSE
  r.factors = gr_all_factors_of(k);
#endif
  return r;
}

GR_FN long gr_record_implicit(gr_adjoint *a) {
  gr_task *k = a->task;
  gr_radau_room r = gr_room_of(k);
  long status = gr_radau_start(k, &r);
  while (!status) {
    if (!gr_note_point(a, r.s->segment)) return GR_MORE;
    if (k->t >= k->t1) return GR_DONE;
    double *point = gr_point(a, a->taken - 1);
    status = gr_radau_frozen_step(k, &r);
    point[1] = k->t;
    point[2] = (double)r.s->segment;
    for (long i = 0; i < 3 * GR_N; i++) point[GR_POINT_HEAD + GR_N + i] = r.Z[i];
  }
  return status;
}

/* from t0 to t1; GR_MORE where the path is full */
GR_API long gr_adjoint_forward(gr_adjoint *a) {
  a->taken = 0;
  return gr_end(a->task, GR_IMPLICIT_STEPS ? gr_record_implicit(a) : gr_record_explicit(a));
}

/* ---- pulling back through equations ---- */

typedef struct {
  gr_adjoint *a;
  gr_newton newton;
  gr_projection projection;
  double *square; /* NC x NC, of dense kernels */
  long *pivot;    /* NC */
} gr_backward;

GR_FN gr_backward gr_backward_in(gr_adjoint *a) {
  gr_backward b;
  double *w = a->work;
  b.a = a;
  b.newton = gr_newton_in(w);
  b.projection = gr_projection_in(w += GR_NEWTON_WORK);
  b.square = w += GR_PROJECT_WORK;
  b.pivot = (long *)(w + GR_NC * GR_NC);
  return b;
}

GR_FN void gr_add_gradient(gr_adjoint *a, const double *v) {
  for (long i = 0; i < GR_NP; i++) a->gradient[i] += v[i];
}

#if GR_HAS_Z
/* w: NZ, becomes the solution of (res_z)'w = w */
GR_FN long gr_pull_z(gr_backward *b, double t, const double *x, const double *z, const double *u, double *w) {
  gr_task *k = b->a->task;
  const long status = gr_linearise_z(k, &b->newton, t, x, z, u);
  if (!status) gr_solve_z_transposed(k, &b->newton, w);
  return status;
}
#endif

/* out = pull(l), the share of the parameters to the gradient; l: NX */
GR_FN long gr_pull(gr_backward *b, double t, const double *x, const double *z, const double *u, const double *l,
                   double *out) {
  gr_adjoint *a = b->a;
  double full[GR_LEN(GR_N)], v[GR_LEN(GR_N)], q[GR_LEN(GR_NP)];
  for (long i = 0; i < GR_N; i++) full[i] = i < GR_NX ? l[i] : 0.0;
#if GR_HAS_Z
  gr_FV(t, x, z, u, a->task->p, full, v);
  const long status = gr_pull_z(b, t, x, z, u, v + GR_NX);
  if (status) return status;
  for (long i = 0; i < GR_NZ; i++) full[GR_NX + i] = -v[GR_NX + i];
#endif
  gr_FV(t, x, z, u, a->task->p, full, v);
  gr_FQ(t, x, z, u, a->task->p, full, q);
  gr_add_gradient(a, q);
  for (long i = 0; i < GR_NX; i++) out[i] = v[i];
  return GR_DONE;
}

/* the rows from..to - 1, all at one point, to lambda and the gradient */
GR_FN long gr_pull_rows(gr_backward *b, double t, const double *x, const double *z, const double *u, long from, long to) {
  gr_adjoint *a = b->a;
  double v[GR_LEN(GR_N)], q[GR_LEN(GR_NP)];
  for (long row = from; row < to; row++) {
    const double *weights = a->weights + row * GR_NY;
    gr_OV(t, x, z, u, a->task->p, weights, v);
    gr_OQ(t, x, z, u, a->task->p, weights, q);
    gr_add_gradient(a, q);
    for (long i = 0; i < GR_NX; i++) a->lambda[i] += v[i];
#if GR_HAS_Z
    double full[GR_LEN(GR_N)], seen = 0.0;
    for (long i = 0; i < GR_NZ; i++) seen += fabs(v[GR_NX + i]);
    if (seen == 0.0) continue;
    const long status = gr_pull_z(b, t, x, z, u, v + GR_NX);
    if (status) return status;
    for (long i = 0; i < GR_N; i++) full[i] = i < GR_NX ? 0.0 : -v[i];
    gr_FV(t, x, z, u, a->task->p, full, v);
    gr_FQ(t, x, z, u, a->task->p, full, q);
    gr_add_gradient(a, q);
    for (long i = 0; i < GR_NX; i++) a->lambda[i] += v[i];
#endif
  }
  return GR_DONE;
}

#if GR_HAS_C
/* (d/dx, d/dp) of l' Cx v at the base of the projection: Cx'l and Cp'l differentiated along v, by central differences;
 * exact to rounding for what it is, since l is of the size of the error of one step */
GR_FN void gr_pull_reaction(gr_backward *b, double t, const double *z, const double *u, const double *l,
                            const double *v, double *out) {
  gr_adjoint *a = b->a;
  const gr_task *k = a->task;
  const double *base = b->projection.base;
  double up[GR_LEN(GR_NX)], down[GR_LEN(GR_NX)], q_up[GR_LEN(GR_NP)], q_down[GR_LEN(GR_NP)], x[GR_LEN(GR_NX)], rate = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    const double unit = k->nominal[i] > fabs(base[i]) ? k->nominal[i] : fabs(base[i]);
    rate = fmax(rate, fabs(v[i]) / unit);
  }
  if (!(rate > 0.0)) return;
  const double e = 1e-5 / rate;
  for (long i = 0; i < GR_NX; i++) x[i] = base[i] + e * v[i];
  gr_CV(t, x, z, u, k->p, l, up);
  gr_CQ(t, x, z, u, k->p, l, q_up);
  for (long i = 0; i < GR_NX; i++) x[i] = base[i] - e * v[i];
  gr_CV(t, x, z, u, k->p, l, down);
  gr_CQ(t, x, z, u, k->p, l, q_down);
  if (gr_not_finite(GR_NX, up) >= 0 || gr_not_finite(GR_NX, down) >= 0) return;
  for (long i = 0; i < GR_NX; i++) out[i] += (up[i] - down[i]) / (2.0 * e);
  for (long i = 0; i < GR_NP; i++) a->gradient[i] += (q_up[i] - q_down[i]) / (2.0 * e);
}
#endif

#if GR_HAS_C
/* lambda with Q'(A lambda + b) = 0, b = N (lambda at the point), N = diag(nominal), A = N Cx' at the projected point and Q
 * that of the base of the projection; 0 for constraints that were left out */
GR_FN long gr_pull_multipliers(gr_backward *b, double *lambda) {
  const gr_task *k = b->a->task;
  gr_projection *c = &b->projection;
#if GR_SPARSE
  double rest[GR_LEN(GR_NX)], g[GR_NC], before = HUGE_VAL;
  for (long j = 0; j < GR_NC; j++) lambda[j] = 0.0;
  for (long pass = 0; pass <= 30; pass++) { /* with R for Q'A: contracts like the distance of the projection */
    double size = 0.0, change = 0.0;
    if (pass == 30) return 1;
    gr_constraint_pull(c->cj, lambda, rest);
    for (long i = 0; i < GR_NX; i++) rest[i] = -k->nominal[i] * (b->a->lambda[i] + rest[i]);
    gr_sparse_collect(&c->q, rest, g);
    gr_sparse_back(&c->q, g, g);
    for (long j = 0; j < GR_NC; j++) {
      lambda[j] += g[j];
      change = fmax(change, fabs(g[j]) * sqrt(c->gradient[j]));
      size = fmax(size, fabs(lambda[j]) * sqrt(c->gradient[j]));
    }
    if (!(change > 1e-13 * size) || (change > 0.5 * before && change < 1e-8 * size)) break;
    before = change;
  }
#else
  double g[GR_NC];
  long chosen[GR_NC], m = 0;
  for (long j = 0; j < GR_NC; j++)
    if (c->d[j] != 0.0) chosen[m++] = j;
  /* (Cx N V)'g = V' N lambda, N = diag(nominal), for the constraints that were kept */
  for (long r = 0; r < m; r++) {
    g[r] = 0.0;
    for (long i = 0; i < GR_NX; i++) g[r] += c->v[i + GR_NX * chosen[r]] * k->nominal[i] * b->a->lambda[i];
    for (long s = 0; s < m; s++) {
      double sum = 0.0;
      for (long i = 0; i < GR_NX; i++)
        sum += c->cj[chosen[s] + GR_NC * i] * k->nominal[i] * c->v[i + GR_NX * chosen[r]];
      b->square[r + m * s] = sum;
    }
  }
  if (gr_lu(m, b->square, b->pivot)) return 1;
  gr_lu_solve(m, b->square, b->pivot, g);
  for (long j = 0; j < GR_NC; j++) lambda[j] = 0.0;
  for (long r = 0; r < m; r++) lambda[chosen[r]] = -g[r];
#endif
  return 0;
}

#endif

/* lambda at a projected point -> lambda at x before it; x is projected here once more */
GR_FN long gr_pull_projection(gr_backward *b, double t, double *x, const double *z, const double *u) {
#if GR_HAS_C
  gr_adjoint *a = b->a;
  gr_task *k = a->task;
  gr_projection *c = &b->projection;
  double lambda[GR_NC], v[GR_LEN(GR_NX)], q[GR_LEN(GR_NP)], moved[GR_LEN(GR_NX)];
  const long status = gr_project(k, c, t, x, z, u);
  if (status) return status;
  gr_factored(k, c);
  gr_CJ(t, x, z, u, k->p, c->cj);
  if (gr_pull_multipliers(b, lambda)) return gr_fail(k, GR_SINGULAR, -1, 0.0);
  gr_CV(t, x, z, u, k->p, lambda, v);
  gr_CQ(t, x, z, u, k->p, lambda, q);
  gr_add_gradient(a, q);
  for (long i = 0; i < GR_NX; i++) a->lambda[i] += v[i];
  gr_own_multipliers(c, lambda);
  for (long i = 0; i < GR_NX; i++) moved[i] = k->nominal[i] * k->nominal[i] * a->lambda[i];
  gr_pull_reaction(b, t, z, u, lambda, moved, a->lambda);
#else
  (void)b; (void)t; (void)x; (void)z; (void)u;
#endif
  return GR_DONE;
}

/* ---- one step back ---- */

GR_FN long gr_undo_explicit(gr_backward *b, const double *point) {
  gr_adjoint *a = b->a;
  gr_task *k = a->task;
  const double t = point[0], end = point[1], h = end - t, *start = point + GR_POINT_HEAD;
  const double shift[4] = {0.0, 0.5 * h, 0.5 * h, h}, weight[4] = {h / 6.0, h / 3.0, h / 3.0, h / 6.0};
  double x[4][GR_LEN(GR_NX)], z[4][GR_LEN(GR_NZ)], u[4][GR_LEN(GR_NU)], f[GR_LEN(GR_N)], last[GR_LEN(GR_NX)];
  double l[GR_LEN(GR_NX)], pulled[GR_LEN(GR_NX)], sum[GR_LEN(GR_NX)];
  const long segment = (long)point[2];
  const gr_anchor from = {t, start, start + GR_NX, segment};
  for (long i = 0; i < GR_NX; i++) last[i] = start[i];
  for (long s = 0; s < 4; s++) {
    for (long i = 0; i < GR_NX; i++) x[s][i] = start[i] + (s ? shift[s] * f[i] : 0.0);
    for (long i = 0; i < GR_NZ; i++) z[s][i] = s ? z[s - 1][i] : start[GR_NX + i];
    gr_signals_from(k, segment, s == 3 ? end : t + shift[s], u[s]);
    b->newton.f = f;
    const long status = gr_solve_implicit(k, &b->newton, &from, s == 3 ? end : t + shift[s], x[s], z[s], u[s]);
    if (status) return status;
    for (long i = 0; i < GR_NX; i++) last[i] += weight[s] * f[i];
  }
  long status = gr_pull_projection(b, end, last, z[3], u[3]);
  for (long i = 0; i < GR_NX; i++) sum[i] = a->lambda[i];
  for (long s = 3; s >= 0 && !status; s--) {
    for (long i = 0; i < GR_NX; i++) l[i] = weight[s] * a->lambda[i] + (s < 3 ? shift[s + 1] * pulled[i] : 0.0);
    status = gr_pull(b, s == 3 ? end : t + shift[s], x[s], z[s], u[s], l, pulled);
    for (long i = 0; i < GR_NX; i++) sum[i] += pulled[i];
  }
  for (long i = 0; i < GR_NX; i++) a->lambda[i] = sum[i];
  return status;
}

/* G: residual of K'eta -> correction of eta, with the transposes of Newton's matrices */
GR_FN void gr_radau_transposed_solve(const gr_radau_room *r, double *G) {
  double *one = G, *two = G + GR_N, *three = G + 2 * GR_N;
  for (long i = 0; i < GR_N; i++) {
    const double a = one[i], b = two[i], c = three[i];
    one[i] = GR_RADAU_T11 * a + GR_RADAU_T21 * b + GR_RADAU_T31 * c;
    two[i] = GR_RADAU_T12 * a + GR_RADAU_T22 * b + c;
    three[i] = -(GR_RADAU_T13 * a + GR_RADAU_T23 * b); /* conjugate */
  }
  gr_radau_solve_real_transposed(r, one);
  gr_radau_solve_complex_transposed(r, two, three);
  for (long i = 0; i < GR_N; i++) {
    const double a = one[i], b = two[i], c = -three[i];
    one[i] = GR_RADAU_TI11 * a + GR_RADAU_TI21 * b + GR_RADAU_TI31 * c;
    two[i] = GR_RADAU_TI12 * a + GR_RADAU_TI22 * b + GR_RADAU_TI32 * c;
    three[i] = GR_RADAU_TI13 * a + GR_RADAU_TI23 * b + GR_RADAU_TI33 * c;
  }
}

typedef struct {
  gr_radau_room r;
  double t, h;
  double *y;       /* 3n: the stages */
  double *u;       /* 3 NU */
  double *pulled;  /* 3n: J_j' eta_j */
} gr_stages;

GR_FN double gr_stage_at(const gr_stages *s, long j) { return s->t + gr_radau_node(j) * s->h; }

/* G = (0, 0, lambda) - K'eta */
GR_FN void gr_stages_residual(const gr_task *k, gr_stages *s, const double *lambda, const double *eta, double *G) {
  for (long j = 0; j < 3; j++) {
    const double *y = s->y + j * GR_N;
    double *pulled = s->pulled + j * GR_N;
    gr_FV(gr_stage_at(s, j), y, y + GR_NX, s->u + j * GR_NU, k->p, eta + j * GR_N, pulled);
    for (long i = 0; i < GR_N; i++) G[i + j * GR_N] = pulled[i] + (j == 2 && i < GR_NX ? lambda[i] : 0.0);
    for (long c = 0; c < 3; c++)
      for (long i = 0; i < GR_NX; i++) G[i + j * GR_N] -= gr_radau_inverse_entry(c, j) / s->h * eta[i + c * GR_N];
  }
}

/* eta by iteration; answers 0 when it does not converge */
GR_FN long gr_stages_iterate(const gr_task *k, gr_stages *s, const double *lambda, double *eta) {
  double *G = s->r.G, old = HUGE_VAL;
  for (long i = 0; i < 3 * GR_N; i++) eta[i] = 0.0;
  for (long m = 0; m < 20; m++) {
    double size = 0.0, whole = 0.0;
    gr_stages_residual(k, s, lambda, eta, G);
    gr_radau_transposed_solve(&s->r, G);
    for (long i = 0; i < 3 * GR_N; i++) {
      eta[i] += G[i];
      size = fmax(size, fabs(G[i]));
      whole = fmax(whole, fabs(eta[i]));
    }
    if (!(size <= DBL_MAX)) return 0;
    if (size <= 1e-15 * whole || (m > 1 && size <= 1e-12 * whole && size > 0.3 * old)) return 1;
    if (m > 0 && size > 0.3 * old) return 0;
    old = size;
  }
  return 0;
}

/* Newton's matrices of this step, from the Jacobian at its end */
GR_FN long gr_stages_factor(gr_task *k, gr_stages *s) {
  const double *end = s->y + 2 * GR_N;
  gr_J(s->t + s->h, end, end + GR_NX, s->u + 2 * GR_NU, k->p, s->r.jac);
  k->jacobians++;
  s->r.s->h_factored = gr_radau_factor(k, &s->r, s->h) ? 0.0 : s->h;
  return s->r.s->h_factored > 0.0;
}

/* eta with K' itself */
GR_FN long gr_stages_direct(gr_task *k, gr_stages *s, const double *lambda, double *eta) {
  s->r.s->h_factored = 0.0;
  for (long j = 0; j < 3; j++) {
    const double *y = s->y + j * GR_N;
    gr_J(gr_stage_at(s, j), y, y + GR_NX, s->u + j * GR_NU, k->p, s->r.jacs + j * GR_J_SIZE);
  }
  k->jacobians += 3;
  if (gr_radau_factor_whole(k, &s->r, s->h)) return 0;
  for (long i = 0; i < 3 * GR_N; i++) eta[i] = i >= 2 * GR_N && i < 2 * GR_N + GR_NX ? lambda[i - 2 * GR_N] : 0.0;
  gr_radau_solve_whole_transposed(&s->r, eta);
  return 1;
}

GR_FN long gr_undo_implicit(gr_backward *b, const double *point) {
  gr_adjoint *a = b->a;
  gr_task *k = a->task;
  gr_stages s;
  double u[3 * GR_LEN(GR_NU)], right[GR_LEN(GR_NU)], q[GR_LEN(GR_NP)], *eta;
  const double *start = point + GR_POINT_HEAD, *Z = start + GR_N;
  s.r = gr_room_of(k);
  s.t = point[0];
  s.h = point[1] - point[0];
  s.y = s.r.Z;
  s.u = u;
  s.pulled = s.r.base;
  eta = s.r.W;
  for (long j = 0; j < 3; j++) {
    for (long i = 0; i < GR_N; i++) s.y[i + j * GR_N] = start[i] + Z[i + j * GR_N];
    gr_signals_from(k, (long)point[2], gr_stage_at(&s, j), u + j * GR_NU);
  }
  gr_signals(k, point[1], point[1], right);
  double end[GR_LEN(GR_N)];
  for (long i = 0; i < GR_N; i++) end[i] = s.y[i + 2 * GR_N];
  long status = gr_pull_projection(b, point[1], end, end + GR_NX, right);
  if (status) return status;
  const long kept = gr_radau_has_factors(&s.r) && s.r.s->h_factored > 0.0 && fabs(s.h - s.r.s->h_factored) <= 1e-9 * s.h;
  long solved = kept && gr_stages_iterate(k, &s, a->lambda, eta);
  if (!solved) solved = gr_stages_factor(k, &s) && gr_stages_iterate(k, &s, a->lambda, eta);
  if (!solved) solved = gr_stages_direct(k, &s, a->lambda, eta);
  if (!solved) return gr_fail(k, GR_SINGULAR, -1, 0.0);
  for (long j = 0; j < 3; j++) {
    const double *y = s.y + j * GR_N;
    gr_FV(gr_stage_at(&s, j), y, y + GR_NX, u + j * GR_NU, k->p, eta + j * GR_N, s.pulled);
    gr_FQ(gr_stage_at(&s, j), y, y + GR_NX, u + j * GR_NU, k->p, eta + j * GR_N, q);
    gr_add_gradient(a, q);
    for (long i = 0; i < GR_NX; i++) a->lambda[i] += s.pulled[i];
  }
  return GR_DONE;
}

/* through the path in reverse; weights are those of the rows that were written on it, in the same order */
GR_API long gr_adjoint_back(gr_adjoint *a) {
  gr_task *k = a->task;
  gr_backward b = gr_backward_in(a);
  double u[GR_LEN(GR_NU)];
  if (GR_IMPLICIT_STEPS) {
    gr_radau_room r = gr_room_of(k);
    r.s->h_factored = 0.0;
  }
  for (long n = a->taken - 1; n >= 0; n--) {
    const double *point = gr_point(a, n), *x = point + GR_POINT_HEAD;
    long status = GR_DONE;
    if (n < a->taken - 1) status = GR_IMPLICIT_STEPS ? gr_undo_implicit(&b, point) : gr_undo_explicit(&b, point);
    if (status) return gr_end(k, status);
    if (GR_IMPLICIT_STEPS) gr_signals(k, point[0], point[0], u);
    else gr_signals_from(k, (long)point[2], point[0], u);
    status = gr_pull_rows(&b, point[0], x, x + GR_NX, u, n > 0 ? (long)gr_point(a, n - 1)[3] : 0, (long)point[3]);
    if (status) return gr_end(k, status);
  }
  return gr_end(k, GR_DONE);
}

#endif
