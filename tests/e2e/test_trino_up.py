# SPDX-License-Identifier: Apache-2.0
"""Trino with exactly the files that `lakegate up` writes: its catalog, its access control, and the OPA beside it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from lakegate.local import engines
from lakegate.local.ready import Ready
from tests.integration.conftest import start_stack
from tests.support.engines.trino import Refused, Trino, launched
from tests.support.rows.parts import free_port
from tests.support.stack.trino_tokens import token_service
from tests.support.stack.world import Person

__all__ = ["start_stack"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_TRINO"), reason="a real Trino: run `make test-trino`"),
]

_SECONDS = 90.0


def _variables(path: Path) -> dict[str, str]:
    """Return the variables that a shell reads from a file that `lakegate up` wrote."""
    found = subprocess.run(["sh", "-c", f"set -a; . {path}; env"], env={}, capture_output=True, text=True, check=True)
    return dict(line.split("=", 1) for line in found.stdout.splitlines() if line.startswith("LAKEGATE_"))


@contextmanager
def _opa(directory: Path, port: int) -> Iterator[str]:
    """Run the written script with another port; yield the address of OPA."""
    address = f"127.0.0.1:{port}"
    script = directory / "opa.sh"
    written = script.read_text()
    default = engines.BRIDGE.removeprefix("http://")
    assert default in written
    script.write_text(written.replace(default, address))
    with (directory / "opa.log").open("wb") as log:
        process = subprocess.Popen(["sh", str(script)], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + _SECONDS
        while not _answers(f"http://{address}/health"):
            assert process.poll() is None and time.monotonic() < deadline, (directory / "opa.log").read_text()
            time.sleep(0.2)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def trino(start_stack: Callable[..., Ready], tmp_path: Path) -> Iterator[Trino]:
    """Run Trino with the written files. The catalog gets its tokens from a token service on a free port."""
    ready = start_stack(data=tmp_path / "data")
    written = tmp_path / "data" / "engines" / "trino"
    assert json.dumps({"lakegate": ready.warehouse_id}) in (written / "bridge.env").read_text()
    with _opa(written, free_port()) as opa, token_service(ready, tmp_path) as (tokens, _):
        catalog = (written / "catalog" / "lakegate.properties").read_text()
        assert engines.RENEWING in catalog
        files = {
            "catalog/lakegate.properties": catalog.replace("http://127.0.0.1:8283/tokens", tokens),
            "access-control.properties": (written / "access-control.properties")
            .read_text()
            .replace(engines.BRIDGE, opa),
        }
        with launched(tmp_path / "trino", files, **_variables(written / "trino.env")) as trino:
            yield trino


def _person(name: str) -> Person:
    return Person(name, f"oidc~{name}", "", "http://unused")


def test_users_have_their_rights_in_trino_with_the_files_of_lakegate_up(trino: Trino) -> None:
    bob, alice, carol = _person("bob"), _person("alice"), _person("carol")

    def run(person: Person, sql: str) -> list[list[object]]:
        return trino.run(person, sql, catalog="lakegate", extra={})  # the tables have no restrictions

    run(bob, "create schema samples")
    run(bob, "create table samples.cities as select * from (values ('Bern', 'CH')) as t(city, country)")
    assert run(alice, "select city, country from samples.cities") == [["Bern", "CH"]]
    with pytest.raises(Refused, match="Access Denied|does not exist"):
        run(alice, "insert into samples.cities values ('Oslo', 'NO')")
    with pytest.raises(Refused, match="Access Denied|does not exist"):
        run(carol, "select city from samples.cities")
