/* Factors A = Q R of a tall sparse matrix, front by front: the gradients of hidden constraints in units of nominal
 * values, A = W^(1/2) Cx', rows are states, columns constraints.
 *
 * Which constraints and states belong to which front is known when the model is built (compilation/sparse/fronts.py). A
 * front holds the rows of its own states and what its children pass on; reflections, each from the largest entry of its
 * column so that states of very different weights keep their digits (Cox, Higham, BIT 38, 1998), leave its rows of R,
 * and at most as many rows as it has columns of others are passed on. A column that depends on those eliminated before
 * it, by GR_DEPENDENT, is left out: no row of R is made of it, and no direction lost for those after it.
 *
 * The arrays gr_Q_... are the fields of fronts.py; GR_Q_FRONTS fronts, GR_Q_SIZE entries of all their matrices,
 * GR_Q_COLUMNS of all their columns, GR_Q_TALLEST rows of the highest one.
 */
#ifndef GR_SPARSE_QR_H
#define GR_SPARSE_QR_H

#include "gr_sparse.h"
#include "gr_task.h"

#if GR_SPARSE && GR_HAS_C

typedef struct {
  double *a;                 /* matrices of the fronts, by columns: R above, vectors of reflections below */
  double *tau;               /* of the reflection of each column, 0 without one */
  double *passed;            /* a number for each row that a front passes on */
  double *rows;              /* a number for each row of one front */
  int *row;                  /* where the reflection of each column begins, -1 without one */
  int *swapped;              /* the row that was exchanged with it */
  int *taken, *high, *given; /* rows of each front: of its own constraints, in all, passed on */
} gr_orthogonal;

#define GR_ORTHOGONAL_WORK \
  (GR_Q_SIZE + 2 * GR_Q_COLUMNS + GR_Q_TALLEST + 2 * (GR_Q_COLUMNS / 2 + 1) + 3 * (GR_Q_FRONTS / 2 + 1))

GR_FN gr_orthogonal gr_orthogonal_in(double *work) {
  gr_orthogonal q;
  long at = 0;
  q.a = gr_take_doubles(work, &at, GR_Q_SIZE);
  q.tau = gr_take_doubles(work, &at, GR_Q_COLUMNS);
  q.passed = gr_take_doubles(work, &at, GR_Q_COLUMNS);
  q.rows = gr_take_doubles(work, &at, GR_Q_TALLEST);
  q.row = gr_take_ints(work, &at, GR_Q_COLUMNS);
  q.swapped = gr_take_ints(work, &at, GR_Q_COLUMNS);
  q.taken = gr_take_ints(work, &at, GR_Q_FRONTS);
  q.high = gr_take_ints(work, &at, GR_Q_FRONTS);
  q.given = gr_take_ints(work, &at, GR_Q_FRONTS);
  return q;
}

GR_FN long gr_front_width(long f) { return gr_Q_column_begin[f + 1] - gr_Q_column_begin[f]; }

/* the rows of front f, from its states and its children */
GR_FN void gr_front_gather(const gr_orthogonal *q, long f, const double *unit, const double *cj) {
  const long height = gr_Q_height[f], width = gr_front_width(f);
  double *a = q->a + gr_Q_at[f];
  int m = 0;
  for (long i = 0; i < height * width; i++) a[i] = 0.0;
  for (int s = gr_Q_state_begin[f]; s < gr_Q_state_begin[f + 1]; s++, m++) {
    const int i = gr_Q_state[s];
    for (int e = gr_CJ_begin[i]; e < gr_CJ_begin[i + 1]; e++) a[m + height * gr_Q_place[e]] = unit[i] * cj[e];
  }
  for (int s = gr_Q_child_begin[f]; s < gr_Q_child_begin[f + 1]; s++) {
    const int child = gr_Q_child[s], *up = gr_Q_up + gr_Q_column_begin[child];
    const long high = gr_Q_height[child], own = gr_Q_own[child];
    for (long j = own; j < gr_front_width(child); j++) {
      const double *from = q->a + gr_Q_at[child] + q->taken[child] + high * j;
      double *to = a + m + height * up[j];
      /* below the diagonal of what was reflected lie the vectors of reflections */
      const long end = q->row[gr_Q_column_begin[child] + j] >= 0 ? q->row[gr_Q_column_begin[child] + j] - q->taken[child] + 1
                                                                : q->given[child];
      for (long i = 0; i < end; i++) to[i] = from[i];
    }
    m += q->given[child];
  }
  q->high[f] = m;
}

