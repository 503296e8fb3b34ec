/* Forms panels of a sparse matrix: neighbouring columns whose parts below the diagonal have nearly the same rows.
 *
 * Rows and columns in the order of the pivots, A + A' in place of A, so that L and U' have the same entries. A panel of w
 * columns has a full block of w x w on the diagonal and m rows below it; L and U' are full there, m x w each, with a few
 * zeros more than needed, and everything between two panels is a product of small full matrices (gr_sparse_panels_lu.h).
 * Columns of a block-triangular form's other blocks are left out: those entries are not eliminated.
 *
 * References: Liu, SIAM J. Matrix Anal. Appl. 11, 1990 (the tree of elimination, rows of L as paths in it); Ashcraft,
 * Grimes, ACM Trans. Math. Softw. 15, 1989 (joining panels that gain a few zeros).
 */
#ifndef GR_SPARSE_PANELS_H
#define GR_SPARSE_PANELS_H

#ifndef GR_PANELS_ALWAYS
#define GR_PANEL_WORK 100.0   /* products a column must cost on average for panels to be worth it */
#define GR_PANEL_ROOM 35      /* room a column below which they are not looked for before L and U are known */
#define GR_PANEL_SYMMETRY 0.9 /* of the entries that have one across the diagonal, for the same */
#define GR_PANEL_EXCESS 2.0   /* times the products of columns one by one that panels may cost */
#else
#define GR_PANEL_WORK 0.0
#define GR_PANEL_ROOM 0
#define GR_PANEL_SYMMETRY 0.0
#define GR_PANEL_EXCESS 1e9
#endif
#define GR_PANEL_SLACK 8 /* doubles that are read beyond the end of a part */

/* what is known of the panels of one matrix, in f->panels */
typedef struct {
  int *number;    /* how many */
  int *of;        /* panel of each column */
  int *first;     /* its first column, and n after the last */
  int *begin;     /* where its rows below the diagonal block begin in f->lrow; they rise */
  int *lat, *uat; /* where its parts of L and U' begin in f->l and f->u */
  int *ebegin;    /* where its entries of A begin in `from` and `to` */
  int *from, *to; /* which entry of A, and its place in L or, as -1 - place, in U' */
  int *count;     /* 0, 1, 2 ... */
} gr_panels;

GR_FN gr_panels gr_panels_in(int *base, long n, long entries) {
  gr_panels p;
  p.number = base;
  p.of = base + 1;
  p.first = p.of + (n + 1);
  p.begin = p.first + (n + 1);
  p.lat = p.begin + (n + 1);
  p.uat = p.lat + (n + 1);
  p.ebegin = p.uat + (n + 1);
  p.count = p.ebegin + (n + 1);
  p.from = p.count + (n + 1);
  p.to = p.from + entries;
  return p;
}

/* Entries off the diagonal by the later one of their two positions: f->mark[k] is one of those of k, p->from the next
 * one or -1, p->to the earlier position. Answers how many there are. */
GR_FN long gr_panels_pair(const gr_pattern *m, const gr_factors *f, const gr_panels *p) {
  long off = 0;
  for (long k = 0; k < m->n; k++) f->mark[k] = -1;
  for (long k = 0; k < m->n; k++) {
    const int c = m->order[k];
    for (int e = m->begin[c]; e < m->begin[c + 1]; e++) {
      const int r = f->place[e], high = r > k ? r : (int)k;
      if (r == k || m->block[r] != m->block[k]) continue;
      p->to[e] = r > k ? (int)k : r;
      p->from[e] = f->mark[high];
      f->mark[high] = e;
      off++;
    }
  }
  return off;
}

