/* The Kalman filter of kalman.py with derivatives in all directions; arrays row-major, shaped as there.
   A direction that moves nothing in F, H, R or Q is given by zeros and skipped where a flag says so. */
#include <math.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

typedef long long whole;

static void product(int r, int k, int c, const double *A, const double *B, double *C, int add) {
  int i, j, l;
  for (i = 0; i < r; i++) {
    double *row = C + i * c;
    if (!add) memset(row, 0, sizeof(double) * c);
    for (l = 0; l < k; l++) {
      const double a = A[i * k + l];
      const double *b = B + l * c;
      if (a != 0.0)
        for (j = 0; j < c; j++) row[j] += a * b[j];
    }
  }
}

/* C (+)= A Bᵀ with B given as (c, k) */
static void product_t(int r, int k, int c, const double *A, const double *B, double *C, int add) {
  int i, j, l;
  for (i = 0; i < r; i++)
    for (j = 0; j < c; j++) {
      double s = add ? C[i * c + j] : 0.0;
      for (l = 0; l < k; l++) s += A[i * k + l] * B[j * k + l];
      C[i * c + j] = s;
    }
}

static int any(int size, const double *A) {
  int i;
  for (i = 0; i < size; i++)
    if (A[i] != 0.0) return 1;
  return 0;
}

/* S⁻¹ by Cholesky; returns log det S, or NAN */
static double invert(int n, const double *S, double *inverse, double *L) {
  double log_det = 0.0;
  int i, j, k;
  for (i = 0; i < n; i++)
    for (j = 0; j <= i; j++) {
      double s = S[i * n + j];
      for (k = 0; k < j; k++) s -= L[i * n + k] * L[j * n + k];
      if (i == j) {
        if (!(s > 0.0)) return NAN;
        L[i * n + i] = sqrt(s);
        log_det += log(s);
      } else L[i * n + j] = s / L[j * n + j];
    }
  for (k = 0; k < n; k++) {
    for (i = 0; i < n; i++) {
      double s = i == k ? 1.0 : 0.0;
      for (j = 0; j < i; j++) s -= L[i * n + j] * inverse[j * n + k];
      inverse[i * n + k] = s / L[i * n + i];
    }
    for (i = n - 1; i >= 0; i--) {
      double s = inverse[i * n + k];
      for (j = i + 1; j < n; j++) s -= L[j * n + i] * inverse[j * n + k];
      inverse[i * n + k] = s / L[i * n + i];
    }
  }
  return log_det;
}

static void symmetrize(int n, double *P) {
  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < i; j++) P[i * n + j] = P[j * n + i] = 0.5 * (P[i * n + j] + P[j * n + i]);
}

EXPORT long gr_kalman_work(long n, long ny, long nd, long nm) {
  return nd * (2 * n * nm + n * n + 2 * n * ny + 2 * ny * nm + 3 * ny * ny + n * ny) + 8 * (n * n + n * ny + ny * ny) +
         4 * ny * nm + nm * nm + 64;
}

