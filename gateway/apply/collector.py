# SPDX-License-Identifier: Apache-2.0
"""Collect the resources and complete lists of one document, with its grants, tags and references."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from gateway.access.delegation_limits import ActsFor, limits_text
from gateway.access.nouns.privileges import GRANTABLE, Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.apply.document import Grant, MappingEntry, Member
from gateway.apply.source import Path, Source
from gateway.apply.state import Address, Kind, Resource, Scope
from gateway.iceberg.identifiers import fold


class Collector:
    """The resources and complete lists of one document. `references` are named by it and described elsewhere."""

    def __init__(self, source: Source, *, now: datetime) -> None:
        self.source = source
        self.resources: dict[Address, Resource] = {}
        self.scopes: set[Scope] = set()
        self.references: set[Address] = set()
        self._now = now

    def add(self, path: Path, resource: Resource) -> None:
        """Add a resource. Raises InvalidSource if it is stated twice."""
        if resource.address in self.resources:
            raise self.source.error(path, f"{resource.address} is stated twice. Keep one entry.")
        self.resources[resource.address] = resource

    def list(self, kind: Kind, parent: Address, entries: object) -> None:
        """Record that a list is complete, unless the file does not state it."""
        if entries is not None:
            self.scopes.add((kind, parent))

    def grants(
        self, path: Path, on: Address, type: ObjectType, grants: Sequence[Grant] | None, member: Path = ("grants",)
    ) -> None:
        """Add the grants on an object."""
        self.list(Kind.GRANT, on, grants)
        for place, grant in enumerate(grants or ()):
            at = (*path, *member, place)
            self._check_privilege(at, type, grant.privilege)
            until = None if grant.expires_at is None else grant.expires_at.astimezone(UTC)
            if grant.acts_for is not None and grant.privilege != Privilege.DELEGATE:
                raise self.source.error((*at, "acts-for"), "it limits delegate only. Remove it.")
            fields: dict[str, Any] = {"expires-at": until, **given(reason=grant.reason)}
            fields |= {} if grant.acts_for is None else {"acts-for": limits_field(grant.acts_for)}
            if until is not None and until <= self._now:
                continue
            address = Address(Kind.GRANT, f"{grant.privilege} {self.principal(at, on, grant)}", on)
            self.add(at, Resource(address, fields, spec=grant))

    def tags(self, path: Path, on: Address, tags: Mapping[str, str | None] | None) -> None:
        """Add the tags of an object."""
        self.list(Kind.ATTACHMENT, on, tags)
        for name, value in (tags or {}).items():
            address = Address(Kind.ATTACHMENT, fold(name), on)
            self.references.add(Address(Kind.TAG, address.name, on.within(Kind.PROJECT)))
            self.add((*path, "tags", name), Resource(address, {"value": value}))

    def principal(self, path: Path, on: Address, given: Grant | Member | MappingEntry) -> str:
        """Return the principal as `user:<id>` or `role:<name or UUID>`."""
        if (given.user is None) == (given.role is None):
            raise self.source.error(path, "give exactly one of user and role.")
        if given.user is not None:
            return f"user:{given.user}"
        if on.kind is Kind.SERVER and not is_uuid(given.role or ""):
            raise self.source.error(
                (*path, "role"), "a role on the server is given by its UUID, because names are per project."
            )
        # Answers of the gateway have the usual form of a UUID. Another form would look like another role.
        return f"role:{usual_id(given.role or '')}"

    def uuid(self, path: Path, id: str | None) -> str | None:
        """Return the `id` of an entry in the usual form. Raises InvalidSource for another text."""
        if id is not None and not is_uuid(id):
            raise self.source.error((*path, "id"), f"{id!r} is not a UUID.")
        return None if id is None else str(UUID(id))

    def _check_privilege(self, path: Path, type: ObjectType, privilege: str) -> None:
        allowed = [each.value for each in GRANTABLE[type]]
        if type is ObjectType.ROLE and privilege == "assignee":
            raise self.source.error((*path, "privilege"), "members of a role belong into its list `members`.")
        if privilege not in allowed:
            near = difflib.get_close_matches(privilege, allowed, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            text = f"{privilege!r} cannot be granted here. {hint}Allowed: {', '.join(allowed)}."
            raise self.source.error((*path, "privilege"), text)


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def usual_id(text: str) -> str:
    """Return a UUID in its usual form, and every other text as it is."""
    return str(UUID(text)) if is_uuid(text) else text


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are stated, under their names in the file."""
    return {name.replace("_", "-"): value for name, value in fields.items() if value is not None}


def limits_field(limits: ActsFor) -> dict[str, Any]:
    """Return the limits of a grant of `delegate` as a field. Equal limits are equal; the default ones are empty."""
    found: dict[str, Any] = json.loads(limits_text(limits) or "{}")
    return found
