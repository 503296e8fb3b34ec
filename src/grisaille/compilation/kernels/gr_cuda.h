/* Runs the batch of gr_step.h on a graphics processor: one thread for each realization at each parameter value.
 *
 * A run goes through the grid in windows. gr_cuda_run takes every realization through one window and leaves its states and
 * what was observed in it; gr_cuda_moments forms means and spreads over blocks of GR_BLOCK realizations in their order, and
 * gr_cuda_join those of all blocks in theirs: the digits are those of the processor's code (compilation/sample_moments.py) and do
 * not depend on the launch. Arrays of one parameter value follow those of the one before, *_each numbers further on.
 *
 * Without a CUDA compiler each kernel is a loop over its threads. Mirrored by compilation/cuda/launch.py (ctypes).
 */
#ifndef GR_CUDA_H
#define GR_CUDA_H

#include "gr_step.h"

#ifndef GR_BLOCK
#define GR_BLOCK 32
#endif
#define GR_COLUMNS (GR_NY * (GR_NS > 0 ? GR_NS : 1))

typedef struct {
  gr_batch batch;               /* of the first parameter value; its moments are not used */
  long n_values, count;         /* parameter values; realizations of each, of which some may not be members */
  long stream_each, x0_each, p_each, dp_each, sx0_each, filter_each, start_each, reading_each;
  long dfilter_each, dstart_each, dreading_each;
  long window;                  /* number of the first grid point of this window */
  unsigned char *again;         /* values x count: to be run again with plain quotients (gr_quick.h); NULL: run all */
  long *any;                    /* whether one is */
  long *broken;                 /* values x count: where a state was first seen not finite in any window, or -1 */
  long first_row, n_rows;       /* of this window among all rows of the moments */
  double *part;                 /* values x blocks x (2 + 2 NS) x rows of this window x GR_NY */
  double *mean, *spread;        /* values x n_rows x GR_NY */
  double *smean, *scross;       /* values x n_rows x NS x GR_NY */
} gr_device;

GR_FN void gr_cuda_run(const gr_device *d, long thread) {
  const long v = thread / d->batch.n_members, each = v * d->count;
  gr_batch b = d->batch;
  gr_lanes g;
  b.stream += v * d->stream_each;
  b.x0 += v * d->x0_each;
  b.p += v * d->p_each;
  b.dp += v * d->dp_each;
  b.sx0 += v * d->sx0_each;
  b.filter += v * d->filter_each;
  b.start += v * d->start_each;
  b.reading += v * d->reading_each;
  b.dfilter += v * d->dfilter_each;
  b.dstart += v * d->dstart_each;
  b.dreading += v * d->dreading_each;
  b.x += each * GR_NX;
  b.sx += each * GR_NS * GR_NX;
  b.w += each * GR_NW;
  b.dw += each * GR_NS * GR_NW;
  if (b.w0) b.w0 += each * GR_NW;
  if (b.dw0) b.dw0 += each * GR_NS * GR_NW;
  if (b.y) b.y += each * b.n_kept * GR_NY;
  if (b.sy) b.sy += each * b.n_kept * GR_NS * GR_NY;
  b.failed += each;
  g.position = thread % b.n_members;
  g.lanes = 1;
#ifdef GR_QUICK
  g.far[0] = g.far[1] = 0;
  gr_abreast(&b, &g);
  if (gr_is_far(g.far)) {
    d->again[each + g.m[0]] = 1;
    *d->any = 1;
    return;
  }
#else
  if (d->again && !d->again[each + b.member[g.position]]) return;
  gr_abreast(&b, &g);
  if (d->again) d->again[each + g.m[0]] = 0;
#endif
  gr_leave(&b, &g);
  if (b.failed[g.m[0]] >= 0 && d->broken[each + g.m[0]] < 0)
    d->broken[each + g.m[0]] = d->window + b.failed[g.m[0]];
}

/* where a block keeps its sums: mean, spread, then for each direction mean and products */
GR_FN double *gr_part(const gr_device *d, long v, long block, long which) {
  const long blocks = (d->batch.n_members + GR_BLOCK - 1) / GR_BLOCK, rows = d->batch.n_kept * GR_NY;
  return d->part + ((v * blocks + block) * (2 + 2 * GR_NS) + which) * rows;
}

