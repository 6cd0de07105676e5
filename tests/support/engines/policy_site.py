# SPDX-License-Identifier: Apache-2.0
"""One table with personal data, five principals and six data policies, and the rows that each principal may see.

Generated people are the passengers of real flights. The policies are made through the management API. The expected
rows are computed here in plain Python, without the code that binds or compiles policies.
"""

from __future__ import annotations

import csv
import io
import random
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from lakegate.restrictions.actions import Action
from lakegate.spark.sources import default_directory
from tests.support.engines.lake import catalog_of
from tests.support.policies.policy_agreement import values_of
from tests.support.policies.reference_policies import masked
from tests.support.stack.columns import give
from tests.support.stack.data_policies import POLICY, change, make
from tests.support.stack.roles import add
from tests.support.stack.tags import attach, define, tags_path
from tests.support.stack.world import Person, World, send_until_decided, unique

Cells: TypeAlias = dict[str, Any]
"""The values of one row by column, in the form of the reference interpreter."""

COLUMNS: Mapping[str, pa.DataType] = {
    "id": pa.int64(),
    "name": pa.string(),
    "email": pa.string(),
    "phone": pa.string(),
    "national_id": pa.string(),
    "born": pa.date32(),
    "fare": pa.decimal128(9, 2),
    "carrier": pa.string(),
    "flight": pa.int32(),
    "origin": pa.string(),
    "delay": pa.float64(),
    "departs": pa.timestamp("us", "UTC"),
}
GRANTED = ("id", "email", "origin", "carrier")
"""The columns of the column grantee. Trino needs those of the row filters among them."""
CARRIERS = ("B6", "DL", "UA")
AIRPORTS: Mapping[str, tuple[str, ...]] = {"mapped": ("JFK", "LGA"), "columns": ("EWR",)}
"""The values of the mapping table by principal."""


def passengers(count: int = 200) -> pa.Table:
    """Return generated people, each on a real flight. Some values are null."""
    rnd = random.Random(19)
    with zipfile.ZipFile(default_directory() / "flights.csv.zip") as file, file.open(file.namelist()[0]) as raw:
        flights = [each for _, each in zip(range(0, count * 10), csv.DictReader(io.TextIOWrapper(raw)), strict=False)]
    rows = [_passenger(rnd, id, flight) for id, flight in enumerate(rnd.sample(flights, count), 1)]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items())))


def _passenger(rnd: random.Random, id: int, flight: Mapping[str, str]) -> Cells:
    name = rnd.choice(("Zoë Łuk", "Ann O'Hara", "Bo", "李雷", "D. de 7th"))
    born = date(rnd.randint(1930, 2012), rnd.randint(1, 12), rnd.randint(1, 28))
    personal = {
        "name": name,
        "email": f"{name[:2].lower()}{rnd.randint(1, 999)}@example.com",
        "phone": rnd.choice((f"+1 (555) 010-{rnd.randint(1000, 9999)}", "911", "")),
        "national_id": f"{rnd.randint(0, 999):03}-{rnd.randint(0, 99):02}",
        "born": born,
        "fare": Decimal(rnd.randint(0, 99_999)) / 100,
    }
    kept = {key: None if rnd.random() < 0.1 else value for key, value in personal.items()}
    return {
        "id": id,
        **kept,
        "carrier": flight["carrier"] if rnd.random() < 0.9 else None,
        "flight": int(flight["flight"]),
        "origin": flight["origin"],
        "delay": float(flight["dep_delay"]) if flight["dep_delay"] not in ("", "NA") else None,
        "departs": datetime.fromisoformat(flight["time_hour"]),
    }


def cells(table: pa.Table, key: str) -> list[Cells]:
    """Return the rows of an arrow table, sorted by a column."""
    columns = {name: [_comparable(each) for each in values_of(table.column(name))] for name in table.column_names}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return sorted(rows, key=lambda row: row[key])


def _comparable(value: Any) -> Any:
    """Return NaN as text, because NaN differs from itself."""
    return "NaN" if value != value else value


@dataclass(frozen=True)
class Site:
    """The table `passengers` of a namespace, its rows, and the principals by the name of their case."""

    world: World
    namespace: str
    id: str
    location: str
    rows: Sequence[Cells]
    people: Mapping[str, Person]

    @property
    def table(self) -> str:
        return "passengers"

    def expected(self, case: str) -> list[Cells]:
        """Return the rows and values of a principal in every engine."""
        return list(self.rows) if case == "exempt" else [self._masked(case, row) for row in self._visible(case)]

    def _visible(self, case: str) -> Iterator[Cells]:
        for row in self.rows:
            if row["carrier"] in CARRIERS and (case == "subject" or row["origin"] in AIRPORTS[case]):
                yield row

    def _masked(self, case: str, row: Cells) -> Cells:
        shown = {
            **row,
            "email": masked(Action.MASK_ALPHANUM, "string", row["email"]),
            "phone": masked(Action.SHOW_LAST_4, "string", row["phone"]),
            "national_id": masked(Action.SHA_256_GLOBAL, "string", row["national_id"]),
        }
        if case == "subject":
            shown["born"] = masked(Action.TRUNCATE_TO_YEAR, "date", row["born"])
        if case == "columns":
            # Other columns of a column grantee are null: all are optional.
            shown = {name: value if name in GRANTED else None for name, value in shown.items()}
        return shown


