# SPDX-License-Identifier: Apache-2.0
"""The built-in verifier `contract`: evaluate changes of tables by their data contracts.

A contract has the expected columns, owners and service levels of a table. Each file `*.json` of a directory is one
contract. A table is given by its warehouse, namespace and name, or by its id. The letter case of names is ignored, as
in the catalog. The contracts are read again when a file changes. If one is invalid then, the old contracts stay in
force, and `check` reports the problem.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import fold
from gateway.iceberg.types import check_primitive
from gateway.verification.builtin.compatibility import breaks, shown
from gateway.verification.builtin.documents import Columns, DocumentMissing, columns_of, table_after, table_before
from gateway.verification.builtin.rule import Concern, Violation, verdict_on
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import Approved, ChangeKind, ProposedChange, Verdict
from lakegate.value_messages import in_words

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 1_048_576

_NESTED: Final = frozenset({"struct", "list", "map", "variant"})

Text = Annotated[str, Meta(min_length=1, max_length=500)]
Strings = Annotated[tuple[Text, ...], Meta(max_length=20)]


class ContractInvalid(Exception):
    """A contract or the directory cannot be used. The message has one line for each file, with its problem."""


class BoundTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The table of a contract: `id`, or `warehouse` (name or id) with `namespace` and `name`."""

    id: Text | None = None
    warehouse: Text | None = None
    namespace: tuple[Text, ...] = ()
    name: Text | None = None

    def __post_init__(self) -> None:
        named = (self.warehouse, self.namespace, self.name)
        if any(named) == (self.id is not None) or (self.id is None and not all(named)):
            raise ValueError("the table must have either id, or warehouse, namespace and name")


