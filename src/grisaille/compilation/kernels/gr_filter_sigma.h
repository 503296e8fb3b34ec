/* The unscented filter's coefficients of a linearised step and its update (filtering/unscented.py) as loops over sigma
 * points, values only: a model brings functions of one point, so that what is compiled does not grow with the number of
 * points.
 *
 * The generated file defines GR_NM states, GR_NZ numbers of algebraic unknowns, GR_SPREAD, GR_CENTRE, GR_OTHERS and
 * GR_CENTRE_SPREAD (weights of means and of the centre in covariances), GR_STILL where the drift does not depend on the
 * states, GR_CONSTRAINED where there are hidden constraints, and
 *
 *   gr_flow(t, x, z, u, q, f, W, z_out)        drift, intensity, algebraic unknowns solved
 *   gr_slope(t, x, z, u, q, A)                 Jacobian of the drift, row by row
 *   gr_seen(t, x, z, u, q, h, R, z_out)        prediction of the outputs, their noise
 *   gr_after_update(t, s, u, q, nominal, s_out)  moments on the constraints, algebraic unknowns solved again
 *   gr_tangent(t, x, u, q, nominal, Pi)        projector on the constraints' tangent, row by row
 *   gr_turning(t, x, u, q, nominal, c, N)      how it turns along c, row by row
 */
#ifndef GR_FILTER_SIGMA_H
#define GR_FILTER_SIGMA_H

#include <string.h>

#define GR_POINTS (2 * GR_NM + 1)
#define GR_SQUARE (GR_NM * GR_NM)
#define GR_LOWER (GR_NM * (GR_NM + 1) / 2)
#define GR_KEEP (GR_NZ + 1)
#define GR_NO_VARIANCE 1e-12
#define GR_LARGEST 1e300

/* L with L L' = P, row by row; directions without variance have zero columns (filtering/sigma_points.py) */
GR_FN void gr_sigma_root(const double *P, double *L) {
  int i, j, k;
  for (i = 0; i < GR_SQUARE; i++) L[i] = 0.0;
  for (j = 0; j < GR_NM; j++) {
    const double diagonal = P[j * GR_NM + j];
    double pivot = diagonal, root;
    for (k = 0; k < j; k++) pivot -= L[j * GR_NM + k] * L[j * GR_NM + k];
    if (pivot <= GR_NO_VARIANCE * gr_min(diagonal, GR_LARGEST)) continue;
    root = sqrt(pivot);
    L[j * GR_NM + j] = root;
    for (i = j + 1; i < GR_NM; i++) {
      double rest = P[i * GR_NM + j];
      for (k = 0; k < j; k++) rest -= L[i * GR_NM + k] * L[j * GR_NM + k];
      L[i * GR_NM + j] = rest / root;
    }
  }
}

/* point number k: the centre, then the columns of the root to one side and to the other; its distance in `away` */
GR_FN void gr_sigma_point(const double *x, const double *L, int k, double *point, double *away) {
  const int column = (k - 1) % (GR_NM > 0 ? GR_NM : 1);
  const double by = k == 0 ? 0.0 : k <= GR_NM ? GR_SPREAD : -GR_SPREAD;
  int i;
  for (i = 0; i < GR_NM; i++) {
    away[i] = k == 0 ? 0.0 : by * L[i * GR_NM + column];
    point[i] = x[i] + away[i];
  }
}

/* out = F X F' for symmetric X */
GR_FN void gr_sigma_between(const double *F, const double *X, double *out) {
  double FX[GR_SQUARE];
  int i, j, l;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) {
      double sum = 0.0;
      for (l = 0; l < GR_NM; l++) sum += F[i * GR_NM + l] * X[l * GR_NM + j];
      FX[i * GR_NM + j] = sum;
    }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j <= i; j++) {
      double sum = 0.0;
      for (l = 0; l < GR_NM; l++) sum += FX[i * GR_NM + l] * F[j * GR_NM + l];
      out[i * GR_NM + j] = out[j * GR_NM + i] = sum;
    }
}

