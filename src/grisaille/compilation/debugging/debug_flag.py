"""The switch ``GRISAILLE_DEBUG=1``, which keeps generated code for debuggers."""

from __future__ import annotations

import os

OFF_VALUES = ("", "0", "false", "no", "off")


def is_debugging() -> bool:
    """Return whether sources are kept with the user's words in them, and built with what a debugger needs."""
    return os.environ.get("GRISAILLE_DEBUG", "").strip().lower() not in OFF_VALUES
