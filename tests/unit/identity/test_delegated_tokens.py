# SPDX-License-Identifier: Apache-2.0
"""Delegated tokens: signed with a shared key, valid for this server only and for fifteen minutes."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest
from joserfc import jws
from joserfc.jwk import OKPKey

from gateway.assembly.engines import EnginesByToken
from gateway.assembly.identity import actor_of_token
from gateway.identity.delegated import LIFE_SECONDS, DelegatedTokens, IssuedToken, TokenTooLarge
from gateway.identity.errors import AuthenticationFailed
from gateway.identity.own_keys import MISSED_SECONDS, RELOAD_SECONDS, OwnKeys

from .conftest import NOW, Clock, Provider, b64

SERVER = UUID("00000000-0000-4000-8000-000000000001")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A key as the database returns it."""

    kid: str
    public: bytes
    private: bytes
    signs: bool = True


@dataclass
class Table:
    """The keys shared by all processes."""

    rows: list[Row] = field(default_factory=list)
    reads: int = 0

    async def published(self) -> Sequence[Row]:
        self.reads += 1
        return list(self.rows)

    async def private(self, kid: str) -> bytes:
        return next(row.private for row in self.rows if row.kid == kid)

    async def store(self, kid: str, *, public: bytes, private: bytes) -> None:
        if not any(row.signs for row in self.rows):
            self.rows.insert(0, Row(kid=kid, public=public, private=private))

    def retire(self) -> None:
        """Stop signing with every key; all still verify."""
        self.rows = [msgspec.structs.replace(row, signs=False) for row in self.rows]


@dataclass
class Process:
    """A gateway process with a table of keys."""

    table: Table = field(default_factory=Table)
    server: UUID = SERVER
    now: Clock = field(default_factory=lambda: Clock(NOW))
    ticks: Clock = field(default_factory=lambda: Clock(100.0))

    def __post_init__(self) -> None:
        keys = OwnKeys(self.table, clock=self.ticks, sleep=self.wait)
        self.tokens = DelegatedTokens(self.server, keys, clock=self.now)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.ticks.at += seconds

    async def issue(self, **more: Any) -> IssuedToken:
        claims: dict[str, Any] = {
            "user_id": "oidc~alice",
            "engine_id": "oidc~trino",
            "project_id": None,
            "groups": (),
            "not_after": None,
        }
        claims["subject_proven"] = False
        return await self.tokens.issue(**{**claims, **more})

    async def refuse(self, token: str) -> str:
        with pytest.raises(AuthenticationFailed) as caught:
            await self.tokens.verify(token)
        return str(caught.value)


async def test_a_delegated_token_names_user_and_engine_and_carries_project_and_groups() -> None:
    here = Process()
    issued = await here.issue(project_id="p", groups=("a", "b"))
    token = await here.tokens.verify(issued.token)
    assert (token.user_id, token.engine, token.actor_user_id) == ("oidc~alice", "oidc~trino", "oidc~trino")
    assert (token.project_id, token.groups, token.token_id) == ("p", ("a", "b"), issued.token_id)
    assert (issued.seconds, token.expires_at) == (LIFE_SECONDS, NOW + LIFE_SECONDS)
    assert here.tokens.has_token_type(issued.token)


@pytest.mark.parametrize("proven", [True, False])
async def test_a_delegated_token_states_if_the_subject_was_proven(proven: bool) -> None:
    here = Process()
    issued = await here.issue(subject_proven=proven)
    assert (await here.tokens.verify(issued.token)).subject_proven is proven
    header, claims, signature = issued.token.split(".")
    other = json.loads(base64.urlsafe_b64decode(header + "=="))
    other["sub_proven"] = not proven
    forged = base64.urlsafe_b64encode(json.dumps(other).encode()).decode().rstrip("=")
    await here.refuse(f"{forged}.{claims}.{signature}")


@pytest.mark.threat("LG-DEC-45")
@pytest.mark.parametrize("known", [True, False])
async def test_a_delegated_token_states_if_the_users_token_stated_the_groups(known: bool) -> None:
    here = Process()
    issued = await here.issue(subject_proven=True, groups_known=known)
    token = await here.tokens.verify(issued.token)
    assert token.groups_known is known
    actor = actor_of_token(token, frozenset(), EnginesByToken({}))
    assert actor.groups_unknown is not known


@pytest.mark.threat("LG-AUT-18")
async def test_a_delegated_token_carries_the_policy_claims_of_a_proven_subject_only() -> None:
    here, claims = Process(), (("team", ("eu", "us")),)
    proven = await here.issue(subject_proven=True, policy_claims=claims)
    assert (await here.tokens.verify(proven.token)).policy_claims == claims
    named = await here.issue(subject_proven=False, policy_claims=claims)
    assert (await here.tokens.verify(named.token)).policy_claims == ()
    header, body, signature = proven.token.split(".")
    changed = json.loads(base64.urlsafe_b64decode(body + "=="))
    assert changed["policy_claims"] == [["team", ["eu", "us"]]]
    changed["policy_claims"] = [["team", ["asia"]]]
    await here.refuse(f"{header}.{b64(json.dumps(changed).encode())}.{signature}")


async def test_a_delegated_token_without_policy_claims_is_accepted_by_earlier_versions() -> None:
    """They reject unknown claims, so the claim must be absent."""
    issued = await Process().issue(subject_proven=True)
    assert "policy_claims" not in json.loads(base64.urlsafe_b64decode(issued.token.split(".")[1] + "=="))


