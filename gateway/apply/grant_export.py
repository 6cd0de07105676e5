# SPDX-License-Identifier: Apache-2.0
"""Write the grants on objects in the form of the file."""

from __future__ import annotations

from typing import Any

from gateway.apply.state import Address, Kind, State


def grants_of(state: State, on: Address) -> dict[str, Any]:
    """Return the member `grants` of an object, or nothing if the caller may not read them."""
    if not state.has_scope(Kind.GRANT, on):
        return {}
    found = []
    for each in state.children(Kind.GRANT, on):
        privilege, _, principal = each.address.name.partition(" ")
        until, reason = each.fields["expires-at"], each.fields["reason"]
        entry: dict[str, Any] = {"privilege": privilege, **principal_of(principal)}
        entry |= {} if until is None else {"expires-at": until.isoformat()}
        limits = each.fields.get("acts-for")
        # Grantors with different limits have no common form in the file; without it apply keeps them.
        entry |= {"acts-for": limits} if isinstance(limits, dict) else {}
        found.append(entry | ({} if reason is None else {"reason": reason}))
    return {"grants": found}


def principal_of(text: str) -> dict[str, str]:
    """Return the member `user` or `role` of an entry. `text` is `user:<id>` or `role:<name or UUID>`."""
    kind, _, name = text.partition(":")
    return {kind: name}
