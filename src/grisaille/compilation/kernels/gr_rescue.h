/* Solves for z where plain Newton does not find it, or may have found another root: stages, tried in turn.
 *
 * 0. pieces: where relations of z are entries of z, a search for pieces that agree with their solution;
 * 1. afresh: Newton from the prediction with its own factors, if dF/dz is oriented there as where the root is known;
 *    and the root lies on the same sides of all switches of z: beyond one, several roots may have that orientation;
 * 2. across bends: where F has switches of z, damped Newton from the known root, from piece to piece, if dF/dz is oriented
 *    the same in all of them. What plain Newton finds beyond a switch is looked at in the same way;
 * 3. along the way: from the known root z_a at (t_a, x_a, u_a) in a straight line to (t, x, u), with strides short enough
 *    that dF/dz of one end contracts at the other (by 1/2), so that the root stays the only one near; what jumps with
 *    time or an input is thus followed through the jump;
 * 4. along the residual: F(z) = (1 - s) F(z_a) at (t, x, u), where the equations themselves change at once;
 * 5. around folds: a curve on which all equations but one hold, through its folds, to where that one does, with the
 *    orientation it had (gr_fold);
 * 6. damped: Newton with steps halved until the next correction would be smaller (Deuflhard's natural monotonicity),
 *    from the prediction, from where the way ended and from beyond; two of these must lead to a root, and none to
 *    another one.
 *
 * On a branch of solutions the sign of det dF/dz does not change: a root with the other sign belongs to another branch.
 * Where the way ends before its goal, at a fold, the branch ends too. Adaptive steps then try a shorter one; stages 4
 * to 6 are left to jumps and frozen steps, which cannot. Where an adaptive step cannot be shortened any more, z jumps as
 * stage 5 says: as it would if its equations held at once, but in the limit only (hysteresis).
 *
 * Reference: Deuflhard, Newton Methods for Nonlinear Problems, sections 3.3 and 5.1.
 */
#ifndef GR_RESCUE_H
#define GR_RESCUE_H

#include "gr_root.h"

#define GR_SHORTEST_STRIDE 1e-10
#define GR_LEAP_BELOW 1e-6  /* strides at which a bend of F (abs, minimum) is passed, not resolved */
#define GR_SHORTEST_IN_STEP 1e-7
#define GR_STRIDES_IN_STEP 50
#define GR_STRIDES 1000
#define GR_PIECE_TRIALS 40
#define GR_MOST_PIECES 200
#define GR_ALL_AT_ONCE 6

/* a known root: x, z at time t, signals as segment sees them */
typedef struct {
  double t;
  const double *x, *z;
  long segment;
} gr_anchor;

/* what the equations of z stand at */
typedef struct {
  const double *x, *u, *p;
} gr_equations;

#if GR_HAS_Z

/* from a known root to where one is wanted */
typedef struct {
  const gr_anchor *from;
  double t;
  const double *x, *u;
  const double *u_from;
  double *lift; /* residual of the known root at the goal */
  long fades;   /* 0: t, x, u move in a straight line; 1: the residual `lift` fades */
  const gr_equations *other; /* these equations become those of the goal, in equal parts of their residuals; 0: none do */
} gr_way;

/* the straight one; u_from: memory for GR_NU signals */
GR_COLD gr_way gr_way_from(const gr_task *k, const gr_anchor *from, double t, const double *x, const double *u,
                           double *u_from) {
  const gr_way w = {from, t, x, u, u_from, 0, 0, 0};
  gr_signals_from(k, from->segment, from->t, u_from);
  return w;
}

GR_COLD void gr_way_point(const gr_way *w, double s, double *t, double *x, double *u) {
  const double kept = w->fades || w->other ? 0.0 : 1.0 - s, taken = 1.0 - kept;
  *t = kept > 0.0 ? kept * w->from->t + taken * w->t : w->t;
  for (long i = 0; i < GR_NX; i++) x[i] = kept > 0.0 ? kept * w->from->x[i] + taken * w->x[i] : w->x[i];
  for (long i = 0; i < GR_NU; i++) u[i] = kept > 0.0 ? kept * w->u_from[i] + taken * w->u[i] : w->u[i];
}

