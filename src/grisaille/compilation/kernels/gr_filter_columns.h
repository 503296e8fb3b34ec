/* Solves with the innovations' covariance and forms polynomials of the drift, for columns of GR_COLUMN: included once for
 * numbers and once for lanes, hence no guard.
 */

/* X <- S^-1 X for a matrix of GR_NY rows */
GR_FN void GR_COLUMNS(solve_symmetric)(const double *S, GR_COLUMN *X, int columns) {
  int i, j, k;
  for (i = 0; i < GR_NY; i++)
    for (k = 0; k < i; k++)
      for (j = 0; j < columns; j++) X[i * columns + j] -= S[i * GR_NY + k] * X[k * columns + j];
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < columns; j++) X[i * columns + j] /= S[i * GR_NY + i];
  for (i = GR_NY - 1; i >= 0; i--)
    for (k = i + 1; k < GR_NY; k++)
      for (j = 0; j < columns; j++) X[i * columns + j] -= S[k * GR_NY + i] * X[k * columns + j];
}

#if defined(GR_NG) && GR_NG == 3
/* the drift as a polynomial of time over a step, through its values at the beginning, the middle and the end */
GR_FN void GR_COLUMNS(forcing)(const GR_COLUMN *begin, const GR_COLUMN *middle, const GR_COLUMN *end,
                                  GR_COLUMN *G) {
  int i;
  for (i = 0; i < GR_NM; i++) {
    G[i * GR_NG] = begin[i];
    G[i * GR_NG + 1] = 4 * middle[i] - 3 * begin[i] - end[i];
    G[i * GR_NG + 2] = 2 * (begin[i] - 2 * middle[i] + end[i]);
  }
}
#endif

#undef GR_COLUMN
#undef GR_COLUMNS
