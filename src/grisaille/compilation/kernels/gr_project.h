/* Back onto the hidden constraints: x from C(t, x, u, p) = 0, and its sensitivities.
 *
 * x: the point x0 + W Cx(x0)' lambda with C = 0, W = diag(nominal^2): the nearest one in units of `nominal`, up to
 * second order in the distance. With A = W^(1/2) Cx(x0)' = V R (V orthogonal, R unit upper triangular) each correction is
 *
 *   dx = -W^(1/2) V D^-1 R^-T c,   D = V'V,
 *
 * and the same factorization serves all corrections, which contract like the distance itself. A constraint whose
 * gradient depends on those before it (redundant loops) is left out of V; its residual is checked all the same.
 *
 * S: the derivative of exactly this map in the direction (S, dp),
 *
 *   S <- S + W d(Cx0')[S, dp] lambda + W Cx0' mu,   mu such that Cx S + Cp dp = 0 at the projected point.
 *
 * lambda is of the size of the error of one step, so a difference quotient for d(Cx0') is exact to rounding; leaving the
 * term out would cost that error once per step.
 */
#ifndef GR_PROJECT_H
#define GR_PROJECT_H

#include "gr_rescue.h"
#include "gr_signal.h"
#include "gr_task.h"

#define GR_DEPENDENT 1e-20 /* squared sine of the angle to the span of the constraints before */

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

/* ---- hidden constraints ---- */

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

/* g = D^-1 R^-T residual, 0 for dependent constraints */
GR_FN void gr_multipliers(const gr_projection *c, const double *residual, double *g) {
  double y[GR_LEN(GR_NC)];
  for (long j = 0; j < GR_NC; j++) {
    y[j] = residual[j];
    g[j] = 0.0;
    if (c->d[j] == 0.0) continue;
    for (long m = 0; m < j; m++)
      if (c->d[m] != 0.0) y[j] -= c->r[m + GR_NC * j] * y[m];
    g[j] = y[j] / c->d[j];
  }
}

/* x -= W^(1/2) V g */
GR_FN void gr_move(const gr_task *k, const gr_projection *c, const double *g, double *x) {
  for (long i = 0; i < GR_NX; i++) {
    double dx = 0.0;
    for (long j = 0; j < GR_NC; j++) dx += c->v[i + GR_NX * j] * g[j];
    x[i] -= k->nominal[i] * dx;
  }
}

/* worst squared distance to the constraints in units of nominal among those above rounding; 0 when all are met */
GR_FN double gr_distance(const gr_projection *c, const double *gradient, const double *x,
                         const double *residual, double enough, long *worst) {
  double most = 0.0;
  for (long j = 0; j < GR_NC; j++) {
    double square = residual[j] * residual[j], noise = 0.0;
    if (square <= enough * enough * gradient[j]) continue;
    for (long i = 0; i < GR_NX; i++) noise += fabs(c->cj[j + GR_NC * i] * x[i]);
    if (fabs(residual[j]) <= 4.0 * GR_EPS * noise) continue;
    square = gradient[j] > 0.0 ? square / gradient[j] : square * 1e300;
    if (!(square <= most)) {
      most = square;
      *worst = j;
    }
  }
  return most;
}

/* moves x onto C = 0; keeps in c what the sensitivities need */
GR_FN long gr_project(gr_task *k, gr_projection *c, double t, double *x, const double *z, const double *u) {
#if GR_HAS_C
  double residual[GR_NC], gradient[GR_NC], g[GR_NC];
  double enough = 1e-3 * k->rtol, floor, before = 0.0;
  long worst = 0;
  enough = k->fixed_step > 0.0 ? 1e-15 : enough < 1e-13 ? 1e-13 : enough > 1e-9 ? 1e-9 : enough;
  floor = k->fixed_step > 0.0 ? 1e-9 : 10.0 * enough;
  for (long outer = 0; outer < 6; outer++) {
    gr_CJ(t, x, z, u, k->p, c->cj);
    gr_orthogonalise(k, c, gradient);
    for (long i = 0; i < GR_NX; i++) c->base[i] = x[i];
    for (long j = 0; j < GR_NC; j++) c->lambda[j] = 0.0;
    for (long inner = 0; inner < 8; inner++) {
      gr_C(t, x, z, u, k->p, residual);
      double distance = gr_distance(c, gradient, x, residual, enough, &worst);
      if (distance == 0.0 || (inner > 0 && distance > 0.25 * before && distance <= floor * floor)) {
        for (long j = 0; j < GR_NC; j++)
          if (fabs(residual[j]) > k->worst_constraint) k->worst_constraint = fabs(residual[j]);
        return GR_DONE;
      }
      if (!gr_finite(distance)) return gr_fail(k, GR_PROJECTION, worst, residual[worst]);
      if (inner > 0 && distance > 0.25 * before) break; /* linearise anew */
      gr_multipliers(c, residual, g);
      gr_move(k, c, g, x);
      for (long j = 0; j < GR_NC; j++) c->lambda[j] -= g[j];
      before = distance;
    }
  }
  return gr_fail(k, GR_PROJECTION, worst, residual[worst]);
#else
  (void)k; (void)c; (void)t; (void)x; (void)z; (void)u;
  return GR_DONE;
#endif
}

