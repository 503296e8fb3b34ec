/* Integrates explicitly by an embedded Runge-Kutta pair (gr_tableau.h) under error control, or two, of low and high
 * order.
 *
 * The high order, 8 of ours, is the cheaper one per digit from rtol = 1e-6 down; where kinks come so densely that one
 * step of the low order, 5, spans the distance between them, it is dropped until such a step fails. The step follows Gustafsson's PI rule
 *
 *   h <- 0.9 h err^-(1/q - 0.75 beta) err_old^beta,     err: weighted RMS, DOP853 combines both its estimates.
 *
 * x_new is projected onto the hidden constraints before F is evaluated there: that value closes this step and opens the
 * next. Sensitivities are taken after acceptance, with the Jacobian at the stages: the derivative of the very step.
 * Rows between step ends come from the continuous extension and are moved onto the equations.
 *
 * |h lambda| is estimated from the two stages at t + h; beyond the stability region for 15 steps (forgotten after 6
 * others) the answer is GR_STIFF, with everything in place for an implicit method to go on.
 */
#ifndef GR_EXPLICIT_H
#define GR_EXPLICIT_H

#include "gr_bend_tangents.h"
#include "gr_bends.h"
#include "gr_change.h"
#include "gr_events.h"
#include "gr_output.h"
#include "gr_project.h"
#include "gr_signal.h"
#include "gr_tableau.h"
#include "gr_task.h"

#define GR_HIGH_BELOW 1.0000001e-6
#define GR_INSIDE (0.00839 / 40.0) /* largest s^4 (1-s)^3, the factor of the highest level; see gr_rk_extend */
#define GR_RK_MISSED 10.0 /* tolerances, tenths of the user's, that a step may miss at bends */
#define GR_ERROR_LARGE (-1) /* answer of a step that error control rejects */

/* what must survive between slices; doubles only, because it lives in task->work */
typedef struct {
  double h;              /* next step as error control wants it */
  double err_old, after_rejection;
  double kink, cell;     /* next kink; start of the stretch between kinks */
  double segment, valid; /* of the signals; of the factors of dF/dz */
  double order, h_high, wait, pause;
  double stiff, calm;
  double follows;        /* the sensitivity of k_0 is known */
} gr_rk_memory;

#define GR_RK_MEMORY ((long)(sizeof(gr_rk_memory) / sizeof(double)))

typedef struct {
  gr_task *k;
  gr_rk_memory *m;
  gr_newton newton;
  gr_projection projection;
  gr_tableau pair;
  double *f, *x, *z;    /* stage by stage: F (stride N), argument x (stride NX), z (stride NZ) */
  double *own;          /* N: F of rows, so that those of the stages stay */
  double *row_x, *row_z, *row_sx, *row_sz;
  double *fp;           /* N x NP, then dO/d[x; z] and dO/dp */
  double *ks, *s, *sz;  /* NX x ns per stage; argument and sz of one stage */
  double t_new, h;
  long segment, worst;  /* of the signals; entry of x with the largest error */
  long extended;        /* the stages of the extension are there */
  long on_bend[2];      /* the start and the end of the step lie on a bend, where dF/dx jumps */
} gr_rk;

GR_FN gr_rk gr_rk_in(gr_task *k) {
  gr_rk r;
  double *w = k->work + gr_event_room(k->ns) + GR_RK_MEMORY;
  long ns = k->ns;
  r.k = k;
  r.m = (gr_rk_memory *)(k->work + gr_event_room(k->ns));
  r.newton = gr_newton_in(w);
  r.own = r.newton.f;
  r.projection = gr_projection_in(w += GR_NEWTON_WORK);
  r.f = w += GR_PROJECT_WORK;
  r.x = w += GR_ROWS * GR_N;
  r.z = w += GR_ROWS * GR_NX;
  r.row_x = w += GR_ROWS * GR_NZ;
  r.row_z = w += GR_NX;
  r.fp = w += GR_NZ;
  r.ks = w += GR_OUTPUT_WORK;
  r.s = w += GR_ROWS * GR_NX * ns;
  r.row_sx = w += GR_NX * ns;
  r.sz = w += GR_NX * ns;
  r.row_sz = w + GR_NZ * ns;
  r.t_new = r.h = 0.0;
  r.segment = r.worst = r.extended = r.on_bend[0] = r.on_bend[1] = 0;
  return r;
}

GR_API long gr_explicit_work(long ns) {
  return gr_event_room(ns) + GR_RK_MEMORY + GR_NEWTON_WORK + GR_PROJECT_WORK + GR_ROWS * (GR_N + GR_NX + GR_NZ) + GR_N +
         GR_OUTPUT_WORK + (GR_ROWS + 2) * GR_NX * ns + 2 * GR_NZ * ns;
}

/* ---- stages ---- */

GR_FN double gr_rk_stage_time(const gr_rk *r, long i) {
  return r->pair.c[i] == 1.0 ? r->t_new : r->k->t + r->pair.c[i] * r->h;
}

/* out = base + h sum_j weight_j rows_j, n entries, rows `stride` apart */
GR_FN void gr_combine(long n, long stride, const double *base, double h, const double *weight, long rows,
                      const double *row, double *GR_RESTRICT out) {
  for (long i = 0; i < n; i++) out[i] = base[i];
  for (long j = 0; j < rows; j++, row += stride) {
    const double w = h * weight[j];
    if (w != 0.0)
      for (long i = 0; i < n; i++) out[i] += w * row[i];
  }
}

GR_FN void gr_rk_argument(gr_rk *r, long i) {
  gr_combine(GR_NX, GR_N, r->k->x, r->h, GR_ROW(r->pair.a, i), i, r->f, r->x + GR_NX * i);
}

