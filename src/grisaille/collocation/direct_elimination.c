/* The Newton step of direct collocation, element by element; formulas and names as in direct_elimination.py.
 *
 * size = {elements, past, inner, noise, slots, n, nz}; an element's step is a = (X_prev, y, v, theta) of length
 * N = past + inner + noise + slots, and s = (1, dtheta, dX_prev, dv) has length w = 1 + slots + past + noise, of which
 * the first q = 1 + slots + past are known when the element is reached. Arrays are row by row unless said otherwise.
 */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include <math.h>
#include <string.h>

#if defined(_WIN32)
#define GR_EXPORT __declspec(dllexport)
#else
#define GR_EXPORT __attribute__((visibility("default")))
#endif

/* A X = B by elimination with row exchanges, X in the place of B; A is m by m, B m by k. Returns 1 where A is
 * singular. */
static int solve(long long m, long long k, double *A, double *B) {
  long long i, j, c;
  for (c = 0; c < m; c++) {
    long long best = c;
    for (i = c + 1; i < m; i++)
      if (fabs(A[i * m + c]) > fabs(A[best * m + c])) best = i;
    if (!(fabs(A[best * m + c]) > 0.0)) return 1;
    if (best != c) {
      for (j = c; j < m; j++) {
        const double x = A[c * m + j];
        A[c * m + j] = A[best * m + j];
        A[best * m + j] = x;
      }
      for (j = 0; j < k; j++) {
        const double x = B[c * k + j];
        B[c * k + j] = B[best * k + j];
        B[best * k + j] = x;
      }
    }
    for (i = c + 1; i < m; i++) {
      const double f = A[i * m + c] / A[c * m + c];
      if (f == 0.0) continue;
      for (j = c + 1; j < m; j++) A[i * m + j] -= f * A[c * m + j];
      for (j = 0; j < k; j++) B[i * k + j] -= f * B[c * k + j];
    }
  }
  for (c = m - 1; c >= 0; c--) {
    const double f = 1.0 / A[c * m + c];
    for (j = 0; j < k; j++) B[c * k + j] *= f;
    for (i = 0; i < c; i++) {
      const double g = A[i * m + c];
      if (g == 0.0) continue;
      for (j = 0; j < k; j++) B[i * k + j] -= g * B[c * k + j];
    }
  }
  return 0;
}

/* dy = T s and the quadratic form S of s. J is column by column, (elements, N, inner). work: inner^2 + N w. Returns the
 * number of the first element whose equations are singular, counted from 1, or 0. */
GR_EXPORT long gr_condense(const long long *size, const double *J, const double *H, const double *g, const double *c,
                           const double *damping, double *M, double *S, double *onto, double *work) {
  const long long E = size[0], past = size[1], m = size[2], noise = size[3], slots = size[4], n = size[5], nz = size[6];
  const long long N = past + m + noise + slots, w = 1 + slots + past + noise, Q = 1 + slots + n;
  const long long part[3] = {N - slots, 0, past + m}, length[3] = {slots, past, noise};
  double *A = work, *HM = work + m * m;
  long long e, i, j, k, b, at;
  for (e = 0; e < E; e++, J += N * m, H += N * N, g += N, c += m, damping += noise, M += N * w, S += w * w) {
    double *T = M + past * w;
    memset(M, 0, (size_t)(N * w) * sizeof(double));
    for (i = 0; i < m; i++) {
      T[i * w] = -c[i];
      for (j = 0; j < m; j++) A[i * m + j] = J[(past + j) * m + i];
    }
    for (b = 0, at = 1; b < 3; at += length[b], b++)
      for (j = 0; j < length[b]; j++)
        for (i = 0; i < m; i++) T[i * w + at + j] = -J[(part[b] + j) * m + i];
    if (solve(m, w, A, T)) return (long)(e + 1);
    for (b = 0, at = 1; b < 3; at += length[b], b++)
      for (j = 0; j < length[b]; j++) M[(part[b] + j) * w + at + j] = 1.0;
    for (i = 0; i < N; i++) {
      double *row = HM + i * w;
      const double *h = H + i * N;
      row[0] = 0.0;
      for (b = 0, at = 1; b < 3; at += length[b], b++)
        for (j = 0; j < length[b]; j++) row[at + j] = h[part[b] + j];
      for (k = 0; k < m; k++) {
        const double f = h[past + k];
        if (f == 0.0) continue;
        for (j = 0; j < w; j++) row[j] += f * T[k * w + j];
      }
    }
    memset(S, 0, (size_t)w * sizeof(double));
    for (b = 0, at = 1; b < 3; at += length[b], b++)
      for (i = 0; i < length[b]; i++) memcpy(S + (at + i) * w, HM + (part[b] + i) * w, (size_t)w * sizeof(double));
    for (k = 0; k < m; k++) {
      const double *row = HM + (past + k) * w;
      for (i = 0; i < w; i++) {
        const double f = T[k * w + i];
        if (f == 0.0) continue;
        for (j = 0; j < w; j++) S[i * w + j] += f * row[j];
      }
    }
    for (j = 0; j < w; j++) {
      double x = 0.0;
      for (i = 0; i < N; i++) x += g[i] * M[i * w + j];
      S[j] += x;
      S[j * w] += x;
    }
    for (i = 0; i < noise; i++) S[(w - noise + i) * (w + 1)] += damping[i];
    memset(onto, 0, (size_t)(Q * w) * sizeof(double));
    for (i = 0; i < 1 + slots; i++) onto[i * w + i] = 1.0;
    memcpy(onto + (1 + slots) * w, M + (past + m - n - nz) * w, (size_t)(n * w) * sizeof(double));
    onto += Q * w;
  }
  return 0;
}

