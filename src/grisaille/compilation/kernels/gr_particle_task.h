/* What a particle filter is asked and answers, and the scratch memory of its loop. Mirrored by
 * compilation/particles/particle_task.py (ctypes); keep both in step.
 */
#ifndef GR_PARTICLE_TASK_H
#define GR_PARTICLE_TASK_H

#include "gr_normal.h"
#include "gr_resample.h"
#include "gr_task.h"
#include "gr_wide.h"

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

#endif
