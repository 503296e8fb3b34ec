/* Factors column by column, as gr_sparse_factors.h has it, entries of GR_PER doubles: included once for real and once for
 * complex numbers, hence no guard. Sizes of complex numbers are |re| + |im|, as in gr_linear.h.
 */

GR_FN double GR_OF(size)(const double *v) {
#if GR_PER == 1
  return fabs(v[0]);
#else
  return fabs(v[0]) + fabs(v[1]);
#endif
}

/* x -= a f */
GR_FN void GR_OF(subtract)(double *x, const double *a, const double *f) {
#if GR_PER == 1
  x[0] -= a[0] * f[0];
#else
  x[0] -= a[0] * f[0] - a[1] * f[1];
  x[1] -= a[0] * f[1] + a[1] * f[0];
#endif
}

/* out = a b */
GR_FN void GR_OF(product)(const double *a, const double *b, double *out) {
#if GR_PER == 1
  out[0] = a[0] * b[0];
#else
  const double re = a[0] * b[0] - a[1] * b[1];
  out[1] = a[0] * b[1] + a[1] * b[0];
  out[0] = re;
#endif
}

GR_FN void GR_OF(invert)(const double *v, double *out) {
#if GR_PER == 1
  out[0] = 1.0 / v[0];
#else
  const double size = GR_OF(size)(v), re = v[0] / size, im = v[1] / size, norm = (re * re + im * im) * size;
  out[0] = re / norm;
  out[1] = -im / norm;
#endif
}

/* 1 / largest entry of each row, 0 for an empty one; row: of each entry */
GR_FN void GR_OF(weights)(long n, long entries, const int *row, const double *a, double *weight) {
  for (long i = 0; i < n; i++) weight[i] = 0.0;
  for (long e = 0; e < entries; e++) {
    const double size = GR_OF(size)(a + GR_PER * e);
    if (weight[row[e]] < size) weight[row[e]] = size;
  }
  for (long i = 0; i < n; i++) weight[i] = weight[i] > 0.0 ? 1.0 / weight[i] : 0.0;
}

GR_FN void GR_OF(clear)(double *x) {
  for (long i = 0; i < GR_PER; i++) x[i] = 0.0;
}

GR_FN void GR_OF(copy)(double *to, const double *from) {
  for (long i = 0; i < GR_PER; i++) to[i] = from[i];
}

/* the row to divide by, or -1; best: the largest size among the candidates */
GR_FN long GR_OF(pivot)(const gr_pattern *m, const gr_factors *f, long k, long count) {
  const int wanted = m->wanted[k];
  double best = -1.0;
  long p = -1;
  for (long i = 0; i < count; i++) {
    const int r = f->candidate[i];
    const double size = GR_OF(size)(f->x + GR_PER * r) * f->weight[r];
    if (size > best) {
      best = size;
      p = r;
    }
  }
  if (p < 0) return p;
  if (f->mark[wanted] == k && f->position[wanted] < 0 &&
      GR_OF(size)(f->x + GR_PER * wanted) * f->weight[wanted] >= GR_WANTED_PIVOT * best)
    p = wanted;
  const double size = GR_OF(size)(f->x + GR_PER * p);
  return size > GR_LU_NOISE * f->noise[p] && size <= DBL_MAX ? p : -1;
}

