"""What is going to leave the package warns for at least two minor versions, and says what takes its place.

The one way to deprecate a public name, an argument, a value of an option or a key of a file:

    if tolerance is not None:
        warn_deprecated("simulate(tolerance=)", "give rtol=", since="0.4", until="0.6")

``tests/test_deprecation.py`` fails as soon as the version that ``until`` names is reached: then the name and this call
are deleted. What is promised, and for how long, is in ``docs/stability.md``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

PACKAGE = str(Path(__file__).parent)
KEPT_MINOR_VERSIONS = 2
"""Least difference between the minor versions ``since`` and ``until``."""


class GrisailleDeprecationWarning(DeprecationWarning):
    """Something that works now and will not in a version that the message names."""


def warn_deprecated(what: str, instead: str, *, since: str, until: str) -> None:
    """Warn that something public will be gone, at the line of the program that used it.

    what : as the user wrote it, ``"simulate(tolerance=)"``
    instead : what to do, as the end of a sentence, ``"give rtol="``
    since, until : the versions, ``"0.4"``, that warned first and that will not have it any more
    """
    message = f"{what} is deprecated since version {since} and will be gone in {until}: {instead}."
    warnings.warn(message, GrisailleDeprecationWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """Return the stack level of the first frame outside the package, as ``warn_deprecated`` counts levels."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
