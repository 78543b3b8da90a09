"""Sections of settings: each setting has a type with limits, a default and a meaning; values are checked strictly.

This is written by hand, because importing pydantic would take as long as all else that a translated line needs.
Annotations of sections are evaluated at once: the modules of this package do not import `annotations`.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from inspect import cleandoc
from itertools import repeat
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, Union, get_args, get_origin

_MISSING: Any = object()  # default of a setting that must be given
_KEYWORDS = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "pattern": "pattern",
    "examples": "examples",
    "enum": "enum",
}
_TYPES = {int: "integer", float: "number", str: "string", bool: "boolean", NoneType: "null"}


class Wrong(NamedTuple):
    """A value that a section refuses.

    Attributes:
        path: keys and indices from the section to the value; empty for a rule between settings.
        reason: "unknown", "missing", "wrong value", "not finite" or "rule".
        error: what the rule raised.
    """

    path: tuple[Any, ...]
    reason: str
    error: ValueError | None = None


class SettingsError(ValueError):
    """Values that a section refuses.

    Attributes:
        wrong: all refused values; or the first broken rule, if each value alone is valid.
    """

    def __init__(self, wrong: list[Wrong]) -> None:
        lines = (str(fault.error or f"{'.'.join(map(str, fault.path))}: {fault.reason}") for fault in wrong)
        super().__init__("; ".join(lines))
        self.wrong = wrong


class Limits:
    """Limits of a number, a text, a tuple or a dictionary in an annotation.

    Attributes:
        keywords: the limits as keywords of JSON Schema.
    """

    def __init__(self, **limits: Any) -> None:
        """Store the limits: gt, ge, lt and le of a number; pattern, examples and enum of a text; else lengths."""
        self.keywords = {_KEYWORDS[name]: value for name, value in limits.items()}

    def hold(self, value: Any) -> bool:
        """Return whether a value is within the limits."""
        limits = self.keywords
        if isinstance(value, int | float):
            return bool(
                limits.get("minimum", -math.inf) <= value <= limits.get("maximum", math.inf)
                and limits.get("exclusiveMinimum", -math.inf) < value < limits.get("exclusiveMaximum", math.inf)
            )
        if not limits.get("minLength", 0) <= len(value) <= limits.get("maxLength", math.inf):
            return False
        return not isinstance(value, str) or (
            re.fullmatch(limits.get("pattern", "(?s:.*)"), value) is not None
            and value in limits.get("enum", (value,))
        )


class Setting:
    """Definition of a setting; `annotation` is its type, with limits.

    Attributes:
        internal: whether only the program sets it, as from a model of another program; no file or page names it.
    """

    annotation: Any

    def __init__(self, default: Any, description: str, internal: bool = False) -> None:
        self.default = default
        self.description = description
        self.internal = internal

    def json_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the setting."""
        parts = _json_schema(self.annotation)
        if self.default is not _MISSING and not isinstance(self.default, Section):
            parts["default"] = _dump(self.default)
        return {**parts, "description": self.description} if self.description else parts


def Field(default: Any = _MISSING, *, description: str, internal: bool = False) -> Any:
    """Define a setting of a section; one without a default must be given."""
    return Setting(default, description, internal)


class Section:
    """A frozen section that refuses unknown keys and implicit conversions, except of lists to tuples.

    Methods named `check_...` are rules between settings: they raise ValueError, and run when each value alone is
    valid.

    Attributes:
        model_fields: definitions of the settings, by name.
        model_fields_set: names of the settings that were given.

    Raises:
        SettingsError: values are refused.
    """

    __slots__ = ("__dict__", "model_fields_set")
    model_fields: ClassVar[dict[str, Setting]] = {}
    model_fields_set: frozenset[str]

    def __init_subclass__(cls) -> None:
        cls.model_fields = dict(cls.model_fields)
        for name, annotation in cls.__annotations__.items():
            origin: Any = get_origin(annotation)
            if origin is ClassVar:
                continue
            default = vars(cls).get(name, _MISSING)
            field = default if isinstance(default, Setting) else Setting(default, "")
            field.annotation = annotation
            cls.model_fields[name] = field

    def __init__(self, **values: Any) -> None:
        wrong = []
        self.model_fields_set = frozenset(values)
        for name, field in self.model_fields.items():
            try:
                vars(self)[name] = _read(field.annotation, values[name]) if name in values else field.default
            except SettingsError as error:
                wrong += [fault._replace(path=(name, *fault.path)) for fault in error.wrong]
            if name not in values and field.default is _MISSING:
                wrong.append(Wrong((name,), "missing"))
        wrong += [Wrong((name,), "unknown") for name in values if name not in self.model_fields]
        if wrong:
            raise SettingsError(wrong)
        try:
            for name, rule in vars(type(self)).items():
                if name.startswith("check_"):
                    rule(self)
        except ValueError as error:
            raise SettingsError([Wrong((), "rule", error)]) from error

    @classmethod
    def model_validate(cls, values: Mapping[str, Any]) -> Self:
        """Return the section of these values."""
        return cls(**values)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """Return the JSON schema of the section without internal settings; sections inside are under "$defs"."""
        inside = {
            part.__name__: part for field in cls.model_fields.values() for part in _sections(field.annotation)
        }
        defined: dict[str, Any] = {}
        for name, part in inside.items():
            schema = part.model_json_schema()
            defined |= {**schema.pop("$defs", {}), name: schema}
        needed = [name for name, field in cls.model_fields.items() if field.default is _MISSING]
        return {
            **({"$defs": defined} if defined else {}),
            "additionalProperties": False,
            "description": cleandoc(cls.__doc__ or ""),
            "properties": {
                name: field.json_schema() for name, field in cls.model_fields.items() if not field.internal
            },
            **({"required": needed} if needed else {}),
            "type": "object",
        }

    def model_dump(self) -> dict[str, Any]:
        """Return all settings as JSON values: sections as dictionaries, tuples as lists."""
        return {name: _dump(value) for name, value in vars(self).items()}

    def flat(self) -> dict[str, Any]:
        """Return `model_dump` with joined names: {"data": {"root": "."}} -> {"data.root": "."}."""
        return _flat(self.model_dump())

    def model_copy(self, *, update: Mapping[str, Any]) -> Self:
        """Return a copy with some settings changed, which are not checked."""
        copied = object.__new__(type(self))
        copied.model_fields_set = self.model_fields_set | update.keys()
        vars(copied).update(vars(self), **update)
        return copied

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(vars(self).items())

    def __setattr__(self, name: str, value: Any) -> None:
        if name != "model_fields_set":
            raise AttributeError(f"{type(self).__name__} is frozen: use model_copy to change {name}")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self)})"


