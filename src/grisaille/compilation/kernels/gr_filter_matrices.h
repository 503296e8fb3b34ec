/* Multiplies and solves with matrices of as many rows as a filter has states, row by row, along directions and
 * backwards. Included with gr_lanes.h for derivatives forward, without it for those in reverse, with GR_VALUES for none.
 */
#ifndef GR_FILTER_MATRICES_H
#define GR_FILTER_MATRICES_H

#include <string.h>

#define GR_MM (GR_NM * GR_NM)
#define GR_HALF (GR_NM * (GR_NM + 1) / 2)

/* matrices of many states lie in memory of the thread's own, not on its stack */
#ifndef GR_MOST_ON_STACK
#define GR_MOST_ON_STACK 32
#endif
#if GR_NM > GR_MOST_ON_STACK
#define GR_OWN GR_KEPT
#else
#define GR_OWN
#endif

/* short loops of known length: unrolled they take two thirds of the time, and twice as long to compile */
#if !defined(GR_DRAFT) && defined(__x86_64__) && !defined(__FMA__) && defined(__GNUC__) && !defined(__clang__)
#define GR_UNROLLED
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

/* C (+)= A B, zeros of A skipped; rows of A and B are `wa` and `wb` apart */
GR_FN void gr_times(int r, int m, int c, const double *A, int wa, const double *B, int wb, double *C, int wc, int add) {
  int i, j, l;
  for (i = 0; i < r; i++) {
    double *row = C + i * wc;
    if (!add)
      for (j = 0; j < c; j++) row[j] = 0.0;
    for (l = 0; l < m; l++) {
      const double a = A[i * wa + l], *b = B + l * wb;
      if (a != 0.0)
        for (j = 0; j < c; j++) row[j] += a * b[j];
    }
  }
}

GR_FN void gr_full(const double *half, double *P) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) P[i * GR_NM + j] = P[j * GR_NM + i] = half[at++];
}

/* out = F X F' + Y for symmetric X, Y; F has rows `wf` apart */
GR_FN void gr_between(const double *F, int wf, const double *X, const double *Y, double *out) {
  GR_OWN double FX[GR_MM];
  int i, j, l;
  gr_times(GR_NM, GR_NM, GR_NM, F, wf, X, GR_NM, FX, GR_NM, 0);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j <= i; j++) {
      double sum = Y[i * GR_NM + j];
      for (l = 0; l < GR_NM; l++) sum += FX[i * GR_NM + l] * F[j * wf + l];
      out[i * GR_NM + j] = out[j * GR_NM + i] = sum;
    }
}

GR_FN void gr_add_identity(double *F, int w, double by) {
  int i;
  for (i = 0; i < GR_NM; i++) F[i * w + i] += by;
}

GR_FN void gr_half(const double *P, double *half) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) half[at++] = P[i * GR_NM + j];
}

/* M = I - by A as row exchanges and factors, the unit diagonal of L left out */
GR_FN void gr_factor(const double *A, double by, double *M, long *order) {
  int i, j, k;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) M[i * GR_NM + j] = (i == j) - by * A[i * GR_NM + j];
  for (k = 0; k < GR_NM; k++) {
    int best = k;
    for (i = k + 1; i < GR_NM; i++)
      if (fabs(M[i * GR_NM + k]) > fabs(M[best * GR_NM + k])) best = i;
    order[k] = best;
    if (best != k)
      for (j = 0; j < GR_NM; j++) {
        const double kept = M[k * GR_NM + j];
        M[k * GR_NM + j] = M[best * GR_NM + j];
        M[best * GR_NM + j] = kept;
      }
    for (i = k + 1; i < GR_NM; i++) {
      const double factor = M[i * GR_NM + k] / M[k * GR_NM + k];
      M[i * GR_NM + k] = factor;
      if (factor != 0.0)
        for (j = k + 1; j < GR_NM; j++) M[i * GR_NM + j] -= factor * M[k * GR_NM + j];
    }
  }
}