/* F of stage i at its argument; z, which comes in as a prediction, continues `from` */
GR_FN long gr_rk_evaluate(gr_rk *r, long i, double t, const double *x, const gr_anchor *from) {
  double u[GR_LEN(GR_NU)], *z = r->z + GR_NZ * i;
  gr_signals_from(r->k, r->segment, t, u);
  r->newton.f = r->f + GR_N * i;
  long status = gr_solve_implicit(r->k, &r->newton, from, t, x, z, u);
  r->newton.f = r->own;
  return status;
}

/* stage i as a root from which others continue */
GR_FN gr_anchor gr_rk_known(const gr_rk *r, long i) {
  const gr_anchor start = {r->k->t, r->k->x, r->k->z, r->segment};
  const gr_anchor stage = {gr_rk_stage_time(r, i), r->x + GR_NX * i, r->z + GR_NZ * i, r->segment};
  return i == 0 ? start : stage;
}

/* z of a stage on the line through two others */
GR_FN void gr_rk_line(const gr_rk *r, long a, long b, double c, double *z) {
  const double *from = a == 0 ? r->k->z : r->z + GR_NZ * a, *to = b == 0 ? r->k->z : r->z + GR_NZ * b;
  const double apart = r->pair.c[b] - r->pair.c[a], part = apart != 0.0 ? (c - r->pair.c[a]) / apart : 0.0;
  for (long i = 0; i < GR_NZ; i++) z[i] = from[i] + part * (to[i] - from[i]);
}

GR_FN long gr_rk_stage(gr_rk *r, long i) {
  const gr_anchor from = gr_rk_known(r, i - 1);
  gr_rk_line(r, (long)r->pair.near[2 * i], (long)r->pair.near[2 * i + 1], r->pair.c[i], r->z + GR_NZ * i);
  gr_rk_argument(r, i);
  return gr_rk_evaluate(r, i, gr_rk_stage_time(r, i), r->x + GR_NX * i, &from);
}

/* F, z and the argument of stage 0 at the current point, with the values that hold from here on */
GR_FN long gr_rk_open(gr_rk *r) {
  gr_task *k = r->k;
  const gr_anchor before = gr_rk_known(r, 0);
  r->segment = gr_segment(k, k->t, r->segment);
  double u[GR_LEN(GR_NU)], u_before[GR_LEN(GR_NU)];
  const gr_equations old = {k->x, u_before, k->p};
  gr_signals_from(k, before.segment, k->t, u_before);
  gr_signals_from(k, r->segment, k->t, u);
  for (long i = 0; i < GR_NZ; i++) r->z[i] = k->z[i];
  r->newton.f = r->f;
  const long status = gr_solve_changed(k, &r->newton, &before, &old, k->t, k->x, r->z, u);
  r->newton.f = r->own;
  if (status) return status;
  for (long i = 0; i < GR_NZ; i++) k->z[i] = r->z[i];
  r->m->follows = 0.0;
  return GR_DONE;
}

/* ---- error and step size ---- */

GR_FN double gr_rk_scale(const gr_rk *r, long i) {
  double a = fabs(r->k->x[i]), b = fabs(r->x[GR_NX * r->pair.last + i]);
  return r->k->atol[i] + r->k->rtol * (a > b ? a : b);
}

/* scaled error of the step in x */
GR_FN double gr_rk_error_x(gr_rk *r) {
  const gr_tableau *p = &r->pair;
  long rows = p->e3 ? p->last : p->last + 1;
  double zero[GR_LEN(GR_NX)], e[GR_LEN(GR_NX)], e3[GR_LEN(GR_NX)], sum = 0.0, sum3 = 0.0, most = -1.0;
  for (long i = 0; i < GR_NX; i++) zero[i] = e3[i] = 0.0;
  gr_combine(GR_NX, GR_N, zero, r->h, p->e, rows, r->f, e);
  if (p->e3) gr_combine(GR_NX, GR_N, zero, r->h, p->e3, rows, r->f, e3);
  for (long i = 0; i < GR_NX; i++) {
    double scale = 1.0 / gr_rk_scale(r, i), one = e[i] * scale, three = e3[i] * scale;
    sum += one * one;
    sum3 += three * three;
    if (!(one * one <= most)) {
      most = one * one;
      r->worst = i;
    }
  }
  if (p->e3) return sum > 0.0 ? sum / sqrt((sum + 0.01 * sum3) * GR_LEN(GR_NX)) : sum == 0.0 ? 0.0 : sum;
  return sqrt(sum / GR_LEN(GR_NX));
}

/* How badly the stages resolve z: the error of its quadrature against the spread of its values, 1 at a fiftieth of what
 * values without order would give. What is fed back to x is resolved far better than that; what is not would else be
 * seen at the stages only, and its branch could be lost between them. */
GR_FN double gr_rk_unresolved(const gr_rk *r) {
  const gr_tableau *p = &r->pair;
  const long rows = p->e3 ? p->last : p->last + 1;
  double most = 0.0, total = 0.0;
  for (long j = 0; j < rows; j++) total += fabs(p->e[j]);
  for (long i = 0; i < GR_NZ - GR_NM; i++) {
    double low = r->k->z[i], high = low, error = p->e[0] * low;
    for (long j = 1; j < rows; j++) {
      const double z = r->z[GR_NZ * j + i];
      error += p->e[j] * z;
      low = z < low ? z : low;
      high = z > high ? z : high;
    }
    const double size = fmax(fabs(low), fabs(high)), unit = r->k->atol[GR_NX + i] + r->k->rtol * size;
    most = fmax(most, fabs(error) / (total * (0.02 * (high - low) + 100.0 * unit)));
  }
  return most;
}

GR_FN double gr_rk_error(gr_rk *r) {
  const double error = gr_rk_error_x(r);
  return GR_NZ > 0 && error < 1.0 ? fmax(error, gr_rk_unresolved(r)) : error;
}