/* the residual at share s of the way into n->f; 1 when it is finite */
GR_COLD long gr_way_values(gr_task *k, gr_newton *n, const gr_way *w, double s, const double *z) {
  double t, x[GR_LEN(GR_NX)], u[GR_LEN(GR_NU)];
  gr_way_point(w, s, &t, x, u);
  gr_F(t, x, z, u, k->p, n->f);
  k->evaluations++;
  if (w->fades)
    for (long i = 0; i < GR_NZ; i++) n->f[GR_NX + i] -= (1.0 - s) * w->lift[i];
  if (w->other && s < 1.0) {
    double f[GR_LEN(GR_N)];
    gr_F(w->t, w->other->x, z, w->other->u, w->other->p, f);
    k->evaluations++;
    for (long i = GR_NX; i < GR_N; i++) n->f[i] = s * n->f[i] + (1.0 - s) * f[i];
  }
  return gr_not_finite(GR_NZ, n->f + GR_NX) < 0;
}

/* 1 when dF/dz at share s could be factored */
GR_COLD long gr_way_linearise(gr_task *k, gr_newton *n, const gr_way *w, double s, const double *z) {
  double t, x[GR_LEN(GR_NX)], u[GR_LEN(GR_NU)];
  gr_way_point(w, s, &t, x, u);
#if GR_HAS_OTHER_J
  if (w->other && s < 1.0) {
    gr_J(w->t, w->other->x, z, w->other->u, w->other->p, n->other);
    gr_J(t, x, z, u, k->p, n->jac);
    k->jacobians += 2;
    for (long e = 0; e < GR_J_SIZE; e++) n->jac[e] = s * n->jac[e] + (1.0 - s) * n->other[e];
    gr_note_sides(k, n, t, x, z, u);
    return gr_factor_z(k, n) == GR_DONE;
  }
#endif
  return gr_linearise_z(k, n, t, x, z, u) == GR_DONE;
}

/* One stride to share `goal` with the factors of its start: `next` there, and the largest quotient of two corrections;
 * 1 when all of them contract, and the root has moved as its slope at the start says, within a half. */
GR_COLD long gr_stride(gr_task *k, gr_newton *n, const gr_way *w, double s, double goal, const double *z, double *next,
                       double *contraction) {
  double dz[GR_LEN(GR_NZ)], slope[GR_LEN(GR_NZ)], first = 0.0, before = 0.0;
  const double little = k->fixed_step > 0.0 ? 1e-2 : gr_decides_nothing(k);
  *contraction = 0.0;
  if (!gr_way_values(k, n, w, s + (goal - s) / 64.0, z)) return 0;
  gr_correction_z(k, n, slope);
  for (long i = 0; i < GR_NZ; i++) next[i] = z[i];
  for (long it = 0; it < GR_NEWTON_MOST; it++) {
    if (!gr_way_values(k, n, w, goal, next)) return 0;
    gr_correction_z(k, n, dz);
    const double size = gr_size_z(k, z, dz);
    if (it == 0) first = size;
    else if (size > little && !(size <= GR_STALE_CONTRACTION * before)) return 0;
    else if (before > little) *contraction = fmax(*contraction, size / before);
    for (long i = 0; i < GR_NZ; i++) next[i] += dz[i];
    if (size <= 1e-2 || size <= 1e-3 * first || (it > 1 && size <= little && size > GR_STALE_CONTRACTION * before)) break;
    if (it == GR_NEWTON_MOST - 1) return 0;
    before = size;
  }
  for (long i = 0; i < GR_NZ; i++) slope[i] *= 64.0, dz[i] = next[i] - z[i];
  before = fmax(gr_size_z(k, z, slope), gr_size_z(k, z, dz));
  for (long i = 0; i < GR_NZ; i++) slope[i] -= dz[i];
  return gr_size_z(k, z, slope) <= 0.5 * before + fmax(2.0, little);
}

/* A stride across a bend: Newton with factors of every point. The root must lie where the slopes of both ends let it,
 * which at so short a stride no other root does. */
GR_COLD long gr_leap(gr_task *k, gr_newton *n, const gr_way *w, double s, double goal, const double *z, double *next) {
  double dz[GR_LEN(GR_NZ)], ahead = 0.0, back, moved;
  for (long i = 0; i < GR_NZ; i++) next[i] = z[i];
  for (long it = 0;; it++) {
    if (it == GR_NEWTON_MOST || !gr_way_values(k, n, w, goal, next) || !gr_way_linearise(k, n, w, goal, next)) return 0;
    gr_correction_z(k, n, dz);
    const double size = gr_size_z(k, z, dz);
    if (it == 0) ahead = size;
    for (long i = 0; i < GR_NZ; i++) next[i] += dz[i];
    if (size <= 1e-2) break;
    if (!(size <= DBL_MAX)) return 0;
  }
  if (!gr_way_linearise(k, n, w, goal, next) || !gr_way_values(k, n, w, s, next)) return 0;
  gr_correction_z(k, n, dz);
  back = gr_size_z(k, z, dz);
  for (long i = 0; i < GR_NZ; i++) dz[i] = next[i] - z[i];
  moved = gr_size_z(k, z, dz);
  return moved <= 4.0 * fmax(fmax(ahead, back), 1.0);
}

