# SPDX-License-Identifier: Apache-2.0
"""Declare the event that an operation announces when its change is committed.

Each operation that changes something declares `event`: a `ChangeEvent`, or `NoEvent` with the reason.
`event_building.py` builds the events of one change from the declaration, the resolved rows and the audit record.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from gateway.access.demand import Facts

MAX_CONTENTS: Final = 5_000
"""Limit of the objects in a namespace that are announced when it is dropped or moved with its contents."""


class EventData(StrEnum):
    """The source of the `data` of an event."""

    NOTHING = "nothing"
    """null, as the reference system sends for drops, registrations and renames of views."""
    BODY = "body"
    """The request body. Only for the catalog protocol, whose bodies contain no credentials."""
    FACTS = "facts"
    """The facts that policies receive: limited in size, and never secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEvent:
    """Declaration of the event of an operation.

    `type` is the CloudEvents type; empty stands for the operation's name in camelCase. `on` is the path of the
    field with the changed object: a reference, or the id of an object of the type `kind`. For a new object, `on` is
    its parent (empty for one without), `new` is the detail of the audit record with its id (`table_id`), and `named` is
    the path of the field with its name. `kind_in` is the detail with the type of the object, if the operation does not
    know it. A system task without the detail `new` announces nothing. `replaces` is the detail with the id of a table
    that the new one replaced, which has an event `dropTable` of its own.
    """

    on: str
    type: str = ""
    kind: str = ""
    kind_in: str = ""
    new: str = ""
    replaces: str = ""
    named: str = ""
    data: EventData = EventData.FACTS


@dataclass(frozen=True, slots=True)
class EventPerPart:
    """Declaration of an operation that consists of parts: it announces one numbered event for each part."""


@dataclass(frozen=True, slots=True)
class EventPerTarget:
    """Declaration of an operation on several objects.

    It announces one numbered event for each reference in the field `targets`.
    """

    targets: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class EventPerFurtherChange:
    """Declaration of an operation whose fields do not tell what it changes.

    Its use case lists the changes in `PendingAudit.further_changes`.
    """


@dataclass(frozen=True, slots=True)
class NoEvent:
    """Declaration that an operation announces nothing, with the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class DroppedObject:
    """An object that is dropped together with its namespace. `name` is empty for a namespace.

    With `ends_deletion`, it was dropped earlier, and cannot be restored any more.
    """

    kind: str
    id: str
    namespace: tuple[str, ...]
    name: str = ""
    ends_deletion: bool = False


@dataclass(frozen=True, slots=True)
class MovedObject:
    """An object whose full name changed because a namespace above it was moved or renamed.

    `name` is empty for a namespace. `namespace` and `destination` are the namespace levels before and after the move.
    """

    kind: str
    id: str
    namespace: tuple[str, ...]
    destination: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FurtherEvent:
    """The event of a change that the operation's fields do not contain, such as a grant that drift repair adopts.

    `data` are facts.
    """

    type: str
    kind: str
    id: str
    data: Facts
    project_id: str = ""
    warehouse_id: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class FurtherChanges:
    """The changes of a transaction in addition to that of its operation.

    `left_out` is the number of those without an event.
    """

    changes: Sequence[DroppedObject | MovedObject | FurtherEvent] = ()
    left_out: int = 0

    def all(self) -> FurtherChanges:
        """Return itself. It makes the struct usable where a function that returns the changes is needed."""
        return self

    @staticmethod
    def limited(changes: Sequence[DroppedObject | MovedObject]) -> FurtherChanges:
        """Return the changes of a namespace's contents.

        If there are more than MAX_CONTENTS, return only their number.
        """
        return FurtherChanges(left_out=len(changes)) if len(changes) > MAX_CONTENTS else FurtherChanges(changes)


EventDeclaration = ChangeEvent | EventPerPart | EventPerTarget | EventPerFurtherChange | NoEvent


def type_of(declared: str, operation: str) -> str:
    """Return the declared CloudEvents type.

    If it is empty, return the class name `operation` in camelCase: `createTable`.
    """
    return declared or operation[:1].lower() + operation[1:]