/* Column j from row r on becomes a multiple of the first unit vector, if it is longer than `least`, squared; those after it
 * are reflected alike. 1 where it is. */
GR_FN long gr_front_reflect(const gr_orthogonal *q, long f, long j, long r, double least) {
  const long height = gr_Q_height[f], width = gr_front_width(f), m = q->high[f], at = gr_Q_column_begin[f] + j;
  double *a = q->a + gr_Q_at[f], *v = a + height * j, length = 0.0;
  long p = r;
  for (long i = r; i < m; i++) {
    length += v[i] * v[i];
    if (fabs(v[i]) > fabs(v[p])) p = i;
  }
  q->tau[at] = 0.0;
  q->row[at] = -1;
  if (!(length > least)) return 0;
  for (long c = j; c < width; c++) {
    const double kept = a[r + height * c];
    a[r + height * c] = a[p + height * c];
    a[p + height * c] = kept;
  }
  const double to = v[r] > 0.0 ? -sqrt(length) : sqrt(length), scale = 1.0 / (v[r] - to), tau = (to - v[r]) / to;
  for (long i = r + 1; i < m; i++) v[i] *= scale;
  v[r] = to;
  for (long c = j + 1; c < width; c++) {
    double *x = a + height * c, along = x[r];
    for (long i = r + 1; i < m; i++) along += v[i] * x[i];
    along *= tau;
    x[r] -= along;
    for (long i = r + 1; i < m; i++) x[i] -= along * v[i];
  }
  q->tau[at] = tau;
  q->row[at] = (int)r;
  q->swapped[at] = (int)p;
  return 1;
}

/* Q and R of W^(1/2) Cx', unit = W^(1/2); gradient: squared lengths of its columns */
GR_APART void gr_sparse_orthogonalise(const gr_orthogonal *q, const double *unit, const double *cj, const double *gradient) {
  for (long f = 0; f < GR_Q_FRONTS; f++) {
    const long width = gr_front_width(f), own = gr_Q_own[f];
    const int *column = gr_Q_column + gr_Q_column_begin[f];
    long r = 0;
    gr_front_gather(q, f, unit, cj);
    for (long j = 0; j < own; j++) r += gr_front_reflect(q, f, j, r, GR_DEPENDENT * gradient[column[j]]);
    q->taken[f] = (int)r;
    long end = q->high[f];
    const long compressed = end - r > width - own;
    for (long j = own; j < width; j++) {
      q->tau[gr_Q_column_begin[f] + j] = 0.0;
      q->row[gr_Q_column_begin[f] + j] = -1;
      if (compressed && r < end) r += gr_front_reflect(q, f, j, r, 0.0);
    }
    q->given[f] = (int)((compressed ? r : end) - q->taken[f]);
  }
}

/* y = R^-T c, 0 for dependent constraints; c is overwritten */
GR_FN void gr_sparse_forward(const gr_orthogonal *q, double *c, double *y) {
  for (long f = 0; f < GR_Q_FRONTS; f++) {
    const long height = gr_Q_height[f], begin = gr_Q_column_begin[f], taken = q->taken[f];
    const int *column = gr_Q_column + begin;
    const double *a = q->a + gr_Q_at[f];
    for (long j = 0; j < gr_front_width(f); j++) {
      const long own = j < gr_Q_own[f], r = own ? q->row[begin + j] : taken;
      double rest = c[column[j]];
      if (own) y[column[j]] = 0.0;
      if (r < 0) continue;
      for (long i = 0; i < r; i++) rest -= a[i + height * j] * q->rows[i];
      if (own)
        y[column[j]] = q->rows[r] = rest / a[r + height * j];
      else
        c[column[j]] = rest;
    }
  }
}

