"""Flattens one model by ``rumoca``, in a process of its own: a young compiler may fall, and must not take us along.

Reads one JSON object from standard input (``text``, ``label``, ``name``, ``roots``) and writes one: ``flat`` with
``files``, the texts in which start values were written by the compiler's number of each, or ``error`` with the
compiler's messages. Runs as a file, without the rest of the package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any


def flattened(asked: dict[str, Any]) -> dict[str, Any]:
    """The flat tree, or what the compiler said."""
    import rumoca

    try:
        session = rumoca.Session(roots=asked["roots"])
        model = session.loads(asked["text"], model=asked["name"], filename=asked["label"])
        flat = model.to_dict("flat")
        return {"flat": flat, "files": files_of(model, flat)}
    except rumoca.RumocaError as error:
        found = rumoca.validate_source(asked["text"], model=asked["name"], filename=asked["label"])
        told = [{"line": d.line, "file": d.file, "message": d.message, "level": d.level} for d in found]
        return {"error": str(error), "diagnostics": told}


def files_of(model: Any, flat: dict[str, Any]) -> dict[str, str]:
    """Texts of the files in which starts and values of variables stand."""
    variables = flat["variables"].values()
    wanted = set(_numbers([v["start"] for v in variables])) | set(_numbers([v["binding"] for v in variables]))
    known = model.to_dict("dae").get("source_map", {}).get("files", [])
    return {str(number): text for number, _, text in known if number in wanted}


def _numbers(root: Any) -> Iterator[int]:
    stack = [root]
    while stack:
        top = stack.pop()
        if isinstance(top, dict):
            if "source" in top and "start" in top:
                yield top["source"]
            stack.extend(top.values())
        elif isinstance(top, list):
            stack.extend(top)


if __name__ == "__main__":
    answer = flattened(json.load(sys.stdin))
    json.dump(answer, sys.stdout)
