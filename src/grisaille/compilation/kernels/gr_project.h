/* Projects back onto the hidden constraints: x from C(t, x, u, p) = 0, and its sensitivities.
 *
 * x: the point x0 + W Cx(x0)' lambda with C = 0, W = diag(nominal^2): the nearest one in units of `nominal`, up to
 * second order in the distance. A factorization of W^(1/2) Cx(x0)' = V R (gr_project_dense.h, gr_project_sparse.h) serves
 * all corrections, which contract like the distance itself. A constraint whose gradient depends on those before it
 * (redundant loops) is left out of V; its residual is checked all the same.
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

#if GR_SPARSE && GR_HAS_C
#include "gr_project_sparse.h"
#else
#include "gr_project_dense.h"
#endif

/* ---- hidden constraints ---- */

/* x -= W^(1/2) V g */
GR_FN void gr_move(const gr_task *k, const gr_projection *c, const double *g, double *x) {
  double dx[GR_LEN(GR_NX)];
  gr_shift(c, g, dx);
  for (long i = 0; i < GR_NX; i++) x[i] -= k->nominal[i] * dx[i];
}

/* worst squared distance to the constraints in units of nominal among those above rounding; 0 when all are met */
GR_FN double gr_distance(const gr_projection *c, const double *gradient, const double *x,
                         const double *residual, double enough, long *worst) {
  double most = 0.0;
  long weighed = 0;
  for (long j = 0; j < GR_NC; j++) {
    double square = residual[j] * residual[j];
    if (square <= enough * enough * gradient[j]) continue;
    if (!weighed++) gr_weigh_constraints(c, x);
    if (fabs(residual[j]) <= 4.0 * GR_EPS * gr_constraint_noise(c, j, x)) continue;
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
      gr_multipliers(k, c, residual, g);
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
  gr_constraint_pull(c->cj_near, lambda, out);
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
  double residual[GR_NC], g[GR_NC], lambda[GR_NC], ds[GR_LEN(GR_NX)];
  if (k->ns == 0) return;
  gr_factored(k, c);
  gr_own_multipliers(c, lambda);
  const long moved = gr_has_moved(k, c, x);
  gr_CJ(t, x, z, u, k->p, c->cj);
  gr_CP(t, x, z, u, k->p, c->cp);
  for (long d = 0; d < k->ns; d++, sx += GR_NX) {
    if (moved) gr_turn(k, c, t, z, u, lambda, k->dp + GR_NP * d, sx);
    for (long i = 0; dt && i < GR_NX; i++) sx[i] -= f[i] * dt[d];
    for (long pass = 0; pass < 8; pass++) {
      double size = 0.0, change = 0.0;
      gr_constraint_push(c, sx, k->dp + GR_NP * d, residual);
      for (long i = 0; i < GR_NX; i++) size = fmax(size, fabs(sx[i]) / k->nominal[i]);
      gr_multipliers(k, c, residual, g);
      gr_shift(c, g, ds);
      for (long i = 0; i < GR_NX; i++) {
        sx[i] -= k->nominal[i] * ds[i];
        change = fmax(change, fabs(ds[i]));
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