/* l = R^-1 y, 0 for dependent constraints; both may be the same */
GR_FN void gr_sparse_back(const gr_orthogonal *q, const double *y, double *l) {
  for (long f = GR_Q_FRONTS - 1; f >= 0; f--) {
    const long height = gr_Q_height[f], begin = gr_Q_column_begin[f], own = gr_Q_own[f];
    const int *column = gr_Q_column + begin;
    const double *a = q->a + gr_Q_at[f];
    for (long j = 0; j < own; j++)
      if (q->row[begin + j] >= 0) q->rows[q->row[begin + j]] = y[column[j]];
    for (long j = gr_front_width(f) - 1; j >= 0; j--) {
      const long r = j < own ? q->row[begin + j] : q->taken[f];
      if (j < own) l[column[j]] = r < 0 ? 0.0 : q->rows[r] / a[r + height * j];
      for (long i = 0; i < r; i++) q->rows[i] -= a[i + height * j] * l[column[j]];
    }
  }
}

/* x = Q y, y by constraints */
GR_FN void gr_sparse_spread(const gr_orthogonal *q, const double *y, double *x) {
  double *t = q->rows;
  for (long i = 0; i < GR_NX; i++) x[i] = 0.0;
  for (long f = GR_Q_FRONTS - 1; f >= 0; f--) {
    const long height = gr_Q_height[f], begin = gr_Q_column_begin[f], m = q->high[f];
    for (long i = 0; i < m; i++) t[i] = 0.0;
    for (long j = 0; j < gr_Q_own[f]; j++)
      if (q->row[begin + j] >= 0) t[q->row[begin + j]] = y[gr_Q_column[begin + j]];
    for (long i = 0; i < q->given[f]; i++) t[q->taken[f] + i] = q->passed[begin + i];
    for (long j = gr_front_width(f) - 1; j >= 0; j--) {
      const double *v = q->a + gr_Q_at[f] + height * j;
      const long r = q->row[begin + j], p = q->swapped[begin + j];
      if (r < 0) continue;
      double along = t[r];
      for (long i = r + 1; i < m; i++) along += v[i] * t[i];
      along *= q->tau[begin + j];
      t[r] -= along;
      for (long i = r + 1; i < m; i++) t[i] -= along * v[i];
      along = t[r];
      t[r] = t[p];
      t[p] = along;
    }
    for (int s = gr_Q_state_begin[f]; s < gr_Q_state_begin[f + 1]; s++) x[gr_Q_state[s]] = *t++;
    for (int s = gr_Q_child_begin[f]; s < gr_Q_child_begin[f + 1]; s++) {
      const int child = gr_Q_child[s];
      for (long i = 0; i < q->given[child]; i++) q->passed[gr_Q_column_begin[child] + i] = *t++;
    }
    t = q->rows;
  }
}

/* y = Q'x, y by constraints, 0 for dependent ones */
GR_FN void gr_sparse_collect(const gr_orthogonal *q, const double *x, double *y) {
  double *t = q->rows;
  for (long f = 0; f < GR_Q_FRONTS; f++) {
    const long height = gr_Q_height[f], begin = gr_Q_column_begin[f], m = q->high[f];
    long at = 0;
    for (int s = gr_Q_state_begin[f]; s < gr_Q_state_begin[f + 1]; s++) t[at++] = x[gr_Q_state[s]];
    for (int s = gr_Q_child_begin[f]; s < gr_Q_child_begin[f + 1]; s++) {
      const int child = gr_Q_child[s];
      for (long i = 0; i < q->given[child]; i++) t[at++] = q->passed[gr_Q_column_begin[child] + i];
    }
    for (long j = 0; j < gr_front_width(f); j++) {
      const double *v = q->a + gr_Q_at[f] + height * j;
      const long r = q->row[begin + j], p = q->swapped[begin + j];
      if (j < gr_Q_own[f]) y[gr_Q_column[begin + j]] = 0.0;
      if (r < 0) continue;
      double along = t[r];
      t[r] = t[p];
      t[p] = along;
      along = t[r];
      for (long i = r + 1; i < m; i++) along += v[i] * t[i];
      along *= q->tau[begin + j];
      t[r] -= along;
      for (long i = r + 1; i < m; i++) t[i] -= along * v[i];
      if (j < gr_Q_own[f]) y[gr_Q_column[begin + j]] = t[r];
    }
    for (long i = 0; i < q->given[f]; i++) q->passed[begin + i] = t[q->taken[f] + i];
  }
}

#endif
#endif
