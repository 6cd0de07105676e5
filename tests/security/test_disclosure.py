# SPDX-License-Identifier: Apache-2.0
"""Disclosure: users without rights learn nothing about objects (LG-DIS-01 to -05, -11, LG-AUT-15)."""

from __future__ import annotations

import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support.stack.lifecycle import until
from tests.support.stack.world import SCHEMA, World, error_of, error_triple, unique


@pytest.fixture(scope="module")
def hidden(world: World) -> str:
    """Return a namespace with a table that carol does not see."""
    name = world.namespace()
    world.table(name, "secret")
    return name


@pytest.fixture(scope="module", autouse=True)
def _carol_is_a_stranger(world: World) -> None:
    """Revoke the grants that other tests gave carol."""
    world.strip(world.carol)
    for kind in ("project", "warehouse", "namespace", "table"):
        assert world.tuples_of(f"user:{world.carol.id}", kind) == set()


_REQUESTS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/namespaces/{ns}", None),
    ("HEAD", "/namespaces/{ns}", None),
    ("DELETE", "/namespaces/{ns}", None),
    ("POST", "/namespaces/{ns}/properties", {"updates": {"a": "b"}}),
    ("GET", "/namespaces/{ns}/tables", None),
    ("POST", "/namespaces/{ns}/tables", {"name": "new", "schema": SCHEMA}),
    ("POST", "/namespaces", {"namespace": ["{ns}", "child"]}),
    ("GET", "/namespaces?parent={ns}", None),
    ("GET", "/namespaces/{ns}/tables/{t}", None),
    ("HEAD", "/namespaces/{ns}/tables/{t}", None),
    ("GET", "/namespaces/{ns}/tables/{t}/credentials", None),
    ("DELETE", "/namespaces/{ns}/tables/{t}", None),
    ("POST", "/namespaces/{ns}/tables/{t}", {"requirements": [], "updates": []}),
    ("POST", "/namespaces/{ns}/tables/{t}", {"requirements": [{"type": "assert-create"}], "updates": []}),
]


def _shape(answer: httpx.Response, *names: str) -> tuple[int, list[str], str]:
    """Return (status, header names, body) without the object's names and the request id."""
    body = answer.text
    for name in names:
        body = body.replace(name, "…")
    if answer.content:
        body = body.replace(error_of(answer)["stack"][-1], "id")
    return answer.status_code, sorted(name for name in answer.headers if name != "date"), body


@pytest.mark.threat("LG-DIS-01")
@pytest.mark.parametrize(("method", "path", "body"), _REQUESTS, ids=lambda value: str(value)[:40])
def test_invisible_and_absent_objects_get_the_same_response(
    world: World, hidden: str, method: str, path: str, body: dict[str, Any] | None
) -> None:
    def send(ns: str, table: str) -> httpx.Response:
        sent = {**body, "namespace": [ns, "child"]} if body is not None and "namespace" in body else body
        return world.carol.send(method, world.root + path.format(ns=ns, t=table), json=sent)

    absent = "x" * len(hidden)
    there, gone = send(hidden, "secret"), send(absent, "absent")
    assert there.status_code == 404
    assert _shape(there, hidden, "secret") == _shape(gone, absent, "absent")
    assert len(there.content) == len(gone.content)


def test_invisible_warehouses_and_object_ids_get_the_same_response_as_absent_ones(world: World, hidden: str) -> None:
    nothing = "01900000-0000-7000-8000-000000000000"
    table = world.sql("select id from tables where name = 'secret' order by created_at desc limit 1")[0]["id"]
    pairs = [
        ("/catalog/v1/{}/namespaces", world.warehouse),
        ("/management/v1/warehouse/{}", world.warehouse),
        ("/management/v1/permissions/warehouse/{}/assignments", world.warehouse),
        ("/management/v1/permissions/namespace/{}/assignments", world.namespace_id(hidden)),
        (f"/management/v1/permissions/warehouse/{world.warehouse}/table/{{}}/assignments", str(table)),
    ]
    for path, id in pairs:
        there, gone = world.carol.get(path.format(id)), world.carol.get(path.format(nothing))
        assert there.status_code == 404, path
        assert _shape(there, id) == _shape(gone, nothing), path
    assert error_triple(world.carol.get("/catalog/v1/config?warehouse=demo"))[:2] == (404, "NoSuchWarehouseException")
    assert _shape(world.carol.get("/catalog/v1/config?warehouse=demo"), "demo") == _shape(
        world.carol.get("/catalog/v1/config?warehouse=omed"), "omed"
    )


