/* Solves dense linear equations of the size of one model: P A = L U, real and complex.
 *
 * Column-major, in place. The row with the largest entry relative to its own size becomes the pivot, so that
 * residuals in different units do not decide the order of elimination. L has a unit diagonal; the diagonal of the
 * result holds 1/U_kk, because one factorization serves many solutions and a division costs as much as a column of n
 * = 8.
 *
 * A pivot is refused when it is not above the rounding of its own elimination,
 *
 *   |u_kk| <= c eps sum_m |l_km u_mk|      (Higham, Accuracy and Stability of Numerical Algorithms, section 9.3),
 *
 * a bound that does not change when rows or columns are rescaled. Entries that are not finite are refused as well.
 * The factorizations answer 0, or k + 1 when column k has no pivot; then the content of the matrix is undefined.
 */
#ifndef GR_LINEAR_H
#define GR_LINEAR_H

#include <float.h>
#include <math.h>

#include "gr_task.h"

/* largest system: the three stages of the implicit method at once, or all constraints */
#ifndef GR_LU_MAX
#define GR_LU_MAX (3 * (GR_N) + (GR_NC) + 1)
#endif

/* C99's restrict under the name that C++ and CUDA compilers know too */
#define GR_RESTRICT __restrict

#define GR_LU_NOISE (4.0 * DBL_EPSILON)

/* 1 / largest |entry| of each row; 0 for an empty row */
GR_FN void gr_row_weights(long n, const double *re, const double *im, double *weight) {
  for (long i = 0; i < n; i++) weight[i] = 0.0;
  for (long j = 0; j < n; j++)
    for (long i = 0; i < n; i++) {
      const double size = fabs(re[i + j * n]) + (im ? fabs(im[i + j * n]) : 0.0);
      weight[i] = weight[i] < size ? size : weight[i];
    }
  for (long i = 0; i < n; i++) weight[i] = weight[i] > 0.0 ? 1.0 / weight[i] : 0.0;
}

GR_FN void gr_swap_rows(long n, double *a, long i, long k) {
  for (long j = 0; j < n; j++) {
    const double kept = a[i + j * n];
    a[i + j * n] = a[k + j * n];
    a[k + j * n] = kept;
  }
}

/* a: n x n, becomes L and U; pivot: n row exchanges */
GR_FN long gr_lu(long n, double *a, long *pivot) {
  double weight[GR_LU_MAX];
  gr_row_weights(n, a, 0, weight);
  for (long k = 0; k < n; k++) {
    double *GR_RESTRICT ck = a + k * n;
    long p = k;
    double best = -1.0, noise = 0.0;
    for (long i = k; i < n; i++) {
      const double size = fabs(ck[i]) * weight[i];
      if (size > best) {
        best = size;
        p = i;
      }
    }
    for (long m = 0; m < k; m++) noise += fabs(a[p + m * n] * ck[m]);
    if (!(fabs(ck[p]) > GR_LU_NOISE * noise) || !(fabs(ck[p]) <= DBL_MAX)) return k + 1;
    pivot[k] = p;
    if (p != k) {
      gr_swap_rows(n, a, p, k);
      weight[p] = weight[k];
    }
    const double inverse = 1.0 / ck[k];
    ck[k] = inverse;
    for (long i = k + 1; i < n; i++) ck[i] *= inverse;
    for (long j = k + 1; j < n; j++) {
      double *GR_RESTRICT cj = a + j * n;
      const double f = cj[k];
      if (f != 0.0)
        for (long i = k + 1; i < n; i++) cj[i] -= ck[i] * f;
    }
  }
  return 0;
}

/* b: n, becomes the solution of A x = b */
GR_FN void gr_lu_solve(long n, const double *a, const long *pivot, double *GR_RESTRICT b) {
  for (long k = 0; k < n; k++) {
    const double f = b[pivot[k]];
    b[pivot[k]] = b[k];
    b[k] = f;
  }
  for (long k = 0; k < n; k++) {
    const double *GR_RESTRICT ck = a + k * n;
    const double f = b[k];
    for (long i = k + 1; i < n; i++) b[i] -= ck[i] * f;
  }
  for (long k = n - 1; k >= 0; k--) {
    const double *GR_RESTRICT ck = a + k * n;
    const double f = b[k] * ck[k];
    b[k] = f;
    for (long i = 0; i < k; i++) b[i] -= ck[i] * f;
  }
}