/* 1 while h lambda, seen by the last two stages, lies outside the stability region */
GR_FN long gr_rk_is_stiff_step(const gr_rk *r) {
  const double *x = r->x + GR_NX * r->pair.last, *f = r->f + GR_N * r->pair.last;
  double above = 0.0, below = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    double dx = x[i] - x[i - GR_NX], df = r->h * (f[i] - f[i - GR_N]), scale = gr_rk_scale(r, i);
    if (fabs(dx) > 100.0 * GR_EPS * fabs(x[i])) below += dx * dx / (scale * scale);
    above += df * df / (scale * scale);
  }
  return below > 0.0 && above > r->pair.stiff * r->pair.stiff * below;
}

GR_FN long gr_rk_looks_stiff(gr_rk *r) {
  gr_rk_memory *m = r->m;
  if (gr_rk_is_stiff_step(r)) {
    m->calm = 0.0;
    m->stiff += 1.0;
  } else if ((m->calm += 1.0) >= 6.0) {
    m->stiff = 0.0;
  }
  if (m->stiff < 15.0 || r->k->t1 - r->k->t < 15.0 * r->h) return 0;
  m->stiff = m->calm = 0.0;
  return 1;
}

/* h and t_new of the next step: as wanted, or up to the kink, and no tiny rest before it */
GR_FN void gr_rk_choose(gr_rk *r) {
  gr_task *k = r->k;
  double left = r->m->kink - k->t, h = r->m->h;
  if (k->hmax > 0.0 && h > k->hmax) h = k->hmax;
  r->t_new = r->m->kink;
  if (1.01 * h >= left) {
    h = left;
  } else {
    if (2.0 * h > left) h = 0.5 * left;
    r->t_new = k->t + h;
  }
  r->h = h;
  r->segment = gr_segment(k, k->t + 0.5 * h, r->segment);
}

GR_FN void gr_rk_accepted_step_size(gr_rk *r, double err) {
  const gr_tableau *p = &r->pair;
  gr_rk_memory *m = r->m;
  double factor = 0.9 * pow(err > 1e-16 ? err : 1e-16, 0.75 * p->beta - 1.0 / (double)p->order) * pow(m->err_old, p->beta);
  if (!(factor > p->shrink)) factor = p->shrink;
  if (factor > p->grow) factor = p->grow;
  if (m->after_rejection != 0.0 && factor > 1.0) factor = 1.0;
  /* a step cut short by a kink says little about how long the next may be */
  if (r->h < m->h && factor >= 1.0 && r->h * factor < m->h) factor = m->h / r->h;
  m->h = r->h * factor;
  m->err_old = err > 1e-4 ? err : 1e-4;
  m->after_rejection = 0.0;
}

/* Hairer, Norsett, Wanner I, section II.4: from the sizes of x, F and a difference of F */
GR_COLD double gr_rk_first_step(gr_rk *r) {
  gr_task *k = r->k;
  double d0 = sqrt(gr_mean_square(k, k->x, k->x)), d1 = sqrt(gr_mean_square(k, k->x, r->f)), d2, h, span = r->m->kink - k->t;
  h = d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1;
  if (h > span) h = span;
  if (k->hmax > 0.0 && h > k->hmax) h = k->hmax;
  const gr_anchor from = gr_rk_known(r, 0);
  for (long attempt = 0; attempt < 20; attempt++, h *= 0.1) {
    const double *g = r->f + GR_N;
    for (long i = 0; i < GR_NX; i++) r->x[GR_NX + i] = k->x[i] + h * r->f[i];
    for (long i = 0; i < GR_NZ; i++) r->z[GR_NZ + i] = k->z[i];
    if (gr_rk_evaluate(r, 1, k->t + h, r->x + GR_NX, &from)) continue;
    for (long i = 0; i < GR_NX; i++) r->row_x[i] = (g[i] - r->f[i]) / h;
    d2 = sqrt(gr_mean_square(k, k->x, r->row_x));
    if (d2 < d1) d2 = d1;
    d2 = d2 <= 1e-15 ? fmax(1e-6, 1e-3 * h) : pow(0.01 / d2, 1.0 / (double)r->pair.order);
    return fmin(100.0 * h, d2);
  }
  return h;
}

/* ---- inside a step ---- */

/* z at t + s h between the stages beside it; answers the nearer one */
GR_FN long gr_rk_between(const gr_rk *r, double s, double *z) {
  const double *c = r->pair.c;
  long below = 0, above = r->pair.last, rows = r->pair.e3 && r->extended ? r->pair.rows : r->pair.last + 1;
  for (long i = 1; i < rows; i++) {
    if (c[i] <= s && c[i] > c[below] && (s <= 1.0 || c[i] < 1.0)) below = i; /* beyond the end the line goes on */
    if (c[i] >= s && c[i] < c[above]) above = i;
  }
  gr_rk_line(r, below, above, s, z);
  return s - c[below] < c[above] - s ? below : above;
}

#if GR_HAS_BENDS
/* between the ends of a step, by a cubic */
GR_FN void gr_rk_roughly(const void *run, double share, double *x, double *z, double *u) {
  const gr_rk *r = (const gr_rk *)run;
  const long last = r->pair.last;
  for (long i = 0; i < GR_NX; i++)
    x[i] = gr_cubic(share, r->k->x[i], r->h * r->f[i], r->x[GR_NX * last + i], r->h * r->f[GR_N * last + i]);
  gr_rk_between(r, share, z);
  gr_signals_from(r->k, r->segment, r->k->t + share * r->h, u);
}
#endif

/* ---- sensitivities of the stages ---- */

