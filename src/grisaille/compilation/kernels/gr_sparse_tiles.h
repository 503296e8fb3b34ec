/* Multiplies and factors the full matrices of panels (gr_sparse_panels.h).
 * Included once for each kind of numbers and each width of the processor's registers, hence no guard: GR_PER doubles a
 * number, GR_VEC with GR_WIDTH doubles a register.
 *
 * Every operation is the IEEE one, and the terms of a sum come in the same order whatever the width but for those of
 * GR_TILED(collect): the factors have the same digits on every machine. Matrices are by columns, complex ones with their
 * imaginary parts so many doubles (aim for a) behind the real ones. Up to GR_PANEL_SLACK rows are read beyond their end.
 */

#define GR_AT(p) (*(GR_VEC *)(p))
#define GR_AT_CONST(p) (*(const GR_VEC *)(p))

/* out = sum over k of a(:, k) b(j, k), R registers high and C columns wide; b(j, k) is b[j bj + k bk] */
GR_INSIDE void GR_TILED(tile)(const int R, const int C, long depth, const double *a, long lda, long aim, const double *b,
                              long bj, long bk, long bim, double *out) {
  GR_VEC re[2][4];
#if GR_PER == 2
  GR_VEC im[2][4];
#else
  (void)aim; (void)bim;
#endif
  GR_UNROLL for (int j = 0; j < C; j++)
    GR_UNROLL for (int i = 0; i < R; i++) {
      re[i][j] = GR_NONE;
#if GR_PER == 2
      im[i][j] = GR_NONE;
#endif
    }
  for (long k = 0; k < depth; k++, a += lda, b += bk)
    GR_UNROLL for (int j = 0; j < C; j++) {
      const double u = b[j * bj];
#if GR_PER == 2
      const double v = b[j * bj + bim];
#endif
      GR_UNROLL for (int i = 0; i < R; i++) {
        const GR_VEC x = GR_AT_CONST(a + i * GR_WIDTH);
        re[i][j] += x * u;
#if GR_PER == 2
        const GR_VEC y = GR_AT_CONST(a + aim + i * GR_WIDTH);
        re[i][j] -= y * v;
        im[i][j] += x * v;
        im[i][j] += y * u;
#endif
      }
    }
  GR_UNROLL for (int j = 0; j < C; j++)
    GR_UNROLL for (int i = 0; i < R; i++) {
      GR_AT(out + (i + j * R) * GR_WIDTH) = re[i][j];
#if GR_PER == 2
      GR_AT(out + (i + (j + C) * R) * GR_WIDTH) = im[i][j];
#endif
    }
}

/* a column of C less that of a tile */
GR_INSIDE void GR_TILED(leave)(const int R, double *c, const int *row, long rows, const double *out) {
  const int height = R * GR_WIDTH;
  if (rows >= height && row[height - 1] - row[0] == height - 1) {
    GR_UNROLL for (int i = 0; i < R; i++) GR_AT(c + row[0] + i * GR_WIDTH) -= GR_AT_CONST(out + i * GR_WIDTH);
  } else if (rows >= height) {
    GR_UNROLL for (int i = 0; i < height; i++) c[row[i]] -= out[i];
  } else
    for (long i = 0; i < rows; i++) c[row[i]] -= out[i];
}

/* A product to be taken away from C: row i and column j of it go to c[row[i] + column[j] ldc]. */
typedef struct {
  long rows, depth;
  const double *a, *b;
  long lda, aim, bj, bk, bim;
  double *c;
  const int *row, *column;
  long ldc, cim;
} GR_TILED(product);

GR_INSIDE void GR_TILED(step)(const int R, const int C, const GR_TILED(product) *p, long i, long j) {
  double out[2 * 4 * GR_WIDTH * GR_PER];
  GR_TILED(tile)(R, C, p->depth, p->a + i, p->lda, p->aim, p->b + j * p->bj, p->bj, p->bk, p->bim, out);
  GR_UNROLL for (int k = 0; k < C; k++) {
    double *c = p->c + p->column[j + k] * p->ldc;
    GR_TILED(leave)(R, c, p->row + i, p->rows - i, out + k * R * GR_WIDTH);
    if (GR_PER == 2) GR_TILED(leave)(R, c + p->cim, p->row + i, p->rows - i, out + (k + C) * R * GR_WIDTH);
  }
}

GR_INSIDE void GR_TILED(strip)(const int C, const GR_TILED(product) *p, long j) {
  long i = 0;
  for (; i + GR_WIDTH < p->rows; i += 2 * GR_WIDTH) GR_TILED(step)(2, C, p, i, j);
  if (i < p->rows) GR_TILED(step)(1, C, p, i, j);
}

