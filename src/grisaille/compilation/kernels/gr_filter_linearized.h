/* Takes a step by exact solution of the linearised equation (filtering/linearization.py), with derivatives.
 *
 *   delta' = A delta + G (1, t/h, ..)',  delta(0) = 0        P' = A P + P A' + W
 *
 * gr_coefficients gives A (row by row), G (row by row), the lower triangle of W and z; gr_settle puts the moments after the
 * step on the constraints. With N = n + GR_NG columns of G, and M the bordered matrix over 2^-doublings of the step,
 *
 *   T_1 = M, T_k = M T_{k-1}/k, E = sum T_k        U_1 = W, U_k = (A U_{k-1} + its transpose)/k, Q = sum U_k
 *   doublings times:  Q <- Q + F Q F',  F = I + E        E <- 2 E + E E
 *   x <- x + E[:, n],   P <- Phi P Phi' + Q,   Phi = I + E
 *
 * room holds every T, U, E and Q for the derivatives; gr_there says which coefficients are not zero for good.
 */
#ifndef GR_FILTER_LINEARIZED_H
#define GR_FILTER_LINEARIZED_H

#include "gr_filter_matrices.h"

#define GR_NB (GR_NM + GR_NG)
#define GR_BB (GR_NB * GR_NB)
#define GR_DEGREE 12

typedef struct {
  double *T, *U, *E, *Q; /* GR_DEGREE of T and U, doublings + 1 of E and Q */
  double *c, *moved;     /* coefficients, and what the filter carries after the step, before it is settled */
  double *rest, *kept;   /* kept: for the derivatives of loops (gr_filter_loops.h) */
} gr_series;

#define GR_REST (6 * GR_BB + 8 * GR_MM + 64)

/* printed functions keep nothing from values to derivatives */
#ifdef GR_LOOPS
#define GR_KEPT_NUMBERS ((sizeof(gr_middle) + sizeof(gr_updated)) / sizeof(double) + 2)
#define GR_MIDDLE(r) , (gr_middle *)(r).kept
#define GR_MIDDLE_AND(r) , (gr_middle *)(r).kept, (r).c
#define GR_UPDATED(k) , (gr_updated *)(gr_series_in((k)->room, (k)->doublings).kept + sizeof(gr_middle) / sizeof(double) + 1)
#else
#define GR_KEPT_NUMBERS 0
#define GR_MIDDLE(r)
#define GR_MIDDLE_AND(r)
#endif

GR_API long gr_filter_room(long doublings) {
  return (GR_DEGREE + doublings + 1) * (GR_BB + GR_MM) + GR_NK + GR_NS + GR_REST + GR_KEPT_NUMBERS;
}

GR_FN gr_series gr_series_in(double *room, long doublings) {
  gr_series r;
  r.T = room;
  r.U = r.T + GR_DEGREE * GR_BB;
  r.E = r.U + GR_DEGREE * GR_MM;
  r.Q = r.E + (doublings + 1) * GR_BB;
  r.c = r.Q + (doublings + 1) * GR_MM;
  r.moved = r.c + GR_NK;
  r.rest = r.moved + GR_NS;
  r.kept = r.rest + GR_REST;
  return r;
}

#ifdef GR_UNROLLED
#pragma GCC push_options
#pragma GCC optimize("O3")
#endif

GR_FN void gr_bordered(const double *c, double h, long doublings, double *M, double *W) {
  const double part = ldexp(1.0, -(int)doublings), small = h * part;
  int i, j;
  for (i = 0; i < GR_BB; i++) M[i] = 0.0;
  for (i = 0; i < GR_NM; i++) {
    for (j = 0; j < GR_NM; j++) M[i * GR_NB + j] = c[i * GR_NM + j] * small;
    for (j = 0; j < GR_NG; j++) M[i * GR_NB + GR_NM + j] = c[GR_MM + i * GR_NG + j] * small;
  }
  for (i = 1; i < GR_NG; i++) M[(GR_NM + i) * GR_NB + GR_NM + i - 1] = i * part;
  gr_full(c + GR_MM + GR_NG * GR_NM, W);
  for (i = 0; i < GR_MM; i++) W[i] *= small;
}

