# SPDX-License-Identifier: Apache-2.0
"""Replay recorded decisions with two sets of policies, and group the answers that differ.

A line of a log of decisions is an audit record, or an object with the field `input` (the complete input of the
policies, as in OPA's decision log). An audit record lacks some fields of the input. They are null or empty in the
replay, and `unrecorded_inputs` names those that the guardrails read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Final

import msgspec

from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditedResource, AuditRecord
from gateway.access.decisions.policy import PolicyActor, PolicyContext, PolicyQuestion, PolicyResource
from gateway.opa.decider import WireAnswer
from gateway.opa.syntax import Module, calls, constant_path

#: Fields of the input that an audit record does not have, by their name in rules.
UNRECORDED: Final[Mapping[str, str]] = {
    "roles": "input.actor.roles",
    "groups_known": "input.actor.groups_known",
    "namespace_ids": "resource.namespace_ids",
    "former_names": "resource.former_names",
    "former_namespaces": "resource.former_namespaces",
    "former_names_complete": "resource.former_names_complete",
    "warehouse": "resource.warehouse",
    "project_id": "resource.project_id",
    "facts": "question.facts",
}
#: Fields that are different in each request. Without a rule that reads them, equal inputs are evaluated once.
_VARYING: Final = ("request_id", "time", "user_agent", "client_address")

_TIME: Final = ("input", "context", "time")
WHOLE: Final = "\0"
"""Stands for all fields in the names of those that rules read."""

NOT_READ: Final = "not read"
"""The value of fields that no rule reads. As a time it is invalid."""

_encode: Final = msgspec.json.Encoder().encode
_records: Final = msgspec.json.Decoder(AuditRecord)


class InvalidRecord(Exception):
    """A line of the log is neither an audit record nor an object with `input`."""


Key = tuple[bytes, bytes]
"""The frame and the question of a recorded decision."""


class Recorded(msgspec.Struct):
    """Equal questions to the policies: how many records have them, and the first of these records.

    `frame` is the caller with its circumstances, `question` the operation on an object, both as JSON of the input.
    """

    frame: bytes
    question: bytes
    operation: str
    example: str
    count: int = 1

    @property
    def key(self) -> Key:
        """The frame and the question."""
        return self.frame, self.question


class Difference(msgspec.Struct, frozen=True, order=True):
    """A kind of difference: what happens now, the operation, and the codes of the denials before or after.

    `kind` is `allow` (was denied), `deny` (was allowed), `weaker` or `stricter` (other obligations), or `error` (the
    new policies fail). A difference widens access if it is `allow` or `weaker`.
    """

    kind: str
    operation: str
    detail: tuple[str, ...] = ()

    @property
    def widens(self) -> bool:
        return self.kind in ("allow", "weaker")

    def __str__(self) -> str:
        return " ".join([self.kind, self.operation, *self.detail])


class Group(msgspec.Struct):
    """The number of recorded decisions with a difference, and one of them."""

    difference: Difference
    count: int
    example: str


class _Frame(msgspec.Struct):
    actor: PolicyActor
    context: PolicyContext


class _GivenFrame(msgspec.Struct):
    actor: dict[str, Any]
    context: dict[str, Any]


class _GivenInput(msgspec.Struct):
    actor: dict[str, Any]
    context: dict[str, Any]
    questions: list[dict[str, Any]]


class _Lined(msgspec.Struct):
    input: _GivenInput | None = None
    decision_id: str = ""


def read_inputs(modules: Sequence[Module]) -> frozenset[str]:
    """Return the names of all fields that rules can read, with `WHOLE` for the whole input or its whole context."""
    found: set[str] = set()
    for module in modules:
        found.update(_strings(module.rules))
        for parts in module.references():
            path = constant_path(parts)
            if path[:1] == ("input",) and (len(path) == 1 or (path[1] == "context" and len(path) == 2)):
                found.add(WHOLE)
    return frozenset(found)


def time_is_only_parsed(modules: Sequence[Module]) -> bool:
    """Return True if rules read the time of a request only as the argument of `time.parse_rfc3339_ns`.

    Then an evaluation with an invalid time fails exactly if it reads the time. All other evaluations do not depend on
    it.
    """
    reads = parses = 0
    for module in modules:
        reads += sum(each == "time" for each in _strings(module.rules))
        for parts, arguments in calls(module.rules):
            if constant_path(parts) == ("time", "parse_rfc3339_ns") and arguments:
                parses += arguments[0].get("type") == "ref" and constant_path(arguments[0]["value"]) == _TIME
    return reads == parses and WHOLE not in read_inputs(modules)


def unrecorded_inputs(modules: Sequence[Module]) -> list[str]:
    """Return the fields of the input that guardrails read and an audit record lacks."""
    guardrails = [each for each in modules if each.package[:2] == ("gateway", "guardrails")]
    read = read_inputs(guardrails)
    return [name for field, name in UNRECORDED.items() if field in read or WHOLE in read]


def distinct(lines: Iterable[bytes], read: frozenset[str], only: Set[Key] | None = None) -> list[Recorded]:
    """Return the different questions in the lines of a log, sorted by frame.

    Fields outside of `read` make no difference. With `only`, return those whose key without the time is in `only`.
    Raises InvalidRecord with the number of the line.
    """
    unset = {} if WHOLE in read else {name: NOT_READ for name in _VARYING if name not in read}
    found: dict[Key, Recorded] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            recorded = list(_recorded(line, unset))
            timeless = recorded if only is None else _recorded(line, {**unset, "time": NOT_READ})
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidRecord(f"line {number} is neither an audit record nor has it an `input`: {error}") from None
        for each, without_time in zip(recorded, timeless, strict=True):
            if only is not None and without_time.key not in only:
                continue
            if (known := found.get(each.key)) is not None:
                known.count += 1
            else:
                found[each.key] = each
    return [found[key] for key in sorted(found)]


def difference(operation: str, old: WireAnswer | None, new: WireAnswer | None) -> Difference | None:
    """Return how the answers differ; None if they do not. An answer is None if the policies fail."""
    if old is None or new is None:
        return None if old is new else Difference("error" if new is None else "allow", operation, ("failed",))
    if old.allow != new.allow:
        codes = tuple(sorted({each.code for each in (old if new.allow else new).reasons}))
        return Difference("allow" if new.allow else "deny", operation, codes)
    if old.allow and old.obligations != new.obligations:
        return Difference(_obliges(old, new), operation, _changed(old, new))
    return None


def grouped(found: Iterable[tuple[Recorded, Difference]]) -> list[Group]:
    """Return the differences with the number of records and an example, those that widen access first."""
    groups: dict[Difference, Group] = {}
    for recorded, difference in found:
        group = groups.setdefault(difference, Group(difference, 0, recorded.example))
        group.count += recorded.count
    return sorted(groups.values(), key=lambda each: (not each.difference.widens, each.difference))


def _obliges(before: WireAnswer, after: WireAnswer) -> str:
    """Return `stricter` if the new obligations contain the old ones, else `weaker`."""
    left, right = before.understood(), after.understood()
    if not (left.allow and right.allow):
        return "stricter" if left.allow else "weaker"
    return "stricter" if left.obligations.merged(right.obligations) == right.obligations else "weaker"


def _changed(before: WireAnswer, after: WireAnswer) -> tuple[str, ...]:
    left, right = (msgspec.to_builtins(each.obligations) for each in (before, after))
    return tuple(sorted(name for name in {*left, *right} if left.get(name) != right.get(name)))


def _recorded(line: bytes, unset: Mapping[str, str]) -> Iterator[Recorded]:
    given = msgspec.json.decode(line, type=_Lined)
    if given.input is not None:
        actor, context = given.input.actor, {**given.input.context, **unset}
        frame = _encode(_GivenFrame(actor, context))
        example = given.decision_id or f"{actor.get('kind', '')} {actor.get('id', '')}".strip()
        for each in given.input.questions:
            yield Recorded(frame, _encode(each), str(each.get("operation")), example)
        return
    record = _records.decode(line)
    frame, example = _encode(_Frame(_actor(record.actor), _context(record, unset))), ""
    for decision in record.decisions:
        if decision.outcome != "unavailable":
            example = example or _example(record)
            yield Recorded(frame, _encode(_question(decision)), decision.operation, example)


def _context(record: AuditRecord, unset: Mapping[str, str]) -> PolicyContext:
    context: dict[str, Any] = {
        "request_id": record.request_id,
        "time": record.at.isoformat().replace("+00:00", "Z"),
        "user_agent": record.user_agent,
        "client_address": record.client_address,
    }
    return PolicyContext(**{**context, **unset})


def _actor(actor: AuditedActor) -> PolicyActor:
    return PolicyActor(
        id=actor.id,
        kind=actor.kind,
        assumed_role=actor.assumed_role,
        engine=actor.engine,
        subject_proven=actor.subject_proven,
        asked_by=actor.asked_by,
    )


def _question(decision: AuditedDecision) -> PolicyQuestion:
    about = decision.resources[0] if decision.resources else AuditedResource(type="server")
    name, namespace = about.name, None
    if about.type in ("table", "view", "generic_table", "column") and name is not None and "." in name:
        *namespace, name = name.split(".")
    elif about.type == "namespace" and name is not None:
        namespace = name.split(".")
    resource = PolicyResource(
        type=about.type, id=about.id, name=name, namespace=namespace, warehouse_id=about.warehouse_id
    )
    return PolicyQuestion(operation=decision.operation, resource=resource)


def _example(record: AuditRecord) -> str:
    about = record.decisions[0].resources[:1]
    on = f" on {about[0].type} {about[0].name or about[0].id}" if about else ""
    return f"{record.actor.kind} {record.actor.id}{on} at {record.at.isoformat()} (record {record.id})"


def _strings(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if node.get("type") == "string" and isinstance(node.get("value"), str):
            yield node["value"]
        for value in node.values():
            yield from _strings(value)
    elif isinstance(node, list):
        for value in node:
            yield from _strings(value)