GR_TILED_FN void GR_TILED(update)(long rows, long cols, long depth, const double *a, long lda, long aim, const double *b,
                                  long bj, long bk, long bim, double *c, const int *row, const int *column, long ldc,
                                  long cim) {
  const GR_TILED(product) p = {rows, depth, a, b, lda, aim, bj, bk, bim, c, row, column, ldc, cim};
  long j = 0;
#if GR_PER == 1
  for (; j + 3 < cols; j += 4) GR_TILED(strip)(4, &p, j);
#endif
  for (; j + 1 < cols; j += 2) GR_TILED(strip)(2, &p, j);
  if (j < cols) GR_TILED(strip)(1, &p, j);
}

/* x -= a y, n numbers each */
GR_INSIDE void GR_TILED(subtract)(long n, double *x, long xim, const double *a, long aim, const double *y, long yim) {
  long i = 0;
#if GR_PER == 1
  const double u = a[0];
  (void)xim; (void)yim; (void)aim;
  for (; i + GR_WIDTH <= n; i += GR_WIDTH) GR_AT(x + i) -= GR_AT_CONST(y + i) * u;
  for (; i < n; i++) x[i] -= y[i] * u;
#else
  const double u = a[0], v = a[aim];
  for (; i + GR_WIDTH <= n; i += GR_WIDTH) {
    const GR_VEC re = GR_AT_CONST(y + i), im = GR_AT_CONST(y + i + yim);
    GR_AT(x + i) -= re * u - im * v;
    GR_AT(x + i + xim) -= re * v + im * u;
  }
  for (; i < n; i++) {
    const double re = y[i], im = y[i + yim];
    x[i] -= re * u - im * v;
    x[i + xim] -= re * v + im * u;
  }
#endif
}

/* 1 where the pivot of column c is large enough by itself, as for columns one by one: when its order is chosen above the
 * rounding of its elimination, later not much smaller than it was */
GR_INSIDE long GR_TILED(is_large)(const gr_panel *q, long c, const gr_panel_pivots *pivots, double size) {
  const double weighted = size * pivots->weight[c];
  if (!pivots->noise) return weighted > fmin(GR_DOUBTFUL_PIVOT, 0.01 * pivots->taken[c]) && weighted <= DBL_MAX;
  double noise = pivots->noise[c];
  for (long k = 0; k < c; k++) noise += GR_OF(size_at)(q->l + c + k * q->ld, q->lim) * GR_OF(size_at)(q->l + k + c * q->ld, q->lim);
  pivots->taken[c] = weighted;
  return size > GR_LU_NOISE * noise && size <= DBL_MAX;
}

/* the pivot of column c and the entries of L below it; 0 where it is too small */
GR_INSIDE long GR_TILED(pivot)(const gr_panel *q, long c, const gr_panel_pivots *pivots) {
  double *x = q->l + c * q->ld, *inverse = pivots->inverse + GR_PER * c, most = 0.0;
  const double *weight = pivots->weight, size = GR_OF(size_at)(x + c, q->lim);
  if (!GR_TILED(is_large)(q, c, pivots, size)) return 0;
#if GR_PER == 1
  GR_OF(invert)(x + c, inverse);
  for (long i = c + 1; i < q->ld; i++) {
    const double other = fabs(x[i]) * weight[i];
    x[i] *= inverse[0];
    if (!(other <= most)) most = other;
  }
#else
  double *y = x + q->lim;
  const double here[2] = {x[c], y[c]};
  GR_OF(invert)(here, inverse);
  for (long i = c + 1; i < q->ld; i++) {
    const double re = x[i], im = y[i], other = (fabs(re) + fabs(im)) * weight[i];
    x[i] = re * inverse[0] - im * inverse[1];
    y[i] = re * inverse[1] + im * inverse[0];
    if (!(other <= most)) most = other;
  }
#endif
  return size * weight[c] >= (pivots->noise ? GR_WANTED_PIVOT : GR_KEPT_PIVOT) * most;
}

/* A panel that was reduced by all others into its parts of L and U, four columns at a time; 0 where a pivot is too small.
 * at: 0, 1, 2 ... */
