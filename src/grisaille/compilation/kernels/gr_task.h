/* Defines what an integrator is asked and what it answers. Mirrored by compilation/task.py (ctypes); keep both in step.
 *
 * The generated model file defines, before it includes any integrator header,
 *
 *   GR_NX  states x            GR_NZ  implicit unknowns z     GR_NU  signals u (inputs, their derivatives, disturbances)
 *   GR_NP  parameters p        GR_NC  hidden constraints      GR_NY  observed quantities
 *   GR_NM  last entries of z that are relations of the others (pieces), with the equations m - relation = 0
 *   GR_SIDES                   switches of x and z
 *   GR_BENDS, GR_WHOLES        where F bends with x, z or u (gr_bends.h)
 *   GR_NE                      relations held between events: modes, the last 4 GR_NE entries of p (gr_events.h), with
 *                              their shares in z, before the pieces, and their kinds in gr_kind[GR_NE]
 *   GR_SENSITIVE               1 when the parameter derivatives below are present, else 0
 *   GR_SPARSE                  1 when J, CJ, FP, CP, OJ and OP are written as their nonzeros only (gr_matrix.h), else 0
 *
 * and these static functions, argument order (t, x, z, u, p), matrices dense and column-major, every entry written:
 *
 *   void gr_F (t, x, z, u, p, out)   GR_NX + GR_NZ              right-hand side, then residual
 *   void gr_J (t, x, z, u, p, out)   (NX+NZ) x (NX+NZ)          dF/d[x; z]
 *   void gr_C (t, x, z, u, p, out)   GR_NC                      constraints (z unused)
 *   void gr_CJ(t, x, z, u, p, out)   GR_NC x GR_NX              dC/dx
 *   void gr_O (t, x, z, u, p, out)   GR_NY                      observed
 *   void gr_S (t, x, z, u, p, out)   GR_SIDES                   gaps of the switches: below zero on one side
 *   void gr_B (...)  GR_BENDS  gaps of the bends          void gr_BW(...)  GR_WHOLES  values that are whole at a bend
 *   with GR_NW, the number of clauses of events (gr_when.h), GR_NB of what they remember, GR_NQ pulses, GR_NR targets:
 *   void gr_W (...)  NW + NB conditions, memory   void gr_R(...)  NR  new values   void gr_T(...)  NQ  instants of ticks
 *   with GR_NE:
 *   void gr_GB(...)  GR_GAP_BENDS, void gr_GW(...)  GR_GAP_WHOLES  as gr_B and gr_BW, of gr_G; with GR_BENT
 *   void gr_G (...)  NE  gaps of the modes    void gr_GD(...)  NE  their rates    void gr_GJ(...)  NE x (NX+NZ)
 *   with GR_SENSITIVE:
 *   void gr_FP(...)  (NX+NZ) x NP    dF/dp      void gr_CP(...)  NC x NP   dC/dp
 *   void gr_OJ(...)  NY x (NX+NZ)    dO/d[x;z]  void gr_OP(...)  NY x NP   dO/dp
 *   void gr_GP(...)  NE x NP         dG/dp
 *   void gr_RD(...)  NR  rate of R   void gr_RJ(...)  NR x (NX+NZ)   void gr_RP(...)  NR x NP   void gr_TP(...)  NQ x NP
 *
 * No malloc, no globals, no stdio: scratch memory comes from the caller, so that one source serves CPU and CUDA.
 */
#ifndef GR_TASK_H
#define GR_TASK_H

#ifdef __CUDACC__
#ifndef GR_FN
#define GR_FN static __device__
#endif
#define GR_API extern "C" __device__
#define GR_ARRAY static __device__ const
#define GR_ON_DEVICE 1
#else
#define GR_ON_DEVICE 0
#define GR_FN static inline
#define GR_ARRAY static const
#if defined(_WIN32)
#define GR_API __declspec(dllexport)
#else
#define GR_API __attribute__((visibility("default")))
#endif
#endif

/* functions that are rarely called or long: kept out of their callers, which costs a call and saves the compiler's time */
#if defined(__GNUC__) && !defined(__CUDACC__)
#define GR_APART static __attribute__((noinline, unused))
#define GR_COLD static __attribute__((noinline, cold, unused))
#else
#define GR_APART GR_FN
#define GR_COLD GR_FN
#endif

/* integrators, which are not entries of a library that only makes use of their steps */
#ifndef GR_ENTRY
#define GR_ENTRY GR_API
#endif

#ifndef GR_NM
#define GR_NM 0
#endif
#ifndef GR_SIDES
#define GR_SIDES 0
#endif
#ifndef GR_BENDS
#define GR_BENDS 0
#define GR_WHOLES 0
#endif
#ifndef GR_BENT
#define GR_BENT 0
#endif
#ifndef GR_NE
#define GR_NE 0
#endif
#ifndef GR_SPARSE
#define GR_SPARSE 0
#endif
#ifndef GR_NW
#define GR_NW 0
#endif
/* whether there are any; sizes need not be known to the preprocessor (gr_linked.h) */
#ifndef GR_LINKED
#define GR_HAS_Z (GR_NZ > 0)
#define GR_HAS_U (GR_NU > 0)
#define GR_HAS_C (GR_NC > 0)
#define GR_HAS_SIDES (GR_SIDES > 0)
#define GR_HAS_BENDS (GR_BENDS + GR_WHOLES > 0)
#define GR_HAS_E (GR_NE > 0)
#define GR_HAS_W (GR_NW > 0)
#endif
#define GR_N (GR_NX + GR_NZ)
/* array lengths must not be zero in C */
#define GR_LEN(n) ((n) > 0 ? (n) : 1)
/* of an array in a structure: linked integrators have room for models up to a size, others for their own */
#ifdef GR_CAPPED
#define GR_CAP(n, most) (most)
#else
#define GR_CAP(n, most) GR_LEN(n)
#endif

