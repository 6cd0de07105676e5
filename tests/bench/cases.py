# SPDX-License-Identifier: Apache-2.0
"""The requests of `make bench`, and the data that they need in the measured stack."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from urllib.parse import urlencode

import httpx

from lakegate.local.ready import Ready
from tests.bench import people
from tests.bench.catalogs import COMMIT, COMMITTED, SET_PROPERTIES
from tests.bench.generator import Sent
from tests.bench.options import Options
from tests.bench.people import Company
from tests.bench.searching import TEXT, SearchedTables, questions
from tests.bench.seeding import SCHEMA, ManyTables, with_snapshots
from tests.bench.stacks import Running

_CHECKS = (1, 100, 1_000)
_FEW = "analyst"
_MANY = "steward"
_ENGINE = "etl"
_EXCHANGE = "token exchange"
_FORGETFUL = (("MEMORY__ALLOW_SECONDS", "0"),)
_NEW_CREDENTIALS = (("MEMORY__CREDENTIALS", "0"),)
_ALONE = "mix, without describe above"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One kind of request. `floor_table` is the id of the table whose document the floor sends."""

    name: str
    sent: Sent
    floor_table: str = ""
    connections: tuple[int, ...]
    opa_called: bool = False
    """True if OPA is called with every request."""
    settings: tuple[tuple[str, str], ...] = ()
    """Settings of a further gateway for this request; empty to use the stack's own gateway."""
    warm_requests: int = 0
    """Requests before the first slice; 0: a time limits them."""
    requests: int = 0
    """Requests of a slice; 0: a time limits them."""
    before: Callable[[], None] | None = None
    """Called before each slice."""