def _read(kind: Any, value: Any) -> Any:
    """Return a value as an annotation has it: a list as a tuple, a table as a section, 1 as 1.0 for a float.

    Raises:
        SettingsError: the value is not of this type, or beyond its limits.
    """
    if type(value) is kind and kind not in (float, str):
        return value
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        read = _read(parts[0], value)
        if parts[1].hold(value):
            return read
    elif origin in (Union, UnionType):
        if value is None and NoneType in parts:
            return None
        choices = [part for part in parts if part is not NoneType]
        if len(choices) == 1:
            return _read(choices[0], value)
        for choice in choices:
            try:
                return _read(choice, value)
            except SettingsError:
                continue
    elif origin is tuple:
        if isinstance(value, list | tuple) and (parts[-1] is ... or len(value) == len(parts)):
            kinds = repeat(parts[0]) if parts[-1] is ... else parts
            return tuple(_read_items(kinds, dict(enumerate(value))))
    elif origin is Literal:
        if any(type(value) is type(part) and value == part for part in parts):
            return value
    elif kind is Any:
        return value
    elif origin is dict:
        if isinstance(value, Mapping):
            return dict(zip(value, _read_items(repeat(parts[1]), value), strict=True))
    elif issubclass(kind, Section):
        if isinstance(value, Mapping):
            return kind(**value)
    elif kind is float and type(value) in (int, float):
        with suppress(OverflowError):  # of a whole number beyond all floats
            if not math.isfinite(value):
                raise SettingsError([Wrong((), "not finite")])
            return float(value)
    elif kind is str and isinstance(value, str) and not _has_surrogates(value):
        return value
    raise SettingsError([Wrong((), "wrong value")])


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and re.search("[\ud800-\udfff]", text) is not None


def _read_items(kinds: Iterable[Any], values: Mapping[Any, Any]) -> list[Any]:
    """Return the values of a list or a dictionary, each as its annotation has it."""
    wrong, items = [], []
    for kind, (key, value) in zip(kinds, values.items(), strict=False):
        try:
            items.append(_read(kind, value))
        except SettingsError as error:
            wrong += [fault._replace(path=(key, *fault.path)) for fault in error.wrong]
    if wrong:
        raise SettingsError(wrong)
    return items


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in tree.items():
        result |= _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return result


def _dump(value: Any) -> Any:
    if isinstance(value, Section):
        return value.model_dump()
    if isinstance(value, dict):  # settings of another file, as of a cleaning in a plan
        return {name: _dump(part) for name, part in value.items()}
    return [*map(_dump, value)] if isinstance(value, tuple) else value


def _sections(kind: Any) -> Iterator[type[Section]]:
    if isinstance(kind, type) and not get_args(kind) and issubclass(kind, Section):
        yield kind
    for part in get_args(kind):
        yield from _sections(part)


def _json_schema(kind: Any) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        limits = {key: list(value) if key == "enum" else value for key, value in parts[1].keywords.items()}
        return _json_schema(parts[0]) | limits
    if origin in (Union, UnionType):
        return {"anyOf": [_json_schema(part) for part in parts]}
    if origin is Literal:
        return {"enum": list(parts), "type": "string"}
    if origin is tuple and parts[-1] is ...:
        return {"items": _json_schema(parts[0]), "type": "array"}
    if origin is tuple:
        size = len(parts)
        return {"maxItems": size, "minItems": size, "prefixItems": [*map(_json_schema, parts)], "type": "array"}
    if origin is dict:
        return {"type": "object"}
    return {"$ref": f"#/$defs/{kind.__name__}"} if issubclass(kind, Section) else {"type": _TYPES[kind]}
