/* A particle filter: states of many particles that are moved, weighed by the measurements and drawn again, with an
 * unbiased estimate of the likelihood.
 *
 *   S(b) = step( ... step(S(a), v_1) ..., v_n),  v ~ N(0, I)       between two instants a, b with measurements
 *
 * A model stepped in this way has no density from state to state, only one of the numbers v of the interval. Proposals and
 * weights are therefore of v: "bootstrap" draws from N(0, I); "guided" linearises the prediction of each particle by
 * v, at v = 0 or there and then at the mean that follows,  y ~ h0 + G v + e,  e ~ N(0, R),  and draws from the normal law of v given y,
 *
 *   v = G' Ls^-T Ls^-1 (y - h0) + (I - G' Ls^-T (Ls + Lr)^-1 G) xi,   xi ~ N(0, I),  Ls Ls' = G G' + R,  Lr Lr' = R
 *
 * (A. Andrews, AIAA J. 6 (1968) 1165, for the root), with the weight  exp((xi'xi - v'v) / 2) det Lr / det Ls  beside the
 * density of y at the state that is reached. R may be larger than that of the measurement: the estimate stays unbiased.
 *
 * The generated file defines, before it includes this header,
 *
 *   GR_NS numbers of a particle, of which the first GR_NM are states, GR_NV normals of a step, GR_NU signals, GR_NQ
 *   parameters and levels, GR_NY outputs, GR_NO numbers seen at a sample (outputs, then what laws need besides), GR_NK
 *   constants, GR_NP numbers of the normal law (lower triangle of R, column by column)
 *   gr_once (q, nominal, c)                                  the constants
 *   gr_move (t, h, s, ua, um, ub, v, q, nominal, c, out)     one step; ua, um, ub: signals at t, t + h/2, t + h
 *   gr_begin(t, s, u, q, nominal, c, out)                    a state drawn at the start put on the constraints
 *   gr_look (t, s, u, q, nominal, c, seen, R)
 *   with GR_EVENTS, the number of clocks, gr_counter[] places in u of the signals that count their ticks, and
 *   gr_event(t, s, u, pulse, q, nominal, c, out, fired)      one pass through the events
 *   with GR_GUIDED also
 *   gr_back (t, h, s, ua, um, ub, v, q, nominal, c, l, ls, lv)   l dS+/dS and l dS+/dv
 *   gr_slope(t, s, u, q, nominal, c, H)                             dh/ds, GR_NY x GR_NS, row by row
 *
 * All take arrays of gr_wide, GR_LANES particles at a time. Mirrored by compilation/particles/particle_task.py.
 */
#ifndef GR_PARTICLES_H
#define GR_PARTICLES_H

#include "gr_normal.h"
#include "gr_resample.h"
#include "gr_task.h"

#define GR_UNEXPLAINED (-100.0) /* log of the density of a sample that no walking particle explains */
#define GR_FARTHEST 6.0 /* deviations of a normal number where a prediction is linearised */
enum { GR_DRAW = 0, GR_PERTURB = 1, GR_CHOOSE = 2 }; /* nodes of the streams */
enum { GR_IDENTITY = 0, GR_EXPONENTIAL = 1, GR_LOGISTIC = 2 };

/* Laws of measurements that are not normal, for all particles at once. what = 0: out (particles, GR_NY, 2) gets a deviation
 * from the prediction and its variance that stand for the measurement in proposals; what = 1: out (particles) gets the
 * logarithm of the density. Returns 0, or another number where the filter is to end. */
typedef int (*gr_law)(long what, long sample, const double *seen, double *out);

typedef struct {
  long n_particles;            /* a multiple of GR_LANES */
  long n_cells;
  const double *bounds;        /* n_cells + 1 */
  const double *stages;        /* (2 steps + 1, GR_NU) signals at halves of steps, cell after cell */
  const long *steps;           /* n_cells */
  const double *signals;       /* (n_cells + 1, GR_NU) at the bounds */
  const long *sample;          /* n_cells + 1, -1: none */
  const double *y;             /* (samples, GR_NY), NAN: not measured */
  const double *scale;         /* (samples, GR_NY) factors of standard deviations */
  const double *inflation;     /* (samples, GR_NY) variances added in proposals */
  const long *by_law;          /* GR_NY: 1 where the law is not normal */
  const double *q;             /* GR_NQ */
  const double *nominal;       /* GR_NS */
  const double *enter;         /* (particles, GR_NS) where each begins, before the first interval; or NULL: drawn */
  const double *start;         /* GR_NS */
  const double *root;          /* (GR_NS, n_root) of the covariance at the start */
  long n_root;
  gr_stream stream;
  long guided;                 /* how often a prediction is linearised; 0: proposals of the model */
  gr_law law;
  /* iterated filtering: unknowns that walk, one set for each particle */
  long n_walking;
  double *walking;             /* (particles, n_walking), in and out, in coordinates of the search */
  const double *deviation;     /* (samples + 1, n_walking) of steps: of the start, and at each sample */
  const long *chart;           /* n_walking */
  const double *limits;        /* (n_walking, 2) */
  const double *centre;        /* n_walking values in their own units, to which q and start belong */
  const double *dq;            /* (n_walking, GR_NQ) */
  const double *dstart;        /* (n_walking, GR_NS) */
  const double *lowest;        /* GR_NS, states are not let below; -INFINITY: free; or NULL */
  const double *highest;
  /* answers */
  double *terms;               /* samples: log of the mean weight, zero where nothing was measured */
  double *effective;           /* samples: effective number of particles */
  double *predicted;           /* (samples, GR_NY): mean before the sample is used; or NULL */
  double *variance;            /* (samples, GR_NY) */
  double *position;            /* (samples, GR_NY): P(Y <= y | before), of normal outputs */
  double *error;               /* (samples, GR_NY): mean square of what halving the steps changes; or NULL */
  double *bias;                /* (samples, GR_NY): mean of it */
  double *excess;              /* (samples, GR_NY): mean square of h - (h0 + G v); or NULL */
  double *mean;                /* (samples, GR_NS), or NULL */
  double *covariance;          /* (samples, GR_NM, GR_NM) */
  double *kept;                /* (samples, particles, GR_NS), or NULL */
  double *kept_weight;         /* (samples, particles) */
  long *ancestor;              /* (samples, particles) places at the sample before */
  double *walk_mean;           /* (samples, n_walking), or NULL */
  double *end;                 /* (particles, GR_NS), or NULL */
  double *work;                /* gr_particle_work(task) */
  long failed;                 /* sample at which all weights vanished, -1: none, -2: ended by a law */
} gr_particle_task;

