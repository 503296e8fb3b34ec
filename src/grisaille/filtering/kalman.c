/* The Kalman filter of kalman.py with derivatives in all directions; arrays row-major, shaped as there.
   A direction that moves nothing in F, H or R is given by zeros and skipped.

   Once covariances and all their derivatives repeat from sample to sample to STEADY, relative to the standard deviations
   of the states, they are kept as long as the matrices stay and nothing is missing: what remains is a recursion of means.
   The threshold is fixed, so that the likelihood stays a smooth function of the parameters to that accuracy. */
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

/* the widest registers of the machine that runs it; without contraction of a·b + c the digits do not depend on them */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__)
#define WIDE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define WIDE
#endif

#define STEADY 1e-13

typedef long long whole;

typedef struct {
  int n, ny, nd, nm, no, *seen;
  double *m, *P, *mn, *T, *U, *Ft, *Hs, *Ht, *Rs, *PH, *S, *e, *inverse, *L, *A, *B, *D, *K, *Kt, *J, *X, *Z, *wh, *ie, *Gs;
  double *last, *trace, *information;
  double *M, *N, *Fs, *Ks, *Es, *Ws, *p, *g; /* of the steady filter, directions side by side */
  const char *moves; /* per direction: 1 in F, 2 in H, 4 in R */
  double log_det;
} filter;

/* rows of doubles as the compiler's vectors, which may lie anywhere */
typedef double wide8 __attribute__((vector_size(64), aligned(8), may_alias));
typedef double wide4 __attribute__((vector_size(32), aligned(8), may_alias));
typedef double wide2 __attribute__((vector_size(16), aligned(8), may_alias));

/* W columns of R rows of A B, kept in registers; each entry is added up in the order of l */
#define BLOCK(R, W, type)                                                                      \
  for (; j + W <= c; j += W) {                                                                 \
    type sum[R];                                                                               \
    for (i = 0; i < R; i++) sum[i] = from ? *(const type *)(from + i * width + j) : (type){0}; \
    for (l = 0; l < k; l++) {                                                                  \
      const type b = *(const type *)(B + (long)l * width + j);                                 \
      for (i = 0; i < R; i++) sum[i] += A[i * k + l] * b;                                      \
    }                                                                                          \
    for (i = 0; i < R; i++) *(type *)(C + i * width + j) = sum[i];                             \
  }

/* The first c columns of R rows of A B (+ from); rows of B, from and C are ``width`` apart */
#define ROWS(name, R)                                                                                              \
  static inline __attribute__((always_inline)) void name(int k, int c, int width, const double *restrict A,        \
                                                         const double *restrict B, const double *from, double *C) { \
    int j = 0, i, l;                                                                                               \
    BLOCK(R, 8, wide8) BLOCK(R, 4, wide4) BLOCK(R, 2, wide2) BLOCK(R, 1, double)                                    \
  }
ROWS(four_rows, 4)
ROWS(one_row, 1)

WIDE static void large_product(int r, int k, int c, const double *restrict A, const double *restrict B, double *C,
                               int add) {
  int i = 0;
  for (; i + 4 <= r; i += 4) four_rows(k, c, c, A + i * k, B, add ? C + i * c : 0, C + i * c);
  for (; i < r; i++) one_row(k, c, c, A + i * k, B, add ? C + i * c : 0, C + i * c);
}

/* C (+)= A B; small ones are not worth a call */
static inline void product(int r, int k, int c, const double *restrict A, const double *restrict B, double *C, int add) {
  int i, j, l;
  if (c > 3 || r * c > 9) {
    large_product(r, k, c, A, B, C, add);
    return;
  }
  for (i = 0; i < r; i++)
    for (j = 0; j < c; j++) {
      double sum = add ? C[i * c + j] : 0.0;
      for (l = 0; l < k; l++) sum += A[i * k + l] * B[l * c + j];
      C[i * c + j] = sum;
    }
}

