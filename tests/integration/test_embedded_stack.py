# SPDX-License-Identifier: Apache-2.0
"""The embedded servers without the gateway: they reject unauthenticated requests, keep their data, and leave no
process.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import httpx
import psutil
import pytest
import pytest_asyncio

from gateway import settings
from lakegate.local import account, object_store, ports, stack, toolchain
from lakegate.local.errors import StackError
from lakegate.local.ports import GRPC_OFFSET, LOOPBACK, Ports
from lakegate.local.stack import Plan, Stack
from tests.support.processes import at_work, command_line, family, values_of

pytestmark = [pytest.mark.servers, pytest.mark.asyncio(loop_scope="module")]


def _plan(data: Path) -> Plan:
    return Plan(data=data, tools=toolchain.locate(settings.load()), fast=True, with_gateway=False)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def parts(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stack]:
    data = tmp_path_factory.mktemp("stack") / "data"
    async with stack.running(_plan(data)) as running:
        yield running
    account.remove_data(data / "postgres")


def _processes(running: Stack) -> list[psutil.Process]:
    return family(psutil.Process(running.children.supervisor_pid))[1:]


def _listening(process: psutil.Process) -> list[tuple[str, str, int]]:
    """Return (process name, address, port) for each listening socket."""
    return [
        (process.name(), connection.laddr.ip, connection.laddr.port)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]


async def test_every_part_listens_on_the_loopback_address_alone(parts: Stack) -> None:
    listening = list(itertools.chain.from_iterable(values_of(_listening, _processes(parts))))
    assert {"postgres", "weed", "opa", "openfga"} <= {name for name, _, _ in listening}
    assert [each for each in listening if each[1] not in ("127.0.0.1", "::1")] == []


async def test_only_configured_ports_are_open(parts: Stack) -> None:
    chosen = set(_all_ports(parts.ports))
    listening = itertools.chain.from_iterable(values_of(_listening, _processes(parts)))
    assert {(name, port) for name, _, port in listening if port not in chosen} == set()


async def test_no_secret_is_on_a_command_line(parts: Stack) -> None:
    lines = "\n".join(values_of(command_line, _processes(parts)))
    assert "-config_dir" in lines
    assert not [value for value in _secret_values(parts) if value in lines]


async def test_no_secret_is_in_a_log(parts: Stack) -> None:
    logs = "\n".join(path.read_text(errors="replace") for path in (parts.plan.data / "logs").iterdir())
    assert logs
    assert not [value for value in _secret_values(parts) if value in logs]


def _secret_values(running: Stack) -> list[str]:
    kept = json.loads((running.plan.data / "secrets.json").read_text())
    single = [value for name, value in kept.items() if isinstance(value, str) and name != "s3_access_key"]
    return [*single, *kept["store_jwt_keys"], *kept["clients"].values()]


async def test_files_with_secrets_are_for_their_owner_alone(parts: Stack) -> None:
    data = parts.plan.data
    names = (
        "secrets.json",
        "object-store/conf/iam.json",
        "object-store/conf/s3.json",
        "object-store/conf/security.toml",
    )
    for path in [data / name for name in names] + list((data / "identity-provider").glob("*.yaml")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


async def test_postgres_does_not_run_as_root(parts: Stack) -> None:
    assert psutil.Process(parts.running["postgres"].pid).uids().effective != 0


async def test_the_role_of_openfga_cannot_enter_the_database_of_the_gateway(parts: Stack) -> None:
    address = {"host": LOOPBACK, "port": parts.ports.postgres, "user": "openfga"}
    password = parts.secrets.postgres_openfga
    own = await asyncpg.connect(**address, password=password, database="openfga")
    await own.close()
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await asyncpg.connect(**address, password=password, database="lakegate")
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(**address, password="wrong", database="openfga")


async def test_openfga_and_opa_refuse_unauthenticated_requests(parts: Stack) -> None:
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{parts.openfga.url}/stores")).status_code == 401
        assert (await client.get(f"{parts.opa.url}/v1/data")).status_code == 401
        assert (await client.post(f"{parts.opa.url}/v1/data/gateway/decisions", json={"input": {}})).status_code == 401


async def test_opa_operator_token_changes_data_but_gets_no_decision(parts: Stack) -> None:
    operator = {"Authorization": f"Bearer {parts.secrets.opa_operator}"}
    gateway = {"Authorization": f"Bearer {parts.secrets.opa_gateway}"}
    decisions, data = f"{parts.opa.url}/v1/data/gateway/decisions", f"{parts.opa.url}/v1/data/policy_data/probe"
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.put(data, json={"a": 1}, headers=operator)).status_code == 204
        assert (await client.put(data, json={"a": 2}, headers=gateway)).status_code == 401
        assert (await client.post(decisions, json={"input": {}}, headers=operator)).status_code == 401
        assert (await client.post(decisions, json={"input": {}}, headers=gateway)).status_code == 200


async def test_object_store_ports_refuse_unauthenticated_access(parts: Stack) -> None:
    places = [
        f"http://{LOOPBACK}:{port}/buckets/lakegate/x"
        for port in (parts.ports.store_filer, parts.ports.store_volume, parts.ports.store_master)
    ] + [f"{parts.object_store.url}/lakegate/x"]
    async with httpx.AsyncClient(trust_env=False) as client:
        for place in places:
            assert (await client.put(place, content=b"x")).is_error, place
            assert (await client.get(place)).is_error, place


async def test_token_names_the_user_of_its_client(parts: Stack) -> None:
    from joserfc import jws

    token = await parts.identity_provider.token("alice")
    claims = json.loads(jws.extract_compact(token.encode()).payload)
    assert (claims["sub"], claims["iss"], claims["aud"]) == ("alice", parts.identity_provider.issuer, "lakegate")
    assert claims["exp"] - claims["iat"] == 3600


async def test_a_second_stack_on_the_same_data_is_refused(parts: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "_LOCK_PATIENCE_SECONDS", 0.2)
    with pytest.raises(StackError, match="another stack uses the data directory"):
        async with stack.running(_plan(parts.plan.data)):
            pass


async def test_data_and_addresses_survive_a_restart(tmp_path: Path) -> None:
    plan = _plan(tmp_path / "data")
    seen: list[tuple[Ports, str]] = []
    for statement in ("create table kept (n int)", "insert into kept values (1)"):
        async with stack.running(plan) as running:
            url = (await running.ready(None)).postgres
            connection = await asyncpg.connect(url)
            await connection.execute(statement)
            await connection.close()
            seen.append((running.ports, url))
    assert seen[0] == seen[1]
    account.remove_data(plan.data / "postgres")


async def test_port_taken_during_start_causes_only_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tries: list[Ports] = []
    with socket.socket() as squatter:
        squatter.bind((LOOPBACK, 0))
        squatter.listen()
        taken = squatter.getsockname()[1]

        def pick(kept: Ports | None = None, *, first: Ports | None = None) -> Ports:
            chosen = real_pick(kept, first=first)
            if not tries:
                chosen = Ports(**{name: getattr(chosen, name) for name in chosen.__struct_fields__} | {"opa": taken})
            tries.append(chosen)
            return chosen

        real_pick = ports.pick
        monkeypatch.setattr(ports, "pick", pick)
        async with stack.running(_plan(tmp_path / "data")) as running:
            assert running.ports.opa != taken
    assert len(tries) == 2
    account.remove_data(tmp_path / "data" / "postgres")


async def test_failed_start_names_its_component_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "policies" / "system"
    broken.mkdir(parents=True)
    (broken / "authz.rego").write_text("this is no Rego")
    plan = _plan(tmp_path / "data")
    tools = toolchain.Tools(
        **{name: getattr(plan.tools, name) for name in plan.tools.__slots__} | {"policies": tmp_path / "policies"}
    )
    before = {process.pid for process in family(psutil.Process())}
    with pytest.raises(StackError, match="OPA cannot read the policies"):
        async with stack.running(Plan(data=plan.data, tools=tools, fast=True, with_gateway=False)):
            pass
    assert at_work(process for process in family(psutil.Process()) if process.pid not in before) == []
    assert all(map(_nothing_listens, _all_ports(ports.load(plan.data / "ports.json"))))
    account.remove_data(plan.data / "postgres")


async def test_missing_database_is_not_silently_replaced(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "postgres.initialised").touch()
    with pytest.raises(StackError, match="remove the whole data directory"):
        async with stack.running(_plan(data)):
            pass
    account.remove_data(data / "postgres")


_PARENT = """
import asyncio, sys
from pathlib import Path
from gateway import settings
from lakegate.local import ready, stack, toolchain
async def main():
    data = Path(sys.argv[1])
    plan = stack.Plan(data=data, tools=toolchain.locate(settings.load()), fast=True, with_gateway=False)
    async with stack.running(plan) as running:
        ready.write(data / "ready.json", await running.ready(None))
        await asyncio.Event().wait()
