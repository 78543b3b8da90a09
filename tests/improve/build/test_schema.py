"""Every kind of step has a name, a product, and settings that are described."""

from __future__ import annotations

from manyheads.improve.build.schema import KINDS


def test_every_kind_of_step_is_described_and_states_its_product() -> None:
    for name, kind in KINDS.items():
        assert kind.product in ("text", "model", "files")
        properties = kind.model_json_schema()["properties"]
        assert properties["kind"]["enum"] == [name]
        assert all("description" in setting for key, setting in properties.items() if key != "kind")
