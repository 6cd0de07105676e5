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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from lakegate.restrictions.actions import Action, applies
from lakegate.restrictions.predicates import And, Compare, Constant, In, IsNan, IsNull, Not, Or, Predicate, field_ids
from tests.support.engines.lake import catalog_of
from tests.support.engines.policy_site import Cells, cells, delete_policy
from tests.support.policies.policy_agreement import COLUMNS, arrow_of, random_predicate, random_rows, random_value
from tests.support.policies.reference_policies import keeps, masked, merged
from tests.support.stack.data_policies import POLICY, change, make
from tests.support.stack.tags import attach, define, detach, tags_path
from tests.support.stack.world import Person, World, send_until_decided, unique

FIELDS = tuple(range(1, 13))
"""The field ids, which are also those of `COLUMNS`: types that all engines have."""
KEY = "n"
FILTERS, MASKS = 3, 12
"""The policies of a round. Two masks can name one column."""
ROUNDS = 20
RESULT = Path(__file__).parents[2] / "results" / "one_policy.json"
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
    shape: Shape
    names: dict[int, str]
    """The present name of each column."""
    holders: dict[str, set[int]]
    """The columns that ever had each name."""
    tag: dict[str, Any] = field(default_factory=dict)
    filters: list[dict[str, Any]] = field(default_factory=list)
    masks: list[dict[str, Any]] = field(default_factory=list)
    _round: int = 0

    def rewrite(self, rnd: random.Random) -> Expected:
        """Give each policy a random definition. Return the rows that the person may see.

        Columns of a table that evolves are renamed before and after that. In every fifth round its namespace has the
        tag of a mask that covers all columns.
        """
        kept, tests = list(range(len(self.rows))), []
        written: list[dict[int, str]] = []
        self._round += 1
        self._rename(rnd)
        for policy in self.filters:
            test, kept = self._random_filter(rnd, kept)
            tests.append(test)
            written.append({id: self.names[id] for id in field_ids(test)})
            self._put(policy, {"kind": "row-filter", "test": written_test(test, self.names)})
        chosen: list[tuple[str, Action]] = []
        for policy in self.masks:
            id = rnd.choice(self.shape.fields)
            action = rnd.choice([each for each in Action if self.shape.applies(each, id)])
            chosen.append((self.names[id], action))
            self._put(policy, {"kind": "mask", "action": action, "columns": [{"name": self.names[id]}]})
        self._rename(rnd)
        if any(map(self._is_ambiguous, written)):
            kept = []
        actions = self._actions(chosen)
        if self._cover():
            fixed = dict.fromkeys((*self.shape.fields, KEY_ID), Action.MASK_TO_FIXED_VALUE)
            actions = {id: merged(actions.get(id, each), each) for id, each in fixed.items()}
        shared = frozenset(id for id, name in self.names.items() if self.holders[name] != {id})
        return Expected(tuple(tests), actions, self._masked(kept, actions), self.shape, shared)

    def _is_ambiguous(self, written: Mapping[int, str]) -> bool:
        """Return True if two columns of a filter had one of its names: then it keeps no row. `written`: names by id."""
        return any(len(self.holders[name] & written.keys()) > 1 for name in written.values())

    def _actions(self, chosen: Sequence[tuple[str, Action]]) -> dict[int, Action]:
        """Return the mask of each column. A mask covers all columns that ever had its name."""
        actions: dict[int, Action] = {}
        for name, action in chosen:
            for id in self.holders[name]:
                found = self.shape.least(action, id)
                actions[id] = merged(actions[id], found) if id in actions else found
        return actions

    def _rename(self, rnd: random.Random) -> None:
        """Rename two columns, one of them to the former name of the other if the shape reuses names."""
        if not self.shape.evolves:
            return
        one, other = rnd.sample(self.shape.fields, 2)
        free = f"c{one}_{rnd.getrandbits(32)}"
        then = self.names[one] if self.shape.reuses_names else f"c{other}_{rnd.getrandbits(32)}"
        opened = catalog_of(self.world, self.world.admin).load_table((self.namespace, "cells"))
        for id, name in ((one, free), (other, then)):
            with opened.update_schema() as changed:
                changed.rename_column(self.names[id], name)
            self.names[id] = name
            self.holders.setdefault(name, set()).add(id)

    def _cover(self) -> bool:
        """Attach the tag to the namespace in every fifth round, else detach it. Return True if it is attached."""
        if not self.tag:
            return False
        path = tags_path(self.world, "namespace", self.world.namespace_id(self.namespace))
        if self._round % 5 == 0:
            assert attach(self.world, self.tag, path).status_code < 300
        elif self._round % 5 == 1:
            assert detach(self.world, self.tag, path).status_code in (204, 404)
        return self._round % 5 == 0

    def _random_filter(self, rnd: random.Random, kept: list[int]) -> tuple[Predicate, list[int]]:
        """Return a filter and the rows that it keeps of `kept`. Filters that hide nearly all rows test little."""
        while True:
            test = self.shape.random_test(rnd)
            left = [number for number in kept if keeps(test, self.rows[number])]
            if _writable(test) and field_ids(test) and len(left) >= _KEPT:
                return test, left

    def _put(self, policy: Mapping[str, Any], definition: Mapping[str, Any]) -> None:
        body = {"name": policy["name"], "definition": definition}
        done = send_until_decided(lambda: self.world.admin.send("PUT", f"{POLICY}/{policy['id']}", json=body))
        assert done.status_code == 200, (done.text, definition)

    def _masked(self, kept: Sequence[int], actions: Mapping[int, Action]) -> list[Cells]:
        rows = [
            {id: hidden(actions[id], id, value) if id in actions else value for id, value in row.items()}
            for row in (self.rows[number] for number in kept)
        ]
        keys = [0] * len(kept) if KEY_ID in actions else kept
        return cells(arrow(rows, keys, self.shape), KEY)