#if GR_SENSITIVE
/* ks_i = dF/dx s + dF/dz sz + dF/dp dp at stage i, s: NX x ns there */
GR_FN long gr_rk_follow(gr_rk *r, long i, double t, const double *x, const double *z, const double *s) {
  gr_task *k = r->k;
  double u[GR_LEN(GR_NU)], *out = r->ks + GR_NX * k->ns * i;
  const double *jac = r->newton.jac;
  gr_signals_from(k, r->segment, t, u);
  gr_J(t, x, z, u, k->p, r->newton.jac);
  k->jacobians++;
  gr_FP(t, x, z, u, k->p, r->fp);
#if GR_HAS_Z
  gr_note_sides(k, &r->newton, t, x, z, u);
  long status = gr_factor_z(k, &r->newton);
  if (status) return status;
#endif
  gr_sensitivity_z(k, &r->newton, r->fp, s, r->sz);
  for (long d = 0; d < k->ns; d++, out += GR_NX) {
    GR_ALONG_P(FP, GR_N, r->fp, 0, GR_NX, k->dp + GR_NP * d, out);
    GR_ADD_TIMES(J, GR_N, jac, 0, GR_NX, 0, GR_NX, s + GR_NX * d, out);
    GR_ADD_TIMES(J, GR_N, jac, 0, GR_NX, GR_NX, GR_NZ, r->sz + GR_NZ * d, out);
  }
  return GR_DONE;
}

#if GR_HAS_BENDS
/* the same at a share of the step, for S of a stage */
GR_COLD long gr_rk_follow_inside(gr_rk *r, long i, double share, const double *s) {
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  gr_rk_roughly(r, share, x, z, u);
  return gr_rk_follow(r, i, r->k->t + share * r->h, x, z, s);
}
#endif

GR_FN long gr_rk_follow_stage(gr_rk *r, long i) {
  long n = GR_NX * r->k->ns;
  double u[GR_LEN(GR_NU)], t = gr_rk_stage_time(r, i);
  const double *x = r->x + GR_NX * i, *z = r->z + GR_NZ * i;
  gr_combine(n, n, r->k->sx, r->h, GR_ROW(r->pair.a, i), i, r->ks, r->s);
  if (i == r->pair.last) {
    gr_signals_from(r->k, r->segment, t, u);
    gr_project_sensitivity(r->k, &r->projection, t, x, z, u, r->s);
    long bad = gr_not_finite(n, r->s);
    if (bad >= 0) return gr_fail(r->k, GR_NOT_FINITE, bad % GR_LEN(GR_NX), r->s[bad]);
  }
#if GR_HAS_BENDS
  if (r->on_bend[1] && r->pair.c[i] == 1.0) return gr_rk_follow_inside(r, i, 1.0 - GR_TANGENT_ASIDE, r->s);
#endif
  return gr_rk_follow(r, i, t, x, z, r->s);
}

#if GR_HAS_BENDS
GR_COLD const double *gr_rk_rough_rate(void *run, double share, long slot) {
  gr_rk *r = (gr_rk *)run;
  return gr_rk_follow_inside(r, slot, share, r->k->sx) ? 0 : r->ks + GR_NX * r->k->ns * slot;
}
#endif

GR_FN long gr_rk_follow_start(gr_rk *r) {
#if GR_HAS_BENDS
  const gr_span s = {r->k, r, r->h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_rk_roughly, 0, 0};
  gr_tangent a = {gr_rk_rough_rate, r->k->sx, GR_NX, GR_NX, 0};
  r->on_bend[0] = gr_tangent_bends_at(&s, &a, 0.0);
  r->on_bend[1] = gr_tangent_bends_at(&s, &a, 1.0);
  if (r->on_bend[0]) return gr_rk_follow_inside(r, 0, GR_TANGENT_ASIDE, r->k->sx);
#endif
  return r->m->follows == 0.0 ? gr_rk_follow(r, 0, r->k->t, r->k->x, r->k->z, r->k->sx) : GR_DONE;
}

/* all stages; r->s ends as S at the end of the step */
GR_FN long gr_rk_follow_step(gr_rk *r) {
  double *end = r->s;
  long status = GR_DONE;
  if (r->k->ns == 0) return status;
  status = gr_rk_follow_start(r);
  for (long i = 1; i <= r->pair.last && !status; i++) status = gr_rk_follow_stage(r, i);
  r->s = r->row_sx;
  for (long i = r->pair.last + 1; r->extended && i < r->pair.rows && !status; i++) status = gr_rk_follow_stage(r, i);
  r->s = end;
  return status;
}
#else
GR_FN long gr_rk_follow_step(gr_rk *r) {
  (void)r;
  return GR_DONE;
}
#endif

/* ---- rows inside a step ---- */

/* weight_i(s) with x(t + s h) = x + h sum_i weight_i k_i */
GR_FN void gr_rk_weights(const gr_tableau *p, double s, double *weight) {
  const double *w = GR_ROW(p->a, p->last), q = 1.0 - s;
  for (long i = 0; i < p->rows; i++) {
    double wi = i < p->last ? w[i] : 0.0, first = i == 0, last = i == p->last, inner = 0.0;
    for (long level = p->levels - 1; level >= 0; level--)
      inner = p->d[level * p->rows + i] + (level % 2 == 0 ? s : q) * inner;
    weight[i] = s * (wi + q * (first - wi + s * (2.0 * wi - first - last + q * inner)));
  }
}

GR_FN long gr_rk_rows(gr_rk *r) {
  gr_task *k = r->k;
  double weight[GR_ROWS];
  long n = GR_NX * k->ns;
  long status = GR_DONE;
  while (!status && gr_row_before(k, r->t_new)) {
    double t = k->times[k->written];
    const double s = (t - k->t) / r->h;
    gr_rk_weights(&r->pair, s, weight);
    gr_combine(GR_NX, GR_N, k->x, r->h, weight, r->pair.rows, r->f, r->row_x);
    if (n > 0) gr_combine(n, n, k->sx, r->h, weight, r->pair.rows, r->ks, r->row_sx);
    const gr_anchor from = gr_rk_known(r, gr_rk_between(r, s, r->row_z));
    status = gr_emit(k, &r->newton, &r->projection, &from, t, k->t + 0.5 * r->h, r->row_x, r->row_z, r->row_sx,
                     r->row_sz, r->fp);
  }
  return status;
}

