/* Sums over points of a spline program: residuals, Jacobians and the normal equations, added up in place.
 *
 * At each point, with r rows, n states, m coefficients that act and p unknowns,
 *
 *   rho = U e,   B = U (S - V phi),   T = -U G        (S absent for data)
 *   A += [B T]' [B T] + [phi 0; 0 d]' H [phi 0; 0 d],      g += [B T]' rho
 *
 * size = {points, r, n, m, p, moved, count, exact, has slopes}. Arrays are row by row; the band is stored by distance
 * from the diagonal, band[d * count + j] being the entry (j + d, j). Work holds (2r + k + n + moved) k numbers, k = m + p.
 */
#include <string.h>

#if defined(_WIN32)
#define GR_EXPORT __declspec(dllexport)
#else
#define GR_EXPORT __attribute__((visibility("default")))
#endif

GR_EXPORT long gr_spline_sums(const long long *size, const double *phi, const double *slope, const long long *index,
                    const double *V, const double *G, const double *U, const double *e, const double *H,
                    const double *d, double *rho, double *B, double *T, double *band, double *border, double *corner,
                    double *gradient, double *total, double *work) {
  const long long P = size[0], r = size[1], n = size[2], m = size[3], p = size[4], q = size[5], N = size[6];
  const long long exact = size[7], moving = size[8], k = m + p, z = n + q;
  double *J, *D, *C, *HT;
  long long s, a, b, i, j;
  J = work;
  D = J + r * k;
  C = D + r * k;
  HT = C + k * k;
  for (s = 0; s < P; s++, phi += n * m, index += m, V += r * n, G += r * p, U += r * r, e += r) {
    for (a = 0; a < r; a++) {
      double *row = D + a * k;
      for (b = 0; b < m; b++) row[b] = moving ? slope[a * m + b] : 0.0;
      for (i = 0; i < n; i++) {
        const double f = V[a * n + i];
        if (f == 0.0) continue;
        for (b = 0; b < m; b++) row[b] -= f * phi[i * m + b];
      }
      for (b = 0; b < p; b++) D[a * k + m + b] = -G[a * p + b];
    }
    for (a = 0; a < r; a++) {
      double x = 0.0;
      for (b = 0; b < k; b++) J[a * k + b] = 0.0;
      for (i = 0; i < r; i++) {
        const double f = U[a * r + i];
        if (f == 0.0) continue;
        x += f * e[i];
        for (b = 0; b < k; b++) J[a * k + b] += f * D[i * k + b];
      }
      rho[a] = x;
      memcpy(B + a * m, J + a * k, (size_t)m * sizeof(double));
      memcpy(T + a * p, J + a * k + m, (size_t)p * sizeof(double));
    }
    for (a = 0; a < k * k; a++) C[a] = 0.0;
    for (i = 0; i < r; i++) {
      const double *row = J + i * k;
      for (a = 0; a < k; a++) {
        const double f = row[a];
        if (f == 0.0) continue;
        for (b = 0; b <= a; b++) C[a * k + b] += f * row[b];
      }
    }
    if (exact) {
      for (i = 0; i < z; i++) {
        double *row = HT + i * k;
        for (b = 0; b < k; b++) row[b] = 0.0;
        for (j = 0; j < n; j++) {
          const double f = H[i * z + j];
          if (f == 0.0) continue;
          for (b = 0; b < m; b++) row[b] += f * phi[j * m + b];
        }
        for (j = 0; j < q; j++) {
          const double f = H[i * z + n + j];
          if (f == 0.0) continue;
          for (b = 0; b < p; b++) row[m + b] += f * d[b * q + j];
        }
      }
      for (i = 0; i < z; i++) {
        const double *row = HT + i * k;
        for (a = i < n ? 0 : m; a < (i < n ? m : k); a++) {
          const double f = i < n ? phi[i * m + a] : d[(a - m) * q + i - n];
          if (f == 0.0) continue;
          for (b = 0; b <= a; b++) C[a * k + b] += f * row[b];
        }
      }
      H += z * z;
    }
    for (a = 0; a < m; a++) {
      const long long ia = index[a];
      double g = 0.0;
      for (i = 0; i < r; i++) g += J[i * k + a] * rho[i];
      gradient[ia] += g;
      for (b = 0; b <= a; b++) {
        const long long ib = index[b], low = ia < ib ? ia : ib, far = ia < ib ? ib - ia : ia - ib;
        band[far * N + low] += C[a * k + b];
      }
    }
    for (a = 0; a < p; a++) {
      double g = 0.0;
      for (i = 0; i < r; i++) g += J[i * k + m + a] * rho[i];
      total[a] += g;
      for (b = 0; b < m; b++) border[index[b] * p + a] += C[(m + a) * k + b];
      for (b = 0; b <= a; b++) {
        corner[a * p + b] += C[(m + a) * k + m + b];
        if (b != a) corner[b * p + a] += C[(m + a) * k + m + b];
      }
    }
    rho += r;
    B += r * m;
    T += r * p;
    if (moving) slope += n * m;
  }
  return 0;
}

/* Entries of the inverse inside the band from the Cholesky factor of a band matrix (Takahashi), column by column from
 * the last one. size = {width, n}; L and S hold column j from j * (width + 1), entry (j + d, j) at d.
 */
GR_EXPORT long gr_inverse_band(const long long *size, const double *L, double *S) {
  const long long w = size[0], n = size[1], step = w + 1;
  long long j, d, k;
  for (j = n - 1; j >= 0; j--) {
    const long long m = n - 1 - j < w ? n - 1 - j : w;
    const double *l = L + j * step;
    double *s = S + j * step, own = 0.0;
    for (d = m; d > 0; d--) {
      double x = 0.0;
      for (k = 1; k <= d; k++) x += l[k] * S[(j + k) * step + d - k];
      for (k = d + 1; k <= m; k++) x += l[k] * S[(j + d) * step + k - d];
      s[d] = -x / l[0];
      own += l[d] * s[d];
    }
    for (d = m + 1; d < step; d++) s[d] = 0.0;
    s[0] = (1.0 / l[0] - own) / l[0];
  }
  return 0;
}
