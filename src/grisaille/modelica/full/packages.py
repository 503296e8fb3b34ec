"""Where a model of full Modelica stands: in its file alone, or in a package that is a tree of folders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from grisaille.errors import ModelError
from grisaille.modelica import tree
from grisaille.modelica.builtins import BUILTINS
from grisaille.modelica.evaluation import LAZY_FUNCTIONS
from grisaille.modelica.full.outline import MODELS, main_model
from grisaille.modelica.library import SIMPLE_TYPES
from grisaille.modelica.parsing import OnlyFull, parse
from grisaille.modelica.refusals import Refused
from grisaille.modelica.tables import ResourceFolders
from grisaille.modelica.tokens import COMMENT_OR_TEXT

_WITHIN = re.compile(r"\s*within\s*([\w.]*)\s*;")
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*+'?")
"""One that does not end goes to the end of its line, so that a text is read once whatever it holds."""
_CONNECT = re.compile(r"\bconnect\s*\(")
_ONLY_FULL = re.compile(
    r"\b(?:extends(?!\s+ExternalObject\b)|import|connector|connect|redeclare|replaceable|constrainedby|inner|outer|"
    r"expandable|encapsulated|partial)\b"
)
_PLAIN = ("record", "type", "function")
_IN_EQUATIONS = ("der", "assert", "reinit", "terminate", "connect", "sum", "product", "min", "max")
_WHOLE = "Flattened"
_CLASS = re.compile(r"\s*(?:(?:encapsulated|partial|final)\s+)*(\w+)\s+(\w+|'[^'\n]*')")


_NUMBER = re.compile(r"(StartTime|StopTime|Tolerance|Interval)\s*=\s*([-+]?[\d.]+(?:[eE][-+]?\d+)?)")


def is_flat(text: str) -> bool:
    """Return whether a text is flat already: no inheritance, no connections, no components that are models."""
    try:
        classes = every_class(parse(text))
    except Refused:
        return False
    plain = {*SIMPLE_TYPES, *(name for name, made in classes if _is_plain(made))}
    if any(made.base and made.kind in MODELS for _, made in classes) or _CONNECT.search(_bare(text)):
        return False
    return all(component.type in plain for _, made in classes for component in made.components)


def is_full(text: str, file: Path | None) -> bool:
    """Return whether a text has to be flattened: it holds what only full Modelica has, or needs its package or a
    library.

    A flat text with a mistake in it is no full Modelica.
    """
    if file is not None and file.name == "package.mo" and _has_others(file.resolve().parent):
        return True
    if is_flat(text):
        return _needs_package(text, file)
    in_mo = file is not None and file.suffix == ".mo"
    try:
        classes = every_class(parse(text))
    except OnlyFull:
        return True
    except Refused:
        return in_mo or bool(_ONLY_FULL.search(_bare(text)))
    if any(made.base and made.kind in MODELS for _, made in classes) or _CONNECT.search(_bare(text)):
        return True
    known = dict(classes)
    types = {component.type for _, made in classes for component in made.components}
    unplain = [kind for kind in types if kind in known and not _is_plain(known[kind])]
    return in_mo or bool(unplain) or any("." in kind and kind not in known for kind in types)


def _has_others(package: Path) -> bool:
    """Return whether a package in a folder has classes in files of their own."""
    return any(one.name != "package.mo" for one in package.glob("*.mo")) or any(package.glob("*/package.mo"))


def name_of_file(file: Path) -> str:
    """Return how a file is called: below the folder of its outermost package, where it stands in one."""
    package = package_of(file)
    return file.name if package is None else file.resolve().relative_to(package.parent).as_posix()


def _is_plain(made: tree.Class) -> bool:
    """Return whether components of a class are values."""
    return made.kind in _PLAIN or "ExternalObject" in made.extends


def _needs_package(text: str, file: Path | None) -> bool:
    """Return whether a flat file that stands in a package calls functions, or names classes, which it does not
    bring.
    """
    within = _WITHIN.match(COMMENT_OR_TEXT.sub(" ", text))
    if within is None or not within[1] or package_of(file) is None:
        return False
    classes = every_class(parse(text))
    known = {*BUILTINS, *LAZY_FUNCTIONS, *(name for name, _ in classes), *_IN_EQUATIONS}
    nodes = [n for _, made in classes for n in [*made.equations, *made.initial_equations]]
    nodes += [n for _, made in classes for part in [*made.algorithms, *made.initial_algorithms] for n in part]
    nodes += [c.value for _, made in classes for c in made.components if c.value is not None]
    return any(isinstance(n, tree.Calling) and n.name not in known for n in tree.walk(*nodes))


def every_class(classes: Iterable[tree.Class], prefix: str = "") -> list[tuple[str, tree.Class]]:
    """Return classes of all depths, each under its own name and, inside others, under its full one."""
    found = []
    for made in classes:
        full = f"{prefix}.{made.name}" if prefix else made.name
        found += [(made.name, made)] if full == made.name else [(made.name, made), (full, made)]
        found += every_class(made.classes.values(), full)
    return found


def _bare(text: str) -> str:
    """Return a text without comments, texts and quoted names."""
    return _QUOTED.sub("''", COMMENT_OR_TEXT.sub(" ", text))


def whole(
    text: str, label: str, file: Path | None, name: str | None, roots: Sequence[Path]
) -> tuple[str, str, str, list[Path]]:
    """(text, label, name of the model, folders of libraries) as the flattener takes them.

    A file inside a package that is a tree of folders (``package.mo`` beside it) brings the whole package.
    """
    within, kind, first = _head(text, label)
    full = f"{within}.{first}" if within else first
    if name is None:
        chosen, models = main_model(text, file.stem if file is not None else "")
        if not chosen and models:
            raise ModelError(f"{label} holds the models {', '.join(models)}: say which, read_modelica(…, name=…).")
        if not chosen:
            raise ModelError(f"{label} holds the {kind} '{full}': say which model, name='{full}.…'.")
        name = f"{within}.{chosen}" if within else chosen
    elif within and not name.startswith(f"{within}."):
        name = f"{within}.{name}"
    if not re.fullmatch(r"[\w.']+", name):
        raise ModelError(f"name {name!r} is no name of a class.")
    folder = package_of(file)
    if folder is None:
        if within:
            raise ModelError(
                f"{label} stands within '{within}', whose package.mo is not beside it: give the file in its folder."
            )
        return text, label, name, list(roots)
    inside = any(root.resolve() in (folder.resolve(), folder.resolve().parent) for root in roots)
    own = list(roots) if inside else [*roots, folder]
    return f"model {_WHOLE}\n  extends {name};\nend {_WHOLE};\n", label, _WHOLE, own


def meant_name(wanted: tuple[str, str, str, list[Path]]) -> str:
    """Return the name of the model that ``whole`` means, in full."""
    found = re.search(r"extends ([^;]+);", wanted[0]) if wanted[2] == _WHOLE else None
    return found[1] if found else wanted[2]


def name_in_file(text: str, name: str | None) -> str | None:
    """Return the name of a model without the package that its file stands within."""
    within = _WITHIN.match(COMMENT_OR_TEXT.sub(" ", text)) if name is not None else None
    return name.removeprefix(f"{within[1]}.") if within and within[1] and name is not None else name


def full_name(text: str, name: str) -> str:
    """Return the name of a model with the package that its file stands within."""
    within = _WITHIN.match(COMMENT_OR_TEXT.sub(" ", text))
    package = f"{within[1]}." if within and within[1] else ""
    return name if name.startswith(package) else f"{package}{name}"


def places_of(file: Path | None, libraries: Sequence[Path]) -> ResourceFolders:
    """Return folders whose files a text may name: its own, that of the package around it, and those of libraries."""
    package = package_of(file)
    own = file.resolve().parent if file is not None else None
    return ResourceFolders(own, (*([package] if package is not None else []), *libraries))


def libraries_of_environment() -> list[Path]:
    """Return folders of ``MODELICAPATH``; those that are not there do not count."""
    folders = [Path(f) for f in os.environ.get("MODELICAPATH", "").split(os.pathsep) if f]
    return [folder for folder in folders if folder.is_dir()]


def experiment_of(text: str, name: str | None) -> dict[str, float]:
    """Return what the annotation of a model says of a run, ``{"StopTime": 10.0}``: the flattener leaves it out."""
    plain = COMMENT_OR_TEXT.sub("", text)
    last = re.escape(name.rpartition(".")[2]) if name is not None else r"(?:\w+|'[^'\n]*')"
    own = re.search(rf"\b(?:{'|'.join(MODELS)})\s+({last})(?!\w).*?\bend\s+\1\s*;", plain, re.DOTALL)
    said = re.search(r"\bexperiment\s*\(([^()]*)\)", own[0]) if own else None
    return {key: float(value) for key, value in _NUMBER.findall(said[1])} if said else {}


def _head(text: str, label: str) -> tuple[str, str, str]:
    """(the package a file stands within, kind and name of its first class)."""
    plain = COMMENT_OR_TEXT.sub(lambda m: " " * (m.end() - m.start()), text)
    within = _WITHIN.match(plain)
    found = _CLASS.match(plain, within.end() if within else 0)
    if found is None:
        raise ModelError(f"{label} holds no class of Modelica.")
    return (within[1] if within else "").strip("."), found[1], found[2]


def package_of(file: Path | None) -> Path | None:
    """Return the outermost folder of the package in whose tree a file stands."""
    folder = file.resolve().parent if file is not None else None
    outermost = None
    while folder is not None and (folder / "package.mo").is_file() and folder != folder.parent:
        outermost, folder = folder, folder.parent
    return outermost
