/* Carries out what a model does at events (structure/when_lowering.py): clauses whose condition becomes true give
 * states and discrete variables new values. Included by gr_events.h.
 *
 * Before the modes p holds, for each clause: whether its condition was true when the last iteration ended, whether it
 * fires in this pass, when it fired last and how often in a row within rounding; then what conditions remember (discrete
 * variables and conditions of edge) and pulses, 1 at the instant of a tick or at the start.
 *
 * An event is iterated as Modelica 3.6, appendix B, has it. In an iteration what is remembered (`pre`) and the states
 * stay as they are, and each clause is decided once, after those that set what it needs (gr_rank):
 *
 *   clauses whose condition is true and was not fire, of one `when` the first (those that last: wherever it is true);
 *   discrete variables <- R(t, x, z, u, p), z and F follow.
 *
 * At its end conditions and discrete variables are remembered, and what is reinitialized gets its value,
 *
 *   x <- R(t, x, z, u, p), x onto the constraints, where what was set stays and the rest follows.
 *
 * Iterations follow each other until nothing changes. Relations that stand at their switch keep their sides meanwhile.
 *
 * With dt the derivative of the instant, the total derivative X = S + F dt along it becomes
 *
 *   X <- dR/d[x; z] [S; sz] + dR/dp dp + (rate of R) dt,     then projected,     S = X - F_after dt,
 *
 * and the derivatives of discrete variables, which stand in dp, likewise.
 */
#ifndef GR_WHEN_H
#define GR_WHEN_H

#if GR_HAS_W

#define GR_MOST_PASSES 100
#define GR_STIFFER 1e-8     /* weight of a state of a lower level beside one of the next, where a reset is followed */
#define GR_CONTRADICTION 1e-6
#define GR_SLOTS (4 * GR_NW + GR_NB + GR_NQ)

GR_FN double *gr_seen(const gr_task *k) { return k->p + GR_NP - 4 * GR_NE - GR_SLOTS; }
GR_FN double *gr_fired(const gr_task *k) { return gr_seen(k) + GR_NW; }
GR_FN double *gr_last(const gr_task *k) { return gr_seen(k) + 2 * GR_NW; }
GR_FN double *gr_repeats(const gr_task *k) { return gr_seen(k) + 3 * GR_NW; }
GR_FN double *gr_was(const gr_task *k) { return gr_seen(k) + 4 * GR_NW; }
GR_FN double *gr_pulse(const gr_task *k) { return gr_seen(k) + 4 * GR_NW + GR_NB; }

/* 1 where clauses wait for those of a lower rank */
GR_FN long gr_has_ranks(void) {
  for (long w = 0; w < GR_NW; w++)
    if (gr_rank[w] != 0) return 1;
  return 0;
}

/* what conditions remember, and how it moves */
GR_COLD long gr_update_memory(gr_task *k, const double *now) {
  long moved = 0;
  for (long j = 0; j < GR_NB; j++) {
    moved |= gr_was(k)[j] != now[j];
    gr_was(k)[j] = now[j];
  }
#if GR_SENSITIVE
  const long place = gr_was(k) - k->p;
  for (long d = 0; d < k->ns; d++)
    for (long j = 0; gr_remembered[j] >= 0; j++) k->dp[place + j + GR_NP * d] = k->dp[gr_remembered[j] + GR_NP * d];
#endif
  return moved;
}

/* what conditions remember and are now, without firing anything */
GR_COLD void gr_remember(gr_task *k, const double *x, const double *z, const double *u) {
  double now[GR_NW + GR_NB + 1];
  gr_W(k->t, x, z, u, k->p, now);
  gr_update_memory(k, now + GR_NW);
  gr_W(k->t, x, z, u, k->p, now);
  for (long w = 0; w < GR_NW; w++) gr_seen(k)[w] = now[w] != 0.0;
}

/* One iteration of an event, as far as it has come */
typedef struct {
  long *decided, *holds; /* GR_NW: clauses that have been decided, and what their conditions were then */
  long *done;            /* GR_NW: those that have fired */
  long first;            /* during initialization, where only clauses fire that last or ask for it */
} gr_iteration;

