# SPDX-License-Identifier: Apache-2.0
"""Storage profiles give their author no access to addresses that only the gateway reaches (LG-DEC-05)."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.storage_servers import serving
from tests.support.servers.toxic import second_gateway
from tests.support.stack import warehouses
from tests.support.stack.warehouses import WAREHOUSE
from tests.support.stack.world import SCHEMA, World, error_triple, unique

pytestmark = pytest.mark.servers

VALIDATION = "/management/v1/warehouse-creation-validation"
SETTING = "LAKEGATE__STORAGE_ENDPOINT_NETWORKS"
VENDED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


def creation(world: World, **profile: Any) -> dict[str, Any]:
    return warehouses.creation(world, **{"storage-profile": warehouses.profile(world, **profile)})


def failed(answer: httpx.Response) -> dict[str, dict[str, Any]]:
    """Return the failed checks of a report by name."""
    assert answer.status_code == 200, answer.text
    return {check["name"]: check for check in answer.json()["checks"] if check["status"] == "failed"}


@contextmanager
def silent() -> Iterator[str]:
    """Yield the address of a port that accepts connections and never answers."""
    held: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            while True:
                try:
                    held.append(listener.accept()[0])
                except OSError:
                    return

        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        for each in held:
            each.close()
        listener.shutdown(socket.SHUT_RDWR)


@contextmanager
def gateway(world: World, log: Path, **settings: str) -> Iterator[httpx.Client]:
    """Run another gateway on the same stack; yield an HTTP client of the administrator."""
    headers = {"Authorization": f"Bearer {world.admin.token}"}
    with (
        second_gateway(world.ready, log, **settings) as (base, _),
        httpx.Client(base_url=base, headers=headers, timeout=60, trust_env=False) as client,
    ):
        yield client


REDIRECTS = (301, 302, 303, 307, 308)
NONSENSE = (b"<html>an intranet page</html>", b"{}", b"", b"\xff\xfe", b"<AssumeRoleResponse/>")


@pytest.mark.threat("LG-DEC-05")
def test_redirect_of_an_allowed_endpoint_is_not_followed(world: World) -> None:
    """A failed validation takes six seconds for each endpoint, so all statuses are tried concurrently."""

    def tried(status: int) -> None:
        with serving(body=b"inner") as inner, serving(status, {"location": f"{inner.url}/"}) as outer:
            answer = world.admin.post(WAREHOUSE, creation(world, endpoint=outer.url))
            assert error_triple(answer)[:2] == (400, "StorageValidationFailed"), status
            assert outer.seen, f"the endpoint was tried: {status}"
            sts = world.admin.post(WAREHOUSE, creation(world, **{"sts-endpoint": outer.url}))
            assert error_triple(sts)[:2] == (400, "StorageValidationFailed"), status
            assert [method for method, *_ in outer.seen].count("POST") >= 1, f"the STS endpoint was tried: {status}"
            assert not inner.seen, status
        assert "inner" not in answer.text + sts.text, status

    with ThreadPoolExecutor(len(REDIRECTS)) as pool:
        assert len(list(pool.map(tried, REDIRECTS))) == len(REDIRECTS)


@pytest.mark.threat("LG-DEC-05")
def test_an_invalid_sts_response_in_a_validation_is_a_bad_request(world: World) -> None:
    def tried(body: bytes) -> None:
        with serving(body=body) as nonsense:
            request = creation(world, **{"sts-endpoint": nonsense.url})
            answer = world.admin.post(WAREHOUSE, request)
            assert error_triple(answer)[:2] == (400, "StorageValidationFailed"), body
            assert "intranet" not in answer.text, body
            assert set(failed(world.admin.post(VALIDATION, request))) == {"vended-credentials-issued"}, body

    with ThreadPoolExecutor(len(NONSENSE)) as pool:
        assert len(list(pool.map(tried, NONSENSE))) == len(NONSENSE)


@pytest.mark.threat("LG-DEC-05")
def test_an_invalid_sts_response_during_a_load_is_a_bad_request(world: World, tmp_path: Path) -> None:
    with (
        serving(body=b"<html>") as nonsense,
        gateway(world, tmp_path / "log", SKIP_STORAGE_VALIDATION="true") as lenient,
    ):
        made = lenient.post(WAREHOUSE, json=creation(world, **{"sts-endpoint": nonsense.url}))
        assert made.status_code in (200, 201), made.text
        root = f"/catalog/v1/{made.json().get('warehouse-id') or made.json()['id']}"
        space = unique("ns")
        assert lenient.post(f"{root}/namespaces", json={"namespace": [space]}).status_code == 200
        tables = f"{root}/namespaces/{space}/tables"
        assert lenient.post(tables, json={"name": "t", "schema": SCHEMA}).status_code == 200
        answer = lenient.get(f"{tables}/t", headers=VENDED)
        assert (answer.status_code, answer.json()["error"]["type"]) == (400, "StorageAnswerMalformed"), answer.text
        assert nonsense.seen


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize("field", ["endpoint", "sts-endpoint"])
@pytest.mark.parametrize(
    "host",
    ["169.254.169.254", "[::ffff:169.254.169.254]", "10.0.0.1", "192.168.1.1", "[fd00::1]", "0.0.0.0", "100.64.0.1"],
)
def test_an_address_outside_of_the_listed_networks_is_refused(world: World, field: str, host: str) -> None:
    answer = world.admin.post(WAREHOUSE, creation(world, **{field: f"http://{host}:9"}))
    assert error_triple(answer)[:2] == (400, "InvalidStorageProfile")


@pytest.mark.threat("LG-DEC-05")
def test_a_warehouse_whose_endpoint_is_no_longer_allowed_is_not_used(world: World, tmp_path: Path) -> None:
    table = world.table(world.namespace())
    assert world.admin.get(table.path, headers=VENDED).json()["storage-credentials"]
    with gateway(world, tmp_path / "log", STORAGE_ENDPOINT_NETWORKS="10.0.0.0/8") as strict:
        refused = strict.get(table.path, headers=VENDED)
        assert refused.status_code == 412 and SETTING in refused.json()["error"]["message"], refused.text
        body = {"updates": [{"action": "set-properties", "updates": {"a": "b"}}], "requirements": []}
        assert SETTING in (answer := strict.post(table.path, json=body)).text and answer.status_code == 412
        creating = strict.post(WAREHOUSE, json=creation(world))
        assert (creating.status_code, creating.json()["error"]["type"]) == (400, "InvalidStorageProfile")


@pytest.mark.threat("LG-DEC-05")
@pytest.mark.parametrize("field", ["endpoint", "sts-endpoint"])
def test_reports_do_not_distinguish_open_closed_and_unknown_endpoints(world: World, field: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = f"http://127.0.0.1:{unused.getsockname()[1]}"
    # Two HTTP servers, a closed port, a silent port, and a host name that does not resolve.
    with silent() as quiet, serving(404, body=b"no bucket") as open_port, serving(500, body=b"broken") as broken:
        locations = [open_port.url, broken.url, closed, quiet, "http://nobody-has-this-name.invalid:9"]

        def send(url: str) -> tuple[dict[str, dict[str, Any]], float]:
            request = creation(world, **{field: url})
            began = time.monotonic()
            return failed(world.admin.post(VALIDATION, request)), time.monotonic() - began

        with ThreadPoolExecutor(len(locations)) as pool:
            answers = list(pool.map(send, locations))
    checks, seconds = [each for each, _ in answers], [each for _, each in answers]
    assert all(len(each) == 1 and each == checks[0] for each in checks), checks
    assert min(seconds) >= 6.0 and max(seconds) - min(seconds) < 1.5, seconds
