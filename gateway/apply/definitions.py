# SPDX-License-Identifier: Apache-2.0
"""Rename the roles in definitions of data policies: files have the names of roles, and the API has their ids. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from gateway.apply.collector import is_uuid
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


class MixedRole(Exception):
    """A definition names one role by its name and by its UUID."""


def with_roles(definition: Definition, rename: Callable[[str], str]) -> Definition:
    """Return the definition with the role of each `has-role` test replaced by `rename(role)`."""
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


def stored(definition: Any, role_id: Callable[[str], str]) -> Any:
    """Return the definition of a file as the API has it. `role_id` returns the id of a role by its name or UUID."""
    return msgspec.to_builtins(with_roles(msgspec.convert(definition, Definition), role_id))


def readable(definition: Any, names: Mapping[str, str], wanted: Any | None) -> Any:
    """Return the definition of an answer with the names of its roles, as a file states it.

    `names` is {id: name}. A role that the definition `wanted` of the file names by its UUID keeps the UUID. A
    definition that this version does not know is returned as it is. Raises MixedRole.
    """
    try:
        found = msgspec.convert(definition, Definition)
        kept = frozenset[str]() if wanted is None else roles_tested_by(msgspec.convert(wanted, Definition))
    except msgspec.ValidationError:
        return definition
    for role in kept & names.keys():
        if names[role] in kept:
            raise MixedRole(f"the role {names[role]!r} is named by its UUID too. Name it in one way in a definition.")

    def name(role: str) -> str:
        known = names.get(role, role)
        # A name in the form of a UUID would be read as an id.
        return role if role in kept or is_uuid(known) else known

    return msgspec.to_builtins(with_roles(found, name))