GR_FN void gr_begin_iteration(gr_iteration *s) {
  for (long w = 0; w < GR_NW; w++) s->decided[w] = s->done[w] = 0;
}

/* The clauses that fire in this pass: of those that are not decided the ones of the lowest rank; those that set nothing
 * that others need wait. Clauses that need each other are decided at once, by what held before. */
GR_COLD long gr_choose_clauses(gr_task *k, const double *x, const double *z, const double *u, gr_iteration *s) {
  double now[GR_NW + GR_NB + 1];
  long count = 0, lowest = -1;
  gr_W(k->t, x, z, u, k->p, now);
  for (long w = 0; w < GR_NW; w++) {
    long fires = now[w] != 0.0 && (gr_lasting[w] || (gr_seen(k)[w] == 0.0 && !s->decided[w])) && (!s->first || gr_begins[w]);
    for (long v = w - 1; fires && v >= 0 && gr_group[v] == gr_group[w]; v--) fires = gr_fired(k)[v] == 0.0 && !s->done[v];
    gr_fired(k)[w] = (double)fires;
    if (fires && (lowest < 0 || gr_rank[w] < lowest)) lowest = gr_rank[w];
  }
  for (long w = 0; w < GR_NW; w++) {
    const long waits = lowest >= 0 && gr_rank[w] > lowest;
    if (waits) gr_fired(k)[w] = 0.0;
    if (!waits && !s->decided[w]) {
      s->decided[w] = 1;
      s->holds[w] = now[w] != 0.0;
    }
    s->done[w] |= gr_fired(k)[w] != 0.0 && !gr_lasting[w];
    count += gr_fired(k)[w] != 0.0;
  }
  return count;
}

/* clauses of which one needs what is solved for after the other must not fire in one iteration */
GR_COLD long gr_refuse_clashes(gr_task *k, const gr_iteration *s) {
  for (const long *pair = gr_clash; *pair >= 0; pair += 2)
    if (s->done[pair[0]] && s->done[pair[1]]) return gr_fail(k, GR_CLASHES, pair[0], (double)pair[1]);
  return GR_DONE;
}

/* The same clause again and again within rounding, of time or, soon after, of the gap that made it fire (`stuck`): its
 * events accumulate. `fresh`: not yet in this event. */
GR_COLD long gr_note_clauses(gr_task *k, long *fresh, long stuck) {
  const double within = 1e-12 * (k->t1 - k->t0) + 100.0 * gr_smallest_step(k, k->t);
  const double close = stuck ? fmax(within, GR_GRAZING * (k->t1 - k->t0)) : within;
  for (long w = 0; w < GR_NW; w++) {
    if (gr_fired(k)[w] == 0.0) continue;
    if (fresh[w]) gr_repeats(k)[w] = k->t - gr_last(k)[w] <= close ? gr_repeats(k)[w] + 1.0 : 0.0;
    fresh[w] = 0;
    gr_last(k)[w] = k->t;
    if (gr_repeats(k)[w] >= 2.0) return gr_fail(k, GR_REPEATS, w, gr_repeats(k)[w] + 1.0);
    const long status = gr_record(k, GR_NE + w, 0.0);
    if (status) return status;
  }
  return GR_DONE;
}

/* how many of the clauses that fire set state i */
GR_FN long gr_is_set(const gr_task *k, long i) {
  long count = 0;
  for (long w = 0; w < GR_NW; w++) count += gr_fired(k)[w] != 0.0 && gr_resets[w * GR_NX + i];
  return count;
}

/* how many states the clauses of this iteration set: they fire once more, for these */
GR_COLD long gr_fire_for_states(gr_task *k, const gr_iteration *s) {
  long count = 0;
  for (long w = 0; w < GR_NW; w++) gr_fired(k)[w] = (double)s->done[w];
  for (long i = 0; i < GR_NX; i++) count += gr_is_set(k, i);
  return count;
}

enum { GR_DISCRETE = 1, GR_STATES = 2 };

/* whether target i is among what is set now */
GR_FN long gr_is_target(long i, long what) { return (what & (gr_target[i] < GR_NX ? GR_STATES : GR_DISCRETE)) != 0; }