@contextmanager
def policy_site(world: World) -> Iterator[Site]:
    """Create the table, the principals and the policies; delete the policies at the end."""
    namespace = world.namespace(unique("people"))
    rows = passengers()
    opened = catalog_of(world, world.admin).create_table((namespace, "passengers"), schema=rows.schema)
    opened.append(rows)
    table = str(opened.metadata.table_uuid)
    people = {case: world.stranger(case) for case in ("exempt", "subject", "mapped", "columns", "nothing")}
    for case in ("exempt", "subject", "mapped"):
        world.grant("select", people[case], "table", table)
    for column in GRANTED:
        assert give(world, table, column, people["columns"]).status_code == 204
    made = _policies(world, people, namespace, table)
    try:
        yield Site(world, namespace, table, opened.metadata.location, cells(rows, "id"), people)
    finally:
        for each in made:
            delete_policy(world, each)


def delete_policy(world: World, id: str) -> None:
    """Delete a policy and its bindings."""
    done = send_until_decided(lambda: world.admin.send("DELETE", f"{POLICY}/{id}", params={"force": "true"}))
    assert done.status_code == 204, done.text


def _mask(action: Action, *columns: str) -> dict[str, Any]:
    named = {"columns": [{"name": each} for each in columns]} if columns else {}
    return {"kind": "mask", "action": action, **named}


def _policies(world: World, people: Mapping[str, Person], namespace: str, table: str) -> list[str]:
    """Create and bind four masks and two row filters. Return their ids."""
    made_role = send_until_decided(lambda: world.admin.post("/management/v1/role", {"name": unique("clerks")}))
    assert made_role.status_code == 201, made_role.text
    role = made_role.json()
    assert add(world, role, "user", people["subject"].id).status_code < 300
    tag = define(world)
    assert attach(world, tag, tags_path(world, "table", table, "national_id")).status_code < 300
    on_table = {"type": "table", "id": table, "warehouse-id": world.warehouse}
    on_namespace = {"type": "namespace", "id": world.namespace_id(namespace), "warehouse-id": world.warehouse}
    airports = _mapping_table(world, {people[case].id: values for case, values in AIRPORTS.items()})
    carriers = {"type": "in", "column": {"name": "carrier"}, "values": list(CARRIERS)}
    attribute = {"type": "attribute", "source": "mapping", "name": airports}
    either = [
        {"type": "in", "column": {"name": "origin"}, "values": attribute},
        {"type": "has-role", "role": role["id"]},
    ]
    policies: list[tuple[dict[str, Any], dict[str, str], dict[str, Any]]] = [
        (_mask(Action.MASK_ALPHANUM, "email"), on_table, {}),
        (_mask(Action.SHOW_LAST_4, "phone"), on_namespace, {}),
        (_mask(Action.SHA_256_GLOBAL), {"type": "tag", "id": tag["id"]}, {}),
        (_mask(Action.TRUNCATE_TO_YEAR, "born"), on_table, {"applies-to": "subjects"}),
        ({"kind": "row-filter", "test": carriers}, on_table, {}),
        ({"kind": "row-filter", "test": {"type": "or", "operands": either}}, on_namespace, {}),
    ]
    made = []
    for definition, on, more in policies:
        policy = make(world, definition, **more)
        made.append(policy["id"])
        world.grant("exempt", people["exempt"], "data-policy", policy["id"])
        if more:
            _grant_role(world, "subject", role["id"], policy["id"])
        bound = change(world, policy, add=[on])
        assert bound.status_code == 204, bound.text
    return made


def _grant_role(world: World, privilege: str, role: str, policy: str) -> None:
    """Grant a role a privilege on a policy."""
    path, entry = world.grants_path("data-policy", policy), {"type": privilege, "role": role}
    granted = send_until_decided(lambda: world.admin.post(path, {"writes": [entry]}))
    assert granted.status_code == 204, granted.text


def _mapping_table(world: World, values: Mapping[str, Sequence[str]]) -> str:
    """Create a mapping table with the values of each user. Return its name."""
    name = unique("airports")
    made = send_until_decided(lambda: world.admin.post("/management/v1/mapping-table", {"name": name}))
    assert made.status_code == 201, made.text
    entries = [{"principal": {"user": user}, "values": list(each)} for user, each in values.items()]
    path = f"/management/v1/mapping-table/{made.json()['id']}/entries"
    assert send_until_decided(lambda: world.admin.post(path, {"set": entries})).status_code == 204
    return name