def hidden(action: Action, id: int, value: Any) -> Any:
    """Return the masked value of a column. Nested columns have two masks only."""
    if id not in NESTED:
        return masked(action, COLUMNS[id][1], value)
    return None if action is Action.REPLACE_WITH_NULL else NESTED[id].fixed


@dataclass(frozen=True)
class Expected:
    """The policies of a round, and the rows that they permit."""

    tests: tuple[Predicate, ...]
    actions: Mapping[int, Action]
    rows: Sequence[Cells]
    shape: Shape
    shared: frozenset[int] = frozenset()
    """The columns whose present name another column has or had."""

    def by_names(self) -> Expected:
        """Return what an engine shows that knows columns by name only: nothing that depends on a shared name."""
        hidden_by = any(field_ids(test) & self.shared for test in self.tests)
        hidden_names = {f"c{id}" for id in self.shared}
        rows = [{name: value for name, value in row.items() if name not in hidden_names} for row in self.rows]
        return replace(self, rows=[] if hidden_by else rows)

    def check(self, engine: str, found: Sequence[Cells], *, salted: bool = True) -> int:
        """Compare cell by cell; return the number of cells. Raises AssertionError.

        Values of `sha-256-query-local` are random: with `salted`, only the type and the nulls are compared. An engine
        without salts shows no value of these columns.
        """
        local = {f"c{id}" for id, action in self.actions.items() if action is Action.SHA_256_QUERY_LOCAL}
        fixed = {f"c{id}": hidden(Action.MASK_TO_FIXED_VALUE, id, None) for id in self.shape.required}
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
                    assert value == fixed.get(name), (name, about)
        return sum(map(len, found))


@dataclass(frozen=True)
class Nested:
    """A nested column: its arrow type, its values, and its fixed value."""

    kind: pa.DataType
    values: tuple[Any, ...]
    fixed: Any


_INNER = pa.struct([("x", pa.string())])
NESTED: Mapping[int, Nested] = {
    13: Nested(pa.list_(_INNER), (None, [], [{"x": "a"}, None], [{"x": None}]), []),
    14: Nested(pa.map_(pa.string(), _INNER), (None, [], [("k", {"x": "a"}), ("l", None)]), []),
    15: Nested(
        pa.struct([("x", pa.string()), ("y", pa.list_(_INNER))]),
        (None, {"x": None, "y": None}, {"x": "a", "y": []}, {"x": "b", "y": [{"x": "c"}]}),
        {"x": "XXXXXXXX", "y": []},
    ),
    16: Nested(pa.list_(pa.list_(_INNER)), (None, [], [None, [], [{"x": "a"}]]), []),
}


@dataclass(frozen=True)
class Shape:
    """The columns of a table: their ids, and those that are required.

    `evolves`: the columns are renamed in between. `reuses_names`: some of them to former names of other columns.
    """

    fields: tuple[int, ...] = FIELDS
    required: frozenset[int] = frozenset()
    evolves: bool = False
    reuses_names: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """Return the first names of all columns, that of the key at the end."""
        return (*(f"c{id}" for id in self.fields), KEY)

    def applies(self, action: Action, id: int) -> bool:
        """Return True if a policy may mask the column so."""
        if id in NESTED:
            return action in (Action.REPLACE_WITH_NULL, Action.MASK_TO_FIXED_VALUE)
        return applies(action, COLUMNS[id][1], required=id in self.required)

    def least(self, action: Action, id: int) -> Action:
        """Return the action, or the least one that applies to the column."""
        for each in (action, Action.REPLACE_WITH_NULL):
            if self.applies(each, id):
                return each
        return Action.MASK_TO_FIXED_VALUE

    def random_test(self, rnd: random.Random) -> Predicate:
        """Return a random filter. Nested columns are tested for null only."""
        test = random_predicate(rnd, FIELDS)
        nested = [id for id in self.fields if id in NESTED]
        if not nested or rnd.random() < 0.4:
            return test
        null: Predicate = IsNull(rnd.choice(nested))
        both = (Not(null) if rnd.random() < 0.6 else null, test)
        return And(both) if rnd.random() < 0.5 else Or(both)

    def random_rows(self, rnd: random.Random, count: int) -> list[dict[int, Any]]:
        """Return rows without null in required columns."""
        rows = random_rows(rnd, FIELDS, count)
        for row in rows:
            for id in self.required:
                if row[id] is None:
                    row[id] = random_value(rnd, COLUMNS[id][1])
            row.update({id: rnd.choice(NESTED[id].values) for id in self.fields if id in NESTED})
        return rows