/* one column (direction s of quantity i) of one row of one block, realizations in order (gr_accumulate) */
GR_FN void gr_cuda_moments(const gr_device *d, long thread) {
  const gr_batch *b = &d->batch;
  const long blocks = (b->n_members + GR_BLOCK - 1) / GR_BLOCK;
  const long column = thread % GR_COLUMNS, row = thread / GR_COLUMNS % b->n_kept;
  const long block = thread / GR_COLUMNS / b->n_kept % blocks, v = thread / GR_COLUMNS / b->n_kept / blocks;
  const long i = column % GR_NY, s = column / GR_NY, first = block * GR_BLOCK;
  const long last = first + GR_BLOCK < b->n_members ? first + GR_BLOCK : b->n_members;
  double mean = 0.0, spread = 0.0, smean = 0.0, scross = 0.0;
  for (long l = first; l < last; l++) {
    const long at = (v * d->count + b->member[l]) * b->n_kept + row;
    const double weight = 1.0 / (double)(l - first + 1), y = b->y[at * GR_NY + i], before = y - mean;
    mean += weight * before;
    spread += before * (y - mean);
    if (GR_NS > 0) {
      const double sy = b->sy[(at * GR_NS + s) * GR_NY + i];
      smean += weight * (sy - smean);
      scross += before * (sy - smean);
    }
  }
  if (s == 0) {
    gr_part(d, v, block, 0)[row * GR_NY + i] = mean;
    gr_part(d, v, block, 1)[row * GR_NY + i] = spread;
  }
  if (GR_NS > 0) {
    gr_part(d, v, block, 2 + 2 * s)[row * GR_NY + i] = smean;
    gr_part(d, v, block, 3 + 2 * s)[row * GR_NY + i] = scross;
  }
}

/* one column of one row of one parameter value, blocks in order (Moments.joined) */
GR_FN void gr_cuda_join(const gr_device *d, long thread) {
  const gr_batch *b = &d->batch;
  const long blocks = (b->n_members + GR_BLOCK - 1) / GR_BLOCK;
  const long column = thread % GR_COLUMNS, row = thread / GR_COLUMNS % b->n_kept, v = thread / GR_COLUMNS / b->n_kept;
  const long i = column % GR_NY, s = column / GR_NY, at = row * GR_NY + i;
  const long to = v * d->n_rows + d->first_row + row;
  double mean = gr_part(d, v, 0, 0)[at], spread = gr_part(d, v, 0, 1)[at], smean = 0.0, scross = 0.0;
  long count = GR_BLOCK < b->n_members ? GR_BLOCK : b->n_members;
  if (GR_NS > 0) {
    smean = gr_part(d, v, 0, 2 + 2 * s)[at];
    scross = gr_part(d, v, 0, 3 + 2 * s)[at];
  }
  for (long block = 1; block < blocks; block++) {
    const long left = b->n_members - block * GR_BLOCK, other = left < GR_BLOCK ? left : GR_BLOCK, n = count + other;
    const double share = (double)other / (double)n, product = (double)(count * other) / (double)n;
    const double shift = gr_part(d, v, block, 0)[at] - mean;
    mean += share * shift;
    spread = spread + gr_part(d, v, block, 1)[at] + product * (shift * shift);
    if (GR_NS > 0) {
      const double sshift = gr_part(d, v, block, 2 + 2 * s)[at] - smean;
      smean += share * sshift;
      scross = scross + gr_part(d, v, block, 3 + 2 * s)[at] + product * shift * sshift;
    }
    count = n;
  }
  if (s == 0) {
    d->mean[to * GR_NY + i] = mean;
    d->spread[to * GR_NY + i] = spread;
  }
  if (GR_NS > 0) {
    d->smean[(to * GR_NS + s) * GR_NY + i] = smean;
    d->scross[(to * GR_NS + s) * GR_NY + i] = scross;
  }
}

/* standard normals of one stream, realizations x steps, as measurement noise takes them */
GR_FN void gr_cuda_normals(const gr_device *d, long thread) {
  double pair[2];
  const long rows = d->n_rows;
  gr_normal_pair(d->batch.stream, (gr_u32)(thread / rows), (gr_u32)(thread % rows), 0, 0, pair);
  d->mean[thread] = pair[0];
}

#ifdef __CUDACC__
extern "C" __constant__ gr_device gr_given;
__constant__ gr_device gr_given;
#define GR_KERNEL(name)                                                          \
  extern "C" __global__ void name##_kernel(long threads) {                       \
    const long thread = (long)blockIdx.x * (long)blockDim.x + (long)threadIdx.x; \
    if (thread < threads) name(&gr_given, thread);                               \
  }
#else
#define GR_KERNEL(name)                                              \
  GR_API long name##_kernel(const gr_device *given, long threads) {  \
    for (long thread = 0; thread < threads; thread++) name(given, thread); \
    return 0;                                                        \
  }
GR_API long gr_device_size(void) { return (long)sizeof(gr_device); }
#endif

GR_KERNEL(gr_cuda_run)
GR_KERNEL(gr_cuda_moments)
GR_KERNEL(gr_cuda_join)
GR_KERNEL(gr_cuda_normals)

#endif
