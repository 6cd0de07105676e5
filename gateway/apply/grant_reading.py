# SPDX-License-Identifier: Apache-2.0
"""Read the grants on an object: one resource for each privilege and principal, whatever the number of grantors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from gateway.access.delegation_limits import ActsFor
from gateway.apply.client import Api
from gateway.apply.collector import is_uuid, limits_field
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Kind, Resource, State

_OWNERSHIP, _ASSIGNEE = "ownership", "assignee"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one grant. `others` are (end, limits) of those that other users granted.

    `limits` are those that a repeated grant keeps: of the caller's entry if it has one, else of the first entry.
    """

    others: tuple[tuple[datetime | None, Any], ...]
    limits: Any = None


class GrantReader:
    """Reads grants for the caller of `api`, under the names that the file uses."""

    def __init__(self, api: Api, wanted: State, located: Located) -> None:
        self._api = api
        self._wanted = wanted
        self._located = located

    @cached_property
    def caller(self) -> str:
        """The id of the caller."""
        return str(self._api.get(f"{MANAGEMENT}/whoami")["id"])

    @cached_property
    def _caller_roles(self) -> frozenset[str]:
        user = Address(Kind.USER, self.caller)
        roles = self._api.get(f"{self._located.path(user)}/roles/transitive")["roles"]
        return frozenset(each["id"] for each in roles)

    def on(self, address: Address) -> Iterator[Resource]:
        """Yield the grants on an object. Members of a role are not grants of the file."""
        found: dict[Address, list[Mapping[str, Any]]] = {}
        project = self._located.project(address)
        for grant in self._api.pages(f"{self._located.path(address)}/grants", "grants", project=project):
            if address.kind is Kind.ROLE and grant["privilege"] == _ASSIGNEE:
                continue
            at = self.address(Kind.GRANT, address, grant["principal"], before=f"{grant['privilege']} ")
            found.setdefault(at, []).append(grant)
        owned = any(
            each.address.name.startswith(f"{_OWNERSHIP} ") for each in self._wanted.children(Kind.GRANT, address)
        )
        for at, entries in found.items():
            yield self._resource(at, entries, owned=owned)

    def address(self, kind: Kind, on: Address, principal: Mapping[str, str], *, before: str = "") -> Address:
        """Return the address of a grant or member of an answer. `before` precedes the principal in its name.

        A role has its UUID if this entry of the file uses that, else the name under which the file describes it.
        """
        if "user" in principal:
            return Address(kind, f"{before}user:{principal['user']}", on)
        id = principal["role"]
        by_id = Address(kind, f"{before}role:{id}", on)
        if on.kind is Kind.SERVER or by_id in self._wanted.resources:
            return by_id
        name = self._located.role_names(on.within(Kind.PROJECT)).get(id, id)
        # A name in the form of a UUID would be read as an id.
        return by_id if is_uuid(name) else Address(kind, f"{before}role:{name}", on)

    def _resource(self, at: Address, entries: list[Mapping[str, Any]], *, owned: bool) -> Resource:
        """Return the grant in effect: it lasts as long as the entry that expires last.

        Its `spec` are the `Entries`. Limits that differ between entries are a list of all of them.
        """
        ends = [_time(each.get("expires-at")) for each in entries]
        last = None if None in ends else max(end for end in ends if end is not None)
        lasting = [each for each, end in zip(entries, ends, strict=True) if end == last]
        stated = self._wanted.resources.get(at)
        reasons = [each.get("reason") for each in lasting]
        wanted_reason = None if stated is None else stated.fields.get("reason")
        reason = wanted_reason if wanted_reason in reasons else next((each for each in reasons if each), None)
        fields: dict[str, Any] = {"expires-at": last, "reason": reason}
        limits = [_limits(each) for each in entries]
        if any(each is not None for each in limits):
            fields["acts-for"] = limits[0] if all(each == limits[0] for each in limits) else limits
        own = [each["granted-by"] == self.caller for each in entries]
        others = tuple(pair for pair, mine in zip(zip(ends, limits, strict=True), own, strict=True) if not mine)
        spec = Entries(others, limits[own.index(True) if True in own else 0])
        return Resource(at, fields, spec=spec, keep=self._reason_to_keep(entries[0], owned=owned))

    def _reason_to_keep(self, grant: Mapping[str, Any], *, owned: bool) -> str | None:
        """Return why pruning leaves a grant, or None."""
        principal = grant["principal"]
        if not grant.get("recognized", True):
            return "this gateway does not know the privilege"
        if principal.get("user") == self.caller or principal.get("role") in self._caller_roles:
            return "it is a right of the caller"
        if grant["privilege"] == _OWNERSHIP and not owned:
            return "the file names no owner of the object"
        return None


def _limits(grant: Mapping[str, Any]) -> dict[str, Any] | None:
    return limits_field(msgspec.convert(grant["acts-for"], ActsFor)) if "acts-for" in grant else None


def _time(text: str | None) -> datetime | None:
    return None if text is None else msgspec.convert(text, datetime).astimezone(UTC)
