/* Includes gr_sparse_tiles.h for each width of registers, for numbers of GR_PER doubles: once for real and once for
 * complex numbers, hence no guard.
 */
#define GR_UNROLL GR_UNROLLED
#define GR_VEC gr_narrow
#define GR_WIDTH GR_NARROW
#define GR_NONE GR_NARROW_ZERO
#define GR_SUM(v) GR_NARROW_SUM(v)
#define GR_TILED(name) GR_OF(name##_narrow)
#define GR_TILED_FN GR_APART
#include "gr_sparse_tiles.h"
#undef GR_VEC
#undef GR_WIDTH
#undef GR_NONE
#undef GR_SUM
#undef GR_TILED
#undef GR_TILED_FN
#if GR_HAS_WIDE
#define GR_VEC gr_broad
#define GR_WIDTH 4
#define GR_NONE ((gr_broad){0.0, 0.0, 0.0, 0.0})
#define GR_SUM(v) ((v)[0] + (v)[2] + ((v)[1] + (v)[3]))
#define GR_TILED(name) GR_OF(name##_broad)
#define GR_TILED_FN static __attribute__((noinline, unused, target("avx2")))
#include "gr_sparse_tiles.h"
#undef GR_VEC
#undef GR_WIDTH
#undef GR_NONE
#undef GR_SUM
#undef GR_TILED
#undef GR_TILED_FN
#endif
#undef GR_UNROLL