/* rows asked for at the current point itself */
GR_FN long gr_rk_rows_here(gr_rk *r) {
  gr_task *k = r->k;
  double u[GR_LEN(GR_NU)];
  if (!gr_row_at(k, k->t)) return GR_DONE;
  gr_signals_from(k, gr_segment(k, k->t, r->segment), k->t, u);
  long status = GR_DONE;
  while (!status && gr_row_at(k, k->t)) status = gr_write_row(k, &r->newton, k->t, k->x, k->z, u, k->sx, k->sz, r->fp);
  return status;
}

/* ---- one step ---- */

/* The stages that only the extension needs. Its highest level estimates the error of the extension one order lower,
 * measured to be ten to twenty times that of the extension itself: a fortieth of it counts as error of the step. */
GR_FN long gr_rk_extend(gr_rk *r, double *err) {
  const gr_tableau *p = &r->pair;
  double zero[GR_LEN(GR_NX)], e[GR_LEN(GR_NX)], sum = 0.0;
  long status = GR_DONE;
  r->extended = gr_row_before(r->k, r->t_new);
  if (!r->extended || !p->e3) return status;
  for (long i = p->last + 1; i < p->rows && !status; i++) status = gr_rk_stage(r, i);
  if (status) return status;
  for (long i = 0; i < GR_NX; i++) zero[i] = 0.0;
  gr_combine(GR_NX, GR_N, zero, r->h, p->d + (p->levels - 1) * p->rows, p->rows, r->f, e);
  for (long i = 0; i < GR_NX; i++) {
    double one = e[i] / gr_rk_scale(r, i);
    sum += one * one;
  }
  *err = fmax(*err, GR_INSIDE * sqrt(sum / GR_LEN(GR_NX)));
  return *err < 1.0 ? GR_DONE : GR_ERROR_LARGE;
}

/* stages, x_new on the constraints, error; GR_ERROR_LARGE or the status of what failed */
GR_FN long gr_rk_try(gr_rk *r, double *err) {
  gr_task *k = r->k;
  long last = r->pair.last, status = GR_DONE;
  double u[GR_LEN(GR_NU)], *x = r->x + GR_NX * last;
  for (long i = 1; i < last && !status; i++) status = gr_rk_stage(r, i);
  if (status) return status;
  gr_rk_argument(r, last);
  if (r->pair.e3 && !((*err = gr_rk_error(r)) < 1.0)) return GR_ERROR_LARGE;
  gr_signals_from(k, r->segment, r->t_new, u);
  const gr_anchor from = gr_rk_known(r, last - 1);
  status = gr_project(k, &r->projection, r->t_new, x, from.z, u);
  for (long i = 0; i < GR_NZ; i++) r->z[GR_NZ * last + i] = from.z[i];
  if (!status) status = gr_rk_evaluate(r, last, r->t_new, x, &from);
  if (!status && !r->pair.e3 && !((*err = gr_rk_error(r)) < 1.0)) return GR_ERROR_LARGE;
  return status ? status : gr_rk_extend(r, err);
}

GR_FN void gr_rk_commit(gr_rk *r) {
  gr_task *k = r->k;
  long last = r->pair.last, n = GR_NX * k->ns;
  for (long i = 0; i < GR_NX; i++) k->x[i] = r->x[GR_NX * last + i];
  for (long i = 0; i < GR_NZ; i++) k->z[i] = r->z[GR_NZ * last + i];
  for (long i = 0; i < GR_N; i++) r->f[i] = r->f[GR_N * last + i];
  for (long i = 0; i < n; i++) k->sx[i] = r->s[i];
  for (long i = 0; i < n; i++) r->ks[i] = r->ks[n * last + i];
  r->m->follows = r->on_bend[1] ? 0.0 : 1.0;
  k->t = r->t_new;
  k->steps++;
}

GR_FN void gr_rk_order(gr_rk *r, long order) {
  gr_rk_memory *m = r->m;
  if (order == GR_LOW_ORDER) m->h_high = m->h;
  else if (m->h < m->h_high) m->h = m->h_high;
  m->order = (double)order;
  m->err_old = 1e-4;
  r->pair = gr_pair(order);
}

/* the low order did not span the distance between kinks: back to the high one, and twice as long until the next attempt */
GR_FN void gr_rk_back_to_high(gr_rk *r) {
  if (r->pair.order == GR_HIGH_ORDER || !(r->k->rtol <= GR_HIGH_BELOW)) return;
  r->m->wait = r->m->pause;
  r->m->pause *= 2.0;
  gr_rk_order(r, GR_HIGH_ORDER);
}

/* ---- bends ---- */

#if GR_HAS_BENDS
/* d weight_i/ds of gr_rk_weights */
GR_FN void gr_rk_slopes(const gr_tableau *p, double s, double *slope) {
  const double *w = GR_ROW(p->a, p->last), q = 1.0 - s;
  for (long i = 0; i < p->rows; i++) {
    const double wi = i < p->last ? w[i] : 0.0, first = i == 0, last = i == p->last;
    double inner = 0.0, steep = 0.0;
    for (long level = p->levels - 1; level >= 0; level--) {
      const double sign = level % 2 == 0 ? 1.0 : -1.0, factor = level % 2 == 0 ? s : q;
      steep = sign * inner + factor * steep;
      inner = p->d[level * p->rows + i] + factor * inner;
    }
    const double a = 2.0 * wi - first - last + q * inner, da = q * steep - inner;
    const double b = first - wi + s * a, db = a + s * da;
    slope[i] = wi + q * b + s * (q * db - b);
  }
}

