# SPDX-License-Identifier: Apache-2.0
"""Return the types of the request and the answer of each endpoint, and compare examples with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.access.operation import HttpOperation
from gateway.api import openapi
from gateway.api.openapi_texts import Recorded
from gateway.api.serves import INPUTS, SERVED


def endpoints() -> Mapping[str, tuple[Any, Any]]:
    """Return (type of the request, type of the answer) by the operation that names the endpoint in the document."""
    first: dict[str, type[HttpOperation]] = {}
    for operation in SERVED:
        first.setdefault(operation.endpoint, operation)
    return {
        operation.__name__: (
            SERVED[operation].opt[INPUTS].body or SERVED[operation].opt[INPUTS].form,
            openapi._answer(openapi._function(SERVED[operation])).body,
        )
        for operation in first.values()
    }


ENDPOINTS = endpoints()


def fault(name: str, example: Recorded) -> str:
    """Return why the example of an operation is not of its types; empty if it is."""
    for kind, value in zip(ENDPOINTS[name], (example.request, example.response), strict=True):
        if value is msgspec.UNSET:
            continue
        if kind is None:
            return "the operation has no such body"
        try:
            msgspec.json.decode(msgspec.json.encode(value), type=kind)
        except msgspec.ValidationError as error:
            return str(error)
    return ""
