# SPDX-License-Identifier: Apache-2.0
"""Turn the documents of one or more files into the desired state, and check what the form alone cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.roles import OWN_PROVIDER
from gateway.apply.collector import Collector, given
from gateway.apply.desired_policies import add_policies
from gateway.apply.document import Column, Document, Namespace, Project, Role, SecretRef, Tabular, Warehouse
from gateway.apply.profiles import VARIABLE_PREFIX, is_secret, profile_fields, reference_fault
from gateway.apply.source import InvalidSource, Path, Source
from gateway.apply.state import SERVER, Address, Kind, Resource, Scope, State, namespace_address
from gateway.iceberg.errors import CatalogError

_TABULARS = (("tables", Kind.TABLE), ("views", Kind.VIEW), ("generic_tables", Kind.GENERIC_TABLE))


def desired_state(documents: Sequence[tuple[Source, Document]], *, now: datetime, rotate: bool = False) -> State:
    """Return the state that the documents describe together.

    Grants that have expired at `now` are left out. With `rotate`, credentials of warehouses always differ from the
    present ones. Raises InvalidSource.
    """
    resources: dict[Address, Resource] = {}
    scopes: set[Scope] = set()
    references: set[Address] = set()
    for source, document in documents:
        one = _Builder(source, now=now, rotate=rotate)
        one.document(document)
        scopes |= one.collected.scopes
        references |= one.collected.references
        for address, resource in one.collected.resources.items():
            resources[address] = _joined(source, resources.get(address), resource)
    for address in references - resources.keys():
        resources[address] = Resource(address, reference=True)
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
        self.collected = Collector(source, now=now)
        self._source = source
        self._rotate = rotate

    def document(self, document: Document) -> None:
        """Add everything in the document."""
        if document.server is not None:
            self.collected.add(("server",), Resource(SERVER))
            self.collected.grants(("server",), SERVER, ObjectType.SERVER, document.server.grants)
        for place, user in enumerate(document.users):
            fields = {"name": user.name, "type": user.type, **given(email=user.email)}
            self.collected.add(("users", place), Resource(Address(Kind.USER, user.id), fields, id=user.id, spec=user))
        for place, project in enumerate(document.projects):
            self._project(("projects", place), project)

    def _project(self, path: Path, project: Project) -> None:
        address = Address(Kind.PROJECT, project.id or project.name)
        self.collected.add(path, Resource(address, {"name": project.name}, id=project.id, spec=project))
        self.collected.grants(path, address, ObjectType.PROJECT, project.grants)
        self.collected.list(Kind.ROLE, address, project.roles)
        self.collected.list(Kind.WAREHOUSE, address, project.warehouses)
        add_policies(self.collected, path, address, project)
        for place, role in enumerate(project.roles or ()):
            self._role((*path, "roles", place), address, role)
        for place, warehouse in enumerate(project.warehouses or ()):
            self._warehouse((*path, "warehouses", place), address, warehouse)

    def _role(self, path: Path, project: Address, role: Role) -> None:
        address = Address(Kind.ROLE, role.name, project)
        fields = given(
            name=role.name, description=role.description, provider_id=role.provider_id, source_id=role.source_id
        )
        self.collected.add(path, Resource(address, fields, id=self.collected.uuid(path, role.id), spec=role))
        if role.members and role.provider_id not in (None, OWN_PROVIDER):
            text = f"the provider {role.provider_id} manages the members of this role. Remove the list."
            raise self._source.error((*path, "members"), text)
        self.collected.grants(path, address, ObjectType.ROLE, role.grants)
        self.collected.list(Kind.MEMBER, address, role.members)
        for place, member in enumerate(role.members or ()):
            at = (*path, "members", place)
            principal = self.collected.principal(at, address, member)
            self.collected.add(at, Resource(Address(Kind.MEMBER, principal, address), spec=member))

    def _warehouse(self, path: Path, project: Address, warehouse: Warehouse) -> None:
        address = Address(Kind.WAREHOUSE, warehouse.name, project)
        fields = given(
            name=warehouse.name,
            delete_profile=_delete_profile(warehouse),
            managed_by=warehouse.managed_by,
            policy_loss=warehouse.policy_loss,
            managed_access=warehouse.managed_access,
            protected=warehouse.protected,
            status=warehouse.status,
        )
        if warehouse.status == "inactive" and warehouse.namespaces is not None:
            raise self._source.error(
                (*path, "namespaces"), "the namespaces of an inactive warehouse cannot be read. Remove the list."
            )
        if warehouse.allowed_format_versions is not None:
            fields["allowed-format-versions"] = sorted(set(warehouse.allowed_format_versions))
            fields["default-format-version"] = warehouse.default_format_version
        elif warehouse.default_format_version is not None:
            raise self._source.error(
                (*path, "default-format-version"), "this field needs allowed-format-versions. State both."
            )
        fields |= self._storage(path, warehouse)
        for queue, config in (warehouse.task_queues or {}).items():
            fields[f"task-queues.{queue}"] = msgspec.to_builtins(config) or None
        open_prefixes = ("task-queues.",) if warehouse.task_queues is not None else ()
        id = self.collected.uuid(path, warehouse.id)
        self.collected.add(path, Resource(address, fields, id=id, spec=warehouse, open_prefixes=open_prefixes))
        self.collected.grants(path, address, ObjectType.WAREHOUSE, warehouse.grants)
        self.collected.tags(path, address, warehouse.tags)
        self.collected.list(Kind.NAMESPACE, address, warehouse.namespaces)
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
            if isinstance(value, SecretRef) and (fault := reference_fault(name, value)):
                raise self._source.error(at, fault)
            if isinstance(value, str) and is_secret(name):
                raise self._source.error(
                    at,
                    f"secrets do not belong into this file. Write `{name}: {{env: {VARIABLE_PREFIX}NAME}}` or "
                    "`{file: PATH}`.",
                )
        kind = "/".join(str(credential[name]) for name in ("type", "credential-type") if name in credential)
        return {**fields, "credential": f"{kind} (new secrets)" if self._rotate else kind}

    def _namespace(self, path: Path, warehouse: Address, namespace: Namespace) -> None:
        if not namespace.levels:
            raise self._source.error((*path, "name"), "a namespace needs at least one level.")
        address = namespace_address(warehouse, namespace.levels)
        fields = given(managed_access=namespace.managed_access, protected=namespace.protected)
        fields |= {f"properties.{key}": value for key, value in (namespace.properties or {}).items()}
        self.collected.scopes.add((Kind.NAMESPACE, address))
        open_prefixes = ("properties.",) if namespace.properties is not None else ()
        self.collected.add(path, Resource(address, fields, spec=namespace, open_prefixes=open_prefixes))
        self.collected.grants(path, address, ObjectType.NAMESPACE, namespace.grants)
        self.collected.tags(path, address, namespace.tags)
        for name, kind in _TABULARS:
            tabular: Tabular
            for place, tabular in enumerate(getattr(namespace, name)):
                self._tabular((*path, name.replace("_", "-"), place), Address(kind, tabular.name, address), tabular)

    def _tabular(self, path: Path, address: Address, tabular: Any) -> None:
        self.collected.add(path, Resource(address, given(protected=tabular.protected), spec=tabular))
        self.collected.grants(path, address, ObjectType(address.kind.replace("-", "_")), tabular.grants)
        self.collected.tags(path, address, tabular.tags)
        for name, stated in (getattr(tabular, "columns", None) or {}).items():
            column, at = Address(Kind.COLUMN, name, address), (*path, "columns", name)
            self.collected.add(at, Resource(column))
            if isinstance(stated, Column):
                self.collected.grants(at, column, ObjectType.COLUMN, stated.grants)
                self.collected.tags(at, column, stated.tags)
            else:
                self.collected.grants(at, column, ObjectType.COLUMN, stated, member=())


def _delete_profile(warehouse: Warehouse) -> dict[str, Any] | None:
    return None if warehouse.delete_profile is None else dict(msgspec.to_builtins(warehouse.delete_profile))


def read_all(texts: Mapping[str, str]) -> list[tuple[Source, Document]]:
    """Return the documents of the files by name. Raises InvalidSource, also if there is no file."""
    from gateway.apply.document import read_document
    from gateway.apply.source import read_source

    if not texts:
        raise InvalidSource("there is no file to apply. A directory needs files that end with .yaml or .yml.")
    sources = [read_source(name, text) for name, text in texts.items()]
    return [(source, read_document(source)) for source in sources]