/* C = A B + D where the result is known to be symmetric: half of it is computed */
WIDE static void symmetric_product(int n, const double *restrict A, const double *restrict B, const double *restrict D,
                                   double *restrict C) {
  int i = 0, j;
  for (; i + 4 <= n; i += 4) four_rows(n, i + 4, n, A + i * n, B, D + i * n, C + i * n);
  for (; i < n; i++) one_row(n, i + 1, n, A + i * n, B, D + i * n, C + i * n);
  for (i = 0; i < n; i++)
    for (j = 0; j < i; j++) C[j * n + i] = C[i * n + j];
}

static void transpose(int r, int c, const double *A, double *At) {
  int i, j;
  for (i = 0; i < r; i++)
    for (j = 0; j < c; j++) At[j * r + i] = A[i * c + j];
}

static int any(int size, const double *A) {
  int i;
  for (i = 0; i < size; i++)
    if (A[i] != 0.0) return 1;
  return 0;
}

static void symmetrize(int n, double *P) {
  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < i; j++) P[i * n + j] = P[j * n + i] = 0.5 * (P[i * n + j] + P[j * n + i]);
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

static void predict_mean(filter *f, const double *F, const double *c) {
  const int n = f->n, nm = f->nm;
  int a, i;
  for (a = 0; a < f->nd; a++) {
    double *out = f->mn + a * n * nm;
    product(n, n, nm, F, f->m + a * n * nm, out, 0);
    if (a && (f->moves[a] & 1)) product(n, n, nm, F + a * n * n, f->m, out, 1);
    for (i = 0; i < n; i++) out[i * nm] += c[a * n + i];
  }
  memcpy(f->m, f->mn, sizeof(double) * f->nd * n * nm);
}

/* P ← F P Fᵀ + Q,  dP ← F dP Fᵀ + Y + Yᵀ + dQ,  Y = F P dFᵀ */
static void predict_covariance(filter *f, const double *F, const double *Q) {
  const int n = f->n, nn = n * n;
  int a, i, j;
  transpose(n, n, F, f->Ft);
  product(n, n, n, F, f->P, f->T, 0);
  for (a = 1; a < f->nd; a++) {
    double *P = f->P + a * nn;
    memcpy(f->U, Q + a * nn, sizeof(double) * nn);
    if (f->moves[a] & 1) {
      transpose(n, n, F + a * nn, f->X);
      product(n, n, n, f->T, f->X, f->J, 0);
      for (i = 0; i < n; i++)
        for (j = 0; j <= i; j++) f->U[i * n + j] += f->J[i * n + j] + f->J[j * n + i];
    }
    product(n, n, n, F, P, f->X, 0);
    symmetric_product(n, f->X, f->Ft, f->U, P);
  }
  symmetric_product(n, f->T, f->Ft, Q, f->P);
}

static void take_rows(filter *f, const double *H, const double *R) {
  const int n = f->n, ny = f->ny, no = f->no;
  int a, i, j;
  for (a = 0; a < f->nd; a++)
    for (i = 0; i < no; i++) {
      memcpy(f->Hs + (a * no + i) * n, H + (a * ny + f->seen[i]) * n, sizeof(double) * n);
      for (j = 0; j < no; j++) f->Rs[(a * no + i) * no + j] = R[(a * ny + f->seen[i]) * ny + f->seen[j]];
    }
  for (a = 0; a < f->nd; a++) transpose(no, n, f->Hs + a * no * n, f->Ht + a * n * no);
}

