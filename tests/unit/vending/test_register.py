# SPDX-License-Identifier: Apache-2.0
"""Register entries of credentials: the holder, the engine and the owner of a view."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec

from gateway.access.actor import Actor
from gateway.access.audit.audit_record import IssuedCredential
from gateway.scope.credential import AccessLevel
from gateway.storage.s3.credential import S3TemporaryCredential
from gateway.vending.register import register_entry
from gateway.vending.vendor import Vended

ROLE = UUID("01a2142f-bdfc-76c0-8bb3-bd437e8d35ca")
TABLE = uuid4()
WAREHOUSE = cast(Any, SimpleNamespace(id=uuid4(), project_id="p"))
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
VENDED = Vended(
    id=uuid4(),
    temporary=S3TemporaryCredential(
        access_key_id="AKID-7", secret_access_key="SECRET-7", session_token="TOKEN-7", expires_at=NOON
    ),
    policy_digest="d",
    lifetime=900,
    prefix="s3://lake/base/t/",
    level=AccessLevel.READ,
    expires_at=NOON,
    session_name="ann-0123456789abcdef",
    role="arn:aws:iam::123456789012:role/vend",
)


def entry(actor: Actor, *, generic: bool = False) -> IssuedCredential:
    return register_entry(actor, "request-1", WAREHOUSE, TABLE, "s3", VENDED, generic=generic)


def test_an_entry_has_the_facts_of_its_credential_and_no_secret() -> None:
    made = entry(Actor.user("oidc~ann"))
    assert (made.id, made.table_id, made.warehouse_id, made.project_id) == (VENDED.id, TABLE, WAREHOUSE.id, "p")
    assert (made.level, made.prefix, made.session_name) == ("read", VENDED.prefix, VENDED.session_name)
    assert (made.expires_at, made.seconds, made.kind, made.policy_digest) == (NOON, 900, "table", "d")
    assert entry(Actor.user("oidc~ann"), generic=True).kind == "generic_table"
    written = msgspec.json.encode(made).decode() + repr(made)
    assert not [secret for secret in ("AKID-7", "SECRET-7", "TOKEN-7") if secret in written]


def test_the_holder_is_the_user_also_with_a_role_or_an_engine() -> None:
    plain = Actor.user("oidc~ann", engine="oidc~trino")
    assert (entry(plain).principal, entry(plain).assumed_role, entry(plain).engine) == ("oidc~ann", None, "oidc~trino")
    acting = msgspec.structs.replace(plain, assumed_role=ROLE)
    assert (entry(acting).principal, entry(acting).assumed_role) == ("oidc~ann", ROLE)
    assert entry(acting).view_owner is None


def test_below_a_view_the_holder_is_the_caller_and_not_the_owner() -> None:
    below = Actor.user("oidc~ann", engine="oidc~trino").as_owner("oidc~owner")
    made = entry(below)
    assert (made.principal, made.assumed_role, made.view_owner) == ("oidc~ann", None, "oidc~owner")
    assert made.engine == "oidc~trino"
    nested = entry(below.as_owner("oidc~second"))
    assert (nested.principal, nested.view_owner) == ("oidc~ann", "oidc~second")
    acting = msgspec.structs.replace(Actor.user("oidc~ann"), assumed_role=ROLE).as_owner("oidc~owner")
    assert (entry(acting).principal, entry(acting).assumed_role) == ("oidc~ann", ROLE)
    odd = entry(Actor.user("oidc~seen as a ghost").as_owner("oidc~owner"))
    assert (odd.principal, odd.assumed_role) == ("oidc~seen as a ghost", None)
