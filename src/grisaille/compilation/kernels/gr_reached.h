/* Finds what is reached at the instant at which a run stands: relations, ticks of clocks, jumps of signals, and the
 * derivatives of their instants. Included by gr_together.h, which says what for.
 */
#ifndef GR_REACHED_H
#define GR_REACHED_H

#if GR_SENSITIVE

#define GR_SAME_INSTANT 1e-6  /* relative: instants that move alike */
#define GR_UNKNOWN_LENGTH 1e-3 /* of the run: the step before a jump of signals */
#define GR_SIGNALS (-1)
#define GR_TICK(q) (-2 - (q))

/* what is reached at the instant at which the run stands */
typedef struct {
  long count;
  gr_event part[GR_CAP(GR_MOST_PARTS, GR_MOST_E + GR_MOST_Q + 1)]; /* mode, or GR_SIGNALS, GR_TICK(clock) */
  long of_mode[GR_CAP(GR_NE, GR_MOST_E)];             /* the part of a mode, -1 where it is not reached */
  long of_signal[GR_CAP(GR_NU, GR_MOST_U)];           /* the part with which a signal jumps */
  const double *u_before, *u;    /* signals before and after all of them */
} gr_coincidence;

/* where the run stands, without derivatives */
typedef struct {
  double x[GR_CAP(GR_NX, GR_MOST_X)], z[GR_CAP(GR_NZ, GR_MOST_Z)], f[GR_CAP(GR_N, GR_MOST_N)];
  double p[GR_CAP(GR_NP, GR_MOST_P)], slip[GR_CAP(GR_NX, GR_MOST_X)];
  double event_at, joined_at;
  long n_events, at_once, branch;
} gr_moment;

/* in gr_for_turns, for all directions */
typedef struct {
  double *before, *first, *sum; /* GR_MOVED of each: states, then parameters */
  double *dt;                   /* that goes with sum */
  double *instants;             /* GR_MOST_PARTS of each */
} gr_turns;

GR_FN gr_turns gr_turns_in(const gr_task *k) {
  gr_turns s;
  s.before = gr_for_turns(k);
  s.first = s.before + GR_MOVED * k->ns;
  s.sum = s.first + GR_MOVED * k->ns;
  s.dt = s.sum + GR_MOVED * k->ns;
  s.instants = s.dt + k->ns;
  return s;
}

GR_FN double gr_slope_of(const gr_task *k, long i, long d) {
  return i < GR_NX ? k->sx[i + GR_NX * d] : k->dp[i - GR_NX + GR_NP * d];
}

GR_FN void gr_keep_slopes(const gr_task *k, double *to) {
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_MOVED; i++) to[i + GR_MOVED * d] = gr_slope_of(k, i, d);
}

GR_FN void gr_put_slopes(const gr_task *k, const double *from) {
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_MOVED; i++)
      *(i < GR_NX ? k->sx + i + GR_NX * d : k->dp + i - GR_NX + GR_NP * d) = from[i + GR_MOVED * d];
}

GR_COLD void gr_keep_moment(const gr_task *k, const double *f, const double *x, const double *z, gr_moment *m) {
  for (long i = 0; i < GR_NX; i++) m->x[i] = x[i];
  for (long i = 0; i < GR_NZ; i++) m->z[i] = z[i];
  for (long i = 0; i < GR_N; i++) m->f[i] = f[i];
  for (long i = 0; i < GR_NP; i++) m->p[i] = k->p[i];
  for (long i = 0; i < GR_NX; i++) m->slip[i] = gr_slip(k)[i];
  m->event_at = k->event_at;
  m->joined_at = k->joined_at;
  m->n_events = k->n_events;
  m->at_once = k->at_once;
  m->branch = k->branch;
}

