# SPDX-License-Identifier: Apache-2.0
"""Failures of each dependency (slow, silent, half-open, cut off, restarted) under concurrent reads, commits, grants and
revocations.

No request is allowed without a grant, no acknowledged change is lost, and every answer takes a bounded time. After the
failure everything works again soon, without a restart of the gateway.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from tests.contract.conftest import stack, world
from tests.support.load.appends import check_history
from tests.support.load.mixed import NO, Mixed
from tests.support.servers.toxic import AFTER, BEFORE, GONE, HALF_OPEN, RESET, SILENT, TOXICS, Cut, Shaky, shaky_gateway
from tests.support.stack.world import SCHEMA, Table, World, unique

__all__ = ["stack", "world"]

pytestmark = [pytest.mark.chaos, pytest.mark.slow]

PARTS = ("postgres", "openfga", "opa", "object-store", "identity-provider")

#: A statement may take 15 s before its connection is given up. A request meets that limit once, or twice if it fails to
#: write and then fails to record the outcome.
_LONGEST = 45.0
_SOON = 60.0
_POOLS = 60


@pytest.fixture(scope="module")
def shaky(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shaky]:
    """Start the gateway behind the proxies, with short timeouts so that the tests are fast."""
    log: Path = tmp_path_factory.mktemp("shaky") / "gateway.log"
    limits = {"OPENFGA__TIMEOUT": "1s", "OPA__TIMEOUT": "1s", "PG_ACQUIRE_TIMEOUT": "1s"}
    with shaky_gateway(world.ready, log, HEALTH_CHECK_FREQUENCY_SECONDS="1", **limits) as running:
        yield running


@pytest.fixture(scope="module")
def warehouse(world: World, shaky: Shaky) -> str:
    """Create a warehouse whose object store is reached through the proxy; return its id."""
    store = shaky.parts["object-store"]
    profile = {
        name: value.replace(f":{store.target}", f":{store.port}") if isinstance(value, str) else value
        for name, value in world.ready.s3.profile.items()
    }
    key = world.ready.s3
    body = {
        "warehouse-name": unique("shaky"),
        "storage-profile": {**profile, "bucket": world.bucket, "key-prefix": unique("shaky")},
        "storage-credential": {
            "type": "s3",
            "credential-type": "access-key",
            "aws-access-key-id": key.access_key,
            "aws-secret-access-key": key.secret_key,
        },
    }
    made = world.admin.post("/management/v1/warehouse", body)
    assert made.status_code == 201, made.text
    return str(made.json()["warehouse-id"])


@pytest.fixture
def mixed(world: World, shaky: Shaky, warehouse: str) -> Iterator[Mixed]:
    """Return the load on fresh tables; the reader has no grants before and after."""
    world.strip(world.analyst)
    root = f"/catalog/v1/{warehouse}"
    tables = []
    for _ in range(2):
        namespace = unique("ns")
        assert world.admin.post(f"{root}/namespaces", {"namespace": [namespace]}).status_code == 200
        tables += [_table(world, root, namespace) for _ in range(2)]
    granted, written, never, _ = tables
    grants = f"/management/v1/warehouse/{warehouse}/table/{granted.uuid}/grants"
    yield Mixed(
        base=shaky.base,
        root=root,
        reader=world.analyst,
        admin=world.admin,
        granted=granted,
        never=never,
        written=written,
        grants=grants,
        warehouse=warehouse,
    )
    shaky.well()
    world.strip(world.analyst)


def _table(world: World, root: str, namespace: str) -> Table:
    name = unique("t")
    made = world.admin.post(f"{root}/namespaces/{namespace}/tables", {"name": name, "schema": SCHEMA})
    assert made.status_code == 200, made.text
    metadata = made.json()["metadata"]
    path = f"{root}/namespaces/{namespace}/tables/{name}"
    return Table(namespace, name, metadata["table-uuid"], metadata["location"], path, made.json())


def soon(true: Callable[[], bool], description: str, *, seconds: float = _SOON) -> None:
    """Wait until the condition is true; fail with the message `description` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, description
        time.sleep(0.1)


