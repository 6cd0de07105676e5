# SPDX-License-Identifier: Apache-2.0
"""The form of the file for `lakegate apply`.

Every list and field is optional: what the file does not contain is not changed. An empty list differs from a missing
one: with pruning, all entries of the list in the catalog are removed.
"""

from __future__ import annotations

import difflib
import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from gateway.access.bodies import FormatVersions, ManagedBy, Name, ProjectId, UserId, UserType, WarehouseName
from gateway.access.delegate_grants import ActsFor
from gateway.access.operations.mapping_tables import Value
from gateway.access.operations.roles import Description, ProviderId, SourceId
from gateway.access.operations.tags import Scope, TagValue, ValueKind
from gateway.access.operations.task_bodies import HeartbeatSeconds, WarehouseQueue
from gateway.access.operations.warehouse_bodies import HardDelete, PolicyLoss, SoftDelete
from gateway.apply.source import InvalidSource, Path, Source
from gateway.obligations.data_policies import AppliesTo, Definition
from lakegate.value_messages import in_words


class Entry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True, omit_defaults=True):
    """An object of the file."""


class Member(Entry, frozen=True):
    """A member of a role. Exactly one of `user` and `role` is given; a role is a name in the project, or a UUID."""

    user: UserId | None = None
    role: str | None = None


class Grant(Entry, frozen=True):
    """A privilege of a principal. Exactly one of `user` and `role` is given; a role is a name in the project, or a
    UUID. Without `expires-at` the grant does not expire. Without `reason` the reason is not compared. `acts-for` limits
    `delegate`; its roles are UUIDs. Without it the limits are not compared, and a new grant has the default ones.
    """

    privilege: str
    user: UserId | None = None
    role: str | None = None
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)] | None = None
    acts_for: ActsFor | None = None


Grants = tuple[Grant, ...]


class SecretRef(Entry, frozen=True):
    """A reference to a secret: the name of an environment variable, or a path to a file."""

    env: str | None = None
    file: str | None = None


class User(Entry, frozen=True):
    """A user or a client of programs."""

    id: UserId
    name: Name
    type: UserType = "human"
    email: Annotated[str, msgspec.Meta(max_length=320)] | None = None


class Role(Entry, frozen=True):
    """A role of a project. `id` finds an existing role, so that `name` can rename it."""

    name: Name
    id: str | None = None
    description: Description | None = None
    provider_id: ProviderId | None = None
    source_id: SourceId | None = None
    members: tuple[Member, ...] | None = None
    grants: Grants | None = None


Tags = dict[str, TagValue | None]
"""Values of tags by their names. A marker has no value."""


class TagDefinition(Entry, frozen=True):
    """A tag of a project. `scope` can only be widened, and `allowed-values` only be extended. `value-kind` is fixed."""

    name: Name
    description: Description | None = None
    scope: Scope | None = None
    value_kind: ValueKind | None = None
    allowed_values: tuple[TagValue, ...] | None = None
    grants: Grants | None = None


class MappingEntry(Entry, frozen=True):
    """The values of a principal. Exactly one of `user` and `role` is given, a role by its name or UUID."""

    values: Annotated[tuple[Value, ...], msgspec.Meta(min_length=1, max_length=1_000)]
    user: UserId | None = None
    role: str | None = None


class MappingTable(Entry, frozen=True):
    """A mapping table of a project. Without `entries`, its entries are neither read nor changed."""

    name: Name
    description: Description | None = None
    entries: tuple[MappingEntry, ...] | None = None


class Binding(Entry, frozen=True):
    """An object that a data policy is bound to: a tag, a warehouse, a namespace of it, or a (generic) table there.

    With `name`, the policy is bound to a name, and `namespace` and `name` may contain wildcards.
    """

    tag: str | None = None
    warehouse: str | None = None
    namespace: str | tuple[str, ...] | None = None
    table: str | None = None
    generic_table: str | None = None
    name: str | None = None


class DataPolicy(Entry, frozen=True):
    """A data policy of a project. `has-role` in the definition names a role of the project, or has its UUID."""

    name: Name
    description: Description | None = None
    definition: Definition | None = None
    applies_to: AppliesTo | None = None
    allow_append: bool | None = None
    bindings: tuple[Binding, ...] | None = None
    grants: Grants | None = None


class Column(Entry, frozen=True):
    """An existing column of a table."""

    grants: Grants | None = None
    tags: Tags | None = None


class Tabular(Entry, frozen=True):
    """An existing view or generic table. Apply does not create it."""

    name: str
    protected: bool | None = None
    grants: Grants | None = None
    tags: Tags | None = None


class Table(Tabular, frozen=True):
    """An existing table. Apply does not create it. `columns` has grants, or grants and tags, by column name."""

    columns: dict[str, Grants | Column] | None = None