/* The metric of the projection after a reset: what was set stays, states of higher levels follow first. */
GR_COLD void gr_weigh_states(const gr_task *k, long what, double *weight) {
  long highest = 0;
  for (long i = 0; i < GR_NX; i++) highest = gr_yields[i] > highest ? gr_yields[i] : highest;
  for (long i = 0; i < GR_NX; i++)
    weight[i] = k->nominal[i] * pow(GR_STIFFER, (double)(what & GR_STATES && gr_is_set(k, i) ? highest + 1 : highest - gr_yields[i]));
}

/* x onto the constraints, k->nominal being the weights. What was set must not move, nor what lies below it: a position
 * does not follow a velocity. */
GR_COLD long gr_follow_reset(gr_task *k, gr_projection *c, long what, double *x, const double *z, const double *u,
                             const double *nominal) {
#if GR_HAS_C
  double wished[GR_LEN(GR_NX)];
  long lowest = GR_NX, first = -1;
  for (long i = 0; i < GR_NX; i++) wished[i] = x[i];
  for (long i = GR_NX - 1; i >= 0; i--) {
    if (!(what & GR_STATES) || !gr_is_set(k, i)) continue;
    first = i;
    lowest = gr_yields[i] < lowest ? gr_yields[i] : lowest;
  }
  const long status = gr_project(k, c, k->t, x, z, u);
  if (status) return status;
  for (long i = 0; i < GR_NX; i++)
    if (first >= 0 && (gr_is_set(k, i) || gr_yields[i] < lowest) &&
        fabs(x[i] - wished[i]) > GR_CONTRADICTION * fmax(nominal[i], fabs(wished[i])))
      return gr_fail(k, GR_CONTRADICTS, gr_is_set(k, i) ? i : first, x[i] - wished[i]);
#else
  (void)k; (void)c; (void)what; (void)x; (void)z; (void)u; (void)nominal;
#endif
  return GR_DONE;
}

/* gaps that a reset has moved are decided anew; a mode slides on only where its gap has not moved */
GR_COLD long gr_modes_after_reset(gr_task *k, const double *before, const double *x, const double *z, const double *u,
                                  long *near) {
  double after[GR_NE], noise[GR_NE];
  gr_gauge g;
  gr_G(k->t, x, z, u, k->p, after);
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  for (long i = 0; i < GR_NE; i++) {
    if (fabs(after[i] - before[i]) <= 64.0 * noise[i] + 8.0 * GR_EPS * fabs(before[i])) continue;
    near[i] = GR_AWAY;
    gr_slack(k)[i] = 0.0;
    if (gr_sliding(k)[i] == 0.0) continue;
    gr_sliding(k)[i] = 0.0;
    gr_held(k)[i] = gr_relation(gr_kind_of(i), after[i]);
    const long status = gr_record(k, i, after[i] > before[i] ? 2.0 : -2.0);
    if (status) return status;
  }
  return GR_DONE;
}

#if GR_SENSITIVE
/* sx becomes the total derivative along the moving instant after what is set, dp those of discrete variables */
GR_COLD long gr_reset_sensitivity(gr_task *k, gr_newton *n, long what, const double *x, const double *z, const double *u,
                                  double *scratch) {
  double *rj = gr_for_resets(k), *rp = rj + GR_NR * GR_N, rd[GR_LEN(GR_NR)], f[GR_LEN(GR_N)], next[GR_LEN(GR_NR)];
  for (long i = 0; i < GR_N; i++) f[i] = n->f[i];
  const long status = gr_complete_sensitivity(k, n, k->t, x, z, u, k->sx, k->sz, scratch);
  if (status) return status;
  gr_RJ(k->t, x, z, u, k->p, rj);
  gr_RP(k->t, x, z, u, k->p, rp);
  gr_RD(k->t, x, z, u, k->p, rd);
  for (long d = 0; d < k->ns; d++) {
    double *sx = k->sx + GR_NX * d, *sz = k->sz + GR_NZ * d, *dp = k->dp + GR_NP * d;
    for (long i = 0; i < GR_NR; i++) {
      double size = 0.0;
      if (!gr_is_target(i, what)) continue;
      next[i] = 0.0;
      if (k->dt[d] != 0.0) gr_add(rd[i] * k->dt[d], &next[i], &size);
      for (long j = 0; j < GR_NP; j++)
        if (dp[j] != 0.0) gr_add(rp[i + GR_NR * j] * dp[j], &next[i], &size);
      for (long j = 0; j < GR_NX; j++) gr_add(rj[i + GR_NR * j] * sx[j], &next[i], &size);
      for (long j = 0; j < GR_NZ; j++) gr_add(rj[i + GR_NR * (GR_NX + j)] * sz[j], &next[i], &size);
      gr_sizes(k)[gr_target[i] + GR_MOVED * d] += size + fabs(rd[i]) * gr_instant_noise(k)[d];
    }
    for (long j = 0; j < GR_NX; j++) sx[j] += f[j] * k->dt[d];
    for (long i = 0; i < GR_NR; i++)
      if (gr_is_target(i, what)) *(gr_target[i] < GR_NX ? sx + gr_target[i] : dp + (gr_target[i] - GR_NX)) = next[i];
  }
  return GR_DONE;
}
#endif

