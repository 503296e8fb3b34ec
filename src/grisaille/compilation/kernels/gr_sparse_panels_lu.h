/* Factors A = L U by panels (gr_sparse_panels.h) in a given order of pivots, for numbers of GR_PER doubles: included once
 * for real and once for complex numbers, hence no guard.
 *
 * The part of L of a panel with w columns and m rows is by columns, its w x w block on the diagonal first, in which U is
 * above the diagonal; that of U' is m x w. Complex parts have all real parts before all imaginary ones. Each panel is
 * reduced by those before it that have rows in it, then factored by itself.
 */

/* size of a number whose parts are apart */
GR_FN double GR_OF(size_at)(const double *re, long im) {
#if GR_PER == 1
  (void)im;
  return fabs(re[0]);
#else
  return fabs(re[0]) + fabs(re[im]);
#endif
}

/* v[c] -= a v[k] */
GR_FN void GR_OF(less)(double *v, long vim, long c, long k, const double *a, long aim) {
#if GR_PER == 1
  (void)vim; (void)aim;
  v[c] -= a[0] * v[k];
#else
  const double re = v[k], im = v[k + vim];
  v[c] -= a[0] * re - a[aim] * im;
  v[c + vim] -= a[0] * im + a[aim] * re;
#endif
}

/* v[c] *= a */
GR_FN void GR_OF(scale)(double *v, long vim, long c, const double *a) {
#if GR_PER == 1
  (void)vim;
  v[c] *= a[0];
#else
  const double re = v[c], im = v[c + vim];
  v[c] = a[0] * re - a[1] * im;
  v[c + vim] = a[0] * im + a[1] * re;
#endif
}

#include "gr_sparse_widths.h"

/* the entries of A in their places */
GR_FN void GR_OF(panel_fill)(const gr_factors *f, const gr_panels *p, long s, const gr_panel *q) {
  for (long i = 0; i < GR_PER * q->lim; i++) q->l[i] = 0.0;
  for (long i = 0; i < GR_PER * q->uim; i++) q->u[i] = 0.0;
  for (int e = p->ebegin[s]; e < p->ebegin[s + 1]; e++) {
    const double *a = f->a + GR_PER * (long)p->from[e];
    const long to = p->to[e];
    double *target = to >= 0 ? q->l + to : q->u - 1 - to;
    target[0] = a[0];
#if GR_PER == 2
    target[to >= 0 ? q->lim : q->uim] = a[1];
#endif
  }
}

/* what an earlier panel r, whose rows at .. end are in this one, leaves of it; where: places of rows in it */
GR_FN void GR_OF(panel_reduce)(const gr_panel *r, long at, long end, const gr_panel *q, const int *where, int *place) {
  for (long i = at; i < r->m; i++) place[i] = where[r->rows[i]];
  const double *l = r->l + r->w + at, *u = r->u + at;
  GR_BY_WIDTH(update)(r->m - at, end - at, r->w, l, r->ld, r->lim, u, 1, r->m, r->uim, q->l, place + at, place + at, q->ld,
                      q->lim);
  if (end == r->m) return;
  for (long i = end; i < r->m; i++) place[i] -= (int)q->w;
  GR_BY_WIDTH(update)(r->m - end, end - at, r->w, u + (end - at), r->m, r->uim, l, 1, r->ld, r->lim, q->u, place + end,
                      place + at, q->m, q->uim);
}

/* what a factored panel adds to the rounding of the pivots of its rows */
GR_FN void GR_OF(panel_noise)(const gr_panel *q, double *noise) {
  for (long c = 0; c < q->w; c++)
    for (long i = 0; i < q->m; i++)
      noise[q->rows[i]] += GR_OF(size_at)(q->l + q->w + i + c * q->ld, q->lim) * GR_OF(size_at)(q->u + i + c * q->m, q->uim);
}

/* Where rows are in panel q, and their weights. */
GR_FN void GR_OF(panel_open)(const gr_factors *f, const gr_panel *q, int *where, double *weight) {
  for (long i = 0; i < q->w; i++) {
    where[q->first + i] = (int)i;
    weight[i] = f->weight[q->first + i];
  }
  for (long i = 0; i < q->m; i++) {
    where[q->rows[i]] = (int)(q->w + i);
    weight[q->w + i] = f->weight[q->rows[i]];
  }
}

/* A = L U; 0 where a pivot is too small to be taken (`first`) or kept. Work: f->path and f->next are chains of the panels
 * that change a panel next, f->found how many of their rows are done. */
GR_APART long GR_OF(panels_factor)(const gr_pattern *m, const gr_factors *f, long first) {
  const gr_panels p = gr_panels_in(f->panels, m->n, m->begin[m->n]);
  int *head = f->path, *next = f->next, *done = f->found;
  GR_OF(weights)(m->n, m->begin[m->n], f->place, f->a, f->weight);
  for (int s = 0; s < p.number[0]; s++) head[s] = -1;
  for (long k = 0; first && k < m->n; k++) f->noise[k] = 0.0;
  for (int s = 0; s < p.number[0]; s++) {
    const gr_panel q = gr_panel_of(f, &p, s, GR_PER);
    GR_OF(panel_fill)(f, &p, s, &q);
    GR_OF(panel_open)(f, &q, f->candidate, f->x);
    for (int k = head[s], following; k >= 0; k = following) {
      following = next[k];
      const gr_panel r = gr_panel_of(f, &p, k, GR_PER);
      long end = done[k];
      while (end < r.m && r.rows[end] < q.first + q.w) end++;
      GR_OF(panel_reduce)(&r, done[k], end, &q, f->candidate, f->mark);
      done[k] = (int)end;
      if (end == r.m) continue;
      const int target = p.of[r.rows[end]];
      next[k] = head[target];
      head[target] = k;
    }
    const gr_panel_pivots pivots = {f->x, first ? f->noise + q.first : 0, f->inverse + GR_PER * q.first, f->taken + q.first};
    if (!GR_BY_WIDTH(factor_panel)(&q, p.count, &pivots)) return 0;
    if (!q.m) continue;
    if (first) GR_OF(panel_noise)(&q, f->noise);
    const int target = p.of[q.rows[0]];
    done[s] = 0;
    next[s] = head[target];
    head[target] = s;
  }
  return 1;
}
