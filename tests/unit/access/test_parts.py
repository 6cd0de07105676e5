# SPDX-License-Identifier: Apache-2.0
"""Operations that consist of several: each part is decided for itself, and one refusal refuses all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from gateway.access.decision import Decision as Verdict
from gateway.access.decision import DeterminedBy, Failure, Outcome, all_of, undecided
from gateway.access.operations.transactions import MAX_TABLES, CommitTransaction
from gateway.access.policy import Obligations, PolicyAnswer, PolicyRequest, Reason, strictest
from gateway.access.ports import Question
from gateway.access.refs import TableRef
from gateway.access.relations import Can
from gateway.iceberg.codec import decode
from gateway.iceberg.errors import (
    BadRequestException,
    CatalogError,
    NoSuchTableException,
    TableActionForbidden,
    TableIdentifierRequiredForCommitTransaction,
    TableIdentifiersNotUnique,
)
from gateway.iceberg.identifiers import TableIdentifier
from gateway.iceberg.wire import CommitTransactionRequest
from tests.access import world
from tests.access.world import House, Judge, TableResolver, entrance


def transaction(*names: str, create: Sequence[str] = ()) -> CommitTransaction:
    """A transaction over tables of one namespace; those of `create` are to be made."""
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


def house(*names: str, judge: Judge | None = None) -> House:
    """A house in which these tables exist."""
    resolver = TableResolver()
    for number, name in enumerate(names):
        id = world.TABLE_ID.__class__(int=world.TABLE_ID.int + 100 + number)
        row: Any = world.table_row
        identifier = TableIdentifier(world.INNER, name)
        resolver.rows[TableRef(world.WAREHOUSE_ID, identifier)] = type(row)(
            **{**{f: getattr(row, f) for f in row.__struct_fields__}, "id": id, "identifier": identifier}
        )
    return House(resolver=resolver, **({} if judge is None else {"judge": judge}))


class PerQuestion:
    """Policies that deny by the name of the table."""

    def __init__(self, *denied: str) -> None:
        self.denied = denied
        self.asked: list[PolicyRequest] = []

    async def decide(self, request: PolicyRequest) -> tuple[PolicyAnswer, ...]:
        self.asked.append(request)
        no = PolicyAnswer(allow=False, reasons=(Reason(code="closed", message="Closed."),))
        return tuple(
            no if question.resource.name in self.denied else PolicyAnswer(allow=True) for question in request.questions
        )


async def test_one_round_asks_everything_about_all_tables() -> None:
    at = house("a", "b", "c")
    await at.door.admit(entrance(), transaction("a", "b", "c", "new", create=["new"]))
    assert (len(at.resolver.asked), len(at.judge.asked), len(at.rules.asked)) == (1, 1, 1)
    questions = at.rules.asked[0].questions
    assert [(each.operation, each.resource.name) for each in questions] == [
        ("commit_table", "a"),
        ("commit_table", "b"),
        ("commit_table", "c"),
        ("commit_table_creation", world.INNER.dotted),
    ]
    assert [each.facts["updated_properties"] for each in questions] == [("a",), ("b",), ("c",), ("new",)]


async def test_one_forbidden_table_refuses_the_transaction_and_is_the_one_that_is_told() -> None:
    def all_but_b(question: Question) -> bool:
        return question.relation is not Can.COMMIT or not question.object.id.endswith(f"{0x6 + 101:x}")

    at = house("a", "b", "c", judge=Judge(all_but_b))
    request = entrance()
    with pytest.raises(TableActionForbidden):
        await at.door.admit(request, transaction("a", "b", "c"))
    assert (request.admitted, request.trails) == (set(), [])
    [record] = at.audit.buffered
    assert [(each.operation, each.outcome) for each in record.decisions] == [
        ("commit_transaction", "forbidden"),
        ("commit_table", "allowed"),
        ("commit_table", "forbidden"),
        ("commit_table", "allowed"),
    ]


async def test_one_absent_table_hides_the_transaction() -> None:
    with pytest.raises(NoSuchTableException, match=r"Table does not exist: sales\.eu\.b"):
        await house("a").door.admit(entrance(), transaction("a", "b"))


async def test_a_policy_against_one_table_refuses_the_transaction() -> None:
    at = house("a", "b")
    at.rules = PerQuestion("b")  # type: ignore[assignment]  # it is asked like the house's own
    with pytest.raises(CatalogError, match=r"commit_transaction is not allowed .*closed: Closed\."):
        await at.door.admit(entrance(), transaction("a", "b"))


async def test_an_allowed_transaction_admits_itself_and_is_told_with_its_parts() -> None:
    at, request = house("a", "b"), entrance()
    permit = await at.door.admit(request, transaction("a", "b"))
    assert request.admitted == {CommitTransaction}
    assert [permit.table(part.table).identifier.name for part in permit.operation.parts()] == ["a", "b"]  # type: ignore[union-attr]  # both exist
    assert [each.operation for each in permit.trail.record.decisions] == [
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


def test_all_of_several_verdicts_is_the_first_refusal() -> None:
    yes = Verdict(Outcome.ALLOWED, DeterminedBy.BOTH, obligations=Obligations(no_vending=True))
    no = Verdict(Outcome.FORBIDDEN, DeterminedBy.OPA, Failure.DENIED_BY_POLICY)
    hidden = Verdict(Outcome.HIDDEN, DeterminedBy.OPENFGA, Failure.RESOURCE_NOT_FOUND)
    assert all_of([yes, hidden, no]) is hidden
    assert all_of([yes, undecided(Failure.ENGINE_UNAVAILABLE)]).outcome is Outcome.UNAVAILABLE
    assert all_of([yes, yes]).allowed


def test_of_several_obligations_the_strictest_hold() -> None:
    both = strictest(
        [
            Obligations(max_credential_seconds=900, hide_operations=("a",)),
            Obligations(max_credential_seconds=1800, append_only=True, hide_operations=("a", "b")),
            Obligations(no_vending=True),
        ]
    )
    assert both == Obligations(
        max_credential_seconds=900, no_vending=True, append_only=True, hide_operations=("a", "b")
    )
    assert strictest([Obligations(), Obligations()]) == Obligations()