#if GR_SENSITIVE && GR_HAS_C
/* Cx'(base + e s, p + e dp) lambda by rows, into out */
GR_FN void gr_reaction(const gr_task *k, gr_projection *c, double t, const double *z, const double *u, double e,
                       const double *s, const double *dp, const double *lambda, double *out) {
  for (long i = 0; i < GR_NX; i++) c->x[i] = c->base[i] + e * s[i];
  for (long i = 0; i < GR_NP; i++) c->p[i] = k->p[i] + e * dp[i];
  gr_CJ(t, c->x, z, u, c->p, c->cj_near);
  for (long i = 0; i < GR_NX; i++) {
    out[i] = 0.0;
    for (long j = 0; j < GR_NC; j++) out[i] += c->cj_near[j + GR_NC * i] * lambda[j];
  }
}

/* S += W d(Cx0')[S, dp] lambda */
GR_FN void gr_turn(const gr_task *k, gr_projection *c, double t, const double *z, const double *u,
                   const double *lambda, const double *dp, double *s) {
  double up[GR_LEN(GR_NX)], down[GR_LEN(GR_NX)], rate = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    double unit = k->nominal[i] > fabs(c->base[i]) ? k->nominal[i] : fabs(c->base[i]);
    rate = fmax(rate, fabs(s[i]) / unit);
  }
  for (long i = 0; i < GR_NP; i++) rate = fmax(rate, fabs(dp[i]) / (k->p[i] != 0.0 ? fabs(k->p[i]) : 1.0));
  if (!(rate > 0.0)) return;
  double e = 1e-5 / rate;
  gr_reaction(k, c, t, z, u, e, s, dp, lambda, up);
  gr_reaction(k, c, t, z, u, -e, s, dp, lambda, down);
  if (gr_not_finite(GR_NX, up) >= 0 || gr_not_finite(GR_NX, down) >= 0) return;
  for (long i = 0; i < GR_NX; i++) s[i] += k->nominal[i] * k->nominal[i] * (up[i] - down[i]) / (2.0 * e);
}
#endif

#if GR_SENSITIVE && GR_HAS_C
/* 1 when the projection moved x by more than rounding */
GR_FN long gr_has_moved(const gr_task *k, const gr_projection *c, const double *x) {
  for (long i = 0; i < GR_NX; i++)
    if (fabs(x[i] - c->base[i]) > 1e-13 * fmax(k->nominal[i], fabs(x[i]))) return 1;
  return 0;
}
#endif

#if GR_SENSITIVE
/* S of the projected point; to be called after gr_project with the same c, before c is used again. With dt, the
 * derivative of an instant, sx comes in as the total derivative along it, and f is F at the projected point. */
GR_FN void gr_project_moving(const gr_task *k, gr_projection *c, double t, const double *x, const double *z,
                             const double *u, double *sx, const double *f, const double *dt) {
#if GR_HAS_C
  double residual[GR_NC], g[GR_NC], lambda[GR_NC];
  if (k->ns == 0) return;
  for (long j = GR_NC - 1; j >= 0; j--) { /* R lambda = -sum g gives the multipliers of the constraints themselves */
    lambda[j] = c->d[j] == 0.0 ? 0.0 : c->lambda[j];
    for (long m = j + 1; m < GR_NC; m++)
      if (c->d[j] != 0.0 && c->d[m] != 0.0) lambda[j] -= c->r[j + GR_NC * m] * lambda[m];
  }
  const long moved = gr_has_moved(k, c, x);
  gr_CJ(t, x, z, u, k->p, c->cj);
  gr_CP(t, x, z, u, k->p, c->cp);
  for (long d = 0; d < k->ns; d++, sx += GR_NX) {
    if (moved) gr_turn(k, c, t, z, u, lambda, k->dp + GR_NP * d, sx);
    for (long i = 0; dt && i < GR_NX; i++) sx[i] -= f[i] * dt[d];
    for (long pass = 0; pass < 8; pass++) {
      double size = 0.0;
      for (long j = 0; j < GR_NC; j++) residual[j] = 0.0;
      for (long i = 0; i < GR_NP; i++)
        if (k->dp[i + GR_NP * d] != 0.0)
          for (long j = 0; j < GR_NC; j++) residual[j] += c->cp[j + GR_NC * i] * k->dp[i + GR_NP * d];
      for (long i = 0; i < GR_NX; i++) {
        for (long j = 0; j < GR_NC; j++) residual[j] += c->cj[j + GR_NC * i] * sx[i];
        size = fmax(size, fabs(sx[i]) / k->nominal[i]);
      }
      gr_multipliers(c, residual, g);
      double change = 0.0;
      for (long i = 0; i < GR_NX; i++) {
        double ds = 0.0;
        for (long j = 0; j < GR_NC; j++) ds += c->v[i + GR_NX * j] * g[j];
        sx[i] -= k->nominal[i] * ds;
        change = fmax(change, fabs(ds));
      }
      if (!(change > 1e-13 * size)) break;
    }
  }
#else
  (void)c; (void)t; (void)x; (void)z; (void)u;
  for (long d = 0; dt && d < k->ns; d++)
    for (long i = 0; i < GR_NX; i++) sx[i + GR_NX * d] -= f[i] * dt[d];
#endif
}

GR_FN void gr_project_sensitivity(const gr_task *k, gr_projection *c, double t, const double *x, const double *z,
                                  const double *u, double *sx) {
#if GR_HAS_C
  gr_project_moving(k, c, t, x, z, u, sx, 0, 0);
#else
  (void)k; (void)c; (void)t; (void)x; (void)z; (void)u; (void)sx;
#endif
}
#endif

#endif
