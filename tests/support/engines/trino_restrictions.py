# SPDX-License-Identifier: Apache-2.0
"""A proxy of the gateway that restricts tables for the bridge of Trino, as the gateway does by data policies.

It lets tests choose any restriction, invalid ones included, for one user and one table.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

#: Actions that a restricted user may not do, with the member that nevertheless permits them.
_CHANGES = frozenset({"commit", "write_data"})


@dataclass(frozen=True, kw_only=True)
class Restricted:
    """The restrictions of one user on one table. `members` are members of the result of a check of its columns."""

    members: Mapping[str, Any]
    append: bool = False


def restricted(columns: list[str], *, row_filter: str = "", append: bool = False, **masks: str) -> Restricted:
    """Return restrictions in the gateway's form: the readable columns, a row filter, and a mask by column."""
    restrictions: dict[str, Any] = {"row-filter": row_filter} if row_filter else {}
    if masks:
        restrictions["column-masks"] = [{"column": name, "expression": text} for name, text in masks.items()]
    return Restricted(members={"columns": columns, "restrictions": restrictions}, append=append)


@dataclass
class Proxy:
    """The running proxy. `rules` has the restrictions by user id and table."""

    url: str
    rules: dict[tuple[str, str], Restricted] = field(default_factory=dict)

    def changed(self, checks: list[dict[str, Any]], results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the results of the gateway with the restrictions."""
        return [self._result(check, result) for check, result in zip(checks, results, strict=True)]

    def _result(self, check: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        table = check["operation"].get("table", {})
        rule = self.rules.get((check["identity"]["user"], table.get("table", "")))
        if rule is None or not result["allowed"]:
            return result
        action = table["action"]["action"]
        if action == "read_columns" and table.get("restrictions") == "trino":
            return {**result, **rule.members}
        denied = action in {"read_columns", "read_data"} or (
            action in _CHANGES and not (rule.append and table.get("append") is True)
        )
        return {**result, "allowed": result["allowed"] and not denied}


@contextmanager
def restricting(gateway: str) -> Iterator[Proxy]:
    """Run the proxy on loopback until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    proxy = Proxy(f"http://127.0.0.1:{server.server_port}")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name: self.headers[name] for name in ("Authorization", "X-Request-ID")}
            headers["Content-Type"] = "application/json"
            answer = httpx.post(f"{gateway}{self.path}", content=sent, headers=headers, trust_env=False, timeout=60)
            body = answer.json()
            if answer.status_code == 200:
                body = {"results": proxy.changed(json.loads(sent)["checks"], body["results"])}
            content = json.dumps(body).encode()
            self.send_response(answer.status_code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server.RequestHandlerClass = Handler
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join(timeout=60)


ROWS = """\
(1, 'Ann', '111-11', 'oslo', 1, date '1990-01-01', '+1'), (2, 'Bob', '222-22', 'oslo', 2, date '1991-01-01', '+2'),
(3, 'Cyd', '333-33', 'rome', 3, date '1992-01-01', '+3'), (4, 'Dan', '444-44', 'rome', 4, date '1993-01-01', '+4'),
(5, 'HIDDEN', '555-55', 'oslo', 5, date '1999-09-09', '+5')"""
#: Statements that reach hidden rows or masked values by an indirect way. A refusal is a right answer too.
WAYS = [
    "select id from {s}.people where 1/(id-5) <> 7",
    "select id from {s}.people where 1/(id-5) + random() > -99",
    "select id from {s}.people where cast(if(random() < 2, if(name like 'HID%', name, '1')) as integer) = 1",
    "select id from {s}.people where if(name like 'HID%' and random() < 2, cast(fail(name) as boolean), true)",
    "select a.id from {s}.people a join {s}.people b on a.id = b.id and 1/(a.id-5) + random() > -99",
    "select id from (select id, random() + 1/(id-5) as r from {s}.people) where r > -99",
    "select cast(ssn as integer) from {s}.people",
    "select fail(ssn) from {s}.people",
    "select max(born), max(name), max(ssn), max(contact) from {s}.people",
    "select id from {s}.people order by ssn limit 1",
    "select ssn, count(*) from {s}.people group by ssn",
    "with function random() returns double return 5e0 select id, name, ssn from {s}.people where 1/(id-5) < 9",
    "with function substr(a varchar, b bigint, c bigint) returns varchar return a select * from {s}.people",
    "execute immediate 'select * from {s}.people where random() + 1/(id-?) > -99' using 5",
    "with function regexp_replace(a varchar, b varchar, c varchar) returns varchar return a select * from {s}.people",
    "with function f(a varchar) returns varchar return fail(a) select f(ssn), f(name) from {s}.people where id > 4",
    "select id, u from {s}.people cross join unnest(array[1/(id-5)]) t(u)",
    "select a.id from {s}.people a full join {s}.people b on 1/(b.id-5) = 1 and random() < 2",
    "select * from {s}.people tablesample bernoulli (100) where 1/(id-5) + random() > -99",
    "select * from {s}.people tablesample system (100) where 1/(id-5) + random() > -99",
    "select sum(case when x = 1 then 1/(id-5) end), count(*) filter (where 1/(id-5) > 5) from {s}.people",
    "select first_value(name) over (order by id desc), lag(ssn) over (order by id) from {s}.people",
    "select json_object('a': ssn, 'b': name), cast(row(contact, born) as json) from {s}.people",
    "select approx_most_frequent(9, ssn, 99), listagg(contact, ',') within group (order by name) from {s}.people",
    "select query from system.runtime.queries where query like '%insert into {s}.people%'",
    "show stats for {s}.people",
    "show stats for (select * from {s}.people where x > 1)",
    "explain select * from {s}.people",
    "explain (type io) select * from {s}.people",
    "explain analyze verbose select * from {s}.people",
    "select * from {s}.people for version as of {old}",
    "select phone from {s}.people for version as of {old}",
    "select id, ssn from {s}.people for version as of {old}",
    "select * from {s}.people for version as of 'main'",
    'select * from {s}."people$files"',
    'select * from {s}."people$partitions"',
    'select * from {s}."people$entries"',
    'select * from {s}."people$snapshots"',
    'select * from {s}."people$properties"',
    'select * from {s}."people$data"',
    'select id, "$path" from {s}.people',
    'select id, "$partition" from {s}.people',
    'select id, "$file_modified_time" from {s}.people',
    "select * from table(ice.system.table_changes('{s}', 'people', {old}, {old}))",
    "select * from table(exclude_columns(input => table({s}.people), columns => descriptor(id)))",
    "select * from {s}.people match_recognize (order by id measures last(ssn) as s pattern (a+) define a as true)",
    "select * from system.metadata.table_comments where schema_name = '{s}'",
]
