"""The schema describes what is accepted: every option of every estimator, and nothing that the reader does not know."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from grisaille.problem import deviations, problem_schema
from grisaille.problem.estimators import estimators


def said(value: Any, schema: dict[str, Any]) -> list[str]:
    return [message for _, message in deviations(value, schema, {"$defs": {}})]


def test_every_option_of_every_estimator() -> None:
    assert {"OutputError", "SimulatedPEM", "KalmanML"} <= set(estimators())
    for name, estimator in estimators().items():
        known = set(problem_schema()["$defs"][name]["properties"]) - {"name"}
        assert known == {f.name for f in dataclasses.fields(estimator) if f.init}


@pytest.mark.parametrize("name", sorted(estimators()))
def test_defaults_conform(name: str) -> None:
    """What an estimator has by default may be written down."""
    schema = problem_schema()
    options = {k: o["default"] for k, o in schema["$defs"][name]["properties"].items() if "default" in o}
    assert list(deviations({"name": name, **options}, schema["properties"]["method"], schema)) == []


def test_it_is_json_with_references_that_lead_somewhere() -> None:
    text = json.dumps(problem_schema())
    references = {part.split('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}
    assert references <= set(problem_schema()["$defs"])


def test_every_key_is_described() -> None:
    schema = problem_schema()
    tables = [schema, schema["$defs"]["experiment"], schema["$defs"]["study"]]
    named = [(k, v) for table in tables for k, v in table["properties"].items() if k != "study"]
    assert [k for k, v in named if not v.get("description")] == []


def test_alternatives_explain_the_one_that_was_meant() -> None:
    pair = {"anyOf": [{"type": "number"}, {"type": "object", "properties": {"a": {"type": "number"}}}]}
    assert said(1.5, pair) == [] and said({"a": 1}, pair) == []
    assert said({"a": "x"}, pair) == ['is "x"; give a number.']
    assert said("x", pair) == ['is "x"; give a number or a table.']


def test_booleans_are_not_numbers() -> None:
    assert said(True, {"type": "integer"}) == ["is true; give a whole number."]
    assert said(1, {"type": "boolean"}) == ["is 1; give true or false."]
    assert said(True, {"enum": [1, 2]}) == ["is true; give 1 or 2."]
    assert said(2.0, {"type": "integer"}) == ["is 2.0; give a whole number."]