class ExpectedColumn(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of a contract. `name` is the full dotted name. `type` is as in Iceberg, or `struct`, `list` or `map`.

    Unless `required`, the table may lack the column. Unless `nullable`, every row has a value.
    """

    name: Text
    type: Text | None = None
    required: bool = True
    nullable: bool = True

    def __post_init__(self) -> None:
        if self.type is None or self.type in _NESTED:
            return
        try:
            check_primitive(self.type.replace(" ", ""), self.name)
        except BadRequestException as error:
            raise ValueError(str(error)) from None


class Contract(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="kebab"):
    """A data contract. Messages contain its name and its owners. The service levels are texts for people."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    table: BoundTable
    columns: Annotated[tuple[ExpectedColumn, ...], Meta(min_length=1, max_length=10_000)]
    owners: Annotated[Strings, Meta(min_length=1)]
    additional_columns: bool = True
    compatibility: Literal["none", "backward"] = "none"
    sla: dict[Text, Text] = {}
    description: str = ""

    def __post_init__(self) -> None:
        names = [column.name.casefold() for column in self.columns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"columns are stated twice: {', '.join(repeated)}")


class TableName(msgspec.Struct, frozen=True):
    """The folded name of a table. `warehouse` is a folded name or an id."""

    warehouse: str
    levels: tuple[str, ...]

    @classmethod
    def of(cls, warehouse: str, levels: Iterable[str]) -> TableName:
        """Return the key of a table with these names."""
        return cls(fold(warehouse), tuple(fold(level) for level in levels))


class ContractSet(msgspec.Struct, frozen=True, kw_only=True):
    """All contracts of a directory, by table. `digest` changes if the content of any file changes."""

    by_id: Mapping[str, tuple[Contract, ...]]
    by_name: Mapping[TableName, tuple[Contract, ...]]
    digest: str

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Return all contracts, sorted by name."""
        found = [each for group in (self.by_id, self.by_name) for some in group.values() for each in some]
        return tuple(sorted(found, key=lambda contract: contract.name))

    def named(self, warehouses: Iterable[str], levels: tuple[str, ...]) -> tuple[Contract, ...]:
        """Return the contracts of a table that is given by its name. `warehouses` are the name and the id of its
        warehouse.
        """
        keys = {TableName.of(warehouse, levels) for warehouse in warehouses}
        return tuple(contract for key in keys for contract in self.by_name.get(key, ()))

    def below(self, warehouses: Iterable[str], levels: tuple[str, ...]) -> tuple[Contract, ...]:
        """Return the contracts of tables in a namespace, at any depth. Only contracts that give the table's name are
        included.
        """
        keys = {TableName.of(warehouse, levels) for warehouse in warehouses}
        return tuple(
            contract
            for name, some in self.by_name.items()
            if TableName(name.warehouse, name.levels[: len(levels)]) in keys and len(name.levels) > len(levels)
            for contract in some
        )


def contract_files(directory: Path) -> list[Path]:
    """Return the files of contracts, sorted. Raises ContractInvalid if there is no such directory, or too many."""
    if not directory.is_dir():
        raise ContractInvalid(f"{directory} is no directory")
    files = sorted(path for path in directory.iterdir() if path.suffix == ".json" and not path.name.startswith("."))
    if len(files) > MOST_FILES:
        raise ContractInvalid(f"{directory} has more than {MOST_FILES} files")
    return files


def load_contracts(directory: Path) -> ContractSet:
    """Return all contracts in a directory. Raises ContractInvalid; its message has all problems."""
    problems: list[str] = []
    contracts: dict[str, Contract] = {}
    digest = hashlib.sha256()
    for path in contract_files(directory):
        try:
            text = _read(path)
            contract = msgspec.json.decode(text, type=Contract, strict=True)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, ContractInvalid) as error:
            problems.append(f"{path.name}: {in_words(error, Contract)}")
            continue
        if contract.name in contracts:
            problems.append(f"{path.name}: another file has a contract with the name {contract.name}")
        contracts[contract.name] = contract
        digest.update(hashlib.sha256(text).digest())
    if problems:
        raise ContractInvalid("\n".join(problems))
    return _indexed(contracts.values(), digest.hexdigest())


def _read(path: Path) -> bytes:
    if path.stat().st_size > MOST_BYTES:
        raise ContractInvalid(f"the file has more than {MOST_BYTES} bytes")
    return path.read_bytes()


def _indexed(contracts: Iterable[Contract], digest: str) -> ContractSet:
    by_id: dict[str, tuple[Contract, ...]] = {}
    by_name: dict[TableName, tuple[Contract, ...]] = {}
    for contract in contracts:
        table = contract.table
        if table.id is not None:
            by_id[table.id] = (*by_id.get(table.id, ()), contract)
        else:
            key = TableName.of(table.warehouse or "", (*table.namespace, table.name or ""))
            by_name[key] = (*by_name.get(key, ()), contract)
    return ContractSet(by_id=by_id, by_name=by_name, digest=digest)


CONCERN: Final = Concern(
    kinds=frozenset({ChangeKind.CREATE, ChangeKind.COMMIT, ChangeKind.DROP, ChangeKind.RENAME, ChangeKind.RESTORE}),
    object_types=frozenset({"table", "namespace", "warehouse"}),
)

_LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the files."""

_Stamp = tuple[tuple[str, int, int, int], ...]


class ContractDirectory:
    """The contracts of a directory. They are read again if a file changes. At the start the directory must be readable.

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
        """Return the contracts, which are at most one second old."""
        async with self._looking:
            if self._clock() - self._looked >= _LOOK_EVERY:
                await asyncio.to_thread(self._look)
                self._looked = self._clock()
        return self.contracts

    def _look(self) -> None:
        """Read the files again if one of them has changed. On an error, keep the previous contracts."""
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
    """A verifier. If a change breaks a contract, it rejects the change or requires approval."""

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
        """Raise VerifierFailed if the files are invalid, so that previous contracts are in force."""
        await self._directory.current()
        if self._directory.problem is not None:
            raise VerifierFailed(f"The data contracts cannot be read again: {self._directory.problem}")

    def concerns(self, change_kind: ChangeKind, object_type: str) -> bool:
        """Return True if contracts are evaluated for changes of this kind on this type of objects."""
        return self._concern.covers(change_kind, object_type)

    async def verify(self, change: ProposedChange) -> Verdict:
        """Return the verdict on a change, by the contracts of the table. Raises the errors of reading a document."""
        if not self.concerns(change.kind, change.object_type):
            return Approved()
        contracts = await self._directory.current()
        # Compared in a thread, because a metadata document may have megabytes. Without an affected contract, no thread
        # is needed.
        affected = _affected(change, contracts)
        reasons = await asyncio.to_thread(_breaches, change, affected) if affected else ()
        return verdict_on(reasons, self._violation)

    async def close(self) -> None:
        """Do nothing: no file stays open."""


def judge(change: ProposedChange, contracts: ContractSet) -> tuple[str, ...]:
    """Return a reason for each breach of a contract. Raises DocumentMissing and `BadRequestException`."""
    return _breaches(change, _affected(change, contracts))


def _affected(change: ProposedChange, contracts: ContractSet) -> tuple[Contract, ...]:
    """Return the contracts that the change concerns, sorted by name. They can be those of the object's old name and of
    its new name.
    """
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
    """Return the contracts that contain the old or the new name of the warehouse. A drop concerns none, because only
    empty warehouses are dropped.
    """
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
            # The proposed change does not contain the tables of the namespace, so their columns cannot be checked.
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
    """Yield the breaches of a contract by a rename. A contract with the table's id is not broken: it follows the
    table.
    """
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
    """Yield a text for each difference between the expected columns and the columns of a table."""
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
