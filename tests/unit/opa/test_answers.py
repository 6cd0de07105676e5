# SPDX-License-Identifier: Apache-2.0
"""The wire form of OPA's answers has the fields of the gateway's own types."""

from __future__ import annotations

import msgspec
import pytest

from gateway.access.policy import Obligations, PolicyAnswer, PolicyAnswers
from gateway.opa.answers import WireAnswer, WireAnswers, WireObligations


@pytest.mark.parametrize(
    ("wire", "own"), [(WireObligations, Obligations), (WireAnswer, PolicyAnswer), (WireAnswers, PolicyAnswers)]
)
def test_the_wire_form_has_the_same_fields(wire: type[msgspec.Struct], own: type[msgspec.Struct]) -> None:
    assert [each.name for each in msgspec.structs.fields(wire)] == [each.name for each in msgspec.structs.fields(own)]


def test_every_obligation_reaches_the_door() -> None:
    given = {"max_credential_seconds": 0, "no_vending": True, "append_only": True, "hide_operations": ["a"]}
    assert set(given) == {each.name for each in msgspec.structs.fields(Obligations)}
    received = msgspec.convert(given, WireObligations).understood()
    assert received == Obligations(max_credential_seconds=0, no_vending=True, append_only=True, hide_operations=("a",))
    assert WireObligations().understood() == Obligations()
