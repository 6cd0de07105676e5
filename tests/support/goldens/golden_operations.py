# SPDX-License-Identifier: Apache-2.0
"""Render every operation as policies receive it and as the audit records it, in a table for each object type.

Each example of an operation passes a real door; the policy input and the audit record that it sends are rendered. So
the tables do not depend on the declaration of an operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import msgspec

import gateway.features.all_routes  # noqa: F401 - the import serves every operation
from gateway.access.actor import Actor
from gateway.access.audit.audit_record import AUDIT_FORMAT, AuditRecord
from gateway.access.demand import Demand, Fact
from gateway.access.door.request_context import RequestContext
from gateway.access.idempotency import RecordedSuccess
from gateway.access.nouns.cards import policy_operation_name
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.operation import UNROUTED, Audience, ChangeOperation, HttpOperation, Operation, Step, SystemTask
from gateway.access.operations import tasks
from gateway.access.operations.steps import AssumeRole, ReadThroughView, RepeatAnswer
from gateway.fga.compiled import actions_of, compiled_model
from tests.support.door import world
from tests.support.door.examples import EXAMPLES
from tests.support.door.world import DoorFixture
from tests.support.runs.golden_files import table

_ID = UUID("00000000-0000-4000-8000-00000000000a")

#: An example of each operation without a request.
_UNROUTED: Sequence[Operation] = (
    AssumeRole(world.ROLE),
    ReadThroughView(world.VIEW),
    RepeatAnswer("drop_table"),
    tasks.PurgeTable(world.WAREHOUSE, world.TABLE_ID, "s3://lake/orders"),
    tasks.ExpireStagedTable(world.WAREHOUSE, world.TABLE_ID),
    tasks.ExpireDeleted(world.WAREHOUSE, world.TABLE_ID),
    tasks.CleanTaskLog(world.PROJECT),
    tasks.SweepMetadataFiles(world.WAREHOUSE, ("s3://lake/orders/metadata/00001.metadata.json",)),
    tasks.VerifyCredentialScope(world.WAREHOUSE),
    tasks.CompareTuples(repairs=True),
    tasks.RepairDrift(tuples=("user:x select table:y",), kinds=("unwanted",)),
    tasks.ChangeEncryptionKey(secrets=(str(_ID),)),
    tasks.MoveSecret(secret=str(_ID), to="kv2"),
    tasks.WithdrawSigningKeys(),
    tasks.ReopenBootstrap(),
    tasks.ReopenBootstrap(user_id=world.BOB_ID),
    tasks.IssueScimToken("oidc", world.PROJECT_ID, 30),
    tasks.RevokeScimToken(_ID),
    tasks.ReplayEventsByCommand(sinks=("bus",), start="4711"),
    tasks.RetryDeadLettersByCommand(sinks=("bus",)),
    tasks.ForgetEventSink("bus"),
)

_HEAD = """\
# Operations

What policies (OPA) receive and what the audit records. A golden file: see "Golden files" in ARCHITECTURE.md.

- **request**: method and path; older paths of the same operation follow. What no request names has its occasion.
- **demands**: the relations that the caller needs, each with the type of its object. `a or b`: one of them is enough.
  `?`: only asked, the answer decides how the operation is done.
- **facts**: what policies receive beside the name and the resource, with the types of the values that were seen.
- **audit**: the types of the recorded resources, and in brackets the details that the operation itself adds.
- **record**: when the audit record is durable. `with_change` changes something.
- **notes**: `mutation` answers 429 where others answer 503; `key` takes an idempotency key; `pauses` is refused in
  read-only maintenance, `lost in maintenance` with 400; `no token`, `any token` and `self` are open as SECURITY.md
  lists them; `consists of` names the operations that policies receive, for each part, in place of this one.