/* between two instants with measurements */
typedef struct {
  long first, last;            /* cells [first, last) */
  long steps, stage, number;   /* steps in all; where `stages` begins; the number of the first step in the streams */
} gr_interval;

typedef struct {
  gr_wide *s, *next, *q, *c;   /* of all particles, blocks of GR_LANES */
  gr_wide *seen, *noise, *after; /* per block: of the linearised prediction; of the states that are reached */
  gr_wide *noise_after, *own;
  gr_wide *G, *V, *offset, *xi, *v, *tape;
  double *looked, *pseudo, *density, *log_weight, *weight, *forward, *values;
  double *walk;
  gr_ranked *order, *other;
  long *chosen, *counts;
} gr_room;

#define GR_BLOCKS(f) ((f)->n_particles / GR_LANES)
#define GR_ROUND(n) (((n) + 7) / 8 * 8)

GR_FN long gr_longest(const gr_particle_task *f) {
  long k, n = 0, longest = 1;
  for (k = 0; k < f->n_cells; k++) {
    n += f->steps[k];
    if (f->sample[k + 1] >= 0) {
      int i, any = 0;
      for (i = 0; i < GR_NY; i++) any |= !isnan(f->y[f->sample[k + 1] * GR_NY + i]);
      if (n > longest) longest = n;
      if (any) n = 0;
    } else if (n > longest) {
      longest = n;
    }
  }
  return longest;
}

/* doubles of the scratch memory; with a room, its addresses */
GR_FN long gr_arrange(const gr_particle_task *f, double *work, gr_room *r) {
  const long J = f->n_particles, D = gr_longest(f) * GR_LEN(GR_NV) > f->n_root ? gr_longest(f) * GR_LEN(GR_NV) : f->n_root;
  const long several = f->n_walking > 0 ? GR_BLOCKS(f) : 1, tapes = f->guided ? gr_longest(f) + 1 : 1;
  long at = 0;
#define GR_TAKE(name, type, count) \
  do { \
    if (r) r->name = (type *)(work + at); \
    at += GR_ROUND((count) * (long)sizeof(type) / 8 + 1); \
  } while (0)
  GR_TAKE(s, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NS));
  GR_TAKE(next, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NS));
  GR_TAKE(q, gr_wide, several * GR_LEN(GR_NQ));
  GR_TAKE(c, gr_wide, several * GR_LEN(GR_NK));
  GR_TAKE(seen, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NO));
  GR_TAKE(noise, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NP));
  GR_TAKE(after, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NO));
  GR_TAKE(noise_after, gr_wide, GR_LEN(GR_NP));
  GR_TAKE(own, gr_wide, GR_LEN(GR_NY) * D);
  GR_TAKE(G, gr_wide, f->guided ? GR_BLOCKS(f) * GR_LEN(GR_NY) * D : 1);
  GR_TAKE(V, gr_wide, f->guided ? GR_BLOCKS(f) * D : 1);
  GR_TAKE(offset, gr_wide, GR_BLOCKS(f) * GR_LEN(GR_NY));
  GR_TAKE(xi, gr_wide, D);
  GR_TAKE(v, gr_wide, D);
  GR_TAKE(tape, gr_wide, tapes * GR_LEN(GR_NS));
  GR_TAKE(looked, double, J * GR_LEN(GR_NO));
  GR_TAKE(pseudo, double, J * GR_LEN(GR_NY) * 2);
  GR_TAKE(density, double, J);
  GR_TAKE(log_weight, double, J);
  GR_TAKE(weight, double, J);
  GR_TAKE(forward, double, J);
  GR_TAKE(values, double, J * GR_LEN(GR_NY) * 2);
  GR_TAKE(walk, double, J * (f->n_walking + 1));
  GR_TAKE(order, gr_ranked, J);
  GR_TAKE(other, gr_ranked, J);
  GR_TAKE(chosen, long, J);
  GR_TAKE(counts, long, GR_COUNTS);
#undef GR_TAKE
  return at;
}

GR_API long gr_particle_work(const gr_particle_task *f) { return gr_arrange(f, 0, 0) + 16; }
GR_API long gr_particle_size(void) { return (long)sizeof(gr_particle_task); }
GR_API long gr_particle_lanes(void) { return GR_LANES; }

GR_FN void gr_widen(const double *from, long n, gr_wide *to) {
  long i;
  for (i = 0; i < n; i++) to[i] = GR_SPLAT(from[i]);
}

/* the logarithm, which is that of one number where all lanes have the same */
GR_FN gr_wide gr_log_wide(gr_wide a) {
#if GR_LANES == 2
  if (GR_LANE(a, 0) == GR_LANE(a, 1)) return GR_SPLAT(log(GR_LANE(a, 0)));
#endif
  return GR_EACH1(log, a);
}

GR_FN gr_wide gr_wide_sqrt(gr_wide a) { return GR_EACH1(sqrt, a); }

/* n standard normals of a block in one interval: those of an odd particle are those of its left neighbour with the other
 * sign, because neighbours are alike and what they predict wrongly then nearly cancels */
GR_FN void gr_draw(const gr_particle_task *f, long block, gr_u32 interval, long n, gr_wide *z) {
  double pair[2];
  long i, l;
#if GR_LANES == 1
  const double sign = block % 2 ? -1.0 : 1.0;
  const gr_u32 number = (gr_u32)(block / 2);
#else
  const gr_u32 number = (gr_u32)block;
#endif
  for (i = 0; i < n; i += 2) {
    gr_normal_pair(&f->stream, number, interval, GR_DRAW, (gr_u32)(i / 2), pair);
    for (l = 0; l < 2 && i + l < n; l++) {
#if GR_LANES == 1
      z[i + l] = GR_SPLAT(sign * pair[l]);
#else
      GR_LANE(z[i + l], 0) = pair[l];
      GR_LANE(z[i + l], 1) = -pair[l];
#endif
    }
  }
}