/* PHᵀ, S with derivatives, S⁻¹, S⁻¹dS and what each sample adds to the information through S */
static int innovation_covariance(filter *f) {
  const int n = f->n, no = f->no, nn = n * n, oo = no * no;
  int a, b, i, j;
  for (a = 0; a < f->nd; a++) {
    double *PH = f->PH + a * n * no, *S = f->S + a * oo;
    const int moves = a && (f->moves[a] & 2);
    product(n, n, no, f->P + a * nn, f->Ht, PH, 0);
    if (moves) product(n, n, no, f->P, f->Ht + a * n * no, PH, 1);
    product(no, n, no, f->Hs, PH, S, 0);
    if (moves) product(no, n, no, f->Hs + a * no * n, f->PH, S, 1);
    for (i = 0; i < oo; i++) S[i] += f->Rs[a * oo + i];
    symmetrize(no, S);
  }
  f->log_det = invert(no, f->S, f->inverse, f->L);
  if (isnan(f->log_det)) return 0;
  for (a = 1; a < f->nd; a++) product(no, no, no, f->inverse, f->S + a * oo, f->wh + a * oo, 0);
  for (a = 1; a < f->nd; a++)
    for (b = 1; b <= a; b++) {
      const double *wa = f->wh + a * oo, *wb = f->wh + b * oo;
      double s = 0.0;
      for (i = 0; i < no; i++)
        for (j = 0; j < no; j++) s += 0.5 * wa[i * no + j] * wb[j * no + i];
      f->trace[a * f->nd + b] = s;
    }
  product(n, no, no, f->PH, f->inverse, f->K, 0);
  return 1;
}

/* e = y − d − H m with derivatives, and A = S⁻¹ e */
static void innovations_of(filter *f, const double *y, const double *d) {
  const int n = f->n, no = f->no, nm = f->nm;
  int a, i;
  for (a = 0; a < f->nd; a++) {
    double *e = f->e + a * no * nm;
    product(no, n, nm, f->Hs, f->m + a * n * nm, e, 0);
    if (a && (f->moves[a] & 2)) product(no, n, nm, f->Hs + a * no * n, f->m, e, 1);
    for (i = 0; i < no * nm; i++) e[i] = -e[i];
    for (i = 0; i < no; i++) e[i * nm] -= d[a * f->ny + f->seen[i]];
    if (!a)
      for (i = 0; i < no; i++) e[i * nm] += y[f->seen[i]];
  }
  product(no, no, nm, f->inverse, f->e, f->A, 0);
}

static double loss(double v, double robust, double *slope) {
  *slope = 1.0;
  if (robust < 0) {
    const double root = sqrt(1 + v / (robust * robust));
    *slope = 1 / root;
    return 2 * robust * robust * (root - 1);
  }
  if (v <= robust * robust) return v;
  *slope = robust / sqrt(v);
  return robust * (2 * sqrt(v) - robust);
}

static void add_sums(filter *f, double robust, double *base, double *G, double *cross) {
  const int no = f->no, nm = f->nm, nd = f->nd, oo = no * no;
  int a, b, i, j, l;
  double v = 0.0, slope, rho;
  for (i = 0; i < no; i++) v += f->e[i * nm] * f->A[i * nm];
  rho = loss(v, robust, &slope);
  base[0] += f->log_det + (nm == 1 ? rho : 0.0);
  for (i = 0; i < nm; i++)
    for (j = 0; j < nm; j++)
      for (l = 0; l < no; l++) G[i * nm + j] += f->e[l * nm + i] * f->A[l * nm + j];
  for (a = 1; a < nd; a++) {
    const double *ea = f->e + a * no * nm, *wa = f->wh + a * oo;
    double *ie = f->ie + a * no;
    for (i = 0; i < no; i++) base[a] += wa[i * no + i];
    product(no, no, nm, f->S + a * oo, f->A, f->B, 0);
    for (i = 0; i < nm; i++)
      for (j = 0; j < nm; j++) {
        double s = 0.0;
        for (l = 0; l < no; l++)
          s += ea[l * nm + i] * f->A[l * nm + j] + f->A[l * nm + i] * ea[l * nm + j] - f->A[l * nm + i] * f->B[l * nm + j];
        f->Gs[i * nm + j] = s;
        G[(a * nm + i) * nm + j] += s;
      }
    if (nm == 1) base[a] += slope * f->Gs[0];
    for (i = 0; i < no; i++) {
      ie[i] = 0.0;
      for (j = 0; j < no; j++) ie[i] += f->inverse[i * no + j] * ea[j * nm];
    }
    for (j = 0; j < nm; j++)
      for (i = 0; i < no; i++) cross[(a - 1) * nm + j] += ie[i] * f->e[i * nm + j];
    for (b = 1; b <= a; b++) {
      double s = f->trace[a * nd + b];
      for (i = 0; i < no; i++) s += ie[i] * f->e[b * no * nm + i * nm];
      f->information[(a - 1) * (nd - 1) + b - 1] += s;
    }
  }
}