/* the largest last corrections of algebraic unknowns so far: the second half of z */
GR_FN void gr_sigma_corrections(double *z, const double *other) {
  int i;
  for (i = GR_NZ / 2; i < GR_NZ; i++) z[i] = gr_max(z[i], other[i]);
}

/* averages over sigma points: f, A, W and z; z is a guess on the way in */
GR_FN void gr_sigma_averages(double t, const double *x, const double *P, double *z, const double *u, const double *q,
                             double *f, double *A, double *W, double *centre) {
  double L[GR_SQUARE], values[GR_POINTS][GR_NM], away[GR_POINTS][GR_NM], point[GR_NM], own[GR_SQUARE], rest[GR_SQUARE];
  double solved[GR_KEEP], there[GR_KEEP], widest[GR_KEEP];
  int i, j, k, l;
  memcpy(solved, z, sizeof(double) * GR_NZ);
  if (GR_NZ) gr_flow(t, x, z, u, q, f, W, solved);
  memcpy(widest, solved, sizeof(double) * GR_NZ);
  gr_slope(t, x, z, u, q, A);
  gr_sigma_root(P, L);
  for (i = 0; i < GR_NM; i++) f[i] = 0.0;
  for (i = 0; i < GR_SQUARE; i++) W[i] = rest[i] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point(x, L, k, point, away[k]);
    gr_flow(t, point, solved, u, q, values[k], own, there);
    gr_sigma_corrections(widest, there);
    for (i = 0; i < GR_NM; i++) f[i] += weight * values[k][i];
    for (i = 0; i < GR_SQUARE; i++) W[i] += weight * own[i];
  }
  for (k = 1; k < GR_POINTS; k++)
    for (j = 0; j < GR_NM; j++) {
      double left = values[k][j] - f[j];
      for (l = 0; l < GR_NM; l++) left -= A[j * GR_NM + l] * away[k][l];
      for (i = 0; i < GR_NM; i++) rest[i * GR_NM + j] += GR_OTHERS * away[k][i] * left;
    }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) W[i * GR_NM + j] += rest[i * GR_NM + j] + rest[j * GR_NM + i];
  memcpy(centre, values[0], sizeof values[0]);
  memcpy(z, widest, sizeof(double) * GR_NZ);
}

/* the same, tangent to the constraints (filtering/projection.py) */
GR_FN void gr_sigma_rates(double t, const double *x, const double *P, double *z, const double *u, const double *q,
                          const double *nominal, double *f, double *A, double *W) {
  double centre[GR_NM];
#ifdef GR_CONSTRAINED
  double along[GR_SQUARE], turning[GR_SQUARE], flat[GR_SQUARE], c[GR_NM];
  int i, j;
  gr_tangent(t, x, u, q, nominal, along);
  gr_sigma_between(along, P, flat);
  gr_sigma_averages(t, x, flat, z, u, q, f, A, W, centre);
  for (i = 0; i < GR_NM; i++) c[i] = f[i] - centre[i];
  gr_turning(t, x, u, q, nominal, c, turning);
  for (i = 0; i < GR_NM; i++) {
    f[i] = centre[i];
    for (j = 0; j < GR_NM; j++) f[i] += along[i * GR_NM + j] * c[j];
  }
  for (i = 0; i < GR_SQUARE; i++) A[i] += turning[i];
  memcpy(flat, W, sizeof flat);
  gr_sigma_between(along, flat, W);
#else
  (void)nominal;
  gr_sigma_averages(t, x, P, z, u, q, f, A, W, centre);
#endif
}