/* f->path: the column in which the first entry of each column below the diagonal is eliminated, or -1 */
GR_FN void gr_panels_tree(const gr_pattern *m, const gr_factors *f, const gr_panels *p) {
  int *parent = f->path, *ancestor = f->next;
  for (int k = 0; k < m->n; k++) {
    parent[k] = ancestor[k] = -1;
    for (int e = f->mark[k]; e >= 0; e = p->from[e])
      for (int i = p->to[e], following; i != -1 && i < k; i = following) {
        following = ancestor[i];
        ancestor[i] = k;
        if (following == -1) parent[i] = k;
      }
  }
}

/* f->found: entries of each column below the diagonal. Answers the products of all columns one by one, or -1 where there
 * is no room for them; *twins: entries that have one across the diagonal. */
GR_FN double gr_panels_count(const gr_pattern *m, const gr_factors *f, const gr_panels *p, long *twins) {
  int *count = f->found, *seen = f->candidate, *given = f->next;
  const int *parent = f->path;
  double products = 0.0;
  long total = 0;
  *twins = 0;
  for (long k = 0; k < m->n; k++) {
    count[k] = 0;
    seen[k] = given[k] = -1;
  }
  for (int k = 0; k < m->n; k++) {
    seen[k] = k;
    for (int e = f->mark[k]; e >= 0; e = p->from[e]) {
      int i = p->to[e];
      if (given[i] == k) *twins += 2;
      given[i] = k;
      for (; seen[i] != k; i = parent[i], total++) {
        seen[i] = k;
        count[i]++;
      }
    }
    if (total > f->room) return -1.0;
  }
  for (long k = 0; k < m->n; k++) products += (double)count[k] * count[k];
  return products;
}

/* whether a panel of w columns and m rows may be as full as that: `zeros` of its entries need not be there */
GR_FN long gr_panels_may_join(double w, double m, double zeros) {
  const double part = zeros / (0.5 * w * (w + 1.0) + w * m);
  return part < (w <= 4.0 ? 0.5 : w <= 16.0 ? 0.25 : w <= 48.0 ? 0.1 : 0.05);
}

/* p->first: columns with the same rows, then panels with the last of their children where that costs few zeros */
GR_FN void gr_panels_join(const gr_pattern *m, const gr_factors *f, const gr_panels *p) {
  const int *parent = f->path, *count = f->found;
  int *entries = f->candidate, panels = 0;
  for (int k = 0; k < m->n;) {
    int last = k;
    while (last + 1 < m->n && parent[last] == last + 1 && count[last] == count[last + 1] + 1) last++;
    const double rows = count[last];
    int begin = k, own = 0;
    for (int i = k; i <= last; i++) own += count[i] + 1;
    while (panels > 0 && parent[begin - 1] >= begin && parent[begin - 1] <= last) {
      const double w = last + 1 - p->first[panels - 1];
      if (!gr_panels_may_join(w, rows, 0.5 * w * (w + 1.0) + w * rows - own - entries[panels - 1])) break;
      panels--;
      begin = p->first[panels];
      own += entries[panels];
    }
    p->first[panels] = begin;
    entries[panels++] = own;
    k = last + 1;
  }
  p->first[panels] = (int)m->n;
  p->number[0] = panels;
}

/* where the parts of all panels are, the rows from f->lrow[at] on; answers the products, or -1 where there is no room */
GR_FN double gr_panels_lay(const gr_factors *f, const gr_panels *p, long at) {
  long l = 0, u = 0;
  double products = 0.0;
  for (int s = 0; s < p->number[0]; s++) {
    const long w = p->first[s + 1] - p->first[s], rows = f->found[p->first[s + 1] - 1];
    for (int k = p->first[s]; k < p->first[s + 1]; k++) {
      const double below = (double)(p->first[s + 1] - 1 - k + rows);
      p->of[k] = s;
      products += below * below;
    }
    p->begin[s] = (int)at;
    p->lat[s] = (int)l;
    p->uat[s] = (int)u;
    at += rows;
    l += w * (w + rows);
    u += w * rows;
    if (at > f->room || l + GR_PANEL_SLACK > f->room || u + GR_PANEL_SLACK > f->room) return -1.0;
  }
  p->begin[p->number[0]] = (int)at;
  return products;
}

