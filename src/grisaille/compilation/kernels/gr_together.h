/* Computes derivatives where several switches are reached at one instant. Included by gr_events.h.
 *
 * What is reached there (relations whose gaps come to their switches by themselves, ticks of clocks, a jump of signals)
 * has instants of its own, which move apart with parameters: to one side in one order, to the other in the reverse.
 * What moves alike in every direction, such as two relations of one gap, is one part. Each order of the parts is a
 * composition of single switches at the same point, while those whose turn comes later wait:
 *
 *   S_12 = M_2(after 1) M_1 S,        S_21 = M_1(after 2) M_2 S.
 *
 * Along a direction the derivative from one side is that of the order in which the instants move apart, that from the
 * other side that of its reverse. Where all agree, in states, discrete variables and derivatives, that is the
 * derivative; else there is none: GR_ORDER. Where neither the rate of a gap nor what its switch changes depends on another
 * part, they agree. The length of a frozen step (gr_slip) belongs to the part that comes first, so that there the two sides
 * differ by the discretisation error: the mean of both is what central differences of the steps give.
 */
#ifndef GR_TOGETHER_H
#define GR_TOGETHER_H

#include "gr_reached.h"

#if GR_SENSITIVE

#define GR_SAME_OUTCOME 1e-9  /* relative: states and discrete variables after two orders */
#define GR_SAME_SLOPE 1e-6    /* relative: derivatives after two orders */
#define GR_ROUNDED_SLOPE 1e-12 /* of the largest derivative in units of nominal values: what projections leave of nothing */
#define GR_MOST_ORDERS 4
#define GR_SLIPS 1e-8         /* of F: what the length of a frozen step adds to it, and may make the sides differ */

/* ---- one after the other ---- */

/* 1 where the mode of a part still comes to its switch: what came before it may have moved its gap, turned its motion, or
 * switched it too. A share is known as z is. */
GR_COLD long gr_is_due(const gr_task *k, const gr_event *part, const double *x, const double *z, const double *u,
                       const gr_moment *m) {
  double noise[GR_NE];
  const long i = part->mode, at = GR_NP - 4 * GR_NE + i;
  long up;
  gr_gauge g, fuzz;
  if (k->p[at] != m->p[at] || k->p[at + 2 * GR_NE] != m->p[at + 2 * GR_NE]) return 0;
  gr_gauge_at(k, k->t, x, z, u, &g);
  if (gr_sliding(k)[i] != 0.0)
    return gr_outside(k, i, g.q[i]) >= -GR_SHARE_SLACK - 10.0 * (k->atol[GR_NX + GR_SHARES + i] + k->rtol);
  gr_gauge_noise(k, k->t, x, z, u, &g, noise);
  gr_fuzz_at(k, k->t, x, z, u, &g, &fuzz);
  return gr_is_reached(k, i, &g, &fuzz, noise, &up) && up == part->up;
}

/* Parts in this order, each alone; the others wait. The run stands where it does after them. */
GR_COLD long gr_take_turns(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_turns *s,
                           const long *order, long count, double *x, double *z, double *scratch) {
  double u[GR_LEN(GR_NU)], u_next[GR_LEN(GR_NU)];
  long marks[GR_NE], status = GR_DONE;
  gr_put_moment(k, n, x, z, m);
  gr_put_slopes(k, s->before);
  for (long i = 0; i < GR_NU; i++) u[i] = u_next[i] = c->u_before[i];
  for (long i = 0; i < GR_NE; i++) marks[i] = c->of_mode[i] >= 0 ? GR_WAITS : GR_AWAY;
  for (long turn = 0; turn < count && !status; turn++) {
    const gr_event *part = &c->part[order[turn]];
    for (long i = 0; i < GR_NE; i++)
      if (c->of_mode[i] == order[turn]) marks[i] = GR_NEAR;
    for (long i = 0; i < GR_NU; i++)
      if (c->of_signal[i] == order[turn]) u_next[i] = c->u[i];
    if (part->mode < 0) status = gr_pass_kink(k, n, x, z, u, u_next, marks, scratch);
    else if (turn == 0 || gr_is_due(k, part, x, z, u, m)) status = gr_switch(k, n, part, x, z, u, marks, scratch);
    for (long i = 0; i < GR_NE; i++) /* what has ended to slide stays so */
      if (c->of_mode[i] == order[turn]) marks[i] = m->p[GR_NP - 2 * GR_NE + i] != 0.0 ? GR_LEFT : GR_AWAY;
    for (long i = 0; i < GR_NX; i++) gr_slip(k)[i] = 0.0;
    for (long i = 0; i < GR_NU; i++) u[i] = u_next[i];
  }
  return status;
}

