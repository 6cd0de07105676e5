# SPDX-License-Identifier: Apache-2.0
"""Data policies of projects in `lakegate apply`. Files contain the names of the roles in definitions, the API their
ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.apply import ApplyError
from gateway.apply.bindings import BINDINGS
from gateway.apply.grants import GRANTS
from gateway.apply.nouns import Collector, Noun
from gateway.apply.session import Changing, Reading, Session, is_uuid, usual_id
from gateway.apply.source import Path
from gateway.apply.state import Address, Change, Kind, Resource
from gateway.apply.tags import require_fields
from gateway.obligations.data_policies import (
    AllOf,
    AnyOf,
    Definition,
    Mask,
    NotTest,
    RoleTest,
    RowFilter,
    Test,
    roles_tested_by,
)
from gateway.obligations.validation import problems_of


class DataPolicies(Noun):
    """Data policies. A change writes the version that follows the compared one. A new policy is not bound yet."""

    kind, member, folded, may_be_hidden = Kind.DATA_POLICY, "data-policies", True, True
    fields = ("name", "description", "applies-to", "allow-append", "definition")
    new = {"applies-to": "everyone", "allow-append": False}
    contents = (GRANTS, BINDINGS)

    def stated(self, to: Collector, path: Path, entry: Any) -> dict[str, Any]:
        """Return the fields that the file sets. Raises InvalidSource for an invalid definition."""
        fields = super().stated(to, path, entry)
        if entry.definition is not None:
            for each in problems_of(entry.definition, None):
                steps = (int(step) if step.isdigit() else step for step in each.pointer.split("/")[1:])
                raise to.source.error((*path, "definition", *steps), f"{each.problem}.")
            # The ids are converted to the usual form of a UUID, as in responses of the gateway.
            fields["definition"] = msgspec.to_builtins(with_roles(entry.definition, usual_id))
        return fields

    def present(self, reading: Reading, address: Address, id: str, row: Mapping[str, Any]) -> Resource:
        """Return the existing policy, with its version as `spec`. Raises MixedRole."""
        fields = dict(super().present(reading, address, id, row).fields)
        wanted = reading.wanted.resources.get(address)
        names = reading.located.role_names(address.within(Kind.PROJECT))
        try:
            fields["definition"] = readable(
                row["definition"], names, None if wanted is None else wanted.fields.get("definition")
            )
        except MixedRole as error:
            raise MixedRole(f"{address}: {error}") from None
        return Resource(address, fields, id=id, spec=row["version"])

    def require(self, change: Change, present: Resource | None) -> None:
        """Raise NotChangeable if a new data policy has no definition."""
        if present is None:
            require_fields(change, "definition")

    def update(self, session: Changing, desired: Resource, changed: Mapping[str, Any]) -> None:
        """Write the next version of a data policy, unless another client has written a version meanwhile."""
        present = session.present.resources[desired.address]
        body = self.body(session, desired.address, {**present.fields, **desired.fields})
        session.change("PUT", desired.address, "", {**body, "if-version": present.spec})

    def body(self, session: Session, address: Address, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields as a request body, in which roles have ids. Raises UnknownRole."""
        found = super().body(session, address, fields)
        stated = msgspec.convert(found["definition"], Definition)
        found["definition"] = msgspec.to_builtins(
            with_roles(stated, lambda role: session.located.principal(f"role:{role}", address)["role"])
        )
        return found


DATA_POLICIES = DataPolicies()


class MixedRole(ApplyError):
    """The definition of a data policy refers to one role both by its name and by its UUID."""


def with_roles(definition: Definition, rename: Callable[[str], str]) -> Definition:
    """Return the definition with the role of each `has-role` test replaced by the result of `rename`."""
    return definition if isinstance(definition, Mask) else RowFilter(_test(definition.test, rename))


def _test(test: Test, rename: Callable[[str], str]) -> Test:
    match test:
        case AllOf(operands=operands):
            return AllOf(tuple(_test(each, rename) for each in operands))
        case AnyOf(operands=operands):
            return AnyOf(tuple(_test(each, rename) for each in operands))
        case NotTest(operand=operand):
            return NotTest(_test(operand, rename))
        case RoleTest(role=role):
            return RoleTest(rename(role))
        case _:
            return test


def readable(definition: Any, names: Mapping[str, str], wanted: Any | None) -> Any:
    """Return the definition in a response in the form of the file, with the names of its roles.

    `names` is {id: name}. If the file's definition `wanted` contains the UUID of a role, the role keeps it. A
    definition of a form that this version does not know is returned unchanged. Raises MixedRole.
    """
    try:
        found = msgspec.convert(definition, Definition)
        kept = frozenset[str]() if wanted is None else roles_tested_by(msgspec.convert(wanted, Definition))
    except msgspec.ValidationError:
        return definition
    for role in kept & names.keys():
        if names[role] in kept:
            raise MixedRole(f"the role {names[role]!r} is also given by its UUID. Give it only once in a definition.")

    def name(role: str) -> str:
        known = names.get(role, role)
        # If the name has the form of a UUID, the id is returned, because the name would be read as an id.
        return role if role in kept or is_uuid(known) else known

    return msgspec.to_builtins(with_roles(found, name))