/* Follows the root along the way; z ends at the goal or where the way ends, *share says how far that is. The factors are
 * those of the end. */
GR_COLD long gr_follow(gr_task *k, gr_newton *n, const gr_way *w, double *z, long strides, double *share) {
  const double shortest = strides > GR_STRIDES_IN_STEP ? GR_SHORTEST_STRIDE : GR_SHORTEST_IN_STEP;
  double next[GR_LEN(GR_NZ)], contraction, stride = 0.5;
  *share = 0.0;
  for (long i = 0; i < GR_NZ; i++) z[i] = w->from->z[i];
  if (!gr_way_linearise(k, n, w, 0.0, z)) return 0;
  const long orientation = gr_orientation(n);
  for (; *share < 1.0; strides--) {
    const double goal = *share + stride < 1.0 ? *share + stride : 1.0;
    if (strides == 0 || stride < shortest) return 0;
    long kept = 1, taken = gr_stride(k, n, w, *share, goal, z, next, &contraction);
    if (!taken && stride <= GR_LEAP_BELOW) {
      kept = 0;
      contraction = 0.0;
      taken = gr_leap(k, n, w, *share, goal, z, next);
    }
    if (taken) {
      kept = 0;
      taken = gr_way_linearise(k, n, w, goal, next) && gr_orientation(n) == orientation;
    }
    if (!taken) {
      stride *= 0.5;
      if (!kept && !gr_way_linearise(k, n, w, *share, z)) return 0;
      continue;
    }
    *share = goal;
    for (long i = 0; i < GR_NZ; i++) z[i] = next[i];
    stride *= contraction <= 0.05 ? 4.0 : contraction <= 0.2 ? 2.0 : 1.0;
  }
  return 1;
}

#if GR_HAS_SIDES
/* z + share dz at a fixed point */
typedef struct {
  const gr_task *k;
  double t;
  const double *x, *z, *dz, *u;
} gr_line_z;

GR_COLD void gr_line_z_gaps(const void *line, double share, double *gaps) {
  const gr_line_z *l = (const gr_line_z *)line;
  double z[GR_LEN(GR_NZ)];
  for (long i = 0; i < GR_NZ; i++) z[i] = l->z[i] + share * l->dz[i];
  gr_S(l->t, l->x, z, l->u, l->k->p, gaps);
}
#endif

/* the share of dz that ends just beyond the first switch on its way */
GR_FN double gr_reach_z(const gr_task *k, double t, const double *x, const double *z, const double *u,
                        const double *dz) {
#if GR_HAS_SIDES
  const gr_line_z line = {k, t, x, z, dz, u};
  return gr_reach(&line, gr_line_z_gaps, GR_SIDES);
#else
  (void)k; (void)t; (void)x; (void)z; (void)u; (void)dz;
  return 1.0;
#endif
}

/* Newton with damped corrections, each of which ends just beyond the first switch on its way; near the root the plain
 * one takes over. With an orientation, a piece whose det dF/dz has another sign ends the search. */
