"""Every mistake in a plan is named with its key and the nearest name."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.improve.build.parts import plan_of

from manyheads.errors import ConfigError

TRAIN = 'kind="train",text="mixed",valid="parallel"'


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps.mixed.txt=3", r"unknown key steps\.mixed\.txt; did you mean text\?"),
        ("steps.back.kind=translat", r'steps\.back\.kind = "translat" is unknown; did you mean translate\?'),
        ('steps.mixed.text=[{text="bak"}]', r'steps\.mixed: text "bak" is unknown; did you mean back\?'),
        ('steps.mixed.text=[{text="back",tga="<b>"}]', r"unknown key steps\.mixed\.text\.tga; did you mean tag\?"),
        ('steps.mixed.text=[{text="back",tag="b"}]', r'steps\.mixed\.text\.tag = "b" is not text such as <bt>'),
        ('steps.mixed.text=[{text="backward"}]', r'text "backward" is of kind train, which writes no text'),
        ('steps.back={kind="translate",text="english"}', r"steps\.back\.model is missing: model that translates"),
        ('steps.back.model="backwrd"', r'model "backwrd" is no step and no run directory; did you mean backward\?'),
        ("steps.back.beam=0", r"steps\.back\.beam = 0 is not a whole number above 0"),
        ("steps.backward.model.d_modle=8", r"steps\.backward: unknown key model\.d_modle; did you mean model"),
        ('steps.out={kind="export",model="backward",force=true}', r"steps\.out\.force is gone\. Leave it out"),
        ("rot=3", r"unknown key rot; did you mean root\?"),
        (f"steps.t={{{TRAIN}}}", r"has the tag <bt>, which the tokenizer would divide\. Add symbols"),
        ('steps.english={kind="mix",text=[{text="back"}]}', r"english is also the name of a text"),
        ('steps.mixed.text=[{text="mixed"}]', r"depend on each other in a circle: mixed -> mixed"),
        ('steps.records={kind="mix",text=[{text="back"}]}', r"records is the folder of the records"),
        ("steps.bakc.beam=2", r"the plan has no steps\.bakc; did you mean back\?"),
        ("text.englsh.en=x", r"the plan has no text\.englsh; did you mean english\?"),
        ("text.english.en=5", r"text\.english\.en = 5 is wrong: texts: a table each"),
        ("text.english=5", r"text\.english = 5 is wrong: texts: a table each"),
        ("steps.back.model=5", r"steps\.back\.model = 5 is"),
        ("steps.backward.text=5", r"steps\.backward\.text = 5 is"),
        ("steps.mixed.text=[]", r"steps\.mixed\.text = \[\] is not a list of tables"),
        ("steps.mixed.text=[3]", r"steps\.mixed\.text = \[3\] is not a list of tables"),
        ("steps.backward.config=tatoeba-ko-e", r"steps\.backward: config: no .* tatoeba-ko-e; did you mean"),
        ("steps", r"--set steps is not of the form"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_plan_is_named_with_its_key_and_the_nearest_name(
    override: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        plan_of(tmp_path, override)
    assert len(caught.value.mistakes) == 1
