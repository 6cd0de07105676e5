# SPDX-License-Identifier: Apache-2.0
"""Define the attempts of the canary, which tests the scope of vended credentials. Pure.

They are requests that the store must permit inside of the scope, and requests that it must refuse at each place outside
of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.trials import Act, Attempt

__all__ = ["ACT_TEXTS", "TABLE", "Place", "attempts_at", "expected_inside", "places"]

TABLE: Final = "table"
"""The name of the folder for which the credentials are vended."""

ACT_TEXTS: Final = {
    Act.READ: "read an object",
    Act.HEAD: "read the properties of an object",
    Act.LIST: "list objects",
    Act.LIST_FOLDERS: "list folders with a delimiter",
    Act.WRITE: "write an object",
    Act.OVERWRITE: "overwrite an object",
    Act.MULTIPART: "start an upload in parts",
    Act.COPY: "copy an object",
    Act.COPY_PART: "copy an object as a part of an upload",
    Act.DELETE: "delete an object",
    Act.DELETE_BATCH: "delete an object by a request for several",
}

_EVERY_NAME: Final = "\0"
"""A prefix that no key has. A listing counts as `reached` if it names a key without the prefix: so, any key."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place outside of the scope. `exists` is True if the canary writes the object `sentinel` there before the
    attempts.
    """

    name: str
    text: str
    prefix: str
    sentinel: str
    exists: bool


def places(folder: Location, level: AccessLevel, *, top: str | None) -> tuple[Place, ...]:
    """Return the places outside of the scope. Their sentinels are only for a credential of this access level.

    `folder` is the parent folder of the scope. `top` is the new name of a folder at the root of the store, None if the
    warehouse is the whole store.
    """
    parent = folder.key_prefix
    # The sibling's name begins with the table's name, so only the final slash in the policy's pattern excludes the
    # sibling.
    sibling = folder.child(f"{TABLE}2").key_prefix
    found = (
        Place("sibling", "in a sibling folder whose name begins the same", sibling, f"{sibling}{level}.txt", True),
        Place("parent", "in the parent folder", parent, f"{parent}{level}.txt", True),
    )
    if top is None:
        return found
    return (*found, Place("other-top-folder", "in another top folder", f"{top}/", f"{top}/{level}.txt", False))


def attempts_at(place: Place, level: AccessLevel, *, inside: str, own: str) -> Iterator[Attempt]:
    """Yield the attempts at a place that leave its sentinel unchanged.

    `inside` is the prefix of the credential's own keys, `own` the key of an object there.
    """
    new = f"{place.prefix}written-{level}"
    yield Attempt(act=Act.READ, key=place.sentinel, inside=inside, exists=place.exists)
    yield Attempt(act=Act.HEAD, key=place.sentinel, inside=inside, exists=place.exists)
    yield Attempt(act=Act.LIST, key=place.prefix, inside=inside)
    yield Attempt(act=Act.LIST_FOLDERS, key=place.prefix, inside=inside)
    yield Attempt(act=Act.WRITE, key=f"{new}.txt", inside=inside)
    yield Attempt(act=Act.MULTIPART, key=f"{new}-parts.txt", inside=inside)
    yield Attempt(act=Act.COPY, key=f"{new}-copy.txt", inside=inside, source=own)
    if place.exists:
        for act in (Act.COPY, Act.COPY_PART):
            target = f"{inside}{act}-{place.name}-{level}.txt"
            yield Attempt(act=act, key=target, inside=inside, source=place.sentinel)


def expected_inside(level: AccessLevel, *, inside: str, own: str) -> Iterator[Attempt]:
    """Yield the requests that a credential of this level must permit on its own keys. `own` is the key of an object
    among them.
    """
    yield Attempt(act=Act.READ, key=own, inside="", exists=True)
    yield Attempt(act=Act.LIST, key=inside, inside=_EVERY_NAME)
    written = f"{inside}written-{level}.txt"
    if level is not AccessLevel.READ:
        yield Attempt(act=Act.WRITE, key=written, inside="")
    if level is AccessLevel.READ_WRITE_DELETE:
        yield Attempt(act=Act.DELETE, key=written, inside="", exists=True)