/* the same for A = ar + i ai; the size of a complex number is |re| + |im|, which is cheap and good enough to choose */
GR_FN long gr_zlu(long n, double *ar, double *ai, long *pivot) {
  double weight[GR_LU_MAX];
  gr_row_weights(n, ar, ai, weight);
  for (long k = 0; k < n; k++) {
    double *GR_RESTRICT cr = ar + k * n, *GR_RESTRICT ci = ai + k * n;
    long p = k;
    double best = -1.0, noise = 0.0;
    for (long i = k; i < n; i++) {
      const double size = (fabs(cr[i]) + fabs(ci[i])) * weight[i];
      if (size > best) {
        best = size;
        p = i;
      }
    }
    for (long m = 0; m < k; m++) noise += (fabs(ar[p + m * n]) + fabs(ai[p + m * n])) * (fabs(cr[m]) + fabs(ci[m]));
    const double size = fabs(cr[p]) + fabs(ci[p]);
    if (!(size > GR_LU_NOISE * noise) || !(size <= DBL_MAX)) return k + 1;
    pivot[k] = p;
    if (p != k) {
      gr_swap_rows(n, ar, p, k);
      gr_swap_rows(n, ai, p, k);
      weight[p] = weight[k];
    }
    /* scaled first: |u|^2 may overflow where u does not */
    const double vr = cr[k] / size, vi = ci[k] / size, norm = (vr * vr + vi * vi) * size;
    const double wr = vr / norm, wi = -vi / norm;
    cr[k] = wr;
    ci[k] = wi;
    for (long i = k + 1; i < n; i++) {
      const double re = cr[i] * wr - ci[i] * wi;
      ci[i] = cr[i] * wi + ci[i] * wr;
      cr[i] = re;
    }
    for (long j = k + 1; j < n; j++) {
      double *GR_RESTRICT dr = ar + j * n, *GR_RESTRICT di = ai + j * n;
      const double fr = dr[k], fi = di[k];
      if (fr != 0.0 || fi != 0.0)
        for (long i = k + 1; i < n; i++) {
          dr[i] -= cr[i] * fr - ci[i] * fi;
          di[i] -= cr[i] * fi + ci[i] * fr;
        }
    }
  }
  return 0;
}

GR_FN void gr_zlu_solve(long n, const double *ar, const double *ai, const long *pivot, double *GR_RESTRICT br,
                        double *GR_RESTRICT bi) {
  for (long k = 0; k < n; k++) {
    const double fr = br[pivot[k]], fi = bi[pivot[k]];
    br[pivot[k]] = br[k];
    bi[pivot[k]] = bi[k];
    br[k] = fr;
    bi[k] = fi;
  }
  for (long k = 0; k < n; k++) {
    const double *GR_RESTRICT cr = ar + k * n, *GR_RESTRICT ci = ai + k * n;
    const double fr = br[k], fi = bi[k];
    for (long i = k + 1; i < n; i++) {
      br[i] -= cr[i] * fr - ci[i] * fi;
      bi[i] -= cr[i] * fi + ci[i] * fr;
    }
  }
  for (long k = n - 1; k >= 0; k--) {
    const double *GR_RESTRICT cr = ar + k * n, *GR_RESTRICT ci = ai + k * n;
    const double fr = br[k] * cr[k] - bi[k] * ci[k], fi = br[k] * ci[k] + bi[k] * cr[k];
    br[k] = fr;
    bi[k] = fi;
    for (long i = 0; i < k; i++) {
      br[i] -= cr[i] * fr - ci[i] * fi;
      bi[i] -= cr[i] * fi + ci[i] * fr;
    }
  }
}

#endif