GR_FN const gr_wide *gr_q(const gr_particle_task *f, const gr_room *r, long block) {
  return r->q + (f->n_walking > 0 ? block * GR_LEN(GR_NQ) : 0);
}

GR_FN const gr_wide *gr_c(const gr_particle_task *f, const gr_room *r, long block) {
  return r->c + (f->n_walking > 0 ? block * GR_LEN(GR_NK) : 0);
}

/* states kept inside their limits */
GR_FN void gr_limit(const gr_particle_task *f, gr_wide *s) {
  long i, l;
  if (!f->lowest) return;
  for (i = 0; i < GR_NM; i++)
    for (l = 0; l < GR_LANES; l++) {
      const double value = GR_LANE(s[i], l);
      if (value < f->lowest[i]) GR_LANE(s[i], l) = f->lowest[i];
      if (value > f->highest[i]) GR_LANE(s[i], l) = f->highest[i];
    }
}

#ifdef GR_EVENTS
enum { GR_MOST_PASSES = 50 };

/* what happens at the end of a step: u there, ticks where a signal that counts them has grown since `before` */
GR_FN void gr_happen(const gr_particle_task *f, double t, gr_wide *s, const double *before, const double *u,
                     const gr_wide *q, const gr_wide *nominal, const gr_wide *c) {
  gr_wide wide[GR_LEN(GR_NU)], pulse[GR_LEN(GR_EVENTS)], fired[1];
  long i, l, pass;
  gr_widen(u, GR_NU, wide);
  for (i = 0; i < GR_EVENTS; i++) pulse[i] = GR_SPLAT(u[gr_counter[i]] > before[gr_counter[i]] + 0.5 ? 1.0 : 0.0);
  for (pass = 0; pass < GR_MOST_PASSES; pass++) {
    int any = 0;
    gr_event(t, s, wide, pulse, q, nominal, c, s, fired);
    for (l = 0; l < GR_LANES; l++) any |= GR_LANE(fired[0], l) > 0.0;
    if (!any) break;
  }
  gr_limit(f, s);
}
#endif

/* one block along an interval from s to out; `every` steps of v make one (2: for the error of steps); tape: states before
 * each step, or NULL */
GR_FN void gr_along(const gr_particle_task *f, const gr_interval *it, const gr_wide *s, const gr_wide *v,
                    const gr_wide *q, const gr_wide *nominal, const gr_wide *c, gr_wide *tape, gr_wide *out) {
  gr_wide ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)];
  const double *u = f->stages + it->stage * GR_NU;
  long k, j, i;
  for (i = 0; i < GR_NS; i++) out[i] = s[i];
  for (k = it->first; k < it->last; k++) {
    const long n = f->steps[k];
    const double t = f->bounds[k], h = (f->bounds[k + 1] - t) / (double)n;
    gr_widen(u, GR_NU, ub);
    for (j = 0; j < n; j++) {
      for (i = 0; i < GR_NU; i++) ua[i] = ub[i];
      gr_widen(u + GR_NU, GR_NU, um);
      gr_widen(u + 2 * GR_NU, GR_NU, ub);
      u += 2 * GR_NU;
      if (tape) {
        for (i = 0; i < GR_NS; i++) tape[i] = out[i];
        tape += GR_LEN(GR_NS);
      }
      gr_move(t + (double)j * h, h, out, ua, um, ub, v, q, nominal, c, out);
      gr_limit(f, out);
#ifdef GR_EVENTS
      gr_happen(f, t + (double)(j + 1) * h, out, u, j + 1 == n ? f->signals + (k + 1) * GR_NU : u, q, nominal, c);
#endif
      v += GR_NV;
    }
    u += GR_NU;
  }
}

#ifdef GR_COARSE
/* the same with steps of twice the length, whose normals are those that the halves make together */
GR_FN void gr_coarsely(const gr_particle_task *f, const gr_interval *it, const gr_wide *s, const gr_wide *v,
                       const gr_wide *q, const gr_wide *nominal, const gr_wide *c, gr_wide *out) {
  gr_wide ua[GR_LEN(GR_NU)], um[GR_LEN(GR_NU)], ub[GR_LEN(GR_NU)], both[GR_LEN(GR_NV)];
  const double *u = f->stages + it->stage * GR_NU, half = 0.70710678118654752;
  long k, j, i;
  for (i = 0; i < GR_NS; i++) out[i] = s[i];
  for (k = it->first; k < it->last; k++) {
    const long n = f->steps[k] / 2;
    const double t = f->bounds[k], h = (f->bounds[k + 1] - t) / (double)n;
    for (j = 0; j < n; j++) {
      gr_widen(u, GR_NU, ua);
      gr_widen(u + 2 * GR_NU, GR_NU, um);
      gr_widen(u + 4 * GR_NU, GR_NU, ub);
      u += 4 * GR_NU;
#if GR_COARSE == 1
      for (i = 0; i < GR_NV; i++) both[i] = GR_SPLAT(half) * (v[i] + v[GR_NV + i]);
#elif GR_COARSE == 2
      /* increments, then their areas */
      for (i = 0; i < GR_NV / 2; i++) {
        const gr_wide a = v[i], b = v[GR_NV + i], A = v[GR_NV / 2 + i], B = v[GR_NV + GR_NV / 2 + i];
        both[i] = GR_SPLAT(half) * (a + b);
        both[GR_NV / 2 + i] = GR_SPLAT(0.5 * half) * (A + B) + GR_SPLAT(0.61237243569579452) * (a - b);
      }
#else
      (void)half, (void)i;
#endif
      gr_move(t + (double)j * h, h, out, ua, um, ub, both, q, nominal, c, out);
      gr_limit(f, out);
#ifdef GR_EVENTS
      gr_happen(f, t + (double)(j + 1) * h, out, u, j + 1 == n ? f->signals + (k + 1) * GR_NU : u, q, nominal, c);
#endif
      v += 2 * GR_NV;
    }
    u += GR_NU;
  }
}
#endif

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

