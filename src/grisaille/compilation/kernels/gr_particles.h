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

#include "gr_particle_proposals.h"
#include "gr_particle_summaries.h"

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
