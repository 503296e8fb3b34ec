/* Ends steps at bends where sensitivities are followed.
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
#define GR_TANGENT_FAR 0.1    /* of a step: how far a bend of z may be from where its polynomial has it */
#define GR_TANGENT_FOUND 1e-9 /* of a step: how well it is known then */
#define GR_TANGENT_WEIGHT 0.25 /* of a jump of A: what a stage on the wrong side counts */
#define GR_TANGENT_BENT 1e-5  /* of S: by how much a step over a bend inside it may be off */
#define GR_TANGENT_ENDS 1e-7  /* of S: by how much one whose end is said to be on a bend may be off */

#define GR_TANGENT_USUAL 1e-6 /* relative tolerance for which these are */

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

/* how much less S may be off where the tolerance is small */
GR_FN double gr_tangent_sharpness(const gr_task *k) { return fmin(1.0, k->rtol / GR_TANGENT_USUAL); }

/* 1 where A jumps at a share of a step by more than S may be off */
GR_COLD long gr_tangent_jumps(const gr_span *s, const gr_tangent *a, double share) {
  const double edge = fmin(share, 1.0 - share), near = 0.5 * fmin(GR_TANGENT_BESIDE, edge);
  const long ends = edge < GR_TANGENT_ASIDE;
  const double sharp = gr_tangent_sharpness(s->k);
  if (!(edge > 0.0)) return 0;
  return gr_tangent_differs(s, a, share - near, share + near, ends ? edge : GR_TANGENT_WEIGHT,
                            sharp * (ends ? GR_TANGENT_ENDS : GR_TANGENT_BENT));
}

#if GR_HAS_Z
/* entry i at a share of a step where z is solved for, less the level of its bend there; HUGE_VAL: unknown */
GR_COLD double gr_bend_solved_value(const gr_span *s, long i, double share) {
  double out[GR_LEN(GR_MOST_BENDS)], x[GR_LEN(GR_NX)], z[GR_LEN(GR_NZ)], u[GR_LEN(GR_NU)];
  if (!(share >= 0.0 && share <= 1.0) || s->solve(s->run, share, x, z, u)) return HUGE_VAL;
  s->bends(s->k->t + share * s->h, x, z, u, s->k->p, out);
  return i < s->gaps ? out[i] : out[i] - floor(out[i] + 0.5);
}

/* where a bend is that the polynomial of z has at a share of a step */
GR_COLD double gr_bend_refined(const gr_span *s, long i, double share) {
  double a = share, va = gr_bend_solved_value(s, i, a), b = a + (a < 0.5 ? 1.0 : -1.0) * GR_TANGENT_BESIDE;
  double vb = gr_bend_solved_value(s, i, b);
  for (long n = 0; n < GR_BEND_SECANTS && vb != va; n++) {
    const double next = b - vb * (b - a) / (vb - va);
    if (!(fabs(va) < HUGE_VAL && fabs(vb) < HUGE_VAL && fabs(next - share) < GR_TANGENT_FAR)) return share;
    a = b;
    va = vb;
    b = next;
    vb = gr_bend_solved_value(s, i, b);
    if (fabs(b - a) < GR_TANGENT_FOUND) break;
  }
  return b > 0.0 && b < 1.0 && fabs(vb) <= fabs(va) ? b : share;
}
#endif

/* the share of a step at which it should end for the sake of S; 1: the whole step may be taken */
GR_COLD double gr_tangent_upto(const gr_span *s, gr_tangent *a, const gr_bend_list *l) {
  a->middle = a->rate(s->run, 0.5, 3);
  for (long j = 0; j < l->n; j++) {
#if GR_HAS_Z
    const double at = s->solve ? gr_bend_refined(s, l->of[j], l->at[j]) : l->at[j];
#else
    const double at = l->at[j];
#endif
    if (gr_tangent_jumps(s, a, at)) return at;
  }
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
                              gr_tangent_sharpness(s->k) * GR_TANGENT_BENT);
  }
  return 0;
}

#endif
#endif