GR_TILED_FN long GR_TILED(factor_panel)(const gr_panel *q, const int *at, const gr_panel_pivots *pivots) {
  const long ld = q->ld, lim = q->lim, uim = q->uim;
  for (long c0 = 0; c0 < q->w; c0 += 4) {
    const long end = c0 + 4 < q->w ? c0 + 4 : q->w, wide = end - c0;
    double *l = q->l + c0 * ld, *u = q->u + c0 * q->m;
    for (long b = 0; b < c0; b += 4) {
      const double *before = q->l + b * (ld + 1);
      for (long c = 0; c < wide; c++)
        for (long k = 0; k < 3; k++)
          GR_TILED(subtract)(3 - k, l + c * ld + b + k + 1, lim, l + c * ld + b + k, lim, before + k * ld + k + 1, lim);
      if (b + 4 < c0)
        GR_TILED(update)(c0 - b - 4, wide, 4, before + 4, ld, lim, l + b, ld, 1, lim, l, at + b + 4, at, ld, lim);
    }
    if (c0 > 0) GR_TILED(update)(ld - c0, wide, c0, q->l + c0, ld, lim, l, ld, 1, lim, l, at + c0, at, ld, lim);
    if (c0 > 0) GR_TILED(update)(q->m, wide, c0, q->u, q->m, uim, q->l + c0, 1, ld, lim, u, at, at, q->m, uim);
    for (long c = c0; c < end; c++) {
      const double *column = q->l + c * ld;
      if (!GR_TILED(pivot)(q, c, pivots)) return 0;
      for (long d = c + 1; d < end; d++) {
        double *other = q->l + d * ld;
        GR_TILED(subtract)(ld - c - 1, other + c + 1, lim, other + c, lim, column + c + 1, lim);
        GR_TILED(subtract)(q->m, q->u + d * q->m, uim, column + d, lim, q->u + c * q->m, uim);
      }
    }
  }
  return 1;
}

/* t -= X v for X of n x w */
GR_INSIDE void GR_TILED(take)(long n, long w, const double *x, long ld, long xim, const double *v, long vim, double *t,
                              long tim) {
  long c = 0;
#if GR_PER == 1
  (void)xim; (void)vim; (void)tim;
  for (; c + 3 < w; c += 4, x += 4 * ld) {
    const double v0 = v[c], v1 = v[c + 1], v2 = v[c + 2], v3 = v[c + 3], *x1 = x + ld, *x2 = x1 + ld, *x3 = x2 + ld;
    long i = 0;
    for (; i + GR_WIDTH <= n; i += GR_WIDTH)
      GR_AT(t + i) = GR_AT(t + i) - GR_AT_CONST(x + i) * v0 - GR_AT_CONST(x1 + i) * v1 - GR_AT_CONST(x2 + i) * v2 -
                     GR_AT_CONST(x3 + i) * v3;
    for (; i < n; i++) t[i] = t[i] - x[i] * v0 - x1[i] * v1 - x2[i] * v2 - x3[i] * v3;
  }
#else
  for (; c + 1 < w; c += 2, x += 2 * ld) {
    const double u0 = v[c], v0 = v[c + vim], u1 = v[c + 1], v1 = v[c + 1 + vim], *x1 = x + ld;
    long i = 0;
    for (; i + GR_WIDTH <= n; i += GR_WIDTH) {
      const GR_VEC re0 = GR_AT_CONST(x + i), im0 = GR_AT_CONST(x + i + xim);
      const GR_VEC re1 = GR_AT_CONST(x1 + i), im1 = GR_AT_CONST(x1 + i + xim);
      GR_AT(t + i) = GR_AT(t + i) - (re0 * u0 - im0 * v0) - (re1 * u1 - im1 * v1);
      GR_AT(t + i + tim) = GR_AT(t + i + tim) - (re0 * v0 + im0 * u0) - (re1 * v1 + im1 * u1);
    }
    for (; i < n; i++) {
      t[i] = t[i] - (x[i] * u0 - x[i + xim] * v0) - (x1[i] * u1 - x1[i + xim] * v1);
      t[i + tim] = t[i + tim] - (x[i] * v0 + x[i + xim] * u0) - (x1[i] * v1 + x1[i + xim] * u1);
    }
  }
#endif
  for (; c < w; c++, x += ld) GR_TILED(subtract)(n, t, tim, v + c, vim, x, xim);
}