FLAT = Shape()
EVOLVING = Shape((*FIELDS, *NESTED), frozenset({1, 3, 6, 8, 11}), evolves=True)
RENAMED = replace(EVOLVING, reuses_names=False)
KEY_ID = 0


def arrow(rows: Sequence[Mapping[int, Any]], keys: Sequence[int], shape: Shape = FLAT) -> pa.Table:
    """Return the rows as an arrow table with the key as the last column."""
    table = arrow_of(rows, FIELDS).rename_columns([f"c{id}" for id in FIELDS])
    for id in shape.fields[len(FIELDS) :]:
        table = table.append_column(f"c{id}", pa.array([row[id] for row in rows], NESTED[id].kind))
    table = table.append_column(KEY, pa.array(keys, pa.int64()))
    required = {f"c{id}" for id in shape.required}
    return table.cast(pa.schema([each.with_nullable(each.name not in required) for each in table.schema]))


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


def written_test(test: Predicate, names: Mapping[int, str]) -> dict[str, Any]:
    """Return the test in the form of policy authors. `names` are those of the columns."""
    match test:
        case Constant():
            return {"type": "constant", "value": test.value}
        case And() | Or():
            kind = "and" if isinstance(test, And) else "or"
            return {"type": kind, "operands": [written_test(each, names) for each in test.operands]}
        case Not():
            return {"type": "not", "operand": written_test(test.operand, names)}
        case IsNull():
            return {"type": "is-null", "column": _column(test, names)}
        case In():
            values = list(test.values)
            return {"type": "in", "column": _column(test, names), "values": values, "negated": test.negated}
        case Compare():
            return {"type": "compare", "operator": test.operator, "column": _column(test, names), "value": test.value}
    raise TypeError(test)


def _column(test: IsNull | In | Compare, names: Mapping[int, str]) -> dict[str, str]:
    return {"name": names[test.field_id]}


@contextmanager
def random_table(world: World, rnd: random.Random, shape: Shape = FLAT) -> Iterator[Table]:
    """Create the table and its policies, which hide nothing yet; delete the policies at the end."""
    namespace, person = world.namespace(unique("random")), world.stranger("random")
    rows = shape.random_rows(rnd, _ROWS)
    written = arrow(rows, range(_ROWS), shape)
    opened = catalog_of(world, world.admin).create_table((namespace, "cells"), schema=written.schema)
    append_as_is(opened, written)
    world.grant("select", person, "table", str(opened.metadata.table_uuid))
    on = {"type": "table", "id": str(opened.metadata.table_uuid), "warehouse-id": world.warehouse}
    table = Table(world, namespace, person, rows, shape, {id: f"c{id}" for id in shape.fields}, {})
    table.holders.update({name: {id} for id, name in table.names.items()})
    first = {"kind": "mask", "action": Action.REPLACE_WITH_NULL, "columns": [{"name": "c2"}]}
    made = []
    try:
        for number in range(FILTERS + MASKS):
            policy = make(world, first if number >= FILTERS else {"kind": "row-filter", "test": _CONSTANTS})
            made.append(policy)
            (table.masks if number >= FILTERS else table.filters).append(policy)
            bound = change(world, policy, add=[on])
            assert bound.status_code == 204, bound.text
        if shape.evolves:
            table.tag.update(define(world))
            made.append(make(world, {"kind": "mask", "action": Action.MASK_TO_FIXED_VALUE}))
            bound = change(world, made[-1], add=[{"type": "tag", "id": table.tag["id"]}])
            assert bound.status_code == 204, bound.text
        if shape.evolves:  # the administrator renames columns, and must not be restricted for that
            for policy in made:
                world.grant("exempt", world.admin, "data-policy", policy["id"])
        yield table
    finally:
        for policy in made:
            delete_policy(world, policy["id"])


def append_as_is(table: Any, rows: pa.Table) -> None:
    """Append rows in a file that arrow writes: PyIceberg writes null lists of structs as empty ones."""
    named = rows.cast(schema_to_pyarrow(table.schema(), include_field_ids=True))
    path = f"{table.location()}/data/{unique('rows')}.parquet"
    with table.io.new_output(path).create() as file:
        pq.write_table(named, file)
    written = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=len(rows),
        file_size_in_bytes=len(table.io.new_input(path)),
    )
    with table.transaction() as changed, changed.update_snapshot().fast_append() as snapshot:
        snapshot.append_data_file(written)


def record(engines: str, counts: Mapping[str, Any]) -> None:
    """Write the counts of a comparison without differences."""
    print(f"\n{engines}: {counts}")
    if os.environ.get(RECORD):
        known = json.loads(RESULT.read_text()) if RESULT.exists() else {}
        RESULT.write_text(json.dumps({**known, engines: counts}, indent=2, sort_keys=True) + "\n")