/* by the continuous extension */
GR_COLD void gr_rk_smoothly(const void *run, double share, double *x, double *z, double *u) {
  const gr_rk *r = (const gr_rk *)run;
  double weight[GR_ROWS];
  gr_rk_weights(&r->pair, share, weight);
  gr_combine(GR_NX, GR_N, r->k->x, r->h, weight, r->pair.rows, r->f, x);
  gr_rk_between(r, share, z);
  gr_signals_from(r->k, r->segment, r->k->t + share * r->h, u);
}

/* stages that only the continuous extension needs */
GR_FN long gr_rk_extend_inside(gr_rk *r) {
  if (!r->pair.e3 || r->extended) return GR_DONE;
  for (long i = r->pair.last + 1; i < r->pair.rows; i++) {
    const long status = gr_rk_stage(r, i);
    if (status) return status;
  }
  r->extended = 1;
  return GR_DONE;
}

/* the same with z solved for; F there is left in f */
GR_COLD long gr_rk_solved_into(gr_rk *r, double share, double *x, double *z, double *u, double *f) {
  gr_rk_smoothly(r, share, x, z, u);
  const gr_anchor from = gr_rk_known(r, gr_rk_between(r, share, z));
  r->newton.f = f;
  const long status = gr_solve_implicit(r->k, &r->newton, &from, r->k->t + share * r->h, x, z, u);
  r->newton.f = r->own;
  return status;
}

GR_COLD long gr_rk_solved(void *run, double share, double *x, double *z, double *u) {
  double f[GR_LEN(GR_N)];
  const long status = gr_rk_extend_inside((gr_rk *)run);
  return status ? status : gr_rk_solved_into((gr_rk *)run, share, x, z, u, f);
}

GR_COLD double gr_rk_defect(void *run, double share) {
  gr_rk *r = (gr_rk *)run;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)], f[GR_LEN(GR_N)], slope[GR_ROWS], zero[GR_LEN(GR_NX)], sum = 0.0;
  const long status = gr_rk_solved_into(r, share, x, z, u, f);
  if (status) return HUGE_VAL;
  for (long i = 0; i < GR_NX; i++) zero[i] = 0.0;
  gr_rk_slopes(&r->pair, share, slope);
  gr_combine(GR_NX, GR_N, zero, 1.0, slope, r->pair.rows, r->f, x);
  for (long i = 0; i < GR_NX; i++) sum += gr_square(r->h * (f[i] - x[i]) / gr_rk_scale(r, i));
  return sqrt(sum / GR_LEN(GR_NX));
}

#if GR_SENSITIVE
GR_COLD const double *gr_rk_tangent_rate(void *run, double share, long slot) {
  gr_rk *r = (gr_rk *)run;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
#if GR_HAS_Z
  if (gr_rk_solved(run, share, x, z, u)) return 0;
#else
  gr_rk_smoothly(r, share, x, z, u);
#endif
  const long status = gr_rk_follow(r, slot, r->k->t + share * r->h, x, z, r->k->sx);
  return status ? 0 : r->ks + GR_NX * r->k->ns * slot;
}
#endif

/* the share of the step that was taken up to which nothing has been passed unseen, nor by its sensitivities */
GR_FN double gr_rk_seen(gr_rk *r) {
  gr_task *k = r->k;
  gr_span s = {k, r, r->h, GR_BENDS, GR_ALL_BENDS, gr_rate_bends, gr_rk_roughly, gr_rk_defect, gr_rk_solved};
  gr_bend_list bends;
  double values[(GR_BEND_CELLS + 1) * GR_LEN(GR_MOST_BENDS)], missed;
  const double amount = k->amount;
  const long rescues = k->rescues, where = k->where;
  double share = 1.0;
  if (gr_passes_bends(&s, 1.0, 1, values)) {
    if (gr_rk_extend_inside(r)) return 0.5;
    s.inside = gr_rk_smoothly;
    if (gr_lists_bends(&s, 1.0, &bends)) {
#if GR_SENSITIVE
      gr_tangent a = {gr_rk_tangent_rate, k->sx, GR_NX, GR_NX, 0};
      if (k->ns > 0) share = gr_tangent_upto(&s, &a, &bends);
#endif
      share = fmin(share, gr_seen_up_to(&s, &bends, GR_RK_MISSED, &missed));
    }
  }
#if GR_HAS_Z
  if (share == 1.0 && gr_bend_doubts(&s)) share = 0.5;
#endif
  k->rescues = rescues;
  k->where = where;
  k->amount = amount;
  return share;
}
#endif

/* an attempt, shortened until nothing in it has been passed unseen */
GR_FN long gr_rk_attempt(gr_rk *r, double *err) {
  long status = gr_rk_try(r, err);
#if GR_HAS_BENDS
  gr_task *k = r->k;
  for (double share; !status && (share = gr_rk_seen(r)) < 1.0 && share * r->h > 100.0 * gr_smallest_step(k, k->t);) {
    r->h *= share;
    r->t_new = k->t + r->h;
    k->rejected++;
    status = gr_rk_try(r, err);
  }
#endif
  return status;
}

/* ---- events ---- */

#if GR_HAS_E
GR_FN void gr_rk_stands(const gr_rk *r, gr_stepper *s) {
  s->t = r->t_new;
  s->x = r->x + GR_NX * r->pair.last;
  s->z = r->z + GR_NZ * r->pair.last;
  gr_signals_from(r->k, r->segment, s->t, s->u);
}

typedef struct {
  gr_rk *r;
  gr_stepper s;
  double err;
} gr_rk_retake;

