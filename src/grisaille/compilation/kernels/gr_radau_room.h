/* Lays out what the implicit method remembers and where it works: everything lies in task->work, so a run can stop
 * between two steps and go on later as if it had not.
 */
#ifndef GR_RADAU_ROOM_H
#define GR_RADAU_ROOM_H

#include "gr_event_room.h"
#include "gr_output.h"
#include "gr_project.h"
#include "gr_task.h"

/* what is remembered from step to step and between slices; it lies in task->work, behind the room of events */
typedef struct {
  double h;                          /* wish for the next step */
  double h_factored;                 /* step of the factored matrices; 0: none */
  double t_poly, h_poly;             /* collocation polynomial that predicts the next stages; h_poly = 0: none */
  double h_previous;                 /* length of the step before, 0: none on this smooth piece */
  double h_accepted, error_accepted; /* for the predictive controller */
  double theta, rate;                /* contraction of Newton's iteration; theta / (1 - theta) */
  double roughness;                  /* interpolation error / h^4 */
  double kink;                       /* steps may not cross this time */
  double switch_at;                  /* where a switch is expected, or infinity */
  double switched_at, h_switched;    /* where one was passed last, by a step of what length */
  double from, to;                   /* frozen: stretch between mandatory points */
  double happened, moves, ends;      /* frozen: 1, an event was the last point; the stretch begins at one, ends at a moving tick */
  long part, parts;                  /* frozen: equal steps of the stretch done, in all */
  long first, rejected;              /* no accepted step yet on this piece; the last attempt failed */
  long jacobian_here;                /* jac belongs to (t, y), not to an earlier point */
  long segment;                      /* of the signals */
  long gaps_known;                   /* gaps are those of the point of jac */
  long z_valid;                      /* the shared helpers' factors of dF/dz can be used */
} gr_radau;

typedef struct {
  gr_radau *s;
  double *y, *f;                        /* start of the step and F there */
  double *end, *slope;                  /* end of the step and F there */
  double *u, *stage;                    /* signals at t, and at the three stages; one state */
  double *Z, *W, *G;                    /* n x 3: stage increments, T^-1 Z, Newton's right-hand sides and updates */
  double *scale, *error, *lift, *third; /* third: h^3 times the third derivative of the collocation polynomial */
  double *jac;                          /* n x n, or its nonzeros */
  double *gaps, *base;                  /* SIDES: of the switches where jac was taken; 3n: Z before a correction */
  double *poly_y, *poly_Z;                      /* the polynomial that predicts */
  double *previous_y, *previous_f, *previous_d; /* the step before: start value, F there, h^3 third derivative */
  double *jacs;                                 /* the Jacobians at the three stages */
#if GR_SPARSE
  gr_all_factors factors;
#else
  double *real, *re, *im, *whole;               /* Newton's matrices; that of all stages, 3n x 3n */
  long *pivot_real, *pivot_complex, *pivot_whole;
#endif
  double *S, *V, *B;       /* per direction: start (n), stage increments (n x 3), dF/dp dp at the stages (n x 3) */
  double *poly_S, *poly_V; /* derivatives of poly_y, poly_Z, */
  double *SF, *slope_S;    /* of f and slope, */
  double *previous_S, *previous_SF;        /* and of the step before */
  double *fp;                              /* n x np */
  double *row_x, *row_z, *row_sx, *row_sz; /* interpolated row */
  double *ahead;                           /* ns: derivative of the instant at which a frozen stretch ends */
  double *newton, *projection, *emit;      /* scratch of the shared helpers */
} gr_radau_room;

GR_FN double *gr_radau_take(double *base, long *at, long n) {
  double *here = base ? base + *at : base;
  *at += n;
  return here;
}

GR_FN long gr_radau_lay_out(double *base, long ns, gr_radau_room *r) {
  const long n = GR_N;
  long at = gr_event_room(ns);
  r->s = (gr_radau *)gr_radau_take(base, &at, (long)((sizeof(gr_radau) + sizeof(double) - 1) / sizeof(double)));
  r->y = gr_radau_take(base, &at, n);
  r->f = gr_radau_take(base, &at, n);
  r->end = gr_radau_take(base, &at, n);
  r->slope = gr_radau_take(base, &at, n);
  r->u = gr_radau_take(base, &at, 4 * GR_NU);
  r->stage = gr_radau_take(base, &at, n);
  r->Z = gr_radau_take(base, &at, 3 * n);
  r->W = gr_radau_take(base, &at, 3 * n);
  r->G = gr_radau_take(base, &at, 3 * n);
  r->scale = gr_radau_take(base, &at, n);
  r->error = gr_radau_take(base, &at, n);
  r->lift = gr_radau_take(base, &at, n);
  r->third = gr_radau_take(base, &at, n);
  r->jac = gr_radau_take(base, &at, GR_J_SIZE);
  r->gaps = gr_radau_take(base, &at, GR_SIDES);
  r->base = gr_radau_take(base, &at, 3 * n);
#if !GR_SPARSE
  r->real = gr_radau_take(base, &at, n * n);
  r->re = gr_radau_take(base, &at, n * n);
  r->im = gr_radau_take(base, &at, n * n);
  r->whole = gr_radau_take(base, &at, 9 * n * n);
  r->pivot_real = (long *)gr_radau_take(base, &at, n);
  r->pivot_complex = (long *)gr_radau_take(base, &at, n);
  r->pivot_whole = (long *)gr_radau_take(base, &at, 3 * n);
#endif
  r->poly_y = gr_radau_take(base, &at, n);
  r->poly_Z = gr_radau_take(base, &at, 3 * n);
  r->previous_y = gr_radau_take(base, &at, n);
  r->previous_f = gr_radau_take(base, &at, n);
  r->previous_d = gr_radau_take(base, &at, n);
  r->jacs = gr_radau_take(base, &at, 3 * GR_J_SIZE);
  r->S = gr_radau_take(base, &at, n * ns);
  r->V = gr_radau_take(base, &at, 3 * n * ns);
  r->B = gr_radau_take(base, &at, 3 * n * ns);
  r->poly_S = gr_radau_take(base, &at, n * ns);
  r->poly_V = gr_radau_take(base, &at, 3 * n * ns);
  r->SF = gr_radau_take(base, &at, n * ns);
  r->slope_S = gr_radau_take(base, &at, n * ns);
  r->previous_S = gr_radau_take(base, &at, n * ns);
  r->previous_SF = gr_radau_take(base, &at, n * ns);
#if GR_SENSITIVE
  r->fp = gr_radau_take(base, &at, ns > 0 ? GR_FP_SIZE : 0);
#endif
  r->row_x = gr_radau_take(base, &at, GR_NX);
  r->row_z = gr_radau_take(base, &at, GR_NZ);
  r->row_sx = gr_radau_take(base, &at, GR_NX * ns);
  r->row_sz = gr_radau_take(base, &at, GR_NZ * ns);
  r->ahead = gr_radau_take(base, &at, ns);
  r->newton = gr_radau_take(base, &at, GR_NEWTON_WORK);
  r->projection = gr_radau_take(base, &at, GR_PROJECT_WORK);
  r->emit = gr_radau_take(base, &at, GR_OUTPUT_WORK);
  return at;
}

#endif
