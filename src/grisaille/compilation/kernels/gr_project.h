/* Back onto the equations: z from residual(t, x, z, u, p) = 0, x from C(t, x, u, p) = 0, and both for sensitivities.
 *
 * z: Newton with the last factorization of dF/dz as long as it contracts well. The right-hand side belonging to the
 * answer comes with it, so a stage costs no evaluation beyond those of Newton's method.
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

#include "gr_linear.h"
#include "gr_signal.h"
#include "gr_task.h"

#define GR_NEWTON_MOST 15
#define GR_DEPENDENT 1e-20 /* squared sine of the angle to the span of the constraints before */

/* dF/d[x; z], the factors of dF/dz and where they stand; `valid` must survive between slices */
typedef struct {
  double *jac;   /* N x N */
  double *lu;    /* NZ x NZ */
  long *pivot;   /* NZ */
  double *f;     /* N: right-hand side and residual of the last evaluation */
  long valid;
} gr_newton;

#define GR_NEWTON_WORK (GR_N * GR_N + GR_NZ * GR_NZ + GR_NZ + GR_N + 1)

GR_FN gr_newton gr_newton_in(double *work) {
  gr_newton n;
  n.jac = work;
  n.lu = n.jac + GR_N * GR_N;
  n.f = n.lu + GR_NZ * GR_NZ;
  n.pivot = (long *)(n.f + GR_N);
  n.valid = 0;
  return n;
}

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

GR_FN long gr_finite(double value) { return value - value == 0.0; }

/* index of the first entry that is not finite, or -1 */
GR_FN long gr_not_finite(long n, const double *v) {
  double sum = 0.0;
  for (long i = 0; i < n; i++) sum += v[i] * 0.0;
  if (sum == 0.0) return -1;
  for (long i = 0; i < n; i++)
    if (!gr_finite(v[i])) return i;
  return -1;
}

/* remembers what failed; answers the status */
GR_FN long gr_fail(gr_task *k, long status, long where, double amount) {
  k->where = where;
  k->amount = amount;
  return status;
}

/* the end of a call: nothing failed unless the status says so, whatever was repaired on the way */
GR_FN long gr_end(gr_task *k, long status) {
  if (status == GR_DONE || status == GR_MORE || status == GR_STIFF) gr_fail(k, status, -1, 0.0);
  return k->status = status;
}

/* ---- implicit unknowns ---- */

GR_FN long gr_factor_z(gr_task *k, gr_newton *n) {
  for (long j = 0; j < GR_NZ; j++)
    for (long i = 0; i < GR_NZ; i++) n->lu[i + GR_NZ * j] = n->jac[GR_NX + i + GR_N * (GR_NX + j)];
  long column = gr_lu(GR_NZ, n->lu, n->pivot);
  k->factorizations++;
  n->valid = column == 0;
  return column == 0 ? GR_DONE : gr_fail(k, GR_SINGULAR, column - 1, 0.0);
}

GR_FN long gr_linearise_z(gr_task *k, gr_newton *n, double t, const double *x, const double *z, const double *u) {
  gr_J(t, x, z, u, k->p, n->jac);
  k->jacobians++;
  return gr_factor_z(k, n);
}

/* largest entry of the correction in units of its tolerance */
GR_FN double gr_size_z(const gr_task *k, const double *z, const double *dz) {
  double size = 0.0;
  for (long i = 0; i < GR_NZ; i++) {
    double one = fabs(dz[i]) / (k->atol[GR_NX + i] + k->rtol * fabs(z[i]));
    if (!(one <= size)) size = one;
  }
  return size;
}

/* corrections that shrink from `before` to `size` will need more than three further ones */
GR_FN long gr_is_slow(double size, double before, double enough) {
  double rate = size / before;
  return !(rate <= 0.1) || size * rate * rate * rate > enough;
}

/* 1 when every residual is within what rounding of x and z alone makes of it. Entries of z with small tolerances cannot
 * be had more precisely where others in the same equations are large. */
GR_FN long gr_at_rounding(const gr_newton *n, const double *x, const double *z) {
  for (long i = GR_NX; i < GR_N; i++) {
    double noise = 0.0;
    for (long j = 0; j < GR_NX; j++) noise += fabs(n->jac[i + GR_N * j] * x[j]);
    for (long j = 0; j < GR_NZ; j++) noise += fabs(n->jac[i + GR_N * (GR_NX + j)] * z[j]);
    if (!(fabs(n->f[i]) <= 4.0 * GR_EPS * noise)) return 0;
  }
  return 1;
}

/* n->f = F(t, x, z, u, p) with z moved until its residual vanishes. Adaptive runs stop where the next correction is
 * below 1e-4 of the tolerance (1e-2 where corrections no longer shrink), frozen ones at rounding. */
