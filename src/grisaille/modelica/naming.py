"""Names that a model may carry."""

from __future__ import annotations

import re

from grisaille.modelica.values import Unfit

_ALLOWED = re.compile(r"[^\s()*\";=]+")
MAX_NAME_LENGTH = 400


def check_name(name: str) -> None:
    """Refuse names that could not be told from formulas, patterns or texts once they are used as such."""
    if name == "time":
        raise Unfit("'time' is the independent variable and cannot be declared")
    if not _ALLOWED.fullmatch(name):
        shown = name if len(name) < 60 else name[:60] + "…"
        raise Unfit(f"the name {shown!r} is not supported: names hold no spaces, parentheses, stars or double quotes")
    if len(name) > MAX_NAME_LENGTH:
        raise Unfit(f"the name {name[:40]!r}… has {len(name)} letters, more than {MAX_NAME_LENGTH}")