/* All at once, as runs without derivatives do. */
GR_COLD long gr_take_all(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_event *e,
                         double *x, double *z, double *scratch) {
  const long ns = k->ns;
  long marks[GR_NE];
  gr_put_moment(k, n, x, z, m);
  for (long i = 0; i < GR_NE; i++) marks[i] = c->of_mode[i] >= 0 ? GR_NEAR : GR_AWAY;
  k->ns = 0;
  const long status = e ? gr_switch(k, n, e, x, z, c->u_before, marks, scratch)
                        : gr_pass_kink(k, n, x, z, c->u_before, c->u, marks, scratch);
  k->ns = ns;
  return status;
}

/* ---- whether the order matters ---- */

GR_FN long gr_is_apart(double a, double b, double unit) {
  return fabs(a - b) > GR_SAME_OUTCOME * fmax(unit, fabs(a) + fabs(b));
}

/* 1 where the run stands elsewhere than at m: states, discrete variables, what conditions are and remember, modes */
GR_COLD long gr_stands_apart(const gr_task *k, const double *x, const gr_moment *m) {
  long values = GR_NP - 4 * GR_NE;
#if GR_HAS_W
  values -= GR_SLOTS;
  for (long i = 0; i < GR_SLOTS; i++) {
    const long at = values + i;
    if ((i < GR_NW || (i >= 4 * GR_NW && i < 4 * GR_NW + GR_NB)) && gr_is_apart(k->p[at], m->p[at], 0.0)) return 1;
  }
#endif
  for (long i = 0; i < GR_NX; i++)
    if (gr_is_apart(x[i], m->x[i], k->nominal[i])) return 1;
  for (long i = 0; i < values; i++)
    if (gr_is_apart(k->p[i], m->p[i], 0.0)) return 1;
  for (long i = GR_NP - 4 * GR_NE; i < GR_NP - 3 * GR_NE; i++)
    if (k->p[i] != m->p[i] || k->p[i + 2 * GR_NE] != m->p[i + 2 * GR_NE]) return 1;
  return 0;
}

/* 1 where derivatives differ from those of the first order, in some direction */
GR_COLD long gr_slopes_differ(const gr_task *k, const gr_turns *s) {
  const double *sizes = gr_sizes(k);
  for (long d = 0; d < k->ns; d++) {
    double most = 0.0;
    for (long pass = 0; pass < 2; pass++)
      for (long i = 0; i < GR_MOVED; i++) {
        const long at = i + GR_MOVED * d;
        const double a = gr_slope_of(k, i, d), b = s->first[at], unit = i < GR_NX ? k->nominal[i] : 0.0;
        const double size = fabs(a) + fabs(b) + fabs(s->before[at]) + sizes[at];
        if (pass == 0 && i < GR_NX) most = fmax(most, size / unit);
        if (pass == 1 && !(fabs(a - b) <= GR_SAME_SLOPE * size + GR_ROUNDED_SLOPE * most * unit)) return 1;
      }
  }
  return 0;
}

/* the parts as they come along direction d, by their instants */
GR_FN void gr_sort_parts(const gr_turns *s, long count, long d, long *order) {
  const double *instant = s->instants + GR_MOST_PARTS * d;
  for (long a = 0; a < count; a++) {
    long at = a;
    for (; at > 0 && instant[order[at - 1]] > instant[a]; at--) order[at] = order[at - 1];
    order[at] = a;
  }
}

/* 1 where two parts, before all others, lead elsewhere in their two orders */
GR_COLD long gr_is_pair_ordered(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_turns *s,
                                long a, long b, double *x, double *z, double *scratch) {
  const long forth[2] = {a, b}, back[2] = {b, a};
  gr_moment first;
  if (gr_take_turns(k, n, c, m, s, forth, 2, x, z, scratch)) return 1;
  gr_keep_moment(k, n->f, x, z, &first);
  gr_keep_slopes(k, s->first);
  if (gr_take_turns(k, n, c, m, s, back, 2, x, z, scratch)) return 1;
  return gr_stands_apart(k, x, &first) || gr_slopes_differ(k, s);
}

/* names two parts whose order matters */
GR_COLD long gr_blame_order(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_turns *s,
                            double *x, double *z, double *scratch) {
  long one = 0, other = 1, found = 0;
  for (long a = 0; a < c->count && !found; a++)
    for (long b = a + 1; b < c->count && !found; b++)
      if (gr_is_pair_ordered(k, n, c, m, s, a, b, x, z, scratch)) {
        one = a;
        other = b;
        found = 1;
      }
  gr_put_moment(k, n, x, z, m);
  return gr_fail(k, GR_ORDER, c->part[one].mode, (double)c->part[other].mode);
}

