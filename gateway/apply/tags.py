# SPDX-License-Identifier: Apache-2.0
"""Tags of projects in `lakegate apply`, and attachments of tags to objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from gateway.access.operations.tags import TagTarget
from gateway.apply.client import FORBIDDEN, ApiError, segment
from gateway.apply.grants import GRANTS
from gateway.apply.nouns import Collector, Noun, stated
from gateway.apply.session import Changing, Reading
from gateway.apply.source import Path
from gateway.apply.state import Address, Change, Kind, NotChangeable, Resource, State
from gateway.iceberg.identifiers import fold

#: Limit of the allowed values of one request (`TagValues`).
_MOST_VALUES: Final = 100


class Tags(Noun):
    """Tags. `scope` and `allowed-values` can only be extended. One request can add a limited number of values."""

    kind, member, folded, may_be_hidden = Kind.TAG, "tag-definitions", True, True
    fields = ("name", "description", "scope", "value-kind")
    contents = (GRANTS,)

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the fields that the file sets. Fields that are sets are sorted."""
        fields = stated(entry, ("name", "description", "value-kind"))
        if entry.scope is not None:
            fields["scope"] = [each for each in get_args(TagTarget) if each in entry.scope]
        if entry.allowed_values is not None:
            fields["allowed-values"] = sorted(set(entry.allowed_values))
        return fields

    def note(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> None:
        """Record the id of the tag, because data policies can be bound to any tag."""
        reading.located.add(address, id)

    def present(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> Resource:
        """Return the tag. Its allowed values, which lists of tags lack, are read only if they are compared or
        exported.
        """
        found = super().present(reading, address, id, row)
        wanted = reading.wanted.resources.get(address)
        if row["value-kind"] != "enumerated" or wanted is None:
            return found
        if "allowed-values" not in wanted.fields and wanted.spec is not None:
            return found
        values = reading.api.get(reading.located.path(address))["allowed-values"]
        return Resource(address, {**found.fields, "allowed-values": values}, id=id)

    def require(self, change: Change, present: Resource | None) -> None:
        """Raise NotChangeable if the file has fewer values than the tag, or lacks a field that a new tag needs."""
        fields = {} if change.desired is None else change.desired.fields
        if present is None:
            require_fields(change, "scope", "value-kind")
            return
        if "value-kind" in fields and fields["value-kind"] != present.fields["value-kind"]:
            raise NotChangeable(f"{change.address}: the value-kind of a tag cannot be changed. Define another tag.")
        for name in ("scope", "allowed-values"):
            lost = sorted(set(present.fields.get(name) or ()) - set(fields[name])) if name in fields else []
            if lost:
                raise NotChangeable(
                    f"{change.address}: `{name}` can only be extended, and the file lacks {', '.join(lost)}. Add the "
                    "missing entries."
                )

    def body(self, session: Any, address: Address, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields as a request body, with as many allowed values as one request can have."""
        found = super().body(session, address, fields)
        if found.get("allowed-values"):
            found["allowed-values"] = found["allowed-values"][:_MOST_VALUES]
        return found

    def create(self, session: Changing, desired: Resource) -> None:
        """Define a tag. Raises ApiError."""
        super().create(session, desired)
        self._extend(session, desired.address, desired.fields, desired.fields.get("allowed-values", ())[_MOST_VALUES:])

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Change the name, description, scope and allowed values of a tag. Raises ApiError."""
        present = session.present.resources[desired.address].fields
        known = present.get("allowed-values") or ()
        added = [each for each in desired.fields.get("allowed-values", ()) if each not in known]
        fields = {**present, **desired.fields}
        self._extend(session, desired.address, fields, added, least=1)

    def _extend(
        self, session: Changing, tag: Address, fields: Mapping[str, Any], added: Sequence[str], least: int = 0
    ) -> None:
        """Send updates with the added values, at least `least` of them. Each has the description, because its absence
        would remove it.
        """
        body = {name: fields[name] for name in ("name", "description", "scope") if fields.get(name) is not None}
        for start in range(0, max(len(added), least), _MOST_VALUES):
            values = list(added[start : start + _MOST_VALUES])
            session.change("POST", tag, "", {**body, **({"add-allowed-values": values} if values else {})})


class Attachments(Noun):
    """The tags of an object, as {name: value}."""

    kind, member, is_object = Kind.ATTACHMENT, "tags", False

    def collect(self, to: Collector, path: Path, on: Address, entries: Any) -> None:
        """Add the tags of an object. Raises InvalidSource."""
        to.list(Kind.ATTACHMENT, on, entries)
        for name, value in (entries or {}).items():
            address = Address(Kind.ATTACHMENT, fold(name), on)
            to.references.add(_tag_of(address))
            to.add((*path, name), Resource(address, {"value": value}))

    def read(self, reading: Reading, on: Address) -> None:
        """Read nothing yet. Tags that the caller may not read are left out of an export."""

    def read_late(self, reading: Reading, on: Address) -> None:
        """Read the tags of an object. Raises ApiError."""
        for row in reading.api.get(reading.located.tags_path(on))["tags"]:
            address = Address(Kind.ATTACHMENT, fold(row["name"]), on)
            reading.found[address] = Resource(address, {"value": row.get("value")})

    def create(self, session: Changing, desired: Resource) -> None:
        """Attach a tag to an object, or change its value there. Raises ApiError."""
        value = desired.fields["value"]
        session.api.change("PUT", self._path(session, desired.address), {} if value is None else {"value": value})

    def remove(self, session: Changing, address: Address) -> None:
        """Detach a tag from an object. Raises ApiError."""
        session.api.change("DELETE", self._path(session, address))

    def _path(self, session: Changing, address: Address) -> str:
        return f"{session.located.tags_path(address.on)}/{segment(address.name)}"

    def exported(self, state: State, on: Address) -> dict[str, Any]:
        """Return the tags of an object with their names as defined. Addresses contain the names in lower case."""
        if not state.has_scope(Kind.ATTACHMENT, on):
            return {}
        found = {}
        for each in state.children(Kind.ATTACHMENT, on):
            tag = state.resources.get(_tag_of(each.address))
            found[each.address.name if tag is None else str(tag.fields["name"])] = each.fields["value"]
        return {"tags": found}


TAGS, ATTACHMENTS = Tags(), Attachments()


def require_fields(change: Change, *names: str) -> None:
    """Raise NotChangeable if the file lacks a field that the creation of an object needs."""
    missing = [each for each in names if change.desired is not None and each not in change.desired.fields]
    if missing:
        raise NotChangeable(f"{change.address} does not exist, and its creation needs {' and '.join(missing)}.")


def keep_used_tags(reading: Reading) -> None:
    """Mark undeclared tag definitions that are attached to objects outside of the lists of the file: they cannot be
    removed.
    """
    undeclared = [each for each in reading.found if each not in reading.wanted.resources]
    read = Counter(_tag_of(each) for each in undeclared if each.kind is Kind.ATTACHMENT)
    for tag in [each for each in undeclared if each.kind is Kind.TAG]:
        if (reason := _reason_to_keep(reading, tag, read[tag])) is not None:
            found = reading.found[tag]
            reading.found[tag] = Resource(tag, found.fields, id=found.id, keep=reason)


def _tag_of(attachment: Address) -> Address:
    return Address(Kind.TAG, attachment.name, attachment.within(Kind.PROJECT))


def _reason_to_keep(reading: Reading, tag: Address, removable: int) -> str | None:
    """Return the reason why a tag definition must stay. Return None if all its attachments were read and are in
    `removable`.
    """
    listed = reading.pages(tag, "attachments", "attachments")
    try:
        return "objects carry it" if any(place >= removable for place, _ in enumerate(listed)) else None
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        return "you may not list the objects that carry it"