/* X <- (I - by A)^-1 X for columns of X, by elimination with pivots */
GR_FN void gr_sigma_through(const double *A, double by, double *X, int columns) {
  double M[GR_SQUARE];
  int i, j, k;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) M[i * GR_NM + j] = (i == j) - by * A[i * GR_NM + j];
  for (k = 0; k < GR_NM; k++) {
    int best = k;
    for (i = k + 1; i < GR_NM; i++)
      if (fabs(M[i * GR_NM + k]) > fabs(M[best * GR_NM + k])) best = i;
    if (best != k) {
      for (j = 0; j < GR_NM; j++) {
        const double kept = M[k * GR_NM + j];
        M[k * GR_NM + j] = M[best * GR_NM + j];
        M[best * GR_NM + j] = kept;
      }
      for (j = 0; j < columns; j++) {
        const double kept = X[k * columns + j];
        X[k * columns + j] = X[best * columns + j];
        X[best * columns + j] = kept;
      }
    }
    for (i = k + 1; i < GR_NM; i++) {
      const double factor = M[i * GR_NM + k] / M[k * GR_NM + k];
      if (factor == 0.0) continue;
      for (j = k; j < GR_NM; j++) M[i * GR_NM + j] -= factor * M[k * GR_NM + j];
      for (j = 0; j < columns; j++) X[i * columns + j] -= factor * X[k * columns + j];
    }
  }
  for (i = GR_NM - 1; i >= 0; i--)
    for (j = 0; j < columns; j++) {
      double sum = X[i * columns + j];
      for (k = i + 1; k < GR_NM; k++) sum -= M[i * GR_NM + k] * X[k * columns + j];
      X[i * columns + j] = sum / M[i * GR_NM + i];
    }
}

GR_FN void gr_sigma_unpack(const double *s, double *x, double *P, double *z) {
  int i, j, at = GR_NM;
  memcpy(x, s, sizeof(double) * GR_NM);
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) P[i * GR_NM + j] = P[j * GR_NM + i] = s[at++];
  memcpy(z, s + at, sizeof(double) * GR_NZ);
}

GR_FN void gr_sigma_pack(const double *x, const double *P, const double *z, double *s) {
  int i, j, at = GR_NM;
  memcpy(s, x, sizeof(double) * GR_NM);
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) s[at++] = P[i * GR_NM + j];
  memcpy(s + at, z, sizeof(double) * GR_NZ);
}

GR_FN void gr_coefficients(double t, double h, const double *s, const double *ua, const double *um, const double *ub,
                           const double *q, const double *nominal, double *c) {
  double x[GR_NM], P[GR_SQUARE], z[GR_KEEP], f[3][GR_NM], A[GR_SQUARE], W[GR_SQUARE], middle[GR_NM], spread[GR_SQUARE];
  int i, j, k, at;
  gr_sigma_unpack(s, x, P, z);
  gr_sigma_rates(t, x, P, z, ua, q, nominal, f[0], A, W);
  memcpy(middle, x, sizeof x);
  memcpy(spread, P, sizeof P);
#ifndef GR_STILL
  {
    double through[GR_SQUARE];
    for (i = 0; i < GR_SQUARE; i++) through[i] = i % (GR_NM + 1) == 0;
    gr_sigma_through(A, h / 2, through, GR_NM);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) middle[i] += h / 2 * through[i * GR_NM + j] * f[0][j];
    for (i = 0; i < GR_SQUARE; i++) P[i] += h / 2 * W[i];
    gr_sigma_between(through, P, spread);
  }
#endif
#if GR_NG == 1
  gr_sigma_rates(t + 0.5 * h, middle, spread, z, um, q, nominal, f[0], A, W);
#else
  {
    double solved[GR_KEEP], other[GR_KEEP], slope[GR_SQUARE], V[GR_SQUARE], begin[GR_NM], end[GR_NM];
    memcpy(solved, z, sizeof(double) * GR_NZ);
    gr_sigma_rates(t, middle, spread, solved, ua, q, nominal, begin, slope, W);
    gr_sigma_corrections(z, solved);
    memcpy(other, z, sizeof(double) * GR_NZ);
    gr_sigma_rates(t + h, middle, spread, other, ub, q, nominal, end, slope, V);
    for (i = 0; i < GR_SQUARE; i++) W[i] += V[i];
    memcpy(solved, z, sizeof(double) * GR_NZ);
    gr_sigma_rates(t + 0.5 * h, middle, spread, solved, um, q, nominal, f[0], A, V);
    gr_sigma_corrections(other, solved);
    memcpy(z, other, sizeof(double) * GR_NZ);
    for (i = 0; i < GR_SQUARE; i++) W[i] = (W[i] + 4 * V[i]) / 6;
    for (i = 0; i < GR_NM; i++) {
      const double mid = f[0][i];
      f[0][i] = begin[i];
      f[1][i] = 4 * mid - 3 * begin[i] - end[i];
      f[2][i] = 2 * (begin[i] - 2 * mid + end[i]);
    }
  }
