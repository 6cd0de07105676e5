# SPDX-License-Identifier: Apache-2.0
"""Read data contracts from a directory: the expected columns, owners and service levels of tables.

Each file `*.json` is one contract. A table is named by its warehouse, namespace and name, or by its id. Letter case of
names does not count, as in the catalog.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from gateway.iceberg.errors import BadRequestException
from gateway.iceberg.identifiers import fold
from gateway.iceberg.types import check_primitive
from lakegate.value_messages import in_words

MOST_FILES: Final = 10_000
MOST_BYTES: Final = 1_048_576

_NESTED: Final = frozenset({"struct", "list", "map", "variant"})

Text = Annotated[str, Meta(min_length=1, max_length=500)]
Strings = Annotated[tuple[Text, ...], Meta(max_length=20)]


class ContractInvalid(Exception):
    """A contract or the directory cannot be used. The text names each file with its problem, one on a line."""


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
    """A data contract. Messages name it and its owners. The service levels are texts for people."""

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
        """Return the key of these names."""
        return cls(fold(warehouse), tuple(fold(level) for level in levels))


class ContractSet(msgspec.Struct, frozen=True, kw_only=True):
    """All contracts of a directory by their tables. `digest` changes with the content of any file."""

    by_id: Mapping[str, tuple[Contract, ...]]
    by_name: Mapping[TableName, tuple[Contract, ...]]
    digest: str

    @property
    def contracts(self) -> tuple[Contract, ...]:
        """Return all contracts in the order of their names."""
        found = [each for group in (self.by_id, self.by_name) for some in group.values() for each in some]
        return tuple(sorted(found, key=lambda contract: contract.name))

    def named(self, warehouses: Iterable[str], levels: tuple[str, ...]) -> tuple[Contract, ...]:
        """Return the contracts of a table by its name. `warehouses` are the name and the id of its warehouse."""
        keys = {TableName.of(warehouse, levels) for warehouse in warehouses}
        return tuple(contract for key in keys for contract in self.by_name.get(key, ()))

    def below(self, warehouses: Iterable[str], levels: tuple[str, ...]) -> tuple[Contract, ...]:
        """Return the contracts that name a table inside a namespace, at any depth."""
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
    """Return all contracts in a directory. Raises ContractInvalid with all problems."""
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