/* X <- M^-1 X */
GR_FN void gr_solve(const double *M, const long *order, double *X, int columns) {
  int i, j, k;
  for (k = 0; k < GR_NM; k++)
    if (order[k] != k)
      for (j = 0; j < columns; j++) {
        const double kept = X[k * columns + j];
        X[k * columns + j] = X[order[k] * columns + j];
        X[order[k] * columns + j] = kept;
      }
  for (k = 0; k < GR_NM; k++)
    for (i = k + 1; i < GR_NM; i++) {
      const double factor = M[i * GR_NM + k];
      if (factor != 0.0)
        for (j = 0; j < columns; j++) X[i * columns + j] -= factor * X[k * columns + j];
    }
  for (i = GR_NM - 1; i >= 0; i--) {
    for (k = i + 1; k < GR_NM; k++) {
      const double factor = M[i * GR_NM + k];
      if (factor != 0.0)
        for (j = 0; j < columns; j++) X[i * columns + j] -= factor * X[k * columns + j];
    }
    for (j = 0; j < columns; j++) X[i * columns + j] /= M[i * GR_NM + i];
  }
}

#ifdef GR_UNROLLED
#pragma GCC pop_options
#endif

#ifdef GR_ABREAST

/* C += A B where A is a matrix of numbers and B of lanes, or the other way round */
GR_FN void gr_lanes_right(int r, int m, int c, const double *A, int wa, const gr_lanes *B, int wb, gr_lanes *C, int wc) {
  int i, j, l;
  for (i = 0; i < r; i++)
    for (l = 0; l < m; l++) {
      const double a = A[i * wa + l];
      if (a != 0.0)
        for (j = 0; j < c; j++) C[i * wc + j] += a * B[l * wb + j];
    }
}

GR_FN void gr_lanes_left(int r, int m, int c, const gr_lanes *A, int wa, const double *B, int wb, gr_lanes *C, int wc) {
  int i, j, l;
  for (i = 0; i < r; i++)
    for (l = 0; l < m; l++) {
      const gr_lanes a = A[i * wa + l];
      if (!GR_ANY(a)) continue;
      for (j = 0; j < c; j++)
        C[i * wc + j] += a * B[l * wb + j];
    }
}

GR_FN void gr_lanes_zero(long n, gr_lanes *A) {
  long i;
  for (i = 0; i < n; i++) A[i] = GR_ALL(0.0);
}

/* dX <- F dX F' + dF X F' + (dF X F')' + dY; F and dF have rows `wf` and `wd` apart */
GR_FN void gr_lanes_between(const double *F, int wf, const gr_lanes *dF, int wd,
                              const double *X, gr_lanes *dX, const gr_lanes *dY) {
  GR_OWN gr_lanes Z[GR_MM];
  int i, j, l;
  gr_lanes_zero(GR_MM, Z);
  /* Z = F dX / 2 + dF X, then Z F' + (Z F')' */
  gr_lanes_right(GR_NM, GR_NM, GR_NM, F, wf, dX, GR_NM, Z, GR_NM);
  for (i = 0; i < GR_MM; i++) Z[i] *= 0.5;
  gr_lanes_left(GR_NM, GR_NM, GR_NM, dF, wd, X, GR_NM, Z, GR_NM);
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j <= i; j++) {
      gr_lanes sum = dY[i * GR_NM + j];
      for (l = 0; l < GR_NM; l++) sum += Z[i * GR_NM + l] * F[j * wf + l] + Z[j * GR_NM + l] * F[i * wf + l];
      dX[i * GR_NM + j] = dX[j * GR_NM + i] = sum;
    }
}

GR_FN void gr_lanes_full(const gr_lanes *half, gr_lanes *P) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) P[i * GR_NM + j] = P[j * GR_NM + i] = half[at++];
}

GR_FN void gr_lanes_half(const gr_lanes *P, gr_lanes *half) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) half[at++] = P[i * GR_NM + j];
}

