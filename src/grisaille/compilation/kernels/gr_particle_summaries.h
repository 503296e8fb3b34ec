/* What particles show together, how unknowns walk with them, and how they are drawn again by their weights.
 */
#ifndef GR_PARTICLE_SUMMARIES_H
#define GR_PARTICLE_SUMMARIES_H

#include "gr_particle_steps.h"

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

#endif