/* New values of the clauses that fire, of what is to be set now; x, z, F, modes and sensitivities follow. */
GR_COLD long gr_take_actions(gr_task *k, gr_newton *n, long what, double *x, double *z, const double *u, long *near,
                             double *scratch) {
  double next[GR_LEN(GR_NR)], gap[GR_NE], weight[GR_LEN(GR_NX)], x_before[GR_LEN(GR_NX)];
  const double *nominal = k->nominal;
  gr_projection c = gr_projection_in(gr_for_resets(k));
  long status = GR_DONE;
  for (long i = 0; i < GR_NX; i++)
    if (gr_is_set(k, i) > 1) return gr_fail(k, GR_CONTRADICTS, i, HUGE_VAL);
  gr_R(k->t, x, z, u, k->p, next);
  gr_G(k->t, x, z, u, k->p, gap);
  for (long i = 0; i < GR_NR; i++) /* what is not set is not asked for */
    if (!gr_is_target(i, what)) next[i] = 0.0;
  const long bad = gr_not_finite(GR_NR, next);
  if (bad >= 0) return gr_fail(k, GR_NOT_FINITE, gr_target[bad] < GR_NX ? gr_target[bad] : -1, next[bad]);
#if GR_SENSITIVE
  if (k->ns > 0) status = gr_reset_sensitivity(k, n, what, x, z, u, scratch);
  if (status) return status;
#else
  (void)scratch;
#endif
  for (long i = 0; i < GR_NX; i++) x_before[i] = x[i];
  for (long i = 0; i < GR_NR; i++)
    if (gr_is_target(i, what)) *(gr_target[i] < GR_NX ? x + gr_target[i] : k->p + (gr_target[i] - GR_NX)) = next[i];
  gr_weigh_states(k, what, weight);
  k->nominal = weight;
  status = gr_follow_reset(k, &c, what, x, z, u, nominal);
  if (!status) status = gr_solve_set(k, n, x_before, x, z, u);
#if GR_SENSITIVE
  if (!status && k->ns > 0) gr_project_moving(k, &c, k->t, x, z, u, k->sx, n->f, k->dt);
#endif
  k->nominal = nominal;
  if (status) return status;
  status = gr_modes_after_reset(k, gap, x, z, u, near);
  if (status) return status;
#if GR_SENSITIVE
  double before[GR_LEN(GR_NX)];
  for (long j = 0; j < GR_NX; j++) before[j] = n->f[j];
#endif
  status = gr_agree(k, n, x, z, u, near);
#if GR_SENSITIVE
  if (!status) gr_saltate(k, before, n->f);
#endif
  return status;
}

/* modes whose gaps contain what is remembered (pre of a discrete variable), which has changed; gap: as they were before */
GR_COLD long gr_agree_on_memory(gr_task *k, gr_newton *n, const double *gap, double *x, double *z, const double *u,
                                long *near) {
  double before[GR_LEN(GR_NX)];
  for (long j = 0; j < GR_NX; j++) before[j] = n->f[j];
  long status = gr_modes_after_reset(k, gap, x, z, u, near);
  if (!status) status = gr_agree(k, n, x, z, u, near);
#if GR_SENSITIVE
  if (!status) gr_saltate(k, before, n->f);
#else
  (void)before;
#endif
  return status;
}

