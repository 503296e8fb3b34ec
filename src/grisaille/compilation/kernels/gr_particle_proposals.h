/* Normal laws of measurements, and proposals of the normals of an interval by a linearised prediction (gr_particles.h).
 */
#ifndef GR_PARTICLE_PROPOSALS_H
#define GR_PARTICLE_PROPOSALS_H

#include "gr_particle_steps.h"

/* Cholesky factor in place of an m x m matrix of lanes, lower triangle; not a number where it is not positive */
GR_FN void gr_root_of(gr_wide *A, long m) {
  long i, j, k;
  for (j = 0; j < m; j++) {
    for (k = 0; k < j; k++) A[j * m + j] -= A[j * m + k] * A[j * m + k];
    A[j * m + j] = gr_wide_sqrt(A[j * m + j]);
    for (i = j + 1; i < m; i++) {
      for (k = 0; k < j; k++) A[i * m + j] -= A[i * m + k] * A[j * m + k];
      A[i * m + j] = A[i * m + j] / A[j * m + j];
    }
  }
}

/* x <- L^-1 x */
GR_FN void gr_forwards(const gr_wide *L, long m, gr_wide *x) {
  long i, k;
  for (i = 0; i < m; i++) {
    for (k = 0; k < i; k++) x[i] -= L[i * m + k] * x[k];
    x[i] = x[i] / L[i * m + i];
  }
}

/* x <- L^-T x */
GR_FN void gr_backwards(const gr_wide *L, long m, gr_wide *x) {
  long i, k;
  for (i = m - 1; i >= 0; i--) {
    for (k = i + 1; k < m; k++) x[i] -= L[k * m + i] * x[k];
    x[i] = x[i] / L[i * m + i];
  }
}

/* the measured outputs of a sample */
GR_FN long gr_measured(const gr_particle_task *f, long sample, long *rows) {
  long i, m = 0;
  for (i = 0; i < GR_NY; i++)
    if (!isnan(f->y[sample * GR_NY + i])) rows[m++] = i;
  return m;
}

/* R of the rows, with weights; normal outputs only, ones on the diagonal for others */
GR_FN void gr_noise_of(const gr_particle_task *f, long sample, const gr_wide *packed, const long *rows, long m, gr_wide *R) {
  long i, j;
  for (i = 0; i < m; i++)
    for (j = 0; j <= i; j++) {
      const long a = rows[i], b = rows[j];
      const double scale = f->scale[sample * GR_NY + a] * f->scale[sample * GR_NY + b];
      if (f->by_law[a] || f->by_law[b])
        R[i * m + j] = GR_SPLAT(i == j ? 1.0 : 0.0);
      else /* lower triangle, column by column; a >= b */
        R[i * m + j] = GR_SPLAT(scale) * packed[b * GR_NY - b * (b - 1) / 2 + a - b];
    }
}

/* log N(y; seen, R) of the normal outputs */
GR_FN gr_wide gr_log_normal(const gr_particle_task *f, long sample, const gr_wide *seen, const gr_wide *packed,
                            const long *rows, long m) {
  gr_wide R[GR_LEN(GR_NY * GR_NY)], e[GR_LEN(GR_NY)], sum = GR_SPLAT(0.0);
  long i, n = 0, own[GR_LEN(GR_NY)];
  for (i = 0; i < m; i++)
    if (!f->by_law[rows[i]]) own[n++] = rows[i];
  if (!n) return sum;
  gr_noise_of(f, sample, packed, own, n, R);
  for (i = 0; i < n; i++) e[i] = GR_SPLAT(f->y[sample * GR_NY + own[i]]) - seen[own[i]];
  if (n == 1) return GR_SPLAT(-0.5) * (e[0] * e[0] / R[0] + gr_log_wide(R[0])) - GR_SPLAT(0.91893853320467274);
  gr_root_of(R, n);
  gr_forwards(R, n, e);
  for (i = 0; i < n; i++) sum = sum - GR_SPLAT(0.5) * e[i] * e[i] - GR_EACH1(log, R[i * n + i]);
  return sum - GR_SPLAT(0.91893853320467274 * (double)n);
}

