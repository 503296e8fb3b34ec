/* Defines what a filter is asked and what it answers. Mirrored by compilation/kalman/compiled_pass.py (ctypes); keep
 * both in step.
 *
 * The generated file defines GR_NS (what the filter carries), GR_NY, GR_NU, GR_NQ and the functions gr_step, gr_update
 * with derivatives. Samples without any measurement are -1 in `sample`.
 */
#ifndef GR_FILTER_TASK_H
#define GR_FILTER_TASK_H

#define GR_NV (GR_NY * (GR_NY + 1) / 2)

/* what an update keeps for its derivatives (gr_filter_loops.h); printed ones keep nothing */
#ifndef GR_LOOPS
#define GR_UPDATED(k)
#endif

typedef struct {
  long n_cells, directions;
  long condition;              /* 1: the first sample is left out of the sums */
  double robust;               /* Huber's threshold, or infinity; -c: smooth */
  const double *bounds;        /* n_cells + 1 */
  const double *stages;        /* (2 steps + 1, GR_NU) signals at halves of steps, cell after cell */
  const long *steps;           /* n_cells */
  const double *signals;       /* (n_cells + 1, GR_NU) at the bounds */
  const long *sample;          /* n_cells + 1, -1: none */
  const double *given;         /* (n_cells + 1, GR_NS) what is carried at a bound before its update, NAN: as it comes; or NULL */
  const double *y, *mask, *scale; /* (samples, GR_NY) */
  const double *q, *nominal;
  const double *dq;            /* forward: (blocks, GR_NQ, lanes) */
  double *s;                   /* GR_NS, in and out */
  double *ds;                  /* forward: (blocks, GR_NS, lanes), in and out; reverse: GR_NS adjoint of the start */
  double *base;                /* forward: 1 + directions; reverse: 1 */
  double *information;         /* directions x directions */
  double *innovations, *variances; /* (samples, GR_NY) */
  double *slopes;              /* (samples, directions, GR_NY) */
  double *kept;                /* (n_cells + 1, 2, GR_NS) before and after each update, or NULL */
  double *along;               /* (all steps, GR_NS) after each step, before it is updated, or NULL */
  double *tape;                /* reverse: see gr_filter_reverse.h */
  double *lq;                  /* reverse: GR_NQ */
  long doublings;              /* of a linearised step, frozen */
  long terms;                  /* of its series: GR_DEGREE, or fewer where there are no derivatives */
  double *room;                /* gr_filter_room(doublings) */
  double *work;                /* forward: directions (GR_NY + GR_NY GR_NY) and blocks of lanes */
  long count;                  /* measurements that entered */
  long failed;                 /* sample whose V is not positive definite, or -1 */
} gr_filter_task;

/* V⁻¹ (full, GR_NY x GR_NY) by Cholesky from the lower triangle, column by column; returns log det V, or NAN */
GR_FN double gr_filter_invert(const double *V, double *inverse) {
  double L[GR_NY][GR_NY], log_det = 0.0;
  int i, j, k, at = 0;
  for (j = 0; j < GR_NY; j++)
    for (i = j; i < GR_NY; i++) L[i][j] = V[at++];
  for (j = 0; j < GR_NY; j++) {
    for (k = 0; k < j; k++) L[j][j] -= L[j][k] * L[j][k];
    if (!(L[j][j] > 0.0) || isinf(L[j][j])) return NAN;
    log_det += log(L[j][j]);
    L[j][j] = sqrt(L[j][j]);
    for (i = j + 1; i < GR_NY; i++) {
      for (k = 0; k < j; k++) L[i][j] -= L[i][k] * L[j][k];
      L[i][j] /= L[j][j];
    }
  }
  for (k = 0; k < GR_NY; k++) {
    double *x = inverse + k * GR_NY;
    for (i = 0; i < GR_NY; i++) {
      double sum = i == k ? 1.0 : 0.0;
      for (j = 0; j < i; j++) sum -= L[i][j] * x[j];
      x[i] = sum / L[i][i];
    }
    for (i = GR_NY - 1; i >= 0; i--) {
      double sum = x[i];
      for (j = i + 1; j < GR_NY; j++) sum -= L[j][i] * x[j];
      x[i] = sum / L[i][i];
    }
  }
  return log_det;
}

/* What a sample adds to the sums, and rho'(v); a = V⁻¹ e. Returns 0 where V is not positive definite. */
GR_FN int gr_filter_weigh(const double *e, const double *V, double robust, double *inverse, double *a, double *added,
                          double *slope) {
  const double log_det = gr_filter_invert(V, inverse);
  double v = 0.0;
  int i, j;
  if (isnan(log_det)) return 0;
  for (i = 0; i < GR_NY; i++) {
    a[i] = 0.0;
    for (j = 0; j < GR_NY; j++) a[i] += inverse[i * GR_NY + j] * e[j];
    v += e[i] * a[i];
  }
  *slope = 1.0;
  *added = log_det + v;
  if (robust < 0.0) {
    const double bend = sqrt(1.0 + v / (robust * robust));
    *added = log_det + 2 * robust * robust * (bend - 1.0);
    *slope = 1.0 / bend;
  } else if (v > robust * robust) {
    *added = log_det + robust * (2 * sqrt(v) - robust);
    *slope = robust / sqrt(v);
  }
  return isfinite(*added);
}

#endif