GR_COLD void gr_put_moment(gr_task *k, gr_newton *n, double *x, double *z, const gr_moment *m) {
  for (long i = 0; i < GR_NX; i++) x[i] = m->x[i];
  for (long i = 0; i < GR_NZ; i++) z[i] = m->z[i];
  for (long i = 0; i < GR_N; i++) n->f[i] = m->f[i];
  for (long i = 0; i < GR_NP; i++) k->p[i] = m->p[i];
  gr_note_p(k);
  for (long i = 0; i < GR_NX; i++) gr_slip(k)[i] = m->slip[i];
  k->event_at = m->event_at;
  k->joined_at = m->joined_at;
  k->n_events = m->n_events;
  k->at_once = m->at_once;
  k->branch = m->branch;
  n->valid = 0;
}

/* 1 where mode i is at the end of its range, by the motion as it is before anything switches; *up: at which */
GR_COLD long gr_is_reached(const gr_task *k, long i, const gr_gauge *g, const gr_gauge *fuzz, const double *noise, long *up) {
  const double out = gr_outside(k, i, g->q[i]);
  *up = gr_is_upper(k, i, g->q[i]);
  if (gr_sliding(k)[i] != 0.0) return out >= -GR_SHARE_SLACK;
  if (!(*up ? g->rate[i] > fuzz->rate[i] : g->rate[i] < -fuzz->rate[i])) return 0;
  return -out <= noise[i] + fabs(g->rate[i]) * gr_one_instant(k);
}

/* 1 where the share of mode i, which slides and is at the end of its range, leaves it. n->f is F; factors of dF/dz are taken
 * here. */
GR_COLD long gr_share_leaves(gr_task *k, gr_newton *n, long i, long up, double length, const double *x, const double *z,
                             const double *u) {
  if (gr_linearise_z(k, n, k->t, x, z, u)) return 0;
  const double rate = gr_share_rate(k, n, i, length, x, z);
  return up ? rate > 0.0 : rate < 0.0;
}

/* Modes that are reached, each a part; that of `e`, where given, is the first. The end of sliding at a jump of signals comes
 * after it: shares jump with them. n->f is F. */
GR_COLD void gr_list_modes(gr_task *k, gr_newton *n, const gr_event *e, const double *x, const double *z, const double *u,
                           gr_coincidence *c) {
  double noise[GR_NE];
  gr_gauge g, fuzz;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  c->count = 0;
  if (e) c->part[c->count++] = *e;
  for (long i = 0; i < GR_NE; i++) {
    long up;
    c->of_mode[i] = e && i == e->mode ? 0 : -1;
    if ((e && i == e->mode) || !gr_is_reached(k, i, &g, &fuzz, noise, &up)) continue;
    if (gr_sliding(k)[i] != 0.0 && (!e || !gr_share_leaves(k, n, i, up, e->length, x, z, u))) continue;
    const gr_event here = {i, up, e ? gr_bends(k)[i] : 0.0, e ? e->length : GR_UNKNOWN_LENGTH * (k->t1 - k->t0)};
    c->of_mode[i] = c->count;
    c->part[c->count++] = here;
  }
}

/* derivatives of the instant of a part, and in gr_instant_noise what rounding makes of them */
GR_COLD long gr_instants_of(gr_task *k, gr_newton *n, const gr_event *part, const double *x, const double *z,
                            const double *u, double *scratch) {
  for (long d = 0; d < k->ns; d++) k->dt[d] = gr_instant_noise(k)[d] = 0.0;
  if (part->mode >= 0) {
    const long status = gr_moving_instants(k, n, part, x, z, u, scratch);
    return status == GR_GRAZES ? GR_DONE : status; /* where anything changes there, its turn fails */
  }
#if GR_HAS_W
  long ticks[GR_NQ + 1];
  for (long q = 0; q < GR_NQ; q++) ticks[q] = part->mode == GR_TICK(q);
  gr_moving_ticks(k, x, z, u, ticks, k->dt);
#endif
  return GR_DONE;
}

GR_FN long gr_moves_like(const gr_task *k, const double *instants, long part) {
  for (long d = 0; d < k->ns; d++) {
    const double a = k->dt[d], b = instants[part + GR_MOST_PARTS * d];
    if (fabs(a - b) > GR_SAME_INSTANT * (fabs(a) + fabs(b) + gr_instant_noise(k)[d])) return 0;
  }
  return 1;
}