/* Backwards over the elements of one record; size as above, for these elements, past = n. P is (elements + 1, q, q),
 * the last block given; K (elements, noise, q), root (elements, noise, noise). work: q w + w^2. Returns the number of
 * the element whose curvature is not positive, counted from 1, or 0. */
GR_EXPORT long gr_sweep(const long long *size, const double *S, const double *onto, double *P, double *K, double *root,
                        double *work) {
  const long long E = size[0], noise = size[3], slots = size[4], n = size[5];
  const long long h = 1 + slots, q = h + n, w = q + noise;
  double *PO = work, *F = work + q * w;
  long long e, i, j, k;
  for (e = E - 1; e >= 0; e--) {
    const double *end = onto + (e * q + h) * w, *after = P + (e + 1) * q * q;
    double *left = P + e * q * q, *gain = K + e * noise * q, *L = root + e * noise * noise;
    for (i = 0; i < q; i++) {
      double *row = PO + i * w;
      for (j = 0; j < h; j++) row[j] = after[i * q + j];
      for (j = h; j < w; j++) row[j] = 0.0;
      for (k = 0; k < n; k++) {
        const double f = after[i * q + h + k];
        if (f == 0.0) continue;
        for (j = 0; j < w; j++) row[j] += f * end[k * w + j];
      }
    }
    memcpy(F, S + e * w * w, (size_t)(w * w) * sizeof(double));
    for (i = 0; i < h; i++)
      for (j = 0; j < w; j++) F[i * w + j] += PO[i * w + j];
    for (k = 0; k < n; k++)
      for (i = 0; i < w; i++) {
        const double f = end[k * w + i];
        if (f == 0.0) continue;
        for (j = 0; j < w; j++) F[i * w + j] += f * PO[(h + k) * w + j];
      }
    for (i = 0; i < noise; i++) {
      for (j = 0; j <= i; j++) {
        double x = F[(q + i) * w + q + j];
        for (k = 0; k < j; k++) x -= L[i * noise + k] * L[j * noise + k];
        if (i != j) {
          L[i * noise + j] = x / L[j * noise + j];
        } else {
          if (!(x > 0.0) || !isfinite(x)) return (long)(e + 1);
          L[i * noise + i] = sqrt(x);
        }
      }
      for (j = i + 1; j < noise; j++) L[i * noise + j] = 0.0;
    }
    for (i = 0; i < noise; i++) {
      double *row = gain + i * q;
      for (j = 0; j < q; j++) row[j] = -F[(q + i) * w + j];
      for (k = 0; k < i; k++)
        for (j = 0; j < q; j++) row[j] -= L[i * noise + k] * gain[k * q + j];
      for (j = 0; j < q; j++) row[j] /= L[i * noise + i];
    }
    for (i = noise - 1; i >= 0; i--) {
      double *row = gain + i * q;
      for (k = i + 1; k < noise; k++)
        for (j = 0; j < q; j++) row[j] -= L[k * noise + i] * gain[k * q + j];
      for (j = 0; j < q; j++) row[j] /= L[i * noise + i];
    }
    for (i = 0; i < q; i++)
      for (k = 0; k < noise; k++) {
        const double f = F[i * w + q + k];
        for (j = 0; j < q; j++) F[i * w + j] += f * gain[k * q + j];
      }
    for (i = 0; i < q; i++)
      for (j = 0; j < q; j++) left[i * q + j] = 0.5 * (F[i * w + j] + F[j * w + i]);
  }
  return 0;
}

