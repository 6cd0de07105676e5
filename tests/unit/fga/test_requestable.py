# SPDX-License-Identifier: Apache-2.0
"""The lists of approvers cover every type of object that can be requested."""

from __future__ import annotations

from typing import get_args, get_type_hints

from gateway.access.operations.access_request_bodies import AccessObject
from gateway.fga.sufficient_grants import REQUESTABLE


def test_grants_that_decide_are_derived_for_every_type_that_can_be_requested() -> None:
    named = {each.replace("-", "_") for each in get_args(get_type_hints(AccessObject)["type"])}
    assert named == {each.value for each in REQUESTABLE}
