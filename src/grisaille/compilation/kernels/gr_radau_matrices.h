/* Factors the matrices of one Radau IIA step and solves with them, dense or sparse: Newton's real and complex ones,
 *
 *   g/h M - J,     (a + ib)/h M - J,
 *
 * and the exact one of all three stages, A^-1/h (x) M - diag(J_1, J_2, J_3).
 */
#ifndef GR_RADAU_MATRICES_H
#define GR_RADAU_MATRICES_H

#include "gr_linear.h"
#include "gr_radau_room.h"
#include "gr_sparse.h"

/* eigenvalues of A^-1: g and a +- ib */
#define GR_RADAU_EIG_G 3.6378342527444957322
#define GR_RADAU_EIG_A 2.6810828736277521339
#define GR_RADAU_EIG_B 3.0504301992474105694

/* entry i, j of A^-1 */
GR_FN double gr_radau_inverse_entry(long i, long j) {
  const double a[9] = {3.2247448713915890491,   -3.5678400846904054591, 5.5319726474218080826,
                       1.1678400846904054591,   0.77525512860841095092, -7.5319726474218080826,
                       -0.25319726474218080826, 1.0531972647421808083,  5.0};
  return a[i + 3 * j];
}

/* out = J s + b */
GR_FN void gr_radau_apply(const double *J, const double *s, const double *b, double *out) {
  for (long i = 0; i < GR_N; i++) out[i] = b[i];
  GR_ADD_TIMES(J, GR_N, J, 0, GR_N, 0, GR_N, s, out);
}

#if GR_SPARSE

/* g/h M - J and (a + ib)/h M - J, factored; answers 0 or the refused column + 1 */
GR_FN long gr_radau_factor(gr_task *k, gr_radau_room *r, double h) {
  const gr_pattern m = gr_pattern_of_J();
  const gr_all_factors f = gr_all_factors_of(k);
  for (long e = 0; e < GR_J_SIZE; e++) {
    f.real.a[e] = f.complex.a[2 * e] = -r->jac[e];
    f.complex.a[2 * e + 1] = 0.0;
  }
  for (long i = 0; i < GR_NX; i++) {
    const int e = gr_J_diagonal[i];
    f.real.a[e] += GR_RADAU_EIG_G / h;
    f.complex.a[2 * e] += GR_RADAU_EIG_A / h;
    f.complex.a[2 * e + 1] = GR_RADAU_EIG_B / h;
  }
  k->factorizations++;
  const long refused = gr_real_factor(&m, &f.real);
  return gr_refused(k, refused ? refused : gr_complex_factor(&m, &f.complex));
}

/* 1 while the factors of the last step are there: they are lost where a run goes on with more room */
GR_FN long gr_radau_has_factors(const gr_radau_room *r) { return r->factors.complex.ready[0]; }

GR_FN void gr_radau_solve_real(const gr_radau_room *r, double *b) {
  const gr_pattern m = gr_pattern_of_J();
  gr_real_solve(&m, &r->factors.real, b);
}

GR_FN void gr_radau_solve_complex(const gr_radau_room *r, double *re, double *im) {
  const gr_pattern m = gr_pattern_of_J();
  gr_complex_solve(&m, &r->factors.complex, re, im);
}

GR_FN gr_pattern gr_radau_pattern_of_whole(const gr_all_factors *f) {
  const gr_pattern m = {3 * GR_N, f->begin, f->row, f->order, f->wanted, f->block};
  return m;
}

