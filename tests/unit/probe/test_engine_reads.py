# SPDX-License-Identifier: Apache-2.0
"""Reads of the gateway through a Trino: what is sent, what counts as an answer, and the time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import pytest

from gateway.access.engine_probes import ProbeRules
from gateway.access.management_errors import EngineUnreachable
from gateway.features.engines.engine_probes import EngineProbes
from gateway.features.engines.probe_challenges import Challenge, new_rows
from gateway.verification.engine_reads import STATEMENTS, EngineAddress, EngineNotReached, EngineReads, Reader
from tests.support.door.world import NOW
from tests.support.kits import kit_of
from tests.support.servers.loopback import Reply, Request, as_json, serving


@dataclass
class Trino:
    """A server of Trino's protocol. The pages of a statement have a row and an error with the statement's number."""

    url: str = ""
    elsewhere: str = ""
    received: list[tuple[str, str, str | None]] = field(default_factory=list)
    """The statements, each with its user and the extra credential."""
    started: threading.Barrier | None = None


@contextmanager
def trino(*, parties: int = 0) -> Iterator[Trino]:
    """Serve the protocol on loopback. With `parties`, no statement is answered before so many are sent."""
    state = Trino(started=threading.Barrier(parties, timeout=20) if parties else None)

    def answer(request: Request) -> Reply:
        if request.method == "GET":
            return as_json(200, {"error": {"message": "Access Denied: value h1"}})
        statement, headers = request.body.decode(), request.headers
        state.received.append((statement, headers["x-trino-user"], headers.get("x-trino-extra-credential")))
        if state.started is not None:
            state.started.wait()
        there = f"{state.elsewhere or state.url}/v1/{len(statement)}"
        return as_json(200, {"nextUri": there, "data": [[statement, 1]]})

    with serving(answer) as service:
        state.url = service.url
        yield state


def address(url: str) -> EngineAddress:
    """Return the address of a Trino whose test user has a token."""
    return EngineAddress(
        engine="oidc~trino",
        url=f"{url}/",
        kind="trino",
        user=Reader("oidc~probe", "t1"),
        control=Reader("oidc~control"),
        catalog="lake",
    )


def shown(url: str, *, control: bool = False) -> str:
    """Return what the gateway reads of a canary."""
    return asyncio.run(EngineReads(()).read(address(url), "lakegate_probe", "canary_1", control=control))


def test_each_test_user_sends_its_statements_and_errors_are_output() -> None:
    with trino() as server:
        output, control = shown(server.url), shown(server.url, control=True)
    on = '"lake"."lakegate_probe"."canary_1"'
    credential = "urn:ietf:params:oauth:token-type:access_token=t1"
    assert set(server.received[:-1]) == {(each.format(on), "probe", credential) for each in STATEMENTS}
    assert server.received[-1] == (f"select * from {on}", "control", None)
    assert [line for line in output.split("\n") if line.endswith(" 1")] == [
        f"{each.format(on)} 1" for each in STATEMENTS
    ]
    assert output.count("value h1") == len(STATEMENTS), "messages can show hidden values"
    assert control == f"select * from {on} 1\nAccess Denied: value h1"


def test_statements_of_a_read_are_sent_at_once() -> None:
    """One after another they could take longer than the request of the probe."""
    with trino(parties=len(STATEMENTS)) as server:
        assert shown(server.url).count("value h1") == len(STATEMENTS)


def test_another_server_cannot_answer_in_place_of_the_engine() -> None:
    with trino() as server, trino() as other:
        server.elsewhere = other.url
        with pytest.raises(EngineNotReached):
            shown(server.url)


class _Slow(EngineReads):
    async def read(self, address: EngineAddress, namespace: str, table: str, *, control: bool) -> str:
        await asyncio.sleep(20)
        return ""


def test_engine_that_is_slower_than_the_request_is_named_before_the_request_ends() -> None:
    probes = EngineProbes(kit_of(probe_rules=ProbeRules(), engine_reads=_Slow(()), request_seconds=0.06))
    challenge = Challenge(id=uuid4(), table="canary_1", rows=new_rows(), created_by="oidc~admin", expires_at=NOW)
    with pytest.raises(EngineUnreachable, match=r"trino\.example/ did not finish 4 reads within 0\.04 seconds"):
        asyncio.run(probes._read(address("http://trino.example"), challenge))
