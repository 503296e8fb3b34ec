/* Solves with the transposes of factored sparse matrices (gr_sparse_factors.h), for entries of GR_PER doubles: included
 * once for real and once for complex numbers, hence no guard.
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

/* y[k] less what the entries of other blocks in column k, those of A, make of it */
GR_FN void GR_OF(panel_between_transposed)(const gr_pattern *m, const gr_factors *f, long k, double *y) {
  const int c = m->order[k];
  for (int e = m->begin[c]; e < m->begin[c + 1]; e++)
    if (f->place[e] < m->block[k]) GR_OF(less)(y, m->n, k, f->place[e], f->a + GR_PER * (long)e, 1);
}

/* the same by panels */
GR_APART void GR_OF(panels_substitute_transposed)(const gr_pattern *m, const gr_factors *f) {
  const gr_panels p = gr_panels_in(f->panels, m->n, m->begin[m->n]);
  const long n = m->n;
  double *y = f->y;
  for (long begin = 0, end; begin < n; begin = end) {
    for (end = begin + 1; end < n && m->block[end] == begin;) end++;
    const long from = p.of[begin], to = p.of[end - 1];
    for (long k = begin; begin > 0 && k < end; k++) GR_OF(panel_between_transposed)(m, f, k, y);
    for (long s = from; s <= to; s++) {
      const gr_panel q = gr_panel_of(f, &p, s, GR_PER);
      double *v = y + q.first;
      for (long c = 0; c < q.w; c++) {
        for (long i = 0; i < c; i++) GR_OF(less)(v, n, c, i, q.l + i + c * q.ld, q.lim);
        GR_OF(scale)(v, n, c, f->inverse + GR_PER * (q.first + c));
      }
      GR_BY_WIDTH(spread)(q.m, q.w, q.u, q.m, q.uim, q.rows, v, y, n, f->x);
    }
    for (long s = to; s >= from; s--) {
      const gr_panel q = gr_panel_of(f, &p, s, GR_PER);
      double *v = y + q.first;
      GR_BY_WIDTH(collect)(q.m, q.w, q.l + q.w, q.ld, q.lim, q.rows, v, y, n, f->x);
      for (long c = q.w - 1; c >= 0; c--)
        for (long i = c + 1; i < q.w; i++) GR_OF(less)(v, n, c, i, q.l + i + c * q.ld, q.lim);
    }
  }
}
