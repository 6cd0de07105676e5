# SPDX-License-Identifier: Apache-2.0
"""Name nodes that do not answer, and translated errors of the library, without an HDFS."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.scope.credential import Credential
from gateway.scope.profile import StorageRules
from gateway.storage.errors import FileExists, FileMissing, StorageDenied, StorageUnavailable
from gateway.storage.files import Files
from gateway.storage.hdfs import name_node as name_nodes
from gateway.storage.hdfs.client import _translate
from gateway.storage.hdfs.name_node import CALLS, GENERATIONS, Deadline, NameNode, require_ticket
from gateway.storage.hdfs.profile import HdfsProfile
from gateway.storage.local.profile import LocalAccess
from gateway.storage.provider import ClientOptions
from gateway.storage.registry import open_clients


@contextmanager
def warehouse(authority: str, *, seconds: float) -> Iterator[tuple[Files, HdfsProfile]]:
    clients = open_clients(ClientOptions(rules=StorageRules(roots=(f"hdfs://{authority}/a",)), total_seconds=seconds))
    yield Files(clients), HdfsProfile(location=f"hdfs://{authority}/a/b")
    clients.close()


async def read(files: Files, profile: HdfsProfile, access: Credential | None = None) -> bytes:
    return await files.read(profile, access or profile.own_access, f"{profile.location}/t/1", max_bytes=9)


async def test_a_name_node_that_never_answers_is_unavailable_each_time() -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    with silent, warehouse(f"127.0.0.1:{silent.getsockname()[1]}", seconds=0.3) as (files, profile):
        for _ in range(2):
            results = await asyncio.gather(*(read(files, profile) for _ in range(5)), return_exceptions=True)
            assert {type(each) for each in results} == {StorageUnavailable}


async def test_a_refused_connection_is_unavailable() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with (
            warehouse(f"127.0.0.1:{bound.getsockname()[1]}", seconds=20) as (files, profile),
            pytest.raises(StorageUnavailable),
        ):
            await read(files, profile)


async def test_a_name_service_is_unavailable_without_its_configuration_and_while_no_name_node_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warehouse("ns", seconds=20) as (files, profile):
        with pytest.raises(StorageUnavailable):
            await read(files, profile)
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{bound.getsockname()[1]}"
            values = {"dfs.ha.namenodes.ns": "a,b"}
            values |= {f"dfs.namenode.rpc-address.ns.{name}": address for name in "ab"}
            texts = (
                f"<property><name>{name}</name><value>{value}</value></property>" for name, value in values.items()
            )
            (tmp_path / "hdfs-site.xml").write_text(f"<configuration>{''.join(texts)}</configuration>")
            monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
            with pytest.raises(StorageUnavailable):
                await read(files, profile)


async def test_a_credential_of_another_provider_opens_no_file() -> None:
    with warehouse("127.0.0.1:1", seconds=20) as (files, profile), pytest.raises(TypeError):
        await read(files, profile, LocalAccess())


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileNotFoundError("/a"), FileMissing),
        (FileExistsError("/a"), FileExists),
        (RuntimeError('RPCError("org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException", "x")'), FileExists),
        (RuntimeError('RPCError("org.apache.hadoop.security.AccessControlException", "x")'), StorageDenied),
        (RuntimeError('FatalRPCError("org.apache.hadoop.security.AccessControlException", "x")'), StorageDenied),
        (RuntimeError('RPCError("org.apache.hadoop.security.token.SecretManager$InvalidToken", "x")'), StorageDenied),
        (RuntimeError('RPCError("org.apache.hadoop.fs.ParentNotDirectoryException", "x")'), StorageDenied),
        (RuntimeError("NoSASLMechanism"), StorageDenied),
        (RuntimeError('GSSAPIError(GSS_S_NO_CRED, 0, "no ticket")'), StorageDenied),
        (RuntimeError('RPCError("org.apache.hadoop.hdfs.server.namenode.SafeModeException", "x")'), StorageUnavailable),
        (RuntimeError('RPCError("java.io.IOException", "RPCError(\\"…AccessControlException\\"")'), StorageUnavailable),
        (OSError("Connection refused"), StorageUnavailable),
        (TimeoutError(), StorageUnavailable),
    ],
)
def test_errors_are_recognised_by_class_and_contain_no_text_of_the_store(
    error: OSError | RuntimeError, expected: type[Exception]
) -> None:
    with pytest.raises(expected) as translated:
        _translate(error)
    assert type(translated.value) is expected
    assert "/a" not in str(translated.value) and "hadoop" not in str(translated.value).lower()


async def test_a_blocked_call_delays_neither_the_event_loop_nor_later_calls() -> None:
    name_node, free = NameNode("127.0.0.1:1"), threading.Event()

    def block(_: Any, deadline: Deadline) -> None:
        free.wait()

    for _ in range(GENERATIONS):
        blocked = (name_node.run(block, seconds=0.2) for _ in range(CALLS))
        assert {type(each) for each in await asyncio.gather(*blocked, return_exceptions=True)} == {TimeoutError}
        assert await name_node.run(lambda *_: "answer", seconds=20) == "answer"
    free.set()


async def test_blocked_calls_are_limited_and_make_room_when_they_end() -> None:
    name_node, free, before = NameNode("127.0.0.1:1"), threading.Event(), threading.enumerate()

    def block(_: Any, deadline: Deadline) -> None:
        free.wait()

    for _ in range(GENERATIONS + 2):
        calls = (name_node.run(block, seconds=0.2) for _ in range(CALLS + 3))
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(each) for each in results} == {TimeoutError}
    threads = [each for each in threading.enumerate() if each.name == "storage-hdfs" and each not in before]
    assert len(threads) <= CALLS * (GENERATIONS + 1)
    free.set()
    for thread in threads:
        thread.join()
    assert await name_node.run(lambda *_: "answer", seconds=20) == "answer"


async def test_a_call_that_nobody_waits_for_stops_at_its_next_step() -> None:
    name_node, free, ended = NameNode("127.0.0.1:1"), threading.Event(), threading.Event()
    steps: list[str] = []

    def delete(_: Any, deadline: Deadline) -> None:
        try:
            for step in ("first", "second"):
                deadline.check()
                steps.append(step)
                free.wait()
        finally:
            ended.set()

    with pytest.raises(TimeoutError):
        await name_node.run(delete, seconds=0.2)
    free.set()
    await asyncio.to_thread(ended.wait)
    assert steps in (["first"], [])


def test_no_ticket_is_required_without_a_principal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'none'}")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", f"FILE:{tmp_path / 'none'}")
    acquire, acquired = name_nodes._acquired, list[bool]()

    def record(library: object) -> bool:
        acquired.append(acquire(library))
        return acquired[-1]

    monkeypatch.setattr(name_nodes, "_acquired", record)
    require_ticket()
    assert acquired in ([], [False])  # nothing is asked on a machine without the library


def test_a_ticket_that_does_not_come_in_time_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_slowly(_: object) -> bool:
        moments.append(100.0)
        return False

    moments = [0.0]
    monkeypatch.setattr(name_nodes, "_acquired", fail_slowly)
    monkeypatch.setattr(name_nodes, "time", SimpleNamespace(monotonic=lambda: moments[-1]))
    with pytest.raises(TimeoutError):
        require_ticket()
