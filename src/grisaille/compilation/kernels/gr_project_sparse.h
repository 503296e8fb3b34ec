/* Factors the gradients of hidden constraints by their entries that can differ from zero, for gr_project.h.
 *
 * With A = W^(1/2) Cx(x0)' = Q R (gr_sparse_qr.h) each correction is
 *
 *   dx = -W^(1/2) Q g,   g = R^-T c.
 *
 * Factors are made when they are first needed: points that meet their constraints need none.
 */
#ifndef GR_PROJECT_SPARSE_H
#define GR_PROJECT_SPARSE_H

#include "gr_matrix.h"
#include "gr_sparse_qr.h"
#include "gr_task.h"

#if GR_SENSITIVE
#define GR_CP_ROOM GR_CP_SIZE
#else
#define GR_CP_ROOM 0
#endif

/* one projection: where it started and its factors, kept for the sensitivities */
typedef struct {
  double *base;     /* NX: x0 */
  double *lambda;   /* NC: -sum of g */
  double *gradient; /* NC: squared lengths of the columns of A */
  double *noise;    /* NC: sum of |entry times x| of each constraint */
  double *cj;       /* entries of Cx at the last linearisation or at the projected point */
  double *cj_near;
  double *cp;       /* entries of Cp */
  double *x, *p;    /* NX, NP: displaced point */
  gr_orthogonal q;
  long is_factored;
} gr_projection;

#define GR_PROJECT_WORK (2 * GR_NX + 3 * GR_NC + 2 * GR_CJ_SIZE + GR_CP_ROOM + GR_NP + GR_ORTHOGONAL_WORK + 1)

GR_FN gr_projection gr_projection_in(double *work) {
  gr_projection c;
  long at = 0;
  c.base = gr_take_doubles(work, &at, GR_NX);
  c.x = gr_take_doubles(work, &at, GR_NX);
  c.lambda = gr_take_doubles(work, &at, GR_NC);
  c.gradient = gr_take_doubles(work, &at, GR_NC);
  c.noise = gr_take_doubles(work, &at, GR_NC);
  c.cj = gr_take_doubles(work, &at, GR_CJ_SIZE);
  c.cj_near = gr_take_doubles(work, &at, GR_CJ_SIZE);
  c.cp = gr_take_doubles(work, &at, GR_CP_ROOM);
  c.p = gr_take_doubles(work, &at, GR_NP);
  c.q = gr_orthogonal_in(work + at);
  c.is_factored = 0;
  return c;
}

/* squared lengths of the columns of A; its factors follow when needed */
GR_FN void gr_orthogonalise(const gr_task *k, gr_projection *c, double *gradient) {
  for (long j = 0; j < GR_NC; j++) c->gradient[j] = 0.0;
  for (long i = 0; i < GR_NX; i++)
    for (int e = gr_CJ_begin[i]; e < gr_CJ_begin[i + 1]; e++) {
      const double a = k->nominal[i] * c->cj[e];
      c->gradient[gr_CJ_row[e]] += a * a;
    }
  for (long j = 0; j < GR_NC; j++) gradient[j] = c->gradient[j];
  c->is_factored = 0;
}

/* before cj is overwritten */
GR_FN void gr_factored(const gr_task *k, gr_projection *c) {
  if (!c->is_factored) gr_sparse_orthogonalise(&c->q, k->nominal, c->cj, c->gradient);
  c->is_factored = 1;
}

/* g = R^-T residual, 0 for dependent constraints */
GR_FN void gr_multipliers(const gr_task *k, gr_projection *c, const double *residual, double *g) {
  double rest[GR_NC];
  gr_factored(k, c);
  for (long j = 0; j < GR_NC; j++) rest[j] = residual[j];
  gr_sparse_forward(&c->q, rest, g);
}

/* dx = Q g, in units of nominal */
GR_FN void gr_shift(const gr_projection *c, const double *g, double *dx) { gr_sparse_spread(&c->q, g, dx); }

/* the sum of |entry times x| of all constraints, for gr_constraint_noise */
GR_FN void gr_weigh_constraints(const gr_projection *c, const double *x) {
  for (long j = 0; j < GR_NC; j++) c->noise[j] = 0.0;
  for (long i = 0; i < GR_NX; i++)
    for (int e = gr_CJ_begin[i]; e < gr_CJ_begin[i + 1]; e++) c->noise[gr_CJ_row[e]] += fabs(c->cj[e] * x[i]);
}

GR_FN double gr_constraint_noise(const gr_projection *c, long j, const double *x) {
  (void)x;
  return c->noise[j];
}

/* multipliers of the constraints themselves: R lambda = -sum g */
GR_FN void gr_own_multipliers(const gr_projection *c, double *lambda) { gr_sparse_back(&c->q, c->lambda, lambda); }

/* out = Cx'lambda, with the entries cj */
GR_FN void gr_constraint_pull(const double *cj, const double *lambda, double *out) {
  for (long i = 0; i < GR_NX; i++) {
    out[i] = 0.0;
    for (int e = gr_CJ_begin[i]; e < gr_CJ_begin[i + 1]; e++) out[i] += cj[e] * lambda[gr_CJ_row[e]];
  }
}

#if GR_SENSITIVE
/* out = Cx s + Cp dp, with the entries kept in c */
GR_FN void gr_constraint_push(const gr_projection *c, const double *s, const double *dp, double *out) {
  GR_ALONG_P(CP, GR_NC, c->cp, 0, GR_NC, dp, out);
  GR_ADD_TIMES(CJ, GR_NC, c->cj, 0, GR_NC, 0, GR_NX, s, out);
}
#endif

#endif