/* columns of the stages one after the other; eliminated as those of one stage, three at a time */
GR_FN void gr_radau_whole_entries(const gr_radau_room *r, const gr_all_factors *f, double h) {
  int at = 0;
  for (long b = 0; b < 3; b++)
    for (long j = 0; j < GR_N; j++) {
      f->begin[b * GR_N + j] = at;
      for (long c = 0; c < 3; c++) {
        const double a = gr_radau_inverse_entry(c, b) / h;
        if (c != b && j < GR_NX) {
          f->row[at] = (int)(c * GR_N + j);
          f->whole.a[at++] = a;
        }
        for (int e = gr_J_begin[j]; c == b && e < gr_J_begin[j + 1]; e++) {
          f->row[at] = (int)(b * GR_N) + gr_J_row[e];
          f->whole.a[at++] = (gr_J_row[e] == j && j < GR_NX ? a : 0.0) - r->jacs[b * GR_J_SIZE + e];
        }
      }
    }
  f->begin[3 * GR_N] = at;
  for (long i = 0; i < 3 * GR_N; i++) {
    f->order[i] = (int)(i % 3 * GR_N) + gr_J_order[i / 3];
    f->wanted[i] = (int)(i % 3 * GR_N) + gr_J_wanted[i / 3];
    f->block[i] = 3 * gr_J_block[i / 3];
  }
}

GR_FN long gr_radau_factor_whole(gr_task *k, gr_radau_room *r, double h) {
  const gr_all_factors f = gr_all_factors_of(k);
  const gr_pattern m = gr_radau_pattern_of_whole(&f);
  gr_radau_whole_entries(r, &f, h);
  k->factorizations++;
  return gr_refused(k, gr_real_factor(&m, &f.whole));
}

GR_FN void gr_radau_solve_whole(const gr_radau_room *r, double *b) {
  const gr_pattern m = gr_radau_pattern_of_whole(&r->factors);
  gr_real_solve(&m, &r->factors.whole, b);
}

#else

/* g/h M - J and (a + ib)/h M - J, factored; answers 0 or the refused column + 1 */
GR_FN long gr_radau_factor(gr_task *k, gr_radau_room *r, double h) {
  for (long i = 0; i < GR_N * GR_N; i++) {
    r->real[i] = -r->jac[i];
    r->re[i] = -r->jac[i];
    r->im[i] = 0.0;
  }
  for (long i = 0; i < GR_NX; i++) {
    r->real[i * (GR_N + 1)] += GR_RADAU_EIG_G / h;
    r->re[i * (GR_N + 1)] += GR_RADAU_EIG_A / h;
    r->im[i * (GR_N + 1)] = GR_RADAU_EIG_B / h;
  }
  k->factorizations++;
  const long refused = gr_lu(GR_N, r->real, r->pivot_real);
  return refused ? refused : gr_zlu(GR_N, r->re, r->im, r->pivot_complex);
}

GR_FN long gr_radau_has_factors(const gr_radau_room *r) {
  (void)r;
  return 1;
}

GR_FN void gr_radau_solve_real(const gr_radau_room *r, double *b) { gr_lu_solve(GR_N, r->real, r->pivot_real, b); }

GR_FN void gr_radau_solve_complex(const gr_radau_room *r, double *re, double *im) {
  gr_zlu_solve(GR_N, r->re, r->im, r->pivot_complex, re, im);
}

GR_FN long gr_radau_factor_whole(gr_task *k, gr_radau_room *r, double h) {
  const long n = GR_N, m = 3 * GR_N;
  for (long i = 0; i < m * m; i++) r->whole[i] = 0.0;
  for (long b = 0; b < 3; b++) {
    for (long j = 0; j < n; j++)
      for (long i = 0; i < n; i++) r->whole[b * n + i + (b * n + j) * m] = -r->jacs[i + j * n + b * n * n];
    for (long c = 0; c < 3; c++)
      for (long i = 0; i < GR_NX; i++) r->whole[c * n + i + (b * n + i) * m] += gr_radau_inverse_entry(c, b) / h;
  }
  k->factorizations++;
  return gr_lu(m, r->whole, r->pivot_whole);
}

GR_FN void gr_radau_solve_whole(const gr_radau_room *r, double *b) {
  gr_lu_solve(3 * GR_N, r->whole, r->pivot_whole, b);
}

#endif
#endif
