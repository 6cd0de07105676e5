# SPDX-License-Identifier: Apache-2.0
"""Data contracts: strict files, binding by name or id, breaches of each kind of change, and reloading."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.verification.builtin.documents import DocumentMissing
from gateway.verification.contracts import (
    ContractDirectory,
    ContractInvalid,
    ContractSet,
    ContractVerifier,
    judge,
    load_contracts,
)
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import Approved, ChangeKind, Pending, Rejected
from tests.support.door.verified_changes import change, document, field

ID = "018f0000-0000-7000-8000-000000000001"
BY_NAME = {"warehouse": "w", "namespace": ["sales"], "name": "orders"}
COLUMNS = [
    {"name": "id", "type": "long", "nullable": False},
    {"name": "total", "type": "decimal(9, 2)"},
    {"name": "note", "type": "string", "required": False},
]
GOOD = [field(1, "id", "long", required=True), field(2, "total", "decimal(9,2)")]


def contract(table: Mapping[str, Any] = BY_NAME, **more: object) -> dict[str, object]:
    return {"name": "orders", "table": table, "columns": COLUMNS, "owners": ["team-sales"]} | more


def put(directory: Path, *contracts: Mapping[str, object]) -> Path:
    for number, each in enumerate(contracts):
        (directory / f"c{number}.json").write_bytes(msgspec.json.encode(each))
    return directory


@pytest.fixture
def named(tmp_path: Path) -> ContractSet:
    return load_contracts(put(tmp_path, contract(sla={"freshness": "one hour"})))


def faults(contracts: ContractSet, after: list[dict[str, Any]], **more: Any) -> list[str]:
    proposed = change(before=document(GOOD), after=document(after), **more)
    return [reason.removeprefix("contract orders (owners: team-sales): ") for reason in judge(proposed, contracts)]


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (GOOD, []),
        ([*GOOD, field(9, "more")], []),
        ([*GOOD, field(9, "NOTE", "string")], []),
        (GOOD[1:], ["column id must exist with the type long"]),
        ([field(1, "id", "int", required=True), GOOD[1]], ["column id must have the type long, not int"]),
        (
            [field(1, "id", "long"), GOOD[1]],
            ["column id must be required, because the contract allows no missing valu"],
        ),
        ([*GOOD, field(9, "note", "long")], ["column note must have the type string, not long"]),
        (
            [GOOD[0], field(2, "total", {"type": "struct", "fields": []})],
            ["column total must have the type decimal(9,"],
        ),
    ],
)
def test_commit_and_creation_must_keep_the_expected_columns(
    named: ContractSet, after: list[dict[str, Any]], expected: list[str]
) -> None:
    found = faults(named, after)
    assert len(found) == len(expected) and all(
        text.startswith(part) for text, part in zip(found, expected, strict=True)
    )
    created = change(ChangeKind.CREATE, object_id=None, after=document(after))
    assert len(judge(created, named)) == len(expected)


def test_additional_columns_and_compatibility_are_limits_of_the_contract(tmp_path: Path) -> None:
    strict = load_contracts(put(tmp_path, contract() | {"additional-columns": False, "compatibility": "backward"}))
    assert faults(strict, [*GOOD, field(9, "more")]) == ["column more is not in the contract"]
    replaced = [field(7, "id", "long", required=True), GOOD[1]]
    assert any("column id (id 1) must not be dropped" in each for each in faults(strict, replaced))


@pytest.mark.parametrize(
    "more",
    [
        {"warehouse_name": "other", "warehouse_id": "w2"},
        {"namespace": ("sales", "deep")},
        {"name": "orders2"},
        {"namespace": ("sal",), "name": "es.orders"},
    ],
)
def test_other_tables_have_no_contract(named: ContractSet, more: dict[str, Any]) -> None:
    assert judge(change(ChangeKind.DROP, **more), named) == ()


def test_letter_case_and_the_id_of_the_warehouse_find_the_contract(tmp_path: Path, named: ContractSet) -> None:
    assert judge(change(ChangeKind.DROP, namespace=("Sales",), name="ORDERS"), named)
    by_id = load_contracts(put(tmp_path, contract({**BY_NAME, "warehouse": change().warehouse_id})))
    assert judge(change(ChangeKind.DROP, warehouse_name="renamed"), by_id)


def test_drops_and_renames_of_the_table_and_its_namespace_break_the_contract(named: ContractSet) -> None:
    (reason,) = judge(change(ChangeKind.DROP), named)
    assert reason == "contract orders (owners: team-sales): the table must not be dropped"
    assert judge(change(ChangeKind.RENAME, destination=("sales", "old")), named)
    assert judge(change(ChangeKind.RENAME, destination=("archive", "orders")), named)
    assert not judge(change(ChangeKind.RENAME, destination=("Sales", "Orders")), named)
    for kind in (ChangeKind.DROP, ChangeKind.RENAME):
        assert judge(change(kind, "namespace", name=None, object_id="n"), named)
        assert not judge(change(kind, "namespace", name=None, namespace=("sale",)), named)


def test_another_namespace_does_not_take_the_place_of_a_namespace_with_a_contract(named: ContractSet) -> None:
    moved: dict[str, Any] = {"name": None, "object_id": "n", "namespace": ("tmp",)}
    assert judge(change(ChangeKind.RENAME, "namespace", destination=("sales",), **moved), named)
    assert not judge(change(ChangeKind.RENAME, "namespace", destination=("other",), **moved), named)


def test_another_table_takes_the_name_only_with_the_expected_columns(named: ContractSet) -> None:
    moved: dict[str, Any] = {"namespace": ("tmp",), "name": "new", "destination": ("sales", "orders")}
    assert judge(change(ChangeKind.RENAME, before=document(GOOD), **moved), named) == ()
    assert judge(change(ChangeKind.RENAME, before=document(GOOD[1:]), **moved), named)
    with pytest.raises(DocumentMissing):
        judge(change(ChangeKind.RENAME, object_id=None, **moved), named)


def test_contract_by_id_follows_the_table(tmp_path: Path) -> None:
    by_id = load_contracts(put(tmp_path, contract({"id": ID})))
    assert judge(change(ChangeKind.RENAME, destination=("sales", "other")), by_id) == ()
    assert faults(by_id, GOOD[1:], name="other", namespace=("elsewhere",))
    assert judge(change(ChangeKind.DROP), by_id) and not judge(change(ChangeKind.DROP, object_id="another"), by_id)


INVALID: dict[str, dict[str, object]] = {
    "no owners": contract(owners=[]),
    "no columns": contract(columns=[]),
    "unknown member": contract(owner="x"),
    "unknown member of a column": contract(columns=[{"name": "id", "typ": "long"}]),
    "unknown type": contract(columns=[{"name": "id", "type": "bigint"}]),
    "column twice": contract(columns=[{"name": "id"}, {"name": "ID"}]),
    "unknown compatibility": contract(compatibility="full"),
    "no table": contract({}),
    "table without a namespace": contract({"warehouse": "w", "name": "orders"}),
    "table by both": contract({**BY_NAME, "id": ID}),
}


@pytest.mark.parametrize("invalid", INVALID.values(), ids=INVALID.keys())
def test_invalid_contract_is_refused_with_its_file(tmp_path: Path, invalid: dict[str, object]) -> None:
    with pytest.raises(ContractInvalid, match=r"^c0\.json: "):
        load_contracts(put(tmp_path, invalid))


def test_all_invalid_files_are_named_and_two_contracts_of_one_name_are_refused(tmp_path: Path) -> None:
    put(tmp_path, contract(), contract())
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(ContractInvalid) as refused:
        load_contracts(tmp_path)
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == ["a.json", "c1.json"]
    with pytest.raises(ContractInvalid, match="no directory"):
        load_contracts(tmp_path / "absent")


def test_other_files_are_no_contracts(tmp_path: Path) -> None:
    """Editors and mounted volumes create hidden files."""
    for name in (".orders.json", "README.md", "orders.json~"):
        (tmp_path / name).write_text("no contract")
    assert load_contracts(tmp_path).contracts == ()


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_changed_files_are_read_again_and_invalid_ones_keep_the_old_contracts(tmp_path: Path) -> None:
    clock = Clock()
    put(tmp_path, contract())
    file = tmp_path / "c0.json"

    async def run() -> None:
        verifier = ContractVerifier("c", ContractDirectory(tmp_path, clock=clock), violation="pending")
        first = verifier.configuration()
        dropped = change(ChangeKind.DROP)
        assert isinstance(await verifier.verify(dropped), Pending)
        file.write_text("{")
        clock.now += 2
        assert isinstance(await verifier.verify(dropped), Pending), "an invalid file must not remove a contract"
        with pytest.raises(VerifierFailed, match=r"cannot be read again: c0\.json"):
            await verifier.check()
        put(tmp_path, contract({**BY_NAME, "name": "other"}))
        clock.now += 2
        assert await verifier.verify(dropped) == Approved()
        await verifier.check()
        assert verifier.configuration() != first, "tickets that were approved under the old contract must lapse"
        file.unlink()
        os.rmdir(tmp_path)
        clock.now += 2
        assert isinstance(await verifier.verify(change(ChangeKind.DROP, name="other")), Pending)
        with pytest.raises(VerifierFailed, match="no directory"):
            await verifier.check()

    asyncio.run(run())


def test_verifier_answers_by_its_setting_and_only_where_it_is_concerned(tmp_path: Path) -> None:
    verifier = ContractVerifier("c", ContractDirectory(put(tmp_path, contract())))
    assert isinstance(asyncio.run(verifier.verify(change(ChangeKind.DROP))), Rejected)
    assert verifier.concerns(ChangeKind.RENAME, "namespace") and not verifier.concerns(ChangeKind.DROP, "view")
    assert asyncio.run(verifier.verify(change(ChangeKind.NAMESPACE_PROPERTIES, "namespace"))) == Approved()


def test_restored_table_needs_the_expected_columns(named: ContractSet) -> None:
    kept, other = (change(ChangeKind.RESTORE, after=document(fields)) for fields in (GOOD, GOOD[1:]))
    assert judge(kept, named) == ()
    assert [reason.partition("): ")[2] for reason in judge(other, named)] == ["column id must exist with the type long"]


def test_warehouse_of_a_contract_keeps_its_name(named: ContractSet) -> None:
    def renamed(old: str, new: str) -> tuple[str, ...]:
        named_so: dict[str, Any] = {"warehouse_name": old, "namespace": (), "name": old, "destination": (new,)}
        return judge(change(ChangeKind.RENAME, "warehouse", **named_so), named)

    assert (len(renamed("w", "v")), len(renamed("v", "w"))) == (1, 1)
    assert renamed("w", "W") == renamed("u", "v") == ()
    assert judge(change(ChangeKind.DROP, "warehouse", namespace=(), name="w"), named) == ()


def test_contract_by_id_of_the_warehouse_follows_its_rename(tmp_path: Path) -> None:
    by_id = load_contracts(put(tmp_path, contract({**BY_NAME, "warehouse": change().warehouse_id})))
    assert judge(change(ChangeKind.RENAME, "warehouse", namespace=(), name="w", destination=("v",)), by_id) == ()