/* values seen by all particles, particle by particle, for laws */
GR_FN void gr_gather(const gr_particle_task *f, const gr_wide *seen, double *out) {
  long b, i, l;
  for (b = 0; b < GR_BLOCKS(f); b++)
    for (l = 0; l < GR_LANES; l++)
      for (i = 0; i < GR_NO; i++) out[(b * GR_LANES + l) * GR_NO + i] = GR_LANE(seen[b * GR_LEN(GR_NO) + i], l);
}

GR_FN int gr_has_law(const gr_particle_task *f, const long *rows, long m) {
  long i;
  for (i = 0; i < m; i++)
    if (f->by_law[rows[i]]) return 1;
  return 0;
}

/* what was predicted before the sample is used: values has mean and variance of each particle's output */
GR_FN void gr_summarise(const gr_particle_task *f, const gr_room *r, long sample) {
  const long J = f->n_particles;
  long i, j;
  if (!f->predicted) return;
  for (i = 0; i < GR_NY; i++) {
    double mean = 0.0, spread = 0.0, inside = 0.0, position = 0.0;
    const double y = f->y[sample * GR_NY + i];
    for (j = 0; j < J; j++) {
      const double *own = r->values + (j * GR_NY + i) * 2;
      const double before = own[0] - mean;
      mean += before / (double)(j + 1);
      spread += before * (own[0] - mean);
      inside += own[1];
      position += gr_normal_cdf((y - own[0]) / sqrt(own[1]));
    }
    f->predicted[sample * GR_NY + i] = mean;
    f->variance[sample * GR_NY + i] = (spread + inside) / (double)J;
    f->position[sample * GR_NY + i] = position / (double)J;
  }
}

/* the mean and covariance of the particles by their weights */
GR_FN void gr_moments(const gr_particle_task *f, const gr_room *r, long sample, double total) {
  const long J = f->n_particles;
  double *mean = f->mean + sample * GR_NS, *P = f->covariance + sample * GR_NM * GR_NM;
  long i, k, j;
  for (i = 0; i < GR_NS; i++) mean[i] = 0.0;
  for (i = 0; i < GR_NM * GR_NM; i++) P[i] = 0.0;
  for (j = 0; j < J; j++)
    for (i = 0; i < GR_NS; i++)
      if (r->weight[j] > 0.0) mean[i] += r->weight[j] / total * GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES);
  for (j = 0; j < J; j++) {
    if (!(r->weight[j] > 0.0)) continue;
    for (i = 0; i < GR_NM; i++) {
      const double di = GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES) - mean[i];
      for (k = 0; k <= i; k++) {
        const double dk = GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + k], j % GR_LANES) - mean[k];
        P[i * GR_NM + k] += r->weight[j] / total * di * dk;
      }
    }
  }
  for (i = 0; i < GR_NM; i++)
    for (k = 0; k < i; k++) P[k * GR_NM + i] = P[i * GR_NM + k];
}

/* the order in which particles are drawn again */
GR_FN void gr_rank(const gr_particle_task *f, const gr_room *r, const double *weight, double total) {
  const long J = f->n_particles;
  double mean[GR_LEN(GR_NM)], size[GR_LEN(GR_NM)];
  long active[GR_LEN(GR_NM)], n = 0, i, j, bits;
  gr_u32 x[GR_LEN(GR_NM)];
  for (i = 0; i < GR_NM; i++) {
    double spread = 0.0;
    mean[i] = 0.0;
    for (j = 0; j < J; j++)
      if (weight[j] > 0.0) mean[i] += weight[j] / total * GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES);
    for (j = 0; j < J; j++)
      if (weight[j] > 0.0) {
        const double away = GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES) - mean[i];
        spread += weight[j] / total * away * away;
      }
    size[i] = sqrt(spread);
    if (size[i] > 1e-12 * fabs(mean[i]) && n < GR_KEY_BITS) active[n++] = i;
  }
  bits = n > 1 ? GR_KEY_BITS / n : GR_KEY_BITS;
  if (n > 1 && bits > GR_MAX_BITS_EACH) bits = GR_MAX_BITS_EACH;
  for (j = 0; j < J; j++) {
    const gr_wide *s = r->s + j / GR_LANES * GR_LEN(GR_NS);
    r->order[j].place = j;
    r->order[j].key = 0;
    if (!(weight[j] > 0.0)) {
      r->order[j].key = (1ull << GR_KEY_BITS) - 1;
      continue;
    }
    if (n == 1) r->order[j].key = gr_graded((GR_LANE(s[active[0]], j % GR_LANES) - mean[active[0]]) / size[active[0]], bits);
    if (n < 2) continue;
    for (i = 0; i < n; i++) {
      const double z = (GR_LANE(s[active[i]], j % GR_LANES) - mean[active[i]]) / size[active[i]];
      /* evenly spread where z is normal, nearly */
      x[i] = (gr_u32)gr_graded(16.0 * (z / (1.0 + fabs(z)) * 0.5), bits);
    }
    r->order[j].key = gr_hilbert(x, n, bits);
  }
  if (n > 0) gr_sort(r->order, r->other, r->counts, J);
}

GR_FN double gr_uniform(const gr_particle_task *f, gr_u32 step) {
  gr_u32 w[4];
  w[0] = step, w[1] = GR_CHOOSE, w[2] = 0, w[3] = 0;
  gr_philox(w, f->stream.k0, f->stream.k1);
  return (double)gr_odd(w[0], w[1]) * 1.1102230246251565e-16;
}

/* values of what walks, in their own units */
GR_FN double gr_charted(const gr_particle_task *f, long i, double coordinate) {
  const double low = f->limits[2 * i], high = f->limits[2 * i + 1];
  if (f->chart[i] == GR_EXPONENTIAL) return exp(coordinate);
  if (f->chart[i] == GR_LOGISTIC) return low + (high - low) / (1.0 + exp(-coordinate));
  return coordinate < low ? low : coordinate > high ? high : coordinate;
}

