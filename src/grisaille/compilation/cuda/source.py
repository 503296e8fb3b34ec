"""The C file of a fused step with the kernels of gr_cuda.h as one text, headers put where they are asked for.

One text for CUDA compilers, run-time ones too, which have no files and know the C library's functions by themselves,
and for C compilers, which get the kernels as loops.
"""

from __future__ import annotations

import re

from grisaille.compilation.library import headers_of

KERNELS = '#include "gr_cuda.h"\n'
"""What is added to the file of a fused step."""

_OURS = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"(gr_\w+\.h)"[^\n]*\n?', re.MULTILINE)
_THEIRS = re.compile(r"^[ \t]*#[ \t]*include[ \t]+<[^>\n]+>[^\n]*\n", re.MULTILINE)
_BEGINNING = """\
#ifdef __CUDACC_RTC__
#define INFINITY __longlong_as_double(0x7FF0000000000000LL)
#define NAN __longlong_as_double(0x7FF8000000000000LL)
#else
#include <math.h>
#endif
"""


def one_text(text: str) -> str:
    """From the C file of a fused step."""
    text += KERNELS
    return _BEGINNING + _THEIRS.sub("", _gathered(text, dict(headers_of(text))))


def _gathered(text: str, headers: dict[str, str]) -> str:
    """Headers have guards; the first place where one is asked for may be one that is not compiled."""
    return _OURS.sub(lambda found: _gathered(headers[found.group(1)], headers), text)
