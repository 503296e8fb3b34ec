"""Models run as compiled code only; messages where something else is requested or no compiler is found.

Libraries that are in the cache run without a compiler; one is needed for what must be built.
"""

from __future__ import annotations

from grisaille.compilation.compiler import COMPILER_REMEDY, is_switched_off
from grisaille.errors import CompilationError, DataError


def require_compiled(compiled: object) -> None:
    """Raise unless ``compiled`` is ``None`` or ``True``, which mean the same: interpreted models no longer exist."""
    if compiled is None or compiled is True:
        return
    if compiled is not False:
        raise DataError(f"compiled is {compiled!r}; leave it out, models are always compiled.")
    raise CompilationError(
        f"Models run as compiled code only: leave compiled=False out. No C compiler? {COMPILER_REMEDY}"
    )


def no_compiler() -> CompilationError:
    """Return the error of a build that needs a compiler where there is none, or where it may not be used."""
    if is_switched_off():
        return CompilationError(
            f"Models run as compiled code only, and GRISAILLE_COMPILER=none forbids to build what is not in the cache: "
            f"unset it. No C compiler? {COMPILER_REMEDY}"
        )
    return CompilationError(f"Models are compiled, and no C compiler was found. {COMPILER_REMEDY}")