/* v -= X't for X of n x w */
GR_INSIDE void GR_TILED(dots)(long n, long w, const double *x, long ld, long xim, const double *t, long tim, double *v,
                              long vim) {
  long c = 0;
#if GR_PER == 1
  (void)xim; (void)vim; (void)tim;
  for (; c + 3 < w; c += 4, x += 4 * ld) {
    const double *x1 = x + ld, *x2 = x1 + ld, *x3 = x2 + ld;
    GR_VEC s0 = GR_NONE, s1 = GR_NONE, s2 = GR_NONE, s3 = GR_NONE;
    long i = 0;
    for (; i + GR_WIDTH <= n; i += GR_WIDTH) {
      const GR_VEC a = GR_AT_CONST(t + i);
      s0 += GR_AT_CONST(x + i) * a;
      s1 += GR_AT_CONST(x1 + i) * a;
      s2 += GR_AT_CONST(x2 + i) * a;
      s3 += GR_AT_CONST(x3 + i) * a;
    }
    v[c] -= GR_SUM(s0);
    v[c + 1] -= GR_SUM(s1);
    v[c + 2] -= GR_SUM(s2);
    v[c + 3] -= GR_SUM(s3);
    for (; i < n; i++) {
      v[c] -= x[i] * t[i];
      v[c + 1] -= x1[i] * t[i];
      v[c + 2] -= x2[i] * t[i];
      v[c + 3] -= x3[i] * t[i];
    }
  }
  for (; c < w; c++, x += ld) {
    double sum = 0.0;
    for (long i = 0; i < n; i++) sum += x[i] * t[i];
    v[c] -= sum;
  }
#else
  for (; c < w; c++, x += ld) {
    GR_VEC re = GR_NONE, im = GR_NONE;
    long i = 0;
    for (; i + GR_WIDTH <= n; i += GR_WIDTH) {
      const GR_VEC a = GR_AT_CONST(x + i), b = GR_AT_CONST(x + i + xim);
      const GR_VEC p = GR_AT_CONST(t + i), q = GR_AT_CONST(t + i + tim);
      re += a * p - b * q;
      im += a * q + b * p;
    }
    double first = GR_SUM(re), second = GR_SUM(im);
    for (; i < n; i++) {
      first += x[i] * t[i] - x[i + xim] * t[i + tim];
      second += x[i] * t[i + tim] + x[i + xim] * t[i];
    }
    v[c] -= first;
    v[c + vim] -= second;
  }
#endif
}

/* y(rows) -= X v for X of m x w; t: of m numbers */
GR_TILED_FN void GR_TILED(spread)(long m, long w, const double *x, long ld, long xim, const int *rows, const double *v,
                                  double *y, long yim, double *t) {
  for (long i = 0; i < GR_PER * m; i++) t[i] = 0.0;
  GR_TILED(take)(m, w, x, ld, xim, v, yim, t, m);
  for (long i = 0; i < m; i++) y[rows[i]] += t[i];
  for (long i = 0; GR_PER == 2 && i < m; i++) y[rows[i] + yim] += t[i + m];
}

/* v -= X' y(rows) for X of m x w; t: of m numbers */
GR_TILED_FN void GR_TILED(collect)(long m, long w, const double *x, long ld, long xim, const int *rows, double *v,
                                   const double *y, long yim, double *t) {
  for (long i = 0; i < m; i++) t[i] = y[rows[i]];
  for (long i = 0; GR_PER == 2 && i < m; i++) t[i + m] = y[rows[i] + yim];
  GR_TILED(dots)(m, w, x, ld, xim, t, m, v, yim);
}

/* v becomes the solution of L v = v in the block on the diagonal, four columns at a time */
GR_TILED_FN void GR_TILED(lower)(const gr_panel *q, double *v, long vim) {
  for (long c0 = 0; c0 < q->w; c0 += 4) {
    const long end = c0 + 4 < q->w ? c0 + 4 : q->w;
    const double *l = q->l + c0 * q->ld;
    for (long c = c0; c < end; c++)
      for (long i = c + 1; i < end; i++) GR_OF(less)(v, vim, i, c, q->l + i + c * q->ld, q->lim);
    GR_TILED(take)(q->w - end, end - c0, l + end, q->ld, q->lim, v + c0, vim, v + end, vim);
  }
}

/* v becomes the solution of U v = v in the block on the diagonal */
GR_TILED_FN void GR_TILED(upper)(const gr_panel *q, const double *inverse, double *v, long vim) {
  for (long end = q->w, c0; end > 0; end = c0) {
    c0 = (end - 1) / 4 * 4;
    for (long c = end - 1; c >= c0; c--) {
      GR_OF(scale)(v, vim, c, inverse + GR_PER * c);
      for (long i = c0; i < c; i++) GR_OF(less)(v, vim, i, c, q->l + i + c * q->ld, q->lim);
    }
    GR_TILED(take)(c0, end - c0, q->l + c0 * q->ld, q->ld, q->lim, v + c0, vim, v, vim);
  }
}
#undef GR_AT
#undef GR_AT_CONST
