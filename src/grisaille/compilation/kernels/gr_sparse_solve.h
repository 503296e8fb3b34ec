/* Factors and solves sparse equations, by columns (gr_sparse_lu.h) or by panels (gr_sparse_panels_lu.h), for entries of
 * GR_PER doubles: included once for real and once for complex numbers, hence no guard.
 */

/* f->a in the order of the last time; 0 where a pivot is too small for that */
GR_FN long GR_OF(factor_kept)(const gr_pattern *m, const gr_factors *f) {
  if (f->ready[0] == GR_BY_COLUMNS) f->ready[0] = gr_panels_make(m, f, 1) ? GR_BY_PANELS : GR_BY_COLUMNS_ONLY;
  return f->ready[0] == GR_BY_PANELS ? GR_OF(panels_factor)(m, f, 0) : GR_OF(factor_again)(m, f);
}

/* f->a with the wanted pivots; 0 where they are not to be taken, or panels are not worth it */
GR_FN long GR_OF(factor_wanted)(const gr_pattern *m, const gr_factors *f) {
  if (!gr_panels_wanted(m, f) || !GR_OF(panels_factor)(m, f, 1)) return 0;
  f->ready[0] = GR_BY_PANELS;
  return 1;
}

/* f->a factored; answers 0, the refused column + 1, or GR_NO_ROOM */
GR_SOLVER long GR_OF(factor)(const gr_pattern *m, const gr_factors *f) {
  if (f->ready[0] ? GR_OF(factor_kept)(m, f) : GR_OF(factor_wanted)(m, f)) return 0;
  return GR_OF(factor_anew)(m, f);
}

#if GR_PER == 1
/* b becomes the solution of A x = b */
GR_SOLVER void gr_real_solve(const gr_pattern *m, const gr_factors *f, double *b) {
  for (long k = 0; k < m->n; k++) f->y[k] = b[f->row_at[k]];
  if (f->ready[0] == GR_BY_PANELS)
    gr_real_panels_substitute(m, f);
  else
    gr_real_substitute(m, f);
  for (long k = 0; k < m->n; k++) b[m->order[k]] = f->y[k];
}

/* b becomes the solution of A'x = b */
GR_SOLVER void gr_real_solve_transposed(const gr_pattern *m, const gr_factors *f, double *b) {
  for (long k = 0; k < m->n; k++) f->y[k] = b[m->order[k]];
  if (f->ready[0] == GR_BY_PANELS)
    gr_real_panels_substitute_transposed(m, f);
  else
    gr_real_substitute_transposed(m, f);
  for (long k = 0; k < m->n; k++) b[f->row_at[k]] = f->y[k];
}
#else
/* f->y = br + i bi, its k-th entry the one that `which` says; panels have all real parts before all imaginary ones */
GR_FN void gr_complex_load(const gr_pattern *m, const gr_factors *f, const int *which, const double *br, const double *bi) {
  const long apart = f->ready[0] == GR_BY_PANELS, step = apart ? 1 : 2, im = apart ? m->n : 1;
  for (long k = 0; k < m->n; k++) {
    f->y[step * k] = br[which[k]];
    f->y[step * k + im] = bi[which[k]];
  }
}

GR_FN void gr_complex_unload(const gr_pattern *m, const gr_factors *f, const int *which, double *br, double *bi) {
  const long apart = f->ready[0] == GR_BY_PANELS, step = apart ? 1 : 2, im = apart ? m->n : 1;
  for (long k = 0; k < m->n; k++) {
    br[which[k]] = f->y[step * k];
    bi[which[k]] = f->y[step * k + im];
  }
}

/* br + i bi becomes the solution */
GR_SOLVER void gr_complex_solve(const gr_pattern *m, const gr_factors *f, double *br, double *bi) {
  gr_complex_load(m, f, f->row_at, br, bi);
  if (f->ready[0] == GR_BY_PANELS)
    gr_complex_panels_substitute(m, f);
  else
    gr_complex_substitute(m, f);
  gr_complex_unload(m, f, m->order, br, bi);
}

/* the same with the transpose */
GR_SOLVER void gr_complex_solve_transposed(const gr_pattern *m, const gr_factors *f, double *br, double *bi) {
  gr_complex_load(m, f, m->order, br, bi);
  if (f->ready[0] == GR_BY_PANELS)
    gr_complex_panels_substitute_transposed(m, f);
  else
    gr_complex_substitute_transposed(m, f);
  gr_complex_unload(m, f, f->row_at, br, bi);
}
#endif