/* the parameters that follow from what walks */
GR_FN void gr_follow(const gr_particle_task *f, gr_room *r) {
  const long nw = f->n_walking;
  gr_wide nominal[GR_LEN(GR_NS)];
  long b, i, k, l;
  gr_widen(f->nominal, GR_NS, nominal);
  for (b = 0; b < GR_BLOCKS(f); b++) {
    gr_wide *q = r->q + b * GR_LEN(GR_NQ);
    for (k = 0; k < GR_NQ; k++) q[k] = GR_SPLAT(f->q[k]);
    for (i = 0; i < nw; i++)
      for (l = 0; l < GR_LANES; l++) {
        const double away = gr_charted(f, i, f->walking[(b * GR_LANES + l) * nw + i]) - f->centre[i];
        for (k = 0; k < GR_NQ; k++) GR_LANE(q[k], l) += f->dq[i * GR_NQ + k] * away;
      }
    gr_once(q, nominal, r->c + b * GR_LEN(GR_NK));
  }
}

/* one step of what walks */
GR_FN void gr_walk(const gr_particle_task *f, gr_room *r, long row, gr_u32 step) {
  const long nw = f->n_walking;
  double pair[2];
  long i, j;
  if (!nw) return;
  for (j = 0; j < f->n_particles; j++)
    for (i = 0; i < nw; i++) {
      if (i % 2 == 0) gr_normal_pair(&f->stream, (gr_u32)j, step, GR_PERTURB, (gr_u32)(i / 2), pair);
      f->walking[j * nw + i] += f->deviation[row * nw + i] * pair[i % 2];
    }
  gr_follow(f, r);
}

