"""``Model``: the base of every model class.

A class body (or an ``equations`` method) is read once per class or instance into plain content (``content.py``); the
instance then is that content: immutable, hashed, compared and pickled by it, without need for its class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from grisaille.cache import Cache
from grisaille.errors import ModelError
from grisaille.model import packing
from grisaille.model.connectors import Connection, ConnectorType
from grisaille.model.content import Content
from grisaille.model.expression import Equation, Expression, Name, Reference
from grisaille.model.flattening.elaboration import elaborate
from grisaille.model.flattening.listing import check_written, list_equations, list_initial
from grisaille.model.flattening.scope import Scope
from grisaille.model.marking import mark_disturbance, mark_inputs, mark_outputs
from grisaille.model.names import Labelled, NamedTable
from grisaille.model.namespace import MemberNamespace, is_part_list, is_symbol, split_members
from grisaille.model.notation import printing
from grisaille.model.overriding import override
from grisaille.model.parameter_information import ParameterInformation, describe_parameters, describe_starts
from grisaille.model.recording import RecordingNamespace, active_recorder
from grisaille.model.rewriting import Rewriter
from grisaille.model.views import look_up, members
from grisaille.model.whens import When

if TYPE_CHECKING:
    from grisaille.laws import Law
    from grisaille.model.declarations import Input
    from grisaille.model.expression import FormulaLike
    from grisaille.model.given import Change
    from grisaille.model.spectra import Spectrum


class ListedEquations(tuple[Any, ...]):
    """An ``equations`` list of a class body; callable, so that ``super().equations()`` works in subclasses."""

    def __call__(self) -> ListedEquations:
        return self


def _is_member(value: object) -> bool:
    return isinstance(value, Expression | Labelled) or is_symbol(value) or is_part_list(value)


def _check_body(name: str, bases: tuple[type, ...], rest: dict[str, Any]) -> None:
    if bases and "__init__" in rest and bases != (Labelled,):
        raise ModelError(
            f"{name}: a model class has no __init__ of its own; values are given by name as in {name}(k=1.0). Write a "
            "function that returns a model for other arguments."
        )
    for key, value in rest.items():
        if isinstance(value, ConnectorType | ModelType) and value.__name__ != key:
            raise ModelError(f"{name}.{key} is the class {value.__name__}, not an instance: write {value.__name__}().")


def _check_hiding(cls: ModelType, members: dict[str, Any], rest: dict[str, Any]) -> None:
    """A plain value and a member of one name: whoever was written first would go on using the other one."""
    inherited = {name for layer in cls._layers()[:-1] for name in layer}
    for name in rest:
        if name in inherited:
            raise ModelError(
                f"{cls.__name__}.{name} = {rest[name]!r} hides a member of a parent class, whose equations would not "
                f"see it: write {name} = gr.Parameter(…) (a declaration), or give {cls.__name__}({name}=…)."
            )
    for name in members:
        for parent in cls.__mro__[1:]:
            if name in vars(parent):
                raise ModelError(
                    f"{cls.__name__}.{name} is declared, but {parent.__name__} holds it as the plain value "
                    f"{vars(parent)[name]!r}, which its formulas go on using: declare it in {parent.__name__}."
                )


def _with_equations(name: str, rest: dict[str, Any], written: list[Any]) -> dict[str, Any]:
    own = rest.get("equations", ())
    first = rest.get("initial")
    if first is not None:
        rest = {**rest, "initial": list_initial(name, first)}
        written = [item for item in written if not any(item is listed for listed in rest["initial"])]
    if "equations" not in rest or isinstance(own, FunctionType):
        check_written(name, written, _kept(rest.values()))
        return rest
    listed = ListedEquations(list_equations(name, own))
    check_written(name, written, listed)
    return {**rest, "equations": listed}


def _kept(values: Iterable[Any]) -> list[Any]:
    """Return equations that a class body keeps in attributes, for an ``equations`` method to yield."""
    found, stack = [], list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, Equation | Connection | When):
            found.append(value)
        elif isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, np.ndarray) and value.dtype == object:
            stack.extend(value.flat)
    return found


def _visiting(cls: type, method: Callable[..., object]) -> Callable[..., object]:
    """Return ``method``, noting that it was called: this is how a forgotten ``super()`` is found."""

    @functools.wraps(method)
    def equations(self: Any) -> Any:
        recorder = active_recorder()
        if recorder is not None:
            recorder.visited.add(cls)
        return method(self)

    return equations


class ModelType(type):
    """Reads class bodies."""

    _members: dict[str, Any]

    @classmethod
    def __prepare__(mcs, name: str, bases: tuple[type, ...], **options: Any) -> MemberNamespace:  # type: ignore[override]
        return MemberNamespace(name)

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        members, rest = split_members(name, namespace, _is_member)
        _check_body(name, bases, rest)
        written = namespace.written if isinstance(namespace, RecordingNamespace) else []
        rest = _with_equations(name, rest, written)
        cls = super().__new__(mcs, name, bases, rest)
        cls._members = members
        if isinstance(rest.get("equations"), FunctionType):
            type.__setattr__(cls, "equations", _visiting(cls, rest["equations"]))
        if bases:
            _check_hiding(cls, members, rest)
            Scope(name, cls._layers())  # says now what is declared twice
        return cls

    def _layers(cls) -> list[dict[str, Any]]:
        return [c.__dict__["_members"] for c in reversed(cls.__mro__) if isinstance(c, ModelType)]

    def __getattr__(cls, name: str) -> Any:
        for layer in reversed(cls._layers()):
            if name in layer:
                return layer[name]
        raise AttributeError(f"The class {cls.__name__} has no attribute '{name}'.")

    def __setattr__(cls, name: str, value: Change) -> None:
        if not name.startswith("_"):
            raise ModelError(
                f"Model classes do not change after they are written: give {name} when an instance is made, "
                f"{cls.__name__}({name}=…), or write a subclass."
            )
        super().__setattr__(name, value)

    def __dir__(cls) -> list[str]:
        return [*super().__dir__(), *(name for layer in cls._layers() for name in layer)]


class Model(Labelled, metaclass=ModelType):
    """Base of model classes; see the package's documentation for the language.

    A class body declares members and lists ``equations``, and under ``initial`` those that hold at the first instant
    only; an instance is a model with values, which never changes.

    Parameters
    ----------
    start : start values of variables, by dotted name
    changes : members by name, as in ``Pendulum(k=6.25)``: a number or formula for a parameter or input, a declaration
        of the same kind for any member, an instance for a sub-model
    arguments : none; changes are given by name

    Examples
    --------
    >>> import grisaille as gr
    >>> class Tank(gr.Model):
    ...     k = gr.Parameter(0.3, "1/s")
    ...     q = gr.Parameter(1.5)
    ...     h = gr.Variable(0.5)
    ...     y = gr.Output(h)
    ...     equations = [gr.der(h) == q - k * h]
    >>> tank = Tank(k=0.5)
    >>> tank.parameters["k"].value, tank.replace({"k": 0.6}).parameters["k"].value
    (0.5, 0.6)
    """

    _content: Content
    _cache: Cache[Any]

    def __init__(self, /, *arguments: Change, start: Mapping[str, FormulaLike] | None = None, **changes: Any) -> None:
        if arguments:
            raise ModelError(
                f"{type(self).__name__} takes changes by name, such as {type(self).__name__}(k=1.0), not "
                f"{arguments[0]!r}."
            )
        _set(self, "_label", "")
        _set(self, "_cache", Cache(None))
        content = _class_content(self)
        _set(self, "_content", self._changed(content, changes, start) if changes or start is not None else content)

    if TYPE_CHECKING:
        equations: Any
        """A list in the class body, or a method that yields."""
    else:

        def equations(self) -> Iterable[Equation | When | Connection]:
            """Return the equations and connections; overridden by a list in the class body or by a method."""
            return ()

    def noise_covariance(self) -> Mapping[tuple[str, ...], Any] | Literal["full"]:
        """Return covariances of the measurement noise of outputs at one instant; override it where sensors share noise.

        ``{("y1", "y2"): 0.01}`` gives numbers or formulas, in which parameters may be unknown. ``"full"`` says that
        the covariance of all outputs is unknown, ``{("y1", "y2", "y3"): "full"}`` that of some: then fits estimate
        ``correlation(y1, y2)`` of each pair, beside ``noise(y)`` where the noise is open, without being asked.
        """
        return {}

    @property
    def parameters(self) -> Mapping[str, ParameterInformation]:
        """Return every parameter by its full name: value, unit, bounds, formula; read-only."""
        described = self._cached("parameters", lambda: describe_parameters(self._content))
        return NamedTable(f"{self._content.name}.parameters", described)

    @property
    def start(self) -> Mapping[str, float | str]:
        """Return declared start values by name; formulas as text; read-only."""
        described = self._cached("start", lambda: describe_starts(self._content))
        return NamedTable(f"{self._content.name}.start", described)

    @property
    def fingerprint(self) -> str:
        """Return SHA-256 of the content: names, values and equations."""
        return str(self._cached("fingerprint", lambda: packing.fingerprint(self._content)))

    @property
    def structure_key(self) -> str:
        """Return SHA-256 of the content without numbers that only set values: equal for models that share code."""
        return str(self._cached("structure_key", lambda: packing.structure_key(self._content)))

    def replace(
        self,
        changes: Mapping[str, Change] | None = None,
        *,
        start: Mapping[str, FormulaLike] | None = None,
        **named: Change,
    ) -> Model:
        """Return a copy with some members changed: ``model.replace({"r.R": 2e3})``.

        changes : by dotted name, as when an instance is made
        start : start values of variables, by dotted name
        named : none; names may contain dots, so changes are given as a dict
        """
        if named:
            shown = ", ".join(f"{name!r}: {value!r}" for name, value in named.items())
            raise ModelError(f"replace takes a dict, because names may contain dots: replace({{{shown}}}).")
        return restore_model(self._changed(self._content, {} if changes is None else changes, start), type(self))

    def with_inputs(self, inputs: Mapping[str, float | Input | None]) -> Model:
        """Return a copy in which variables are known signals; the equations that gave them are left out.

        inputs : by name of a variable: None, a number (the default where no signal is given) or a ``gr.Input``
        """
        return restore_model(mark_inputs(self._content, inputs))

    def with_disturbance(
        self, name: str, spectrum: Spectrum, *, scale: FormulaLike = 1.0, label: str | None = None
    ) -> Model:
        """Return a copy with a random signal added to a variable, in the equation that gives it.

        For a variable that an equation differentiates, ``der(x) == …``, it is added to the derivative there; the
        description of the disturbance shows the equation.

        name : of the variable; ``"der(x)"`` for the derivative of x
        spectrum : of ``gr.spectra``
        scale : a factor, a number from zero up or a formula of parameters
        label : the name of the disturbance; ``"<name>.disturbance"`` where none is given
        """
        return self._closed(mark_disturbance(self._content, name, spectrum, scale, label))

    def with_outputs(
        self,
        outputs: Mapping[str, Expression | str],
        *,
        noise: FormulaLike | Mapping[str, FormulaLike] | None = None,
        distribution: Law | Mapping[str, Law] | None = None,
    ) -> Model:
        """Return a copy with more outputs, or with other noise of those that there are, ``{"y": "y"}``.

        outputs : by label the name of a member, ``"der(x)"`` of a variable, or a formula
        noise : standard deviation of the measurement noise, for all of them or by label; None when unknown
        distribution : in place of noise, a law of measurements such as ``gr.laws.Poisson()``, for all or by label
        """
        return self._closed(mark_outputs(self._content, outputs, noise, distribution))

    def _closed(self, content: Content) -> Model:
        """Return a model in whose formulas members of this one are names."""
        own = Rewriter(lambda node: Name(node.path) if isinstance(node, Reference) and node.root is self else None)
        return restore_model(content.mapped(own))

    def _changed(
        self, content: Content, changes: Mapping[str, Change], start: Mapping[str, FormulaLike] | None
    ) -> Content:
        for name in changes if hasattr(changes, "items") else ():
            if isinstance(name, str) and not content.kind(name) and name in vars(type(self)):
                raise ModelError(
                    f"{content.name}.{name} is a plain value of the class ({vars(type(self))[name]!r}) that its "
                    f"formulas have already used; declare it as gr.Parameter to change it."
                )
        changed = override(content, changes, start if start is not None else {})
        values = [value for _, value in (*changes.items(), *(start if start is not None else {}).items())]
        if all(isinstance(value, int | float) for value in values):
            return changed
        scope = Scope(type(self).__name__, type(self)._layers(), self)  # formulas may name members of this very model
        return changed.mapped(scope.resolve)

    def _cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        return self._cache.get(key, compute)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return look_up(self, self._content, "", name)

    def __setattr__(self, name: str, value: Change) -> NoReturn:
        raise ModelError(f"Models do not change: use model.replace({{'{name}': …}}) to get a changed copy.")

    def __delattr__(self, name: str) -> NoReturn:
        self.__setattr__(name, None)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *members(self._content, "")]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and (self is other or self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Model:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (packing.pack(self._content),)

    def __repr__(self) -> str:
        return printing.summarize(self._content)

    def __str__(self) -> str:
        return printing.describe(self._content)

    def _repr_html_(self) -> str:
        from grisaille.model.notation.typesetting import typeset  # only notebooks and reports need it

        return typeset(self._content)


def restore_model(content: Content, cls: type[Model] = Model) -> Model:
    """Return an instance with the given content."""
    model: Model = object.__new__(cls)
    for slot, value in (("_label", ""), ("_cache", Cache(None)), ("_content", content)):
        _set(model, slot, value)
    return model


def _unpacked(text: str) -> Model:
    return restore_model(packing.unpack(text))


_set = object.__setattr__


def _class_content(instance: Model) -> Content:
    cls = type(instance)
    if "_default" in cls.__dict__:
        return cls.__dict__["_default"]  # type: ignore[no-any-return]
    steps = elaborate(instance, cls._layers(), lambda part: part._content)
    _set(instance, "_content", next(steps))
    content = next(steps)
    listed: Any = cls.equations
    if isinstance(listed, ListedEquations) and cls.noise_covariance is Model.noise_covariance:
        type.__setattr__(cls, "_default", content)  # a list cannot change; a method is asked for every instance
    return content


def content_key(model: Model) -> str:
    """Return SHA-256 of all that a model consists of, remarks included: equal for models that cannot be told apart."""
    return str(model._cached("content_key", lambda: packing.digest(model._content)))