@dataclass(frozen=True, slots=True)
class Cases:
    """Create the data of the selected requests in a stack."""

    running: Running
    options: Options
    client: httpx.Client
    namespaces: str
    headers: dict[str, str]
    base: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", f"{self.namespaces}/bench/tables")

    @property
    def stack(self) -> Ready:
        """Return the description of the stack."""
        return self.running.ready

    def all(self) -> list[Case]:
        """Return the selected requests. Their data is created first."""
        self.client.post(self.namespaces, json={"namespace": ["bench"]}).raise_for_status()
        self._create(self.base, "table")
        found = [*self._small(), *self._commits(), *self._large(), *self._lists(), *self._searches(), *self._mixes()]
        found += [self._exchange()] if self.options.selects(_EXCHANGE) else []
        ids = self._table_ids()
        by_url = {f"{self.base}/{name}": id for name, id in ids.items()}
        return [
            replace(case, floor_table=by_url.get(case.sent.url, ids["table"]))
            for case in found
            if self.options.selects(case.name)
        ]

    def _create(self, tables: str, name: str) -> None:
        self.client.post(tables, json={"name": name, "schema": SCHEMA}).raise_for_status()

    def _table_ids(self) -> dict[str, str]:
        listed = self.client.get(self.base, params={"returnUuids": "true"}).raise_for_status().json()
        return {each["name"]: id for each, id in zip(listed["identifiers"], listed["table-uuids"], strict=True)}

    def _case(
        self, name: str, method: str, url: str, *, headers: dict[str, str] | None = None, body: str | None = None
    ) -> Case:
        sent = Sent(method=method, url=url, headers=self.headers if headers is None else headers, body=body)
        return Case(name=name, sent=sent, connections=self.options.connections)

    def _small(self) -> list[Case]:
        """Return requests of the owner about one table."""
        plain = {**self.headers, "X-Iceberg-Access-Delegation": "client-managed"}
        table = f"{self.base}/table"
        config = f"{self.stack.catalog_uri}/v1/config?warehouse={self.stack.warehouse}"
        load = self._case("loadTable", "GET", table, headers=plain)
        create = json.dumps({"name": "created_{n}", "schema": SCHEMA})
        return [
            self._case("config", "GET", config),
            load,
            replace(load, name="loadTable, OPA called", opa_called=True),
            replace(load, name="loadTable, nothing remembered", settings=_FORGETFUL),
            self._case("table exists", "HEAD", table),
            self._case("list namespaces", "GET", self.namespaces),
            self._case("loadTable, vended", "GET", table),
            replace(self._case("loadTable, new credentials", "GET", table), settings=_NEW_CREDENTIALS),
            self._case("sign", "POST", f"{table}/sign", body=self._read_to_sign()),
            self._case("create table", "POST", self.base, headers=plain, body=create),
        ]

    def _read_to_sign(self) -> str:
        """Return the request for the signature of a read of the table's files."""
        location = self.client.get(f"{self.base}/table").raise_for_status().json()["metadata"]["location"]
        uri = f"{self.stack.s3.endpoint}/{location.removeprefix('s3://')}/data/file.parquet"
        return json.dumps({"region": self.stack.s3.region, "method": "GET", "uri": uri, "headers": {}})

    def _commits(self) -> list[Case]:
        """Return commits to one table, to many tables in turn, and to tables with a history."""
        one = self._case("commit, one table", "POST", f"{self.base}/table", body=SET_PROPERTIES)
        cases = [one]
        if self.options.selects(COMMIT):
            self.client.post(self.namespaces, json={"namespace": ["commits"]}).raise_for_status()
            tables = f"{self.namespaces}/commits/tables"
            for number in range(COMMITTED):
                self._create(tables, f"t{number:03}")
            sent = replace(one.sent, url=f"{tables}/t{{k}}", vary=COMMITTED)
            cases.append(replace(one, name=COMMIT, sent=sent, warm_requests=people.WARM_PASSES * COMMITTED))
        for count in self.options.snapshots:
            name = f"commit, {count:,} snapshots"
            if self.options.selects(name):
                with_snapshots(self.client, self.base, f"history_{count}", count)
                sent = replace(one.sent, url=f"{self.base}/history_{count}")
                cases.append(replace(one, name=name, sent=sent, connections=(8,)))
        return cases

    def _large(self) -> list[Case]:
        count = self.options.large_snapshots
        name = f"loadTable, {count:,} snapshots (1 MB)"
        if not self.options.selects(name):
            return []
        with_snapshots(self.client, self.base, "large", count)
        plain = {**self.headers, "X-Iceberg-Access-Delegation": "client-managed"}
        return [replace(self._case(name, "GET", f"{self.base}/large", headers=plain), connections=(1, 8))]

    def _lists(self) -> list[Case]:
        """Return lists by users who see three, half and all of the tables."""
        cases = []
        for count in self.options.tables:
            if not self.options.selects(f"list {count:,} tables"):
                continue
            few = {_FEW: 3, _MANY: count // 2}
            ManyTables(self.stack, self.client, self.namespaces, count=count).make(f"wide{count}", few)
            # A reader of many single tables, and a large list, occupy the machine with one connection already.
            at_once = (1,) if count > 1_000 else self.options.connections
            for reader, sees in {**few, "admin": count}.items():
                name = f"list {count:,} tables, sees {sees:,}"
                url, headers = f"{self.namespaces}/wide{count}/tables", self._bearer(reader)
                cases.append(replace(self._case(name, "GET", url, headers=headers), connections=at_once))
        return cases

    def _bearer(self, user: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.stack.users[user].token}"}

    def _searches(self) -> list[Case]:
        """Return searches by users who see three, half and all of the tables, and batch checks."""
        if not (self.options.selects("search") or self.options.selects("batch-check")):
            return []
        count = self.options.searched
        searched = SearchedTables(self.stack, self.client, self.namespaces, count=count).make_for(_MANY, _FEW)
        management, warehouse = f"{self.stack.management_uri}/v1", self.namespaces.rsplit("/", 2)[-2]
        cases = []
        for reader, sees in {_FEW: 3, _MANY: count // 2, "admin": count}.items():
            name = f"search in {count:,} tables, sees {sees:,}"
            url, body = f"{management}/warehouse/{warehouse}/search-tabular", json.dumps({"search": TEXT})
            cases.append(self._case(name, "POST", url, headers=self._bearer(reader), body=body))
        for asked in _CHECKS:
            url, body = f"{management}/action/batch-check", questions(warehouse, searched[:asked])
            case = self._case(f"batch-check of {asked:,}", "POST", url, headers=self._bearer(_MANY), body=body)
            cases += [case, replace(case, name=f"{case.name}, nothing remembered", settings=_FORGETFUL)]
        return [replace(case, connections=(1,)) for case in cases]

    def _mixes(self) -> list[Case]:
        """Return the mixed loads. Roles with grants on single tables only are measured in a namespace of their own."""
        cases = []
        if any(map(self.options.selects, people.NAMES)):
            mixes = Company(self.stack, self.running.data, self.client, self.namespaces).mixes()
            for name, sent in mixes.sent.items():
                first = name == people.FIRST
                cases.append(
                    Case(
                        name=name,
                        sent=sent,
                        connections=self.options.connections,
                        requests=mixes.one_pass if first else 0,
                        before=mixes.forget if first else None,
                        warm_requests=0 if first else people.WARM_PASSES * mixes.one_pass,
                    )
                )
        if self.options.selects(_ALONE):
            company = Company(self.stack, self.running.data, self.client, self.namespaces, name="alone")
            mixes = company.mixes(described=False)
            cases.append(
                Case(
                    name=_ALONE,
                    sent=mixes.sent[people.STEADY],
                    connections=self.options.connections,
                    warm_requests=people.WARM_PASSES * mixes.one_pass,
                )
            )
        return cases

    def _exchange(self) -> Case:
        """Return the token exchange of an engine that acts for a user with that user's token."""
        engine, other_user = self.stack.users[_ENGINE], self.stack.users[_FEW]
        may = {"writes": [{"type": "delegate", "user": engine.id}]}
        warehouse = self.namespaces.rsplit("/", 2)[-2]
        url = f"{self.stack.management_uri}/v1/permissions/warehouse/{warehouse}/assignments"
        self.client.post(url, json=may).raise_for_status()
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token": other_user.token,
            "subject_token_type": "urn:ietf:params:oauth:token-type:access_token",
        }
        headers = {**self._bearer(_ENGINE), "Content-Type": "application/x-www-form-urlencoded"}
        url = f"{self.stack.catalog_uri}/v1/oauth/tokens"
        return self._case(_EXCHANGE, "POST", url, headers=headers, body=urlencode(form))