GR_COLD long gr_rk_take(void *run, double length) {
  gr_rk_retake *a = (gr_rk_retake *)run;
  gr_rk *r = a->r;
  r->h = length;
  r->t_new = length >= r->m->kink - r->k->t ? r->m->kink : r->k->t + length;
  const long status = gr_rk_try(r, &a->err);
  if (!status) gr_rk_stands(r, &a->s);
  return status;
}

GR_FN void gr_rk_inside(const void *run, double share, double *x, double *z, double *u) {
  const gr_rk *r = ((const gr_rk_retake *)run)->r;
  const gr_task *k = r->k;
  const long last = r->pair.last;
  gr_between(share, r->h, k->x, r->f, k->z, r->x + GR_NX * last, r->f + GR_N * last, r->z + GR_NZ * last, x, z);
  gr_signals_from(k, r->segment, k->t + share * r->h, u);
}

/* one attempt, shortened to the first event in it; r->h = 0 where that is at its start */
GR_FN long gr_rk_watch(gr_rk *r, double *err, gr_event *event) {
  gr_task *k = r->k;
  gr_rk_retake a;
  gr_gauge start, end;
  double u[GR_LEN(GR_NU)];
  event->mode = -1;
  long status = gr_rk_attempt(r, err);
  double length = r->h;
  if (status) return status;
  gr_signals_from(k, r->segment, k->t, u);
  gr_gauge_at(k, k->t, k->x, k->z, u, &start);
  gr_rk_stands(r, &a.s);
  gr_gauge_at(k, a.s.t, a.s.x, a.s.z, a.s.u, &end);
  a.r = r;
  a.s.run = &a;
  a.s.take = gr_rk_take;
  a.s.inside = gr_rk_inside;
  a.s.rough = 1;
  a.s.u_start = u;
  a.s.newton = &r->newton;
  a.err = *err;
  const double share = gr_suspect(k, &a.s, &start, &end, length);
  if (share < 1.0) {
    length *= share;
    status = gr_rk_take(&a, length);
    *err = a.err;
    if (status) return status;
    gr_gauge_at(k, a.s.t, a.s.x, a.s.z, a.s.u, &end);
  }
  status = gr_find(k, &a.s, &start, &end, length, &length, event);
  if (!status && length == 0.0) r->h = 0.0;
  *err = a.err;
  return status;
}

/* the event at the current point; what is known of F and its derivative belongs to the modes before */
GR_COLD long gr_rk_happen(gr_rk *r, const gr_event *event) {
  gr_task *k = r->k;
  gr_rk_memory *m = r->m;
  double u[GR_LEN(GR_NU)];
  gr_signals_from(k, r->segment, k->t, u);
  r->newton.f = r->f;
  const long status = gr_happen(k, &r->newton, event, k->x, k->z, u, r->fp);
  r->newton.f = r->own;
  for (long i = 0; i < GR_NZ; i++) r->z[i] = k->z[i];
  m->follows = m->stiff = m->calm = 0.0;
  m->err_old = 1e-4;
  return status;
}

GR_COLD long gr_rk_modes_at_kink(gr_rk *r, long before) {
  gr_task *k = r->k;
  double u_before[GR_LEN(GR_NU)], u[GR_LEN(GR_NU)];
  gr_signals_from(k, before, k->t, u_before);
  gr_signals_from(k, r->segment, k->t, u);
  r->newton.f = r->f;
  const long status = gr_modes_at_kink(k, &r->newton, k->x, k->z, u_before, u, r->fp);
  r->newton.f = r->own;
  for (long i = 0; i < GR_NZ; i++) r->z[i] = k->z[i];
  return status;
}
#endif

/* at a kink: the right limits of F and z where a signal jumps, the next kink, and whether the low order may do here */
GR_FN long gr_rk_cross(gr_rk *r, double start, double err) {
  gr_rk_memory *m = r->m;
  long whole = start <= m->cell, status = GR_DONE;
  if (gr_signals_jump(r->k, r->segment, gr_segment(r->k, r->k->t, r->segment), r->k->t)) {
#if GR_HAS_E
    const long before = r->segment;
    status = gr_rk_open(r);
    if (!status) status = gr_rk_modes_at_kink(r, before);
#else
    status = gr_rk_open(r);
#endif
  }
  m->cell = r->k->t;
  m->kink = gr_next_kink_from(r->k, r->k->t, r->segment);
  if (m->wait > 0.0) m->wait -= 1.0;
  else if (r->pair.order > GR_LOW_ORDER && whole && err < 1e-2 && r->k->t < r->k->t1) gr_rk_order(r, GR_LOW_ORDER);
  return status;
}

GR_FN long gr_rk_reject(gr_rk *r, long failure, double err) {
  gr_task *k = r->k;
  gr_rk_memory *m = r->m;
  double factor = 0.25;
  if (failure == GR_ERROR_LARGE) {
    failure = gr_fail(k, GR_STEP_TOO_SMALL, r->worst, err);
    if (gr_finite(err)) factor = fmax(r->pair.shrink, 0.9 * pow(err, -1.0 / (double)r->pair.order));
  }
  k->rejected++;
  m->after_rejection = 1.0;
  m->h = r->h * factor;
  gr_rk_back_to_high(r);
  return m->h > gr_smallest_step(k, k->t) ? GR_DONE : failure;
}

