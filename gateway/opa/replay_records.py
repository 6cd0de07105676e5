# SPDX-License-Identifier: Apache-2.0
"""Read the questions to policies in a log of recorded decisions, each different one once.

A line is an audit record, or an object with the field `input` (the complete input of the policies, as in OPA's decision
log). Audit records of earlier versions lack inputs. Their decisions are counted, and nothing is assumed about them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, Final, NamedTuple

import msgspec

from gateway.access.audit.audit_record import AuditedActor, AuditedDecision, AuditRecord
from gateway.access.audit.audited_inputs import CallerInputs
from gateway.access.audit.recorded_inputs import policy_actor, policy_context, policy_question, replayable
from gateway.access.decisions.policy import PolicyActor, PolicyContext

WHOLE: Final = "\0"
"""Stands for all fields in the names of those that rules read."""

NOT_READ: Final = "not read"
"""The value of fields that no rule reads. As a time it is invalid."""

#: Fields that are different in each request. Without a rule that reads them, equal inputs are evaluated once.
_VARYING: Final = ("request_id", "time", "user_agent", "client_address")

_encode: Final = msgspec.json.Encoder().encode
_records: Final = msgspec.json.Decoder(AuditRecord)
_NONE: Final = msgspec.Raw(b"")


class InvalidRecord(Exception):
    """A line of the log is neither an audit record nor an object with `input`."""


Key = tuple[bytes, bytes, str, str]
"""The frame and the question of a recorded decision, its outcome and its failure."""


class Asked(NamedTuple):
    """The caller and the decision of an audit record, with their inputs."""

    actor: AuditedActor
    caller: CallerInputs
    decision: AuditedDecision


class Recorded(msgspec.Struct):
    """Equal questions to the policies with equal outcomes: how many records have them, and the first of these records.

    `frame` is the caller with its circumstances, `question` the operation on an object, both as JSON of the input.
    `asked` is None for inputs of OPA.
    """

    frame: bytes
    question: bytes
    operation: str
    example: str
    count: int = 1
    asked: Asked | None = None

    @property
    def key(self) -> Key:
        """The values that equal questions have in common."""
        outcome, failure = (
            ("", None) if self.asked is None else (self.asked.decision.outcome, self.asked.decision.failure)
        )
        return self.frame, self.question, outcome, failure or ""


class Distinct(NamedTuple):
    """The different questions of a log, sorted by frame, and the number of decisions without recorded inputs."""

    recorded: list[Recorded]
    not_replayable: int


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


class _Given(msgspec.Struct):
    input: _GivenInput
    decision_id: str = ""


class _Parts(msgspec.Struct):
    """The parts of a line that decide whether its questions are new, not decoded."""

    input: msgspec.Raw = _NONE
    actor: msgspec.Raw = _NONE
    inputs: msgspec.Raw = _NONE
    decisions: msgspec.Raw = _NONE
    request_id: msgspec.Raw = _NONE
    at: msgspec.Raw = _NONE
    user_agent: msgspec.Raw = _NONE
    client_address: msgspec.Raw = _NONE


_parts: Final = msgspec.json.Decoder(_Parts)


class _Read(NamedTuple):
    recorded: list[Recorded]
    not_replayable: int


def distinct(lines: Iterable[bytes], read: frozenset[str], only: Set[Key] | None = None) -> Distinct:
    """Return the different questions in the lines of a log, sorted by frame.

    Fields outside of `read` make no difference. With `only`, return those whose key without the time is in `only`.
    Raises InvalidRecord with the number of the line.
    """
    unset = {} if WHOLE in read else {name: NOT_READ for name in _VARYING if name not in read}
    found: dict[Key, Recorded] = {}
    # Equal parts of records have equal questions, so most lines are not decoded.
    alike: dict[bytes, _Read] = {}
    skipped: set[bytes] = set()
    missing = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            parts = _parts.decode(line)
            timeless, digest = _digests(parts, unset)
            if timeless in skipped:
                continue
            known = alike.get(digest)
            if known is not None:
                for each in known.recorded:
                    each.count += 1
                missing += known.not_replayable
                continue
            fresh = _read(line, parts, unset)
            missing += fresh.not_replayable
            kept = fresh.recorded
            if only is not None:
                without_time = _read(line, parts, {**unset, "time": NOT_READ}).recorded
                kept = [each for each, other in zip(kept, without_time, strict=True) if other.key in only]
                if not kept:
                    skipped.add(timeless)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidRecord(f"line {number} is neither an audit record nor has it an `input`: {error}") from None
        alike[digest] = _Read([_merged(found, each) for each in kept], fresh.not_replayable)
    return Distinct([found[key] for key in sorted(found)], missing)


def _merged(found: dict[Key, Recorded], new: Recorded) -> Recorded:
    """Add a question to those that were found, and return the entry that counts it."""
    known = found.setdefault(new.key, new)
    if known is not new:
        known.count += 1
    return known


def _digests(parts: _Parts, unset: Mapping[str, str]) -> tuple[bytes, bytes]:
    """Return digests of the parts of a line that rules can read, without and with its time."""
    stated = [bytes(parts.input), bytes(parts.actor), bytes(parts.inputs), bytes(parts.decisions)]
    stated += [bytes(getattr(parts, name)) for name in _VARYING if name != "time" and name not in unset]
    digest = hashlib.blake2b(b"\0".join(stated), digest_size=16)
    timeless = digest.digest()
    if "time" in unset:
        return timeless, timeless
    digest.update(bytes(parts.at))
    return timeless, digest.digest()


def _read(line: bytes, parts: _Parts, unset: Mapping[str, str]) -> _Read:
    if bytes(parts.input) not in (b"", b"null"):
        return _Read(list(_given(line, unset)), 0)
    record = _records.decode(line)
    caller = record.inputs or CallerInputs()
    context = msgspec.structs.replace(policy_context(record), **unset)
    frame, example = _encode(_Frame(policy_actor(record.actor, caller), context)), ""
    found: list[Recorded] = []
    missing = 0
    for decision in record.decisions:
        if decision.outcome == "unavailable" or decision.determined_by == "none":
            continue
        inputs = decision.inputs
        if inputs is not None and replayable(record, decision):
            example = example or _example(record)
            question = _encode(policy_question(decision, inputs))
            asked = Asked(record.actor, caller, decision)
            found.append(Recorded(frame, question, decision.operation, example, asked=asked))
        elif inputs is not None or record.inputs is None:
            # In a record with inputs, a decision without any stands for its parts, which follow.
            missing += 1
    return _Read(found, missing)


def _given(line: bytes, unset: Mapping[str, str]) -> Iterator[Recorded]:
    given = msgspec.json.decode(line, type=_Given)
    actor, context = given.input.actor, {**given.input.context, **unset}
    frame = _encode(_GivenFrame(actor, context))
    example = given.decision_id or f"{actor.get('kind', '')} {actor.get('id', '')}".strip()
    for each in given.input.questions:
        yield Recorded(frame, _encode(each), str(each.get("operation")), example)


def _example(record: AuditRecord) -> str:
    about = record.decisions[0].resources[:1]
    on = f" on {about[0].type} {about[0].name or about[0].id}" if about else ""
    return f"{record.actor.kind} {record.actor.id}{on} at {record.at.isoformat()} (record {record.id})"
