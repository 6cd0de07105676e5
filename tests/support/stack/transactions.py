# SPDX-License-Identifier: Apache-2.0
"""Transactions of several tables."""

from __future__ import annotations

from typing import Any

import httpx

from tests.support.stack.world import SCHEMA, Person, Table, World


def change(table: Table, *updates: dict[str, Any], requirements: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return the change of one table in a transaction."""
    return {
        "identifier": {"namespace": [table.namespace], "name": table.name},
        "requirements": [{"type": "assert-table-uuid", "uuid": table.uuid}, *requirements],
        "updates": list(updates),
    }


def creation(namespace: str, name: str, *updates: dict[str, Any]) -> dict[str, Any]:
    """Return the change that creates a table."""
    return {
        "identifier": {"namespace": [namespace], "name": name},
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": "11111111-2222-4333-8444-555555555555"},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": {"schema-id": 0, **SCHEMA}},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            *updates,
        ],
    }


def commit(by: Person, world: World, *changes: dict[str, Any]) -> httpx.Response:
    """Commit a transaction."""
    return by.post(f"{world.root}/transactions/commit", {"table-changes": list(changes)})
