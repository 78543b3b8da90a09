"""A section takes values of the types of its settings, and refuses all others with their paths."""

from typing import Annotated, Any, Literal

import pytest

from manyheads.config.schema.base import Field, Limits, Section, SettingsError


class _Part(Section):
    """A part."""

    size: Annotated[int, Limits(gt=0, le=10)] = Field(3, description="size")


class _Whole(Section):
    """A whole."""

    part: _Part = _Part()
    parts: tuple[_Part, ...] = ()
    name: Annotated[str, Limits(max_length=3, pattern="^[a-z]*$")] = Field(description="name")
    kind: Literal["a", "b"] = "a"
    share: Annotated[float, Limits(ge=0, lt=1)] | None = None
    files: str | tuple[str, str] = "x"
    on: bool = False

    def check_on(self) -> None:
        """Refuse b where it is on."""
        if self.on and self.kind == "b":
            raise ValueError("b is on")


def refused(**values: Any) -> list[tuple[Any, ...]]:
    with pytest.raises(SettingsError) as caught:
        _Whole(**values)
    return [(mistake.path, mistake.reason) for mistake in caught.value.wrong]


def test_values_get_the_types_of_their_settings() -> None:
    whole = _Whole(name="n", part={"size": 1}, parts=[{"size": 2}], share=0, files=["x", "y"])
    assert (whole.part, whole.parts, whole.files) == (_Part(size=1), (_Part(size=2),), ("x", "y"))
    assert type(whole.share) is float
    assert _Whole(**whole.model_dump()) == whole
    assert hash(_Whole(**whole.model_dump())) == hash(whole)
    assert whole.model_fields_set == {"name", "part", "parts", "share", "files"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"part": {"size": 11}}, "wrong value"),
        ({"part": {"size": True}}, "wrong value"),
        ({"part": 3}, "wrong value"),
        ({"name": "abcd"}, "wrong value"),
        ({"name": "a\n"}, "wrong value"),
        ({"name": "\ud800"}, "wrong value"),
        ({"kind": "c"}, "wrong value"),
        ({"kind": ["a"]}, "wrong value"),
        ({"share": float("nan")}, "not finite"),
        ({"share": 10**400}, "wrong value"),
        ({"share": False}, "wrong value"),
        ({"files": ["a"]}, "wrong value"),
        ({"on": 1}, "wrong value"),
        ({"nmae": "n"}, "unknown"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(values: dict[str, Any], reason: str) -> None:
    (name,) = values
    inside = ("size",) if isinstance(values[name], dict) else ()
    assert refused(**{"name": "n"} | values) == [((name, *inside), reason)]


def test_all_wrong_values_are_named_and_rules_are_checked_without_them() -> None:
    assert refused(parts=[{}, {"sise": 1}, 5], on=True, kind="b") == [
        (("parts", 1, "sise"), "unknown"),
        (("parts", 2), "wrong value"),
        (("name",), "missing"),
    ]
    assert refused(name="n", on=True, kind="b") == [((), "rule")]


def test_a_section_is_frozen_and_its_copy_is_not_checked() -> None:
    whole = _Whole(name="n")
    with pytest.raises(AttributeError, match="_Whole is frozen"):
        whole.name = "m"
    assert (whole.model_copy(update={"name": "longer"}).name, whole.name) == ("longer", "n")


def test_the_json_schema_names_types_limits_defaults_and_what_is_needed() -> None:
    schema = _Whole.model_json_schema()
    assert schema["required"] == ["name"]
    assert schema["$defs"]["_Part"]["properties"]["size"] == {
        "type": "integer", "exclusiveMinimum": 0, "maximum": 10, "default": 3, "description": "size"
    }  # fmt: skip
    assert schema["properties"]["share"]["anyOf"] == [
        {"type": "number", "minimum": 0, "exclusiveMaximum": 1}, {"type": "null"}
    ]  # fmt: skip
    assert schema["properties"]["files"]["anyOf"][1]["prefixItems"] == [{"type": "string"}] * 2