@pytest.mark.threat("LG-DIS-02")
def test_taken_name_is_reported_only_to_callers_that_see_its_object(world: World, ns: str) -> None:
    """`create` on a namespace shows its objects; without it, taken and free names get equal responses."""
    table, person = world.table(ns), world.stranger()
    tables = f"{world.root}/namespaces/{ns}/tables"
    refused = [
        error_triple(person.post(tables, {"name": name, "schema": SCHEMA})) for name in (table.name, unique("free"))
    ]
    assert refused[0] == refused[1]
    assert refused[0][0] == 404
    world.grant("create", person, "namespace", world.namespace_id(ns))
    assert person.get(table.path).status_code == 200
    taken = person.post(tables, {"name": table.name, "schema": SCHEMA})
    assert error_triple(taken)[:2] == (409, "AlreadyExistsException")


@pytest.mark.threat("LG-DIS-03")
def test_lists_of_a_user_without_rights_are_empty_or_absent(world: World) -> None:
    assert world.carol.get("/management/v1/project-list").json() == {"projects": []}
    assert world.carol.get("/management/v1/warehouse").status_code == 404
    assert world.carol.get("/management/v1/user").status_code == 403


@pytest.mark.threat("LG-DIS-01")
@pytest.mark.parametrize("kind", ["a table", "a namespace", "a table in a namespace"])
def test_response_time_does_not_distinguish_invisible_from_absent(world: World, hidden: str, kind: str) -> None:
    """Compare response times of invisible and absent objects: both need the same model evaluation.

    Requests alternate, so that load on the machine affects both. One round without a difference suffices: a disclosure
    would show in every round.
    """
    pairs = {
        "a table": (f"namespaces/{hidden}/tables/secret", f"namespaces/{hidden}/tables/absent"),
        "a namespace": (f"namespaces/{hidden}", f"namespaces/{'x' * len(hidden)}"),
        "a table in a namespace": (
            f"namespaces/{hidden}/tables/secret",
            f"namespaces/{'x' * len(hidden)}/tables/absent",
        ),
    }
    seen = []
    for _ in range(5):
        taken: tuple[list[float], list[float]] = ([], [])
        for number in range(120):
            started = time.perf_counter()
            world.carol.get(f"{world.root}/{pairs[kind][number % 2]}")
            taken[number % 2].append(1000 * (time.perf_counter() - started))
        there, gone = map(statistics.median, taken)
        seen.append(f"invisible {there:.2f} ms, absent {gone:.2f} ms")
        if 0.8 < there / gone < 1.25:
            return
    pytest.fail("; ".join(seen))


@pytest.mark.chaos
@pytest.mark.threat("LG-DIS-05")
def test_revocation_is_effective_on_every_worker_when_acknowledged(world: World, ns: str) -> None:
    """The revocation holds for every worker process and its warm caches (ARCHITECTURE.md, invariant 4)."""
    world.strip(world.steward)
    table = world.table(ns)
    paths = [table.path, f"{table.path}/credentials"]

    def send(number: int) -> int:
        with httpx.Client(
            base_url=world.base, headers=dict(world.steward.http.headers), trust_env=False, timeout=60
        ) as fresh:
            return fresh.get(paths[number % 2], timeout=60).status_code

    with ThreadPoolExecutor(4) as pool:
        for _ in range(50):
            world.grant("select", world.steward, "table", table.uuid)
            assert send(0) == 200
            world.revoke("select", world.steward, "table", table.uuid)
            assert set(pool.map(send, range(4))) == {404}


@pytest.mark.threat("LG-DIS-04")
def test_errors_reveal_neither_sql_nor_python(world: World, hidden: str) -> None:
    """Error responses must contain neither SQL nor Python text."""
    answers = [
        world.admin.get(f"{world.root}/namespaces/{hidden}/tables/absent"),
        world.admin.post(f"{world.root}/namespaces/{hidden}/tables", {"name": "secret", "schema": SCHEMA}),
        world.admin.send("POST", f"{world.root}/namespaces", content=b"\xff\xfe{"),
        world.carol.post("/management/v1/project", {"project-name": "mine"}),
        world.admin.get("/nope"),
    ]
    for answer in answers:
        for word in ("Traceback", "sqlalchemy", "asyncpg", "SELECT", "select ", ".py", "arn:aws", "postgres"):
            assert word not in answer.text, answer.text


