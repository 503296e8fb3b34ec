"""Unknowns of ``problem.toml``: names, guesses, bounds and priors, each checked against the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from grisaille.estimation.curves.vectors import elements_of, names_to_estimate
from grisaille.estimators.fitting import find_unknowns
from grisaille.model.flat import FlatModel
from grisaille.model.names import matching, suggestion
from grisaille.problem.document import Place
from grisaille.problem.folder_findings import Findings
from grisaille.problem.folder_priors import make_joint, make_prior

if TYPE_CHECKING:
    from grisaille.experiment.experiment import Experiment


@dataclass(frozen=True)
class UnknownsOfFolder:
    """The arguments of ``gr.fit`` that say what is unknown."""

    estimate: list[str] | None = None
    local: tuple[str, ...] = ()
    values: dict[str, Any] = field(default_factory=dict)
    """Known values that replace the model's; of vectors, numbers or lists."""
    guess: dict[str, Any] = field(default_factory=dict)
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    priors: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return them as arguments of ``gr.fit``."""
        return {
            "estimate": self.estimate, "guess": self.guess, "bounds": self.bounds or None,
            "priors": self.priors or None, "local": self.local,
        }  # fmt: skip


def read_wanted(data: Mapping[str, Any], findings: Findings) -> UnknownsOfFolder:
    """Read what the file says about unknowns; contradictions are added to the findings."""
    wanted = UnknownsOfFolder(data.get("estimate"), tuple(data.get("local", ())))
    for name, entry in data.get("parameters", {}).items():
        _read_parameter(name, entry if isinstance(entry, dict) else {"value": entry}, wanted, findings)
    for k, table in enumerate(data.get("priors", ())):
        with findings.catching(("priors", k)):
            joint = make_joint(table)
            wanted.priors.update({name: joint for name in joint.names})
    return wanted


def _read_parameter(name: str, entry: Mapping[str, Any], wanted: UnknownsOfFolder, findings: Findings) -> None:
    place: Place = ("parameters", name)
    if "value" in entry and len(entry) > 1:
        findings.error(place, "has a value, which is known, beside a guess, bounds or a prior, which are for unknowns. "
                              "Write guess instead of value to estimate it.")  # fmt: skip
    if "value" in entry:
        wanted.values[name] = _numbers(entry["value"])
    if "guess" in entry:
        wanted.guess[name] = _numbers(entry["guess"])
    if "bounds" in entry:
        lower, upper = map(float, entry["bounds"])
        if lower < upper:
            wanted.bounds[name] = (lower, upper)
        else:
            findings.error((*place, "bounds"), f"are [{lower:g}, {upper:g}]: the first must be below the second.")
    if "prior" in entry:
        with findings.catching((*place, "prior")):
            wanted.priors[name] = make_prior(entry["prior"])
    guess, bounds = wanted.guess.get(name), wanted.bounds.get(name)
    if guess is not None and bounds is not None:
        beyond = [g for g in (guess if isinstance(guess, list) else [guess]) if not bounds[0] <= g <= bounds[1]]
        if beyond:
            findings.error((*place, "guess"), f"is {beyond[0]:g}, outside its bounds [{bounds[0]:g}, {bounds[1]:g}].")


def _numbers(value: Any) -> Any:
    return [float(v) for v in value] if isinstance(value, list) else float(value)


def complete_names(wanted: UnknownsOfFolder, flat: FlatModel, findings: Findings) -> UnknownsOfFolder:
    """Fill in the names to estimate where the file has no ``estimate``: all that is marked as unknown."""
    if wanted.estimate is not None:
        return wanted
    marked = [n for n, p in flat.parameters.items() if p.bounds is not None or p.prior is not None]
    marked += [*wanted.guess, *wanted.bounds, *wanted.priors]
    known = {n for name in wanted.values for n in _elements(name, flat)}
    chosen = [n for n in dict.fromkeys(e for name in marked for e in _elements(name, flat)) if n not in known]
    if not chosen:
        names = ", ".join(f'"{n}"' for n in list(flat.parameters)[:6])
        findings.error((), f"nothing is marked as unknown: name what to estimate, such as estimate = [{names}].")
    return replace(wanted, estimate=chosen)


def _elements(name: str, flat: FlatModel) -> list[str]:
    """Return the elements of a vector, or the name itself."""
    base, at, run = name.partition("@")
    pool = names_to_estimate(flat)
    return [name] if base in pool else [f"{e}{at}{run}" for e in elements_of(base, pool)] or [name]


def check_names(
    data: Mapping[str, Any], wanted: UnknownsOfFolder, flat: FlatModel, runs: Sequence[str], findings: Findings
) -> None:
    """Every name must be one that can be estimated or set."""
    pool = [*names_to_estimate(flat), "start(*)"]
    for name in wanted.estimate or ():
        _check_name(name, pool, runs, flat, ("estimate",), findings)
    for name in wanted.local:
        if not _is_known(name, flat.parameters):
            findings.error(
                ("local",), f"'{name}' is not a parameter of {flat.name}. {suggestion(name, flat.parameters)}"
            )
    for name in data.get("parameters", {}):
        place: Place = ("parameters", name)
        if name in wanted.values:
            if not _is_known(name, flat.parameters):
                findings.error(place, f"{flat.name} has no parameter '{name}'. {_parameter_hint(name, flat)}")
            elif _listed(name, wanted) and not _says_more(data["parameters"][name]):
                findings.error(place, "is a known value, but estimate names it as well: write "
                                      f"{{ guess = {_shown(wanted.values[name])} }} to estimate it.")  # fmt: skip
        elif _check_name(name, pool, runs, flat, place, findings) and not _is_estimated(name, wanted, flat):
            findings.error(place, f"has a guess, bounds or a prior, but is not estimated. Add '{name}' to estimate, or "
                                  f"give its known value: {name} = ….")  # fmt: skip


def _says_more(entry: object) -> bool:
    """Return whether a value stands beside something else, which was told already."""
    return isinstance(entry, dict) and len(entry) > 1


def _parameter_hint(name: str, flat: FlatModel) -> str:
    if name in flat.inputs:
        return "It is an input: name it in inputs of each experiment."
    if name in flat.variables:
        return f"It is a variable: a known first value belongs to start = {{ {name} = … }} of each experiment."
    return suggestion(name, flat.parameters)


def _check_name(
    name: str, pool: Sequence[str], runs: Sequence[str], flat: FlatModel, place: Place, findings: Findings
) -> bool:
    base, _, run = name.partition("@")
    if run and runs and run not in runs:
        findings.error(place, f"'{name}' names the experiment '{run}'. {suggestion(run, runs)}")
        return False
    if _is_known(base, pool):
        return True
    if base in flat.variables:
        hint = f'To estimate its first value, write "start({base})".'
    elif base in flat.inputs or base in flat.outputs:
        hint = f"'{base}' is {'an input' if base in flat.inputs else 'an output'}, not something to estimate."
    elif base in flat.disturbances:
        hint = f'To estimate its level, write "scale({base})".'
    else:
        hint = suggestion(base, pool)
    findings.error(place, f"{flat.name} has nothing called '{base}' to estimate. {hint}")
    return False


def _shown(value: Any) -> str:
    return f"[{', '.join(f'{v:g}' for v in value)}]" if isinstance(value, list) else f"{value:g}"


def _is_known(name: str, pool: Iterable[str]) -> bool:
    return any(hit in pool for hit in matching(name, pool)) or bool(elements_of(name, pool))


def _listed(name: str, wanted: UnknownsOfFolder) -> bool:
    return any(n.partition("@")[0] == name for n in wanted.estimate or ())


def _is_estimated(name: str, wanted: UnknownsOfFolder, flat: FlatModel) -> bool:
    listed = {n for w in wanted.estimate or () for n in (w, w.partition("@")[0])}
    listed |= {e for n in listed for e in _elements(n, flat)}
    if all(n in listed or n.partition("@")[0] in listed for n in _elements(name, flat)):
        return True
    if name.startswith("noise("):
        return True  # methods that know noise levels add those the model leaves open
    return any("*" in w and (name in matching(w, [name]) or w == "start(*)") for w in listed)


def check_unknowns(
    model: Any, experiments: Sequence[Experiment], wanted: UnknownsOfFolder, method: Any, findings: Findings
) -> None:
    """The unknowns as ``gr.fit`` would pose them, and whether each begins inside its bounds."""
    with findings.catching(("estimate",)):
        found = find_unknowns(model, experiments, wanted.estimate, guess=wanted.guess, bounds=wanted.bounds or None,
                              priors=wanted.priors or None, local=wanted.local, method=method)  # fmt: skip
        for unknown in found:
            if unknown.kind == "parameter" and unknown.guess != unknown.guess:
                value = model.parameters[unknown.target].value
                if isinstance(value, int | float) and not unknown.lower <= value <= unknown.upper:
                    findings.error(("parameters", unknown.target), (
                        f"begins at the model's value {value:g}, outside its bounds [{unknown.lower:g}, "
                        f"{unknown.upper:g}]: give a guess inside them."))  # fmt: skip
