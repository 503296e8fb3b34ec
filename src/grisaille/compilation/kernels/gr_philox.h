/* Computes Philox4x32-10, four random 32-bit words as a pure function of a 128-bit counter and a 64-bit key (J. K. Salmon
 * et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). Twin of numerics/philox.py, bit for bit.
 *
 *   counter = (step, node, realization, block)      key = of the stream: seed, purpose and name, see numerics/philox.py
 *
 * unsigned int has 32 bits on every platform we meet, and stdint.h is missing in run-time compilers for GPUs.
 */
#ifndef GR_PHILOX_H
#define GR_PHILOX_H

#include "gr_task.h"

typedef unsigned int gr_u32;
typedef unsigned long long gr_u64;

/* replaces the counter by the random words */
GR_FN void gr_philox(gr_u32 *c, gr_u32 k0, gr_u32 k1) {
  gr_u32 c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
  for (int round = 0; round < 10; round++) {
    gr_u64 p0 = (gr_u64)0xD2511F53u * c0, p1 = (gr_u64)0xCD9E8D57u * c2;
    c0 = (gr_u32)(p1 >> 32) ^ c1 ^ k0;
    c2 = (gr_u32)(p0 >> 32) ^ c3 ^ k1;
    c1 = (gr_u32)p1;
    c3 = (gr_u32)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  c[0] = c0;
  c[1] = c1;
  c[2] = c2;
  c[3] = c3;
}

#endif
