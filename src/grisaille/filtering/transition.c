/* Transitions of transition.py in one call: Φ, hΨ_j and Q of one linear stochastic equation, with derivatives.
   Matrices are duals, (directions, n, n), the value first. Sums run in the order of transition.py. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif
#include <math.h>
#include <string.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

static void add_product(int n, const double *restrict A, const double *restrict B, double *restrict C) {
  int i, j, l;
  for (i = 0; i < n; i++)
    for (l = 0; l < n; l++) {
      const double a = A[i * n + l];
      const double *restrict b = B + l * n;
      double *restrict row = C + i * n;
      if (a == 0.0) continue;
      for (j = 0; j < n; j++) row[j] += a * b[j];
    }
}

/* C = A B with derivatives */
static void dual_product(int n, int nd, const double *A, const double *B, double *C) {
  const int nn = n * n;
  int a;
  memset(C, 0, sizeof(double) * nd * nn);
  for (a = 0; a < nd; a++) {
    add_product(n, A, B + a * nn, C + a * nn);
    if (a) add_product(n, A + a * nn, B, C + a * nn);
  }
}

static void dual_transpose(int n, int nd, const double *A, double *At) {
  int a, i, j;
  for (a = 0; a < nd; a++)
    for (i = 0; i < n; i++)
      for (j = 0; j < n; j++) At[(a * n + j) * n + i] = A[(a * n + i) * n + j];
}

static void add_scaled(int size, double factor, const double *restrict A, double *restrict B) {
  int i;
  for (i = 0; i < size; i++) B[i] += factor * A[i];
}

/* parts of an entry that are left out, and terms of a series that are always taken */
#define NEGLIGIBLE 1e-18
#define FEWEST 8

static double choose(int n, int k) {
  double value = 1.0;
  int i;
  for (i = 1; i <= k; i++) value = value * (n - k + i) / i;
  return value;
}

/* out_j = Σ_i C(j, i) η^{j−i} in_i, added to what is there */
static void add_shifted(int degree, int size, int stride, double eta, const double *in, double *out) {
  int i, j;
  for (j = 0; j <= degree; j++)
    for (i = 0; i <= j; i++) add_scaled(size, choose(j, i) * pow(eta, j - i), in + i * stride, out + j * stride);
}

/* 1 where no entry of a term adds anything to its sum. Entries far from the diagonal begin late, each one after another
   that is nearer, so that a term without a new entry is the last that has any. */
static int is_negligible(int size, const double *term, const double *sum, double weight) {
  int i;
  for (i = 0; i < size; i++)
    if (fabs(weight * term[i]) > NEGLIGIBLE * fabs(sum[i])) return 0;
  return 1;
}

/* η^{j+1} m! j!/(m+j+1)! for m = 0: the weight of (Ahη)^m/m!, by which the next m is had by (m+1)/(m+j+2) */
static void first_weights(int degree, double eta, double *weight) {
  int j;
  for (j = 0; j <= degree; j++) weight[j] = pow(eta, j + 1.0) / (j + 1);
}

