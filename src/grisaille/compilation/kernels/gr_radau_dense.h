/* Computes values between the ends of an implicit step, as accurate as the steps themselves.
 *
 * The collocation polynomial has order 3 only. Rows are read from the polynomial of degree 5 that has the values and
 * the slopes of the last two steps at their three ends,
 *
 *   q(s) = H(s) + s^2 (1 - s)^2 (a + b s),    s = (t - t_n)/h,    H: cubic Hermite on the last step,
 *
 * with a, b from the start of the step before, s = -h_previous/h. How far it can be trusted is seen from two others
 * that are built from the stages instead of the slopes: the collocation polynomial w(s), and w(s) with the leading term
 * of its error added,
 *
 *   w(s) + h^4 y''''/6 int_0^s (c - c_1)(c - c_2)(c - 1) dc,    y'''' from the third derivatives of two steps.
 *
 * Agreement with either within the tolerance is enough; if there is none, the step has to end at the requested time.
 */
#ifndef GR_RADAU_DENSE_H
#define GR_RADAU_DENSE_H

#include "gr_radau.h"

/* cubic Hermite basis and its derivative for y_0, h f_0, y_1, h f_1 */
GR_FN void gr_radau_cubic(double s, double *w) {
  w[0] = (1.0 + 2.0 * s) * (1.0 - s) * (1.0 - s);
  w[1] = s * (1.0 - s) * (1.0 - s);
  w[2] = s * s * (3.0 - 2.0 * s);
  w[3] = s * s * (s - 1.0);
}

GR_FN void gr_radau_cubic_slope(double s, double *w) {
  w[0] = 6.0 * s * (s - 1.0);
  w[1] = (1.0 - s) * (1.0 - 3.0 * s);
  w[2] = 6.0 * s * (1.0 - s);
  w[3] = s * (3.0 * s - 2.0);
}

/* weights of y_0, h f_0, y_1, h f_1, y_-1, h f_-1 in q(s); ratio = h_previous / h, 0: no step before */
GR_FN void gr_radau_quintic(double s, double ratio, double *w) {
  double value[4], slope[4];
  const double bump = s * s * (1.0 - s) * (1.0 - s);
  gr_radau_cubic(s, w);
  w[4] = w[5] = 0.0;
  if (!(ratio > 0.0)) return;
  const double there = ratio * ratio * (1.0 + ratio) * (1.0 + ratio);
  const double steep = -2.0 * ratio * (1.0 + ratio) * (1.0 + 2.0 * ratio);
  gr_radau_cubic(-ratio, value);
  gr_radau_cubic_slope(-ratio, slope);
  for (long k = 0; k < 6; k++) {
    const double g = ((k == 4) - (k < 4 ? value[k] : 0.0)) / there;
    const double b = ((k == 5) - (k < 4 ? slope[k] : 0.0) - steep * g) / there;
    w[k] += bump * (g + b * (ratio + s));
  }
}

/* q at s for one vector: y_0, f_0, y_1, f_1 of the last step, y_-1, f_-1 of the step before */
GR_FN void gr_radau_mix(const double *w, double h, const double *y0, const double *f0, const double *y1,
                        const double *f1, const double *before, const double *slope, double *out) {
  for (long i = 0; i < GR_NX; i++) {
    out[i] = w[0] * y0[i] + w[1] * h * f0[i] + w[2] * y1[i] + w[3] * h * f1[i];
    if (w[4] != 0.0 || w[5] != 0.0) out[i] += w[4] * before[i] + w[5] * h * slope[i];
  }
}

/* h^3 times the third derivative of the collocation polynomial */
GR_FN void gr_radau_third(const double *Z, double *d) {
  const double c1 = GR_RADAU_C1, c2 = GR_RADAU_C2;
  const double a = 6.0 / (c1 * (c1 - c2) * (c1 - 1.0)), b = 6.0 / (c2 * (c2 - c1) * (c2 - 1.0));
  const double c = 6.0 / ((1.0 - c1) * (1.0 - c2));
  for (long i = 0; i < GR_N; i++) d[i] = a * Z[i] + b * Z[i + GR_N] + c * Z[i + 2 * GR_N];
}

GR_FN void gr_radau_interpolate(const gr_radau_room *r, double h, double s, double *x) {
  double w[6];
  gr_radau_quintic(s, r->s->h_previous / h, w);
  gr_radau_mix(w, h, r->y, r->f, r->end, r->slope, r->previous_y, r->previous_f, x);
}

/* z of the collocation polynomial: only where Newton's method for z starts */
GR_FN void gr_radau_guess_z(const gr_radau_room *r, double s, double *z) {
  double l[3];
  gr_radau_collocation_weights(s, l);
  for (long i = GR_NX; i < GR_N; i++)
    z[i - GR_NX] = r->y[i] + l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
}

#if GR_HAS_BENDS
typedef struct {
  gr_task *k;
  gr_radau_room *r;
  double h;
} gr_radau_span;

/* the collocation polynomial */
GR_FN void gr_radau_bend_inside(const void *run, double share, double *x, double *z, double *u) {
  const gr_radau_span *a = (const gr_radau_span *)run;
  const gr_radau_room *r = a->r;
  double l[3];
  gr_radau_collocation_weights(share, l);
  for (long i = 0; i < GR_NX; i++) x[i] = r->y[i] + l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
  gr_radau_guess_z(r, share, z);
  gr_signals_from(a->k, r->s->segment, a->k->t + share * a->h, u);
}
#endif

/* disagreement at s in units of r->scale; third: h^3 w''' of this step */
GR_FN double gr_radau_doubt(const gr_radau_room *r, double h, double s, const double *third, double *x) {
  const double hp = r->s->h_previous, ratio = h / (hp > 0.0 ? hp : h);
  /* the third derivative belongs to the mean of the stages, at 0.6 h */
  const double shape = s * (((0.25 * s - 0.6) * s + 0.45) * s - 0.1) / 6.0 * h / (0.4 * hp + 0.6 * h);
  double l[3], plain = 0.0, mended = 0.0;
  gr_radau_collocation_weights(s, l);
  gr_radau_interpolate(r, h, s, x);
  for (long i = 0; i < GR_NX; i++) {
    const double w = r->y[i] + l[0] * r->Z[i] + l[1] * r->Z[i + GR_N] + l[2] * r->Z[i + 2 * GR_N];
    const double a = (x[i] - w) / r->scale[i];
    const double more = hp > 0.0 ? shape * (third[i] - r->previous_d[i] * ratio * ratio * ratio) / r->scale[i] : 0.0;
    plain += a * a;
    mended += (a - more) * (a - more);
  }
  return sqrt((mended < plain ? mended : plain) / (double)GR_LEN(GR_NX));
}

#endif
