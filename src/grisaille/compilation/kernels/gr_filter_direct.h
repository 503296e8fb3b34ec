/* Takes a step that is one generated function; see gr_filter_linearized.h for the other kind. */
#ifndef GR_FILTER_DIRECT_H
#define GR_FILTER_DIRECT_H

GR_API long gr_filter_room(long doublings) { return 1 + 0 * doublings; }

GR_FN void gr_carry(gr_filter_task *k, double t, double h, const double *s, const double *u, double *out) {
  gr_step(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, out);
}

#ifdef GR_ABREAST
GR_FN void gr_carry_forward(gr_filter_task *k, double t, double h, const double *s, const double *u, gr_lanes *ds,
                            const gr_lanes *dq) {
  gr_step_forward(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, ds, dq, ds);
}
#else
GR_FN void gr_carry_reverse(gr_filter_task *k, double t, double h, const double *s, const double *u, double *ls,
                            double *lq) {
  gr_step_reverse(t, h, s, u, u + GR_NU, u + 2 * GR_NU, k->q, k->nominal, ls, ls, lq);
}
#endif
#endif
