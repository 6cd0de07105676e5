# SPDX-License-Identifier: Apache-2.0
"""A running stack for tests: users with tokens, helpers that create objects, and snapshots of its state.

The contract, security and integration tests share this module. Users send plain HTTP. The module imports no code of the
gateway except for the shape of the ready file.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import boto3
import httpx
import joserfc.jwk
import joserfc.jws
import psutil
from botocore.config import Config

from lakegate.local.ready import Ready
from tests.support.lakegate_command import run_lakegate
from tests.support.runs.retries import RETRIES

Answer = TypeVar("Answer")

#: Initial grants of the stack's users, all on its warehouse; other users have none.
POLICIES_APPLY_S = 1.1
"""A change of policy data applies within this time in every process: no revision that was read a second ago counts."""

AT_FIRST = frozenset({("alice", "select"), ("bob", "modify"), ("bob", "create")})

SCHEMA = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "word", "type": "string", "required": False},
    ],
}

#: Tables that the gateway writes periodically, independent of requests.
_STATISTICS = ("endpoint_statistics", "warehouse_statistics", "warehouse_changes")

_numbers = itertools.count(1)

# The canary's verdicts, which a background task renews.
_VERDICTS = "{scope_verdict,scope_version,scope_verdict_at,scope_tried_at,scope_report}"

# The gateway itself schedules and ends the log cleanup of each project, and deletes replaced credentials and the
# register entries of expired ones.
_BY_ITSELF = {
    "live_credentials": "where live_until > now()",
    "secrets": "where replaced_at is null",
    "tasks": "where queue <> 'task_log_cleanup'",
    "task_log": "where task_id not in (select id from tasks where queue = 'task_log_cleanup')",
}


def unique(stem: str) -> str:
    """Return a name that is unique in this run."""
    return f"{stem}_{os.getpid()}_{next(_numbers)}"


class Person:
    """A user with a token, and an HTTP client of the gateway for this user."""

    def __init__(self, name: str, id: str, token: str, base: str) -> None:
        self.name = name
        self.id = id
        self.token = token
        self.http = httpx.Client(
            base_url=base, headers={"Authorization": f"Bearer {token}"} if token else {}, timeout=60, trust_env=False
        )

    def __repr__(self) -> str:
        return self.name

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request; `path` begins with `/catalog` or `/management`."""
        return self.http.request(method, path, **more)

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Send a GET request."""
        return self.send("GET", path, **more)

    def post(self, path: str, body: object = None, **more: Any) -> httpx.Response:
        """Send a POST request with a JSON body."""
        return self.send("POST", path, json=body, **more)

    def delete(self, path: str, **more: Any) -> httpx.Response:
        """Send a DELETE request."""
        return self.send("DELETE", path, **more)

    def head(self, path: str, **more: Any) -> httpx.Response:
        """Send a HEAD request."""
        return self.send("HEAD", path, **more)


@dataclass(frozen=True)
class Table:
    """A table that a test created."""

    namespace: str
    name: str
    uuid: str
    location: str
    path: str
    answer: dict[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Snapshot:
    """The state that a refused request must leave unchanged."""

    rows: Mapping[str, str]
    objects: frozenset[tuple[str, str]]
    tuple_changes: int


class Loop:
    """An event loop in a thread, so that synchronous tests can use asyncpg without a new loop for each call."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Return the result of a coroutine."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(150)

    def close(self) -> None:
        """Stop the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


@cache
def _signing_key(pem: bytes) -> joserfc.jwk.RSAKey:
    """Read a private key once: that takes 40 ms of CPU, and a signature 1 ms."""
    return joserfc.jwk.RSAKey.import_key(pem)


class World:
    """One stack, its users, and direct access to its database, object store and OpenFGA."""

    def __init__(self, ready: Ready) -> None:
        self.ready = ready
        self.base = ready.catalog_uri.removesuffix("/catalog")
        self.people = {name: Person(name, user.id, user.token, self.base) for name, user in ready.users.items()}
        self.unauthenticated = Person("unauthenticated", "", "", self.base)
        self._met: list[Person] = []
        self._loop = Loop()
        self._connection: asyncpg.Connection | None = None
        self._changes_read = 0
        self._changes_token = ""
        self._openfga = httpx.Client(
            base_url=f"{ready.openfga.url}/stores/{ready.openfga.store_id}",
            headers={"Authorization": f"Bearer {ready.openfga.token}"},
            timeout=60,
            trust_env=False,
        )
        self.s3 = self.store(ready.s3.access_key, ready.s3.secret_key)
        self.bucket = ready.s3.bucket
        if ready.warehouse is not None:
            self.project = ready.project_id
            config = self.admin.get(f"/catalog/v1/config?warehouse={ready.warehouse}").json()
            self.warehouse = config["defaults"]["prefix"]
            self.root = f"/catalog/v1/{self.warehouse}"

    def close(self) -> None:
        """Close all connections."""
        if self._connection is not None:
            self._loop.run(self._connection.close())
        self._loop.close()
        self._openfga.close()
        for person in (*self.people.values(), *self._met, self.unauthenticated):
            person.http.close()

    def __getattr__(self, name: str) -> Person:
        try:
            found: Person = self.__dict__["people"][name]
        except KeyError:
            raise AttributeError(name) from None
        return found

    def stranger(self, stem: str = "stranger") -> Person:
        """Create a user that has a record and no grants, for one test alone."""
        person = self.person_with(subject := unique(stem))
        user = {"name": subject, "user-type": "human", "update-if-exists": True}
        made = send_until_decided(lambda: person.post("/management/v1/user", user))
        assert made.status_code in (200, 201), made.text
        return person

    def person_with(self, subject: str, **claims: object) -> Person:
        """Return a user without a record in the gateway, whose token has these claims.

        The token has the form of the stack's provider, a subject of its own, and a signature with the provider's key.
        """
        issued = joserfc.jws.extract_compact(self.admin.token.encode())
        own = {"sub": subject, "name": subject, "client_id": subject, "jti": str(uuid.uuid4())}
        header = {name: value for name, value in issued.headers().items() if name in ("alg", "kid", "typ")}
        key = _signing_key(self.provider_key())
        body = json.dumps(json.loads(issued.payload) | own | claims)
        person = Person(
            subject, f"oidc~{subject}", joserfc.jws.serialize_compact(header, body.encode(), key), self.base
        )
        self._met.append(person)
        return person

    def provider_key(self) -> bytes:
        """Return the private key of the identity provider (PEM), from the provider's configuration directory."""
        command = psutil.Process(self.ready.pids["identity-provider"][0]).cmdline()
        return (Path(command[command.index("--config") + 1]) / "keys" / "rsa_private.pem").read_bytes()

    # ---- creating objects ---------------------------------------------------------------------------------------

    def namespace(self, name: str | None = None, *, by: Person | None = None) -> str:
        """Create a top-level namespace; return its name."""
        name = name or unique("ns")
        made = self._made(by, f"{self.root}/namespaces", {"namespace": [name]})
        assert made.status_code == 200, made.text
        return name

    def _made(self, by: Person | None, path: str, body: Any) -> httpx.Response:
        """Create an object; retry after 429 and 503, as clients do."""
        return send_until_decided(lambda: (by or self.admin).post(path, body))

    def namespace_id(self, name: str, *, by: Person | None = None) -> str:
        """Return the id of a namespace."""
        found = send_until_decided(lambda: (by or self.admin).get(f"{self.root}/namespaces/{name}"))
        assert found.status_code == 200, found.text
        return str(found.json()["properties"]["namespace_id"])

    def table(self, namespace: str, name: str | None = None, *, by: Person | None = None, **more: Any) -> Table:
        """Create a table with two columns; `more` are further members of the request."""
        name = name or unique("t")
        made = self._made(by, f"{self.root}/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA, **more})
        assert made.status_code == 200, made.text
        answer = made.json()
        return Table(
            namespace=namespace,
            name=name,
            uuid=answer["metadata"]["table-uuid"],
            location=answer["metadata"]["location"],
            path=f"{self.root}/namespaces/{namespace}/tables/{name}",
            answer=answer,
        )

    def grants_path(self, kind: str, id: str) -> str:
        """Return the path of an object's assignments."""
        if kind in ("table", "view", "generic-table"):
            return f"/management/v1/permissions/warehouse/{self.warehouse}/{kind}/{id}/assignments"
        if kind == "server":
            return "/management/v1/permissions/server/assignments"
        return f"/management/v1/permissions/{kind}/{id}/assignments"

    def grant(
        self, privilege: str, to: Person, kind: str, id: str, *, by: Person | None = None, expect: int = 204
    ) -> httpx.Response:
        """Grant `privilege` on an object."""
        # Tests of engines act for the administrator, too. `test_delegate_limits.py` tests the default.
        limits = {"acts-for": {"administrators": True}} if privilege == "delegate" and expect == 204 else {}
        path, entry = self.grants_path(kind, id), {"type": privilege, "user": to.id} | limits
        answer = send_until_decided(lambda: (by or self.admin).post(path, {"writes": [entry]}), unless=expect)
        assert answer.status_code == expect, answer.text
        return answer

    def revoke(
        self, privilege: str, of: Person, kind: str, id: str, *, by: Person | None = None, expect: int = 204
    ) -> httpx.Response:
        """Revoke `privilege` on an object."""
        path, entry = self.grants_path(kind, id), {"type": privilege, "user": of.id}
        answer = self._taken(by or self.admin, path, entry, unless=expect)
        assert answer.status_code == expect, answer.text
        return answer

    def _taken(self, by: Person, path: str, entry: dict[str, Any], *, unless: int = 0) -> httpx.Response:
        """Revoke a grant; return the response.

        After 503 the grant may be revoked in the database but not yet in OpenFGA. If a retry then returns 404, wait for
        the outbox and return 204.
        """
        answers: list[httpx.Response] = []

        def send() -> httpx.Response:
            answers.append(by.post(path, {"deletes": [entry]}))
            return answers[-1]

        answer = send_until_decided(send, unless=unless)
        if answer.status_code == 404 and len(answers) > 1:
            self.delivered()
            answer.status_code = 204
        return answer

    def strip(self, person: Person) -> None:
        """Revoke every grant of a user."""
        self._take(person, self._held(person))

    def people_as_at_first(self) -> None:
        """Restore the initial grants of all users except the administrator."""
        for name, person in self.people.items():
            if person is self.admin:
                continue
            given = {privilege for who, privilege in AT_FIRST if who == name}
            held = self._held(person)
            kept = [row for row in held if row["privilege"] in given and row["object_id"] == self.warehouse]
            self._take(person, [row for row in held if row not in kept])
            for privilege in given - {row["privilege"] for row in kept}:
                self.grant(privilege, person, "warehouse", self.warehouse)

    def remove_policies(self) -> None:
        """Delete all data policies of the stack, also those that a test inserted by SQL.

        A policy of the API has tuples in OpenFGA. A policy that is deleted by SQL leaves them as drift, whose repair
        changes revisions during the next test: its requests may then answer 429.
        """
        for row in self.sql("select id::text as id from data_policies"):
            path = f"/management/v1/data-policy/{row['id']}?force=true"
            gone = send_until_decided(partial(self.admin.delete, path))
            assert gone.status_code in (204, 404), gone.text
        self.sql("delete from data_policies")
        self.sql("update warehouses set data_policy_revision = null where data_policy_revision is not null")

    def _held(self, person: Person) -> list[Any]:
        """Return the rows of a user's grants, each with the warehouse of its table, view or column."""
        return self.sql(
            "select g.id, g.privilege, g.object_type, g.object_id, t.warehouse_id::text as warehouse from grants g "
            "left join tables t on g.object_type = t.kind and t.id::text = g.object_id "
            "or g.object_type = 'column' and t.id::text = split_part(g.object_id, '.', 1) "
            "where g.principal_type = 'user' and g.principal_id = $1",
            person.id,
        )

    def _take(self, person: Person, held: list[Any]) -> None:
        for row in held:
            if row["object_type"] == "column":
                self._strip_column(person, row["warehouse"], *row["object_id"].split("."))
                continue
            kind, id = row["object_type"].replace("_", "-"), row["object_id"]
            within = f"warehouse/{row['warehouse']}/{kind}" if row["warehouse"] else kind
            named = within if kind == "server" else f"{within}/{id}"  # there is one server
            path = f"/management/v1/permissions/{named}/assignments"
            gone = self._taken(self.admin, path, {"type": row["privilege"], "user": person.id})
            if gone.status_code == 404:
                # The grant has expired, or a test inserted the rows of a role and its members by SQL, so OpenFGA has
                # neither.
                self.sql("delete from grants where id = $1", row["id"])
                continue
            assert gone.status_code == 204, gone.text

    def _strip_column(self, person: Person, warehouse: str, table: str, field: str) -> None:
        # The field id identifies the column: the column may be dropped, and another may have its name.
        grants = f"/management/v1/warehouse/{warehouse}/table/{table}/columns/field-id:{field}/grants"
        select = {"privilege": "select", "principal": {"user": person.id}}
        gone = send_until_decided(lambda: self.admin.post(grants, {"deletes": [select]}))
        assert gone.status_code in (204, 404), gone.text

    def commit(self, by: Person, path: str, *updates: object, requirements: tuple[object, ...] = ()) -> httpx.Response:
        """Send a commit to a table."""
        return by.post(path, {"requirements": list(requirements), "updates": list(updates)})

    # ---- direct access to the state -----------------------------------------------------------------------------

    def store(self, access_key: str, secret_key: str, session_token: str | None = None) -> Any:
        """Return an S3 client with these keys."""
        return boto3.client(
            "s3",
            endpoint_url=self.ready.s3.endpoint,
            region_name=self.ready.s3.region,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            aws_session_token=session_token,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def store_of(self, config: Mapping[str, str]) -> Any:
        """Return an S3 client with vended keys."""
        return self.store(config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"])

    def lakegate(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a `lakegate` command with the settings of the running gateway."""
        return run_lakegate(*arguments, environment=psutil.Process(self.ready.pids["gateway"][0]).environ())

    def sql(self, statement: str, *arguments: object) -> list[Any]:
        """Return the rows of a statement on the gateway's database."""

        async def fetch() -> list[Any]:
            if self._connection is None or self._connection.is_closed():
                self._connection = await asyncpg.connect(self.ready.postgres)
            return list(await self._connection.fetch(statement, *arguments))

        return self._loop.run(fetch())

    def rows(self) -> dict[str, str]:
        """Return a digest of each table of the gateway's database.

        The audit, the drift watch, statistics and log cleanup tasks are left out, because the gateway writes them by
        itself.
        """
        names = [
            row["tablename"]
            for row in self.sql("select tablename from pg_tables where schemaname = 'public' order by 1")
            if row["tablename"] not in ("alembic_version", "drift_watch", *_STATISTICS)
            # Also its partitions.
            and not row["tablename"].startswith("audit_log")
        ]
        digests = ", ".join(
            f"(select concat(count(*), ':', md5(string_agg(md5(r), '' order by md5(r)))) from "
            f"(select (to_jsonb(t) - '{_VERDICTS}'::text[])::text as r from {name} t {_BY_ITSELF.get(name, '')}) rows)"
            f' as "{name}"'
            for name in names
        )
        return dict(self.sql(f"select {digests}")[0])

    def objects(self, prefix: str = "") -> frozenset[tuple[str, str]]:
        """Return (key, ETag) of every object in the bucket with this key prefix."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        return frozenset((found["Key"], found["ETag"]) for page in pages for found in page.get("Contents", ()))

    def tuple_changes(self) -> int:
        """Return the number of tuple writes and deletes in OpenFGA so far."""
        while True:
            token = f"&continuation_token={self._changes_token}" if self._changes_token else ""
            page = self._openfga.get(f"/changes?page_size=100{token}")
            page.raise_for_status()
            found = page.json()
            self._changes_read += len(found["changes"])
            self._changes_token = found["continuation_token"]
            if not found["changes"]:
                return self._changes_read

    def tuples(self, object: str) -> set[tuple[str, str]]:
        """Return (user, relation) of the tuples on an object."""
        found = self._openfga.post("/read", json={"tuple_key": {"object": object}, "page_size": 100})
        found.raise_for_status()
        return {(each["key"]["user"], each["key"]["relation"]) for each in found.json()["tuples"]}

    def tuples_of(self, user: str, type: str) -> set[tuple[str, str]]:
        """Return (relation, object) of a user's tuples on objects of a type."""
        found = self._openfga.post("/read", json={"tuple_key": {"user": user, "object": f"{type}:"}, "page_size": 100})
        found.raise_for_status()
        return {(each["key"]["relation"], each["key"]["object"]) for each in found.json()["tuples"]}

    def write_tuple(self, user: str, relation: str, object: str) -> None:
        """Write a tuple directly to OpenFGA."""
        self._write_tuples("writes", user, relation, object)

    def delete_tuple(self, user: str, relation: str, object: str) -> None:
        """Delete a tuple directly from OpenFGA, if it exists."""
        self._write_tuples("deletes", user, relation, object)

    def _write_tuples(self, way: str, user: str, relation: str, object: str) -> None:
        key = {"user": user, "relation": relation, "object": object}
        ignored = {"writes": {"on_duplicate": "ignore"}, "deletes": {"on_missing": "ignore"}}[way]
        self._openfga.post("/write", json={way: {"tuple_keys": [key], **ignored}}).raise_for_status()

    def delivered(self) -> None:
        """Wait until the outbox is empty."""
        deadline = time.monotonic() + 60
        while self.sql("select count(*) as n from outbox")[0]["n"]:
            assert time.monotonic() < deadline, "the outbox was not delivered before the deadline"
            time.sleep(0.2)

    def tasks_ended(self, warehouse: str | None = None) -> None:
        """Wait until no task of the next two seconds is left, in one warehouse or in all. Purges that wait for
        engines to delete the files themselves begin now.
        """
        of, values = ("", ()) if warehouse is None else (" and warehouse_id = $1::uuid", (warehouse,))
        self.sql(
            "update tasks set scheduled_for = now() where queue = 'tabular_purge' and status = 'scheduled' "
            f"and scheduled_for <= now() + interval '11 seconds'{of} returning id",
            *values,
        )
        due = f"""
            select queue, status, attempt, interruptions, warehouse_id, heartbeat_at, last_error, now() from tasks
            where status in ('scheduled', 'running') and scheduled_for <= now() + interval '2 seconds'{of}
        """
        deadline = time.monotonic() + 60
        while left := self.sql(due, *values):
            assert time.monotonic() < deadline, f"{len(left)} tasks did not end before the deadline: {left[:3]}"
            time.sleep(0.2)

    def quiet(self) -> None:
        """Wait until no background work is due: tasks, and removal of expired keys and grants."""
        self.tasks_ended()
        expired = """
            select (select count(*) from idempotency where expires_at < now()) as idempotency_keys,
                   (select count(*) from signing_keys where verifies_until <= now()) as signing_keys
        """
        deadline = time.monotonic() + 60
        while any((left := self.sql(expired)[0]).values()):
            assert time.monotonic() < deadline, f"expired rows were not removed before the deadline: {left}"
            time.sleep(0.2)
        # Expired grants are removed about every ten seconds, unless a test blocks the removal.
        revocations_left = (
            "select (select count(*) from grants where expires_at < now()) + (select count(*) from outbox) as n"
        )
        patience = time.monotonic() + 30
        while self.sql(revocations_left)[0]["n"] and time.monotonic() < patience:
            time.sleep(0.2)

    def snapshot(self) -> Snapshot:
        """Return the state of database, object store and OpenFGA after background work has ended."""
        self.quiet()
        return Snapshot(rows=self.rows(), objects=self.objects(), tuple_changes=self.tuple_changes())


def without_facts(detail: dict[str, Any]) -> dict[str, Any]:
    """Return the detail of an audit record without the fields of its operations."""
    return {name: value for name, value in detail.items() if name != "facts"}


def send_until_decided(send: Callable[[], httpx.Response], *, unless: int = 0) -> httpx.Response:
    """Send a request that a test needs but does not check; retry after 429 and 503, unless `unless` is that status.

    Such responses occur if no decision was possible in time, or if a concurrent revocation outdated the decision.
    """
    return send_with_retries(send, unless=unless, seconds=30)


def send_with_retries(
    send: Callable[[], httpx.Response], *, unless: int = 0, seconds: float, pause: float = 0.2
) -> httpx.Response:
    """Send a request until its status is neither 429 nor 503, for at most `seconds`; the run counts retried
    requests.
    """
    answer = send()
    if answer.status_code not in {429, 503} - {unless}:
        return answer
    RETRIES.note()
    deadline = time.monotonic() + seconds
    while answer.status_code in {429, 503} - {unless} and time.monotonic() < deadline:
        time.sleep(pause)
        answer = send()
    return answer


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """Return the error of a response in the Iceberg form; fail if the form differs."""
    assert answer.headers["content-type"].startswith("application/json"), answer.text
    body = answer.json()
    assert set(body) == {"error"}, body
    error: dict[str, Any] = body["error"]
    assert set(error) <= {"message", "type", "code", "stack"}, error
    assert error["code"] == answer.status_code
    assert isinstance(error["message"], str)
    assert error["message"]
    assert isinstance(error["type"], str)
    return error


def error_triple(answer: httpx.Response) -> tuple[int, str, str]:
    """Return (status, type, message) of an error: all of it except the id, which differs between responses."""
    error = error_of(answer)
    return answer.status_code, error["type"], error["message"]