def _serves(shaky: Shaky, mixed: Mixed) -> bool:
    """Return True if health, a vended load by the owner, and a commit succeed."""
    with httpx.Client(
        base_url=shaky.base, headers={"Authorization": f"Bearer {mixed.admin.token}"}, timeout=60, trust_env=False
    ) as http:
        change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"n": unique("n")}}]}
        return (
            http.get("/health").status_code == 200
            and "storage-credentials" in http.get(mixed.granted.path).json()
            and http.post(mixed.granted.path, json=change).status_code == 200
        )


def _suffer(shaky: Shaky, mixed: Mixed, part: str, toxic: str, seconds: float) -> None:
    """Run the load while one dependency fails in one way; then wait for recovery and judge the answers."""
    with mixed.running():
        time.sleep(0.5)
        shaky.parts[part].become(toxic)
        time.sleep(seconds)
        shaky.parts[part].become("well")
        started = time.monotonic()
        soon(lambda: _serves(shaky, mixed), f"it did not recover from {part} {toxic}", seconds=40)
        recovered = time.monotonic() - started
        time.sleep(0.3)
    print(f"{part} {toxic}: recovered in {recovered:.1f} s; {mixed.counted()}")
    mixed.judge(longest=_LONGEST, unknown_may_happen=part == "postgres")


def _nothing_lost(world: World, mixed: Mixed) -> None:
    metadata = world.admin.get(mixed.written.path).json()["metadata"]
    check_history(metadata, mixed.ledger)
    world.delivered()
    if mixed.account.state == NO:
        assert world.analyst.get(mixed.granted.path).status_code == 404


#: The failures with the strongest effect for each dependency; the long variant tries all of them.
_WORST = {
    "postgres": (RESET, GONE),
    "openfga": (HALF_OPEN, GONE),
    "opa": (SILENT, RESET),
    "object-store": (HALF_OPEN, GONE),
    "identity-provider": (GONE,),
}


def _try_all(world: World, shaky: Shaky, mixed: Mixed, part: str, toxics: tuple[str, ...], seconds: float) -> None:
    processes, before = shaky.pids(), shaky.descriptors()
    for toxic in toxics:
        _suffer(shaky, mixed, part, toxic, seconds)
    _nothing_lost(world, mixed)
    assert shaky.pids() == processes, "a worker process restarted"
    # Empty pools may have been filled. A leak in each failure would add more than that.
    soon(lambda: shaky.descriptors() <= before + _POOLS, "connections or files are left open", seconds=40)


@pytest.mark.long  # under load and failures its time bounds need a machine without other work
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(200)
def test_failing_component_allows_nothing_loses_nothing_and_recovers(
    world: World, shaky: Shaky, mixed: Mixed, part: str
) -> None:
    _try_all(world, shaky, mixed, part, _WORST[part], 1.2)


@pytest.mark.long
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.timeout(1200)
def test_every_failure_mode_allows_nothing_loses_nothing_and_recovers(
    world: World, shaky: Shaky, mixed: Mixed, part: str
) -> None:
    _try_all(world, shaky, mixed, part, TOXICS, 6.0)


def _set(http: httpx.Client, table: Table, name: str) -> httpx.Response:
    change = {"requirements": [], "updates": [{"action": "set-properties", "updates": {name: "set"}}]}
    return http.post(table.path, json=change)


def _at_commit(marker: str, lock_failure: str) -> Cut:
    """Return a `cut` that ends the connection which sent a document with `marker` in it, when it sends COMMIT."""
    carrying: set[int] = set()

    def cut(connection: int, data: bytes) -> str | None:
        if marker.encode() in data:
            carrying.add(connection)
        return lock_failure if connection in carrying and b"COMMIT" in data else None

    return cut


@pytest.fixture
def http(world: World, shaky: Shaky) -> Iterator[httpx.Client]:
    """Return an HTTP client of the administrator at the gateway behind the proxies."""
    token = {"Authorization": f"Bearer {world.admin.token}"}
    with httpx.Client(base_url=shaky.base, headers=token, timeout=60, trust_env=False) as client:
        yield client


def _properties(world: World, table: Table) -> dict[str, str]:
    found: dict[str, str] = world.admin.get(table.path).json()["metadata"]["properties"]
    return found


def test_connection_lost_before_commit_is_429_without_a_change(
    world: World, shaky: Shaky, mixed: Mixed, http: httpx.Client
) -> None:
    marker, database = unique("lost"), shaky.parts["postgres"]
    database.cut = lambda _, data: BEFORE if marker.encode() in data else None
    refused = _set(http, mixed.written, marker)
    assert database.cuts, "no connection was cut, so the test proves nothing"
    assert refused.status_code == 429, refused.text
    assert int(refused.headers["retry-after"]) >= 1
    assert marker not in _properties(world, mixed.written)


