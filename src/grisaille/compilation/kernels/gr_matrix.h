/* Holds the derivatives of a model as matrices: dense and column by column, or, with GR_SPARSE, their structural nonzeros
 * only.
 *
 * The generated file then defines for each X of J, CJ, FP, CP, OJ and OP the number GR_X_SIZE of entries and the arrays
 * gr_X_begin (first entry of each column, and their number) and gr_X_row (the row of each entry, rising in a column);
 * gr_X() writes the entries in that order. J holds the diagonal of the states in any case, gr_J_diagonal says where.
 */
#ifndef GR_MATRIX_H
#define GR_MATRIX_H

#include "gr_task.h"

#if GR_SPARSE

/* out += rows first .. first + rows - 1 of columns column .. column + columns - 1, times v */
GR_FN void gr_sparse_times(const int *begin, const int *row, const double *a, long first, long rows, long column,
                           long columns, const double *v, double *out) {
  for (long j = 0; j < columns; j++) {
    const double f = v[j];
    for (int e = begin[column + j]; e < begin[column + j + 1]; e++) {
      const long i = row[e] - first;
      if (i >= 0 && i < rows) out[i] += a[e] * f;
    }
  }
}

#define GR_ADD_TIMES(X, height, a, first, rows, column, columns, v, out) \
  gr_sparse_times(gr_##X##_begin, gr_##X##_row, a, first, rows, column, columns, v, out)

#else

#define GR_J_SIZE (GR_N * GR_N)
#define GR_FP_SIZE (GR_N * GR_NP)
#define GR_OJ_SIZE (GR_NY * GR_N)
#define GR_OP_SIZE (GR_NY * GR_NP)

GR_FN void gr_dense_times(long height, const double *a, long first, long rows, long column, long columns,
                          const double *v, double *out) {
  for (long j = 0; j < columns; j++) {
    const double f = v[j], *c = a + first + height * (column + j);
    for (long i = 0; i < rows; i++) out[i] += c[i] * f;
  }
}

#define GR_ADD_TIMES(X, height, a, first, rows, column, columns, v, out) \
  gr_dense_times(height, a, first, rows, column, columns, v, out)

#endif

/* out = rows first .. first + rows - 1 of X dp, for a matrix X with one column for each parameter */
#define GR_ALONG_P(X, height, a, first, rows, dp, out)                                     \
  do {                                                                                     \
    for (long i_ = 0; i_ < (rows); i_++) (out)[i_] = 0.0;                                  \
    for (long j_ = 0; j_ < GR_NP; j_++)                                                    \
      if ((dp)[j_] != 0.0) GR_ADD_TIMES(X, height, a, first, rows, j_, 1, (dp) + j_, out); \
  } while (0)

/* row of entry e of J */
GR_FN long gr_J_row_of(long e) {
#if GR_SPARSE
  return gr_J_row[e];
#else
  return e % GR_LEN(GR_N);
#endif
}

#endif