/* Phi(z) */
GR_FN double gr_normal_cdf(double z) { return 0.5 * erfc(-0.70710678118654752 * z); }

#ifdef GR_GUIDED
/* dh/dv of one block: GR_NY rows of D numbers; s: where the interval ends, tape: states before each step */
GR_FN void gr_rows(const gr_particle_task *f, const gr_interval *it, double t, const gr_wide *s, const gr_wide *u,
                   const gr_wide *q, const gr_wide *nominal, const gr_wide *c, const gr_wide *tape, const gr_wide *v,
                   const long *rows, long m, long D, gr_wide *G) {
  gr_wide H[GR_LEN(GR_NY * GR_NS)], l[GR_LEN(GR_NS)], ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)];
  long r, k, j, i;
  gr_slope(t, s, u, q, nominal, c, H);
  for (r = 0; r < m; r++) {
    const double *at = f->stages + it->stage * GR_NU;
    long n = it->steps;
    for (i = 0; i < GR_NS; i++) l[i] = H[rows[r] * GR_NS + i];
    for (k = it->first; k < it->last; k++) at += (2 * f->steps[k] + 1) * GR_NU;
    for (k = it->last - 1; k >= it->first; k--) {
      const double begin = f->bounds[k], h = (f->bounds[k + 1] - begin) / (double)f->steps[k];
      at -= GR_NU;
      for (j = f->steps[k] - 1; j >= 0; j--) {
        n--;
        gr_widen(at - 2 * GR_NU, GR_NU, ua);
        gr_widen(at - GR_NU, GR_NU, um);
        gr_widen(at, GR_NU, ub);
        at -= 2 * GR_NU;
        gr_back(begin + (double)j * h, h, tape + n * GR_LEN(GR_NS), ua, um, ub, v + n * GR_NV, q, nominal, c, l, l,
                G + r * D + n * GR_NV);
      }
    }
  }
}
#endif

/* v from xi by the linearised prediction; returns the logarithm of the weight. looked, R: the prediction at v = 0 and its
 * noise with what is added in proposals, e: the deviation from it */
GR_FN gr_wide gr_guide(const gr_wide *G, const gr_wide *R, const gr_wide *e, long m, long D, const gr_wide *xi, gr_wide *v) {
  gr_wide Ls[GR_LEN(GR_NY * GR_NY)], Lr[GR_LEN(GR_NY * GR_NY)], b[GR_LEN(GR_NY)], w[GR_LEN(GR_NY)];
  gr_wide sum = GR_SPLAT(0.0);
  long i, j, k;
  for (i = 0; i < m; i++)
    for (j = 0; j <= i; j++) {
      gr_wide product = R[i * m + j];
      for (k = 0; k < D; k++) product = product + G[i * D + k] * G[j * D + k];
      Ls[i * m + j] = product;
      Lr[i * m + j] = R[i * m + j];
    }
  gr_root_of(Ls, m);
  gr_root_of(Lr, m);
  for (i = 0; i < m; i++) {
    b[i] = e[i];
    w[i] = GR_SPLAT(0.0);
    for (k = 0; k < D; k++) w[i] = w[i] + G[i * D + k] * xi[k];
    sum = sum + GR_EACH1(log, Lr[i * m + i] / Ls[i * m + i]);
  }
  gr_forwards(Ls, m, b);
  for (i = 0; i < m; i++)
    for (j = 0; j <= i; j++) Lr[i * m + j] = Lr[i * m + j] + Ls[i * m + j];
  gr_forwards(Lr, m, w);
  for (i = 0; i < m; i++) b[i] = b[i] - w[i];
  gr_backwards(Ls, m, b);
  for (k = 0; k < D; k++) {
    gr_wide value = xi[k];
    for (i = 0; i < m; i++) value = value + G[i * D + k] * b[i];
    v[k] = value;
    sum = sum + GR_SPLAT(0.5) * (xi[k] * xi[k] - value * value);
  }
  return sum;
}

#endif
