# SPDX-License-Identifier: Apache-2.0
"""Turn the documents of one or more files into the desired state, and check what the form alone cannot."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from gateway.access.privileges import GRANTABLE, Privilege
from gateway.access.refs import ObjectType
from gateway.apply.document import Document, Grant, Member, Namespace, Project, Role, SecretRef, Tabular, Warehouse
from gateway.apply.profiles import profile_fields
from gateway.apply.source import InvalidSource, Path, Source
from gateway.apply.state import SERVER, Address, Kind, Resource, Scope, State, namespace_address
from gateway.iceberg.errors import CatalogError
from gateway.protocol.delegation import ActsFor, limits_text
from gateway.protocol.roles import OWN_PROVIDER

_TABULARS = (("tables", Kind.TABLE), ("views", Kind.VIEW), ("generic_tables", Kind.GENERIC_TABLE))


def desired_state(documents: Sequence[tuple[Source, Document]], *, now: datetime, rotate: bool = False) -> State:
    """Return the state that the documents describe together.

    Grants that have expired at `now` are left out. With `rotate`, credentials of warehouses always differ from the
    present ones. Raises InvalidSource.
    """
    resources: dict[Address, Resource] = {}
    scopes: set[Scope] = set()
    for source, document in documents:
        one = _Builder(source, now=now, rotate=rotate)
        one.document(document)
        scopes |= one.scopes
        for address, resource in one.resources.items():
            resources[address] = _joined(source, resources.get(address), resource)
    return State(resources, frozenset(scopes))


def _joined(source: Source, known: Resource | None, other: Resource) -> Resource:
    """Return the one entry of an object in two files. They may divide its contents, not state its fields twice."""
    if known is None or not other.fields or known.fields == other.fields:
        return known or other
    if known.address.kind in (Kind.SERVER, Kind.PROJECT, Kind.WAREHOUSE, Kind.NAMESPACE):
        if set(known.fields) == {"name"}:
            return other
        if set(other.fields) == {"name"} or not known.fields:
            return known if known.fields else other
    raise source.error((), f"{other.address} is described in another file too. State its fields in one file.")


class _Builder:
    """The resources and complete lists of one document."""

    def __init__(self, source: Source, *, now: datetime, rotate: bool) -> None:
        self.resources: dict[Address, Resource] = {}
        self.scopes: set[Scope] = set()
        self._source = source
        self._now = now
        self._rotate = rotate

    def document(self, document: Document) -> None:
        """Add everything in the document."""
        if document.server is not None:
            self._add(("server",), Resource(SERVER))
            self._grants(("server",), SERVER, ObjectType.SERVER, document.server.grants)
        for place, user in enumerate(document.users):
            fields = {"name": user.name, "type": user.type, **_given(email=user.email)}
            self._add(("users", place), Resource(Address(Kind.USER, user.id), fields, id=user.id, spec=user))
        for place, project in enumerate(document.projects):
            self._project(("projects", place), project)

    def _project(self, path: Path, project: Project) -> None:
        address = Address(Kind.PROJECT, project.id or project.name)
        self._add(path, Resource(address, {"name": project.name}, id=project.id, spec=project))
        self._grants(path, address, ObjectType.PROJECT, project.grants)
        self._list(Kind.ROLE, address, project.roles)
        self._list(Kind.WAREHOUSE, address, project.warehouses)
        for place, role in enumerate(project.roles or ()):
            self._role((*path, "roles", place), address, role)
        for place, warehouse in enumerate(project.warehouses or ()):
            self._warehouse((*path, "warehouses", place), address, warehouse)

    def _role(self, path: Path, project: Address, role: Role) -> None:
        address = Address(Kind.ROLE, role.name, project)
        fields = _given(
            name=role.name, description=role.description, provider_id=role.provider_id, source_id=role.source_id
        )
        self._add(path, Resource(address, fields, id=self._uuid(path, role.id), spec=role))
        if role.members and role.provider_id not in (None, OWN_PROVIDER):
            text = f"the provider {role.provider_id} manages the members of this role. Remove the list."
            raise self._source.error((*path, "members"), text)
        self._grants(path, address, ObjectType.ROLE, role.grants)
        self._list(Kind.MEMBER, address, role.members)
        for place, member in enumerate(role.members or ()):
            at = (*path, "members", place)
            self._add(at, Resource(Address(Kind.MEMBER, self._principal(at, address, member), address), spec=member))

    def _warehouse(self, path: Path, project: Address, warehouse: Warehouse) -> None:
        address = Address(Kind.WAREHOUSE, warehouse.name, project)
        fields = _given(
            name=warehouse.name,
            delete_profile=_delete_profile(warehouse),
            managed_by=warehouse.managed_by,
            managed_access=warehouse.managed_access,
            protected=warehouse.protected,
        )
        if warehouse.allowed_format_versions is not None:
            fields["allowed-format-versions"] = sorted(set(warehouse.allowed_format_versions))
            fields["default-format-version"] = warehouse.default_format_version
        elif warehouse.default_format_version is not None:
            raise self._source.error(
                (*path, "default-format-version"), "this field needs allowed-format-versions. State both."
            )
        fields |= self._storage(path, warehouse)
        self._add(path, Resource(address, fields, id=self._uuid(path, warehouse.id), spec=warehouse))
        self._grants(path, address, ObjectType.WAREHOUSE, warehouse.grants)
        self._list(Kind.NAMESPACE, address, warehouse.namespaces)
        for place, namespace in enumerate(warehouse.namespaces or ()):
            self._namespace((*path, "namespaces", place), address, namespace)

    def _storage(self, path: Path, warehouse: Warehouse) -> dict[str, Any]:
        """Return the fields of profile and credential. The secrets themselves are not compared."""
        fields: dict[str, Any] = {}
        if warehouse.storage is not None:
            try:
                fields |= profile_fields(warehouse.storage)
            except CatalogError as error:
                raise self._source.error((*path, "storage"), str(error)) from None
        credential = warehouse.credential
        if credential is None:
            return fields
        for name, value in credential.items():
            at = (*path, "credential", name)
            if isinstance(value, SecretRef) and (value.env is None) == (value.file is None):
                raise self._source.error(at, "give exactly one of env and file.")
            if isinstance(value, str) and _is_secret(name):
                raise self._source.error(
                    at, f"secrets do not belong into this file. Write `{name}: {{env: NAME}}` or `{{file: PATH}}`."
                )
        kind = "/".join(str(credential[name]) for name in ("type", "credential-type") if name in credential)
        return {**fields, "credential": f"{kind} (new secrets)" if self._rotate else kind}

    def _namespace(self, path: Path, warehouse: Address, namespace: Namespace) -> None:
        if not namespace.levels:
            raise self._source.error((*path, "name"), "a namespace needs at least one level.")
        address = namespace_address(warehouse, namespace.levels)
        fields = _given(managed_access=namespace.managed_access, protected=namespace.protected)
        fields |= {f"properties.{key}": value for key, value in (namespace.properties or {}).items()}
        self.scopes.add((Kind.NAMESPACE, address))
        open_prefixes = ("properties.",) if namespace.properties is not None else ()
        self._add(path, Resource(address, fields, spec=namespace, open_prefixes=open_prefixes))
        self._grants(path, address, ObjectType.NAMESPACE, namespace.grants)
        for name, kind in _TABULARS:
            tabular: Tabular
            for place, tabular in enumerate(getattr(namespace, name)):
                self._tabular((*path, name.replace("_", "-"), place), Address(kind, tabular.name, address), tabular)

    def _tabular(self, path: Path, address: Address, tabular: Any) -> None:
        self._add(path, Resource(address, _given(protected=tabular.protected), spec=tabular))
        self._grants(path, address, ObjectType(address.kind.replace("-", "_")), tabular.grants)
        for name, grants in (getattr(tabular, "columns", None) or {}).items():
            column, at = Address(Kind.COLUMN, name, address), (*path, "columns", name)
            self._add(at, Resource(column))
            self._grants(at, column, ObjectType.COLUMN, grants, member=())

    def _grants(
        self, path: Path, on: Address, type: ObjectType, grants: Sequence[Grant] | None, member: Path = ("grants",)
    ) -> None:
        self._list(Kind.GRANT, on, grants)
        for place, grant in enumerate(grants or ()):
            at = (*path, *member, place)
            self._check_privilege(at, type, grant.privilege)
            until = None if grant.expires_at is None else grant.expires_at.astimezone(UTC)
            if grant.acts_for is not None and grant.privilege != Privilege.DELEGATE:
                raise self._source.error((*at, "acts-for"), "it limits delegate only. Remove it.")
            fields: dict[str, Any] = {"expires-at": until, **_given(reason=grant.reason)}
            fields |= {} if grant.acts_for is None else {"acts-for": limits_field(grant.acts_for)}
            if until is not None and until <= self._now:
                continue
            address = Address(Kind.GRANT, f"{grant.privilege} {self._principal(at, on, grant)}", on)
            self._add(at, Resource(address, fields, spec=grant))

    def _check_privilege(self, path: Path, type: ObjectType, privilege: str) -> None:
        allowed = [each.value for each in GRANTABLE[type]]
        if type is ObjectType.ROLE and privilege == "assignee":
            raise self._source.error((*path, "privilege"), "members of a role belong into its list `members`.")
        if privilege not in allowed:
            near = difflib.get_close_matches(privilege, allowed, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            text = f"{privilege!r} cannot be granted here. {hint}Allowed: {', '.join(allowed)}."
            raise self._source.error((*path, "privilege"), text)

    def _principal(self, path: Path, on: Address, given: Grant | Member) -> str:
        """Return the principal as `user:<id>` or `role:<name or UUID>`."""
        if (given.user is None) == (given.role is None):
            raise self._source.error(path, "give exactly one of user and role.")
        if given.user is not None:
            return f"user:{given.user}"
        if on.kind is Kind.SERVER and not is_uuid(given.role or ""):
            raise self._source.error(
                (*path, "role"), "a role on the server is given by its UUID, because names are per project."
            )
        # Answers of the gateway have the usual form of a UUID. Another form would look like another role.
        return f"role:{UUID(given.role) if is_uuid(given.role or '') else given.role}"

    def _uuid(self, path: Path, id: str | None) -> str | None:
        if id is not None and not is_uuid(id):
            raise self._source.error((*path, "id"), f"{id!r} is not a UUID.")
        return None if id is None else str(UUID(id))

    def _list(self, kind: Kind, parent: Address, entries: object) -> None:
        if entries is not None:
            self.scopes.add((kind, parent))

    def _add(self, path: Path, resource: Resource) -> None:
        if resource.address in self.resources:
            raise self._source.error(path, f"{resource.address} is stated twice. Keep one entry.")
        self.resources[resource.address] = resource


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID."""
    try:
        UUID(text)
    except ValueError:
        return False
    return True


def _is_secret(name: str) -> bool:
    return any(word in name for word in ("secret", "token", "key", "password")) and not name.endswith(("-id", "-type"))


def _delete_profile(warehouse: Warehouse) -> dict[str, Any] | None:
    import msgspec

    return None if warehouse.delete_profile is None else dict(msgspec.to_builtins(warehouse.delete_profile))


def _given(**fields: Any) -> dict[str, Any]:
    """Return the fields that are stated, under their names in the file."""
    return {name.replace("_", "-"): value for name, value in fields.items() if value is not None}


def read_all(texts: Mapping[str, str]) -> list[tuple[Source, Document]]:
    """Return the documents of the files by name. Raises InvalidSource, also if there is no file."""
    from gateway.apply.document import read_document
    from gateway.apply.source import read_source

    if not texts:
        raise InvalidSource("there is no file to apply. A directory needs files that end with .yaml or .yml.")
    sources = [read_source(name, text) for name, text in texts.items()]
    return [(source, read_document(source)) for source in sources]


def limits_field(limits: ActsFor) -> dict[str, Any]:
    """Return the limits of a grant of `delegate` as a field. Equal limits are equal; the default ones are empty."""
    found: dict[str, Any] = json.loads(limits_text(limits) or "{}")
    return found