asyncio.run(main())
"""


async def test_no_stack_process_outlives_a_killed_parent(tmp_path: Path) -> None:
    data, temporary = tmp_path / "data", tmp_path / "t"
    temporary.mkdir()
    parent = subprocess.Popen([sys.executable, "-c", _PARENT, str(data)], env=os.environ | {"TMPDIR": str(temporary)})
    deadline = time.monotonic() + 150
    while not (data / "ready.json").exists():
        assert time.monotonic() < deadline and parent.poll() is None
        time.sleep(0.05)
    children = family(psutil.Process(parent.pid))[1:]
    assert {"postgres", "weed", "opa", "openfga"} <= set(values_of(psutil.Process.name, children))
    assert _sockets(ports.load(data / "ports.json"))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert _sockets(ports.load(data / "ports.json")) == [] == list(temporary.iterdir())
    assert all(map(_nothing_listens, _all_ports(ports.load(data / "ports.json"))))
    account.remove_data(data / "postgres")


def _sockets(chosen: Ports | None) -> list[Path]:
    assert chosen is not None
    return [path for path in object_store.sockets_left_behind(chosen) if path.exists()]


def _all_ports(chosen: Ports | None) -> list[int]:
    assert chosen is not None
    plain = [getattr(chosen, name) for name in chosen.__struct_fields__]
    return plain + [port + GRPC_OFFSET for port in _stores(chosen)]


def _stores(chosen: Ports) -> tuple[int, ...]:
    return chosen.s3, chosen.store_master, chosen.store_volume, chosen.store_filer, chosen.store_admin


def _nothing_listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((LOOPBACK, port)) != 0
