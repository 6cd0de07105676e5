# SPDX-License-Identifier: Apache-2.0
"""Metadata documents and requests that cost more than their size suggests are refused (LG-DEC-06).

A refusal names its cause, changes nothing and delays no other request. The sizes are those of the default limits
(`docs/settings.md`).
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import psutil
import pytest

from tests.support.stack.registrations import adopt, adopt_view, foreign
from tests.support.stack.world import SCHEMA, Table, World, error_triple, unique

pytestmark = pytest.mark.chaos

MIB = 1024 * 1024


def _file(world: World, location: str, content: bytes) -> str:
    file = f"{location}/metadata/00000-{unique('x')}.metadata.json"
    world.s3.put_object(Bucket=world.bucket, Key=file.removeprefix(f"s3://{world.bucket}/"), Body=content)
    return file


def _with(metadata: dict[str, Any], member: str, text: bytes) -> bytes:
    """Return the document with one member written as this text."""
    rest = {name: value for name, value in metadata.items() if name != member}
    return json.dumps(rest).encode()[:-1] + f', "{member}": '.encode() + text + b"}"


def _snapshots(location: str, count: int, *, summary: str = "") -> bytes:
    one = '{{"snapshot-id":{0},"sequence-number":1,"timestamp-ms":1,"summary":{{"operation":"append","a":"{2}"}},'
    one += '"manifest-list":"{1}/m"}}'
    return b"[" + ",".join(one.format(n, location, summary) for n in range(1, count + 1)).encode() + b"]"


FILES: dict[str, Callable[[str, dict[str, Any]], bytes]] = {
    "blanks that unpack to 200 MB": lambda _, m: gzip.compress(b" " * (200 * MIB) + json.dumps(m).encode()),
    "a bomb in the second member": lambda _, m: gzip.compress(json.dumps(m).encode()) + gzip.compress(b" " * 90 * MIB),
    "ten million empty objects": lambda _, m: gzip.compress(_with(m, "x", b"[" + b"{}," * 10_000_000 + b"{}]"), 1),
    "half a million snapshots": lambda at, m: gzip.compress(_with(m, "snapshots", _snapshots("s", 500_000)), 1),
    "more snapshots than a table has": lambda at, m: _with(
        {**m, "last-sequence-number": 1}, "snapshots", _snapshots(at, 100_001)
    ),
    "more properties than a table has": lambda _, m: _with(
        m, "properties", json.dumps({f"k{n}": "v" for n in range(100_000)}).encode()
    ),
    "nesting of a hundred thousand levels": lambda _, m: _with(m, "x", b"[" * 100_000 + b"]" * 100_000),
    "nesting that parsers accept": lambda _, m: _with(m, "x", b'{"a":' * 300 + b"1" + b"}" * 300),
    "nested columns": lambda _, m: _with(m, "schemas", _nested(100)),
}


_UNPACKED = "more than 67108864 bytes when decompressed"

#: Error texts for a table's and a view's file.
REASONS = {
    "blanks that unpack to 200 MB": (_UNPACKED, _UNPACKED),
    "a bomb in the second member": (_UNPACKED, _UNPACKED),
    "ten million empty objects": ("20000053 values", "20000053 values"),
    "half a million snapshots": ("values", "values"),
    "more snapshots than a table has": ("100001 snapshots; at most 100000", "missing required field `versions`"),
    "more properties than a table has": ("100000 properties; at most 10000", "missing required field `versions`"),
    "nesting of a hundred thousand levels": ("nested too deeply", "nested too deeply"),
    "nesting that parsers accept": ("nested deeper than 200 levels", "nested deeper than 200 levels"),
    "nested columns": ("nested deeper than 200 levels", "nested deeper than 200 levels"),
}

#: Bound on the processor time of one refusal, in seconds: four times the measured maximum (0.6 s).
_CPU_BOUND = 2.5


def _nested(depth: int) -> bytes:
    kind: Any = "long"
    for level in range(depth):
        kind = {
            "type": "struct",
            "fields": [{"id": 100 + level, "name": f"f{level}", "type": kind, "required": False}],
        }
    return json.dumps([{**kind, "schema-id": 0}]).encode()


@pytest.mark.threat("LG-DEC-06")
@pytest.mark.parametrize("bomb", FILES)
def test_metadata_file_bomb_is_refused_with_its_reason(world: World, ns: str, bomb: str) -> None:
    location, metadata = foreign(world, ns)
    file = _file(world, location, FILES[bomb](location, metadata))
    before = world.snapshot()
    table, view = REASONS[bomb]
    for send, reason in ((adopt, table), (adopt_view, view)):
        spent = _cpu_seconds(world)
        status, kind, message = error_triple(send(world.admin, world, ns, unique("x"), file))
        spent = _cpu_seconds(world) - spent
        assert status == 400, message
        assert kind in ("BadRequestException", "MetadataTooLarge"), message
        # A refusal by the time or memory limit has another text: those limits are the last line of defence.
        assert reason in message, message
        assert len(message) < 1000
        assert spent < _CPU_BOUND, f"{spent:.1f} s of processor time"
    assert world.snapshot() == before
    assert world.admin.get(f"{world.root}/namespaces/{ns}").status_code == 200


def _cpu_seconds(world: World) -> float:
    """Return the processor time of the gateway and its child processes, including ended ones.

    In contrast to wall-clock time, other work on the machine does not add to it.
    """
    times = [psutil.Process(pid).cpu_times() for pid in world.ready.pids["gateway"]]
    return sum(each.user + each.system + each.children_user + each.children_system for each in times)


def _many(count: int) -> dict[str, str]:
    return {f"k{n}": "v" for n in range(count)}


def _columns(count: int) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": [{"id": n, "name": f"c{n}", "type": "long", "required": False} for n in range(1, count + 1)],
    }


COMMITS: dict[str, tuple[int, str, list[Any]]] = {
    "properties": (400, "MetadataTooLarge", [{"action": "set-properties", "updates": _many(150_000)}]),
    "more values than the limit": (
        413,
        "PayloadTooLarge",
        [{"action": "set-properties", "updates": _many(250_000)}],
    ),
    "updates": (
        400,
        "TooManyUpdatesInCommit",
        [{"action": "remove-snapshot-ref", "ref-name": f"r{n}"} for n in range(10_001)],
    ),
    "schemas": (
        400,
        "TooManyUpdatesInCommit",
        [{"action": "add-schema", "schema": _columns(1)}] * 2
        + [
            {
                "action": "add-schema",
                "schema": {
                    "type": "struct",
                    "fields": [{"id": n, "name": f"c{n}", "type": "long", "required": False}],
                },
            }
            for n in range(10, 9000)
        ],
    ),
    "refs": (
        400,
        "InvalidTableUpdate",
        [{"action": "set-snapshot-ref", "ref-name": f"r{n}", "type": "tag", "snapshot-id": 1} for n in range(9_000)],
    ),
    "columns": (413, "PayloadTooLarge", [{"action": "add-schema", "schema": _columns(100_000)}]),
    "nesting": (400, "BadRequestException", [{"action": "add-snapshot", "snapshot": {"snapshot-id": 1, "x": None}}]),
}


@pytest.mark.threat("LG-DEC-06")
@pytest.mark.parametrize("bomb", COMMITS)
def test_commit_bomb_is_refused_without_a_change(world: World, ns: str, bomb: str) -> None:
    status, kind, updates = COMMITS[bomb]
    table = world.table(ns)
    body = json.dumps({"requirements": [], "updates": updates}).encode()
    if bomb == "nesting":
        body = body.replace(b"null", b"[" * 100_000 + b"]" * 100_000)
    before = world.snapshot()
    answer = _send(world, table.path, body)
    assert error_triple(answer)[:2] == (status, kind), error_triple(answer)
    assert world.snapshot() == before
    assert world.admin.get(table.path).json()["metadata"] == table.answer["metadata"]


def _send(world: World, path: str, body: bytes) -> httpx.Response:
    return world.admin.http.post(path, content=body, headers={"Content-Type": "application/json"})


def test_creations_have_the_same_bounds_as_changes(world: World, ns: str) -> None:
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": [ns],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "trino"}],
    }
    view = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    dialects = [{"type": "sql", "sql": "select 1", "dialect": f"d{n}"} for n in range(70_000)]
    root = f"{world.root}/namespaces"
    before = world.snapshot()
    for path, body, status in (
        (f"{root}/{ns}/tables", {"name": "t", "schema": SCHEMA, "properties": _many(20_000)}, 400),
        (f"{root}/{ns}/tables", {"name": "t", "schema": _columns(60_000)}, 413),
        (f"{root}/{ns}/tables", {"name": "t", "schema": SCHEMA, "x": _nested_list(100_000)}, 400),
        (
            f"{root}/{ns}/views",
            {**view, "properties": _many(20_000)},
            400,
        ),
        (
            f"{root}/{ns}/views",
            {**view, "view-version": {**version, "representations": dialects}},
            413,
        ),
        (root, {"namespace": [unique("n")], "properties": _many(20_000)}, 400),
        (f"{root}/{ns}/properties", {"updates": _many(20_000)}, 400),
        (f"{world.root}/transactions/commit", {"table-changes": [{}] * 100_000}, 413),
    ):
        answer = _send(world, path, _text(body))
        assert error_triple(answer)[0] == status, (path, error_triple(answer))
    assert world.snapshot() == before


def _nested_list(depth: int) -> str:
    return f"nested {depth}"


def _text(body: dict[str, Any]) -> bytes:
    text = json.dumps(body).encode()
    return text.replace(b'"nested 100000"', b"[" * 100_000 + b"]" * 100_000)


@pytest.mark.threat("LG-DEC-06")
def test_removing_missing_properties_has_linear_cost(world: World, ns: str) -> None:
    """A cost proportional to existing properties times missing ones would take minutes."""
    path = f"{world.root}/namespaces/{ns}/properties"
    assert _send(world, path, json.dumps({"updates": _many(9_000)}).encode()).status_code == 200
    gone = [*_many(9_000), *(f"x{n}" for n in range(150_000))]
    body = json.dumps({"removals": gone}).encode()
    spent = _cpu_seconds(world)
    answer = _send(world, path, body)
    spent = _cpu_seconds(world) - spent
    assert spent < _CPU_BOUND, f"{spent:.1f} s of processor time"
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.json()["removed"]) == 9_000
    assert len(answer.json()["missing"]) == 150_000


# ---- other requests meanwhile --------------------------------------------------------------------------------------


_TICK = 0.05


@contextmanager
def _others(world: World, connections: int = 8) -> Iterator[list[list[float]]]:
    """Request the configuration on several connections until the block ends; yield the response times of each
    connection.

    The worker processes share the connections, so some of the eight use the worker that validates the document. The
    last list holds the ticks of a local thread that sends no request: they show when the machine ran.
    """
    answered: list[list[float]] = [[] for _ in range(connections)]
    ticks: list[float] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            time.sleep(_TICK)
            ticks.append(time.monotonic())

    def send(times: list[float]) -> None:
        headers = {"Authorization": f"Bearer {world.alice.token}"}
        with httpx.Client(headers=headers, trust_env=False, timeout=60) as client:
            while not stop.is_set():
                answer = client.get(f"{world.ready.catalog_uri}/v1/config", params={"warehouse": world.ready.warehouse})
                assert answer.status_code == 200
                times.append(time.monotonic())
                time.sleep(0.05)

    threads = [threading.Thread(target=tick), *(threading.Thread(target=send, args=(times,)) for times in answered)]
    for thread in threads:
        thread.start()
    try:
        while any(len(times) < 3 for times in answered):
            time.sleep(0.05)
        yield [*answered, ticks]
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _answered_meanwhile(world: World, send: Callable[[], httpx.Response]) -> tuple[httpx.Response, list[int], float]:
    """Return (response, responses of each other connection before it, seconds in which the machine made progress)."""
    with _others(world) as answered:
        began = time.monotonic()
        answer = send()
        ended = time.monotonic()
        time.sleep(0.2)
    *counts, ticks = [sum(began < each < ended for each in times) for times in answered]
    return answer, counts, ticks * _TICK


def _require_served(counts: list[int], took: float) -> None:
    if took <= 1:
        return  # no request can have waited for longer than that second
    # A blocked event loop answers each of its connections at most once in that time.
    assert min(counts) >= 2, counts


def test_other_requests_are_served_while_a_large_document_is_validated(world: World, ns: str) -> None:
    """The document has 8 MB and 20,000 snapshots and is valid: validating it occupies one interpreter throughout."""
    location, metadata = foreign(world, ns)
    text = _snapshots(location, 20_000, summary="x" * 200)
    file = _file(world, location, gzip.compress(_with({**metadata, "last-sequence-number": 1}, "snapshots", text), 1))
    name = unique("large")
    answer, counts, took = _answered_meanwhile(world, lambda: adopt(world.admin, world, ns, name, file))
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.json()["metadata"]["snapshots"]) == 20_000
    _require_served(counts, took)
    table = f"{world.root}/namespaces/{ns}/tables/{name}"
    updates = [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(1, 9_000)]
    answer, counts, took = _answered_meanwhile(
        world, lambda: world.commit(world.admin, table, {"action": "set-properties", "updates": {"a": "b"}}, *updates)
    )
    assert answer.status_code == 200, answer.text[:500]
    assert len(answer.json()["metadata"]["snapshots"]) == 11_001
    _require_served(counts, took)
    assert world.admin.delete(table).status_code == 204


def test_other_requests_are_served_while_a_commit_compares_additions(world: World, ns: str) -> None:
    _, _, updates = COMMITS["schemas"]
    table = world.table(ns)
    answer, counts, took = _answered_meanwhile(world, lambda: world.commit(world.admin, table.path, *updates))
    assert error_triple(answer)[1] == "TooManyUpdatesInCommit"
    _require_served(counts, took)


@pytest.mark.long
def test_table_at_the_size_limit_is_loaded_and_committed(world: World, ns: str) -> None:
    """A table just below the limit works; a commit across the limit is refused, and one that shrinks it succeeds."""
    location, metadata = foreign(world, ns)
    text = _snapshots(location, 20_000, summary="x" * 3_190)
    content = _with({**metadata, "last-sequence-number": 1}, "snapshots", text)
    assert 62 * MIB < len(content) < 64 * MIB, len(content) / MIB
    name = unique("largest")
    answer = adopt(world.admin, world, ns, name, _file(world, location, gzip.compress(content, 1)))
    assert answer.status_code == 200, answer.text[:500]
    table = f"{world.root}/namespaces/{ns}/tables/{name}"
    grow = {"action": "set-properties", "updates": {"a": "x" * (3 * MIB)}}
    assert error_triple(world.commit(world.admin, table, grow))[:2] == (400, "MetadataTooLarge")
    shrink = {"action": "remove-snapshots", "snapshot-ids": list(range(1, 19_000))}
    done = world.commit(world.admin, table, shrink)
    assert done.status_code == 200, done.text[:500]
    assert len(done.json()["metadata"]["snapshots"]) == 1_001
    assert world.admin.delete(table).status_code == 204


def test_text_of_json_punctuation_is_not_mistaken_for_a_bomb(world: World, ns: str) -> None:
    """Commas and brackets inside JSON strings do not count as values."""
    table: Table = world.table(ns, properties={"comment": ",[{" * 20_000})
    assert world.admin.get(table.path).json()["metadata"]["properties"]["comment"] == ",[{" * 20_000
