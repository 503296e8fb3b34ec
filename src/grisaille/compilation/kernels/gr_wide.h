/* Defines numbers that carry GR_LANES realizations at once.
 *
 * A frozen step is one long chain of dependent operations, so a processor mostly waits; two realizations side by side take
 * the time of one. Every operation is the IEEE one in each lane: the digits are those of the scalar code. Compilers without
 * vector extensions, and CUDA (where threads do the same), get one lane; CUDA in single precision where GR_SINGLE is set.
 */
#ifndef GR_WIDE_H
#define GR_WIDE_H

#if defined(__GNUC__) && !defined(__CUDACC__)

#define GR_LANES 2
typedef double gr_wide __attribute__((vector_size(16)));
typedef __typeof__((gr_wide){0.0, 0.0} < (gr_wide){0.0, 0.0}) gr_mask;
#define GR_LANE(v, l) ((v)[l])
#define GR_SPLAT(a) ((gr_wide){(a), (a)})
/* conditions as numbers: 1.0 or 0.0 */
#define GR_TRUTH(m) ((gr_wide)((m) & (gr_mask)GR_SPLAT(1.0)))
#define GR_SELECT(c, v) ((gr_wide)(((c) != GR_SPLAT(0.0)) & (gr_mask)(v)))
#define GR_ABS(a) ((gr_wide)((gr_mask)(a) & ~(gr_mask)GR_SPLAT(-0.0)))
#define GR_EACH1(f, a) ((gr_wide){f((a)[0]), f((a)[1])})
#define GR_EACH2(f, a, b) ((gr_wide){f((a)[0], (b)[0]), f((a)[1], (b)[1])})

#elif defined(GR_SINGLE)

#define GR_LANES 1
typedef float gr_wide;
#define GR_LANE(v, l) (v)
#define GR_SPLAT(a) ((float)(a))
#define GR_TRUTH(m) ((float)(m))
#define GR_SELECT(c, v) ((c) != 0.0f ? (v) : 0.0f)
#define GR_ABS(a) fabsf(a)
#define GR_EACH1(f, a) ((float)f(a))
#define GR_EACH2(f, a, b) ((float)f(a, b))

#else

#define GR_LANES 1
typedef double gr_wide;
#define GR_LANE(v, l) (v)
#define GR_SPLAT(a) (a)
#define GR_TRUTH(m) ((double)(m))
#define GR_SELECT(c, v) ((c) != 0.0 ? (v) : 0.0)
#define GR_ABS(a) fabs(a)
#define GR_EACH1(f, a) f(a)
#define GR_EACH2(f, a, b) f(a, b)

#endif

/* quotients of a step; GR_STEP_PLAIN is set where they are to be the compiler's own */
#if defined(__CUDACC__) && !defined(GR_SINGLE) && !defined(GR_STEP_PLAIN)
#include "gr_quick.h"
#define GR_QUICK
#define GR_ALSO , unsigned int *gr_far
#define GR_TOLD(g) , g->far
#define GR_OVER(a, b) gr_over(a, b, gr_far)
#else
#define GR_ALSO
#define GR_TOLD(g)
#define GR_OVER(a, b) ((a) / (b))
#endif

#endif