Each table has the resource type that policies receive with the operation.
"""

_HEADS = ("operation", "request", "demands", "facts", "audit", "record", "notes")


@dataclass
class _Line:
    """The values seen for one operation, over all its examples. Dictionaries serve as ordered sets."""

    operation: Operation
    demands: dict[str, None] = field(default_factory=dict)
    facts: dict[str, set[str]] = field(default_factory=dict)
    parts: set[str] = field(default_factory=set)
    resources: dict[str, None] = field(default_factory=dict)
    details: set[str] = field(default_factory=set)

    def cells(self, name: str) -> list[str]:
        """Return the line of the table."""
        facts = [f"{fact} ({', '.join(sorted(kinds))})" for fact, kinds in sorted(self.facts.items())]
        details = f" ({', '.join(sorted(self.details))})" if self.details else ""
        return [
            name,
            _request(self.operation),
            ", ".join(self.demands),
            ", ".join(facts),
            ", ".join(self.resources) + details,
            self.operation.durability.value,
            ", ".join((*_notes(self.operation), *(f"consists of {part}" for part in sorted(self.parts)))),
        ]


async def render() -> str:
    """Return the tables. Raise LookupError for an operation without an example."""
    by_type: dict[str, dict[str, _Line]] = {}
    for operation in (*(example.operation for example in EXAMPLES), *_UNROUTED):
        await _admit(operation, by_type)
    missing = set(UNROUTED) - {type(operation).__name__ for operation in _UNROUTED}
    if missing:
        raise LookupError(f"No example of {', '.join(sorted(missing))}.")
    sections = [
        f"\n## {type}\n\n{table(_HEADS, (line.cells(name) for name, line in sorted(lines.items())))}"
        for type, lines in sorted(by_type.items())
    ]
    return "".join((_HEAD, *sections, _actions(), _audit_fields()))


async def _admit(operation: Operation, by_type: dict[str, dict[str, _Line]]) -> None:
    """Admit an operation at the door, and record the policy input and the audit record."""
    for actor in _actors(operation):
        door_fixture = DoorFixture()
        context = RequestContext(actor=actor, request_id="request-1", recorded_success=_recorded_success(operation))
        permit = await door_fixture.door.admit(context, operation)
        questions = [question for request in door_fixture.rules.calls for question in request.questions]
        record = permit.pending_audit.record
        own, *parts = record.decisions
        for about in {question.resource.type for question in questions} or {"no question to policies"}:
            line = by_type.setdefault(about, {}).setdefault(own.operation, _Line(operation))
            line.demands.update(dict.fromkeys(_demand(demand) for demand in operation.demands()))
            line.resources.update(dict.fromkeys(resource.type for resource in own.resources))
            line.parts.update(part.operation for part in parts)
            line.details.update(record.detail)
        for question in questions:
            line = by_type[question.resource.type][own.operation]
            for name, value in question.facts.items():
                line.facts.setdefault(name, set()).add(_kind(value))


def _kind(value: Fact) -> str:
    """Return the JSON type of a fact."""
    kinds: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", tuple: "array", type(None): "null"}
    return kinds[type(value)]


def _actors(operation: Operation) -> list[Actor]:
    if isinstance(operation, SystemTask):
        return [Actor.system(task) for task in sorted(operation.system_tasks)]
    return [world.ALICE]


def _recorded_success(operation: Operation) -> RecordedSuccess | None:
    return RecordedSuccess(204, {}, 1) if isinstance(operation, RepeatAnswer) else None


def _demand(demand: Demand) -> str:
    relations = " or ".join(demand.relations)
    engine = f" or {demand.restricted} through an enforcer" if demand.restricted is not None else ""
    return f"{demand.on.type} {relations}{engine}{'' if demand.required else '?'}"


def _request(operation: Operation) -> str:
    if isinstance(operation, HttpOperation):
        method, path = operation.endpoint.split(" ", 1)
        return " ".join((f"`{method} {path}`", *(f"`{older}`" for older in operation.also_at)))
    if isinstance(operation, SystemTask):
        return f"task: {', '.join(sorted(operation.system_tasks))}"
    assert isinstance(operation, Step)
    return operation.occasion


def _notes(operation: Operation) -> Iterable[str]:
    notes = {
        "no token": operation.is_public(),
        "any token": operation.is_open(Audience.AUTHENTICATED),
        "self": operation.is_open(Audience.SELF),
        "mutation": operation.is_catalog_mutation(),
        "key": operation.uses_idempotency_keys(),
        "pauses": operation.pauses(),
        "lost in maintenance": isinstance(operation, ChangeOperation) and bool(operation.refused_for_good),
    }
    return (note for note, applies in notes.items() if applies)


def _actions() -> str:
    """Return the operation name in policies for each action that a caller can check."""
    of_model = actions_of(compiled_model())
    rows = [
        (type.value, action.value, policy_operation_name(type, action))
        for type in sorted(ObjectType)
        for action in sorted(Can)
        if action in of_model.get(type, frozenset())
    ]
    return f"""
## Actions

What policies receive when a caller asks whether an action is allowed, without doing it.

{table(("type", "action", "operation"), rows)}"""


def _audit_fields() -> str:
    """Return the fields of an audit record in JSON; `[]` stands for any element, `*` for any key."""
    rows = _fields(msgspec.json.schema(AuditRecord), msgspec.json.schema(AuditRecord)["$defs"], "")
    return f"\n## Audit record, format {AUDIT_FORMAT}\n\n{table(('field', 'type'), rows)}"


def _fields(schema: Mapping[str, Any], structs: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Yield (path, type) of everything below `path`."""
    struct = structs[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    kinds = [each for each in struct.get("anyOf", [struct]) if each != {"type": "null"}]
    if kinds != [struct]:
        for each in kinds:
            yield from _fields(each, structs, f"{path}?")
        return
    if path:
        yield path, " ".join(filter(None, (struct.get("type"), struct.get("format"))))
    for name, each in struct.get("properties", {}).items():
        yield from _fields(each, structs, f"{path}.{name}" if path else name)
    if isinstance(struct.get("items"), dict):
        yield from _fields(struct["items"], structs, f"{path}[]")
    if isinstance(struct.get("additionalProperties"), dict):
        yield from _fields(struct["additionalProperties"], structs, f"{path}.*")