#endif
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++) f[0][i] += A[i * GR_NM + j] * (x[j] - middle[j]);
  memcpy(c, A, sizeof A);
  for (at = GR_SQUARE, i = 0; i < GR_NM; i++)
    for (k = 0; k < GR_NG; k++) c[at++] = f[k][i];
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) c[at++] = W[i * GR_NM + j];
  memcpy(c + at, z, sizeof(double) * GR_NZ);
}

GR_FN void gr_update(double t, const double *s, const double *u, const double *q, const double *nominal, const double *y,
                     const double *mask, const double *scale, double *s_out, double *e, double *V) {
  double x[GR_NM], P[GR_SQUARE], z[GR_KEEP], L[GR_SQUARE], point[GR_NM], away[GR_POINTS][GR_NM], seen[GR_POINTS][GR_NY];
  double mean[GR_NY], R[GR_NY * GR_NY], own[GR_NY * GR_NY], S[GR_NY][GR_NY], inverse[GR_NY * GR_NY];
  double together[GR_NM][GR_NY], K[GR_NM][GR_NY], KS[GR_NM][GR_NY], there[GR_KEEP], solved[GR_KEEP], moved[GR_NS];
  int i, j, k, l, at = 0;
  gr_sigma_unpack(s, x, P, z);
  gr_sigma_root(P, L);
  for (i = 0; i < GR_NY; i++) mean[i] = 0.0;
  for (i = 0; i < GR_NY * GR_NY; i++) R[i] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE;
    gr_sigma_point(x, L, k, point, away[k]);
    gr_seen(t, point, z, u, q, seen[k], own, k ? there : solved);
    if (k) gr_sigma_corrections(solved, there);
    for (i = 0; i < GR_NY; i++) mean[i] += weight * (seen[k][i] = mask[i] > 0.0 ? seen[k][i] : 0.0);
    for (i = 0; i < GR_NY * GR_NY; i++) R[i] += weight * own[i];
  }
  for (i = 0; i < GR_NY; i++)
    for (j = 0; j < GR_NY; j++)
      S[i][j] = mask[i] > 0.0 && mask[j] > 0.0 ? scale[i] * R[i * GR_NY + j] * scale[j] : i == j ? 1.0 : 0.0;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) together[i][j] = 0.0;
  for (k = 0; k < GR_POINTS; k++) {
    const double weight = k ? GR_OTHERS : GR_CENTRE_SPREAD;
    for (j = 0; j < GR_NY; j++) {
      const double left = seen[k][j] - mean[j];
      for (i = 0; i < GR_NY; i++) S[i][j] += weight * (seen[k][i] - mean[i]) * left;
      for (i = 0; i < GR_NM; i++) together[i][j] += weight * away[k][i] * left;
    }
  }
  for (j = 0; j < GR_NY; j++)
    for (i = j; i < GR_NY; i++) V[at++] = S[i][j];
  for (i = 0; i < GR_NY; i++) e[i] = mask[i] * y[i] - mean[i];
  if (isnan(gr_filter_invert(V, inverse))) {
    memcpy(s_out, s, sizeof(double) * GR_NS);
    return;
  }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) {
      K[i][j] = 0.0;
      for (l = 0; l < GR_NY; l++) K[i][j] += together[i][l] * inverse[l * GR_NY + j];
      x[i] += K[i][j] * e[j];
    }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NY; j++) {
      KS[i][j] = 0.0;
      for (l = 0; l < GR_NY; l++) KS[i][j] += K[i][l] * S[l][j];
    }
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < GR_NM; j++)
      for (l = 0; l < GR_NY; l++) P[i * GR_NM + j] -= KS[i][l] * K[j][l];
  gr_sigma_pack(x, P, solved, moved);
  gr_after_update(t, moved, u, q, nominal, s_out);
}

#endif
