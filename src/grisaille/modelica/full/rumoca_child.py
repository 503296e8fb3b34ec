"""Flattens one model by ``rumoca``, in a process of its own: a young compiler may fall, and must not take us along.

Reads one JSON object from standard input (``text``, ``label``, ``name``, ``roots``) and writes one: ``flat`` with
``files``, the texts in which start values were written by the compiler's number of each, and ``names``, the paths of
all files; or ``error`` with the compiler's messages. Runs as a file, without the rest of the package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def flattened(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the flat tree, or what the compiler said."""
    import rumoca

    try:
        session = rumoca.Session(roots=asked["roots"])
        model = session.loads(asked["text"], model=asked["name"], filename=asked["label"])
        flat = model.to_dict("flat")
        known = model.to_dict("dae").get("source_map", {}).get("files", [])
        names = {str(number): name for number, name, _ in known}
        return {"flat": flat, "files": files_of(known, flat), "names": names}
    except rumoca.RumocaError as error:
        said = list(diagnostics(asked["text"], asked["label"]))
        if asked["roots"]:
            said = [one for one in said if one["rule"] == "syntax-error"] + list(damaged(asked["roots"], str(error)))
        return {"error": str(error), "diagnostics": said}


def diagnostics(text: str, label: str) -> Iterator[dict[str, Any]]:
    """Yield what the compiler says of one text alone."""
    import rumoca

    for d in rumoca.validate_source(text, filename=label):
        yield {"line": d.line, "file": d.file, "message": d.message, "level": d.level, "rule": d.rule}


def damaged(roots: list[str], error: str) -> Iterator[dict[str, Any]]:
    """Yield files of libraries that cannot be parsed, each with its message."""
    if "source root" not in error:
        return
    for root in roots:
        for path in sorted(Path(root).rglob("*.mo")):
            found = diagnostics(path.read_text("utf-8"), str(path))
            yield from (one for one in found if one["rule"] == "syntax-error")


def files_of(known: list[Any], flat: dict[str, Any]) -> dict[str, str]:
    """Return texts of the files in which starts and values of variables stand."""
    variables = flat["variables"].values()
    wanted = set(_numbers([v["start"] for v in variables])) | set(_numbers([v["binding"] for v in variables]))
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