GR_COLD long gr_newton_damped(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u,
                              long orientation) {
  double dz[GR_LEN(GR_NZ)], next[GR_LEN(GR_NZ)], trial[GR_LEN(GR_NZ)], share = 1.0;
  const double floor = k->fixed_step > 0.0 ? 1e-9 / k->rtol : 1e-2;
  for (long it = 0; it < GR_MOST_PIECES; it++) {
    gr_F(t, x, z, u, k->p, n->f);
    k->evaluations++;
    gr_hold(n);
    const long bad = gr_not_finite(GR_NZ, n->f + GR_NX);
    if (bad >= 0) return gr_fail(k, GR_NOT_FINITE, GR_NX + bad, n->f[GR_NX + bad]);
    const long status = gr_linearise_z(k, n, t, x, z, u);
    if (status) return status;
    if (orientation && gr_orientation(n) != orientation) break;
    gr_correction_z(k, n, dz);
    const double size = gr_size_z(k, z, dz);
    if (!(size <= DBL_MAX)) break;
    const double whole = gr_reach_z(k, t, x, z, u, dz);
    if (size <= gr_decides_nothing(k) && (whole == 1.0 || size <= floor)) return gr_newton_iterate(k, n, t, x, z, u);
    for (share = fmin(1.0, 4.0 * share);; share *= 0.5) {
      if (share < 1e-12) return gr_unsolved(k, n);
      const double part = share * whole;
      for (long i = 0; i < GR_NZ; i++) next[i] = z[i] + part * dz[i];
      gr_F(t, x, next, u, k->p, n->f);
      k->evaluations++;
      gr_hold(n);
      if (gr_not_finite(GR_NZ, n->f + GR_NX) >= 0) continue;
      gr_correction_z(k, n, trial);
      if (gr_size_z(k, z, trial) <= (1.0 - 0.25 * part) * size * (1.0 + 1e-9)) break;
    }
    for (long i = 0; i < GR_NZ; i++) z[i] = next[i];
  }
  return gr_unsolved(k, n);
}

/* ---- around folds ---- */

#define GR_FOLD_STEPS 400
#define GR_FOLD_TRIALS 20
#define GR_FOLD_STRIDE 0.1  /* of the size of z: the first step along the curve */
#define GR_FOLD_LONGEST 0.25
#define GR_FOLD_END 1e-6     /* of sigma: rounding leaves no zero */
#define GR_FOLD_BEYOND 1e-8 /* of the run */
#define GR_FOLD_NEAR 1e-6   /* of the run */

/* a curve of roots of F(z) = sigma lift at a fixed point */
typedef struct {
  double t;
  const double *x, *u;
  double *lift, *size; /* size: of z */
} gr_curve;

/* the largest entry in parts of the size of z */
GR_FN double gr_curve_norm(const gr_curve *c, const double *dz) {
  double most = 0.0;
  for (long i = 0; i < GR_NZ; i++)
    if (!(fabs(dz[i]) <= most * c->size[i])) most = fabs(dz[i]) / c->size[i];
  return most;
}

/* z and sigma back onto the curve, in the plane across its tangent (slope, 1), with factors of the step's start; 1 when
 * corrections contract */
GR_COLD long gr_curve_correct(gr_task *k, gr_newton *n, const gr_curve *c, const double *slope, double *z, double *sigma) {
  double dz[GR_LEN(GR_NZ)], before = HUGE_VAL;
  for (long it = 0; it < 8; it++) {
    double along = 0.0, length = 0.0;
    gr_F(c->t, c->x, z, c->u, k->p, n->f);
    k->evaluations++;
    gr_hold(n);
    for (long i = 0; i < GR_NZ; i++) n->f[GR_NX + i] -= *sigma * c->lift[i];
    if (gr_not_finite(GR_NZ, n->f + GR_NX) >= 0) return 0;
    gr_correction_z(k, n, dz);
    for (long i = 0; i < GR_NZ; i++) {
      along += dz[i] * slope[i] / (c->size[i] * c->size[i]);
      length += slope[i] * slope[i] / (c->size[i] * c->size[i]);
    }
    if (!(length > 0.0)) return 0;
    for (long i = 0; i < GR_NZ; i++) z[i] += dz[i] -= along / length * slope[i];
    *sigma -= along / length;
    const double size = gr_curve_norm(c, dz);
    if (size <= 1e-9) return 1;
    if (!(size <= 0.5 * before)) return size <= 1e-7;
    before = size;
  }
  return 0;
}

/* one step along the curve, which ends just beyond the first switch on it; 0 where none is short enough */
GR_COLD long gr_curve_step(gr_task *k, gr_newton *n, gr_curve *c, long back, double *z, double *sigma,
                           double *stride) {
  double slope[GR_LEN(GR_NZ)], dz[GR_LEN(GR_NZ)], next[GR_LEN(GR_NZ)];
  for (long i = 0; i < GR_NZ; i++) slope[i] = c->lift[i];
  gr_solve_z(k, n, slope);
  for (long i = 0; i < GR_NZ; i++) c->size[i] = fmax(c->size[i], fabs(z[i]));
  const double norm = gr_curve_norm(c, slope);
  if (!(norm > 0.0 && norm <= DBL_MAX)) return 0;
  for (*stride = fmin(2.0 * *stride, GR_FOLD_LONGEST); *stride > 1e-12; *stride *= 0.25) {
    double ahead = (back ? *stride : -*stride) / norm, there;
    if (!back && *sigma + ahead < 0.0) ahead = -*sigma;
    for (long i = 0; i < GR_NZ; i++) dz[i] = ahead * slope[i];
    const double whole = gr_reach_z(k, c->t, c->x, z, c->u, dz);
    for (long i = 0; i < GR_NZ; i++) next[i] = z[i] + whole * dz[i];
    there = *sigma + whole * ahead;
    if (!gr_curve_correct(k, n, c, slope, next, &there)) continue;
    for (long i = 0; i < GR_NZ; i++) z[i] = next[i];
    *sigma = there;
    return 1;
  }
  return 0;
}

