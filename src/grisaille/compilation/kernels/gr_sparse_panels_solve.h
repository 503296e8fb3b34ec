/* Solves by panels (gr_sparse_panels_lu.h), for numbers of GR_PER doubles: included once for real and once for complex
 * numbers, hence no guard. y: by positions; of complex ones, all real parts and then, vim later, all imaginary ones.
 */

/* y less what the entries of other blocks in column k, which are those of A, make of y[k] */
GR_FN void GR_OF(panel_between)(const gr_pattern *m, const gr_factors *f, long k, double *y) {
  const int c = m->order[k];
  for (int e = m->begin[c]; e < m->begin[c + 1]; e++)
    if (f->place[e] < m->block[k]) GR_OF(less)(y, m->n, f->place[e], k, f->a + GR_PER * (long)e, 1);
}

/* f->y: the right-hand side becomes the solution, blocks one by one, the last first */
GR_APART void GR_OF(panels_substitute)(const gr_pattern *m, const gr_factors *f) {
  const gr_panels p = gr_panels_in(f->panels, m->n, m->begin[m->n]);
  const long n = m->n;
  double *y = f->y;
  for (long end = n, begin; end > 0; end = begin) {
    begin = m->block[end - 1];
    const long from = p.of[begin], to = p.of[end - 1];
    for (long s = from; s <= to; s++) {
      const gr_panel q = gr_panel_of(f, &p, s, GR_PER);
      double *v = y + q.first;
      if (q.w == 1) {
        for (long i = 0; i < q.m; i++) GR_OF(less)(y, n, q.rows[i], q.first, q.l + 1 + i, q.lim);
        continue;
      }
      GR_BY_WIDTH(lower)(&q, v, n);
      GR_BY_WIDTH(spread)(q.m, q.w, q.l + q.w, q.ld, q.lim, q.rows, v, y, n, f->x);
    }
    for (long s = to; s >= from; s--) {
      const gr_panel q = gr_panel_of(f, &p, s, GR_PER);
      double *v = y + q.first;
      if (q.w == 1) {
        for (long i = 0; i < q.m; i++) GR_OF(less)(y, n, q.first, q.rows[i], q.u + i, q.uim);
        GR_OF(scale)(v, n, 0, f->inverse + GR_PER * q.first);
        continue;
      }
      GR_BY_WIDTH(collect)(q.m, q.w, q.u, q.m, q.uim, q.rows, v, y, n, f->x);
      GR_BY_WIDTH(upper)(&q, f->inverse + GR_PER * q.first, v, n);
    }
    for (long k = begin; begin > 0 && k < end; k++) GR_OF(panel_between)(m, f, k, y);
  }
}
