# SPDX-License-Identifier: Apache-2.0
"""Operations with several parts: each part is decided separately, and one refusal refuses all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from gateway.access.decisions.decision import Decision as Verdict
from gateway.access.decisions.decision import DeterminedBy, Failure, Outcome, all_of, undecided
from gateway.access.decisions.policy import PolicyAnswer, PolicyRequest, Reason
from gateway.access.nouns.authz_errors import TaskNotFound
from gateway.access.nouns.cards import VISIBLE_BY
from gateway.access.nouns.refs import ObjectType, Table, TableRef, TabularRef, View, ViewRef
from gateway.access.nouns.relations import Can
from gateway.access.operations.tables import MAX_TABLES, CommitTable, CommitTransaction
from gateway.access.operations.task_bodies import ControlTasksRequest
from gateway.access.operations.task_control import ControlTasks, FoundTask
from gateway.access.ports import Question
from gateway.iceberg.codec import decode
from gateway.iceberg.errors import (
    BadRequestException,
    CatalogError,
    NoSuchTableException,
    TableActionForbidden,
    TableIdentifierRequiredForCommitTransaction,
    TableIdentifiersNotUnique,
    ViewActionForbidden,
    WarehouseActionForbidden,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import CommitTransactionRequest
from gateway.obligations.kinds import AppendOnly, CredentialLife, HiddenOperations, NoVending
from gateway.obligations.merging import Obligations
from tests.support.door import world
from tests.support.door.world import DoorFixture, Judge, TableResolver, request_context


def transaction(*names: str, create: Sequence[str] = ()) -> CommitTransaction:
    """Return a transaction over tables of one namespace; those of `create` are new."""
    changes = [
        {
            "identifier": {"namespace": list(world.INNER.levels), "name": name},
            "requirements": [{"type": "assert-create"}] if name in create else [],
            "updates": [{"action": "set-properties", "updates": {name: "x"}}],
        }
        for name in names
    ]
    body = json.dumps({"table-changes": changes}).encode()
    return CommitTransaction(world.WAREHOUSE_ID, decode(body, CommitTransactionRequest))


def door_fixture(*names: str, judge: Judge | None = None) -> DoorFixture:
    """Return a house in which these tables exist."""
    resolver = TableResolver()
    for number, name in enumerate(names):
        id = world.TABLE_ID.__class__(int=world.TABLE_ID.int + 100 + number)
        row: Any = world.table_row
        identifier = TableIdentifier(world.INNER, name)
        resolver.rows[TabularRef(Table, world.WAREHOUSE_ID, identifier)] = type(row)(
            **{**{f: getattr(row, f) for f in row.__struct_fields__}, "id": id, "identifier": identifier}
        )
    return DoorFixture(resolver=resolver, judge=judge or Judge())


class PerQuestion:
    """Policies that deny by table name."""

    def __init__(self, *denied: str) -> None:
        self.denied = denied
        self.calls: list[PolicyRequest] = []

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        self.calls.append(request)
        no = PolicyAnswer(allow=False, reasons=(Reason(code="closed", message="Closed."),))
        return tuple(
            no if question.resource.name in self.denied else PolicyAnswer(allow=True) for question in request.questions
        )


async def test_one_round_of_checks_covers_all_tables() -> None:
    at = door_fixture("a", "b", "c")
    await at.door.admit(request_context(), transaction("a", "b", "c", "new", create=["new"]))
    assert (len(at.resolver.calls), len(at.judge.calls), len(at.rules.calls)) == (1, 1, 1)
    questions = at.rules.calls[0].questions
    assert [(each.operation, each.resource.name) for each in questions] == [
        ("commit_table", "a"),
        ("commit_table", "b"),
        ("commit_table", "c"),
        ("commit_table_creation", world.INNER.dotted),
    ]
    assert [each.facts["updated_properties"] for each in questions] == [("a",), ("b",), ("c",), ("new",)]


@pytest.mark.threat("LG-DEC-04")
async def test_one_forbidden_table_refuses_the_transaction_and_is_named() -> None:
    def all_but_b(question: Question) -> bool:
        return question.relation is not Can.COMMIT or not question.object.id.endswith(f"{0x6 + 101:x}")

    at = door_fixture("a", "b", "c", judge=Judge(all_but_b))
    request = request_context()
    with pytest.raises(TableActionForbidden):
        await at.door.admit(request, transaction("a", "b", "c"))
    assert (request.admitted, request.pending_audits) == (set(), [])
    [record] = at.audit.buffered
    assert [(each.operation, each.outcome) for each in record.decisions] == [
        ("commit_transaction", "forbidden"),
        ("commit_table", "allowed"),
        ("commit_table", "forbidden"),
        ("commit_table", "allowed"),
    ]


async def test_one_absent_table_hides_the_transaction() -> None:
    with pytest.raises(NoSuchTableException, match=r"Table does not exist: sales\.eu\.b"):
        await door_fixture("a").door.admit(request_context(), transaction("a", "b"))


async def test_a_policy_against_one_table_refuses_the_transaction() -> None:
    at = door_fixture("a", "b")
    at.rules = PerQuestion("b")  # type: ignore[assignment]  # a substitute with the same interface
    with pytest.raises(CatalogError, match=r"commit_transaction is not allowed .*closed: Closed\."):
        await at.door.admit(request_context(), transaction("a", "b"))


async def test_an_allowed_transaction_is_audited_with_its_parts() -> None:
    at, request = door_fixture("a", "b"), request_context()
    permit = await at.door.admit(request, transaction("a", "b"))
    assert request.admitted == {CommitTransaction}
    commits = [part for part in permit.operation.parts() if isinstance(part, CommitTable)]
    assert [permit.table(part.table).identifier.name for part in commits] == ["a", "b"]
    assert [each.operation for each in permit.pending_audit.record.decisions] == [
        "commit_transaction",
        "commit_table",
        "commit_table",
    ]


def test_a_transaction_names_each_table_once() -> None:
    with pytest.raises(TableIdentifiersNotUnique):
        transaction("a", "A")
    with pytest.raises(BadRequestException):
        transaction()
    with pytest.raises(BadRequestException):
        transaction(*(f"t{number}" for number in range(MAX_TABLES + 1)))
    nameless = decode(b'{"table-changes": [{"requirements": [], "updates": []}]}', CommitTransactionRequest)
    with pytest.raises(TableIdentifierRequiredForCommitTransaction):
        CommitTransaction(world.WAREHOUSE_ID, nameless)


def test_several_verdicts_combine_to_the_first_refusal() -> None:
    yes = Verdict(Outcome.ALLOWED, DeterminedBy.BOTH, obligations=Obligations.of(NoVending()))
    no = Verdict(Outcome.FORBIDDEN, DeterminedBy.OPA, Failure.DENIED_BY_POLICY)
    hidden = Verdict(Outcome.HIDDEN, DeterminedBy.OPENFGA, Failure.RESOURCE_NOT_FOUND)
    assert all_of([yes, hidden, no]) is hidden
    assert all_of([yes, undecided(Failure.ENGINE_UNAVAILABLE)]).outcome is Outcome.UNAVAILABLE
    assert all_of([yes, yes]).allowed


@pytest.mark.threat("LG-DEC-25")
def test_several_obligations_combine_to_the_strictest() -> None:
    both = Obligations().merged(
        Obligations.of(CredentialLife(900), HiddenOperations(frozenset({"a"}))),
        Obligations.of(CredentialLife(1800), AppendOnly(), HiddenOperations(frozenset({"a", "b"}))),
        Obligations.of(NoVending()),
    )
    assert both == Obligations.of(
        CredentialLife(900), NoVending(), AppendOnly(), HiddenOperations(frozenset({"a", "b"}))
    )
    assert Obligations().merged(Obligations()) == Obligations()


_TASKS = [UUID(int=number) for number in range(1, 5)]


def steering(*about: TableRef | ViewRef | None, by_all: bool = False) -> ControlTasks:
    """Return the cancellation of tasks with these targets."""
    ids = _TASKS[: len(about)]
    body = {"action": {"action-type": "cancel"}, "task-ids": [str(id) for id in ids]}
    found = tuple(FoundTask(id, each) for id, each in zip(ids, about, strict=True))
    return ControlTasks(world.WAREHOUSE, decode(json.dumps(body).encode(), ControlTasksRequest), found, by_all)


_OF_TABLE = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID, dropped=True)
_OF_VIEW = TabularRef(View, world.WAREHOUSE_ID, world.VIEW_ID, dropped=True)


@pytest.mark.parametrize("by_all", [False, True])
async def test_policies_receive_each_task_target_and_one_denial_refuses_all_tasks(by_all: bool) -> None:
    at = DoorFixture()
    await at.door.admit(request_context(), steering(_OF_TABLE, None, _OF_VIEW, _OF_TABLE, by_all=by_all))
    requested = at.rules.calls[0].questions
    assert [(each.resource.type, each.resource.id, each.facts["task_ids"]) for each in requested] == [
        ("table", str(world.TABLE_ID), (str(_TASKS[0]), str(_TASKS[3]))),
        ("warehouse", str(world.WAREHOUSE_ID), (str(_TASKS[1]),)),
        ("view", str(world.VIEW_ID), (str(_TASKS[2]),)),
    ]
    assert {each.facts["action"] for each in requested} == {"cancel"}
    closed: Any = PerQuestion("recent")
    with pytest.raises(ViewActionForbidden if not by_all else WarehouseActionForbidden, match="closed: Closed"):
        await DoorFixture(rules=closed).door.admit(request_context(), steering(_OF_TABLE, _OF_VIEW, by_all=by_all))


async def test_task_control_needs_a_right_on_each_target_or_on_all_tasks() -> None:
    def holding(*relations: Can) -> DoorFixture:
        seen = {Can.USE, *VISIBLE_BY.values(), *relations}
        return DoorFixture(judge=Judge(answer=lambda question: question.relation in seen))

    of_things, of_all = holding(Can.CONTROL_TASKS), holding(Can.CONTROL_ALL_TASKS)
    await of_things.door.admit(request_context(), steering(_OF_TABLE, _OF_VIEW))
    await of_all.door.admit(request_context(), steering(_OF_TABLE, None, by_all=True))
    for at, refused, kind in (
        (of_all, steering(_OF_TABLE), TableActionForbidden),
        (of_things, steering(_OF_TABLE, None), WarehouseActionForbidden),
        (of_things, steering(_OF_TABLE, by_all=True), WarehouseActionForbidden),
        (holding(), steering(_OF_VIEW), ViewActionForbidden),
    ):
        with pytest.raises(kind):
            await at.door.admit(request_context(), refused)


async def test_a_task_with_an_invisible_target_is_not_found() -> None:
    unseen = Judge(answer=lambda question: question.object.type is ObjectType.WAREHOUSE)
    for at, about in (
        (DoorFixture(judge=unseen), _OF_TABLE),
        (DoorFixture(), TabularRef(Table, world.WAREHOUSE_ID, UUID(int=99), dropped=True)),
    ):
        with pytest.raises(TaskNotFound, match=f"^Task does not exist: {_TASKS[1]}$"):
            await at.door.admit(request_context(), steering(None, about))
