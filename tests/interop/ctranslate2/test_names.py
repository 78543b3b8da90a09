"""The table of names has each weight of a model once, and each variable of CTranslate2 once."""

from __future__ import annotations

import pytest
from tests.interop.parts import variant_parts
from tests.model.samples import VARIANTS

from manyheads.interop.ctranslate2.names import entries


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_table_has_every_weight_and_every_row_once(variant: str) -> None:
    config, _, model = variant_parts(variant)
    found, state = list(entries(config.model)), model.state_dict()
    assert sorted(entry.name for entry in found) == sorted(state)
    variables = [variable for entry in found for variable in entry.variables]
    assert len({*variables}) == len(variables)
    for entry in found:
        sizes = entry.split_sizes(len(state[entry.name]))
        assert len(sizes) == len(entry.variables)
        assert sum(sizes) == len(state[entry.name])
        assert min(sizes) > 0
