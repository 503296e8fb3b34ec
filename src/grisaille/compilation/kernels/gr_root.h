/* Solves residual(t, x, z, u, p) = 0 for z near a good prediction: Newton's method that notices when it leaves its root.
 *
 * The last factors of dF/dz serve as long as they contract well; the right-hand side belonging to the answer comes with
 * it, so a stage costs no evaluation beyond those of Newton's method.
 *
 * A root is meant to be the continuation of a root nearby. With factors taken at the point before, the second correction
 * is half of Kantorovich's h_0 = w |dz_0| times the first: above a quarter nothing says that there is one root near the
 * prediction and that it is found. With older factors the quotient bounds how much dF/dz has changed on the way; above
 * a half it is another matrix. As one quotient may be small by chance, new factors must give a correction that differs
 * by no more than that from what the old ones gave, and leave the sign of det dF/dz. Else the answer is GR_NEWTON, and gr_rescue.h follows the root.
 *
 * Reference: Deuflhard, Newton Methods for Nonlinear Problems, sections 2.1 and 5.1.
 */
#ifndef GR_ROOT_H
#define GR_ROOT_H

#include "gr_sides.h"
#include "gr_signal.h"
#include "gr_sparse.h"
#include "gr_task.h"

#define GR_NEWTON_MOST 15
#define GR_FRESH_CONTRACTION 0.25 /* h_0 = 1/2 */
#define GR_STALE_CONTRACTION 0.5
/* corrections below this, in units of the tolerance, or in z, say nothing about roots: terms that cancel leave rounding
 * in z that tight tolerances see (amperes beside the leakage of diodes) */
#define GR_DECIDES_NOTHING 3.0
#define GR_ROUNDED_BELOW 3e-8
#define GR_STALLED 4 /* corrections after which small ones that do not shrink are rounding of terms that cancel */
/* the most that rounding may leave open in z: of z, and of the z at which absolute tolerances count as much as relative
 * ones */
#define GR_MOST_ROUNDING 1e-8
#define GR_MOST_ROUNDING_AT_ZERO 1e-4
#define GR_ROUNDING_PROBES 4
#define GR_PROBED_PART 0.0625

/* dF/d[x; z], the factors of dF/dz and where they stand; `valid` must survive between slices */
typedef struct {
  double *jac;   /* N x N, or its nonzeros */
  double *lu;    /* NZ x NZ, or det dF/dz's sign: sparse factors lie in task->factors */
  double *gaps;  /* SIDES: of the switches where jac was taken */
  long *pivot;   /* NZ */
  double *f;     /* N: right-hand side and residual of the last evaluation */
  double *other; /* as jac, of other equations (gr_change.h); 0 on devices */
  long valid;
  long held;     /* pieces stay as they are: their equations count as met */
} gr_newton;

#if GR_SPARSE
#define GR_NEWTON_LU 1
#else
#define GR_NEWTON_LU (GR_NZ * GR_NZ)
#endif
/* sizes need not be known to the preprocessor */
#define GR_HAS_OTHER_J (GR_HAS_Z && !GR_ON_DEVICE)
#define GR_OTHER_J (GR_HAS_OTHER_J ? GR_J_SIZE : 0)
#define GR_NEWTON_WORK (GR_J_SIZE + GR_NEWTON_LU + GR_NZ + GR_N + GR_SIDES + 1 + GR_OTHER_J)

GR_FN gr_newton gr_newton_in(double *work) {
  gr_newton n;
  n.jac = work;
  n.lu = n.jac + GR_J_SIZE;
  n.f = n.lu + GR_NEWTON_LU;
  n.gaps = n.f + GR_N;
  n.pivot = (long *)(n.gaps + GR_SIDES);
  n.other = GR_HAS_OTHER_J ? n.gaps + GR_SIDES + GR_NZ + 1 : 0;
  n.valid = n.held = 0;
  return n;
}

GR_FN double gr_decides_nothing(const gr_task *k) {
  return k->fixed_step > 0.0 ? GR_DECIDES_NOTHING : fmax(GR_DECIDES_NOTHING, GR_ROUNDED_BELOW / k->rtol);
}

