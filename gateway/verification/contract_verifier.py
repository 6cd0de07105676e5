# SPDX-License-Identifier: Apache-2.0
"""Judge changes of tables by their data contracts: the built-in verifier `contract`.

The contracts are read again when a file changes. If one is invalid then, the old contracts stay in force, and `check`
reports the problem.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from gateway.iceberg.identifiers import fold
from gateway.verification.builtin.compatibility import breaks, shown
from gateway.verification.builtin.documents import Columns, DocumentMissing, columns_of, table_after, table_before
from gateway.verification.builtin.rule import Concern, Violation, verdict_on
from gateway.verification.contracts import (
    Contract,
    ContractInvalid,
    ContractSet,
    ExpectedColumn,
    contract_files,
    load_contracts,
)
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import Approved, ChangeKind, ProposedChange, Verdict

CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.CREATE, ChangeKind.COMMIT, ChangeKind.DROP, ChangeKind.RENAME, ChangeKind.RESTORE}),
    object_types=frozenset({"table", "namespace", "warehouse"}),
)

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the files."""

_Stamp = tuple[tuple[str, int, int, int], ...]


class ContractDirectory:
    """The contracts of a directory, read again when a file changes. The directory must be readable at the start.

    Raises ContractInvalid.
    """

    def __init__(self, directory: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._directory = directory
        self._clock = clock
        self._looking = asyncio.Lock()
        self._stamp = self._stamped()
        self._looked = clock()
        self.contracts: ContractSet = load_contracts(directory)
        self.problem: str | None = None

    async def current(self) -> ContractSet:
        """Return the contracts as of a second ago at most."""
        async with self._looking:
            if self._clock() - self._looked >= _LOOK_EVERY:
                await asyncio.to_thread(self._look)
                self._looked = self._clock()
        return self.contracts

    def _look(self) -> None:
        """Read the files again if one of them changed. On an error, keep the contracts."""
        try:
            stamp = self._stamped()
            if stamp != self._stamp or self.problem is not None:
                self.contracts = load_contracts(self._directory)
                self._stamp = stamp
            self.problem = None
        except (ContractInvalid, OSError) as error:
            self.problem = str(error)

    def _stamped(self) -> _Stamp:
        found = [(path.name, path.stat()) for path in contract_files(self._directory)]
        return tuple((name, at.st_ino, at.st_mtime_ns, at.st_size) for name, at in found)


class ContractVerifier:
    """A verifier that refuses a change, or holds it until an approval, if it breaks a contract."""

    def __init__(
        self, name: str, directory: ContractDirectory, *, concern: Concern = CONCERN, violation: Violation = "reject"
    ) -> None:
        self._name = name
        self._directory = directory
        self._concern = concern
        self._violation = violation

    @property
    def name(self) -> str:
        """Return the name in the settings."""
        return self._name

    def configuration(self) -> str:
        """Return the digest of the contracts."""
        return self._directory.contracts.digest

    async def check(self) -> None:
        """Raise VerifierFailed if the files are invalid and old contracts are in force."""
        await self._directory.current()
        if self._directory.problem is not None:
            raise VerifierFailed(f"The data contracts cannot be read again: {self._directory.problem}")

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if contracts are about such changes."""
        return self._concern.covers(change_kind, object_type)

    async def verify(self, change: ProposedChange) -> Verdict:
        """Return the verdict by the contracts of the table. Raises the errors of reading a document."""
        if not self.concerns(change.kind, change.object_type):
            return Approved()
        contracts = await self._directory.current()
        # In a thread, because a document may have megabytes; a table without a contract is decided here.
        affected = _affected(change, contracts)
        reasons = await asyncio.to_thread(_breaches, change, affected) if affected else ()
        return verdict_on(reasons, self._violation)

    async def close(self) -> None:
        """Do nothing: no file stays open."""


def judge(change: ProposedChange, contracts: ContractSet) -> tuple[str, ...]:
    """Return one reason for each breach of a contract. Raises DocumentMissing and `BadRequestException`."""
    return _breaches(change, _affected(change, contracts))


def _affected(change: ProposedChange, contracts: ContractSet) -> tuple[Contract, ...]:
    """Return the contracts of the changed table, namespace or warehouse, and of its new name, sorted by name."""
    warehouses = (change.warehouse_name, change.warehouse_id)
    found: tuple[Contract, ...]
    if change.object_type == "warehouse":
        found = _of_renamed_warehouse(change, contracts)
    elif change.object_type == "namespace":
        dissolved = change.kind in (ChangeKind.DROP, ChangeKind.RENAME)
        found = contracts.below(warehouses, change.namespace) if dissolved else ()
        if change.destination:
            found += contracts.below(warehouses, change.destination)
    else:
        found = contracts.by_id.get(change.object_id or "", ())
        found += contracts.named(warehouses, (*change.namespace, change.name or ""))
        if change.destination:
            found += contracts.named(warehouses, change.destination)
    by_name = {contract.name: contract for contract in found}
    return tuple(by_name[name] for name in sorted(by_name))


def _of_renamed_warehouse(change: ProposedChange, contracts: ContractSet) -> tuple[Contract, ...]:
    """Return the contracts that name the warehouse by its old or its new name. Only an empty warehouse is dropped."""
    if change.kind is not ChangeKind.RENAME or _same((change.warehouse_name,), change.destination or ()):
        return ()
    return contracts.below((change.warehouse_name, *(change.destination or ())), ())


def _breaches(change: ProposedChange, contracts: tuple[Contract, ...]) -> tuple[str, ...]:
    return tuple(
        f"contract {contract.name} (owners: {', '.join(contract.owners)}): {fault}"
        for contract in contracts
        for fault in _faults(change, contract)
    )


def _faults(change: ProposedChange, contract: Contract) -> Iterator[str]:
    table = contract.table
    if change.object_type == "namespace":
        if change.kind is ChangeKind.DROP:
            yield f"the namespace of the table {table.name} must not be dropped"
        else:
            # The tables of the renamed namespace are not part of the question, so their columns cannot be checked.
            yield f"the namespace of the table {table.name} must not be renamed or replaced by another one"
    elif change.object_type == "warehouse":
        yield f"the warehouse of the table {table.name} must not be renamed or replaced by another one"
    elif change.kind is ChangeKind.DROP:
        yield "the table must not be dropped"
    elif change.kind is ChangeKind.RENAME:
        yield from _faults_of_rename(change, contract)
    else:
        schema = table_after(change).schema
        columns = columns_of(schema)
        yield from schema_faults(contract, columns)
        if contract.compatibility == "backward" and change.kind is not ChangeKind.RESTORE:
            before = table_before(change)
            if before is not None:
                yield from breaks(columns_of(before.schema), columns)


def _faults_of_rename(change: ProposedChange, contract: Contract) -> Iterator[str]:
    """Yield the breaches of a contract by a rename. A contract by id follows the table."""
    if contract.table.id is not None:
        return
    old, new = (*change.namespace, change.name or ""), change.destination or ()
    bound = (*contract.table.namespace, contract.table.name or "")
    if not _same(new, bound):
        yield "the table must not be renamed"
    elif not _same(old, bound):
        before = table_before(change)
        if before is None:
            raise DocumentMissing("the change has no document of the renamed table")
        yield from schema_faults(contract, columns_of(before.schema))


def _same(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    return tuple(map(fold, one)) == tuple(map(fold, other))


def schema_faults(contract: Contract, columns: Columns) -> Iterator[str]:
    """Yield one text for each difference between the expected columns and those of a table."""
    by_path = {column.path.casefold(): column for column in columns.values()}
    for expected in contract.columns:
        column = by_path.get(expected.name.casefold())
        if column is None:
            if expected.required:
                yield f"column {expected.name} must exist{_of_type(expected)}"
            continue
        if expected.type is not None and shown(column.type) != expected.type.replace(" ", ""):
            yield f"column {expected.name} must have the type {expected.type}, not {shown(column.type)}"
        if not expected.nullable and not column.required:
            yield f"column {expected.name} must be required, because the contract allows no missing values"
    if not contract.additional_columns:
        known = {expected.name.casefold() for expected in contract.columns}
        more = [column.path for column in columns.values() if column.parent is None]
        yield from (f"column {path} is not in the contract" for path in more if path.casefold() not in known)


def _of_type(expected: ExpectedColumn) -> str:
    return "" if expected.type is None else f" with the type {expected.type}"