/* From z, which meets all equations but number `row`, to the root at the other end of the curve on which that one fails by
 * sigma c->lift, from sigma = 1 to 0 and through the folds at which sigma turns: there the sign of det dF/dz changes, which
 * tells the way. */
GR_COLD long gr_trace(gr_task *k, gr_newton *n, gr_curve *c, double *z, long orientation) {
  double sigma = 1.0, stride = 0.5 * GR_FOLD_STRIDE, before[GR_LEN(GR_NZ)], moved[GR_LEN(GR_NZ)];
  for (long i = 0; i < GR_NZ; i++) before[i] = z[i];
  for (long step = 0;; step++) {
    if (step == GR_FOLD_STEPS || gr_linearise_z(k, n, c->t, c->x, z, c->u)) return GR_NEWTON;
    const long back = gr_orientation(n) != orientation;
    if (!back && sigma <= GR_FOLD_END) break;
    for (long i = 0; i < GR_NZ; i++) before[i] = z[i];
    if (!gr_curve_step(k, n, c, back, z, &sigma, &stride)) return GR_NEWTON;
  }
  /* the root lies within the last step */
  for (long i = 0; i < GR_NZ; i++) moved[i] = z[i] - before[i];
  const double last = gr_curve_norm(c, moved);
  for (long i = 0; i < GR_NZ; i++) before[i] = z[i];
  if (gr_newton_damped(k, n, c->t, c->x, z, c->u, orientation) || gr_orientation(n) != orientation) return GR_NEWTON;
  for (long i = 0; i < GR_NZ; i++) moved[i] = z[i] - before[i];
  return gr_curve_norm(c, moved) <= 2.0 * last + 1e-6 ? GR_DONE : GR_NEWTON;
}

/* how much z moves when an equation is off by one: most for those that have no solution */
GR_COLD void gr_weigh_rows(gr_task *k, gr_newton *n, const gr_curve *c, double *weight) {
  double dz[GR_LEN(GR_NZ)];
  for (long row = 0; row < GR_NZ; row++) {
    for (long i = 0; i < GR_NZ; i++) dz[i] = i == row ? 1.0 : 0.0;
    gr_solve_z(k, n, dz);
    weight[row] = gr_curve_norm(c, dz);
  }
}

/* From z at the end of a branch to the root at which it goes on: all equations but one hold on a curve through z, on which
 * that one is brought back to zero. Which one says how far all others are left alone: those that have lost their
 * solution, else the curve leads nowhere, and the next one is tried. The root has the sign of det dF/dz that the branch
 * had, `orientation`, 0: that of the start. What a small inertia of z would do is the same wherever the curve is the only
 * one. */
GR_COLD long gr_fold(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u,
                     long orientation) {
  double start[GR_LEN(GR_NZ)], weight[GR_LEN(GR_NZ)], slope[GR_LEN(GR_NZ)], lift[GR_LEN(GR_NZ)], size[GR_LEN(GR_NZ)];
  gr_curve c = {t, x, u, lift, size};
  for (long i = 0; i < GR_NZ; i++) start[i] = z[i];
  for (long i = 0; i < GR_NZ; i++) c.size[i] = fabs(z[i]) + k->atol[GR_NX + i] / k->rtol;
  for (long trial = 0; trial < GR_FOLD_TRIALS && trial < GR_NZ; trial++) {
    long row = 0;
    for (long i = 0; i < GR_NZ; i++) z[i] = start[i];
    if (gr_linearise_z(k, n, t, x, z, u)) return GR_NEWTON;
    if (orientation == 0) orientation = gr_orientation(n);
    if (trial == 0) gr_weigh_rows(k, n, &c, weight);
    for (long i = 1; i < GR_NZ; i++)
      if (weight[i] > weight[row]) row = i;
    weight[row] = 0.0;
    gr_F(t, x, z, u, k->p, n->f);
    k->evaluations++;
    if (gr_not_finite(GR_NZ, n->f + GR_NX) >= 0) return GR_NEWTON;
    for (long i = 0; i < GR_NZ; i++) slope[i] = c.lift[i] = i == row ? 1.0 : 0.0;
    double off = n->f[GR_NX + row];
    gr_solve_z(k, n, slope);
    if (!gr_curve_correct(k, n, &c, slope, z, &off) || off == 0.0) continue;
    c.lift[row] = off;
    if (!gr_trace(k, n, &c, z, orientation)) return GR_DONE;
  }
  return GR_NEWTON;
}