/* Relations that stand at their switch keep the side on which they are until nothing changes. They would turn back as
 * soon as an action turns the motion, before what they have caused is remembered. */
GR_COLD void gr_keep_sides(gr_task *k, const double *x, const double *z, const double *u, long *near, long *kept) {
  double noise[GR_NE];
  gr_gauge g;
  gr_gauge_at(k, k->t, x, z, u, &g);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  for (long i = 0; i < GR_NE; i++) {
    kept[i] = near[i];
    if (near[i] == GR_WAITS) continue;
    if ((gr_kind_of(i) != GR_LT && gr_kind_of(i) != GR_LE) || g.rate[i] == 0.0) continue;
    if (gr_sliding(k)[i] == 0.0 && (near[i] == GR_NEAR || gr_outside(k, i, g.q[i]) >= -noise[i])) near[i] = GR_LEFT;
  }
}

/* ... and are decided then; 1 where one has turned */
GR_COLD long gr_turn_sides(gr_task *k, gr_newton *n, double *x, double *z, const double *u, long *near, const long *kept,
                           long *turned) {
  double held[GR_NE], gap[GR_NE];
  *turned = 0;
  for (long i = 0; i < GR_NE; i++) {
    held[i] = gr_held(k)[i];
    *turned |= near[i] == GR_LEFT && kept[i] != GR_LEFT;
  }
  if (!*turned) return GR_DONE;
  for (long i = 0; i < GR_NE; i++) {
    if (near[i] == GR_WAITS) continue;
    if (near[i] == GR_LEFT) near[i] = kept[i];
    else if (gr_sliding(k)[i] == 0.0 && gr_slack(k)[i] > 0.0) near[i] = GR_NEAR;
    if (gr_sliding(k)[i] == 0.0) gr_slack(k)[i] = 0.0;
  }
  gr_G(k->t, x, z, u, k->p, gap);
  const long status = gr_agree_on_memory(k, n, gap, x, z, u, near);
  *turned = 0;
  for (long i = 0; i < GR_NE; i++) *turned |= gr_held(k)[i] != held[i];
  return status;
}

/* 1 where what fires now is all of an iteration, so that states are set at once: nothing has fired before, and nothing may
 * fire after it */
GR_FN long gr_is_whole(const gr_task *k, const gr_iteration *s) {
  long highest = 0, now = 0;
  for (long w = 0; w < GR_NW; w++) {
    const long fires = gr_fired(k)[w] != 0.0;
    if (gr_lasting[w] || (s->done[w] && !fires)) return 0;
    highest = gr_rank[w] > highest ? gr_rank[w] : highest;
    if (fires) now = gr_rank[w];
  }
  return now == highest;
}

/* The clauses that fire in a pass, their discrete variables, and their states where this pass is all of its
 * iteration: *what */
GR_COLD long gr_fire(gr_task *k, gr_newton *n, const gr_iteration *s, long *fresh, long dated, long stuck, long *what,
                     double *x, double *z, const double *u, long *near, double *scratch) {
  long first = 0;
  while (gr_fired(k)[first] == 0.0) first++;
  if (k->ns > 0 && !dated) return gr_fail(k, GR_NO_INSTANT, first, 0.0);
  *what = gr_is_whole(k, s) ? GR_DISCRETE | GR_STATES : GR_DISCRETE;
  long status = gr_refuse_clashes(k, s);
  if (!status) status = gr_note_clauses(k, fresh, stuck);
  if (!status) status = gr_take_actions(k, n, *what, x, z, u, near, scratch);
  return status;
}

/* Iterations until nothing changes. n->f must be F here; `dated`: dt is the derivative of this instant; `stuck`: the gap
 * that is at its switch has not left it since it was decided last. */