enum {
  GR_DONE = 0,          /* reached t1 */
  GR_MORE = 1,          /* slice of steps used up: call again to go on */
  GR_STIFF = 2,         /* explicit method: the problem looks stiff from here on */
  GR_STEP_TOO_SMALL = 3,/* error control drove the step below rounding */
  GR_TOO_MANY_STEPS = 4,
  GR_NOT_FINITE = 5,    /* F gave a NaN or an infinity even at the smallest step; `where` = entry of F */
  GR_NEWTON = 6,        /* implicit equations or stages not solved at the smallest step; `where` = worst entry of F */
  GR_SINGULAR = 7,      /* dF/dz or a Newton matrix is singular; `where` = pivot column */
  GR_PROJECTION = 8,    /* hidden constraints not met; `where` = worst constraint, `amount` = its residual */
  GR_BRANCH_ENDS = 9,   /* z cannot be followed from where it was; `where` = entry of z, `amount` = share of the way */
  GR_UNSETTLED = 10,    /* modes found no agreement at one instant; `where` = mode */
  GR_ACCUMULATES = 11,  /* events follow each other within rounding; `where` = mode, `amount` = how many */
  GR_GRAZES = 12,       /* a switch is touched, not crossed: no derivative; `where` = mode, `amount` = rate of its gap */
  GR_REPEATS = 13,      /* events of clause `where` follow each other faster and faster, or do not settle (amount 0) */
  GR_CONTRADICTS = 14,  /* hidden constraints cannot hold with the value that a reset gives state `where`; amount infinite: two resets do */
  GR_NO_INSTANT = 15,   /* clause `where` fires at an instant whose derivative is not known */
  GR_CLASHES = 16,      /* clause `where` needs an unknown that is solved for after clause `amount`, and both fire at once */
  GR_ORDER = 17         /* no derivative: what follows depends on which of two comes first that are reached at one instant;
                           `where`, `amount` = modes, -1: a jump of signals, -2 - q: a tick of clock q */
};

typedef struct {
  double t0, t1;          /* t1 >= t0 */
  double *p;              /* GR_NP; events change the modes at its end */
  double *x, *z;          /* in: consistent start; out: last accepted point */
  long ns;                /* sensitivity directions, 0 without */
  double *dp;             /* GR_NP x ns: derivative of p in each direction; events change those of discrete variables */
  double *sx, *sz;        /* GR_NX x ns, GR_NZ x ns; in: at t0; out: at the last accepted point */

  /* signals: piecewise polynomials, u_i(t) = sum_k coef[(seg*GR_NU + i)*(degree+1) + k] * (t - breaks[seg])^k;
   * before the first and after the last break the end segments are continued */
  long n_breaks;          /* >= 2, or 0 when GR_NU == 0 */
  const double *breaks;
  const double *coef;
  long degree;
  const unsigned char *kink; /* n_breaks flags: 1, a step must end here (value or slope jumps); 2, and it moves with p */

  /* answers at requested times, increasing, inside [t0, t1] */
  long n_times;
  const double *times;
  double *y;              /* n_times x GR_NY, row by row */
  double *sy;             /* n_times x ns x GR_NY */
  long written;           /* rows written so far; in and out */

  /* accuracy */
  double rtol;
  const double *atol;     /* GR_NX + GR_NZ */
  const double *nominal;  /* GR_NX: metric of the projection */
  double h;               /* in: first step or 0 for automatic; out: next step */
  double hmax;            /* 0: none */
  double fixed_step;      /* > 0: frozen discretisation, largest step; no error control */
  long max_steps;         /* in total */
  long slice;             /* steps per call before GR_MORE; 0: unlimited */

  double *work;           /* gr_..._work(ns) doubles; keep between calls that return GR_MORE */

  /* what happened; cumulative over calls */
  double t;               /* in: where to start or go on; out: last accepted time */
  long steps, rejected, evaluations, jacobians, factorizations, newton_iterations;
  long status, where;
  double amount;
  double error_estimate;  /* frozen: largest scaled error estimate seen; else the last one */
  double worst_constraint;/* largest |C| seen at an accepted point or output */
  long resumed;           /* 0 at the first call, set by the integrator */
  long rescues;           /* solutions for z that plain Newton did not find (gr_rescue.h) */
  long snaps;             /* jumps of z from the end of its branch to another one */
  long branch;            /* the sign of det dF/dz on the branch of z, where one may end; 0: not known */
  double branch_at;       /* since when */
  double snapped_at;      /* the last jump */

  /* events, with GR_NE > 0; cumulative over calls */
  long n_events;          /* how many there were */
  long most_events;       /* rows of the list; those beyond are only counted */
  double *events;         /* time, mode, and what it does: 1 rises, -1 falls, 0 slides, 2 and -2 leaves upwards, downwards */
  double event_at;        /* the last one */
  double joined_at;       /* where switches accumulated last and went on sliding together */
  long at_once;           /* how many followed each other within rounding */

  /* with GR_SPARSE: factors of sparse matrices */
  double *factors;        /* gr_factors_work(room) doubles, zero at first; kept with `work` */
  long room;              /* 1 or more */
  long wanted;            /* above room where factors outgrew it: the answer is of no use, run again with this room */
  double *dt;             /* ns: derivative of the instant of the last event in each direction */
} gr_task;

#endif