GR_FN void gr_hold(gr_newton *n) {
  for (long i = GR_N - GR_NM; n->held && i < GR_N; i++) n->f[i] = 0.0;
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

/* squared mean of v in units of the tolerances at x */
GR_FN double gr_mean_square(const gr_task *k, const double *x, const double *v) {
  double sum = 0.0;
  for (long i = 0; i < GR_NX; i++) {
    double one = v[i] / (k->atol[i] + k->rtol * fabs(x[i]));
    sum += one * one;
  }
  return sum / GR_LEN(GR_NX);
}

#if GR_SPARSE && GR_HAS_Z
GR_FN gr_pattern gr_pattern_of_z(void) {
  const gr_pattern m = {GR_NZ, gr_Z_begin, gr_Z_row, gr_Z_order, gr_Z_wanted, gr_Z_block};
  return m;
}
#endif

/* jac's part dF/dz into factors; answers 0 or the refused column + 1 */
GR_FN long gr_lu_of_z(gr_task *k, gr_newton *n) {
#if GR_SPARSE && GR_HAS_Z
  const gr_pattern m = gr_pattern_of_z();
  const gr_all_factors f = gr_all_factors_of(k);
  for (long e = 0; e < GR_Z_SIZE; e++) f.z.a[e] = n->jac[gr_Z_from[e]];
  const long column = gr_refused(k, gr_real_factor(&m, &f.z));
  if (!column) n->lu[0] = (double)gr_sparse_orientation(&m, &f.z);
  return column;
#elif GR_SPARSE
  (void)k; (void)n;
  return 0;
#else
  (void)k;
  for (long j = 0; j < GR_NZ; j++)
    for (long i = 0; i < GR_NZ; i++) n->lu[i + GR_NZ * j] = n->jac[GR_NX + i + GR_N * (GR_NX + j)];
  return gr_lu(GR_NZ, n->lu, n->pivot);
#endif
}

/* 1 where a run goes on with more room for factors and without those it had */
GR_FN long gr_are_lost(const gr_task *k) {
#if GR_SPARSE && GR_HAS_Z
  const gr_all_factors f = gr_all_factors_of(k);
  return !f.z.ready[0];
#else
  (void)k;
  return 0;
#endif
}

/* b becomes the solution of dF/dz dz = b */
GR_FN void gr_solve_z(const gr_task *k, const gr_newton *n, double *b) {
#if GR_SPARSE && GR_HAS_Z
  const gr_pattern m = gr_pattern_of_z();
  const gr_all_factors f = gr_all_factors_of(k);
  (void)n;
  gr_real_solve(&m, &f.z, b);
#elif GR_SPARSE
  (void)k; (void)n; (void)b;
#else
  (void)k;
  gr_lu_solve(GR_NZ, n->lu, n->pivot, b);
#endif
}

GR_FN long gr_factor_z(gr_task *k, gr_newton *n) {
  long column = gr_lu_of_z(k, n);
  k->factorizations++;
  n->valid = column == 0;
  return column == 0 ? GR_DONE : gr_fail(k, GR_SINGULAR, column - 1, 0.0);
}

/* the sides on which jac was taken */
GR_FN void gr_note_sides(const gr_task *k, gr_newton *n, double t, const double *x, const double *z, const double *u) {
#if GR_HAS_SIDES && GR_HAS_Z
  gr_S(t, x, z, u, k->p, n->gaps);
#else
  (void)k; (void)n; (void)t; (void)x; (void)z; (void)u;
#endif
}

/* 1 when the factors belong to the other side of a switch: corrections with them say nothing about the error here */
GR_FN long gr_left_its_piece(const gr_task *k, const gr_newton *n, double t, const double *x, const double *z,
                             const double *u) {
#if GR_HAS_SIDES && GR_HAS_Z
  double gaps[GR_SIDES];
  gr_S(t, x, z, u, k->p, gaps);
  return gr_have_changed(GR_SIDES, n->gaps, gaps);
#else
  (void)k; (void)n; (void)t; (void)x; (void)z; (void)u;
  return 0;
#endif
}

GR_FN long gr_linearise_z(gr_task *k, gr_newton *n, double t, const double *x, const double *z, const double *u) {
  gr_J(t, x, z, u, k->p, n->jac);
  k->jacobians++;
  gr_note_sides(k, n, t, x, z, u);
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

/* what rounding of x and z alone makes of every residual. Entries of z with small tolerances cannot be had more precisely
 * where others in the same equations are large. */
GR_FN void gr_rounding_of_rows(const gr_newton *n, const double *x, const double *z, double *noise) {
  for (long i = 0; i < GR_NZ; i++) noise[i] = 0.0;
  for (long j = 0; j < GR_N; j++) {
    const double size = 4.0 * GR_EPS * fabs(j < GR_NX ? x[j] : z[j - GR_NX]);
#if GR_SPARSE
    for (int e = gr_J_begin[j]; e < gr_J_begin[j + 1]; e++)
      if (gr_J_row[e] >= GR_NX) noise[gr_J_row[e] - GR_NX] += fabs(n->jac[e]) * size;
#else
    for (long i = 0; i < GR_NZ; i++) noise[i] += fabs(n->jac[GR_NX + i + GR_N * j]) * size;
#endif
  }
}

/* 1 when every residual is within that */
GR_FN long gr_at_rounding(const gr_newton *n, const double *x, const double *z) {
  double noise[GR_LEN(GR_NZ)];
  gr_rounding_of_rows(n, x, z, noise);
  for (long i = 0; i < GR_NZ; i++)
    if (!(fabs(n->f[GR_NX + i]) <= noise[i])) return 0;
  return 1;
}

/* sign of det dF/dz, from its factors */
GR_FN long gr_orientation(const gr_newton *n) {
#if GR_SPARSE
  return (long)n->lu[0];
#else
  long sign = 1;
  for (long i = 0; i < GR_NZ; i++) {
    if (n->lu[i + GR_NZ * i] < 0.0) sign = -sign;
    if (n->pivot[i] != i) sign = -sign;
  }
  return sign;
#endif
}

/* what cannot be solved: the entry of F furthest from zero */
GR_COLD long gr_unsolved(gr_task *k, gr_newton *n) {
  long worst = 0;
  for (long i = 1; i < GR_NZ; i++)
    if (fabs(n->f[GR_NX + i]) > fabs(n->f[GR_NX + worst])) worst = i;
  n->valid = 0;
  return gr_fail(k, GR_NEWTON, GR_NX + worst, n->f[GR_NX + worst]);
}

GR_FN void gr_correction_z(gr_task *k, const gr_newton *n, double *dz) {
  for (long i = 0; i < GR_NZ; i++) dz[i] = -n->f[GR_NX + i];
  gr_solve_z(k, n, dz);
  k->newton_iterations++;
}

/* 1 when a correction changes a piece: the last GR_NM entries of z are relations of the others, which jump by whole
 * numbers */
GR_FN long gr_changes_pieces(const double *dz) {
  for (long i = GR_NZ - GR_NM; i < GR_NZ; i++)
    if (fabs(dz[i]) > 0.5) return 1;
  return 0;
}

#if GR_HAS_Z
/* 1 when the residuals at z are rounding, of z and x or of terms that cancel inside F, which gr_at_rounding does not see:
 * where z moves by a small part of its correction d, F does not move by that part of J d, but by more or less. How much
 * is at least as large a part of F where it does not notice d at all, and the square of that part where F only bends.
 * n->f is F(t, x, z, u, p) then. */
GR_COLD long gr_is_rounding(gr_task *k, gr_newton *n, double t, const double *x, const double *z, const double *u) {
  double noise[GR_LEN(GR_NZ)], moved[GR_LEN(GR_NZ)], dz[GR_LEN(GR_NZ)], f[GR_LEN(GR_N)];
  gr_F(t, x, z, u, k->p, n->f);
  k->evaluations++;
  if (gr_not_finite(GR_N, n->f) >= 0 || gr_linearise_z(k, n, t, x, z, u)) return 0; /* older factors: another J */
  gr_correction_z(k, n, dz);
  for (long i = 0; i < GR_NZ; i++) {
    const double most = GR_MOST_ROUNDING * fabs(z[i]) + GR_MOST_ROUNDING_AT_ZERO * k->atol[GR_NX + i] / k->rtol;
    if (!(fabs(dz[i]) <= most)) return 0;
  }
  gr_rounding_of_rows(n, x, z, noise);
  for (long probe = 0; probe < GR_ROUNDING_PROBES; probe++) {
    const double part = (probe % 2 ? -GR_PROBED_PART : GR_PROBED_PART) / (1.0 + 0.25 * (double)probe);
    for (long i = 0; i < GR_NZ; i++) moved[i] = z[i] + part * dz[i];
    gr_F(t, x, moved, u, k->p, f);
    k->evaluations++;
    for (long i = 0; i < GR_NZ; i++) /* J d = -F(z) */
      noise[i] = fmax(noise[i], fabs(f[GR_NX + i] - (1.0 - part) * n->f[GR_NX + i]) / (GR_PROBED_PART * GR_PROBED_PART * 4.0));
  }
  for (long i = 0; i < GR_NZ; i++)
    if (!(fabs(n->f[GR_NX + i]) <= noise[i])) return 0;
  return 1;
}

/* n->f = F(t, x, z, u, p) with z moved until its residual vanishes. Adaptive runs stop where the next correction is
 * below 1e-4 of the tolerance (1e-2 where corrections no longer shrink), frozen ones at rounding. Corrections about the
 * tolerance decide nothing about roots: there only divergence ends the iteration. Nor do those that change a piece. */
GR_APART long gr_newton_iterate(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u) {
  double dz[GR_LEN(GR_NZ)], last[GR_LEN(GR_NZ)], size = 0.0, before = 0.0;
  double enough = k->fixed_step > 0.0 ? 1e-13 / k->rtol : 1e-4, floor = k->fixed_step > 0.0 ? 1e-9 / k->rtol : 1e-2;
  const double little = gr_decides_nothing(k);
  long age = 1, jumps = 0; /* corrections made since the factors were taken; a piece has just changed */
  for (long it = 0; it < GR_NEWTON_MOST; it++) {
    gr_F(t, x, z, u, k->p, n->f);
    k->evaluations++;
    gr_hold(n);
    long bad = gr_not_finite(GR_N, n->f);
    if (bad >= 0) {
      n->valid = n->valid && it == 0;
      return gr_fail(k, GR_NOT_FINITE, bad, n->f[bad]);
    }
    if (!n->valid || gr_are_lost(k)) {
      long status = gr_linearise_z(k, n, t, x, z, u);
      if (status) return status;
      age = 0;
    }
    gr_correction_z(k, n, dz);
    size = before = 0.0;
    for (long i = 0; i < GR_NZ; i++) { /* of the last correction anew: the tolerances move with z */
      const double per = 1.0 / (k->atol[GR_NX + i] + k->rtol * fabs(z[i])), one = fabs(dz[i]) * per;
      if (!(one <= size)) size = one;
      if (it > 0 && fabs(last[i]) * per > before) before = fabs(last[i]) * per;
    }
    const double rest = it >= GR_STALLED && !(k->fixed_step > 0.0) ? little : floor;
    if (size <= enough || (it > 0 && size <= rest && size > 0.5 * before) ||
        (it > 0 && size > 0.1 * before && gr_at_rounding(n, x, z))) {
      if (!gr_left_its_piece(k, n, t, x, z, u)) return GR_DONE;
      long status = gr_linearise_z(k, n, t, x, z, u);
      if (status) return status;
      gr_correction_z(k, n, dz);
      k->newton_iterations--;
      if (gr_size_z(k, z, dz) <= floor || gr_at_rounding(n, x, z)) return GR_DONE;
      for (long i = 0; i < GR_NZ; i++) z[i] += last[i] = dz[i];
      age = 1;
      continue;
    }
    const long jumped = jumps;
    jumps = gr_changes_pieces(dz);
    if (it > 0 && !jumps && !jumped) {
      if (before > little && !(size <= (age == 1 ? GR_FRESH_CONTRACTION : GR_STALE_CONTRACTION) * before)) break;
      if (!(size <= 10.0 * before) && !(size <= little) && age == 1) break; /* diverges with the right factors */
    }
    if (it > 0 && gr_is_slow(size, before, enough)) { /* take new factors here */
      const long orientation = gr_orientation(n);
      long status = gr_linearise_z(k, n, t, x, z, u);
      if (status) return status;
      for (long i = 0; i < GR_NZ; i++) last[i] = -dz[i];
      gr_correction_z(k, n, dz);
      k->newton_iterations--;
      for (long i = 0; i < GR_NZ; i++) last[i] += dz[i];
      if (before > little && !jumps && !jumped &&
          (gr_orientation(n) != orientation ||
           !(gr_size_z(k, z, last) <= GR_STALE_CONTRACTION * fmax(size, gr_size_z(k, z, dz))))) break;
      age = 0;
    }
    for (long i = 0; i < GR_NZ; i++) {
      z[i] += dz[i];
      last[i] = dz[i];
    }
    age++;
  }
  return gr_unsolved(k, n);
}
#endif

#if GR_SENSITIVE
/* sz from dF/dz sz + dF/dx sx + dF/dp dp = 0; n->jac and its factors must belong to this very point.
 * fp: dF/dp there. */
GR_FN void gr_sensitivity_z(const gr_task *k, const gr_newton *n, const double *fp, const double *sx, double *sz) {
#if GR_HAS_Z
  for (long s = 0; s < k->ns; s++, sx += GR_NX, sz += GR_NZ) {
    GR_ALONG_P(FP, GR_N, fp, GR_NX, GR_NZ, k->dp + GR_NP * s, sz);
    GR_ADD_TIMES(J, GR_N, n->jac, GR_NX, GR_NZ, 0, GR_NX, sx, sz);
    for (long i = 0; i < GR_NZ; i++) sz[i] = -sz[i];
    gr_solve_z(k, n, sz);
  }
#else
  (void)k; (void)n; (void)fp; (void)sx; (void)sz;
#endif
}
#endif

#endif