GR_FN void gr_solve_series(const double *c, double h, long doublings, long terms, gr_series r) {
  long k;
  int i, j;
  GR_OWN double moved[GR_MM];
  gr_bordered(c, h, doublings, r.T, r.U);
  memcpy(r.E, r.T, sizeof(double) * GR_BB);
  memcpy(r.Q, r.U, sizeof(double) * GR_MM);
  for (k = 1; k < terms; k++) {
    double *T = r.T + k * GR_BB, *U = r.U + k * GR_MM;
    const double by = 1.0 / (k + 1);
    gr_times(GR_NB, GR_NB, GR_NB, r.T, GR_NB, T - GR_BB, GR_NB, T, GR_NB, 0);
    gr_times(GR_NM, GR_NM, GR_NM, r.T, GR_NB, U - GR_MM, GR_NM, moved, GR_NM, 0);
    for (i = 0; i < GR_BB; i++) r.E[i] += T[i] *= by;
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j <= i; j++) {
        const double u = by * (moved[i * GR_NM + j] + moved[j * GR_NM + i]);
        U[i * GR_NM + j] = U[j * GR_NM + i] = u;
        r.Q[i * GR_NM + j] += u;
        if (i != j) r.Q[j * GR_NM + i] += u;
      }
  }
  for (k = 0; k < doublings; k++) {
    double *E = r.E + k * GR_BB, *Q = r.Q + k * GR_MM;
    gr_add_identity(E, GR_NB, 1.0);
    gr_between(E, GR_NB, Q, Q, Q + GR_MM);
    gr_add_identity(E, GR_NB, -1.0);
    gr_times(GR_NB, GR_NB, GR_NB, E, GR_NB, E, GR_NB, E + GR_BB, GR_NB, 0);
    for (i = 0; i < GR_BB; i++) E[GR_BB + i] += 2 * E[i];
  }
}

/* the moments after the step, before they are put on the constraints; Phi = I + the last E is left in r.E */
GR_FN void gr_apply_series(const double *c, long doublings, gr_series r, const double *s, double *out) {
  double *E = r.E + doublings * GR_BB, *Q = r.Q + doublings * GR_MM;
  GR_OWN double P[GR_MM], after[GR_MM];
  int i, j, at = GR_NM;
  for (i = 0; i < GR_NM; i++) out[i] = s[i] + E[i * GR_NB + GR_NM];
  gr_add_identity(E, GR_NB, 1.0);
  gr_full(s + GR_NM, P);
  gr_between(E, GR_NB, P, Q, after);
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) out[at++] = after[i * GR_NM + j];
  for (i = 0; i < GR_NS - GR_NM - GR_HALF; i++) out[at++] = c[GR_MM + GR_NG * GR_NM + GR_HALF + i];
}

#ifdef GR_UNROLLED
#pragma GCC pop_options
#endif

/* leaves the series of this step in room, where the derivatives of the same step find it */
GR_FN void gr_carry(gr_filter_task *k, double t, double h, const double *s, const double *u, double *out) {
  const gr_series r = gr_series_in(k->room, k->doublings);
  gr_coefficients(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, r.c GR_MIDDLE(r));
  gr_solve_series(r.c, h, k->doublings, k->terms, r);
  gr_apply_series(r.c, k->doublings, r, s, r.moved);
  gr_settle(t + h, r.moved, u + 2 * GR_NU, k->q, k->nominal, out);
}

#ifdef GR_ABREAST