/* 1 where z at the goal lies on another side of a switch than the known root */
GR_FN long gr_is_beyond(const gr_task *k, const gr_way *w, const double *z) {
#if GR_HAS_SIDES
  double known[GR_SIDES], found[GR_SIDES];
  gr_S(w->from->t, w->from->x, w->from->z, w->u_from, k->p, known);
  gr_S(w->t, w->x, z, w->u, k->p, found);
  return gr_have_changed(GR_SIDES, known, found);
#else
  (void)k; (void)w; (void)z;
  return 0;
#endif
}

/* ---- the stages; each answers GR_DONE with z at its root, or why not ---- */

GR_COLD long gr_rescue_afresh(gr_task *k, gr_newton *n, const gr_way *w, double *z) {
  if (!gr_way_linearise(k, n, w, 0.0, w->from->z)) return GR_SINGULAR;
  const long orientation = gr_orientation(n);
  long status = gr_linearise_z(k, n, w->t, w->x, z, w->u);
  if (!status && gr_orientation(n) != orientation) status = GR_NEWTON;
  if (!status) status = gr_newton_iterate(k, n, w->t, w->x, z, w->u);
  return !status && (gr_orientation(n) != orientation || gr_is_beyond(k, w, z)) ? GR_NEWTON : status;
}

#if GR_HAS_SIDES
/* from the known root, in pieces that are oriented as its own */
GR_COLD long gr_rescue_across_bends(gr_task *k, gr_newton *n, const gr_way *w, double *z) {
  if (!gr_way_linearise(k, n, w, 0.0, w->from->z)) return GR_SINGULAR;
  const long orientation = gr_orientation(n);
  for (long i = 0; i < GR_NZ; i++) z[i] = w->from->z[i];
  const long status = gr_newton_damped(k, n, w->t, w->x, z, w->u, orientation);
  if (status) return status;
  return gr_orientation(n) == orientation ? GR_DONE : GR_NEWTON;
}
#endif

GR_COLD long gr_rescue_along(gr_task *k, gr_newton *n, const gr_way *w, double *z, long strides, double *share) {
  double dz[GR_LEN(GR_NZ)];
  long worst = 0;
  if (gr_follow(k, n, w, z, strides, share)) {
    for (long i = 0; i < GR_NZ; i++) dz[i] = z[i];
    if (!gr_newton_iterate(k, n, w->t, w->x, z, w->u)) return GR_DONE;
    for (long i = 0; i < GR_NZ; i++) z[i] = dz[i];
    return gr_fail(k, GR_BRANCH_ENDS, worst, *share);
  }
  /* the entry that would have to move most beyond the end */
  if (n->valid && gr_way_values(k, n, w, fmin(1.0, *share + 1e-6), z)) {
    gr_correction_z(k, n, dz);
    for (long i = 0; i < GR_NZ; i++) dz[i] /= k->atol[GR_NX + i] + k->rtol * fabs(z[i]);
    for (long i = 1; i < GR_NZ; i++)
      if (fabs(dz[i]) > fabs(dz[worst])) worst = i;
  }
  return gr_fail(k, GR_BRANCH_ENDS, worst, *share);
}

/* from the prediction, from the end of the way, and from points beyond it in the direction in which z has moved */
GR_COLD long gr_rescue_damped(gr_task *k, gr_newton *n, const gr_way *w, double *z, const double *ended) {
  double trial[GR_LEN(GR_NZ)], apart[GR_LEN(GR_NZ)];
  const double beyond[4] = {0.0, 1.0, 4.0, 16.0};
  long found = 0;
  for (long start = 0; start < 5; start++) {
    for (long i = 0; i < GR_NZ; i++)
      trial[i] = start == 0 ? z[i] : ended[i] + beyond[start - 1] * (ended[i] - w->from->z[i]);
    if (gr_newton_damped(k, n, w->t, w->x, trial, w->u, 0)) continue;
    for (long i = 0; i < GR_NZ; i++) apart[i] = found ? trial[i] - z[i] : 0.0;
    if (gr_size_z(k, trial, apart) > fmax(10.0, gr_decides_nothing(k))) return GR_NEWTON;
    for (long i = 0; i < GR_NZ; i++) z[i] = trial[i];
    found++;
  }
  return found < 2 ? GR_NEWTON : gr_newton_iterate(k, n, w->t, w->x, z, w->u);
}

