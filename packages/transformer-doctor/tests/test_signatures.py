"""The roles of arguments are inferred from their names."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from transformer_doctor.signatures import Parameter, assign_roles, call_with, decoder_roles, parameters_of, role_of

BOTH = ("source", "target")


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("src", "source"), ("encoder_input", "source"), ("inputIds", "source"), ("x", "source"),
        ("trg", "target"), ("decoder_input_ids", "target"), ("outputs", "target"), ("y", "target"),
        ("src_mask", "source mask"), ("attention_mask", "source mask"), ("srcKeyPaddingMask", "source mask"),
        ("look_ahead_mask", "target mask"), ("trg_pad_mask", "target mask"), ("nopeak_mask", "target mask"),
        ("memory_key_padding_mask", "cross mask"), ("src_trg_mask", "cross mask"), ("dec_enc_mask", "cross mask"),
        ("src_lengths", "source lengths"), ("tgt_len", "target lengths"), ("max_len", "unknown"),
        ("enc_outputs", "memory"), ("memory", "memory"), ("token_type_ids", "segments"), ("start_pos", "start"),
        ("position_ids", "positions"), ("is_training", "flag"), ("output_attentions", "flag"), ("cache", "state"),
        ("targets", "label"), ("idx", "unknown"),
    ],
)  # fmt: skip
def test_the_role_of_an_argument_is_inferred_from_its_name(name: str, role: str) -> None:
    assert role_of(name, BOTH) == role


def test_masks_of_a_model_with_one_input_belong_to_its_side() -> None:
    assert role_of("src_mask", ("target",)) == "target mask"
    assert role_of("mask", ("source",)) == "source mask"


def roles(text: str, sides: tuple[str, ...] = BOTH) -> list[str]:
    return [role for _, role in assign_roles([Parameter(name) for name in text.split()], sides)]


def test_ids_are_assigned_in_order_unless_their_names_state_another() -> None:
    assert roles("a a_mask b b_mask") == ["source", "source mask", "target", "source mask"]
    assert roles("trg src") == ["target", "source"]
    assert roles("src targets") == ["source", "target"]
    assert roles("x segment_info", ("source",)) == ["source", "segments"]
    assert roles("idx targets", ("target",)) == ["target", "label"]


@pytest.mark.parametrize(
    "text", ["tgt memory", "memory src_mask tgt tgt_mask", "y enc_out past", "a b", "x hidden"]
)
def test_a_decode_function_has_a_target_and_a_memory(text: str) -> None:
    found = [role for _, role in decoder_roles([Parameter(name) for name in text.split()])]
    assert found.count("target") == found.count("memory") == 1


@pytest.mark.exact_bits("torch.jit.trace runs in no dispatch mode")
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_arguments_of_functions_modules_and_scripts_are_read() -> None:
    class Module(nn.Module):
        def forward(self, ids: Tensor, scale: float = 2.0) -> Tensor:
            return ids * scale

    expected = [Parameter("ids"), Parameter("scale", required=False)]
    assert parameters_of(Module()) == parameters_of(torch.jit.script(Module())) == expected
    traced = torch.jit.trace(Module(), torch.ones(2, 3))
    assert [each.name for each in parameters_of(traced) or ()] == ["ids"]
    assert parameters_of(lambda *ids: ids) is None
    assert parameters_of(lambda ids, *, key: ids) == [Parameter("ids"), Parameter("key", by_name=True)]


def test_arguments_without_a_value_keep_their_default() -> None:
    def function(a: int, b: int = 3, c: int = 5, *, d: int = 7) -> tuple[int, ...]:
        return a, b, c, d

    arguments = [(each, "unknown") for each in parameters_of(function) or ()]
    assert call_with(function, arguments, {"a": 11, "c": 13, "d": 17}) == (11, 3, 13, 17)  # type: ignore[arg-type]