/* Forwards over the elements of one record, D columns side by side: path (elements, w, D) has (1, dtheta) in place, X
 * (n, D) is where the first element starts, and where the last one ends when all is done. */
GR_EXPORT long gr_substitute(const long long *size, const long long *columns, const double *onto, const double *K,
                             double *X, double *path) {
  const long long E = size[0], noise = size[3], slots = size[4], n = size[5];
  const long long h = 1 + slots, q = h + n, w = q + noise, D = *columns;
  long long e, i, j, k;
  for (e = 0; e < E; e++, path += w * D, K += noise * q) {
    const double *end = onto + (e * q + h) * w;
    memcpy(path + h * D, X, (size_t)(n * D) * sizeof(double));
    for (i = 0; i < noise; i++) {
      double *row = path + (q + i) * D;
      for (j = 0; j < D; j++) row[j] = 0.0;
      for (k = 0; k < q; k++)
        for (j = 0; j < D; j++) row[j] += K[i * q + k] * path[k * D + j];
    }
    for (i = 0; i < n; i++) {
      for (j = 0; j < D; j++) X[i * D + j] = 0.0;
      for (k = 0; k < w; k++)
        for (j = 0; j < D; j++) X[i * D + j] += end[i * w + k] * path[k * D + j];
    }
  }
  return 0;
}

/* Covariances at fixed theta, forwards over the elements of one record: X (elements + 1, n, n) of the states at their
 * ends, the first given, and joint (elements, n + noise, n + noise) of (X_prev, v). work: 2 noise^2 + n (n + noise). */
GR_EXPORT long gr_scatter(const long long *size, const double *onto, const double *K, const double *root, double *X,
                          double *joint, double *work) {
  const long long E = size[0], noise = size[3], slots = size[4], n = size[5];
  const long long h = 1 + slots, q = h + n, w = q + noise, s = n + noise;
  double *I = work, *M = I + noise * noise, *G = M + noise * noise;
  long long e, i, j, k;
  for (e = 0; e < E; e++, K += noise * q, root += noise * noise, X += n * n, joint += s * s) {
    const double *end = onto + (e * q + h) * w + h;
    double *next = X + n * n;
    for (j = 0; j < noise; j++)
      for (i = 0; i < noise; i++) {
        double x = i == j ? 1.0 : 0.0;
        for (k = j; k < i; k++) x -= root[i * noise + k] * I[k * noise + j];
        I[i * noise + j] = i < j ? 0.0 : x / root[i * noise + i];
      }
    for (i = 0; i < noise; i++)
      for (j = 0; j <= i; j++) {
        double x = 0.0;
        for (k = i; k < noise; k++) x += I[k * noise + i] * I[k * noise + j];
        M[i * noise + j] = M[j * noise + i] = x;
      }
    for (i = 0; i < n; i++) memcpy(joint + i * s, X + i * n, (size_t)n * sizeof(double));
    for (i = 0; i < noise; i++)
      for (j = 0; j < n; j++) {
        double x = 0.0;
        for (k = 0; k < n; k++) x += K[i * q + h + k] * X[k * n + j];
        joint[(n + i) * s + j] = joint[j * s + n + i] = x;
      }
    for (i = 0; i < noise; i++)
      for (j = 0; j < noise; j++) {
        double x = M[i * noise + j];
        for (k = 0; k < n; k++) x += joint[(n + i) * s + k] * K[j * q + h + k];
        joint[(n + i) * s + n + j] = x;
      }
    for (i = 0; i < n; i++)
      for (j = 0; j < s; j++) {
        double x = 0.0;
        for (k = 0; k < s; k++) x += end[i * w + k] * joint[k * s + j];
        G[i * s + j] = x;
      }
    for (i = 0; i < n; i++)
      for (j = 0; j <= i; j++) {
        double x = 0.0, y = 0.0;
        for (k = 0; k < s; k++) {
          x += G[i * s + k] * end[j * w + k];
          y += G[j * s + k] * end[i * w + k];
        }
        next[i * n + j] = next[j * n + i] = 0.5 * (x + y);
      }
  }
  return 0;
}