/* after gr_carry of the same step */
GR_FN void gr_carry_forward(gr_filter_task *k, double t, double h, const double *s, const double *u, gr_lanes *ds,
                            const gr_lanes *dq) {
  const gr_series r = gr_series_in(k->room, k->doublings);
  const double small = h * ldexp(1.0, -(int)k->doublings);
  double *E, *Q;
  GR_OWN gr_lanes dc[GR_NK], dM[GR_BB], dT[GR_BB], dE[GR_BB], dU[GR_MM], dQ[GR_MM], next[GR_BB], dP[GR_MM], dmoved[GR_NS];
  long d;
  int i, j, at = GR_NM;
  gr_coefficients_forward(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, ds, dq, dc GR_MIDDLE_AND(r));
  gr_lanes_zero(GR_BB, dM);
  for (i = 0; i < GR_NM; i++) {
    for (j = 0; j < GR_NM; j++) dM[i * GR_NB + j] = dc[i * GR_NM + j] * small;
    for (j = 0; j < GR_NG; j++) dM[i * GR_NB + GR_NM + j] = dc[GR_MM + i * GR_NG + j] * small;
  }
  gr_lanes_full(dc + GR_MM + GR_NG * GR_NM, dU);
  for (i = 0; i < GR_MM; i++) dQ[i] = dU[i] *= small;
  memcpy(dT, dM, sizeof dM);
  memcpy(dE, dM, sizeof dM);
  for (d = 1; d < GR_DEGREE; d++) {
    const double by = 1.0 / (d + 1);
    /* rows of the clock do not move */
    gr_lanes_zero(GR_BB, next);
    gr_lanes_right(GR_NM, GR_NM, GR_NB, r.T, GR_NB, dT, GR_NB, next, GR_NB);
    gr_lanes_left(GR_NM, GR_NB, GR_NB, dM, GR_NB, r.T + (d - 1) * GR_BB, GR_NB, next, GR_NB);
    for (i = 0; i < GR_NM * GR_NB; i++) dE[i] += dT[i] = next[i] * by;
    gr_lanes_zero(GR_MM, next);
    gr_lanes_right(GR_NM, GR_NM, GR_NM, r.T, GR_NB, dU, GR_NM, next, GR_NM);
    gr_lanes_left(GR_NM, GR_NM, GR_NM, dM, GR_NB, r.U + (d - 1) * GR_MM, GR_NM, next, GR_NM);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j < GR_NM; j++) dQ[i * GR_NM + j] += dU[i * GR_NM + j] = (next[i * GR_NM + j] + next[j * GR_NM + i]) * by;
  }
  for (d = 0; d < k->doublings; d++) {
    E = r.E + d * GR_BB;
    Q = r.Q + d * GR_MM;
    gr_add_identity(E, GR_NB, 1.0);
    gr_lanes_between(E, GR_NB, dE, GR_NB, Q, dQ, dQ);
    gr_add_identity(E, GR_NB, -1.0);
    for (i = 0; i < GR_NM * GR_NB; i++) next[i] = 2 * dE[i];
    gr_lanes_right(GR_NM, GR_NM, GR_NB, E, GR_NB, dE, GR_NB, next, GR_NB);
    gr_lanes_left(GR_NM, GR_NB, GR_NB, dE, GR_NB, E, GR_NB, next, GR_NB);
    memcpy(dE, next, sizeof(gr_lanes) * GR_NM * GR_NB);
  }
  E = r.E + k->doublings * GR_BB;
  gr_lanes_full(ds + GR_NM, dP);
  {
    GR_OWN double P[GR_MM];
    gr_full(s + GR_NM, P);
    gr_lanes_between(E, GR_NB, dE, GR_NB, P, dP, dQ);
  }
  for (i = 0; i < GR_NM; i++) dmoved[i] = ds[i] + dE[i * GR_NB + GR_NM];
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) dmoved[at++] = dP[i * GR_NM + j];
  for (i = 0; i < GR_NS - GR_NM - GR_HALF; i++) dmoved[at++] = dc[GR_MM + GR_NG * GR_NM + GR_HALF + i];
  gr_settle_forward(t + h, r.moved, u + 2 * GR_NU, k->q, k->nominal, dmoved, dq, ds);
}

#elif !defined(GR_VALUES)

/* C += by A B' for the first rows, where an entry of M can move (gr_there) */
GR_FN void gr_moving_times(int m, int c, const double *A, int wa, const double *B, int wb, double *C, double by) {
  int i, j, l;
  for (i = 0; i < GR_NM; i++)
    for (j = 0; j < c; j++) {
      double sum = 0.0;
      if (!gr_there[j < GR_NM ? i * GR_NM + j : GR_MM + i * GR_NG + j - GR_NM]) continue;
      for (l = 0; l < m; l++) sum += A[i * wa + l] * B[j * wb + l];
      C[i * GR_NB + j] += by * sum;
    }
}