@pytest.mark.parametrize("lock_failure", [BEFORE, AFTER])
def test_commit_with_a_lost_response_is_looked_up_and_applied_once(
    world: World, shaky: Shaky, mixed: Mixed, http: httpx.Client, lock_failure: str
) -> None:
    marker, database = unique("asked"), shaky.parts["postgres"]
    cuts = database.cuts
    version = "select version from tables where table_uuid = $1::text::uuid"
    before = world.sql(version, mixed.written.uuid)[0]["version"]
    database.cut = _at_commit(marker, lock_failure)
    assert _set(http, mixed.written, marker).status_code == 200
    assert database.cuts > cuts, "no connection was cut, so the test proves nothing"
    assert marker in _properties(world, mixed.written)
    assert world.sql(version, mixed.written.uuid)[0]["version"] == before + 1


@pytest.mark.parametrize("lock_failure", [BEFORE, AFTER])
def test_commit_without_a_possible_lookup_is_reported_as_unknown(
    world: World, shaky: Shaky, mixed: Mixed, http: httpx.Client, lock_failure: str
) -> None:
    marker, database = unique("unknown"), shaky.parts["postgres"]
    database.cut, database.afterwards = _at_commit(marker, lock_failure), GONE
    response = _set(http, mixed.written, marker)
    shaky.well()
    assert (response.status_code, response.json()["error"]["type"]) == (500, "CommitStateUnknownException"), (
        response.text
    )
    assert (marker in _properties(world, mixed.written)) == (lock_failure == AFTER)
    soon(lambda: _set(http, mixed.written, f"{marker}_2").status_code == 200, "it did not recover")


def test_grant_with_unknown_outcome_is_not_reported_as_made_and_can_be_retried(
    world: World, shaky: Shaky, mixed: Mixed, http: httpx.Client
) -> None:
    database, marker = shaky.parts["postgres"], unique("because")
    database.cut, database.afterwards = _at_commit(marker, AFTER), GONE
    entry = {"privilege": "select", "principal": {"user": world.analyst.id}, "reason": marker}
    response = http.post(mixed.grants, json={"writes": [entry]})
    shaky.well()
    assert (response.status_code, response.json()["error"]["type"]) == (500, "CommitStateUnknownException"), (
        response.text
    )
    soon(lambda: http.post(mixed.grants, json={"writes": [entry]}).status_code == 204, "it did not recover")
    assert world.analyst.get(mixed.granted.path).status_code == 200


def test_only_cached_decisions_allow_reads_without_openfga(world: World, shaky: Shaky, mixed: Mixed) -> None:
    """PostgreSQL shows that no right was revoked since. Uncached or possibly revoked decisions are refused."""
    path, plain = mixed.granted.path, {"X-Iceberg-Access-Delegation": "client-managed"}
    entry = {"privilege": "select", "principal": {"user": world.analyst.id}}
    token = {"Authorization": f"Bearer {world.analyst.token}"}
    assert world.admin.post(mixed.grants, {"writes": [entry]}).status_code == 204
    people = [httpx.Client(base_url=shaky.base, headers=token, timeout=60, trust_env=False) for _ in range(12)]
    try:
        for _ in range(2):
            assert {each.get(path, headers=plain).status_code for each in people} == {200}
        shaky.parts["openfga"].become(GONE)
        assert {each.get(path, headers=plain).status_code for each in people} == {200}
        assert people[0].get(mixed.never.path, headers=plain).status_code == 503, "an uncached decision must return 503"
        # Revoked through the other gateway, which reaches OpenFGA; this gateway learns of it only from PostgreSQL.
        assert world.admin.post(mixed.grants, {"deletes": [entry]}).status_code == 204
        assert {each.get(path, headers=plain).status_code for each in people} == {503}
        shaky.parts["openfga"].become("well")
        seen: set[int] = set()

        def all_know() -> bool:
            answers = {each.get(path, headers=plain).status_code for each in people}
            seen.update(answers)
            return answers == {404}

        # There are several worker processes, and each detects the recovery of OpenFGA by itself.
        soon(all_know, "it did not recover")
        assert seen <= {404, 503}
    finally:
        for each in people:
            each.close()