/* particles drawn again by their weights; what walks goes with them */
GR_FN void gr_resample(const gr_particle_task *f, gr_room *r, const double *weight, long sample, gr_u32 step, double total) {
  const long J = f->n_particles, nw = f->n_walking;
  gr_wide *swap;
  long i, j;
  gr_rank(f, r, weight, total);
  gr_systematic(r->order, weight, total, gr_uniform(f, step), J, r->chosen);
  for (j = 0; j < J; j++) {
    const long from = r->chosen[j];
    for (i = 0; i < GR_NS; i++)
      GR_LANE(r->next[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES) =
          GR_LANE(r->s[from / GR_LANES * GR_LEN(GR_NS) + i], from % GR_LANES);
    for (i = 0; i < nw; i++) r->walk[j * nw + i] = f->walking[from * nw + i];
    if (f->ancestor) f->ancestor[sample * J + j] = from;
  }
  for (i = 0; i < J * nw; i++) f->walking[i] = r->walk[i];
  swap = r->s, r->s = r->next, r->next = swap;
  if (nw) gr_follow(f, r);
}

/* the interval that ends at the next instant with measurements */
GR_FN gr_interval gr_next(const gr_particle_task *f, const gr_interval *before) {
  gr_interval it;
  long k;
  it.first = before->last;
  it.number = before->number + before->steps;
  it.stage = before->stage;
  for (k = before->first; k < before->last; k++) it.stage += 2 * f->steps[k] + 1;
  it.steps = 0;
  for (k = it.first; k < f->n_cells;) {
    long i, any = 0;
    it.steps += f->steps[k];
    k++;
    if (f->sample[k] < 0) continue;
    for (i = 0; i < GR_NY; i++) any |= !isnan(f->y[f->sample[k] * GR_NY + i]);
    /* states are wanted at every sample: intervals then end at each */
    if (any || f->mean || f->kept) break;
  }
  it.last = k;
  return it;
}

/* what is linearised of a block, at the normals V: the prediction there and its slopes, and what these make of V */
GR_FN void gr_linearise(const gr_particle_task *f, gr_room *r, const gr_interval *it, int is_start, double t,
                        const gr_wide *u, const gr_wide *nominal, const long *rows, long m, long D, long b) {
#ifdef GR_GUIDED
  const gr_wide *q = gr_q(f, r, b), *c = gr_c(f, r, b), *s = r->s + b * GR_LEN(GR_NS), *V = r->V + b * D;
  gr_wide *G = r->G + b * GR_LEN(GR_NY) * D, guess[GR_LEN(GR_NS)], moved[GR_LEN(GR_NS)];
  long i, j, k;
  if (is_start) {
    gr_wide H[GR_LEN(GR_NY * GR_NS)];
    for (i = 0; i < GR_NS; i++) {
      moved[i] = s[i];
      for (k = 0; k < D; k++) moved[i] = moved[i] + GR_SPLAT(f->root[i * D + k]) * V[k];
    }
    gr_begin(t, moved, u, q, nominal, c, guess);
    gr_slope(t, guess, u, q, nominal, c, H);
    for (i = 0; i < m; i++)
      for (k = 0; k < D; k++) {
        gr_wide sum = GR_SPLAT(0.0);
        for (j = 0; j < GR_NS; j++) sum = sum + H[rows[i] * GR_NS + j] * GR_SPLAT(f->root[j * D + k]);
        G[i * D + k] = sum;
      }
  } else {
    gr_along(f, it, s, V, q, nominal, c, r->tape, guess);
    gr_rows(f, it, t, guess, u, q, nominal, c, r->tape, V, rows, m, D, G);
  }
  gr_look(t, guess, u, q, nominal, c, r->seen + b * GR_LEN(GR_NO), r->noise + b * GR_LEN(GR_NP));
  for (i = 0; i < m; i++) {
    gr_wide sum = GR_SPLAT(0.0);
    for (k = 0; k < D; k++) sum = sum + G[i * D + k] * V[k];
    r->offset[b * GR_LEN(GR_NY) + i] = sum;
  }
#else
  (void)f, (void)r, (void)it, (void)is_start, (void)t, (void)u, (void)nominal, (void)rows, (void)m, (void)D, (void)b;
#endif
}

/* R and e of the proposals of a block, from what was linearised */
GR_FN void gr_proposed_noise(const gr_particle_task *f, const gr_room *r, long sample, const long *rows, long m, long b,
                             gr_wide *R, gr_wide *e) {
  const gr_wide *seen = r->seen + b * GR_LEN(GR_NO);
  long i, l;
  gr_noise_of(f, sample, r->noise + b * GR_LEN(GR_NP), rows, m, R);
  for (i = 0; i < m; i++) {
    e[i] = GR_SPLAT(f->y[sample * GR_NY + rows[i]]) - seen[rows[i]];
    for (l = 0; f->by_law[rows[i]] && l < GR_LANES; l++) {
      const double *pseudo = r->pseudo + ((b * GR_LANES + l) * GR_NY + rows[i]) * 2;
      GR_LANE(e[i], l) = pseudo[0];
      GR_LANE(R[i * m + i], l) = pseudo[1];
    }
    e[i] = e[i] + r->offset[b * GR_LEN(GR_NY) + i];
    R[i * m + i] = R[i * m + i] + GR_SPLAT(f->inflation[sample * GR_NY + rows[i]]);
  }
}

/* V moved to the mean of v given the measurement, by what is linearised there */
GR_FN void gr_move_expansion(const gr_particle_task *f, gr_room *r, long sample, const long *rows, long m, long D, long b) {
  const gr_wide *G = r->G + b * GR_LEN(GR_NY) * D;
  gr_wide S[GR_LEN(GR_NY * GR_NY)], e[GR_LEN(GR_NY)], *V = r->V + b * D;
  long i, j, k, l;
  gr_proposed_noise(f, r, sample, rows, m, b, S, e);
  for (i = 0; i < m; i++)
    for (j = 0; j <= i; j++)
      for (k = 0; k < D; k++) S[i * m + j] = S[i * m + j] + G[i * D + k] * G[j * D + k];
  gr_root_of(S, m);
  gr_forwards(S, m, e);
  gr_backwards(S, m, e);
  for (k = 0; k < D; k++) {
    gr_wide value = GR_SPLAT(0.0);
    for (i = 0; i < m; i++) value = value + G[i * D + k] * e[i];
    for (l = 0; l < GR_LANES; l++) {
      const double x = GR_LANE(value, l);
      GR_LANE(V[k], l) = x > GR_FARTHEST ? GR_FARTHEST : x >= -GR_FARTHEST ? x : isnan(x) ? 0.0 : -GR_FARTHEST;
    }
  }
}

/* the density of the measurement by the linearised prediction of each particle, and what was predicted */
GR_FN void gr_look_ahead(const gr_particle_task *f, gr_room *r, long sample, const long *rows, long m, long D, long b) {
  const gr_wide *G = r->G + b * GR_LEN(GR_NY) * D, *seen = r->seen + b * GR_LEN(GR_NO);
  gr_wide S[GR_LEN(GR_NY * GR_NY)], e[GR_LEN(GR_NY)], sum = GR_SPLAT(0.0);
  long i, j, k, l;
  gr_proposed_noise(f, r, sample, rows, m, b, S, e);
  for (i = 0; i < m; i++) {
    for (j = 0; j <= i; j++)
      for (k = 0; k < D; k++) S[i * m + j] = S[i * m + j] + G[i * D + k] * G[j * D + k];
    for (l = 0; l < GR_LANES; l++) {
      double *own = r->values + ((b * GR_LANES + l) * GR_NY + rows[i]) * 2;
      own[0] = GR_LANE(seen[rows[i]], l) - GR_LANE(r->offset[b * GR_LEN(GR_NY) + i], l);
      own[1] = GR_LANE(S[i * m + i], l) - f->inflation[sample * GR_NY + rows[i]];
    }
  }
  gr_root_of(S, m);
  gr_forwards(S, m, e);
  for (i = 0; i < m; i++) sum = sum - GR_SPLAT(0.5) * e[i] * e[i] - GR_EACH1(log, S[i * m + i]);
  for (l = 0; l < GR_LANES; l++) r->log_weight[b * GR_LANES + l] = GR_LANE(sum, l);
}

/* what was linearised of the particles that the places of a block have come from */
GR_FN void gr_inherit(const gr_room *r, long D, long b, long m, gr_wide *G) {
  long i, l;
  for (l = 0; l < GR_LANES; l++) {
    const long from = r->chosen[b * GR_LANES + l];
    const gr_wide *source = r->G + from / GR_LANES * GR_LEN(GR_NY) * D;
    for (i = 0; i < m * D; i++) GR_LANE(G[i], l) = GR_LANE(source[i], from % GR_LANES);
  }
}

/* log weights as weights and their sum; returns the largest logarithm, -INFINITY where no weight is left */
GR_FN double gr_weigh(const double *log_weight, long n, double *weight, double *total, double *squares) {
  double best = -INFINITY;
  long j;
  *total = *squares = 0.0;
  for (j = 0; j < n; j++)
    if (log_weight[j] > best) best = log_weight[j];
  if (!(best > -INFINITY) || isinf(best)) return -INFINITY;
  for (j = 0; j < n; j++) {
    weight[j] = isnan(log_weight[j]) ? 0.0 : exp(log_weight[j] - best);
    *total += weight[j];
    *squares += weight[j] * weight[j];
  }
  return best;
}

/* h of the linearised prediction and its noise, of the particles that the places of a block have come from */
GR_FN void gr_inherit_noise(const gr_particle_task *f, const gr_room *r, long sample, const long *rows, long m, long b,
                            gr_wide *R, gr_wide *e, gr_wide *first) {
  gr_wide own_R[GR_LEN(GR_NY * GR_NY)], own_e[GR_LEN(GR_NY)];
  long i, l;
  for (l = 0; l < GR_LANES; l++) {
    const long from = r->chosen[b * GR_LANES + l];
    gr_proposed_noise(f, r, sample, rows, m, from / GR_LANES, own_R, own_e);
    for (i = 0; i < m * m; i++) GR_LANE(R[i], l) = GR_LANE(own_R[i], from % GR_LANES);
    for (i = 0; i < m; i++) {
      GR_LANE(e[i], l) = GR_LANE(own_e[i], from % GR_LANES);
      GR_LANE(first[i], l) = GR_LANE(r->seen[from / GR_LANES * GR_LEN(GR_NO) + rows[i]], from % GR_LANES) -
                             GR_LANE(r->offset[from / GR_LANES * GR_LEN(GR_NY) + i], from % GR_LANES);
    }
  }
}

/* The error of the steps: what steps of twice the length with the same noise would have shown. */
GR_FN void gr_compare_steps(const gr_particle_task *f, const gr_interval *it, const gr_wide *before, const gr_wide *after,
                            const gr_wide *v, double t, const gr_wide *u, const gr_wide *q, const gr_wide *nominal,
                            const gr_wide *c, long sample, const long *rows, long m) {
#ifdef GR_COARSE
  gr_wide other[GR_LEN(GR_NS)], seen[GR_LEN(GR_NO)], further[GR_LEN(GR_NO)], unused[GR_LEN(GR_NP)];
  long i, l;
  gr_coarsely(f, it, before, v, q, nominal, c, other);
  gr_look(t, other, u, q, nominal, c, further, unused);
  gr_look(t, after, u, q, nominal, c, seen, unused);
  for (i = 0; i < m; i++)
    for (l = 0; l < GR_LANES; l++) {
      const double off = GR_LANE(seen[rows[i]], l) - GR_LANE(further[rows[i]], l);
      f->error[sample * GR_NY + rows[i]] += off * off / (double)f->n_particles;
      f->bias[sample * GR_NY + rows[i]] += off / (double)f->n_particles;
    }
#else
  (void)f, (void)it, (void)before, (void)after, (void)v, (void)t, (void)u, (void)q, (void)nominal, (void)c, (void)sample,
      (void)rows, (void)m;
#endif
}

/* one interval (or the start) and the sample at its end; -1, or the sample where no weight is left, or -2 */
GR_FN int gr_use(const gr_particle_task *f, gr_room *r, const gr_interval *it, int is_start) {
  const long J = f->n_particles, D = is_start ? f->n_root : it->steps * GR_NV, here = is_start ? 0 : it->last;
  const long sample = f->sample[here];
  const double t = f->bounds[here];
  const gr_u32 number = is_start ? 0u : (gr_u32)(it->number + 1);
  gr_wide nominal[GR_LEN(GR_NS)], u[GR_LEN(GR_NU)], before[GR_LEN(GR_NS)];
  long rows[GR_LEN(GR_NY)], m = sample < 0 ? 0 : gr_measured(f, sample, rows), b, i, k, l, j;
  const int law = gr_has_law(f, rows, m);
  double best, total, squares, term = 0.0;
#ifdef GR_GUIDED
  const int guided = f->guided && m > 0 && D > 0;
  gr_wide R[GR_LEN(GR_NY * GR_NY)], e[GR_LEN(GR_NY)], first[GR_LEN(GR_NY)];
#else
  const int guided = 0;
#endif
  gr_widen(f->nominal, GR_NS, nominal);
  gr_widen(f->signals + here * GR_NU, GR_NU, u);
  for (j = 0; j < J; j++) r->chosen[j] = j;
  if (guided) {
    long round;
    for (k = 0; k < GR_BLOCKS(f) * D; k++) r->V[k] = GR_SPLAT(0.0);
    for (round = 1;; round++) {
      for (b = 0; b < GR_BLOCKS(f); b++) gr_linearise(f, r, it, is_start, t, u, nominal, rows, m, D, b);
      if (law) {
        gr_gather(f, r->seen, r->looked);
        if (f->law(0, sample, r->looked, r->pseudo)) return -2;
      }
      if (round >= f->guided) break;
      for (b = 0; b < GR_BLOCKS(f); b++) gr_move_expansion(f, r, sample, rows, m, D, b);
    }
    for (b = 0; b < GR_BLOCKS(f); b++) gr_look_ahead(f, r, sample, rows, m, D, b);
    gr_summarise(f, r, sample);
  } else {
    for (j = 0; j < J; j++) r->log_weight[j] = 0.0;
  }
  if (m && !is_start) {
    /* drawn again by their weights so far, times what a guided proposal expects of the measurement */
    double sum = 0.0;
    const double *chances = r->weight;
    for (j = 0; j < J; j++) sum += r->weight[j];
    if (guided) {
      best = gr_weigh(r->log_weight, J, r->density, &total, &squares);
      if (best == -INFINITY && f->n_walking) {
        for (j = 0; j < J; j++) r->density[j] = 1.0, r->log_weight[j] = 0.0;
        best = 0.0;
      }
      if (best == -INFINITY) return (int)sample;
      for (total = 0.0, j = 0; j < J; j++) total += r->density[j] *= r->weight[j] / sum;
      if (!(total > 0.0)) return (int)sample;
      term = best + log(total);
      chances = r->density;
      sum = total;
    }
    gr_resample(f, r, chances, sample, (gr_u32)it->number, sum);
    for (j = 0; j < J; j++) r->weight[j] = 1.0;
    for (j = 0; j < J; j++) r->forward[j] = guided ? r->log_weight[r->chosen[j]] : 0.0;
  } else {
    for (j = 0; j < J; j++) r->forward[j] = 0.0;
    for (j = 0; f->ancestor && sample >= 0 && j < J; j++) f->ancestor[sample * J + j] = j;
  }
  for (b = 0; b < GR_BLOCKS(f); b++) {
    const gr_wide *q = gr_q(f, r, b), *c = gr_c(f, r, b);
    gr_wide *s = r->s + b * GR_LEN(GR_NS);
    gr_wide *v = r->xi, weight = GR_SPLAT(0.0);
    gr_draw(f, b, number, D, r->xi);
#ifdef GR_GUIDED
    if (guided) {
      gr_inherit(r, D, b, m, r->own);
      gr_inherit_noise(f, r, sample, rows, m, b, R, e, first);
      weight = gr_guide(r->own, R, e, m, D, r->xi, r->v);
      v = r->v;
    }
#endif
    for (i = 0; i < GR_NS; i++) before[i] = s[i];
    if (is_start) {
      gr_wide guess[GR_LEN(GR_NS)];
      for (i = 0; i < GR_NS; i++) {
        guess[i] = s[i];
        for (k = 0; k < D; k++) guess[i] = guess[i] + GR_SPLAT(f->root[i * D + k]) * v[k];
      }
      gr_begin(t, guess, u, q, nominal, c, s);
      gr_limit(f, s);
    } else {
      gr_along(f, it, before, v, q, nominal, c, 0, s);
      if (f->error && m) gr_compare_steps(f, it, before, s, v, t, u, q, nominal, c, sample, rows, m);
    }
    if (m) {
      gr_wide *seen = r->after + b * GR_LEN(GR_NO), *noise = r->noise_after;
      gr_look(t, s, u, q, nominal, c, seen, noise);
#ifdef GR_GUIDED
      for (i = 0; guided && f->excess && i < m; i++) {
        gr_wide off = seen[rows[i]] - first[i];
        for (k = 0; k < D; k++) off = off - r->own[i * D + k] * v[k];
        for (l = 0; l < GR_LANES; l++)
          f->excess[sample * GR_NY + rows[i]] += GR_LANE(off, l) * GR_LANE(off, l) / (double)J;
      }
#endif
      for (i = 0; !guided && i < m; i++)
        for (l = 0; l < GR_LANES; l++) {
          const long a = rows[i];
          const double scale = f->scale[sample * GR_NY + a];
          double *own = r->values + ((b * GR_LANES + l) * GR_NY + a) * 2;
          own[0] = GR_LANE(seen[a], l);
          own[1] = scale * scale * GR_LANE(noise[a * GR_NY - a * (a - 1) / 2], l);
        }
      weight = weight + gr_log_normal(f, sample, seen, noise, rows, m);
    }
    for (l = 0; l < GR_LANES; l++) r->log_weight[b * GR_LANES + l] = GR_LANE(weight, l) - r->forward[b * GR_LANES + l];
  }
  if (m && law) {
    gr_gather(f, r->after, r->looked);
    if (f->law(1, sample, r->looked, r->density)) return -2;
    for (j = 0; j < J; j++) r->log_weight[j] += r->density[j];
  }
  if (m) {
    best = gr_weigh(r->log_weight, J, r->weight, &total, &squares);
    if (best == -INFINITY && f->n_walking) {
      /* unknowns may have walked to where nothing explains the sample: it says nothing then, but costs */
      for (j = 0; j < J; j++) r->weight[j] = 1.0;
      best = GR_UNEXPLAINED;
      total = (double)J;
    }
    if (best == -INFINITY) return (int)sample;
    if (!guided) gr_summarise(f, r, sample);
    f->terms[sample] = term + best + log(total / (double)J);
  }
  if (sample < 0) return -1;
  for (total = squares = 0.0, j = 0; j < J; j++) {
    total += r->weight[j];
    squares += r->weight[j] * r->weight[j];
  }
  f->effective[sample] = total * total / squares;
  if (f->mean) gr_moments(f, r, sample, total);
  for (i = 0; f->walk_mean && i < f->n_walking; i++) {
    double sum = 0.0;
    for (j = 0; j < J; j++) sum += r->weight[j] / total * f->walking[j * f->n_walking + i];
    f->walk_mean[sample * f->n_walking + i] = sum;
  }
  for (j = 0; f->kept && j < J; j++) {
    f->kept_weight[sample * J + j] = r->weight[j] / total;
    for (i = 0; i < GR_NS; i++)
      f->kept[(sample * J + j) * GR_NS + i] = GR_LANE(r->s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES);
  }
  return -1;
}

GR_FN void gr_enter_particles(const gr_particle_task *f, gr_room *r) {
  gr_wide nominal[GR_LEN(GR_NS)];
  long b, i, k, l;
  gr_widen(f->nominal, GR_NS, nominal);
  if (!f->n_walking) {
    gr_widen(f->q, GR_NQ, r->q);
    gr_once(r->q, nominal, r->c);
  }
  gr_walk(f, r, 0, 0);
  for (i = 0; i < f->n_particles; i++) r->weight[i] = 1.0;
  for (b = 0; b < GR_BLOCKS(f); b++)
    for (i = 0; i < GR_NS; i++) {
      gr_wide value = GR_SPLAT(f->start[i]);
      for (l = 0; f->enter && l < GR_LANES; l++) GR_LANE(value, l) = f->enter[(b * GR_LANES + l) * GR_NS + i];
      for (k = 0; k < f->n_walking; k++)
        for (l = 0; l < GR_LANES; l++)
          GR_LANE(value, l) += f->dstart[k * GR_NS + i] *
                               (gr_charted(f, k, f->walking[(b * GR_LANES + l) * f->n_walking + k]) - f->centre[k]);
      r->s[b * GR_LEN(GR_NS) + i] = value;
    }
}

GR_API long gr_particles(gr_particle_task *f) {
  gr_interval it;
  gr_room r;
  double *work = f->work;
  long i, j;
  int failed;
  while ((gr_u64)work % 64) work++;
  gr_arrange(f, work, &r);
  f->failed = -1;
  gr_enter_particles(f, &r);
  it.first = it.last = it.steps = it.stage = it.number = 0;
  failed = f->enter ? -1 : gr_use(f, &r, &it, 1);
  while (failed == -1 && it.last < f->n_cells) {
    it = gr_next(f, &it);
    gr_walk(f, &r, 1 + (f->sample[it.last] < 0 ? 0 : f->sample[it.last]), (gr_u32)(it.number + 1));
    failed = gr_use(f, &r, &it, 0);
  }
  f->failed = failed;
  for (j = 0; f->end && j < f->n_particles; j++)
    for (i = 0; i < GR_NS; i++) f->end[j * GR_NS + i] = GR_LANE(r.s[j / GR_LANES * GR_LEN(GR_NS) + i], j % GR_LANES);
  return 0;
}

#endif
