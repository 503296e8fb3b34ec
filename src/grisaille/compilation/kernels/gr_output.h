/* Writes rows of answers: y = O(t, x, z, u, p) and sy = dO/d[x; z] [sx; sz] + dO/dp dp at a requested time.
 *
 * gr_emit takes a point of an interpolant, moves it onto the constraints first and solves for z, so that a row between
 * two steps obeys the equations as well as one at a step's end. gr_write_row takes a point that already obeys them.
 */
#ifndef GR_OUTPUT_H
#define GR_OUTPUT_H

#include "gr_project.h"
#include "gr_signal.h"
#include "gr_task.h"

/* dF/dp, dO/d[x; z], dO/dp */
#if GR_SENSITIVE
#define GR_OUTPUT_WORK (GR_FP_SIZE + GR_OJ_SIZE + GR_OP_SIZE + GR_NE * GR_NP + 1)
#else
#define GR_OUTPUT_WORK 1
#endif

#if GR_SENSITIVE
/* sz at a point where z solves its equations */
GR_FN long gr_complete_sensitivity(gr_task *k, gr_newton *n, double t, const double *x, const double *z,
                                   const double *u, const double *sx, double *sz, double *fp) {
#if GR_HAS_Z
  long status = gr_linearise_z(k, n, t, x, z, u);
  if (status) return status;
  gr_FP(t, x, z, u, k->p, fp);
  gr_sensitivity_z(k, n, fp, sx, sz);
#else
  (void)k; (void)n; (void)t; (void)x; (void)z; (void)u; (void)sx; (void)sz; (void)fp;
#endif
  return GR_DONE;
}

GR_FN void gr_write_sensitivity(gr_task *k, double t, const double *x, const double *z, const double *u,
                                const double *sx, const double *sz, double *scratch) {
  double *oj = scratch + GR_FP_SIZE, *op = oj + GR_OJ_SIZE, *row = k->sy + k->written * k->ns * GR_NY;
  gr_OJ(t, x, z, u, k->p, oj);
  gr_OP(t, x, z, u, k->p, op);
  for (long d = 0; d < k->ns; d++, row += GR_NY) {
    GR_ALONG_P(OP, GR_NY, op, 0, GR_NY, k->dp + GR_NP * d, row);
    GR_ADD_TIMES(OJ, GR_NY, oj, 0, GR_NY, 0, GR_NX, sx + GR_NX * d, row);
    GR_ADD_TIMES(OJ, GR_NY, oj, 0, GR_NY, GR_NX, GR_NZ, sz + GR_NZ * d, row);
  }
}
#endif

/* the row of a consistent point; sz is completed here */
GR_FN long gr_write_row(gr_task *k, gr_newton *n, double t, const double *x, const double *z, const double *u,
                        const double *sx, double *sz, double *scratch) {
  gr_O(t, x, z, u, k->p, k->y + k->written * GR_NY);
#if GR_SENSITIVE
  if (k->ns > 0) {
    long status = gr_complete_sensitivity(k, n, t, x, z, u, sx, sz, scratch);
    if (status) return status;
    gr_write_sensitivity(k, t, x, z, u, sx, sz, scratch);
  }
#else
  (void)n; (void)sx; (void)sz; (void)scratch;
#endif
  k->written++;
  return GR_DONE;
}

/* the row of an interpolated point; x, z, sx, sz are moved onto the equations, z to the root that continues `from` */
GR_FN long gr_emit(gr_task *k, gr_newton *n, gr_projection *c, const gr_anchor *from, double t, double inside, double *x,
                   double *z, double *sx, double *sz, double *scratch) {
  double u[GR_LEN(GR_NU)];
  gr_signals(k, t, inside, u);
  long status = gr_project(k, c, t, x, z, u);
  if (status) return status;
#if GR_HAS_Z
  status = gr_solve_implicit(k, n, from, t, x, z, u);
  if (status) return status;
#else
  (void)from;
#endif
#if GR_SENSITIVE
  gr_project_sensitivity(k, c, t, x, z, u, sx);
#endif
  return gr_write_row(k, n, t, x, z, u, sx, sz, scratch);
}

/* the next requested time lies before `end` by more than rounding */
GR_FN long gr_row_before(const gr_task *k, double end) {
  return k->written < k->n_times && k->times[k->written] < end - gr_smallest_step(k, end);
}

/* the next requested time is `t` up to rounding */
GR_FN long gr_row_at(const gr_task *k, double t) {
  return k->written < k->n_times && k->times[k->written] <= t + gr_smallest_step(k, t);
}

#endif