async def test_a_delegated_token_is_valid_in_every_process_and_all_share_one_key() -> None:
    table = Table()
    one, other = Process(table), Process(table)
    for issued in (await one.issue(), await other.issue()):
        assert (await one.tokens.verify(issued.token)).engine == "oidc~trino"
        assert (await other.tokens.verify(issued.token)).engine == "oidc~trino"
    assert len(table.rows) == 1


async def test_a_delegated_token_expires_on_time_and_with_its_subject_token() -> None:
    here = Process()
    whole, short = await here.issue(), await here.issue(not_after=NOW + 60.9)
    assert short.seconds == 60
    here.now.at = NOW + 59
    await here.tokens.verify(short.token)
    here.now.at = NOW + 60
    await here.refuse(short.token)
    here.now.at = NOW + LIFE_SECONDS
    await here.refuse(whole.token)
    assert (await here.issue(not_after=NOW)).seconds == 0


async def test_another_server_with_the_same_keys_refuses_a_delegated_token() -> None:
    table = Table()
    issued = await Process(table).issue()
    assert "another server" in await Process(table, server=uuid4()).refuse(issued.token)


async def test_a_rotated_key_still_verifies_and_a_revoked_one_stops_within_a_second() -> None:
    here = Process()
    old = await here.issue()
    here.table.retire()
    here.ticks.at += RELOAD_SECONDS
    new = await here.issue()
    assert len(here.table.rows) == 2, "a new key must be created when no key can sign"
    await here.tokens.verify(old.token)
    here.table.rows = here.table.rows[:1]
    here.ticks.at += RELOAD_SECONDS
    assert "was revoked" in await here.refuse(old.token)
    await here.tokens.verify(new.token)


async def test_a_new_key_of_another_process_is_found_at_once() -> None:
    table = Table()
    one, other = Process(table), Process(table)
    await other.refuse((await Process().issue()).token)
    assert table.reads, "the refused token must have caused a read of the table"
    assert (await other.tokens.verify((await one.issue()).token)).engine == "oidc~trino"


async def test_many_forged_key_ids_share_one_lookup() -> None:
    here = Process()
    _, claims, signature = (await here.issue()).token.split(".")
    reads, began = here.table.reads, here.ticks.at
    made_up = [
        b64(json.dumps({"typ": "lakegate-delegated+jwt", "alg": "Ed25519", "kid": str(number)}).encode())
        for number in range(200)
    ]
    await asyncio.gather(*(here.refuse(f"{header}.{claims}.{signature}") for header in made_up))
    for header in made_up[:20]:
        await here.refuse(f"{header}.{claims}.{signature}")
    assert here.table.reads - reads <= 1 + (here.ticks.at - began) / MISSED_SECONDS


async def _signed(here: Process, claims: dict[str, Any], **header: Any) -> str:
    """Return any claims with a valid signature of the server key."""
    row = here.table.rows[0]
    key = OKPKey.import_key(msgspec.json.decode(row.private))
    fields = {"typ": "lakegate-delegated+jwt", "alg": "Ed25519", "kid": row.kid, **header}
    return jws.serialize_compact(fields, json.dumps(claims).encode(), key, algorithms=["Ed25519", "EdDSA"])


@pytest.mark.parametrize(
    "change",
    [
        {"iss": "https://idp.example"},
        {"aud": ["urn:lakegate:00000000-0000-4000-8000-000000000001"]},
        {"aud": "urn:lakegate:other"},
        {"act": None},
        {"act": {"sub": "trino"}},
        {"act": {}},
        {"sub": "alice"},
        {"sub": "*"},
        {"scope": "management"},
        {"exp": NOW + 100_000},
        {"iat": NOW + 1000, "exp": NOW + 1100},
        {"exp": "never"},
        {"extra": 1},
    ],
)
async def test_unexpected_claims_are_refused_even_with_a_valid_signature(change: dict[str, Any]) -> None:
    here = Process()
    issued = await here.issue()
    payload = issued.token.split(".")[1]

    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert (await here.tokens.verify(await _signed(here, claims))).user_id == "oidc~alice"
    await here.refuse(await _signed(here, {**claims, **change}))


@pytest.mark.parametrize("header", [{"typ": "at+jwt"}, {"typ": "JWT"}, {"alg": "EdDSA"}])
async def test_unexpected_token_headers_are_refused(header: dict[str, str]) -> None:
    here = Process()
    payload = (await here.issue()).token.split(".")[1]

    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    await here.refuse(await _signed(here, claims, **header))


async def test_provider_tokens_and_delegated_tokens_are_not_interchangeable(provider: Provider) -> None:
    here = Process()
    assert not here.tokens.has_token_type(provider.token())
    await here.refuse(provider.token())
    with pytest.raises(AuthenticationFailed):
        await provider.verify((await here.issue()).token)


@pytest.mark.parametrize("text", ["", ".", "..", "a.b.c", "e30.e30.", "\u00e9.b.c", "x" * 10_000])
async def test_random_text_is_not_a_delegated_token(text: str) -> None:
    here = Process()
    assert not here.tokens.has_token_type(text)
    await here.refuse(text)


async def test_an_actor_in_a_provider_token_does_not_prove_an_engine(provider: Provider) -> None:
    verified = await provider.verify(provider.token(act={"sub": "trino"}))
    assert (verified.actor_user_id, verified.engine) == ("oidc~trino", None)


async def test_too_many_groups_are_refused_and_not_dropped() -> None:
    with pytest.raises(TokenTooLarge):
        await Process().issue(groups=tuple(f"group-{number:06}" for number in range(2000)))
