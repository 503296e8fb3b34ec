/* Solves with the transposes of a model's factored matrices, dense or sparse: dF/dz, those of a Radau IIA step. */
#ifndef GR_TRANSPOSED_H
#define GR_TRANSPOSED_H

#include "gr_radau_matrices.h"
#include "gr_root.h"

#if GR_SPARSE

#if GR_HAS_Z
GR_FN void gr_solve_z_transposed(const gr_task *k, const gr_newton *n, double *b) {
  const gr_pattern m = gr_pattern_of_z();
  const gr_all_factors f = gr_all_factors_of(k);
  (void)n;
  gr_real_solve_transposed(&m, &f.z, b);
}
#endif

GR_FN void gr_radau_solve_real_transposed(const gr_radau_room *r, double *b) {
  const gr_pattern m = gr_pattern_of_J();
  gr_real_solve_transposed(&m, &r->factors.real, b);
}

GR_FN void gr_radau_solve_complex_transposed(const gr_radau_room *r, double *re, double *im) {
  const gr_pattern m = gr_pattern_of_J();
  gr_complex_solve_transposed(&m, &r->factors.complex, re, im);
}

GR_FN void gr_radau_solve_whole_transposed(const gr_radau_room *r, double *b) {
  const gr_pattern m = gr_radau_pattern_of_whole(&r->factors);
  gr_real_solve_transposed(&m, &r->factors.whole, b);
}

#else

/* b: n, becomes the solution of A'x = b, with the factors of A (gr_linear.h) */
GR_FN void gr_lu_solve_transposed(long n, const double *a, const long *pivot, double *b) {
  for (long k = 0; k < n; k++) {
    double sum = b[k];
    for (long i = 0; i < k; i++) sum -= a[i + k * n] * b[i];
    b[k] = sum * a[k + k * n];
  }
  for (long k = n - 1; k >= 0; k--)
    for (long i = k + 1; i < n; i++) b[k] -= a[i + k * n] * b[i];
  for (long k = n - 1; k >= 0; k--) {
    const double f = b[pivot[k]];
    b[pivot[k]] = b[k];
    b[k] = f;
  }
}

GR_FN void gr_zlu_solve_transposed(long n, const double *ar, const double *ai, const long *pivot, double *br, double *bi) {
  for (long k = 0; k < n; k++) {
    double re = br[k], im = bi[k];
    for (long i = 0; i < k; i++) {
      re -= ar[i + k * n] * br[i] - ai[i + k * n] * bi[i];
      im -= ar[i + k * n] * bi[i] + ai[i + k * n] * br[i];
    }
    br[k] = re * ar[k + k * n] - im * ai[k + k * n];
    bi[k] = re * ai[k + k * n] + im * ar[k + k * n];
  }
  for (long k = n - 1; k >= 0; k--)
    for (long i = k + 1; i < n; i++) {
      br[k] -= ar[i + k * n] * br[i] - ai[i + k * n] * bi[i];
      bi[k] -= ar[i + k * n] * bi[i] + ai[i + k * n] * br[i];
    }
  for (long k = n - 1; k >= 0; k--) {
    const double re = br[pivot[k]], im = bi[pivot[k]];
    br[pivot[k]] = br[k];
    bi[pivot[k]] = bi[k];
    br[k] = re;
    bi[k] = im;
  }
}

#if GR_HAS_Z
GR_FN void gr_solve_z_transposed(const gr_task *k, const gr_newton *n, double *b) {
  (void)k;
  gr_lu_solve_transposed(GR_NZ, n->lu, n->pivot, b);
}
#endif

GR_FN void gr_radau_solve_real_transposed(const gr_radau_room *r, double *b) {
  gr_lu_solve_transposed(GR_N, r->real, r->pivot_real, b);
}

GR_FN void gr_radau_solve_complex_transposed(const gr_radau_room *r, double *re, double *im) {
  gr_zlu_solve_transposed(GR_N, r->re, r->im, r->pivot_complex, re, im);
}

GR_FN void gr_radau_solve_whole_transposed(const gr_radau_room *r, double *b) {
  gr_lu_solve_transposed(3 * GR_N, r->whole, r->pivot_whole, b);
}

#endif
#endif
