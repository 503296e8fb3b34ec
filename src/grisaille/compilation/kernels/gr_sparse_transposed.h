/* Solutions with the transposes of factored sparse matrices (gr_sparse.h), for entries of GR_PER doubles: included once for
 * real and once for complex numbers, hence no guard.
 */

/* f->y, by positions: the right-hand side becomes the solution; blocks one by one, the first first */
GR_FN void GR_OF(substitute_transposed)(const gr_pattern *m, const gr_factors *f) {
  double *GR_RESTRICT y = f->y;
  for (long k = 0; k < m->n;) {
    const long first = k;
    for (; k < m->n && m->block[k] == first; k++) {
      double value[GR_PER];
      for (int e = f->ubegin[k]; e < f->ubegin[k + 1]; e++)
        GR_OF(subtract)(y + GR_PER * k, f->u + GR_PER * e, y + GR_PER * f->urow[e]);
      GR_OF(product)(y + GR_PER * k, f->inverse + GR_PER * k, value);
      GR_OF(copy)(y + GR_PER * k, value);
    }
    for (long j = k - 1; j >= first; j--)
      for (int e = f->lbegin[j]; e < f->lbegin[j + 1]; e++)
        GR_OF(subtract)(y + GR_PER * j, f->l + GR_PER * e, y + GR_PER * f->lrow[e]);
  }
}

#if GR_PER == 1
/* b becomes the solution of A'x = b */
GR_FN void gr_real_solve_transposed(const gr_pattern *m, const gr_factors *f, double *b) {
  for (long k = 0; k < m->n; k++) f->y[k] = b[m->order[k]];
  gr_real_substitute_transposed(m, f);
  for (long k = 0; k < m->n; k++) b[f->row_at[k]] = f->y[k];
}
#else
GR_FN void gr_complex_solve_transposed(const gr_pattern *m, const gr_factors *f, double *br, double *bi) {
  for (long k = 0; k < m->n; k++) {
    f->y[2 * k] = br[m->order[k]];
    f->y[2 * k + 1] = bi[m->order[k]];
  }
  gr_complex_substitute_transposed(m, f);
  for (long k = 0; k < m->n; k++) {
    br[f->row_at[k]] = f->y[2 * k];
    bi[f->row_at[k]] = f->y[2 * k + 1];
  }
}
#endif