/* the rows of each panel: a row of L is a path in the tree, from each entry of A up to the row itself */
GR_FN void gr_panels_rows(const gr_pattern *m, const gr_factors *f, const gr_panels *p) {
  int *seen = f->candidate, *at = f->next;
  const int *parent = f->path;
  for (int s = 0; s < p->number[0]; s++) {
    seen[s] = -1;
    at[s] = p->begin[s];
  }
  for (int k = 0; k < m->n; k++)
    for (int e = f->mark[k]; e >= 0; e = p->from[e])
      for (int s = p->of[p->to[e]]; s != p->of[k] && seen[s] != k; s = p->of[parent[p->first[s + 1] - 1]]) {
        seen[s] = k;
        f->lrow[at[s]++] = k;
      }
}

/* place of row r among the rows of panel s below the diagonal block */
GR_FN int gr_panels_find_row(const gr_factors *f, const gr_panels *p, int s, int r) {
  int low = p->begin[s], high = p->begin[s + 1] - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (f->lrow[middle] < r)
      low = middle + 1;
    else
      high = middle;
  }
  return low - p->begin[s];
}

/* where the entry of row r and column k goes; *s: into which panel */
GR_FN int gr_panels_target(const gr_factors *f, const gr_panels *p, int r, int k, int *s) {
  const int own = p->of[k], first = p->first[own], w = p->first[own + 1] - first;
  *s = own;
  if (r >= first) {
    const int rows = p->begin[own + 1] - p->begin[own];
    return (r < first + w ? r - first : w + gr_panels_find_row(f, p, own, r)) + (k - first) * (w + rows);
  }
  *s = p->of[r];
  const int rows = p->begin[*s + 1] - p->begin[*s];
  return -1 - (gr_panels_find_row(f, p, *s, k) + (r - p->first[*s]) * rows);
}

GR_FN void gr_panels_entries(const gr_pattern *m, const gr_factors *f, const gr_panels *p) {
  int *at = f->next, s;
  for (s = 0; s <= p->number[0]; s++) p->ebegin[s] = 0;
  for (long k = 0; k < m->n; k++)
    for (int e = m->begin[m->order[k]]; e < m->begin[m->order[k] + 1]; e++) {
      const int r = f->place[e];
      if (m->block[r] == m->block[k]) p->ebegin[(r < k ? p->of[r] : p->of[k]) + 1]++;
    }
  for (s = 0; s < p->number[0]; s++) at[s] = p->ebegin[s + 1] += p->ebegin[s];
  for (int k = 0; k < m->n; k++)
    for (int e = m->begin[m->order[k]]; e < m->begin[m->order[k] + 1]; e++) {
      const int r = f->place[e];
      if (m->block[r] != m->block[k]) continue;
      const int to = gr_panels_target(f, p, r, k, &s);
      p->from[--at[s]] = e;
      p->to[at[s]] = to;
    }
}

/* products of the columns of L and U as they are */
GR_FN double gr_sparse_products(const gr_pattern *m, const gr_factors *f) {
  double products = 0.0;
  for (int k = 0; k < m->n; k++)
    for (int e = f->ubegin[k]; e < f->ubegin[k + 1]; e++)
      if (f->urow[e] >= m->block[k]) products += (double)(f->lbegin[f->urow[e] + 1] - f->lbegin[f->urow[e]]);
  return products;
}

/* Panels in the order of pivots that f->place gives; 0 where they are not worth it. `known`: L and U of that order are
 * there, and stay. */
