# SPDX-License-Identifier: Apache-2.0
"""Grants on an object in `lakegate apply`.

All grants of one privilege to one principal count as one grant, even if several grantors gave them.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from gateway.access.delegate_grants import ActsFor, limits_text
from gateway.access.nouns.cards import GRANTABLE
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.apply.nouns import Collector, Noun, principal_of, stated
from gateway.apply.session import Changing, Reading
from gateway.apply.source import Path
from gateway.apply.state import Address, Kind, Resource, State


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of one grant, one for each grantor. `others` are (expiry, limits) of the entries of other grantors.

    `limits` are the limits that a repeated grant keeps: those of the caller's entry, or else of the first entry.
    """

    others: tuple[tuple[datetime | None, Any], ...]
    limits: Any = None


class Grants(Noun):
    """Grants on objects of all kinds. The address of the object determines its type, and so the allowed privileges."""

    kind, member, is_object = Kind.GRANT, "grants", False

    def state(self, to: Collector, path: Path, on: Address, entry: Any) -> None:
        """Add a grant, unless it has expired. Raises InvalidSource."""
        self._check_privilege(to, path, ObjectType(on.kind.replace("-", "_")), entry.privilege)
        until = None if entry.expires_at is None else entry.expires_at.astimezone(UTC)
        if entry.acts_for is not None and entry.privilege != Privilege.DELEGATE:
            raise to.source.error((*path, "acts-for"), "acts-for limits only the privilege delegate. Remove acts-for.")
        fields: dict[str, Any] = {"expires-at": until, **stated(entry, ("reason",))}
        fields |= {} if entry.acts_for is None else {"acts-for": _limits_field(entry.acts_for)}
        if until is None or until > to.now:
            address = Address(Kind.GRANT, f"{entry.privilege} {to.principal(path, on, entry)}", on)
            to.add(path, Resource(address, fields, spec=entry))

    def _check_privilege(self, to: Collector, path: Path, type: ObjectType, privilege: str) -> None:
        allowed = [each.value for each in GRANTABLE[type]]
        if type is ObjectType.ROLE and privilege == Privilege.ASSIGNEE:
            raise to.source.error(
                (*path, "privilege"),
                "assignee cannot be granted here. Add the principal to the list `members` of the role.",
            )
        if privilege not in allowed:
            near = difflib.get_close_matches(privilege, allowed, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            text = f"{privilege!r} cannot be granted here. {hint}Allowed: {', '.join(allowed)}."
            raise to.source.error((*path, "privilege"), text)

    def read(self, reading: Reading, on: Address) -> None:
        """Read nothing yet, because grants refer to roles that are read after the object."""

    def read_late(self, reading: Reading, on: Address) -> None:
        """Read the grants on an object. Raises ApiError."""
        reading.found |= {each.address: each for each in self.on(reading, on)}

    def on(self, reading: Reading, on: Address) -> Iterator[Resource]:
        """Yield the grants on an object. The members of a role are left out, because the file lists them separately.
        Raises ApiError.
        """
        found: dict[Address, list[Mapping[str, Any]]] = {}
        for grant in reading.pages(on, "grants", "grants"):
            if on.kind is Kind.ROLE and grant["privilege"] == Privilege.ASSIGNEE:
                continue
            at = reading.of_principal(Kind.GRANT, on, grant["principal"], before=f"{grant['privilege']} ")
            found.setdefault(at, []).append(grant)
        owner = f"{Privilege.OWNERSHIP} "
        owned = any(each.address.name.startswith(owner) for each in reading.wanted.children(Kind.GRANT, on))
        for at, entries in found.items():
            yield self._resource(reading, at, entries, owned=owned)

    def _resource(self, reading: Reading, at: Address, entries: list[Mapping[str, Any]], *, owned: bool) -> Resource:
        """Return the grant that is in effect. It expires with the entry that expires last.

        Its `spec` are the `Entries`. If the limits of the entries differ, the field has a list of all of them.
        """
        ends = [_time(each.get("expires-at")) for each in entries]
        last = None if None in ends else max(end for end in ends if end is not None)
        lasting = [each for each, end in zip(entries, ends, strict=True) if end == last]
        wanted = reading.wanted.resources.get(at)
        reasons = [each.get("reason") for each in lasting]
        wanted_reason = None if wanted is None else wanted.fields.get("reason")
        reason = wanted_reason if wanted_reason in reasons else next((each for each in reasons if each), None)
        fields: dict[str, Any] = {"expires-at": last, "reason": reason}
        limits = [_limits(each) for each in entries]
        if any(each is not None for each in limits):
            fields["acts-for"] = limits[0] if all(each == limits[0] for each in limits) else limits
        own = [each["granted-by"] == reading.caller for each in entries]
        others = tuple(pair for pair, mine in zip(zip(ends, limits, strict=True), own, strict=True) if not mine)
        spec = Entries(others, limits[own.index(True) if True in own else 0])
        return Resource(at, fields, spec=spec, keep=_reason_to_keep(reading, entries[0], owned=owned))

    def create(self, session: Changing, desired: Resource) -> None:
        """Grant a privilege. First revoke entries of other grantors that expire later, or have other limits, than in
        the file.

        The gateway replaces the caller's own entry. Without limits in the request, that would widen the grant. So if
        the file has no limits, the current ones are sent.
        """
        address, until = desired.address, desired.fields["expires-at"]
        present = session.present.resources.get(address)
        entries = Entries(()) if present is None else present.spec
        limits = desired.fields.get("acts-for", entries.limits)
        longer = until is not None and any(end is None or end > until for end, _ in entries.others)
        if longer or ("acts-for" in desired.fields and any(other != limits for _, other in entries.others)):
            self.remove(session, address)
        sent = {"reason": desired.fields.get("reason"), "expires-at": until and until.isoformat(), "acts-for": limits}
        self._write(session, address, "writes", self.body(session, address, sent))

    def remove(self, session: Changing, address: Address) -> None:
        """Revoke the entries of all grantors. Raises ApiError and UnknownRole."""
        self._write(session, address, "deletes", {})

    def _write(self, session: Changing, address: Address, member: str, fields: Mapping[str, Any]) -> None:
        privilege, _, name = address.name.partition(" ")
        principal = session.located.principal(name, address.on)
        grant = {"privilege": privilege, "principal": principal, **fields}
        session.change("POST", address.on, "/grants", {member: [grant]})

    def entry(self, state: State, resource: Resource) -> dict[str, Any]:
        """Return a grant in the form of the file."""
        privilege, _, principal = resource.address.name.partition(" ")
        until, limits = resource.fields["expires-at"], resource.fields.get("acts-for")
        return {
            "privilege": privilege,
            **principal_of(principal),
            **({} if until is None else {"expires-at": until.isoformat()}),
            # If grantors have given different limits, the file cannot state them. Without `acts-for`, apply keeps the
            # limits.
            **({"acts-for": limits} if isinstance(limits, dict) else {}),
            **({} if resource.fields["reason"] is None else {"reason": resource.fields["reason"]}),
        }


GRANTS = Grants()


def _reason_to_keep(reading: Reading, grant: Mapping[str, Any], *, owned: bool) -> str | None:
    """Return the reason why a grant is kept despite pruning; None if it can be removed."""
    principal = grant["principal"]
    if not grant.get("recognized", True):
        return "this gateway does not know the privilege"
    if principal.get("user") == reading.caller or principal.get("role") in reading.caller_roles:
        return "it is a right of the caller"
    if grant["privilege"] == Privilege.OWNERSHIP and not owned:
        return "the file names no owner of the object"
    return None


def _limits(grant: Mapping[str, Any]) -> dict[str, Any] | None:
    return _limits_field(msgspec.convert(grant["acts-for"], ActsFor)) if "acts-for" in grant else None


def _limits_field(limits: ActsFor) -> dict[str, Any]:
    """Return the limits of a grant of `delegate` as a field. Equal limits give equal fields; default limits give no
    field.
    """
    found: dict[str, Any] = json.loads(limits_text(limits) or "{}")
    return found


def _time(text: str | None) -> datetime | None:
    return None if text is None else msgspec.convert(text, datetime).astimezone(UTC)