/* m ← m + PHᵀ a,  dm ← dm + dPHᵀ a + PHᵀ S⁻¹ (de − dS a) */
static void update_mean(filter *f) {
  const int n = f->n, no = f->no, nm = f->nm;
  int a, i;
  for (a = 1; a < f->nd; a++) {
    double *m = f->m + a * n * nm;
    product(no, no, nm, f->S + a * no * no, f->A, f->B, 0);
    for (i = 0; i < no * nm; i++) f->B[i] = f->e[a * no * nm + i] - f->B[i];
    product(n, no, nm, f->PH + a * n * no, f->A, m, 1);
    product(n, no, nm, f->K, f->B, m, 1);
  }
  product(n, no, nm, f->PH, f->A, f->m, 1);
}

/* P ← J P Jᵀ + K R Kᵀ;  dP ← dP − Z Kᵀ − K Zᵀ,  Z = dP Hᵀ − ½ K (H dP Hᵀ + dR) + J P dHᵀ */
WIDE static void update_covariance(filter *f) {
  const int n = f->n, no = f->no, nn = n * n, oo = no * no;
  int a, i, j;
  product(n, no, n, f->K, f->Hs, f->J, 0);
  for (i = 0; i < nn; i++) f->J[i] = -f->J[i];
  for (i = 0; i < n; i++) f->J[i * n + i] += 1.0;
  product(n, n, n, f->J, f->P, f->T, 0);
  transpose(n, no, f->K, f->Kt);
  for (a = 1; a < f->nd; a++) {
    double *P = f->P + a * nn;
    if (f->moves[a] & 2) product(n, n, no, P, f->Ht, f->Z, 0);
    else memcpy(f->Z, f->PH + a * n * no, sizeof(double) * n * no);
    product(no, n, no, f->Hs, f->Z, f->D, 0);
    for (i = 0; i < oo; i++) f->D[i] = -0.5 * (f->D[i] + f->Rs[a * oo + i]);
    product(n, no, no, f->K, f->D, f->Z, 1);
    if (f->moves[a] & 2) product(n, n, no, f->T, f->Ht + a * n * no, f->Z, 1);
    product(n, no, n, f->Z, f->Kt, f->U, 0);
    for (i = 0; i < n; i++)
      for (j = 0; j <= i; j++) {
        const double s = P[i * n + j] - f->U[i * n + j] - f->U[j * n + i];
        P[i * n + j] = P[j * n + i] = s;
      }
  }
  transpose(n, n, f->J, f->U);
  product(n, n, n, f->T, f->U, f->P, 0);
  product(n, no, no, f->K, f->Rs, f->Z, 0);
  product(n, no, n, f->Z, f->Kt, f->P, 1);
  symmetrize(n, f->P);
}

/* Whether P and all dP are those of the sample before, which they replace */
static int is_steady(filter *f) {
  const int n = f->n, nn = n * n;
  double *size = f->p;
  int a, i, j, steady = 1;
  for (i = 0; i < n; i++) size[i] = sqrt(f->P[i * n + i]);
  for (a = 0; a < f->nd && steady; a++) {
    const double *now = f->P + a * nn, *then = f->last + a * nn;
    double largest = a ? 0.0 : 1.0;
    for (i = 0; i < n && a; i++)
      for (j = 0; j <= i; j++)
        if (fabs(now[i * n + j]) > largest * size[i] * size[j] && size[i] * size[j] > 0.0)
          largest = fabs(now[i * n + j]) / (size[i] * size[j]);
    for (i = 0; i < n && steady; i++)
      for (j = 0; j <= i; j++)
        if (!(fabs(now[i * n + j] - then[i * n + j]) <= STEADY * largest * size[i] * size[j])) steady = 0;
  }
  memcpy(f->last, f->P, sizeof(double) * f->nd * nn);
  return steady;
}

/* What the steady filter needs, laid out so that one loop runs over all directions:
   Fs[l] = (dF_a)_{i l} and Ks[o] = (dK_a)_{i o} for all a, i;  dK = (dPHᵀ − K dS) S⁻¹ */