/* F = e^{Ah} and hΨ_0 … hΨ_degree; work: (degree + 5) nd n² */
EXPORT long gr_transition(long n_, long nd_, long degree_, long terms, long doublings, double h, const double *A, double *F,
                          double *Psi, double *work) {
  const int n = (int)n_, nd = (int)nd_, degree = (int)degree_, size = nd * n * n;
  double *Ah = work, *power = Ah + size, *next = power + size, *E = next + size, *moved = E + size;
  double eta = ldexp(1.0, (int)-doublings);
  int i, j;
  long m;
  /* scaled before it is raised to powers: hundreds of terms of a long chain would overflow */
  for (i = 0; i < size; i++) Ah[i] = A[i] * (h * eta);
  memset(power, 0, sizeof(double) * size);
  for (i = 0; i < n; i++) power[i * n + i] = 1.0;
  memset(E, 0, sizeof(double) * size);
  memset(Psi, 0, sizeof(double) * size * (degree + 1));
  first_weights(degree, eta, moved);
  for (m = 0; m < terms; m++) {
    for (j = 0; j <= degree; j++) {
      add_scaled(size, moved[j], power, Psi + j * size);
      moved[j] = moved[j] * (m + 1) / (m + j + 2);
    }
    dual_product(n, nd, Ah, power, next);
    for (i = 0; i < size; i++) power[i] = next[i] / (m + 1);
    for (i = 0; i < size; i++) E[i] += power[i];
    if (m > FEWEST && is_negligible(size, power, E, 1.0)) break;
  }
  for (m = 0; m < doublings; m++) {
    for (j = 0; j <= degree; j++) {
      memcpy(next, E, sizeof(double) * size);
      for (i = 0; i < n; i++) next[i * n + i] += 1.0;
      dual_product(n, nd, next, Psi + j * size, moved + j * size);
    }
    add_shifted(degree, size, size, eta, Psi, moved);
    memcpy(Psi, moved, sizeof(double) * size * (degree + 1));
    dual_product(n, nd, E, E, next);
    for (i = 0; i < size; i++) E[i] = 2 * E[i] + next[i];
    eta *= 2;
  }
  for (i = 0; i < size * (degree + 1); i++) Psi[i] *= h;
  memcpy(F, E, sizeof(double) * size);
  for (i = 0; i < n; i++) F[i * n + i] += 1.0;
  return 0;
}

/* Q of intensities W_0 … W_degree, given F over the 2^-doublings part of the interval (which is overwritten);
   work: ((degree + 1)² 3 + 3) nd n² */
EXPORT long gr_noise(long n_, long nd_, long degree_, long terms, long doublings, double h, const double *A, const double *W,
                     double *F, double *Q, double *work) {
  const int n = (int)n_, nd = (int)nd_, degree = (int)degree_, size = nd * n * n, p = degree + 1;
  double *Ah = work, *turned = Ah + size, *next = turned + size, *M = next + size, *now = M + p * p * size;
  double *moved = now + p * p * size, eta = ldexp(1.0, (int)-doublings);
  int i, j, k;
  long m;
  for (i = 0; i < size; i++) Ah[i] = A[i] * (h * eta);
  memset(M, 0, sizeof(double) * p * p * size);
  for (j = 0; j < p; j++) memcpy(now + j * size, W + j * size, sizeof(double) * size);
  first_weights(degree, eta, moved);
  for (m = 0; m < terms; m++) {
    int is_done = m > FEWEST;
    for (j = 0; j < p; j++) {
      /* M[k][j] = M_k[W_j]; M_j[W_j] has the smallest weights, and its entries begin as late as those of the others */
      for (k = 0; k <= j; k++) add_scaled(size, moved[k], now + j * size, M + (k * p + j) * size);
      is_done = is_done && is_negligible(size, now + j * size, M + (j * p + j) * size, moved[j]);
      dual_product(n, nd, Ah, now + j * size, next);
      dual_transpose(n, nd, next, turned);
      for (i = 0; i < size; i++) now[j * size + i] = (next[i] + turned[i]) / (m + 1);
    }
    for (k = 0; k < p; k++) moved[k] = moved[k] * (m + 1) / (m + k + 2);
    if (is_done) break;
  }
  for (m = 0; m < doublings; m++) {
    dual_transpose(n, nd, F, turned);
    for (k = 0; k < p; k++)
      for (j = k; j < p; j++) {
        dual_product(n, nd, F, M + (k * p + j) * size, next);
        dual_product(n, nd, next, turned, moved + (k * p + j) * size);
      }
    for (j = 0; j < p; j++) add_shifted(j, size, p * size, eta, M + j * size, moved + j * size);
    memcpy(M, moved, sizeof(double) * p * p * size);
    dual_product(n, nd, F, F, next);
    memcpy(F, next, sizeof(double) * size);
    eta *= 2;
  }
  memset(Q, 0, sizeof(double) * size);
  for (j = 0; j < p; j++) add_scaled(size, h, M + (j * p + j) * size, Q);
  dual_transpose(n, nd, Q, turned);
  for (i = 0; i < size; i++) Q[i] = 0.5 * (Q[i] + turned[i]);
  return 0;
}

