/* Sensitivities across bends.
 *
 * F does not jump at a bend, so error control is content with steps that pass it; dF/dx does, and the derivative of such a
 * step counts each side by the stages that happen to lie there. So where sensitivities are followed a step ends at the
 * first bend at which their rate
 *
 *   A = dF/dx S + dF/dz dz + dF/dp dp
 *
 * jumps by more than they may be off, and stages at an end that lies on a bend take dF a little inside the step. Frozen
 * steps keep their length, and follow such sensitivities in pieces.
 */
#ifndef GR_BEND_TANGENTS_H
#define GR_BEND_TANGENTS_H

#include "gr_bends.h"

#if GR_HAS_BENDS && GR_SENSITIVE

#define GR_TANGENT_ASIDE 1e-5 /* of a step: how far from a bend dF is taken */
#if GR_HAS_Z
#define GR_TANGENT_BESIDE 1e-3 /* how far from one A is compared: bends of z are found where its polynomial has them */
#else
#define GR_TANGENT_BESIDE GR_TANGENT_ASIDE
#endif
#define GR_TANGENT_WEIGHT 0.25 /* of a jump of A: what a stage on the wrong side counts */
#define GR_TANGENT_BENT 1e-5  /* of S: by how much a step over a bend inside it may be off */
#define GR_TANGENT_ENDS 1e-7  /* of S: by how much one whose end is said to be on a bend may be off */

typedef struct {
  const double *(*rate)(void *run, double share, long slot); /* A for S, with dF at a share of a step; 0: unknown. Slots
                                                                1 to 3 are kept beside each other */
  const double *S; /* at the start of the step */
  long n, stride;  /* entries of A that are looked at, and from one direction to the next, of S as well */
  const double *middle; /* A at the middle of the step: by it, and by S, is told what counts */
} gr_tangent;

/* 1 where A, which counts by `weight`, differs between two shares of a step by more than a part of S */
GR_COLD long gr_tangent_differs(const gr_span *s, const gr_tangent *a, double left, double right, double weight,
                                double most) {
  const double *before = a->rate(s->run, left, 1), *after = a->rate(s->run, right, 2);
  if (!before || !after || !a->middle) return 0;
  for (long d = 0; d < s->k->ns; d++)
    for (long i = d * a->stride; i < d * a->stride + a->n; i++) {
      const double one = s->h * before[i], other = s->h * after[i], size = fmax(fabs(a->S[i]), fabs(s->h * a->middle[i]));
      if (weight * fabs(other - one) > most * fmax(size, fmax(fabs(one), fabs(other)))) return 1;
    }
  return 0;
}

/* 1 where A jumps at a share of a step by more than S may be off */
GR_COLD long gr_tangent_jumps(const gr_span *s, const gr_tangent *a, double share) {
  const double edge = fmin(share, 1.0 - share), near = 0.5 * fmin(GR_TANGENT_BESIDE, edge);
  const long ends = edge < GR_TANGENT_ASIDE;
  if (!(edge > 0.0)) return 0;
  return gr_tangent_differs(s, a, share - near, share + near, ends ? edge : GR_TANGENT_WEIGHT,
                            ends ? GR_TANGENT_ENDS : GR_TANGENT_BENT);
}

/* the share of a step at which it should end for the sake of S; 1: the whole step may be taken */
GR_COLD double gr_tangent_upto(const gr_span *s, gr_tangent *a, const gr_bend_list *l) {
  a->middle = a->rate(s->run, 0.5, 3);
  for (long j = 0; j < l->n; j++)
    if (gr_tangent_jumps(s, a, l->at[j])) return l->at[j];
  return 1.0;
}

/* 1 where an end of a step lies on a bend at which A jumps */
GR_FN long gr_tangent_bends_at(const gr_span *s, gr_tangent *a, double end) {
  double there[GR_LEN(GR_MOST_BENDS)], beside[GR_LEN(GR_MOST_BENDS)];
  gr_bend_values(s, end, there);
  gr_bend_values(s, end > 0.0 ? end - GR_TANGENT_ASIDE : end + GR_TANGENT_ASIDE, beside);
  for (long i = 0; i < s->all; i++) {
    const double off = i < s->gaps ? there[i] : there[i] - floor(there[i] + 0.5);
    if (!(fabs(off) <= fabs(beside[i] - there[i]))) continue;
    a->middle = a->rate(s->run, 0.5, 3);
    return gr_tangent_differs(s, a, end - 2.0 * GR_TANGENT_ASIDE, end + 2.0 * GR_TANGENT_ASIDE, GR_TANGENT_WEIGHT,
                              GR_TANGENT_BENT);
  }
  return 0;
}

#endif
#endif
