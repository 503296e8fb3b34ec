/* Draws paths of a linear process driven by white noise: from one grid point to the next, and between grid points by
 * the tree of its own Gaussian bridge. Twin of disturbance/paths.py and disturbance/bridge.py, operation for operation.
 *
 * Matrices are computed beforehand, once for each parameter value and length of cell; row by row (row-major).
 */
#ifndef GR_BRIDGE_H
#define GR_BRIDGE_H

#include "gr_normal.h"

typedef struct {
  long n;                          /* states */
  long depth;                      /* levels of halving, at most 31 */
  long degree;                     /* of the conditional mean inside a leaf */
  const double *transition;        /* (depth + 1) x n x n: F over intervals of each level, from the cell to the leaf */
  const double *gain;              /* depth x n x n */
  const double *root;              /* depth x n x n, lower triangular */
  const double *leaf_transition;   /* (degree + 1) x n x n: F(f h) in a leaf, coefficients from the constant up */
  const double *leaf_gain;         /* (degree + 1) x n x n */
} gr_bridge;

#define GR_BRIDGE_WORK(n) (5 * (n))

GR_FN double gr_row(long n, const double *row, const double *x) {
  double sum = row[0] * x[0];
  for (long j = 1; j < n; j++) sum += row[j] * x[j];
  return sum;
}

/* y = F x + L z, the state at grid point `point` from the one before; z: n doubles of scratch; y is not x */
GR_FN void gr_process_step(long n, const double *F, const double *L, const gr_stream *stream, gr_u32 realization,
                           gr_u32 point, const double *x, double *y, double *z) {
  gr_normals(stream, realization, point, 0, n, z);
  for (long i = 0; i < n; i++) y[i] = gr_row(n, F + i * n, x) + gr_row(i + 1, L + i * n, z);
}

/* state at a fraction 0 <= f <= 1 of a cell with the states x_left, x_right at its ends; work: GR_BRIDGE_WORK(n) */
GR_FN void gr_bridge_state(const gr_bridge *b, const gr_stream *stream, gr_u32 realization, gr_u32 cell, double f,
                           const double *x_left, const double *x_right, double *x, double *work) {
  long n = b->n, level, i, k;
  double *left = work, *right = work + n, *middle = work + 2 * n, *z = work + 3 * n, *surprise = work + 4 * n, *swap;
  gr_u32 node = 1;
  for (i = 0; i < n; i++) {
    left[i] = x_left[i];
    right[i] = x_right[i];
  }
  for (level = 0; level < b->depth; level++) {
    const double *F = b->transition + level * n * n, *K = b->gain + level * n * n, *root = b->root + level * n * n;
    gr_normals(stream, realization, cell, node, n, z);
    for (i = 0; i < n; i++) surprise[i] = right[i] - gr_row(n, F + i * n, left);
    F += n * n;
    for (i = 0; i < n; i++)
      middle[i] = gr_row(n, F + i * n, left) + gr_row(n, K + i * n, surprise) + gr_row(i + 1, root + i * n, z);
    if (f >= 0.5) {
      swap = left, left = middle, middle = swap;
      f = 2 * f - 1;
      node = 2 * node + 1;
    } else {
      swap = right, right = middle, middle = swap;
      f = 2 * f;
      node = 2 * node;
    }
  }
  for (i = 0; i < n; i++) {
    surprise[i] = right[i] - gr_row(n, b->transition + (b->depth * n + i) * n, left);
    x[i] = 0;
  }
  for (k = b->degree; k >= 0; k--) {
    const double *F = b->leaf_transition + k * n * n, *K = b->leaf_gain + k * n * n;
    for (i = 0; i < n; i++) x[i] = x[i] * f + (gr_row(n, F + i * n, left) + gr_row(n, K + i * n, surprise));
  }
}

#endif
