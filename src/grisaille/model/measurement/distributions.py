"""Laws of measurements as outputs have them: a law whose location is the prediction and whose numbers may be formulas.

``gr.Output(b * N, distribution=gr.laws.NegativeBinomial(size=r))`` keeps the law with ``r`` as a formula in its place;
laws inside of laws (``gr.laws.Censored(below=0.1, of=…)``) likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from grisaille.errors import ModelError
from grisaille.laws import Law
from grisaille.laws.law_derivatives import replace_fields
from grisaille.model.checking import check_value
from grisaille.model.expression import Expression

if TYPE_CHECKING:
    from grisaille.model.flat import FlatModel, FlatOutput


def mapped_law(law: Law, change: Callable[[Any], Any]) -> Law:
    """Return a law with every number and formula changed; what is open stays open."""
    changed = {n: mapped_law(v, change) if isinstance(v, Law) else change(v) for n, v in given_arguments(law)}
    mapped: Law = replace_fields(law, **changed)
    return mapped


def formulas_of(law: Law, inside: str = "") -> dict[str, Expression]:
    """Return the numbers and formulas of a law by path: ``{"std": …}``, ``{"below": …, "of.std": …}``."""
    found: dict[str, Any] = {}
    for name, value in given_arguments(law):
        path = f"{inside}{name}"
        found.update(formulas_of(value, f"{path}.") if isinstance(value, Law) else {path: value})
    return found


def law_formulas(output: FlatOutput) -> dict[str, Expression]:
    """Return the formulas of an output's law by path; none where it has normal noise."""
    return {} if output.distribution is None else formulas_of(output.distribution)


def has_law(model: FlatModel, output: str) -> bool:
    """Return whether an output declares another law than normal noise."""
    return model.outputs[output].distribution is not None


def stepped_outputs(model: FlatModel) -> tuple[str, ...]:
    """Return the outputs whose laws know that values come in steps: counts, and what is rounded."""
    laws = {n: o.distribution for n, o in model.outputs.items() if o.distribution is not None}
    steps = {n: [p for p in formulas_of(law) if p.rpartition(".")[2] == "step"] for n, law in laws.items()}
    return tuple(n for n, law in laws.items() if innermost(law).is_discrete or steps[n])


def law_text(law: Law, render: Callable[[Any], str]) -> str:
    """Return a law as it is written, ``Student(df=4, scale=sigma)``."""
    parts = (
        f"{name}={law_text(value, render) if isinstance(value, Law) else render(value)}"
        for name, value in given_arguments(law)
    )
    return f"{type(law).__name__}({', '.join(parts)})"


def check_distribution(name: str, law: Any, noise: Any) -> None:
    """Refuse what is no law of measurements."""
    if noise is not None:
        raise ModelError(
            f"{name}: noise= and distribution= both say how measurements scatter. noise=0.1 is normal noise; "
            f"distribution= is any other law: give one of them."
        )
    if isinstance(law, type) and issubclass(law, Law):
        raise ModelError(f"{name}: distribution is the class {law.__name__}; make one: gr.laws.{law.__name__}(…).")
    if not isinstance(law, Law):
        raise ModelError(
            f"{name}: distribution must be a law such as gr.laws.Poisson() or gr.laws.Student(df=4, scale=0.1), got "
            f"{law!r}."
        )
    inner = innermost(law)
    if not inner.location:
        having = sorted(n for n, kind in Law.known.items() if kind.location and kind.__module__.startswith("grisaille"))
        raise ModelError(
            f"{name}: {type(inner).__name__} has no location that a prediction could be. Laws of measurements are "
            f"{', '.join(having)}, and Rounded, Censored or Truncated ones of these."
        )
    if getattr(inner, inner.location) is not None:
        raise ModelError(
            f"{name}: the prediction is the {inner.location} of {type(inner).__name__}, so leave {inner.location} out: "
            f"gr.Output(formula, distribution=gr.laws.{type(inner).__name__}(…))."
        )
    for path, value in formulas_of(law).items():
        check_value(name, f"{path} of {type(law).__name__}", value)


def given_arguments(law: Law) -> Iterator[tuple[str, Any]]:
    """Return what a law was given, by name: numbers, formulas, laws inside of it; not what is open."""
    described: Any = law
    yield from ((f.name, v) for f in fields(described) if (v := getattr(law, f.name)) is not None)


def innermost(law: Law) -> Law:
    """Return the law inside of all wrappers; the law itself where it wraps none."""
    inner: Any = law
    while isinstance(getattr(inner, "of", None), Law):
        inner = inner.of
    return inner  # type: ignore[no-any-return]
