/* Describes an embedded explicit Runge-Kutta pair with its continuous extension.
 *
 *   k_i = f(t + c_i h, x + h sum_j a_ij k_j),   x_new = x + h sum_j a_mj k_j,   m = `last`, k_m = f(t + h, x_new)
 *
 * a: rows 1, 2, ... of the strict lower triangle, row i with i entries; row m holds the weights of the solution.
 * Rows beyond m serve the continuous extension only. With w = the weights of row m,
 *
 *   x(t + s h) = x + h s (w.k + (1-s)(k_0 - w.k + s(2 w.k - k_0 - k_m + (1-s)(d_0.k + s(d_1.k + (1-s)(d_2.k + s d_3.k))))))
 *
 * near: the two earlier stages through which a line predicts what is algebraic at stage i; both the same where there is
 * only one. `stiff`: |h lambda| beyond which the stability region ends (Hairer and Wanner, Solving Ordinary Differential
 * Equations II, section IV.2). The numbers stand in compilation/schemes; tableau_source.py prints those of a scheme, with
 * GR_ROWS, the most rows of any, GR_LOW_ORDER and GR_HIGH_ORDER, the same where there is one pair, and
 *
 *   gr_tableau gr_pair(long order)
 */
#ifndef GR_TABLEAU_H
#define GR_TABLEAU_H

#include "gr_task.h"

#ifdef __CUDACC__
#define GR_TABLE static __constant__ const double
#else
#define GR_TABLE static const double
#endif

typedef struct {
  long order, last, rows, levels; /* rows: stages with those of the extension; levels: rows of d */
  const double *a, *c, *e, *e3, *d; /* e3: second error estimate or NULL */
  const double *near;               /* pairs of stage numbers */
  double beta, grow, shrink, stiff;
} gr_tableau;

/* row i of the triangle */
#define GR_ROW(a, i) ((a) + (i) * ((i) - 1) / 2)

#endif