EXPORT long gr_kalman(const whole *size, const double *F, const whole *F_of, const double *c, const double *Q,
               const whole *Q_of, const double *H, const whole *H_of, const double *d, const double *R,
               const whole *R_of, const double *y, const whole *sample_at, double robust, double *m, double *P,
               double *base, double *G, double *information, double *cross, double *innovations, double *variances,
               double *slopes, double *work) {
  const int n = (int)size[0], ny = (int)size[1], nd = (int)size[2], nm = (int)size[3];
  const whole K = size[4];
  int waiting = (int)size[5];
  const int nn = n * n, nym = ny * nm;
  whole k, count = 0;
  int a, b, i, j, l;
  double *w = work;
#define TAKE(name, length) double *name = w; w += (length)
  TAKE(mn, nd * n * nm); TAKE(T, nn); TAKE(dT, nn); TAKE(U, nn);
  TAKE(Hs, nd * ny * n); TAKE(Rs, nd * ny * ny); TAKE(PH, nd * n * ny); TAKE(S, nd * ny * ny);
  TAKE(e, nd * nym); TAKE(inverse, ny * ny); TAKE(L, ny * ny); TAKE(A, nym); TAKE(B, nym); TAKE(D, nym);
  TAKE(Kg, n * ny); TAKE(J, nn); TAKE(V, nn); TAKE(X, n * ny); TAKE(Z, ny * ny); TAKE(wh, nd * ny * ny);
  TAKE(ie, nd * ny); TAKE(Gs, nm * nm);
  for (k = 0; k <= K; k++) {
    const whole sample = sample_at[k];
    int seen[1024], no = 0;
    double log_det;
    if (k) {
      const double *Fk = F + F_of[k - 1] * nd * nn, *Qk = Q + Q_of[k - 1] * nd * nn, *ck = c + (k - 1) * nd * n;
      for (a = 0; a < nd; a++) {
        product(n, n, nm, Fk, m + a * n * nm, mn + a * n * nm, 0);
        if (a && any(nn, Fk + a * nn)) product(n, n, nm, Fk + a * nn, m, mn + a * n * nm, 1);
        for (i = 0; i < n; i++) mn[(a * n + i) * nm] += ck[a * n + i];
      }
      memcpy(m, mn, sizeof(double) * nd * n * nm);
      product(n, n, n, Fk, P, T, 0);
      for (a = nd - 1; a >= 0; a--) {
        double *Pa = P + a * nn;
        const double *left = T;
        if (a) {
          const int moves = any(nn, Fk + a * nn);
          product(n, n, n, Fk, Pa, dT, 0);
          if (moves) product(n, n, n, Fk + a * nn, P, dT, 1);
          left = dT;
          product_t(n, n, n, left, Fk, U, 0);
          if (moves) product_t(n, n, n, T, Fk + a * nn, U, 1);
        } else product_t(n, n, n, left, Fk, U, 0);
        for (i = 0; i < nn; i++) Pa[i] = U[i] + Qk[a * nn + i];
        symmetrize(n, Pa);
      }
    }
    if (sample < 0) continue;
    for (i = 0; i < ny; i++)
      if (!isnan(y[sample * ny + i])) seen[no++] = i;
    if (!no) continue;
    for (a = 0; a < nd; a++) {
      const double *Ha = H + (H_of[sample] * nd + a) * ny * n, *Ra = R + (R_of[sample] * nd + a) * ny * ny;
      for (i = 0; i < no; i++) {
        memcpy(Hs + (a * no + i) * n, Ha + seen[i] * n, sizeof(double) * n);
        for (j = 0; j < no; j++) Rs[(a * no + i) * no + j] = Ra[seen[i] * ny + seen[j]];
      }
    }
    for (a = 0; a < nd; a++) {
      double *ea = e + a * no * nm, *PHa = PH + a * n * no, *Sa = S + a * no * no;
      const double *Ha = Hs + a * no * n;
      const int moves = a && any(no * n, Ha);
      product(no, n, nm, Hs, m + a * n * nm, ea, 0);
      if (moves) product(no, n, nm, Ha, m, ea, 1);
      for (i = 0; i < no * nm; i++) ea[i] = -ea[i];
      for (i = 0; i < no; i++) ea[i * nm] -= d[(sample * nd + a) * ny + seen[i]];
      if (!a)
        for (i = 0; i < no; i++) ea[i * nm] += y[sample * ny + seen[i]];
      product_t(n, n, no, P + a * nn, Hs, PHa, 0);
      if (moves) product_t(n, n, no, P, Ha, PHa, 1);
      product(no, n, no, Hs, PHa, Sa, 0);
      if (moves) product(no, n, no, Ha, PH, Sa, 1);
      for (i = 0; i < no * no; i++) Sa[i] += Rs[a * no * no + i];
      symmetrize(no, Sa);
    }
    log_det = invert(no, S, inverse, L);
    if (isnan(log_det)) return -1 - sample;
    product(no, no, nm, inverse, e, A, 0);
    for (i = 0; i < no; i++) {
      innovations[sample * ny + seen[i]] = e[i * nm];
      variances[sample * ny + seen[i]] = S[i * no + i];
      for (a = 1; a < nd; a++) slopes[(sample * (nd - 1) + a - 1) * ny + seen[i]] = e[(a * no + i) * nm];
    }
    if (!waiting) {
      double v = 0.0, slope = 1.0, rho;
      count += no;
      for (i = 0; i < no; i++) v += e[i * nm] * A[i * nm];
      rho = v;
      if (v > robust * robust) {
        rho = robust * (2 * sqrt(v) - robust);
        slope = robust / sqrt(v);
      }
      base[0] += log_det + (nm == 1 ? rho : 0.0);
      for (i = 0; i < nm; i++)
        for (j = 0; j < nm; j++)
          for (l = 0; l < no; l++) G[i * nm + j] += e[l * nm + i] * A[l * nm + j];
      for (a = 1; a < nd; a++) {
        const double *ea = e + a * no * nm, *Sa = S + a * no * no;
        double *wa = wh + a * no * no;
        product(no, no, no, inverse, Sa, wa, 0);
        for (i = 0; i < no; i++) base[a] += wa[i * no + i];
        product(no, no, nm, Sa, A, B, 0);
        for (i = 0; i < nm; i++)
          for (j = 0; j < nm; j++) {
            double s = 0.0;
            for (l = 0; l < no; l++)
              s += ea[l * nm + i] * A[l * nm + j] + A[l * nm + i] * ea[l * nm + j] - A[l * nm + i] * B[l * nm + j];
            Gs[i * nm + j] = s;
            G[(a * nm + i) * nm + j] += s;
          }
        if (nm == 1) base[a] += slope * Gs[0];
        for (i = 0; i < no; i++) {
          ie[a * no + i] = 0.0;
          for (j = 0; j < no; j++) ie[a * no + i] += inverse[i * no + j] * ea[j * nm];
        }
        for (j = 0; j < nm; j++)
          for (i = 0; i < no; i++) cross[(a - 1) * nm + j] += ie[a * no + i] * e[i * nm + j];
        for (b = 1; b <= a; b++) {
          double s = 0.0;
          const double *wb = wh + b * no * no;
          for (i = 0; i < no; i++) s += ie[a * no + i] * e[b * no * nm + i * nm];
          for (i = 0; i < no; i++)
            for (j = 0; j < no; j++) s += 0.5 * wa[i * no + j] * wb[j * no + i];
          information[(a - 1) * (nd - 1) + b - 1] += s;
          if (a != b) information[(b - 1) * (nd - 1) + a - 1] += s;
        }
      }
    }
    waiting = 0;
    for (a = 1; a < nd; a++) {
      product(no, no, nm, S + a * no * no, A, B, 0);
      for (i = 0; i < no * nm; i++) B[i] = e[a * no * nm + i] - B[i];
      product(no, no, nm, inverse, B, D, 0);
      product(n, no, nm, PH + a * n * no, A, m + a * n * nm, 1);
      product(n, no, nm, PH, D, m + a * n * nm, 1);
    }
    product(n, no, nm, PH, A, m, 1);
    product(n, no, no, PH, inverse, Kg, 0);
    product(n, no, n, Kg, Hs, J, 0);
    for (i = 0; i < nn; i++) J[i] = -J[i];
    for (i = 0; i < n; i++) J[i * n + i] += 1.0;
    product(n, n, n, J, P, V, 0);
    for (a = nd - 1; a >= 0; a--) {
      double *Pa = P + a * nn;
      product(n, n, n, J, Pa, T, 0);
      product_t(n, n, n, T, J, U, 0);
      if (!a || any(no * no, Rs + a * no * no)) {
        product(n, no, no, Kg, Rs + a * no * no, X, 0);
        product_t(n, no, n, X, Kg, U, 1);
      }
      if (a && any(no * n, Hs + a * no * n)) {
        product_t(n, n, no, V, Hs + a * no * n, X, 0);
        product_t(n, no, n, X, Kg, T, 0);
        for (i = 0; i < n; i++)
          for (j = 0; j < n; j++) U[i * n + j] -= T[i * n + j] + T[j * n + i];
      }
      memcpy(Pa, U, sizeof(double) * nn);
      symmetrize(n, Pa);
    }
  }
  return (long)count;
}
