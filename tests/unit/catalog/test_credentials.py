# SPDX-License-Identifier: Apache-2.0
"""Responses to creations that are committed but whose credentials fail or cannot be recorded."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

import pytest

from gateway.access.actor import Actor
from gateway.access.dependency_errors import AuditUnavailable, DatabaseUnavailable
from gateway.features.credentials.credentials import Credentials, VendResult
from gateway.iceberg.identifiers import Namespace
from gateway.obligations.merging import Obligations
from gateway.scope.errors import PolicyTooLarge
from gateway.storage.errors import ShortTermCredentialError
from gateway.storage.registry import stored_profile
from gateway.vending.scope_verdict import Enforcement, ScopeRule
from gateway.vending.vendor import NoCredentials
from tests.support.kits import kit_of

PROFILE = (
    b'{"type":"s3","bucket":"lake","region":"eu-west-1","key-prefix":"base","sts-enabled":true,'
    b'"sts-role-arn":"arn:aws:iam::123456789012:role/name"}'
)
WAREHOUSE = SimpleNamespace(scope_verdict=None, id="w", storage_profile=stored_profile(PROFILE), profile_version=1)


class _Part:
    """A vendor, a storage and an audit in one; each method fails on demand."""

    def __init__(self, fails: str, error: Exception) -> None:
        self._fails = fails
        self._error = error
        self.failed = False
        self.audited: dict[str, str] = {}

    def _maybe(self, name: str) -> None:
        if name == self._fails:
            self.failed = True
            raise self._error

    async def vend(self, **_: Any) -> NoCredentials:
        self._maybe("vend")
        return NoCredentials("none here")

    async def first_expiry(self, *_: Any, **__: Any) -> None:
        return None

    async def of(self, _: Any) -> None:
        self._maybe("of")

    async def also(self, *_: object, **details: str) -> None:
        self._maybe("also")
        self.audited = details


@pytest.mark.parametrize("where", ["vend", "of", "also"])
@pytest.mark.parametrize(
    "error",
    [
        AuditUnavailable("full"),
        DatabaseUnavailable("away"),
        ShortTermCredentialError("away"),
        PolicyTooLarge("long"),
        RuntimeError("an unexpected error"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_committed_creation_succeeds_without_credentials_if_vending_fails(where: str, error: Exception) -> None:
    part = _Part(where, error)
    credentials = Credentials(
        kit_of(database=part, door=part, vendor=part, storage=part, signer=part, scope=ScopeRule(Enforcement.OFF))
    )
    vended = await _of_creation(credentials, part, WAREHOUSE)
    assert vended.credentials == ()
    assert vended.config["region"] == "eu-west-1"
    assert not {key for key in vended.config if "access-key" in key}
    assert (
        vended.reason == "the credentials could not be created or recorded in the audit log; load the table to get them"
    )
    assert part.failed


async def _of_creation(credentials: Credentials, audit: _Part, warehouse: SimpleNamespace) -> VendResult:
    operation = SimpleNamespace(namespace=SimpleNamespace(namespace=Namespace(("n",))), table="t")
    create = SimpleNamespace(operation=operation, namespace=lambda _: SimpleNamespace(warehouse=warehouse))
    vend = SimpleNamespace(
        operation=operation,
        obligations=Obligations(),
        pending_audit=audit,
        actor=Actor.user("oidc~a"),
        resolution=SimpleNamespace(now=datetime(2026, 3, 4, tzinfo=UTC)),
    )
    return await credentials.for_creation(cast(Any, create), cast(Any, vend), "s3://lake/base/t", uuid4())


async def test_a_warehouse_whose_store_let_a_credential_escape_gets_none() -> None:
    """Neither the vendor nor the stored credential is used, and the audit record has the reason."""
    part = _Part("vend", RuntimeError("must not be called"))
    credentials = Credentials(
        kit_of(database=part, door=part, vendor=part, storage=part, signer=part, scope=ScopeRule(Enforcement.ESCAPED))
    )
    row = SimpleNamespace(**{**vars(WAREHOUSE), "scope_verdict": "escaped"})
    vended = await _of_creation(credentials, part, row)
    assert vended.credentials == () and not part.failed
    assert part.audited["vended"] == "nothing"
    assert "leave its scope" in vended.reason