/* Parts that move alike become one. Listed are relations first: one that is reached with a jump of signals that moves alike
 * is looked at where they jump. */
GR_COLD long gr_join_parts(gr_task *k, gr_newton *n, gr_coincidence *c, const gr_moment *m, const gr_turns *s, double *x,
                           double *z, double *scratch) {
  long count = 0, becomes[GR_MOST_PARTS];
  for (long a = 0; a < c->count; a++) {
    const long status = gr_instants_of(k, n, &c->part[a], x, z, c->part[a].mode >= 0 ? c->u_before : c->u, scratch);
    gr_put_slopes(k, s->before);
    for (long i = 0; i < GR_N; i++) n->f[i] = m->f[i];
    if (status) return status;
    long like = 0;
    while (like < count && !gr_moves_like(k, s->instants, like)) like++;
    becomes[a] = like;
    if (like == count || c->part[a].mode < 0) c->part[like] = c->part[a];
    if (like < count) continue;
    for (long d = 0; d < k->ns; d++) s->instants[count + GR_MOST_PARTS * d] = k->dt[d];
    count++;
  }
  for (long i = 0; i < GR_NE; i++)
    if (c->of_mode[i] >= 0) c->of_mode[i] = becomes[c->of_mode[i]];
  for (long i = 0; i < GR_NU; i++)
    if (c->of_signal[i] >= 0) c->of_signal[i] = becomes[c->of_signal[i]];
  c->count = count;
  return GR_DONE;
}

/* what jumps with signals: ticks of clocks, each a part, and the rest of them; answers how many parts there are */
GR_COLD long gr_list_signals(gr_coincidence *c) {
  long parts = 0, rest = -1;
  for (long i = 0; i < GR_NU; i++) c->of_signal[i] = -1;
#if GR_HAS_W
  long ticks[GR_NQ + 1];
  gr_ticking(c->u_before, c->u, ticks);
  for (long q = 0; q < GR_NQ; q++) {
    const gr_event tick = {GR_TICK(q), 0, 0.0, 0.0};
    if (!ticks[q]) continue;
    if (c->of_signal[gr_counter[q]] < 0) {
      c->of_signal[gr_counter[q]] = c->count;
      c->part[c->count++] = tick;
      parts++;
    }
  }
#endif
  for (long i = 0; i < GR_NU; i++) {
    const gr_event jump = {GR_SIGNALS, 0, 0.0, 0.0};
    if (c->of_signal[i] >= 0 || fabs(c->u[i] - c->u_before[i]) <= 64.0 * GR_EPS * (fabs(c->u[i]) + fabs(c->u_before[i]))) continue;
    if (rest < 0) {
      rest = c->count;
      c->part[c->count++] = jump;
      parts++;
    }
    c->of_signal[i] = rest;
  }
  return parts;
}

/* signals where they jump within rounding after the instant at which the run stands and are u before; 0 where none does */
GR_COLD long gr_signals_ahead(const gr_task *k, const double *u, double *u_after) {
  const double close = gr_one_instant(k);
  const long here = gr_segment(k, k->t - close, 0);
  for (long i = here > 0 ? here : 1; i + 1 < k->n_breaks && k->breaks[i] <= k->t + close; i++) {
    if (!k->kink[i] || fabs(k->breaks[i] - k->t) > close || !gr_signals_jump(k, i - 1, i, k->t)) continue;
    double before[GR_LEN(GR_NU)];
    long is_ahead = 1;
    gr_signals_from(k, i - 1, k->t, before);
    for (long j = 0; j < GR_NU; j++) is_ahead &= fabs(before[j] - u[j]) <= 64.0 * GR_EPS * (fabs(before[j]) + fabs(u[j]));
    if (!is_ahead) continue;
    gr_signals_from(k, i, k->t, u_after);
    return 1;
  }
  return 0;
}

#endif
#endif