/* x <- M^-1 x for one column of lanes */
GR_FN void gr_lanes_solve(const double *M, const long *order, gr_lanes *x) {
  int i, k;
  for (k = 0; k < GR_NM; k++) {
    const gr_lanes kept = x[k];
    x[k] = x[order[k]];
    x[order[k]] = kept;
  }
  for (k = 0; k < GR_NM; k++)
    for (i = k + 1; i < GR_NM; i++) x[i] -= M[i * GR_NM + k] * x[k];
  for (i = GR_NM - 1; i >= 0; i--) {
    for (k = i + 1; k < GR_NM; k++) x[i] -= M[i * GR_NM + k] * x[k];
    x[i] /= M[i * GR_NM + i];
  }
}

#elif !defined(GR_VALUES)

/* C += A' B */
GR_FN void gr_transposed_times(int r, int m, int c, const double *A, int wa, const double *B, int wb, double *C, int wc) {
  int i, j, l;
  for (l = 0; l < m; l++)
    for (i = 0; i < r; i++) {
      const double a = A[l * wa + i];
      if (a != 0.0)
        for (j = 0; j < c; j++) C[i * wc + j] += a * B[l * wb + j];
    }
}

/* C += by A B' */
GR_FN void gr_times_transposed(int r, int m, int c, const double *A, int wa, const double *B, int wb, double *C, int wc,
                               double by) {
  int i, j, l;
  for (i = 0; i < r; i++)
    for (j = 0; j < c; j++) {
      double sum = 0.0;
      for (l = 0; l < m; l++) sum += A[i * wa + l] * B[j * wb + l];
      C[i * wc + j] += by * sum;
    }
}

/* adjoints of F X F' for symmetric X and its symmetric adjoint Y: lF += 2 Y F X, lX += F' Y F; rows of F and lF `wf` apart */
GR_FN void gr_between_back(const double *F, int wf, const double *X, const double *Y, double *lF, double *lX) {
  GR_OWN double YF[GR_MM], back[GR_MM];
  int i;
  gr_times(GR_NM, GR_NM, GR_NM, Y, GR_NM, F, wf, YF, GR_NM, 0);
  gr_times(GR_NM, GR_NM, GR_NM, YF, GR_NM, X, GR_NM, back, GR_NM, 0);
  for (i = 0; i < GR_MM; i++) lF[(i / GR_NM) * wf + i % GR_NM] += 2 * back[i];
  gr_transposed_times(GR_NM, GR_NM, GR_NM, F, wf, YF, GR_NM, lX, GR_NM);
}

/* x <- M'^-1 x */
GR_FN void gr_solve_transposed(const double *M, const long *order, double *x) {
  int i, k;
  for (i = 0; i < GR_NM; i++) {
    for (k = 0; k < i; k++) x[i] -= M[k * GR_NM + i] * x[k];
    x[i] /= M[i * GR_NM + i];
  }
  for (k = GR_NM - 1; k >= 0; k--)
    for (i = k + 1; i < GR_NM; i++) x[k] -= M[i * GR_NM + k] * x[i];
  for (k = GR_NM - 1; k >= 0; k--) {
    const double kept = x[k];
    x[k] = x[order[k]];
    x[order[k]] = kept;
  }
}

/* the symmetric matrix that a symmetric change is multiplied with, from adjoints of the entries of its lower triangle,
 * and back: half of an entry below the diagonal belongs to each of its two places */
GR_FN void gr_shared(const double *half, double *Y) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++, at++) Y[i * GR_NM + j] = Y[j * GR_NM + i] = (i == j ? 1.0 : 0.5) * half[at];
}

/* the symmetric matrix with the same sums of both places of an entry */
GR_FN void gr_symmetric(double *Y) {
  int i, j;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < i; j++) Y[i * GR_NM + j] = Y[j * GR_NM + i] = 0.5 * (Y[i * GR_NM + j] + Y[j * GR_NM + i]);
}

GR_FN void gr_add_gathered(const double *Y, double *half) {
  int i, j, at = 0;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++, at++) half[at] += i == j ? Y[i * GR_NM + j] : Y[i * GR_NM + j] + Y[j * GR_NM + i];
}

#endif
#endif
