# SPDX-License-Identifier: Apache-2.0
"""A command that PostgreSQL refuses, or that finds nothing sealed, ends with one line and the remedy."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
from click.testing import CliRunner, Result

from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.assembly import audit as audit_log
from gateway.cli import common, main
from gateway.db import migrate
from gateway.db.pools.connection_errors import connection_fault
from gateway.features.audit.audit_chain import Exported, Verified
from gateway.fga.wire import refuse, unreachable
from tests.support.rows.parts import free_port

SETTINGS = {
    "LAKEGATE__PG_ENCRYPTION_KEY": "k" * 40,
    "LAKEGATE__PG_DATABASE_URL_WRITE": "postgresql://u:p@127.0.0.1:9/x",
}


def run(*arguments: str, **more: str) -> Result:
    return CliRunner().invoke(main, list(arguments), env={**SETTINGS, **more})


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (asyncpg.InvalidPasswordError("no"), "refused the user name or the password. Correct them in LAKEGATE__PG"),
        (asyncpg.InvalidAuthorizationSpecificationError("no"), "refused the user name or the password"),
        (asyncpg.CannotConnectNowError("starting up"), "PostgreSQL accepts no connection now: starting up"),
        (asyncpg.TooManyConnectionsError("too many clients"), "accepts no connection now: too many clients"),
        (asyncpg.InvalidCatalogNameError("no"), "has no database of this name. Create it"),
        (asyncpg.InsufficientPrivilegeError("permission denied for schema public"), "Give the user of LAKEGATE__PG"),
        (
            ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)"),
            "nothing listens at the address of PostgreSQL",
        ),
        (socket.gaierror(-2, "Name or service not known"), "the host of PostgreSQL is unknown: Name or service"),
        (ssl.SSLError("certificate verify failed"), "the TLS connection to PostgreSQL failed"),
        (DatabaseUnavailable("the database does not answer"), "PostgreSQL failed: the database does not answer"),
        (DecisionEngineUnavailable("OPA rejected the gateway's token"), "OPA rejected the gateway's token"),
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_a_refused_connection_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str, wrapped: bool
) -> None:
    async def refuse(*_: object) -> None:
        if wrapped:
            raise RuntimeError("the driver's own text") from ExceptionGroup("several", [error])
        raise error

    monkeypatch.setattr(audit_log, "verify_audit", refuse)
    done = run("audit", "verify")
    assert done.exit_code == 1
    assert message in done.output
    assert len(done.output.splitlines()) == 1 and "Traceback" not in done.output


def test_another_error_keeps_its_traceback() -> None:
    assert connection_fault(ValueError("a fault of the program")) is None


def test_a_port_at_which_nothing_listens_is_found() -> None:
    async def connect() -> None:
        await asyncpg.connect(f"postgresql://u:secret@127.0.0.1:{free_port()}/x", timeout=5)

    with pytest.raises(OSError) as refused:
        asyncio.run(connect())
    found = connection_fault(refused.value)
    assert found is not None and "nothing listens" in found and "secret" not in found


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port whose server accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.mark.parametrize(
    "arguments", [("migrate",), ("audit", "verify"), ("authz", "reconcile"), ("model", "status"), ("live-credentials",)]
)
def test_nothing_listening_ends_each_command_with_one_line(arguments: tuple[str, ...]) -> None:
    done = run(*arguments, LAKEGATE__PG_DATABASE_URL_WRITE=f"postgresql://u:secret@127.0.0.1:{free_port()}/x")
    assert done.exit_code == 1
    last = done.output.splitlines()[-1]
    assert "nothing listens at the address of PostgreSQL" in last and "LAKEGATE__PG_DATABASE_URL_WRITE" in last
    assert "Traceback" not in done.output and "secret" not in done.output


def test_a_command_names_the_server_that_does_not_answer_and_ends(
    monkeypatch: pytest.MonkeyPatch, silent_port: int
) -> None:
    monkeypatch.setattr(common, "_PATIENCE_SECONDS", 0.1)
    monkeypatch.setattr(migrate, "_CONNECT_SECONDS", 1.0)
    done = run("migrate", LAKEGATE__PG_DATABASE_URL_WRITE=f"postgresql://u:secret@127.0.0.1:{silent_port}/x")
    first, *_, last = done.output.splitlines()
    assert first == f"no answer yet from PostgreSQL at 127.0.0.1:{silent_port} …"
    assert done.exit_code == 1 and "PostgreSQL failed: the database does not answer" in last


def test_waiting_for_a_database_is_announced(silent_port: int) -> None:
    url = f"postgresql://u:secret@127.0.0.1:{silent_port}/x"
    done = run("wait-for-db", "-r", "1", "-b", "0.1", LAKEGATE__PG_DATABASE_URL_WRITE=url)
    assert done.output.splitlines()[0] == f"waiting for PostgreSQL at 127.0.0.1:{silent_port} …"
    assert done.exit_code == 1


@pytest.mark.parametrize("status", [401, 403])
def test_an_engine_that_rejects_a_token_names_the_setting(status: int) -> None:
    with pytest.raises(DecisionEngineUnavailable, match="OpenFGA rejected the API key .* LAKEGATE__OPENFGA__API_KEY"):
        refuse(status, b"{}")


def test_the_address_of_an_engine_is_named_without_its_password() -> None:
    text = str(unreachable("http://user:secret@openfga:8080/stores/1", OSError))
    assert "OpenFGA at http://openfga:8080 cannot be reached" in text and "LAKEGATE__OPENFGA__ENDPOINT" in text


def test_an_audit_without_sealed_records_is_no_verified_audit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def verify(*_: object) -> Verified:
        return Verified(blocks=0, records=0, unsealed=3, strays=0, removed=0, removed_until=None, last=None, fault=None)

    async def export(*_: object) -> Exported:
        return Exported(last=0, records=0)

    monkeypatch.setattr(audit_log, "verify_audit", verify)
    monkeypatch.setattr(audit_log, "export_audit", export)
    for arguments in (("verify",), ("export", "--output", str(tmp_path / "a.jsonl"))):
        done = run("audit", *arguments)
        assert done.exit_code == 3
        assert "Nothing is sealed" in done.output and "LAKEGATE__AUDIT__SEAL_INTERVAL" in done.output


def test_a_health_check_names_the_address_that_it_queried() -> None:
    port = free_port()
    done = run("healthcheck", LAKEGATE__LISTEN_PORT=str(port))
    assert done.exit_code == 1
    assert f"did not answer at http://127.0.0.1:{port}/health" in done.output and "LAKEGATE__LISTEN_PORT" in done.output
