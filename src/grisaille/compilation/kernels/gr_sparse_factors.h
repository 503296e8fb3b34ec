/* Solves sparse linear equations of the size of one model: A = L U, real and complex.
 *
 * Which column is eliminated when (`order`: minimum degree inside the blocks of the block-triangular form) and which
 * row is wanted as its pivot is known when the model is built. Columns of one block know nothing of the blocks before it:
 * their entries there are kept as they are, and blocks are solved one by one, the last first.
 *
 * Column by column (gr_sparse_lu.h): the first factorization looks for the nonzeros of each column of L and U by depth-first
 * search and takes the wanted pivot unless another row is more than ten times larger in units of its own largest entry
 * (Gilbert, Peierls, SIAM J. Sci. Stat. Comput. 9, 1988); later ones repeat its order with other numbers, until a pivot is
 * too small for that, when the search is made again.
 *
 * Where L fills in, many columns at once (gr_sparse_panels.h): with the wanted pivots if those are the ones that would be
 * taken, otherwise in the order that was found column by column.
 *
 * A pivot is refused as in gr_linear.h: not above the rounding of its own elimination, or not finite. Memory comes from
 * the caller, see gr_factors_in.
 */
#ifndef GR_SPARSE_FACTORS_H
#define GR_SPARSE_FACTORS_H

#include "gr_linear.h"

#define GR_WANTED_PIVOT 0.1  /* of the largest candidate, for the wanted one to be taken */
#define GR_KEPT_PIVOT 1e-3   /* of the largest candidate, for an order to be kept */
#define GR_DOUBTFUL_PIVOT 1e-6  /* in units of its row: looked at more closely, unless it was as small as that before */
#define GR_NO_ROOM (-1)

/* what is ready: nothing, columns of L and U, those and panels are not worth it, panels */
enum { GR_BY_COLUMNS = 1, GR_BY_COLUMNS_ONLY = 2, GR_BY_PANELS = 3 };

typedef struct {
  long n;
  const int *begin, *row;   /* entries by columns */
  const int *order, *wanted; /* column of each position, row wanted as its pivot */
  const int *block;         /* position at which the block of each position begins */
} gr_pattern;

typedef struct {
  long room;              /* entries that L and U may have each */
  int *ready;             /* 0, or how an order of pivots can be repeated: GR_BY_... */
  int *row_at, *position; /* row of each position, position of each row */
  int *lbegin, *ubegin, *lrow, *urow;
  int *place;             /* position of the row of each entry of A */
  int *mark, *path, *next, *found, *candidate;
  double *a;              /* entries of A; complex ones as pairs */
  double *l, *u, *inverse, *x, *y, *noise, *weight;
  double *taken;          /* sizes of the pivots when their order was chosen */
  int *panels;            /* gr_sparse_panels.h */
} gr_factors;

/* ints that the panels of a matrix need */
GR_FN long gr_panels_size(long n, long entries) { return 1 + 7 * (n + 1) + 2 * entries; }

GR_FN double *gr_take_doubles(double *base, long *at, long n) {
  double *here = base ? base + *at : 0;
  *at += n;
  return here;
}

GR_FN int *gr_take_ints(double *base, long *at, long n) { return (int *)gr_take_doubles(base, at, n / 2 + 1); }

/* lays out factors of order n of a matrix with `entries`, of `lanes` doubles each; answers the doubles needed */
GR_FN long gr_factors_in(double *base, long n, long entries, long room, long lanes, gr_factors *f) {
  long at = 0;
  f->room = room;
  f->ready = gr_take_ints(base, &at, 1);
  f->row_at = gr_take_ints(base, &at, n);
  f->position = gr_take_ints(base, &at, n);
  f->lbegin = gr_take_ints(base, &at, n + 1);
  f->ubegin = gr_take_ints(base, &at, n + 1);
  f->place = gr_take_ints(base, &at, entries);
  f->mark = gr_take_ints(base, &at, n);
  f->path = gr_take_ints(base, &at, n);
  f->next = gr_take_ints(base, &at, n);
  f->found = gr_take_ints(base, &at, n);
  f->candidate = gr_take_ints(base, &at, n);
  f->a = gr_take_doubles(base, &at, lanes * entries);
  f->inverse = gr_take_doubles(base, &at, lanes * n);
  f->x = gr_take_doubles(base, &at, lanes * n);
  f->y = gr_take_doubles(base, &at, lanes * n);
  f->noise = gr_take_doubles(base, &at, n);
  f->weight = gr_take_doubles(base, &at, n);
  f->taken = gr_take_doubles(base, &at, n);
  f->panels = gr_take_ints(base, &at, gr_panels_size(n, entries));
  f->lrow = gr_take_ints(base, &at, room);
  f->urow = gr_take_ints(base, &at, room);
  f->l = gr_take_doubles(base, &at, lanes * room);
  f->u = gr_take_doubles(base, &at, lanes * room);
  return at;
}