/* One order, after which the run must stand at `all`; `slips`: derivatives of the first need not be those of this one. */
GR_COLD long gr_try_order(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_turns *s,
                          const long *order, const gr_moment *all, long is_first, long slips, double *x, double *z,
                          double *scratch) {
  const long status = gr_take_turns(k, n, c, m, s, order, c->count, x, z, scratch);
  if (status) return status == GR_GRAZES ? status : GR_ORDER;
  if (is_first) gr_keep_slopes(k, s->first);
  return gr_stands_apart(k, x, all) || (!slips && gr_slopes_differ(k, s)) ? GR_ORDER : GR_DONE;
}

/* half of the derivatives after one order, for direction d */
GR_FN void gr_add_half(const gr_task *k, const gr_turns *s, long d, long is_second) {
  for (long i = 0; i < GR_MOVED; i++)
    s->sum[i + GR_MOVED * d] = 0.5 * gr_slope_of(k, i, d) + (is_second ? s->sum[i + GR_MOVED * d] : 0.0);
  s->dt[d] = 0.5 * k->dt[d] + (is_second ? s->dt[d] : 0.0);
}

/* 1 where the parts come in this order, or its reverse, along direction d */
GR_COLD long gr_has_order(const gr_turns *s, long count, long d, const long *order) {
  long own[GR_MOST_PARTS], forth = 1, back = 1;
  gr_sort_parts(s, count, d, own);
  for (long i = 0; i < count; i++) {
    forth &= own[i] == order[i];
    back &= own[i] == order[count - 1 - i];
  }
  return forth || back;
}

/* Derivatives from both sides, along every direction; their mean is in s->sum and s->dt. After GR_MOST_ORDERS orders and
 * their reverses, each compared in all directions, those that are left take the first. */
GR_COLD long gr_compare_orders(gr_task *k, gr_newton *n, const gr_coincidence *c, const gr_moment *m, const gr_turns *s,
                               const gr_moment *all, long slips, double *x, double *z, double *scratch) {
  long order[GR_MOST_PARTS], turned[GR_MOST_PARTS], orders = 0, status = GR_DONE;
  for (long i = 0; i < GR_MOVED * k->ns; i++) gr_sizes(k)[i] = 0.0;
  for (long d = 0; d < k->ns && orders < GR_MOST_ORDERS && !status; d++) {
    long known = 0;
    gr_sort_parts(s, c->count, d, order);
    for (long i = 0; i < c->count; i++) turned[i] = order[c->count - 1 - i];
    for (long e = 0; e < d && !known; e++) known = gr_has_order(s, c->count, e, order);
    orders += !known;
    for (long side = 0; side < 2 && !known && !status; side++) {
      status = gr_try_order(k, n, c, m, s, side ? turned : order, all, d == 0 && side == 0, slips, x, z,
                            scratch);
      for (long e = d; e < k->ns && !status; e++)
        if (d == 0 || gr_has_order(s, c->count, e, order)) gr_add_half(k, s, e, side);
    }
  }
  return status == GR_ORDER ? gr_blame_order(k, n, c, m, s, x, z, scratch) : status;
}

/* Parts c of the instant at which the run stands, m; e: the event that ended the last step, none at a jump of signals.
 * Where signals jump only after it, `ahead`, nothing is done but asked whether the order matters. */
GR_COLD long gr_take_together(gr_task *k, gr_newton *n, gr_coincidence *c, gr_moment *m, const gr_event *e, long ahead,
                              double *x, double *z, double *scratch) {
  const gr_turns s = gr_turns_in(k);
  gr_moment all;
  double slip[GR_LEN(GR_NX)];
  long order[GR_MOST_PARTS], slips = 0, status = GR_DONE;
  for (long i = 0; i < c->count; i++) order[i] = i;
  for (long i = 0; i < GR_NX; i++) slips |= fabs(slip[i] = m->slip[i]) > GR_SLIPS * fabs(m->f[i]);
  if (ahead) status = gr_take_turns(k, n, c, m, &s, order, c->count, x, z, scratch);
  else status = gr_take_all(k, n, c, m, e, x, z, scratch);
  gr_keep_moment(k, n->f, x, z, &all);
  gr_put_slopes(k, s.before);
  if (status && !ahead) return status;
  for (long i = 0; i < GR_NX && slips; i++) m->slip[i] = 0.0;
  status = gr_compare_orders(k, n, c, m, &s, &all, 0, x, z, scratch);
  for (long i = 0; i < GR_NX; i++) m->slip[i] = slip[i];
  if (!status && slips && !ahead) status = gr_compare_orders(k, n, c, m, &s, &all, 1, x, z, scratch);
  gr_put_slopes(k, s.before);
  gr_put_moment(k, n, x, z, m);
  if (status || ahead) return status;
  status = gr_take_all(k, n, c, m, e, x, z, scratch);
  gr_put_slopes(k, s.sum);
  for (long d = 0; d < k->ns; d++) k->dt[d] = s.dt[d];
  return status;
}

