"""``[signals]`` of ``problem.toml``: what is known, disturbed and measured in a model whose own text does not say.

Made for models that were written elsewhere, in Modelica, and works on any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from grisaille.errors import DataError
from grisaille.model import spectra
from grisaille.problem.folder_findings import Findings

if TYPE_CHECKING:
    from grisaille.model.classes import Model

SPECTRUM_KINDS: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "white": (spectra.white, ()),
    "lowpass": (spectra.lowpass, ("bandwidth",)),
    "resonance": (spectra.resonance, ("frequency", "damping")),
    "integrated": (spectra.integrated, ()),
    "rational": (spectra.rational, ("num", "den")),
}
_OPTIONS = {"lowpass": ("order",)}


def with_signals(model: Model, table: Mapping[str, Any], findings: Findings) -> Model:
    """Return the model with what the table marks."""
    inputs = table.get("inputs", {})
    with findings.catching(("signals", "inputs")):
        if inputs:
            model = model.with_inputs(dict.fromkeys(inputs) if isinstance(inputs, list) else dict(inputs))
    for k, entry in enumerate(table.get("disturbances", ())):
        with findings.catching(("signals", "disturbances", k)):
            spectrum = make_spectrum(entry["spectrum"])
            more = {key: entry[key] for key in ("scale", "label") if key in entry}
            model = model.with_disturbance(entry["on"], spectrum, **more)
    outputs = table.get("outputs", {})
    with findings.catching(("signals", "outputs")):
        if outputs:
            labels = {name: name for name in outputs} if isinstance(outputs, list) else dict(outputs)
            model = model.with_outputs(labels, noise=table.get("noise"))
        elif "noise" in table:
            raise DataError("noise goes with outputs = [...]; outputs that the model declares have their own.")
    return model


def make_spectrum(table: Mapping[str, Any]) -> Any:
    """Return the filter that ``{ kind = "lowpass", bandwidth = 2.0 }`` describes."""
    kind = table["kind"]
    function, needed = SPECTRUM_KINDS[kind]
    given = {key: value for key, value in table.items() if key != "kind"}
    if set(needed) - set(given) or set(given) - {*needed, *_OPTIONS.get(kind, ())}:
        example = "".join(f", {name} = …" for name in needed)
        raise DataError(
            f"a {kind} spectrum has {' and '.join(needed) or 'no numbers'}, got {', '.join(given) or 'none'}: "
            f'{{ kind = "{kind}"{example} }}.'
        )
    return function(**given)
