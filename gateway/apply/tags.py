# SPDX-License-Identifier: Apache-2.0
"""Read the tags of projects and of objects, define and change tags, and attach them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from gateway.apply.changes import Change, NotChangeable
from gateway.apply.client import FORBIDDEN, Api, ApiError, segment
from gateway.apply.located import MANAGEMENT, Located
from gateway.apply.state import Address, Kind, Resource, State
from gateway.iceberg.identifiers import fold

_PATH: Final = f"{MANAGEMENT}/tag-definition"
_ENUMERATED: Final = "enumerated"

#: Limit of the allowed values of one request (`TagValues`).
_MOST_VALUES: Final = 100


class TagReader:
    """Reads tags and their attachments to objects. `found` receives them."""

    def __init__(self, api: Api, wanted: State, located: Located, found: dict[Address, Resource]) -> None:
        self._api = api
        self._wanted = wanted
        self._located = located
        self._found = found

    def read(self, project: Address) -> None:
        """Read the tags that the file names or whose list it states. Raises ApiError."""
        wanted = self._wanted.children(Kind.TAG, project)
        scoped = self._wanted.has_scope(Kind.TAG, project)
        if not wanted and not scoped:
            return
        for row in self._api.pages(_PATH, "tag-definitions", project=self._located.id(project)):
            address = Address(Kind.TAG, fold(row["name"]), project)
            self._located.add(address, row["id"])
            if address in self._wanted.resources or scoped:
                fields = {name: row.get(name) for name in ("name", "description", "scope", "value-kind")}
                if row["value-kind"] == _ENUMERATED and self._states_values(address):
                    fields["allowed-values"] = self._api.get(self._located.path(address))["allowed-values"]
                self._found[address] = Resource(address, fields, id=row["id"])

    def _states_values(self, tag: Address) -> bool:
        """Return whether the allowed values of the tag are compared or exported. Lists of tags do not have them."""
        wanted = self._wanted.resources.get(tag)
        return wanted is not None and ("allowed-values" in wanted.fields or wanted.spec is None)

    def read_attachments(self, on: Address) -> None:
        """Read the tags of an object. Raises ApiError."""
        for row in self._api.get(self._located.tags_path(on))["tags"]:
            address = Address(Kind.ATTACHMENT, fold(row["name"]), on)
            self._found[address] = Resource(address, {"value": row.get("value")})

    def keep_used(self) -> None:
        """Mark the undeclared tags that objects outside of the lists of the file carry: they cannot be removed."""
        read = Counter(
            Address(Kind.TAG, each.name, each.within(Kind.PROJECT))
            for each in self._found
            if each.kind is Kind.ATTACHMENT and each not in self._wanted.resources
        )
        for tag in [each for each in self._found if each.kind is Kind.TAG and each not in self._wanted.resources]:
            if (reason := self._reason_to_keep(tag, read[tag])) is not None:
                found = self._found[tag]
                self._found[tag] = Resource(tag, found.fields, id=found.id, keep=reason)

    def _reason_to_keep(self, tag: Address, removable: int) -> str | None:
        """Return why a tag stays, or None if objects carry it only in `removable` attachments that were read."""
        listed = self._api.pages(f"{self._located.path(tag)}/attachments", "attachments")
        try:
            return "objects carry it" if any(place >= removable for place, _ in enumerate(listed)) else None
        except ApiError as error:
            if error.status != FORBIDDEN:
                raise
            return "you may not list the objects that carry it"


def create_tag(api: Api, located: Located, desired: Resource) -> None:
    """Define a tag. Raises ApiError."""
    body = {name: value for name, value in desired.fields.items() if value is not None}
    values: Sequence[str] = body.get("allowed-values", ())
    if values:
        body["allowed-values"] = values[:_MOST_VALUES]
    made = api.change("POST", _PATH, body, project=located.project(desired.address))
    located.add(desired.address, made["id"])
    _add_values(api, located, desired.address, body, values[_MOST_VALUES:])


def update_tag(api: Api, located: Located, desired: Resource, present: Resource) -> None:
    """Change the name, description, scope and allowed values of a tag. Raises ApiError."""
    fields = {**present.fields, **desired.fields}
    known = present.fields.get("allowed-values") or ()
    added = [each for each in desired.fields.get("allowed-values", ()) if each not in known]
    _update(api, located, desired.address, fields, added[:_MOST_VALUES])
    _add_values(api, located, desired.address, fields, added[_MOST_VALUES:])


def attach_tag(api: Api, located: Located, desired: Resource) -> None:
    """Attach a tag to an object, or change its value there. Raises ApiError."""
    value = desired.fields["value"]
    api.change("PUT", _attachment_path(located, desired.address), {} if value is None else {"value": value})


def detach_tag(api: Api, located: Located, address: Address) -> None:
    """Detach a tag from an object. Raises ApiError."""
    api.change("DELETE", _attachment_path(located, address))


def require_extension(change: Change, present: Resource | None) -> None:
    """Raise NotChangeable if the file states less than a tag has, or leaves out what a new tag needs."""
    desired = change.desired
    if desired is None:
        return
    if present is None:
        missing = [each for each in ("scope", "value-kind") if each not in desired.fields]
        if missing:
            raise NotChangeable(f"{change.address} does not exist, and its creation needs {' and '.join(missing)}.")
        return
    fields = desired.fields
    if "value-kind" in fields and fields["value-kind"] != present.fields["value-kind"]:
        raise NotChangeable(f"{change.address}: the value-kind of a tag cannot be changed. Define another tag.")
    for name in ("scope", "allowed-values"):
        lost = sorted(set(present.fields.get(name) or ()) - set(fields[name])) if name in fields else []
        if lost:
            raise NotChangeable(
                f"{change.address}: `{name}` can only be extended, and the file lacks {', '.join(lost)}. Add it."
            )


def _add_values(api: Api, located: Located, tag: Address, fields: Mapping[str, Any], values: Sequence[str]) -> None:
    for start in range(0, len(values), _MOST_VALUES):
        _update(api, located, tag, fields, values[start : start + _MOST_VALUES])


def _update(api: Api, located: Located, tag: Address, fields: Mapping[str, Any], added: Sequence[str]) -> None:
    """Send an update. A request without a description would remove the present one."""
    body = {name: fields[name] for name in ("name", "description", "scope") if fields.get(name) is not None}
    api.change("POST", located.path(tag), {**body, **({"add-allowed-values": list(added)} if added else {})})


def _attachment_path(located: Located, attachment: Address) -> str:
    if attachment.parent is None:
        raise LookupError(f"{attachment} has no object")
    return f"{located.tags_path(attachment.parent)}/{segment(attachment.name)}"