/* A = L U with a new order of pivots; answers 0, the refused column + 1, or GR_NO_ROOM */
GR_APART long GR_OF(factor_anew)(const gr_pattern *m, const gr_factors *f) {
  const long n = m->n;
  double *x = f->x;
  int ln = 0, un = 0;
  f->ready[0] = 0;
  GR_OF(weights)(n, m->begin[n], m->row, f->a, f->weight);
  for (long i = 0; i < n; i++) {
    f->position[i] = f->mark[i] = -1;
    f->noise[i] = 0.0;
    GR_OF(clear)(x + GR_PER * i);
  }
  f->lbegin[0] = f->ubegin[0] = 0;
  for (long k = 0; k < n; k++) {
    const int c = m->order[k];
    long count;
    const long top = gr_sparse_search(m, f, k, &count);
    if (ln + count > f->room || un + (n - top) + m->begin[c + 1] - m->begin[c] > f->room) return GR_NO_ROOM;
    for (int e = m->begin[c]; e < m->begin[c + 1]; e++) {
      const int r = m->row[e], p = f->position[r];
      if (p >= 0 && p < m->block[k]) {
        GR_OF(copy)(f->u + GR_PER * un, f->a + GR_PER * e);
        f->urow[un++] = p;
      } else
        GR_OF(copy)(x + GR_PER * r, f->a + GR_PER * e);
    }
    for (long i = top; i < n; i++, un++) {
      const int j = f->found[i];
      double *here = x + GR_PER * f->row_at[j], *value = f->u + GR_PER * un;
      GR_OF(copy)(value, here);
      GR_OF(clear)(here);
      f->urow[un] = j;
      for (int e = f->lbegin[j]; e < f->lbegin[j + 1]; e++) {
        const int r = f->lrow[e];
        GR_OF(subtract)(x + GR_PER * r, f->l + GR_PER * e, value);
        f->noise[r] += GR_OF(size)(f->l + GR_PER * e) * GR_OF(size)(value);
      }
    }
    const long p = GR_OF(pivot)(m, f, k, count);
    if (p < 0) return c + 1;
    GR_OF(invert)(x + GR_PER * p, f->inverse + GR_PER * k);
    f->taken[k] = GR_OF(size)(x + GR_PER * p) * f->weight[p];
    f->row_at[k] = (int)p;
    f->position[p] = (int)k;
    for (long i = 0; i < count; i++) {
      const int r = f->candidate[i];
      if (r != p) {
        GR_OF(product)(x + GR_PER * r, f->inverse + GR_PER * k, f->l + GR_PER * ln);
        f->lrow[ln++] = r;
      }
      GR_OF(clear)(x + GR_PER * r);
      f->noise[r] = 0.0;
    }
    f->lbegin[k + 1] = ln;
    f->ubegin[k + 1] = un;
  }
  gr_sparse_settle(m, f);
  return 0;
}

/* A = L U in the order of the last time; answers 0 where a pivot is too small for that */
GR_APART long GR_OF(factor_again)(const gr_pattern *m, const gr_factors *f) {
  const long n = m->n;
  double *GR_RESTRICT x = f->x;
  GR_OF(weights)(n, m->begin[n], f->place, f->a, f->weight);
  for (long i = 0; i < GR_PER * n; i++) x[i] = 0.0;
  for (long k = 0; k < n; k++) {
    const int c = m->order[k], first = m->block[k];
    for (int e = m->begin[c]; e < m->begin[c + 1]; e++) GR_OF(copy)(x + GR_PER * f->place[e], f->a + GR_PER * e);
    for (int e = f->ubegin[k]; e < f->ubegin[k + 1]; e++) {
      const int j = f->urow[e];
      double *value = f->u + GR_PER * e;
      GR_OF(copy)(value, x + GR_PER * j);
      GR_OF(clear)(x + GR_PER * j);
      if (j < first) continue;
      for (int i = f->lbegin[j]; i < f->lbegin[j + 1]; i++)
        GR_OF(subtract)(x + GR_PER * f->lrow[i], f->l + GR_PER * i, value);
    }
    double *here = x + GR_PER * k, *inverse = f->inverse + GR_PER * k, most = 0.0;
    const double size = GR_OF(size)(here) * f->weight[k];
    if (!(size > fmin(GR_DOUBTFUL_PIVOT, 0.01 * f->taken[k])) || !(size <= DBL_MAX)) return 0;
    GR_OF(invert)(here, inverse);
    GR_OF(clear)(here);
    for (int e = f->lbegin[k]; e < f->lbegin[k + 1]; e++) {
      double *there = x + GR_PER * f->lrow[e];
      const double other = GR_OF(size)(there) * f->weight[f->lrow[e]];
      if (!(other <= most)) most = other;
      GR_OF(product)(there, inverse, f->l + GR_PER * e);
      GR_OF(clear)(there);
    }
    if (!(size >= GR_KEPT_PIVOT * most)) return 0;
  }
  return 1;
}

/* f->y, by positions: the right-hand side becomes the solution */
GR_FN void GR_OF(substitute)(const gr_pattern *m, const gr_factors *f) {
  double *GR_RESTRICT y = f->y;
  for (long end = m->n, first; end > 0; end = first) {
    first = m->block[end - 1];
    for (long k = first; k < end; k++)
      for (int e = f->lbegin[k]; e < f->lbegin[k + 1]; e++)
        GR_OF(subtract)(y + GR_PER * f->lrow[e], f->l + GR_PER * e, y + GR_PER * k);
    for (long k = end - 1; k >= first; k--) {
      double value[GR_PER];
      GR_OF(product)(y + GR_PER * k, f->inverse + GR_PER * k, value);
      GR_OF(copy)(y + GR_PER * k, value);
      for (int e = f->ubegin[k]; e < f->ubegin[k + 1]; e++)
        GR_OF(subtract)(y + GR_PER * f->urow[e], f->u + GR_PER * e, value);
    }
  }
}
