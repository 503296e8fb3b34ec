"""A generated C file with kernels for a graphics processor as one text, headers put where they are asked for.

One text for CUDA compilers, run-time ones too, which have no files and know the C library's functions by themselves,
and for C compilers, which get the kernels as loops.
"""

from __future__ import annotations

import re

from grisaille.compilation.shared_library import headers_of

STEP_KERNEL_SOURCE = '#include "gr_cuda.h"\n'
"""What is added to the file of a fused step."""
TASK_KERNEL_SOURCE = '#include "gr_cuda_task.h"\n'
"""What is added to the file of a model with its integrators."""

_OURS = re.compile(r'[ \t]*#[ \t]*include[ \t]+"(gr_\w+\.h)"')
_THEIRS = re.compile(r"[ \t]*#[ \t]*include[ \t]+<[^>\n]+>")
_OPENS, _CLOSES = re.compile(r"[ \t]*#[ \t]*if"), re.compile(r"[ \t]*#[ \t]*endif")
_BEGINNING = """\
#ifdef __CUDACC_RTC__
#define INFINITY __longlong_as_double(0x7FF0000000000000LL)
#define NAN __longlong_as_double(0x7FF8000000000000LL)
#define HUGE_VAL INFINITY
#define DBL_MAX 1.7976931348623157e308
#define DBL_EPSILON 2.2204460492503131e-16
#else
#include <float.h>
#include <math.h>
#endif
"""


def one_text(text: str, kernels: str = STEP_KERNEL_SOURCE) -> str:
    """Return one text from a C file and the header of the kernels that are added to it."""
    text += kernels
    return _BEGINNING + _gathered(text, dict(headers_of(text)), set(), 0)


def _gathered(text: str, headers: dict[str, str], known: set[str], guards: int) -> str:
    """Return each header once where that is compiled in any case; what stands between conditions may come again, and
    its own guard decides.

    guards : conditions around a header that are its guard
    """
    lines, depth = [], 0
    for line in text.splitlines(keepends=True):
        depth += bool(_OPENS.match(line)) - bool(_CLOSES.match(line))
        found = _OURS.match(line)
        if found is None:
            lines += [] if _THEIRS.match(line) else [line]
        elif found.group(1) not in known:
            known |= {found.group(1)} if depth == guards else set()
            inside = known if depth == guards else set(known)
            lines.append(_gathered(headers[found.group(1)], headers, inside, 1))
    return "".join(lines)