#if GR_HAS_Z
/* z jumps where its branch ends: a step of length `length` leads beyond, and none that is shorter can be taken */
GR_COLD long gr_rk_snap(gr_rk *r, double length) {
  gr_task *k = r->k;
  gr_rk_memory *m = r->m;
  double x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  for (long i = 0; i < GR_NX; i++) x[i] = k->x[i] + length * r->f[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = k->z[i];
  gr_signals_from(k, r->segment, k->t + length, u);
  long status = gr_snap(k, &r->newton, k->t + length, x, z, u);
  if (status) return status;
  for (long i = 0; i < GR_NZ; i++) k->z[i] = z[i];
  status = gr_rk_open(r);
#if GR_HAS_E
  if (!status) status = gr_rk_modes_at_kink(r, r->segment);
#endif
  m->stiff = m->calm = 0.0;
  m->err_old = 1e-4;
  if (!status) m->h = gr_rk_first_step(r);
  return status;
}
#endif

/* what could not be taken, at no length */
GR_FN long gr_rk_give_up(gr_rk *r, long status) {
#if GR_HAS_Z
  if (status == GR_BRANCH_ENDS) {
    const long where = r->k->where;
    const double amount = r->k->amount;
    return gr_rk_snap(r, gr_beyond(r->k, r->h)) ? gr_fail(r->k, status, where, amount) : GR_DONE;
  }
#endif
  (void)r;
  return status;
}

/* GR_DONE to go on; else how the run ends */
GR_FN long gr_rk_step(gr_rk *r) {
  gr_task *k = r->k;
  double err = 0.0, start = k->t;
  long written = k->written, rescues = k->rescues;
  gr_rk_choose(r);
#if GR_HAS_E
  gr_event event;
  long status = gr_rk_watch(r, &err, &event);
  if (!status && r->h == 0.0) return gr_rk_happen(r, &event);
#else
  long status = gr_rk_attempt(r, &err);
#endif
  if (!status) status = gr_rk_follow_step(r);
  if (!status) status = gr_rk_rows(r);
  if (status) {
    k->written = written;
    double u[GR_LEN(GR_NU)];
    gr_signals_from(k, r->segment, k->t, u);
#if GR_HAS_Z
    if (status == GR_BRANCH_ENDS) gr_note_branch(k, &r->newton, k->x, k->z, u);
#endif
#if GR_HAS_E
    const long failed = gr_rk_reject(r, status, err);
    if (status == GR_ERROR_LARGE) return failed;
    return gr_is_blocked(k, u, r->h, &r->m->h, &event) ? gr_rk_happen(r, &event) : gr_rk_give_up(r, failed);
#else
    return gr_rk_give_up(r, gr_rk_reject(r, status, err));
#endif
  }
  long stiff = gr_rk_looks_stiff(r);
  if (k->rescues > rescues) r->m->after_rejection = 1.0; /* z is at the limit of what can be followed */
  gr_rk_accepted_step_size(r, err);
  gr_rk_commit(r);
  k->error_estimate = err;
#if GR_HAS_E
  if (event.mode >= 0) status = gr_rk_happen(r, &event);
  if (status) return status;
#endif
  if (k->t >= r->m->kink) status = gr_rk_cross(r, start, err);
  else gr_rk_back_to_high(r);
  if (!status) status = gr_rk_rows_here(r);
  return status ? status : stiff ? GR_STIFF : GR_DONE;
}

/* ---- the run ---- */

GR_COLD long gr_rk_start(gr_rk *r) {
  gr_task *k = r->k;
  const gr_rk_memory fresh = {0, 1e-4, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0};
  *r->m = fresh;
  r->m->order = k->rtol <= GR_HIGH_BELOW ? GR_HIGH_ORDER : GR_LOW_ORDER;
  r->pair = gr_pair((long)r->m->order);
  r->m->cell = k->t;
  r->m->kink = gr_next_kink(k, k->t);
  r->segment = gr_segment(k, k->t, 0);
  long status = GR_DONE;
#if GR_HAS_E
  double u[GR_LEN(GR_NU)];
  gr_signals_from(k, r->segment, k->t, u);
  if (k->t == k->t0) status = gr_first_modes(k, &r->newton, k->x, k->z, u, r->fp);
  if (status) return status;
#endif
  status = gr_rk_open(r);
  if (!status) status = gr_rk_rows_here(r);
  if (status || k->t >= k->t1) return status;
  r->m->h = k->h > 0.0 ? k->h : gr_rk_first_step(r);
  return status;
}

GR_FN long gr_rk_loop(gr_rk *r) {
  gr_task *k = r->k;
  long status, taken = 0;
  for (;;) {
    if (k->t >= k->t1) return GR_DONE;
    if (k->steps + k->rejected >= k->max_steps) return gr_fail(k, GR_TOO_MANY_STEPS, -1, k->t);
    if (k->slice > 0 && taken++ >= k->slice) return GR_MORE;
    status = gr_rk_step(r);
    if (status) return status;
  }
}

/* sz at the point where the run stands, without touching what the next step builds on */
GR_COLD void gr_rk_finish(gr_rk *r) {
  gr_task *k = r->k;
  k->h = r->m->h;
  r->m->segment = (double)r->segment;
  r->m->valid = (double)r->newton.valid;
#if GR_SENSITIVE && GR_HAS_Z
  if (k->ns > 0 && k->status != GR_MORE) {
    double u[GR_LEN(GR_NU)], amount = k->amount;
    long where = k->where;
    gr_signals_from(k, gr_segment(k, k->t, r->segment), k->t, u);
    if (gr_complete_sensitivity(k, &r->newton, k->t, k->x, k->z, u, k->sx, k->sz, r->fp)) r->m->valid = 0.0;
    k->where = where;
    k->amount = amount;
  }
#endif
}

GR_ENTRY long gr_explicit(gr_task *k) {
  gr_rk r = gr_rk_in(k);
  k->status = GR_DONE;
  if (!k->resumed) {
    k->status = gr_rk_start(&r);
  } else {
    r.pair = gr_pair((long)r.m->order);
    r.segment = (long)r.m->segment;
    r.newton.valid = r.m->valid != 0.0;
  }
  k->resumed = 1;
  if (!k->status) k->status = gr_rk_loop(&r);
  gr_end(k, k->status);
  gr_rk_finish(&r);
  return k->status;
}

#endif