GR_APART long gr_panels_make(const gr_pattern *m, const gr_factors *f, long known) {
  const gr_panels p = gr_panels_in(f->panels, m->n, m->begin[m->n]);
  const double least = GR_PANEL_WORK * (double)m->n, one_by_one = known ? gr_sparse_products(m, f) : DBL_MAX;
  long twins;
  if (one_by_one < least) return 0;
  const long off = gr_panels_pair(m, f, &p);
  gr_panels_tree(m, f, &p);
  const double products = gr_panels_count(m, f, &p, &twins);
  if (products < least || (!known && (double)twins < GR_PANEL_SYMMETRY * (double)off)) return 0;
  gr_panels_join(m, f, &p);
  const double all = gr_panels_lay(f, &p, known ? f->lbegin[m->n] : 0);
  if (all < 0.0 || all > GR_PANEL_EXCESS * (known ? one_by_one : products)) return 0;
  gr_panels_rows(m, f, &p);
  gr_panels_entries(m, f, &p);
  for (int i = 0; i <= m->n; i++) p.count[i] = i;
  return 1;
}

/* panels for the wanted pivots, before L and U are known; 0 where they are not worth it */
GR_FN long gr_panels_wanted(const gr_pattern *m, const gr_factors *f) {
  if (f->room < GR_PANEL_ROOM * m->n) return 0;
  for (int k = 0; k < m->n; k++) {
    f->row_at[k] = m->wanted[k];
    f->position[m->wanted[k]] = k;
  }
  for (int e = 0; e < m->begin[m->n]; e++) f->place[e] = f->position[m->row[e]];
  return gr_panels_make(m, f, 0);
}

#if defined(__GNUC__) && !defined(__CUDACC__)
typedef double gr_narrow __attribute__((vector_size(16), aligned(8), may_alias));
#define GR_NARROW 2
#define GR_NARROW_ZERO ((gr_narrow){0.0, 0.0})
#define GR_NARROW_SUM(v) ((v)[0] + (v)[1])
#define GR_UNROLLED _Pragma("GCC unroll 16")
#define GR_INSIDE static inline __attribute__((always_inline, unused))
#else
typedef double gr_narrow;
#define GR_NARROW 1
#define GR_NARROW_ZERO 0.0
#define GR_NARROW_SUM(v) (v)
#define GR_UNROLLED
#define GR_INSIDE GR_FN
#endif

/* Registers of four doubles where the processor has them, which is asked at run time. Clang is left out: the one that comes
 * as a wheel (ziglang) cannot ask. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(_WIN32) && \
    !defined(GR_NARROW_ONLY)
#define GR_HAS_WIDE 1
typedef double gr_broad __attribute__((vector_size(32), aligned(8), may_alias));
#define GR_BY_WIDTH(name) (__builtin_cpu_supports("avx2") ? GR_OF(name##_broad) : GR_OF(name##_narrow))
#else
#define GR_HAS_WIDE 0
#define GR_BY_WIDTH(name) GR_OF(name##_narrow)
#endif

/* one panel as it is worked on */
typedef struct {
  long first, w, m, ld; /* ld = w + m: rows of its part of L */
  const int *rows;
  double *l, *u;
  long lim, uim; /* from real to imaginary parts */
} gr_panel;

GR_FN gr_panel gr_panel_of(const gr_factors *f, const gr_panels *p, long s, long lanes) {
  gr_panel q;
  q.first = p->first[s];
  q.w = p->first[s + 1] - q.first;
  q.m = p->begin[s + 1] - p->begin[s];
  q.ld = q.w + q.m;
  q.rows = f->lrow + p->begin[s];
  q.l = f->l + lanes * p->lat[s];
  q.u = f->u + lanes * p->uat[s];
  q.lim = q.ld * q.w;
  q.uim = q.m * q.w;
  return q;
}

/* which pivots are taken, the column's arrays from the first of the panel on */
typedef struct {
  const double *weight; /* of the rows of the panel */
  const double *noise;  /* what rounds in the elimination of each pivot, or 0 where this order was taken before */
  double *inverse, *taken;
} gr_panel_pivots;

#endif