@pytest.mark.threat("LG-DIS-11")
def test_a_name_cannot_forge_a_line_of_the_log(world: World) -> None:
    """Names cannot hold line breaks; headers and errors escape them."""
    forged = '{"event": "forged"}'
    world.carol.get(f"{world.root}/namespaces/a%0A{forged}")
    world.carol.get(f"{world.root}/namespaces/{unique('b')}", headers={"User-Agent": f"x\u0085{forged}".encode()})
    world.carol.get(f"{world.root}/namespaces/c", headers={"X-Request-Id": forged})
    for line in _log(world, "gateway"):
        assert not line.strip().startswith(forged)


# ---- secrets --------------------------------------------------------------------------------------------------------


def _logs(world: World) -> Path:
    """Return the log directory of the stack, where the gateway process writes."""
    process = psutil.Process(world.ready.pids["gateway"][0])
    return Path(f"/proc/{process.pid}/fd/1").resolve().parent


def _log(world: World, name: str) -> list[str]:
    found = _logs(world) / f"{name}.log"
    return found.read_text(errors="replace").splitlines() if found.exists() else []


@pytest.mark.threat("LG-AUT-15")
def test_no_secret_is_in_any_log_or_audit_record(world: World, hidden: str) -> None:
    """Search every log of the stack and the audit for all tokens, secrets and vended keys of this run.

    See invariant 9 in ARCHITECTURE.md.
    """
    loaded = world.admin.get(f"{world.root}/namespaces/{hidden}/tables/secret").json()
    table = world.table(hidden)
    secrets = {
        world.ready.s3.secret_key,
        world.ready.openfga.token,
        world.ready.opa.token,
        world.ready.postgres.split(":")[2].split("@")[0],
        *(user.token.split(".")[2] for user in world.ready.users.values()),
        *(user.client_secret for user in world.ready.users.values()),
    }
    for config in (loaded["config"], table.answer["config"]):
        secrets |= {config["s3.secret-access-key"], config["s3.session-token"].split(".")[-1]}
    world.unauthenticated.get(f"{world.root}/namespaces", headers={"Authorization": f"Bearer {world.admin.token}x"})
    world.unauthenticated.get(f"{world.root}/namespaces?access_token={world.admin.token}")
    logs = [path for path in _logs(world).glob("*.log")]
    assert {path.stem for path in logs} >= {"gateway", "openfga", "opa", "postgres", "identity-provider"}
    for path in logs:
        text = path.read_text(errors="replace")
        leaked = [secret[:6] + "…" for secret in secrets if secret in text]
        assert not leaked, f"{path.name} holds {leaked}"
    time.sleep(0.4)  # audit records of reads are written within 200 ms
    for row in world.sql("select convert_from(record, 'UTF8') as record from audit_log"):
        assert not [secret for secret in secrets if secret in row["record"]]
    for name in ("warehouses", "secrets", "tables", "grants", "users"):
        for row in world.sql(f"select t::text as text from {name} t"):
            assert world.ready.s3.secret_key not in row["text"]
            assert world.ready.s3.secret_key.encode().hex() not in row["text"]


@pytest.mark.threat("LG-AUT-15")
def test_no_secret_is_on_a_command_line(world: World) -> None:
    secrets = [world.ready.s3.secret_key, world.ready.openfga.token, world.ready.opa.token]
    secrets += [user.client_secret for user in world.ready.users.values()]
    for pids in world.ready.pids.values():
        for pid in pids:
            line = " ".join(psutil.Process(pid).cmdline())
            assert not [secret for secret in secrets if secret in line]


def test_every_vended_credential_has_its_audit_record_before_it_leaves(world: World, hidden: str) -> None:
    answer = world.alice.get(f"{world.root}/namespaces/{hidden}/tables/secret")
    rows = world.sql("select actor_id, outcome from audit_log where request_id = $1", answer.headers["x-request-id"])
    assert [(row["actor_id"], row["outcome"]) for row in rows] == [("oidc~alice", "allowed")]


def _audited(world: World, request: str) -> list[Any]:
    """Return the audit records of a request; wait for the first one, which is written shortly after a refusal."""
    record = "select convert_from(record, 'UTF8') as record from audit_log where request_id = $1"
    until(lambda: bool(world.sql(record, request)), "the audit does not contain the refusal")
    return world.sql(record, request)


def test_audit_records_the_reason_hidden_in_the_response(world: World, hidden: str) -> None:
    for table in ("secret", "absent"):
        answer = world.carol.get(f"{world.root}/namespaces/{hidden}/tables/{table}")
        (row,) = _audited(world, answer.headers["x-request-id"])
        assert '"oidc~carol"' in row["record"]
        if table == "secret":
            there = row["record"]
        else:
            assert there != row["record"]