static void prepare_steady(filter *f, const double *F) {
  const int n = f->n, no = f->no, nd = f->nd;
  int a, i, l, o;
  for (a = 0; a < nd; a++)
    for (i = 0; i < n; i++)
      for (l = 0; l < n; l++) f->Fs[(l * nd + a) * n + i] = a ? F[(a * n + i) * n + l] : 0.0;
  for (a = 0; a < nd; a++) {
    memset(f->Z, 0, sizeof(double) * n * no);
    if (a) {
      product(n, no, no, f->K, f->S + a * no * no, f->Z, 0);
      for (i = 0; i < n * no; i++) f->Z[i] = f->PH[a * n * no + i] - f->Z[i];
      memcpy(f->X, f->Z, sizeof(double) * n * no);
      product(n, no, no, f->X, f->inverse, f->Z, 0);
    }
    for (i = 0; i < n; i++)
      for (o = 0; o < no; o++) f->Ks[(o * nd + a) * n + i] = f->Z[i * no + o];
  }
  for (a = 0; a < nd; a++)
    for (i = 0; i < n; i++) f->M[i * nd + a] = f->m[a * n + i];
}

/* One cell and sample with the matrices of the last: predicted and updated means, innovations e with derivatives in Es.
   Column 0 of M and Es holds values. */
WIDE static void steady_step(filter *f, const double *F, const double *c, const double *y, const double *d) {
  const int n = f->n, ny = f->no, nd = f->nd;
  int a, i, l, o;
  product(n, n, nd, F, f->M, f->N, 0);
  memset(f->g, 0, sizeof(double) * nd * n);
  for (l = 0; l < n; l++) {
    const double *restrict row = f->Fs + l * nd * n;
    const double m = f->M[l * nd];
    double *restrict g = f->g;
    for (i = 0; i < nd * n; i++) g[i] += m * row[i];
  }
  for (a = 0; a < nd; a++)
    for (i = 0; i < n; i++) f->N[i * nd + a] += f->g[a * n + i] + c[a * n + i];
  product(ny, n, nd, f->Hs, f->N, f->Es, 0);
  for (i = 0; i < n; i++) f->p[i] = f->N[i * nd];
  for (o = 0; o < ny; o++)
    for (a = 0; a < nd; a++) {
      double s = f->Es[o * nd + a] + d[a * ny + o];
      if (a && (f->moves[a] & 2))
        for (i = 0; i < n; i++) s += f->Hs[(a * ny + o) * n + i] * f->p[i];
      f->Es[o * nd + a] = a ? -s : y[o] - s;
    }
  product(n, ny, nd, f->K, f->Es, f->N, 1);
  memset(f->g, 0, sizeof(double) * nd * n);
  for (o = 0; o < ny; o++) {
    const double *restrict row = f->Ks + o * nd * n;
    const double e = f->Es[o * nd];
    double *restrict g = f->g;
    for (i = 0; i < nd * n; i++) g[i] += e * row[i];
  }
  for (a = 1; a < nd; a++)
    for (i = 0; i < n; i++) f->N[i * nd + a] += f->g[a * n + i];
  memcpy(f->M, f->N, sizeof(double) * n * nd);
}

/* The sums of one sample of the steady filter */
WIDE static void add_steady(filter *f, double robust, double *base, double *G) {
  const int ny = f->no, nd = f->nd;
  int a, b, i, o;
  double v = 0.0, slope;
  product(ny, ny, nd, f->inverse, f->Es, f->Ws, 0);
  for (o = 0; o < ny; o++) f->A[o] = f->Ws[o * nd];
  for (o = 0; o < ny; o++) v += f->Es[o * nd] * f->A[o];
  base[0] += f->log_det + loss(v, robust, &slope);
  G[0] += v;
  for (a = 1; a < nd; a++) {
    const double *Sa = f->S + a * ny * ny, *wa = f->wh + a * ny * ny;
    double s = 0.0, bent = 0.0;
    for (o = 0; o < ny; o++) {
      base[a] += wa[o * ny + o];
      s += f->Es[o * nd + a] * f->A[o];
      for (i = 0; i < ny; i++) bent += f->A[o] * Sa[o * ny + i] * f->A[i];
    }
    base[a] += slope * (2 * s - bent);
    G[a] += 2 * s - bent;
    for (b = 1; b <= a; b++) f->information[(a - 1) * (nd - 1) + b - 1] += f->trace[a * nd + b];
    for (o = 0; o < ny; o++) {
      const double w = f->Ws[o * nd + a];
      double *restrict row = f->information + (a - 1) * (nd - 1);
      const double *restrict e = f->Es + o * nd + 1;
      for (b = 0; b < a; b++) row[b] += w * e[b];
    }
  }
}

