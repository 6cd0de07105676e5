# SPDX-License-Identifier: Apache-2.0
"""Parts of documents for `lakegate apply`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from gateway.apply.state import Action, Address, Change, Kind, binding_address, namespace_address

NOW = datetime(2026, 1, 1, tzinfo=UTC)

PROJECT = Address(Kind.PROJECT, "shop")
WAREHOUSE = Address(Kind.WAREHOUSE, "main", PROJECT)
SALES = namespace_address(WAREHOUSE, ["sales"])
TABLES = (Address(Kind.TABLE, "orders", SALES),)
TAG = Address(Kind.TAG, "pii", PROJECT)
POLICIES = (Address(Kind.DATA_POLICY, "mask", PROJECT), Address(Kind.DATA_POLICY, "rows", PROJECT))
USERS = ("user:oidc~ann",)
BINDINGS = tuple(binding_address(policy, on) for policy in POLICIES for on in (*TABLES, TAG))
FIXED = (PROJECT, WAREHOUSE, SALES, *TABLES)


def make_change(found: dict[Address, dict[str, Any]], change: Change) -> None:
    """Make a change as the gateway does: it refuses to delete a tag in use, and a bound policy."""
    if change.action is not Action.REMOVE:
        assert change.address.parent in found
        found.setdefault(change.address, {}).update({each.name: each.after for each in change.fields})
        return
    inner = [each for each in found if change.address in (each, *each.ancestors())]
    assert not [each for each in inner if each.kind is Kind.BINDING and each != change.address]
    if change.address == TAG:
        assert not [each for each in found if each.kind is Kind.ATTACHMENT or '"tag"' in each.name]
    for each in inner:
        del found[each]
