# SPDX-License-Identifier: Apache-2.0
"""Restrictions of recorded callers by two definitions of data policies: who they apply to, and what widens."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest

from gateway.access.audit.audit_record import AuditedActor
from gateway.access.audit.audited_inputs import CallerInputs
from gateway.access.nouns.refs import ObjectKey
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Excerpt
from gateway.access.restrictions.replayed_restrictions import (
    ChangedPolicy,
    MappedValue,
    PolicyWorld,
    RestrictionChange,
    RestrictionReplay,
)
from gateway.obligations.data_policies import AppliesTo, BoundPolicy, DataPolicy, Definition, PolicyInputs

TABLE = UUID(int=1)
FIELDS = [
    {"id": number, "name": name, "required": name == "key", "type": type}
    for number, name, type in ((1, "region", "string"), (2, "email", "string"), (3, "key", "uuid"))
]
DOCUMENT = {"current-schema-id": 0, "schemas": [{"schema-id": 0, "type": "struct", "fields": FIELDS}]}
ANN = AuditedActor(kind="user", id="oidc~ann")
MEMBER = CallerInputs(roles=("role",))
SUBJECTS = {"applies_to": AppliesTo.SUBJECTS}


def rows(test: dict[str, Any]) -> Definition:
    read: Definition = msgspec.convert({"kind": "row-filter", "test": test}, Definition)
    return read


def among(*values: str) -> Definition:
    return rows({"type": "in", "column": {"name": "region"}, "values": values})


def mask(action: str, *names: str) -> Definition:
    stated = {"kind": "mask", "action": action, "columns": [{"name": each} for each in names]}
    read: Definition = msgspec.convert(stated, Definition)
    return read


OF_MAPPING = rows(
    {
        "type": "in",
        "column": {"name": "region"},
        "values": {"type": "attribute", "source": "mapping", "name": "Regions"},
    }
)


def policy(definition: Definition, **more: Any) -> DataPolicy:
    return DataPolicy(id="p", version=1, definition=definition, **more)


def change(
    old: DataPolicy,
    new: DataPolicy,
    *,
    actor: AuditedActor = ANN,
    caller: CallerInputs = MEMBER,
    holds: frozenset[Can] = frozenset(),
    recorded: tuple[int, ...] = (),
    mapped: tuple[MappedValue, ...] = (),
) -> RestrictionChange | None:
    bound = BoundPolicy(policy=old, recorded=recorded)
    excerpt = Excerpt("file", json.dumps(DOCUMENT).encode())
    known = PolicyWorld({TABLE: PolicyInputs(bound=(bound,))}, {TABLE: excerpt}, mapped)

    def relates(_actor: AuditedActor, _caller: CallerInputs, on: ObjectKey, relation: Can) -> tuple[bool, bool]:
        return on.id == "p" and relation in holds, on.id == "p" and relation in holds

    return RestrictionReplay(known, {"p": ChangedPolicy("pii", new)}, relates).change(actor, caller, TABLE, "project")


@pytest.mark.parametrize(
    ("old", "new", "wider", "parts"),
    [
        (among("eu"), among("eu", "us"), True, ("rows",)),
        (among("eu", "us"), among("eu"), False, ("rows",)),
        (among("eu"), mask("mask-alphanum", "email"), True, ("rows", "column=email")),
        (mask("mask-alphanum", "email"), mask("replace-with-null", "email"), False, ("column=email",)),
        (mask("replace-with-null", "email"), mask("mask-alphanum", "email"), True, ("column=email",)),
        (mask("mask-alphanum", "email"), mask("mask-alphanum", "email", "region"), False, ("column=region",)),
    ],
)
def test_change_is_wider_unless_it_is_proven_narrower(
    old: Definition, new: Definition, wider: bool, parts: tuple[str, ...]
) -> None:
    assert change(policy(old), policy(new)) == RestrictionChange(wider, ("pii",), parts)


def test_policy_applies_to_subjects_without_exemption_and_to_asserted_users() -> None:
    few, all_rows = policy(among("eu"), **SUBJECTS), policy(among("eu", "us"), **SUBJECTS)
    subject, exempt = frozenset({Can.BE_SUBJECT}), frozenset({Can.BE_SUBJECT, Can.SKIP_POLICY})
    assert change(few, all_rows) is None
    assert change(few, all_rows, holds=subject) is not None
    assert change(few, all_rows, holds=exempt) is None
    asserted = msgspec.structs.replace(ANN, subject_proven=False)
    assert change(few, all_rows, actor=asserted, holds=exempt) is not None
    assert change(few, all_rows, caller=CallerInputs(groups_known=False)) is not None
    lifted = change(policy(among("eu")), policy(among("eu"), **SUBJECTS))
    assert lifted == RestrictionChange(True, ("pii",), ("rows",))


def test_mapped_values_of_the_caller_and_its_roles_count() -> None:
    values = (MappedValue("project", "regions", "role", "eu"), MappedValue("other", "regions", "role", "us"))
    narrower = change(policy(among("eu", "us")), policy(OF_MAPPING), mapped=values)
    assert narrower == RestrictionChange(False, ("pii",), ("rows",))
    more = (*values, MappedValue("project", "regions", ANN.id, "asia"))
    assert change(policy(among("eu", "us")), policy(OF_MAPPING), mapped=more) == RestrictionChange(
        True, ("pii",), ("rows",)
    )
    assumed = msgspec.structs.replace(ANN, assumed_role="another")
    none = change(policy(among("eu")), policy(OF_MAPPING), mapped=more, actor=assumed)
    assert none == RestrictionChange(False, ("pii",), ("rows",)), "without a value, no row is visible"


def test_columns_are_recorded_again_when_the_names_change() -> None:
    """A change of the names records the columns of the binding again. So the earlier column becomes visible."""
    old, new = policy(mask("mask-alphanum", "email")), policy(mask("mask-alphanum", "region"))
    assert change(old, new, recorded=(2,)) == RestrictionChange(True, ("pii",), ("column=email", "column=region"))
    stricter = policy(mask("replace-with-null", "email"))
    assert change(old, stricter, recorded=(2, 1)) == RestrictionChange(
        False, ("pii",), ("column=email", "column=region")
    )


def test_equal_definitions_and_other_tables_do_not_differ() -> None:
    assert change(policy(among("eu")), msgspec.structs.replace(policy(among("eu")), version=7)) is None
    assert change(policy(among("eu")), policy(among("us")), actor=AuditedActor(kind="system", id="task")) is None
