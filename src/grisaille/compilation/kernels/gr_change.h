/* Solves for z where its equations change at once: relations switch, discrete variables are set, signals jump.
 *
 * What z was is no prediction then: it may lie nearer to another root of the new equations than to the one that continues
 * it, and plain Newton finds that. The root that is meant is the one to which z comes while the equations change from the
 * old ones to the new ones, F(z) = (1 - s) F_old(z) + s F_new(z), as they would if the jump took a moment. Equations that
 * are linear in z have one root, which the first correction finds; the others are followed (gr_rescue.h). Where that way
 * ends, plain Newton's root stays, and counts as a jump to another solution if det dF/dz says that it is one.
 *
 * Devices take plain Newton's root.
 */
#ifndef GR_CHANGE_H
#define GR_CHANGE_H

#include "gr_rescue.h"

#if GR_HAS_Z

#define GR_OF_ONE_ROOT 2 /* Newton's corrections of linear equations, the one that is nothing included */
#define GR_STILL_HOLDS 1e-2 /* of z: what the old equations may be off by at the old z */

/* 1 where both stand at the same; slack of modes, which no equation contains, is left out */
GR_FN long gr_are_same_equations(const gr_equations *a, const gr_equations *b) {
  for (long i = 0; i < GR_NX; i++)
    if (a->x[i] != b->x[i]) return 0;
  for (long i = 0; i < GR_NU; i++)
    if (a->u[i] != b->u[i]) return 0;
  for (long i = 0; i < GR_NP - GR_NE; i++)
    if (a->p[i] != b->p[i]) return 0;
  return 1;
}

/* z at the root that continues `before`, the root of the old equations, instead of the one that plain Newton has found; n->f
 * has to be made again */
GR_COLD void gr_follow_change(gr_task *k, gr_newton *n, const gr_equations *old, double t, const double *x, double *z,
                              const double *u, const double *before) {
#if GR_HAS_OTHER_J
  const gr_anchor from = {t, x, before, 0};
  const gr_way w = {&from, t, x, u, u, 0, 0, old};
  double found[GR_LEN(GR_NZ)], apart[GR_LEN(GR_NZ)], share = 0.0;
  const double amount = k->amount;
  const long where = k->where;
  long differs = 0;
  const long branch = gr_linearise_z(k, n, t, x, z, u) ? 0 : gr_orientation(n);
  if (gr_way_values(k, n, &w, 0.0, before) && gr_way_linearise(k, n, &w, 0.0, before)) {
    const long orientation = gr_orientation(n);
    gr_correction_z(k, n, found);
    if (gr_size_z(k, before, found) <= GR_STILL_HOLDS / k->rtol) {
      if (!gr_rescue_along(k, n, &w, found, GR_STRIDES, &share)) {
        for (long i = 0; i < GR_NZ; i++) apart[i] = found[i] - z[i];
        differs = gr_size_z(k, z, apart) > fmax(10.0, gr_decides_nothing(k));
      } else if (branch && orientation != branch) {
        k->snaps++;
      }
    }
  }
  for (long i = 0; i < GR_NZ && differs; i++) z[i] = found[i];
  n->valid = 0;
  k->where = where;
  k->amount = amount;
#else
  (void)k; (void)n; (void)old; (void)t; (void)x; (void)z; (void)u; (void)before;
#endif
}

#endif

/* z and n->f where the equations have changed from the old ones; z comes in as their root. `from`: as for gr_solve_implicit */
GR_COLD long gr_solve_changed(gr_task *k, gr_newton *n, const gr_anchor *from, const gr_equations *old, double t,
                              const double *x, double *z, const double *u) {
#if GR_HAS_Z
  const gr_equations now = {x, u, k->p};
  if (GR_NM > 0 || gr_are_same_equations(old, &now)) return gr_solve_implicit(k, n, from, t, x, z, u);
  double before[GR_LEN(GR_NZ)];
  const long iterations = k->newton_iterations;
  for (long i = 0; i < GR_NZ; i++) before[i] = z[i];
  const long status = gr_solve_implicit(k, n, from, t, x, z, u);
  if (status || k->newton_iterations - iterations <= GR_OF_ONE_ROOT) return status;
  gr_follow_change(k, n, old, t, x, z, u, before);
  return gr_newton_iterate(k, n, t, x, z, u);
#else
  (void)old;
  return gr_solve_implicit(k, n, from, t, x, z, u);
#endif
}

#endif
