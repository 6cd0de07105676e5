# SPDX-License-Identifier: Apache-2.0
"""`lakegate changes show`: the lines of a ticket."""

from __future__ import annotations

from typing import Any

from gateway.cli.changes import ticket_lines

TICKET: dict[str, Any] = {
    "id": "t",
    "status": "pending",
    "name": "sales.orders",
    "principal": "oidc~bob",
    "created-at": "2026-01-01T00:00:00Z",
    "expires-at": "2026-01-08T00:00:00Z",
    "reasons": ["guard: column id is protected", "steward: ask: first", "guard: column b is protected"],
    "change": {
        "kind": "drop",
        "object": ["generic_table", "o"],
        "updates": [{"action": "drop", "purge": True, "force": False}],
        "base": {},
        "new": {},
        "properties": {},
        "destination": None,
    },
}


def test_drop_is_shown_with_its_parameters_and_the_reasons_of_each_verifier() -> None:
    assert list(ticket_lines(TICKET)) == [
        "ticket:    t",
        "status:    pending, ends 2026-01-08T00:00:00Z",
        "change:    drop of the generic table sales.orders",
        "requested: by oidc~bob at 2026-01-01T00:00:00Z",
        "reasons:",
        "  guard:",
        "    - column id is protected",
        "    - column b is protected",
        "  steward:",
        "    - ask: first",
        "updates:",
        '  - drop: {"purge": true, "force": false}',
    ]


def test_decision_and_new_name_are_shown() -> None:
    change = TICKET["change"] | {"kind": "rename", "updates": [], "destination": ["sales", "former"]}
    decided = {"decided-by": "oidc~ann", "decided-at": "later", "comment": "fine", "used-at": "at last"}
    lines = list(ticket_lines(TICKET | decided | {"change": change}))
    assert "new name:  sales.former" in lines and "updates:   none" in lines
    assert lines[5:7] == ["decided:   by oidc~ann at later: fine", "used:      at at last"]


def test_texts_of_clients_cannot_control_the_terminal() -> None:
    escape = "\x1b[2J\u202e\r\n"
    update = {"action": escape, "updates": {escape: escape}}
    change = TICKET["change"] | {"updates": [update], "destination": [escape], "new": {escape: escape}}
    texts = {"name": escape, "principal": escape, "reasons": [escape, f"{escape}: {escape}"], "comment": escape}
    hostile = TICKET | texts | {"decided-by": escape, "decided-at": "x", "change": change}
    assert all(line.isprintable() for line in ticket_lines(hostile))
