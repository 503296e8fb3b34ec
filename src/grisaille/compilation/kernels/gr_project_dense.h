/* Factors the gradients of hidden constraints as a full matrix, for gr_project.h.
 *
 * With A = W^(1/2) Cx(x0)' = V R (V orthogonal, R unit upper triangular) each correction is
 *
 *   dx = -W^(1/2) V g,   g = D^-1 R^-T c,   D = V'V.
 */
#ifndef GR_PROJECT_DENSE_H
#define GR_PROJECT_DENSE_H

#include "gr_task.h"

/* one projection: where it started and its factors, kept for the sensitivities */
typedef struct {
  double *base;    /* NX: x0 */
  double *lambda;  /* NC */
  double *v;       /* NX x NC */
  double *d;       /* NC: V'V, 0 where a constraint depends on those before it */
  double *r;       /* NC x NC, unit upper triangular */
  double *cj;      /* NC x NX: at the last linearisation or at the projected point */
  double *cj_near; /* NC x NX */
  double *cp;      /* NC x NP */
  double *x, *p;   /* NX, NP: displaced point */
} gr_projection;

#define GR_PROJECT_WORK (2 * GR_NX + 2 * GR_NC + GR_NC * (3 * GR_NX + GR_NC + GR_NP) + GR_NP + 1)

GR_FN gr_projection gr_projection_in(double *work) {
  gr_projection c;
  c.base = work;
  c.x = c.base + GR_NX;
  c.lambda = c.x + GR_NX;
  c.d = c.lambda + GR_NC;
  c.v = c.d + GR_NC;
  c.cj = c.v + GR_NX * GR_NC;
  c.cj_near = c.cj + GR_NX * GR_NC;
  c.r = c.cj_near + GR_NX * GR_NC;
  c.cp = c.r + GR_NC * GR_NC;
  c.p = c.cp + GR_NC * GR_NP;
  return c;
}

/* V, D and R of A = W^(1/2) Cx' by Gram and Schmidt, repeated where it cancels; column by column, in the given order */
GR_FN void gr_orthogonalise(const gr_task *k, gr_projection *c, double *gradient) {
  for (long j = 0; j < GR_NC; j++) {
    double *v = c->v + GR_NX * j, size = 0.0, left;
    for (long i = 0; i < GR_NX; i++) {
      v[i] = k->nominal[i] * c->cj[j + GR_NC * i];
      size += v[i] * v[i];
    }
    gradient[j] = left = size;
    for (long m = 0; m < j; m++) c->r[m + GR_NC * j] = 0.0;
    for (long pass = 0; pass < 2; pass++) {
      double start = left;
      for (long m = 0; m < j; m++) {
        const double *q = c->v + GR_NX * m;
        double along = 0.0;
        if (c->d[m] == 0.0) continue;
        for (long i = 0; i < GR_NX; i++) along += q[i] * v[i];
        along /= c->d[m];
        c->r[m + GR_NC * j] += along;
        for (long i = 0; i < GR_NX; i++) v[i] -= along * q[i];
      }
      left = 0.0;
      for (long i = 0; i < GR_NX; i++) left += v[i] * v[i];
      if (left > 0.25 * start) break;
    }
    c->d[j] = left > GR_DEPENDENT * size ? left : 0.0;
  }
}

/* before cj is overwritten */
GR_FN void gr_factored(const gr_task *k, gr_projection *c) { (void)k; (void)c; }

/* g = D^-1 R^-T residual, 0 for dependent constraints */
GR_FN void gr_multipliers(const gr_task *k, gr_projection *c, const double *residual, double *g) {
  double y[GR_LEN(GR_NC)];
  (void)k;
  for (long j = 0; j < GR_NC; j++) {
    y[j] = residual[j];
    g[j] = 0.0;
    if (c->d[j] == 0.0) continue;
    for (long m = 0; m < j; m++)
      if (c->d[m] != 0.0) y[j] -= c->r[m + GR_NC * j] * y[m];
    g[j] = y[j] / c->d[j];
  }
}

/* dx = V g, in units of nominal */
GR_FN void gr_shift(const gr_projection *c, const double *g, double *dx) {
  for (long i = 0; i < GR_NX; i++) {
    dx[i] = 0.0;
    for (long j = 0; j < GR_NC; j++) dx[i] += c->v[i + GR_NX * j] * g[j];
  }
}

GR_FN void gr_weigh_constraints(const gr_projection *c, const double *x) { (void)c; (void)x; }

/* the sum of |entry times x| of constraint j */
GR_FN double gr_constraint_noise(const gr_projection *c, long j, const double *x) {
  double noise = 0.0;
  for (long i = 0; i < GR_NX; i++) noise += fabs(c->cj[j + GR_NC * i] * x[i]);
  return noise;
}

/* multipliers of the constraints themselves: R lambda = -sum g */
GR_FN void gr_own_multipliers(const gr_projection *c, double *lambda) {
  for (long j = GR_NC - 1; j >= 0; j--) {
    lambda[j] = c->d[j] == 0.0 ? 0.0 : c->lambda[j];
    for (long m = j + 1; m < GR_NC; m++)
      if (c->d[j] != 0.0 && c->d[m] != 0.0) lambda[j] -= c->r[j + GR_NC * m] * lambda[m];
  }
}

/* out = Cx'lambda, with the entries cj */
GR_FN void gr_constraint_pull(const double *cj, const double *lambda, double *out) {
  for (long i = 0; i < GR_NX; i++) {
    out[i] = 0.0;
    for (long j = 0; j < GR_NC; j++) out[i] += cj[j + GR_NC * i] * lambda[j];
  }
}

/* out = Cx s + Cp dp, with the entries kept in c */
GR_FN void gr_constraint_push(const gr_projection *c, const double *s, const double *dp, double *out) {
  for (long j = 0; j < GR_NC; j++) out[j] = 0.0;
  for (long i = 0; i < GR_NP; i++)
    if (dp[i] != 0.0)
      for (long j = 0; j < GR_NC; j++) out[j] += c->cp[j + GR_NC * i] * dp[i];
  for (long i = 0; i < GR_NX; i++)
    for (long j = 0; j < GR_NC; j++) out[j] += c->cj[j + GR_NC * i] * s[i];
}

#endif