GR_FN long gr_solve_implicit(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u) {
#if GR_NZ > 0
  double dz[GR_LEN(GR_NZ)], last[GR_LEN(GR_NZ)], size = 0.0, before = 0.0;
  double enough = k->fixed_step > 0.0 ? 1e-13 / k->rtol : 1e-4, floor = k->fixed_step > 0.0 ? 1e-9 / k->rtol : 1e-2;
  long age = 1, worst = 0; /* age: corrections made since the factors were taken */
  for (long it = 0; it < GR_NEWTON_MOST; it++) {
    gr_F(t, x, z, u, k->p, n->f);
    k->evaluations++;
    long bad = gr_not_finite(GR_N, n->f);
    if (bad >= 0) {
      n->valid = n->valid && it == 0;
      return gr_fail(k, GR_NOT_FINITE, bad, n->f[bad]);
    }
    if (!n->valid) {
      long status = gr_linearise_z(k, n, t, x, z, u);
      if (status) return status;
      age = 0;
    }
    for (long i = 0; i < GR_NZ; i++) dz[i] = -n->f[GR_NX + i];
    gr_lu_solve(GR_NZ, n->lu, n->pivot, dz);
    k->newton_iterations++;
    size = gr_size_z(k, z, dz);
    if (it > 0) before = gr_size_z(k, z, last); /* anew: the tolerances move with z */
    if (size <= enough || (it > 0 && size <= floor && size > 0.5 * before)) return GR_DONE;
    if (it > 0 && size > 0.1 * before && gr_at_rounding(n, x, z)) return GR_DONE;
    if (it > 0 && !(size <= 10.0 * before) && age == 1) break; /* diverges with the right factors */
    if (it > 0 && gr_is_slow(size, before, enough)) { /* take new factors here */
      long status = gr_linearise_z(k, n, t, x, z, u);
      if (status) return status;
      for (long i = 0; i < GR_NZ; i++) dz[i] = -n->f[GR_NX + i];
      gr_lu_solve(GR_NZ, n->lu, n->pivot, dz);
      age = 0;
    }
    for (long i = 0; i < GR_NZ; i++) {
      z[i] += dz[i];
      last[i] = dz[i];
    }
    age++;
  }
  for (long i = 1; i < GR_NZ; i++)
    if (fabs(n->f[GR_NX + i]) > fabs(n->f[GR_NX + worst])) worst = i;
  n->valid = 0;
  return gr_fail(k, GR_NEWTON, GR_NX + worst, n->f[GR_NX + worst]);
#else
  (void)z;
  gr_F(t, x, z, u, k->p, n->f);
  k->evaluations++;
  long bad = gr_not_finite(GR_NX, n->f);
  return bad >= 0 ? gr_fail(k, GR_NOT_FINITE, bad, n->f[bad]) : GR_DONE;
#endif
}

#if GR_SENSITIVE
/* out = column of dF/dp times dp, rows first .. first + rows - 1 */
GR_FN void gr_along_p(const double *m, long n, long first, long rows, const double *dp, double *out) {
  for (long i = 0; i < rows; i++) out[i] = 0.0;
  for (long j = 0; j < GR_NP; j++)
    if (dp[j] != 0.0)
      for (long i = 0; i < rows; i++) out[i] += m[first + i + n * j] * dp[j];
}

/* sz from dF/dz sz + dF/dx sx + dF/dp dp = 0; n->jac and its factors must belong to this very point.
 * fp: dF/dp there. */
GR_FN void gr_sensitivity_z(const gr_task *k, const gr_newton *n, const double *fp, const double *sx, double *sz) {
#if GR_NZ > 0
  for (long s = 0; s < k->ns; s++, sx += GR_NX, sz += GR_NZ) {
    gr_along_p(fp, GR_N, GR_NX, GR_NZ, k->dp + GR_NP * s, sz);
    for (long j = 0; j < GR_NX; j++)
      for (long i = 0; i < GR_NZ; i++) sz[i] += n->jac[GR_NX + i + GR_N * j] * sx[j];
    for (long i = 0; i < GR_NZ; i++) sz[i] = -sz[i];
    gr_lu_solve(GR_NZ, n->lu, n->pivot, sz);
  }
#else
  (void)k; (void)n; (void)fp; (void)sx; (void)sz;
#endif
}
#endif

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
#if GR_NC > 0
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

#if GR_SENSITIVE && GR_NC > 0
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

#if GR_SENSITIVE && GR_NC > 0
/* 1 when the projection moved x by more than rounding */
GR_FN long gr_has_moved(const gr_task *k, const gr_projection *c, const double *x) {
  for (long i = 0; i < GR_NX; i++)
    if (fabs(x[i] - c->base[i]) > 1e-13 * fmax(k->nominal[i], fabs(x[i]))) return 1;
  return 0;
}
#endif

#if GR_SENSITIVE
/* S of the projected point; to be called after gr_project with the same c, before c is used again */
GR_FN void gr_project_sensitivity(const gr_task *k, gr_projection *c, double t, const double *x, const double *z,
                                  const double *u, double *sx) {
#if GR_NC > 0
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
    for (long pass = 0; pass < 8; pass++) {
      double size = 0.0;
      gr_along_p(c->cp, GR_NC, 0, GR_NC, k->dp + GR_NP * d, residual);
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
  (void)k; (void)c; (void)t; (void)x; (void)z; (void)u; (void)sx;
#endif
}
#endif

#endif