/* Φ, hΨ and Q of many intervals of one equation, each as above; size = {count, n, nd, degree of Ψ, terms, degree of W},
   work: what gr_transition and gr_noise need together, and nd n² more */
EXPORT long gr_many(const long long *size, const long long *doublings, const double *h, const double *A, const double *W,
                    double *F, double *Psi, double *Q, double *work) {
  const long n = (long)size[1], nd = (long)size[2], degree = (long)size[3], terms = (long)size[4], noise = (long)size[5];
  const long long block = size[2] * size[1] * size[1];
  double *small = work, *unused = small + block, *room = unused + block;
  long long k;
  for (k = 0; k < size[0]; k++, F += block, Psi += (degree + 1) * block, Q += block) {
    const long s = (long)doublings[k];
    gr_transition(n, nd, degree, terms, s, h[k], A, F, Psi, room);
    gr_transition(n, nd, 0, terms, 0, ldexp(h[k], (int)-s), A, small, unused, room);
    gr_noise(n, nd, noise, terms, s, h[k], A, W, small, Q, room);
  }
  return 0;
}

/* Φ and Q where A and W are polynomials Σ A_j s^j, Σ W_j s^j of s on [0, 1], by power series in s:
     (m+1) Φ_{m+1} = h Σ_j A_j Φ_{m−j}        (m+1) Q_{m+1} = h (Σ_j A_j Q_{m−j} + transpose + W_m)
   size = {count, n, nd, degree of A, degree of W, terms at most}; work: (2 degree + 6) nd n² */
EXPORT long gr_varying(const long long *size, const double *h, const double *A, const double *W, double *F, double *Q,
                       double *work) {
  const int n = (int)size[1], nd = (int)size[2], degree = (int)size[3], noise = (int)size[4], block = nd * n * n;
  double *phi = work, *cov = phi + (degree + 1) * block, *sum = cov + (degree + 1) * block, *turned = sum + block;
  double *product = turned + block;
  long long k;
  int i, j;
  for (k = 0; k < size[0]; k++, A += (degree + 1) * block, W += (noise + 1) * block, F += block, Q += block) {
    int still = 0;
    long long m;
    memset(phi, 0, sizeof(double) * 2 * (degree + 1) * block);
    memset(F, 0, sizeof(double) * block);
    memset(Q, 0, sizeof(double) * block);
    for (i = 0; i < n; i++) phi[i * n + i] = F[i * n + i] = 1.0;
    for (m = 0; m < size[5] && still <= degree; m++) {
      const double by = h[k] / (m + 1);
      const int last = m < degree ? (int)m : degree, next = (int)((m + 1) % (degree + 1));
      int which;
      for (which = 0; which < 2; which++) {
        double *terms = which ? cov : phi, *total = which ? Q : F;
        memset(sum, 0, sizeof(double) * block);
        for (j = 0; j <= last; j++) {
          dual_product(n, nd, A + j * block, terms + ((m - j) % (degree + 1)) * block, product);
          for (i = 0; i < block; i++) sum[i] += product[i];
        }
        if (which) {
          dual_transpose(n, nd, sum, turned);
          for (i = 0; i < block; i++) sum[i] += turned[i];
          if (m <= noise)
            for (i = 0; i < block; i++) sum[i] += W[m * block + i];
        }
        for (i = 0; i < block; i++) total[i] += terms[next * block + i] = by * sum[i];
      }
      still = m > noise && is_negligible(block, phi + next * block, F, 1.0) && is_negligible(block, cov + next * block, Q, 1.0)
                  ? still + 1 : 0;
    }
  }
  return 0;
}
