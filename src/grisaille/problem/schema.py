"""The JSON schema of ``problem.toml``: what ``grisaille schema`` prints and what every folder is checked against.

The file ``problem.schema.json`` in this folder holds all but the options of estimators, which come from the estimators
themselves.
"""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any

from grisaille.problem.estimators import estimators, options_of


@cache
def problem_schema() -> dict[str, Any]:
    """Return the complete schema, as JSON would hold it."""
    text = resources.files("grisaille.problem").joinpath("problem.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    known = estimators()
    method = schema["properties"]["method"]
    method["properties"]["name"] = {
        "enum": ["auto", *known],
        "description": method["properties"]["name"]["description"],
    }
    method["required"] = ["name"]
    method["oneOf"] = [
        {"properties": {"name": {"const": "auto"}}, "additionalProperties": False},
        *({"$ref": f"#/$defs/{name}"} for name in known),
    ]
    for name, estimator in known.items():
        schema["$defs"][name] = {
            "type": "object",
            "x-name": name,
            "description": (estimator.__doc__ or "").partition("\n")[0],
            "properties": {"name": {"const": name}, **options_of(estimator)},
            "required": ["name"],
            "additionalProperties": False,
        }
    return schema
