# SPDX-License-Identifier: Apache-2.0
"""Random data policies of one table, rewritten through the management API in rounds, and the rows that they permit.

A seed determines everything random. The expected rows are those of the reference interpreter.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from gateway.iceberg.predicates import And, Compare, Constant, In, IsNan, IsNull, Not, Or, Predicate, field_ids
from gateway.obligations.masks import Action, applies
from tests.contract.test_data_policies import POLICY, change, make
from tests.contract.world import Person, World, send_until_decided, unique
from tests.e2e.lake import catalog_of
from tests.e2e.policy_site import Cells, cells, delete_policy
from tests.policy_agreement import COLUMNS, arrow_of, random_predicate, random_rows
from tests.reference_policies import keeps, masked, merged

FIELDS = tuple(range(1, 13))
"""The field ids, which are also those of `COLUMNS`: types that all engines have."""
KEY = "n"
FILTERS, MASKS = 3, 12
"""The policies of a round. Two masks can name one column."""
ROUNDS = 20
RESULT = Path(__file__).with_name("one_policy_result.json")
#: The environment variable with which a run writes its counts to `RESULT`. Other runs change no file.
RECORD = "LAKEGATE_TEST_RECORD_POLICIES"
_ROWS, _KEPT = 60, 10
_CONSTANTS = {"type": "constant", "value": True}


@dataclass
class Table:
    """A table whose policies change in each round. `person` is restricted by all of them."""

    world: World
    namespace: str
    person: Person
    rows: Sequence[Mapping[int, Any]]
    filters: list[dict[str, Any]] = field(default_factory=list)
    masks: list[dict[str, Any]] = field(default_factory=list)

    def rewrite(self, rnd: random.Random) -> Expected:
        """Give each policy a random definition. Return the rows that the person may see."""
        kept, tests = list(range(len(self.rows))), []
        for policy in self.filters:
            test, kept = self._random_filter(rnd, kept)
            tests.append(test)
            self._put(policy, {"kind": "row-filter", "test": written_test(test)})
        actions: dict[int, Action] = {}
        for policy in self.masks:
            id = rnd.choice(FIELDS)
            action = rnd.choice([each for each in Action if applies(each, COLUMNS[id][1], required=False)])
            actions[id] = merged(actions[id], action) if id in actions else action
            self._put(policy, {"kind": "mask", "action": action, "columns": [{"name": f"c{id}"}]})
        return Expected(tuple(tests), actions, self._masked(kept, actions))

    def _random_filter(self, rnd: random.Random, kept: list[int]) -> tuple[Predicate, list[int]]:
        """Return a filter and the rows that it keeps of `kept`. Filters that hide nearly all rows test little."""
        while True:
            test = random_predicate(rnd, FIELDS)
            left = [number for number in kept if keeps(test, self.rows[number])]
            if _writable(test) and field_ids(test) and len(left) >= _KEPT:
                return test, left

    def _put(self, policy: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
        body = {"name": policy["name"], "definition": definition}
        done = send_until_decided(lambda: self.world.admin.send("PUT", f"{POLICY}/{policy['id']}", json=body))
        assert done.status_code == 200, (done.text, definition)

    def _masked(self, kept: Sequence[int], actions: Mapping[int, Action]) -> list[Cells]:
        rows = [
            {id: masked(actions[id], COLUMNS[id][1], value) if id in actions else value for id, value in row.items()}
            for row in (self.rows[number] for number in kept)
        ]
        return cells(arrow(rows, kept), KEY)


@dataclass(frozen=True)
class Expected:
    """The policies of a round, and the rows that they permit."""

    tests: tuple[Predicate, ...]
    actions: Mapping[int, Action]
    rows: Sequence[Cells]

    def check(self, engine: str, found: Sequence[Cells], *, salted: bool = True) -> int:
        """Compare cell by cell; return the number of cells. Raises AssertionError.

        Values of `sha-256-query-local` are random: with `salted`, only the type and the nulls are compared. An engine
        without salts shows no value of these columns.
        """
        local = {f"c{id}" for id, action in self.actions.items() if action is Action.SHA_256_QUERY_LOCAL}
        about = f"{engine}: {self.tests} {dict(self.actions)}"
        assert [row[KEY] for row in found] == [row[KEY] for row in self.rows], about
        for row, right in zip(found, self.rows, strict=True):
            assert row.keys() == right.keys(), about
            for name, value in row.items():
                if name not in local:
                    assert value == right[name], (name, about)
                elif salted:
                    assert type(value) is type(right[name]), (name, about)
                    assert value is None or value != right[name], (name, about)
                else:
                    assert value is None, (name, about)
        return len(found) * len(COLUMN_NAMES)


COLUMN_NAMES = (*(f"c{id}" for id in FIELDS), KEY)


def arrow(rows: Sequence[Mapping[int, Any]], keys: Sequence[int]) -> pa.Table:
    """Return the rows as an arrow table with the key as the last column."""
    table = arrow_of(rows, FIELDS).rename_columns([f"c{id}" for id in FIELDS])
    return table.append_column(KEY, pa.array(keys, pa.int64()))


def _writable(test: Predicate) -> bool:
    """Return True if policy authors can write the test. They cannot test for NaN or name no value."""
    match test:
        case Not():
            return _writable(test.operand)
        case And() | Or():
            return all(_writable(each) for each in test.operands)
        case In():
            return bool(test.values)
        case _:
            return not isinstance(test, IsNan)


def written_test(test: Predicate) -> dict[str, Any]:
    """Return the test in the form of policy authors."""
    match test:
        case Constant():
            return {"type": "constant", "value": test.value}
        case And() | Or():
            kind = "and" if isinstance(test, And) else "or"
            return {"type": kind, "operands": [written_test(each) for each in test.operands]}
        case Not():
            return {"type": "not", "operand": written_test(test.operand)}
        case IsNull():
            return {"type": "is-null", "column": _column(test)}
        case In():
            values = list(test.values)
            return {"type": "in", "column": _column(test), "values": values, "negated": test.negated}
        case Compare():
            return {"type": "compare", "operator": test.operator, "column": _column(test), "value": test.value}
    raise TypeError(test)


def _column(test: IsNull | In | Compare) -> dict[str, str]:
    return {"name": f"c{test.field_id}"}


@contextmanager
def random_table(world: World, rnd: random.Random) -> Iterator[Table]:
    """Create the table and its policies, which hide nothing yet; delete the policies at the end."""
    namespace, person = world.namespace(unique("random")), world.stranger("random")
    rows = random_rows(rnd, FIELDS, _ROWS)
    written = arrow(rows, range(_ROWS))
    opened = catalog_of(world, world.admin).create_table((namespace, "cells"), schema=written.schema)
    opened.append(written)
    world.grant("select", person, "table", str(opened.metadata.table_uuid))
    on = {"type": "table", "id": str(opened.metadata.table_uuid), "warehouse-id": world.warehouse}
    table = Table(world, namespace, person, rows)
    first = {"kind": "mask", "action": Action.REPLACE_WITH_NULL, "columns": [{"name": "c1"}]}
    try:
        for number in range(FILTERS + MASKS):
            policy = make(world, first if number >= FILTERS else {"kind": "row-filter", "test": _CONSTANTS})
            (table.masks if number >= FILTERS else table.filters).append(policy)
            bound = change(world, policy, add=[on])
            assert bound.status_code == 204, bound.text
        yield table
    finally:
        for policy in table.filters + table.masks:
            delete_policy(world, policy["id"])


def record(engines: str, counts: Mapping[str, Any]) -> None:
    """Write the counts of a comparison without differences."""
    print(f"\n{engines}: {counts}")
    if os.environ.get(RECORD):
        known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**known, engines: counts}, indent=2, sort_keys=True) + "\n")