GR_COLD long gr_react(gr_task *k, gr_newton *n, double *x, double *z, const double *u, long *near, long first, long dated,
                      long stuck, double *scratch) {
  long fresh[GR_NW], of_clauses[3 * GR_NW], kept[GR_NE], keeps = 0, what = 0, fires = 0, turned, ticks = 0, status = GR_DONE;
  double gap[GR_NE + 1], now[GR_NW + GR_NB + 1];
  gr_iteration s = {of_clauses, of_clauses + GR_NW, of_clauses + 2 * GR_NW, first};
  for (long w = 0; w < GR_NW; w++) fresh[w] = 1;
  gr_begin_iteration(&s);
  for (long pass = 0; !status; pass++) {
    const long count = gr_choose_clauses(k, x, z, u, &s);
    if (pass >= 10 * GR_MOST_PASSES || (count > 0 && pass >= GR_MOST_PASSES && !gr_has_ranks())) {
      long w = 0;
      while (w < GR_NW - 1 && gr_fired(k)[w] == 0.0) w++;
      return gr_fail(k, GR_REPEATS, w, 0.0);
    }
    if (count > 0) {
      if (!keeps) gr_keep_sides(k, x, z, u, near, kept);
      keeps = fires = 1;
      status = gr_fire(k, n, &s, fresh, dated, stuck, &what, x, z, u, near, scratch);
      continue;
    }
    gr_W(k->t, x, z, u, k->p, now);
    gr_G(k->t, x, z, u, k->p, gap);
    if (fires && !(what & GR_STATES) && gr_fire_for_states(k, &s)) {
      status = gr_take_actions(k, n, GR_STATES, x, z, u, near, scratch);
      if (status) return status;
      gr_G(k->t, x, z, u, k->p, gap);
    }
    for (long w = 0; w < GR_NW; w++) gr_seen(k)[w] = (double)s.holds[w];
    const long moved = gr_update_memory(k, now + GR_NW);
    gr_begin_iteration(&s);
    if (moved) {
      if (!keeps) gr_keep_sides(k, x, z, u, near, kept);
      keeps = 1;
      status = gr_agree_on_memory(k, n, gap, x, z, u, near);
    }
    if (first || (!moved && !fires)) {
      if (!keeps) break;
      status = gr_turn_sides(k, n, x, z, u, near, kept, &turned);
      if (status || !turned || first) break;
      gr_keep_sides(k, x, z, u, near, kept);
    }
    fires = what = 0;
  }
  if (status) return status;
  for (long q = 0; q < GR_NQ; q++) {
    ticks |= gr_pulse(k)[q] != 0.0;
    gr_pulse(k)[q] = 0.0;
  }
  if (ticks) gr_remember(k, x, z, u);
  return GR_DONE;
}

/* The derivative dt of the instant at which clocks tick; answers 0 where clocks that tick at once move apart. u: signals
 * from there on. */
GR_COLD long gr_moving_ticks(gr_task *k, const double *x, const double *z, const double *u, const long *ticks, double *dt) {
  long dated = 1;
  for (long d = 0; d < k->ns; d++) dt[d] = 0.0;
#if GR_SENSITIVE
  double *slope = gr_by_p(k);
  long known = 0;
  if (k->ns > 0) gr_TP(k->t, x, z, u, k->p, slope);
  for (long q = 0; k->ns > 0 && q < GR_NQ; q++) {
    if (!ticks[q]) continue;
    for (long d = 0; d < k->ns; d++) {
      double moved = 0.0;
      for (long j = 0; j < GR_NP; j++)
        if (k->dp[j + GR_NP * d] != 0.0) moved += slope[q + GR_NQ * j] * k->dp[j + GR_NP * d];
      if (known && fabs(moved - dt[d]) > 1e-9 * (fabs(moved) + fabs(dt[d]))) dated = 0;
      dt[d] = moved;
    }
    known = 1;
  }
#else
  (void)x; (void)z; (void)u; (void)ticks;
#endif
  return dated;
}

/* the clocks that tick where signals go from u_before to u */
GR_FN void gr_ticking(const double *u_before, const double *u, long *ticks) {
  for (long q = 0; q < GR_NQ; q++) ticks[q] = gr_counter[q] >= 0 && u[gr_counter[q]] != u_before[gr_counter[q]];
}

