"""Flattens one model by ``rumoca``, in a process of its own: a young compiler may fall, and must not take us along.

Reads one JSON object from standard input (``text``, ``label``, ``name``, ``roots``) and writes one: ``flat``, or
``error`` with the compiler's messages. Runs as a file, without the rest of the package.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def flattened(asked: dict[str, Any]) -> dict[str, Any]:
    """The flat tree, or what the compiler said."""
    import rumoca

    try:
        session = rumoca.Session(roots=asked["roots"])
        model = session.loads(asked["text"], model=asked["name"], filename=asked["label"])
        return {"flat": model.to_dict("flat")}
    except rumoca.RumocaError as error:
        found = rumoca.validate_source(asked["text"], model=asked["name"], filename=asked["label"])
        told = [{"line": d.line, "file": d.file, "message": d.message, "level": d.level} for d in found]
        return {"error": str(error), "diagnostics": told}


if __name__ == "__main__":
    answer = flattened(json.load(sys.stdin))
    json.dump(answer, sys.stdout)
