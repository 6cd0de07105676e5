# SPDX-License-Identifier: Apache-2.0
"""A command that PostgreSQL refuses, or that finds nothing sealed, ends with one line and the remedy."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
import pytest
from click.testing import CliRunner, Result

from gateway.assembly import audit as audit_log
from gateway.cli import main
from gateway.db.connection_errors import connection_fault
from gateway.tasks.audit_chain import Exported, Verified
from tests.integration.parts import free_port

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
        (asyncpg.InvalidCatalogNameError("no"), "has no database of this name. Create it"),
        (asyncpg.InsufficientPrivilegeError("permission denied for schema public"), "Give the user of LAKEGATE__PG"),
        (ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 9)"), "nothing listens at the address"),
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