GR_FN void gr_carry_reverse(gr_filter_task *k, double t, double h, const double *s, const double *u, double *ls,
                            double *lq) {
  const gr_series r = gr_series_in(k->room, k->doublings);
  const double small = h * ldexp(1.0, -(int)k->doublings);
  GR_OWN double lmoved[GR_NS], lsq[GR_NQ + 1], lc[GR_NK], lbefore[GR_NS];
  double *lE = r.rest, *lT = lE + GR_BB, *lM = lT + GR_BB;
  double *next = lM + GR_BB, *lQ = next + GR_BB, *lU = lQ + GR_MM, *lP = lU + GR_MM, *Y = lP + GR_MM, *P = Y + GR_MM;
  double *more = P + GR_MM, *E, *Q;
  long d;
  int i, j, at;
  gr_coefficients(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, r.c GR_MIDDLE(r));
  gr_solve_series(r.c, h, k->doublings, GR_DEGREE, r);
  gr_apply_series(r.c, k->doublings, r, s, r.moved);
  gr_settle_reverse(t + h, r.moved, u + 2 * GR_NU, k->q, k->nominal, ls, lmoved, lsq);
  /* half the adjoint of an entry below the diagonal belongs to each of its two places */
  for (j = 0, at = GR_NM; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++, at++) Y[i * GR_NM + j] = Y[j * GR_NM + i] = (i == j ? 1.0 : 0.5) * lmoved[at];
  gr_full(s + GR_NM, P);
  for (i = 0; i < GR_BB; i++) lE[i] = 0.0;
  for (i = 0; i < GR_MM; i++) lP[i] = 0.0;
  E = r.E + k->doublings * GR_BB;
  gr_between_back(E, GR_NB, P, Y, lE, lP);
  memcpy(lQ, Y, sizeof(double) * GR_MM);
  for (i = 0; i < GR_NM; i++) lE[i * GR_NB + GR_NM] += lmoved[i];
  for (d = k->doublings - 1; d >= 0; d--) {
    E = r.E + d * GR_BB;
    Q = r.Q + d * GR_MM;
    for (i = 0; i < GR_BB; i++) next[i] = 2 * lE[i];
    gr_times_transposed(GR_NB, GR_NB, GR_NB, lE, GR_NB, E, GR_NB, next, GR_NB, 1.0);
    gr_transposed_times(GR_NB, GR_NB, GR_NB, E, GR_NB, lE, GR_NB, next, GR_NB);
    gr_add_identity(E, GR_NB, 1.0);
    memcpy(more, lQ, sizeof(double) * GR_MM);
    gr_between_back(E, GR_NB, Q, lQ, next, more);
    gr_add_identity(E, GR_NB, -1.0);
    memcpy(lQ, more, sizeof(double) * GR_MM);
    memcpy(lE, next, sizeof(double) * GR_BB);
  }
  memcpy(lT, lE, sizeof(double) * GR_BB);
  memcpy(lU, lQ, sizeof(double) * GR_MM);
  for (i = 0; i < GR_BB; i++) lM[i] = 0.0;
  for (d = GR_DEGREE - 1; d > 0; d--) {
    const double by = 1.0 / (d + 1);
    gr_moving_times(GR_NB, GR_NB, lT, GR_NB, r.T + (d - 1) * GR_BB, GR_NB, lM, by);
    for (i = 0; i < GR_BB; i++) next[i] = 0.0;
    gr_transposed_times(GR_NB, GR_NB, GR_NB, r.T, GR_NB, lT, GR_NB, next, GR_NB);
    for (i = 0; i < GR_BB; i++) lT[i] = lE[i] + by * next[i];
    /* lU is symmetric, and so is every U */
    gr_moving_times(GR_NM, GR_NM, lU, GR_NM, r.U + (d - 1) * GR_MM, GR_NM, lM, 2 * by);
    for (i = 0; i < GR_MM; i++) next[i] = 0.0;
    gr_transposed_times(GR_NM, GR_NM, GR_NM, r.T, GR_NB, lU, GR_NM, next, GR_NM);
    for (i = 0; i < GR_NM; i++)
      for (j = 0; j <= i; j++)
        lU[i * GR_NM + j] = lU[j * GR_NM + i] = lQ[i * GR_NM + j] + by * (next[i * GR_NM + j] + next[j * GR_NM + i]);
  }
  for (i = 0; i < GR_BB; i++) lM[i] += lT[i];
  for (i = 0; i < GR_NM; i++) {
    for (j = 0; j < GR_NM; j++) lc[i * GR_NM + j] = small * lM[i * GR_NB + j];
    for (j = 0; j < GR_NG; j++) lc[GR_MM + i * GR_NG + j] = small * lM[i * GR_NB + GR_NM + j];
  }
  at = GR_MM + GR_NG * GR_NM;
  for (j = 0; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++) lc[at++] = (i == j ? 1.0 : 2.0) * small * lU[i * GR_NM + j];
  for (i = GR_NM + GR_HALF; i < GR_NS; i++) lc[at++] = lmoved[i];
  gr_coefficients_reverse(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, lc, lbefore, lq GR_MIDDLE_AND(r));
  for (i = 0; i < GR_NQ; i++) lq[i] += lsq[i];
  for (i = 0; i < GR_NM; i++) ls[i] = lbefore[i] + lmoved[i];
  for (j = 0, at = GR_NM; j < GR_NM; j++)
    for (i = j; i < GR_NM; i++, at++) ls[at] = lbefore[at] + (i == j ? 1.0 : 2.0) * lP[i * GR_NM + j];
  for (; at < GR_NS; at++) ls[at] = lbefore[at];
}

#endif
#endif