/* pulses where signals go from u_before to u; answers as gr_moving_ticks does */
GR_COLD long gr_ticks(gr_task *k, const double *x, const double *z, const double *u_before, const double *u) {
  long ticks[GR_NQ + 1];
  gr_ticking(u_before, u, ticks);
  for (long q = 0; q < GR_NQ; q++)
    if (ticks[q]) gr_pulse(k)[q] = 1.0;
  return gr_moving_ticks(k, x, z, u, ticks, k->dt);
}

/* Initialization: what holds there fires nothing. Only clauses that last or ask for it fire, once: what `pre` becomes then
 * belongs to the first event, where all others see it. */
GR_COLD long gr_initialize(gr_task *k, gr_newton *n, double *x, double *z, const double *u, long *near, double *scratch) {
  long begins = 0, status = GR_DONE;
  for (long i = 0; i < GR_SLOTS; i++) gr_seen(k)[i] = 0.0;
  for (long w = 0; w < GR_NW; w++) gr_last(k)[w] = -HUGE_VAL;
  gr_remember(k, x, z, u);
  for (long q = 0; q < GR_NQ; q++) gr_pulse(k)[q] = gr_counter[q] < 0;
  for (long w = 0; w < GR_NW; w++) begins |= gr_begins[w];
  if (begins) status = gr_react(k, n, x, z, u, near, 1, 1, 0, scratch);
  if (!status) gr_remember(k, x, z, u);
  return status;
}

/* 1 where no direction moves the gaps of relations that have turned at the start, where they stood at their switch */
GR_COLD long gr_turned_unmoved(gr_task *k, gr_newton *n, const double *held, const double *x, const double *z,
                               const double *u, double *scratch, long *status) {
#if GR_SENSITIVE
  double *slope = gr_gap_slope(k), *by_p = gr_by_p(k);
  long turned = 0;
  for (long i = 0; i < GR_NE; i++) turned |= gr_held(k)[i] != held[i];
  if (k->ns == 0 || !turned) return 1;
  *status = gr_complete_sensitivity(k, n, k->t, x, z, u, k->sx, k->sz, scratch);
  if (*status) return 0;
  gr_GJ(k->t, x, z, u, k->p, slope);
  gr_GP(k->t, x, z, u, k->p, by_p);
  for (long d = 0; d < k->ns; d++)
    for (long i = 0; i < GR_NE; i++) {
      if (gr_held(k)[i] == held[i]) continue;
      double moved = 0.0;
      for (long j = 0; j < GR_NP; j++)
        if (k->dp[j + GR_NP * d] != 0.0) moved += by_p[i + GR_NE * j] * k->dp[j + GR_NP * d];
      for (long j = 0; j < GR_NX; j++) moved += slope[i + GR_NE * j] * k->sx[j + GR_NX * d];
      for (long j = 0; j < GR_NZ; j++) moved += slope[i + GR_NE * (GR_NX + j)] * k->sz[j + GR_NZ * d];
      if (moved != 0.0) return 0;
    }
#else
  (void)k; (void)n; (void)held; (void)x; (void)z; (void)u; (void)scratch; (void)status;
#endif
  return 1;
}

/* The first event of a run: what ticks at its start, and relations that the motion takes from their switch at once. A tick
 * that moves is one that comes later: before the start there is none. */
GR_COLD long gr_react_at_start(gr_task *k, gr_newton *n, const double *held, double *x, double *z, const double *u,
                               long *near, double *scratch) {
  double instant[GR_NQ + 1];
  long ticks[GR_NQ + 1], status = GR_DONE;
  gr_T(k->t, x, z, u, k->p, instant);
  for (long q = 0; q < GR_NQ; q++) {
    const long at = gr_counter[q];
    ticks[q] = at >= 0 && u[at] >= 0.0 && fabs(instant[q] - k->t) <= 4.0 * gr_smallest_step(k, k->t);
    gr_pulse(k)[q] = (double)ticks[q];
  }
  long dated = gr_moving_ticks(k, x, z, u, ticks, k->dt);
  if (dated) dated = gr_turned_unmoved(k, n, held, x, z, u, scratch, &status);
  return status ? status : gr_react(k, n, x, z, u, near, 0, dated, 0, scratch);
}

#endif
#endif
