/* Runs tasks of gr_task.h on a graphics processor: one thread takes one of them through a slice of its steps.
 *
 * Without a CUDA compiler the kernel is a loop over its threads. Mirrored by compilation/cuda/tasks.py.
 */
#ifndef GR_CUDA_TASK_H
#define GR_CUDA_TASK_H

#include "gr_explicit.h"
#include "gr_implicit.h"
#include "gr_rk4.h"

GR_FN void gr_cuda_task(gr_task *task, long is_implicit) {
  if (task->resumed && task->status != GR_MORE) return;
  if (is_implicit)
    gr_implicit(task);
  else if (task->fixed_step > 0.0)
    gr_rk4(task);
  else
    gr_explicit(task);
}

#ifdef __CUDACC__
extern "C" __global__ void gr_cuda_tasks_kernel(gr_task *tasks, long count, long is_implicit) {
  const long thread = (long)blockIdx.x * (long)blockDim.x + (long)threadIdx.x;
  if (thread < count) gr_cuda_task(tasks + thread, is_implicit);
}
#else
GR_API long gr_cuda_tasks_kernel(gr_task *tasks, long count, long is_implicit) {
  for (long thread = 0; thread < count; thread++) gr_cuda_task(tasks + thread, is_implicit);
  return 0;
}
#endif

#endif