static void note_moves(char *moves, const double *F, const double *H, int n, int ny, int nd, whole nF, whole nH) {
  whole g;
  int a;
  memset(moves, 0, nd);
  for (a = 1; a < nd; a++) {
    for (g = 0; g < nF && !(moves[a] & 1); g++) moves[a] |= (char)any(n * n, F + (g * nd + a) * n * n);
    for (g = 0; g < nH && !(moves[a] & 2); g++) moves[a] |= (char)(any(ny * n, H + (g * nd + a) * ny * n) << 1);
  }
}

EXPORT long gr_kalman_work(long n, long ny, long nd, long nm) {
  return nd * (2 * n * nm + 3 * n * n + 5 * n * ny + 2 * ny * nm + 4 * ny * ny + 4 * n + 3 * ny + nd + 1) +
         8 * (n * n + n * ny + ny * ny) + 4 * ny * nm + nm * nm + n + ny + 64;
}

/* m and P at a cell boundary, before its update and after it */
static double *keep(const filter *f, double *kept) {
  const long mean = (long)f->nd * f->n * f->nm, covariance = (long)f->nd * f->n * f->n;
  memcpy(kept, f->m, sizeof(double) * mean);
  memcpy(kept + mean, f->P, sizeof(double) * covariance);
  return kept + mean + covariance;
}

/* size: n, ny, directions, columns of the mean, cells, first sample waits, matrices F and H
   given: m and P before each sample, in place of those that are carried there; or NULL
   kept: m and P before and after the update at each cell boundary; or NULL */
