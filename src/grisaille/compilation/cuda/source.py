"""The C file of a fused step as one text for a run-time compiler, which has no files: headers put where they are asked
for, and the C library's left out, whose functions such compilers know."""

from __future__ import annotations

import re

from grisaille.compilation.library import headers_of

_OURS = re.compile(r'^[ \t]*#[ \t]*include[ \t]+"(gr_\w+\.h)"[^\n]*\n?', re.MULTILINE)
_THEIRS = re.compile(r"^[ \t]*#[ \t]*include[ \t]+<[^>\n]+>[^\n]*\n", re.MULTILINE)

KERNELS = '#include "gr_cuda.h"\n'
"""What is added to the file of a fused step."""

BEGINNING = """\
#ifndef INFINITY
#define INFINITY __longlong_as_double(0x7FF0000000000000LL)
#endif
#ifndef NAN
#define NAN __longlong_as_double(0x7FF8000000000000LL)
#endif
"""


def device_source(text: str) -> str:
    """From the C file of a fused step."""
    text += KERNELS
    return BEGINNING + _THEIRS.sub("", _gathered(text, dict(headers_of(text)), set()))


def host_source(text: str) -> str:
    """The same kernels as loops, for a C compiler."""
    return text + KERNELS


def _gathered(text: str, headers: dict[str, str], seen: set[str]) -> str:
    def put(found: re.Match[str]) -> str:
        name = found.group(1)
        if name in seen:
            return ""
        seen.add(name)
        return _gathered(headers[name], headers, seen)

    return _OURS.sub(put, text)
