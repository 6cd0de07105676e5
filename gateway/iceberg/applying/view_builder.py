# SPDX-License-Identifier: Apache-2.0
"""The mutable copy of view metadata during one commit, and one function per update of a view."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from msgspec import Raw

from gateway.iceberg.applying.structure import or_last_added, strip_trailing_slash
from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import BadRequestException, InvalidTableUpdate, ViewUuidMismatch
from gateway.iceberg.properties import DROP_DIALECT_ALLOWED, check_settable_on_view, flag, view_versions_kept
from gateway.iceberg.schema import Schema, read_schema
from gateway.iceberg.updates import (
    AddSchema,
    AddViewVersion,
    AssignUuid,
    RemoveProperties,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from gateway.iceberg.views import (
    SUPPORTED_VIEW_VERSION,
    ViewHistoryEntry,
    ViewMetadata,
    ViewVersion,
    read_version,
)

LARGEST_CHOSEN_ID: Final = 2**30
"""The highest version id of a client that is kept."""


@dataclass(slots=True, kw_only=True)
class ViewBuilder:
    """A mutable copy of the metadata, and a record of the changes of this commit.

    `became_current_ms` is the time for the log entry of a new current version, or None if the commit set none.
    """

    base: ViewMetadata | None
    now_ms: int
    view_uuid: str | None = None
    location: str | None = None
    properties: dict[str, str] = field(default_factory=dict)
    schemas: Parts[Schema] = field(default_factory=lambda: Parts(Schema))
    version_id: int | None = None
    versions: Parts[ViewVersion] = field(default_factory=lambda: Parts(ViewVersion))
    log: Parts[ViewHistoryEntry] = field(default_factory=lambda: Parts(ViewHistoryEntry))
    extra: dict[str, Raw] = field(default_factory=dict)

    changed: bool = False
    last_added_schema: int | None = None
    last_added_version: int | None = None
    added_versions: set[int] = field(default_factory=set)
    became_current_ms: int | None = None

    @classmethod
    def on(cls, base: ViewMetadata, *, now_ms: int) -> ViewBuilder:
        """Return a builder with the content of `base`. The base is not changed."""
        return cls(
            base=base,
            now_ms=now_ms,
            view_uuid=base.view_uuid,
            location=base.location,
            properties=dict(base.properties),
            schemas=base.schemas,
            version_id=base.current_version_id,
            versions=base.versions,
            log=base.version_log,
            extra=dict(base.extra),
        )

    def version(self, version_id: int) -> ViewVersion | None:
        """Return the version with this id, or None."""
        return next((v for v in self.versions if v.version_id == version_id), None)

    def finish(self) -> ViewMetadata:
        """Return the new metadata without expired versions.

        Raises `InvalidTableUpdate` or `BadRequestException` if the result is not a consistent view.
        """
        if self.view_uuid is None or self.location is None:
            raise InvalidTableUpdate("A new view needs the updates assign-uuid and set-location")
        current = self.version(self.version_id) if self.version_id is not None else None
        if current is None:
            raise InvalidTableUpdate("Invalid view: no versions were added")
        self._refuse_lost_dialects(current)
        if self.became_current_ms is not None:
            entry = {"timestamp-ms": self.became_current_ms, "version-id": current.version_id}
            self.log = self.log.append(ViewHistoryEntry.of(entry))
        self._expire(current)
        return ViewMetadata(
            view_uuid=self.view_uuid,
            format_version=SUPPORTED_VIEW_VERSION,
            location=self.location,
            properties=self.properties,
            schemas=self.schemas,
            current_version_id=current.version_id,
            versions=self.versions,
            version_log=self.log,
            extra=self.extra,
        )

    def _refuse_lost_dialects(self, current: ViewVersion) -> None:
        """Raise `BadRequestException` if the new current version lacks an SQL dialect that the previous one has.

        Engines of that dialect could no longer read the view. The property `replace.drop-dialect.allowed` permits it.
        """
        if self.base is None or self.base.current_version_id == current.version_id:
            return
        previous = self.base.current_version
        allowed = flag(self.properties, DROP_DIALECT_ALLOWED, default=False)
        if not allowed and not previous.dialects <= current.dialects:
            raise BadRequestException(
                f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false):\n"
                f"Previous dialects: {sorted(previous.dialects)}\nNew dialects: {sorted(current.dialects)}"
            )

    def _expire(self, current: ViewVersion) -> None:
        """Remove the oldest versions beyond the configured number, except the current one.

        If a version in the log is removed, its last log entry and all entries before it are removed too.
        """
        keep = max(len(self.added_versions), view_versions_kept(self.properties))
        if len(self.versions) <= keep:
            return
        newest = sorted((v.version_id for v in self.versions if v.version_id != current.version_id), reverse=True)
        kept_ids = {current.version_id, *newest[: keep - 1]}
        self.versions = self.versions.only(lambda version: version.version_id in kept_ids)
        entries: list[ViewHistoryEntry] = []
        for entry in self.log:
            if entry.version_id in kept_ids:
                entries.append(entry)
            else:
                entries.clear()
        self.log = Parts.of(ViewHistoryEntry, entries)


def assign_uuid(builder: ViewBuilder, update: AssignUuid, at: str) -> None:
    """Set the UUID of a new view. Setting the UUID that the view already has changes nothing.

    Raises `ViewUuidMismatch` for another UUID.
    """
    try:
        UUID(update.uuid)
    except ValueError:
        raise BadRequestException(f"Malformed request: {update.uuid!r} is not a UUID at `{at}.uuid`") from None
    if builder.view_uuid is not None and update.uuid.lower() != builder.view_uuid.lower():
        raise ViewUuidMismatch("Cannot reassign uuid")
    if builder.view_uuid is None:
        builder.view_uuid = update.uuid
        builder.changed = True


def upgrade_format_version(builder: ViewBuilder, update: UpgradeFormatVersion, at: str) -> None:
    """Raise `InvalidTableUpdate` unless the format version is 1. Views have no other version."""
    if update.format_version > SUPPORTED_VIEW_VERSION:
        raise InvalidTableUpdate(
            f"Cannot upgrade view to unsupported format version: v{update.format_version} "
            f"(supported: v{SUPPORTED_VIEW_VERSION})"
        )
    if update.format_version < SUPPORTED_VIEW_VERSION:
        raise InvalidTableUpdate(f"Cannot downgrade v{SUPPORTED_VIEW_VERSION} view to v{update.format_version}")


def set_location(builder: ViewBuilder, update: SetLocation, at: str) -> None:
    """Set the location. A view may move, because it has no data files. The caller must check the new location."""
    location = strip_trailing_slash(update.location)
    if location != builder.location:
        builder.location = location
        builder.changed = True


def set_properties(builder: ViewBuilder, update: SetProperties, at: str) -> None:
    """Set view properties. Values that equal the current ones do not mark the view as changed."""
    check_settable_on_view(builder.properties, update.updates)
    if any(builder.properties.get(name) != value for name, value in update.updates.items()):
        builder.properties.update(update.updates)
        builder.changed = True


def remove_properties(builder: ViewBuilder, update: RemoveProperties, at: str) -> None:
    """Remove properties. Missing names are ignored."""
    for name in update.removals:
        if builder.properties.pop(name, None) is not None:
            builder.changed = True


def add_schema(builder: ViewBuilder, update: AddSchema, at: str) -> None:
    """Add a schema. An equal schema keeps its id; a new one gets the highest id plus one, beginning with 0."""
    schema = read_schema(update.schema, at=f"{at}.schema")
    found = next((known.schema_id for known in builder.schemas if known.same_as(schema)), None)
    if found is None:
        found = max((known.schema_id for known in builder.schemas), default=-1) + 1
        builder.schemas = builder.schemas.append(schema.with_id(found))
        builder.changed = True
    builder.last_added_schema = found


def add_view_version(builder: ViewBuilder, update: AddViewVersion, at: str) -> None:
    """Add a version. An equal version keeps its id.

    A new version keeps the id of the request if this is higher than all others. Otherwise it gets the highest id plus
    one, because two concurrent writers may send the same id. Raises `InvalidTableUpdate` for an unknown schema.
    """
    version = read_version(update.view_version, at=f"{at}.view-version")
    schema_id = or_last_added(
        version.schema_id, builder.last_added_schema, "Cannot set last added schema: no schema has been added"
    )
    if not any(schema.schema_id == schema_id for schema in builder.schemas):
        raise InvalidTableUpdate(f"Cannot add version with unknown schema: {schema_id}")
    version = version.with_ids(version_id=version.version_id, schema_id=schema_id)
    found = next((known.version_id for known in builder.versions if known.content == version.content), None)
    if found is None:
        following = max((known.version_id for known in builder.versions), default=0) + 1
        # An id above the limit is replaced: the versions after it would need ids above 32 bits.
        found = version.version_id if following < version.version_id <= LARGEST_CHOSEN_ID else following
        builder.versions = builder.versions.append(version.with_ids(version_id=found, schema_id=schema_id))
        builder.added_versions.add(found)
        builder.changed = True
    builder.last_added_version = found


def set_current_view_version(builder: ViewBuilder, update: SetCurrentViewVersion, at: str) -> None:
    """Make a version the current one. The id -1 is the version that this commit added last.

    The log entry has the timestamp of the version if this commit added it, otherwise the time of the commit.
    """
    version_id = or_last_added(
        update.view_version_id,
        builder.last_added_version,
        "Cannot set last version id: no current version id has been set",
    )
    if version_id == builder.version_id:
        return
    version = builder.version(version_id)
    if version is None:
        raise InvalidTableUpdate(f"Cannot set current version to unknown version: {version_id}")
    builder.version_id = version_id
    builder.became_current_ms = version.timestamp_ms if version_id in builder.added_versions else builder.now_ms
    builder.changed = True