GR_COLD long gr_happen_together(gr_task *k, gr_newton *n, const gr_event *e, double *x, double *z, const double *u,
                                double *scratch) {
  const gr_turns s = gr_turns_in(k);
  double u_after[GR_LEN(GR_NU)], z_kept[GR_LEN(GR_NZ)], f_kept[GR_N];
  for (long i = 0; i < GR_MOVED * k->ns; i++) gr_sizes(k)[i] = 0.0;
  gr_coincidence c;
  gr_moment m;
  c.u_before = u;
  gr_list_modes(k, n, e, x, z, u, &c);
  const long ahead = gr_signals_ahead(k, u, u_after);
  if (c.count == 1 && !ahead) return gr_switch(k, n, e, x, z, u, 0, scratch);
  for (long i = 0; i < GR_NZ; i++) z_kept[i] = z[i];
  for (long i = 0; i < GR_N; i++) f_kept[i] = n->f[i];
  n->valid = 0; /* F is compared with what it is after switches, to rounding */
  long status = gr_solve_implicit(k, n, 0, k->t, x, z, u);
  for (long i = 0; i < GR_NZ && status; i++) z[i] = z_kept[i];
  gr_keep_moment(k, status ? f_kept : n->f, x, z, &m);
  gr_keep_slopes(k, s.before);
  for (long with_signals = ahead; with_signals >= 0; with_signals--) {
    c.u = with_signals ? u_after : u;
    gr_list_modes(k, n, e, x, z, u, &c);
    gr_list_signals(&c);
    status = gr_join_parts(k, n, &c, &m, &s, x, z, scratch);
    if (!status && c.count > 1) status = gr_take_together(k, n, &c, &m, e, with_signals, x, z, scratch);
    else gr_put_moment(k, n, x, z, &m);
    if (status) return status;
  }
  if (c.count > 1) return GR_DONE;
  for (long i = 0; i < GR_NZ; i++) z[i] = z_kept[i];
  for (long i = 0; i < GR_N; i++) n->f[i] = f_kept[i];
  return gr_switch(k, n, e, x, z, u, 0, scratch);
}

/* z and F where the run stands, with the signals from before their jump; 0 where there is no need to look for them: no gap
 * is at its switch */
GR_COLD long gr_look_back(gr_task *k, gr_newton *n, const double *x, double *z, const double *u_before) {
  const double amount = k->amount;
  const long where = k->where;
  double noise[GR_NE];
  const double *slope = gr_gap_slope(k);
  long near = 0;
  gr_gauge g;
  gr_gauge_at(k, k->t, x, z, u_before, &g);
  gr_gauge_noise(k, k->t, x, z, u_before, &g, noise);
  for (long i = 0; i < GR_NE * GR_SHARES; i++) near |= slope[GR_NE * GR_NX + i] != 0.0; /* z is that of the signals after */
  for (long i = 0; i < GR_NE; i++)
    near |= gr_sliding(k)[i] != 0.0 || -gr_outside(k, i, g.q[i]) <= noise[i] + fabs(g.rate[i]) * gr_one_instant(k);
  if (!near) return 0;
  n->valid = 0;
  const long status = gr_solve_implicit(k, n, 0, k->t, x, z, u_before);
  k->where = where;
  k->amount = amount;
  return status == GR_DONE;
}

GR_COLD long gr_pass_kink_together(gr_task *k, gr_newton *n, double *x, double *z, const double *u_before,
                                   const double *u, double *scratch) {
  const gr_turns s = gr_turns_in(k);
  double kept[GR_LEN(GR_NZ)];
  for (long i = 0; i < GR_MOVED * k->ns; i++) gr_sizes(k)[i] = 0.0;
  gr_coincidence c;
  gr_moment m;
  c.u_before = u_before;
  c.u = u;
  c.count = 0;
  for (long i = 0; i < GR_NE; i++) c.of_mode[i] = -1;
  for (long i = 0; i < GR_NZ; i++) kept[i] = z[i];
  const long branch = k->branch, parts = gr_list_signals(&c);
  const long looks = parts > 0 && (gr_look_back(k, n, x, z, u_before) || parts > 1);
  if (looks) {
    gr_list_modes(k, n, 0, x, z, u_before, &c);
    gr_list_signals(&c);
  }
  if (looks && c.count > 1) {
    gr_keep_moment(k, n->f, x, z, &m);
    gr_keep_slopes(k, s.before);
    const long status = gr_join_parts(k, n, &c, &m, &s, x, z, scratch);
    if (status) return status;
    if (c.count > 1) return gr_take_together(k, n, &c, &m, 0, 0, x, z, scratch);
  }
  for (long i = 0; i < GR_NZ; i++) z[i] = kept[i];
  k->branch = branch;
  n->valid = 0;
  return gr_pass_kink(k, n, x, z, u_before, u, 0, scratch);
}

#endif
#endif