/* The nonzeros of column k: positions found in f->found[answer .. n), in an order in which they can be eliminated, and
 * rows without a position in f->candidate[0 .. *count). Entries of other blocks go to U at once. */
GR_FN long gr_sparse_search(const gr_pattern *m, const gr_factors *f, long k, long *count) {
  const int c = m->order[k], first = m->block[k];
  long top = m->n, candidates = 0;
  for (int e = m->begin[c]; e < m->begin[c + 1]; e++) {
    const int r = m->row[e];
    if (f->mark[r] == k) continue;
    if (f->position[r] < 0) {
      f->mark[r] = (int)k;
      f->candidate[candidates++] = r;
      continue;
    }
    if (f->position[r] < first) continue;
    long head = 0;
    f->mark[r] = (int)k;
    f->path[0] = f->position[r];
    f->next[0] = f->lbegin[f->position[r]];
    while (head >= 0) {
      const int j = f->path[head];
      int i = f->next[head], deeper = 0;
      for (; i < f->lbegin[j + 1]; i++) {
        const int s = f->lrow[i], q = f->position[s];
        if (f->mark[s] == k) continue;
        f->mark[s] = (int)k;
        if (q < 0) {
          f->candidate[candidates++] = s;
          continue;
        }
        f->next[head] = i + 1;
        f->path[++head] = q;
        f->next[head] = f->lbegin[q];
        deeper = 1;
        break;
      }
      if (!deeper) {
        f->found[--top] = j;
        head--;
      }
    }
  }
  *count = candidates;
  return top;
}

/* rows of L by positions, and where the entries of A go, for repetitions */
GR_FN void gr_sparse_settle(const gr_pattern *m, const gr_factors *f) {
  for (int e = 0; e < f->lbegin[m->n]; e++) f->lrow[e] = f->position[f->lrow[e]];
  for (int e = 0; e < m->begin[m->n]; e++) f->place[e] = f->position[m->row[e]];
  f->ready[0] = GR_BY_COLUMNS;
}

/* 1 for an even permutation, -1 for an odd one; mark is overwritten */
GR_FN long gr_parity(long n, const int *permutation, int *mark) {
  long sign = 1;
  for (long i = 0; i < n; i++) mark[i] = 0;
  for (long i = 0; i < n; i++) {
    if (mark[i]) continue;
    mark[i] = 1;
    for (long j = permutation[i]; j != i; j = permutation[j]) {
      mark[j] = 1;
      sign = -sign;
    }
  }
  return sign;
}

/* sign of det A, from real factors */
GR_FN long gr_sparse_orientation(const gr_pattern *m, const gr_factors *f) {
  long sign = gr_parity(m->n, f->row_at, f->mark) * gr_parity(m->n, m->order, f->mark);
  for (long k = 0; k < m->n; k++)
    if (f->inverse[k] < 0.0) sign = -sign;
  return sign;
}

/* In a file of their own (GR_SOLVERS_HERE) these are for all models; others have them inside, or are linked with them. */
#if defined(GR_SOLVERS_HERE)
#define GR_SOLVER
#else
#define GR_SOLVER GR_APART
#endif

#if defined(GR_SOLVERS_ELSEWHERE)
#if defined(_WIN32)
#define GR_SOLVED extern
#else
#define GR_SOLVED extern __attribute__((visibility("hidden")))
#endif
GR_SOLVED long gr_real_factor(const gr_pattern *m, const gr_factors *f);
GR_SOLVED long gr_complex_factor(const gr_pattern *m, const gr_factors *f);
GR_SOLVED void gr_real_solve(const gr_pattern *m, const gr_factors *f, double *b);
GR_SOLVED void gr_complex_solve(const gr_pattern *m, const gr_factors *f, double *br, double *bi);
GR_SOLVED void gr_real_solve_transposed(const gr_pattern *m, const gr_factors *f, double *b);
GR_SOLVED void gr_complex_solve_transposed(const gr_pattern *m, const gr_factors *f, double *br, double *bi);
#else
#include "gr_sparse_panels.h"
#define GR_PER 1
#define GR_OF(name) gr_real_##name
#include "gr_sparse_lu.h"
#include "gr_sparse_panels_lu.h"
#include "gr_sparse_panels_solve.h"
#include "gr_sparse_transposed.h"
#include "gr_sparse_solve.h"
#undef GR_PER
#undef GR_OF
#define GR_PER 2
#define GR_OF(name) gr_complex_##name
#include "gr_sparse_lu.h"
#include "gr_sparse_panels_lu.h"
#include "gr_sparse_panels_solve.h"
#include "gr_sparse_transposed.h"
#include "gr_sparse_solve.h"
#undef GR_PER
#undef GR_OF
#endif

#endif
