/* Draws standard normals for GR_LANES realizations at once: in each lane those of gr_normal.h, bit for bit. */
#ifndef GR_NORMAL_WIDE_H
#define GR_NORMAL_WIDE_H

#include "gr_normal.h"
#include "gr_wide.h"

/* n components at a node of grid point `step`, each of the lanes from the path of its own number */
GR_FN void gr_normals_wide(const gr_stream *stream, const gr_u32 *number, gr_u32 step, gr_u32 node, long n, gr_wide *z) {
  double pair[2];
  long i, l;
  for (i = 0; i < n; i += 2)
    for (l = 0; l < GR_LANES; l++) {
      gr_normal_pair(stream, number[l], step, node, (gr_u32)(i / 2), pair);
      GR_LANE(z[i], l) = pair[0];
      if (i + 1 < n) GR_LANE(z[i + 1], l) = pair[1];
    }
}

#endif