GR_COLD long gr_rescue(gr_task *k, gr_newton *n, const gr_anchor *from, double t, const double *x, double *z,
                       const double *u) {
  double guess[GR_LEN(GR_NZ)], ended[GR_LEN(GR_NZ)], share = 0.0;
  double u_from[GR_LEN(GR_NU)], lift[GR_LEN(GR_NZ)];
  gr_way w = gr_way_from(k, from, t, x, u, u_from);
  w.lift = lift;
  for (long i = 0; i < GR_NZ; i++) guess[i] = z[i], lift[i] = 0.0;
  if (!gr_rescue_afresh(k, n, &w, z)) return GR_DONE;
#if GR_HAS_SIDES
  for (long i = 0; i < GR_NZ; i++) z[i] = guess[i];
  if (!gr_rescue_across_bends(k, n, &w, z)) return GR_DONE;
#endif

  const long may_shorten = !(k->fixed_step > 0.0) && t != from->t;
  long status = gr_rescue_along(k, n, &w, z, may_shorten ? GR_STRIDES_IN_STEP : GR_STRIDES, &share);
  if (!status || may_shorten) return status;
  const long where = k->where, moves = t != from->t;
  for (long i = 0; i < GR_NZ; i++) ended[i] = z[i];

  w.fades = 1;
  if (gr_way_values(k, n, &w, 1.0, from->z)) {
    double faded;
    for (long i = 0; i < GR_NZ; i++) w.lift[i] = n->f[GR_NX + i];
    if (!gr_rescue_along(k, n, &w, z, GR_STRIDES, &faded)) return GR_DONE;
    for (long i = 0; i < GR_NZ; i++) z[i] = from->z[i];
    if (moves && k->ns > 0) return gr_fail(k, GR_BRANCH_ENDS, where, share); /* the instant of the jump moves */
    if (!gr_fold(k, n, t, x, z, u, 0)) {
      if (moves && (k->snaps == 0 || k->snapped_at != k->t)) k->snaps++; /* several stages of one step see it */
      if (moves) k->snapped_at = k->t;
      return GR_DONE;
    }
  }
  for (long i = 0; i < GR_NZ; i++) z[i] = guess[i];
  if (!gr_rescue_damped(k, n, &w, z, ended)) return GR_DONE;
  return gr_fail(k, GR_BRANCH_ENDS, where, share);
}

/* Which pieces: z is solved for the pieces it comes with, and those that do not agree with the solution change, all at
 * once or, where that goes in circles, the first one only (Murty's rule, which ends wherever the solution is unique). */
GR_COLD long gr_search_pieces(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u) {
  for (long trial = 0; GR_NM > 0 && trial < GR_PIECE_TRIALS; trial++) {
    long differ = 0;
    for (long i = GR_NZ - GR_NM; i < GR_NZ; i++) z[i] = floor(z[i] + 0.5);
    n->held = 1;
    n->valid = 0;
    const long status = gr_newton_damped(k, n, t, x, z, u, 0);
    n->held = 0;
    if (status) return status;
    gr_F(t, x, z, u, k->p, n->f);
    k->evaluations++;
    for (long i = GR_NZ - GR_NM; i < GR_NZ; i++) {
      if (!(fabs(n->f[GR_NX + i]) > 0.5) || (differ && trial >= GR_ALL_AT_ONCE)) continue;
      z[i] -= n->f[GR_NX + i];
      differ = 1;
    }
    if (!differ) return GR_DONE;
  }
  return gr_unsolved(k, n);
}

/* 1 where z is a root that continues `from`: found beyond a switch, it is the one to which the walk over pieces leads; n->f is
 * F there */