EXPORT long gr_kalman(const whole *size, const double *F, const whole *F_of, const double *c, const double *Q,
               const whole *Q_of, const double *H, const whole *H_of, const double *d, const double *R,
               const whole *R_of, const double *y, const whole *sample_at, double robust, double *m, double *P,
               double *base, double *G, double *information, double *cross, double *innovations, double *variances,
               double *slopes, double *work, const double *given, double *kept) {
  const int n = (int)size[0], ny = (int)size[1], nd = (int)size[2], nm = (int)size[3];
  const whole cells = size[4];
  int waiting = (int)size[5], steady = 0, a, b, i;
  whole k, count = 0, before = -1;
  filter f;
  char *moves = (char *)work;
  double *w = work + nd / 8 + 1;
#define TAKE(name, length) f.name = w; w += (length)
  TAKE(mn, nd * n * nm); TAKE(T, n * n); TAKE(U, n * n); TAKE(Ft, n * n); TAKE(X, n * (n > ny ? n : ny)); TAKE(J, n * n);
  TAKE(Hs, nd * ny * n); TAKE(Ht, nd * ny * n); TAKE(Rs, nd * ny * ny); TAKE(PH, nd * n * ny); TAKE(S, nd * ny * ny);
  TAKE(e, nd * ny * nm); TAKE(inverse, ny * ny); TAKE(L, ny * ny); TAKE(A, ny * nm); TAKE(B, ny * nm);
  TAKE(D, ny * ny); TAKE(K, n * ny); TAKE(Kt, n * ny); TAKE(Z, n * ny); TAKE(wh, nd * ny * ny); TAKE(ie, nd * ny); TAKE(Gs, nm * nm);
  TAKE(last, nd * n * n); TAKE(trace, nd * nd); TAKE(M, nd * n); TAKE(N, nd * n); TAKE(g, nd * n); TAKE(p, n);
  f.seen = (int *)w; w += ny;
  TAKE(Fs, nd * n * n); TAKE(Ks, nd * n * ny); TAKE(Es, nd * ny); TAKE(Ws, nd * ny);
  f.n = n, f.ny = ny, f.nd = nd, f.nm = nm, f.no = 0, f.m = m, f.P = P, f.information = information, f.moves = moves;
  note_moves(moves, F, H, n, ny, nd, size[6], size[7]);
  for (k = 0; k <= cells; k++) {
    const whole sample = sample_at[k];
    const double *Fk = k ? F + F_of[k - 1] * nd * n * n : F;
    int no = 0;
    if (steady && sample >= 0 && before == k - 1) {
      int same = F_of[k - 1] == F_of[k - 2] && Q_of[k - 1] == Q_of[k - 2] && H_of[sample] == H_of[sample - 1] &&
                 R_of[sample] == R_of[sample - 1];
      for (i = 0; i < ny && same; i++) same = !isnan(y[sample * ny + i]);
      if (same) {
        if (steady == 1) prepare_steady(&f, Fk);
        steady = 2;
        steady_step(&f, Fk, c + (k - 1) * nd * n, y + sample * ny, d + sample * nd * ny);
        for (i = 0; i < ny; i++) {
          innovations[sample * ny + i] = f.Es[i * nd];
          variances[sample * ny + i] = f.S[i * ny + i];
          for (a = 1; a < nd; a++) slopes[(sample * (nd - 1) + a - 1) * ny + i] = f.Es[i * nd + a];
        }
        count += ny;
        add_steady(&f, robust, base, G);
        before = k;
        continue;
      }
    }
    if (steady == 2)
      for (a = 0; a < nd; a++)
        for (i = 0; i < n; i++) m[a * n + i] = f.M[i * nd + a];
    steady = 0;
    if (given) {
      const whole mean = (whole)nd * n * nm, covariance = (whole)nd * n * n;
      if (sample < 0) continue;
      memcpy(m, given + sample * (mean + covariance), sizeof(double) * mean);
      memcpy(P, given + sample * (mean + covariance) + mean, sizeof(double) * covariance);
    } else if (k) {
      predict_mean(&f, Fk, c + (k - 1) * nd * n);
      predict_covariance(&f, Fk, Q + Q_of[k - 1] * nd * n * n);
    }
    if (kept) kept = keep(&f, kept);
    for (i = 0; sample >= 0 && i < ny; i++)
      if (!isnan(y[sample * ny + i])) f.seen[no++] = i;
    if (!no) {
      if (kept) kept = keep(&f, kept);
      continue;
    }
    f.no = no;
    take_rows(&f, H + H_of[sample] * nd * ny * n, R + R_of[sample] * nd * ny * ny);
    if (!innovation_covariance(&f)) return (long)(-1 - sample);
    innovations_of(&f, y + sample * ny, d + sample * nd * ny);
    for (i = 0; i < no; i++) {
      innovations[sample * ny + f.seen[i]] = f.e[i * nm];
      variances[sample * ny + f.seen[i]] = f.S[i * no + i];
      for (a = 1; a < nd; a++) slopes[(sample * (nd - 1) + a - 1) * ny + f.seen[i]] = f.e[(a * no + i) * nm];
    }
    if (!waiting) {
      count += no;
      add_sums(&f, robust, base, G, cross);
    }
    waiting = 0;
    if (given) continue;
    update_mean(&f);
    update_covariance(&f);
    if (kept) kept = keep(&f, kept);
    if (kept) continue;
    /* the samples compared must follow each other over one cell each, with the same matrices; a flat prior has none */
    steady = is_steady(&f) && nm == 1 && before == k - 1 && k >= 2 && F_of[k - 1] == F_of[k - 2] && no == ny;
    before = k;
  }
  for (a = 1; a < nd; a++)
    for (b = 1; b < a; b++) information[(b - 1) * (nd - 1) + a - 1] = information[(a - 1) * (nd - 1) + b - 1];
  return (long)count;
}