class Namespace(Entry, frozen=True):
    """A namespace. `name` is its name, or the list of its levels."""

    name: str | tuple[str, ...]
    properties: dict[str, str] | None = None
    managed_access: bool | None = None
    protected: bool | None = None
    grants: Grants | None = None
    tags: Tags | None = None
    tables: tuple[Table, ...] = ()
    views: tuple[Tabular, ...] = ()
    generic_tables: tuple[Tabular, ...] = ()

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of the namespace, from the top."""
        return (self.name,) if isinstance(self.name, str) else self.name


class TaskQueue(Entry, frozen=True):
    """The configuration of a task queue in a warehouse. Without `max-seconds-since-last-heartbeat` the server's default
    applies.
    """

    max_seconds_since_last_heartbeat: HeartbeatSeconds | None = None


class Warehouse(Entry, frozen=True):
    """A warehouse. `id` finds an existing warehouse, so that `name` can rename it.

    `storage` is the storage profile of the management API. Values of `credential` are texts or references to secrets.
    The namespaces of an inactive warehouse cannot be read, so the file cannot state them.
    """

    name: WarehouseName
    id: str | None = None
    storage: dict[str, Any] | None = None
    credential: dict[str, str | SecretRef] | None = None
    delete_profile: HardDelete | SoftDelete | None = None
    managed_by: ManagedBy | None = None
    allowed_format_versions: FormatVersions | None = None
    default_format_version: Literal[1, 2, 3] | None = None
    policy_loss: PolicyLoss | None = None
    task_queues: dict[WarehouseQueue, TaskQueue] | None = None
    managed_access: bool | None = None
    protected: bool | None = None
    status: Literal["active", "inactive"] | None = None
    grants: Grants | None = None
    tags: Tags | None = None
    namespaces: tuple[Namespace, ...] | None = None


class Project(Entry, frozen=True):
    """A project. `id` finds an existing project, and is the id of a new one."""

    name: Name
    id: ProjectId | None = None
    grants: Grants | None = None
    roles: tuple[Role, ...] | None = None
    tag_definitions: tuple[TagDefinition, ...] | None = None
    mapping_tables: tuple[MappingTable, ...] | None = None
    data_policies: tuple[DataPolicy, ...] | None = None
    warehouses: tuple[Warehouse, ...] | None = None


class Server(Entry, frozen=True):
    """The server."""

    grants: Grants | None = None


class Document(Entry, frozen=True):
    """A file for `lakegate apply`."""

    version: Literal[1] = 1
    server: Server | None = None
    users: tuple[User, ...] = ()
    projects: tuple[Project, ...] = ()


_PLACE = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_STEP = re.compile(r"\[(?P<place>\d+)\]|\[(?P<key>\.\.\.)\]|\.(?P<name>[^.\[]+)")


def read_document(source: Source) -> Document:
    """Decode a file. Raises InvalidSource with the line and the path of the first invalid field."""
    try:
        return msgspec.convert(source.value, Document)
    except msgspec.ValidationError as error:
        raise _explained(source, in_words(error, Document)) from None


def _explained(source: Source, message: str) -> InvalidSource:
    """Return the error with line and path. For an unknown field, it has the allowed fields and a suggestion."""
    placed = _PLACE.search(message)
    # msgspec does not report keys of mappings. The line of the mapping is the nearest known one.
    path = tuple(step for step in _path(placed["path"]) if step != "...") if placed is not None else ()
    problem = message[: placed.start()] if placed is not None else message
    unknown = re.fullmatch(r"Object contains unknown field `(?P<name>.*)`", problem)
    if unknown is not None:
        allowed = _allowed(path)
        near = difflib.get_close_matches(unknown["name"], allowed, n=1)
        hint = f"Did you mean {near[0]!r}? " if near else ""
        listed = f" {hint}Allowed: {', '.join(allowed)}." if allowed else ""
        return source.error((*path, unknown["name"]), f"this key is unknown.{listed}")
    return source.error(path, problem)


def _path(text: str) -> Path:
    return tuple(
        int(step["place"]) if step["place"] is not None else step["name"] or step["key"]
        for step in _STEP.finditer(text)
    )


def _allowed(path: Path) -> list[str]:
    """Return the names of the fields that the object at a path of the file may have."""
    found: Any = msgspec.inspect.type_info(Document)
    for step in path:
        found = _member(found, step)
    return [each.encode_name for each in found.fields] if isinstance(found, msgspec.inspect.StructType) else []


def _member(type: Any, step: str | int) -> Any:
    """Return the type of a field, without `null`."""
    inner: Any = None
    if isinstance(type, msgspec.inspect.StructType):
        inner = next((each.type for each in type.fields if each.encode_name == step), None)
    elif isinstance(type, msgspec.inspect.VarTupleType):
        inner = type.item_type
    elif isinstance(type, msgspec.inspect.DictType):
        inner = type.value_type
    if isinstance(inner, msgspec.inspect.UnionType):
        structs = [
            each for each in inner.types if not isinstance(each, msgspec.inspect.NoneType | msgspec.inspect.StrType)
        ]
        # A value in the file decides which struct is meant. If several structs are possible, no hint is given.
        inner = structs[0] if len(structs) == 1 else None
    return inner


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the file, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "lakegate apply",
        **msgspec.json.schema(Document),
    }