GR_FN long gr_is_continued(gr_task *k, gr_newton *n, const gr_anchor *from, double t, const double *x, double *z,
                           const double *u) {
#if GR_HAS_SIDES
  double walked[GR_LEN(GR_NZ)], u_from[GR_LEN(GR_NU)];
  if (!from || GR_NM > 0) return 1;
  const gr_way w = gr_way_from(k, from, t, x, u, u_from);
  if (!gr_is_beyond(k, &w, z)) return 1;
  if (gr_rescue_across_bends(k, n, &w, walked)) return 0;
  for (long i = 0; i < GR_NZ; i++) z[i] = walked[i];
  return 1;
#else
  (void)k; (void)n; (void)from; (void)t; (void)x; (void)z; (void)u;
  return 1;
#endif
}

#endif

#if GR_HAS_Z
/* how far beyond the end of a branch the equations are looked at: so far that rounding does not decide what is missing */
GR_FN double gr_beyond(const gr_task *k, double h) { return fmax(h, GR_FOLD_BEYOND * (k->t1 - k->t0)); }

/* A step from here could not be taken, perhaps because the branch of z ends: how it is oriented, as long as z is not so
 * close to the end that rounding decides on which side of a bend it is. */
GR_COLD void gr_note_branch(gr_task *k, gr_newton *n, const double *x, const double *z, const double *u) {
  if (k->branch != 0 && k->t - k->branch_at <= GR_FOLD_NEAR * (k->t1 - k->t0)) return;
  const long where = k->where;
  const double amount = k->amount;
  k->branch = gr_linearise_z(k, n, k->t, x, z, u) ? 0 : gr_orientation(n);
  k->branch_at = k->t;
  k->jacobians--;
  k->factorizations--;
  k->where = where;
  k->amount = amount;
}

/* Where the branch of z ends just before this point: the root at which it goes on. Derivatives of that instant are not
 * known, and pieces have no curve. */
GR_COLD long gr_snap(gr_task *k, gr_newton *n, double t, const double *x, double *z, const double *u) {
  if (k->ns > 0 || GR_NM > 0) return GR_BRANCH_ENDS;
  if (k->snaps > 0 && k->t - k->snapped_at <= 1e-12 * (k->t1 - k->t0)) return GR_BRANCH_ENDS; /* no way leads on */
  const long status = gr_fold(k, n, t, x, z, u, k->branch);
  n->valid = 0;
  k->branch = 0;
  k->snapped_at = k->t;
  if (!status) k->snaps++;
  return status;
}
#endif

/* z and n->f = F(t, x, z, u, p) at the root that continues `from`; z comes in as its prediction */
GR_FN long gr_solve_implicit(gr_task *k, gr_newton *n, const gr_anchor *from, double t, const double *x, double *z,
                             const double *u) {
#if GR_HAS_Z
  double guess[GR_LEN(GR_NZ)], reached[GR_LEN(GR_NZ)];
  for (long i = 0; i < GR_NZ; i++) guess[i] = z[i];
  const long plain = gr_newton_iterate(k, n, t, x, z, u);
  if (!plain && gr_is_continued(k, n, from, t, x, z, u)) return GR_DONE;
  const long where = k->where;
  const double amount = k->amount;
  for (long i = 0; i < GR_NZ; i++) reached[i] = z[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = guess[i];
  k->rescues++;
  if (GR_NM > 0) {
    if (!gr_search_pieces(k, n, t, x, z, u)) return GR_DONE;
    for (long i = 0; i < GR_NZ; i++) z[i] = guess[i];
  }
  const long status = from ? gr_rescue(k, n, from, t, x, z, u) : gr_newton_damped(k, n, t, x, z, u, 0);
  /* no root that continues: is what Newton's method left open rounding? Where pieces end, the end is one. */
  if (status && plain == GR_NEWTON && !n->held && (status != GR_BRANCH_ENDS || !GR_HAS_SIDES)) {
    if (gr_is_rounding(k, n, t, x, reached, u) && !gr_left_its_piece(k, n, t, x, reached, u) &&
        gr_is_continued(k, n, from, t, x, reached, u)) {
      for (long i = 0; i < GR_NZ; i++) z[i] = reached[i];
      return GR_DONE;
    }
  }
  if (status) n->valid = 0;
  return !status || ((!plain || plain == GR_NEWTON) && GR_NM == 0) ? status : gr_fail(k, plain, where, amount);
#else
  (void)z; (void)from;
  gr_F(t, x, z, u, k->p, n->f);
  k->evaluations++;
  long bad = gr_not_finite(GR_NX, n->f);
  return bad >= 0 ? gr_fail(k, GR_NOT_FINITE, bad, n->f[bad]) : GR_DONE;
#endif
}

#endif
