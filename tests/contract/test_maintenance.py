# SPDX-License-Identifier: Apache-2.0
"""Read-only maintenance over HTTP: a second gateway on the same stack, started with the setting."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from botocore.exceptions import ClientError

from tests.support.servers.toxic import second_gateway
from tests.support.stack.world import Person, World, error_of, unique

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def closed(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a gateway in read-only maintenance."""
    log = tmp_path_factory.mktemp("closed") / "gateway.log"
    with second_gateway(world.ready, log, MAINTENANCE_MODE="read-only") as (base, _):
        yield base


@pytest.fixture
def there(world: World, closed: str) -> Iterator[Person]:
    """Yield the administrator as a client of the gateway in maintenance."""
    person = Person("admin", world.admin.id, world.admin.token, closed)
    yield person
    person.http.close()


def test_health_reports_maintenance(world: World, closed: str) -> None:
    assert httpx.get(f"{closed}/health", trust_env=False, timeout=60).json()["maintenance_mode"] == "read-only"
    assert httpx.get(f"{world.base}/health", trust_env=False, timeout=60).json()["maintenance_mode"] == "off"


def test_changes_in_maintenance_are_refused_with_retry_after(world: World, there: Person, ns: str) -> None:
    table = world.table(ns)
    before = world.snapshot()
    catalog = [
        there.post(f"{world.root}/namespaces", {"namespace": [unique("ns")]}),
        there.post(f"{world.root}/namespaces/{ns}/properties", {"updates": {"a": "b"}}),
        there.post(f"{world.root}/namespaces/{ns}/tables", {"name": unique("t"), "schema": {"type": "struct"}}),
        world.commit(there, table.path, {"action": "set-properties", "updates": {"a": "b"}}),
        there.delete(table.path, headers={"Idempotency-Key": "0b0d9d4e-0000-4000-8000-00000000000a"}),
        there.delete(f"{world.root}/namespaces/{ns}"),
    ]
    management = [
        there.post("/management/v1/role", {"name": unique("role")}),
        there.post(world.grants_path("table", table.uuid), {"writes": [{"type": "select", "user": world.bob.id}]}),
    ]
    for answers, status in ((catalog, 429), (management, 503)):
        for answer in answers:
            assert answer.status_code == status, answer.request.url
            assert int(answer.headers["Retry-After"]) >= 1
            assert error_of(answer)["type"] == "MaintenanceMode"
            assert "read-only maintenance" in error_of(answer)["message"]
    assert world.snapshot() == before


def test_maintenance_serves_reads_with_read_only_keys(world: World, there: Person, ns: str) -> None:
    table = world.table(ns)
    bucket, _, prefix = table.location.removeprefix("s3://").partition("/")
    world.s3.put_object(Bucket=bucket, Key=f"{prefix}/data/a", Body=b"a")
    listed = there.get(f"{world.root}/namespaces/{ns}/tables").json()["identifiers"]
    assert [each["name"] for each in listed] == [table.name]
    assert there.head(table.path).status_code == 204
    for answer in (there.get(table.path), there.get(f"{table.path}/credentials")):
        assert answer.status_code == 200, answer.text
        (credential,) = answer.json()["storage-credentials"]
        store = world.store_of(credential["config"])
        assert store.get_object(Bucket=bucket, Key=f"{prefix}/data/a")["Body"].read() == b"a"
        with pytest.raises(ClientError, match="AccessDenied"):
            store.put_object(Bucket=bucket, Key=f"{prefix}/data/b", Body=b"b")
        with pytest.raises(ClientError, match="AccessDenied"):
            store.delete_object(Bucket=bucket, Key=f"{prefix}/data/a")
    writing = world.admin.get(f"{table.path}/credentials").json()["storage-credentials"][0]["config"]
    world.store_of(writing).put_object(Bucket=bucket, Key=f"{prefix}/data/b", Body=b"b")


def test_maintenance_serves_checks_and_the_callers_own_record(there: Person, world: World) -> None:
    check = {"checks": [{"operation": {"server": {"action": "create_project"}}}]}
    assert there.post("/management/v1/action/batch-check", check).status_code == 200
    assert there.get("/management/v1/whoami").status_code == 200
    assert there.get(f"/catalog/v1/config?warehouse={world.ready.warehouse}").status_code == 200
