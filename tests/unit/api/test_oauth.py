# SPDX-License-Identifier: Apache-2.0
"""Users that an engine may act for, by the two tokens; see also `tests/contract/test_token_exchange.py`."""

from __future__ import annotations

import base64
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.api.context import Ctx
from gateway.api.errors import OAuthRefused, OAuthUnauthenticated
from gateway.features.engines import oauth_routes
from gateway.identity.errors import AuthenticationFailed, Refusal
from gateway.identity.tokens import VerifiedToken

_JWT = "urn:ietf:params:oauth:token-type:jwt"


def _verified(subject: str, **changes: Any) -> VerifiedToken:
    fields: dict[str, Any] = {
        "idp_id": "oidc",
        "subject": subject,
        "user_id": f"oidc~{subject}",
        "actor_user_id": None,
        "issuer": "https://id.example",
        "audiences": ("lakegate",),
        "expires_at": 2_000_000_000.0,
        "issued_at": None,
        "name": subject,
        "email": None,
        "kind": "human",
        "project_id": None,
        "client_id": None,
        "token_id": None,
        "groups": (),
        "scopes": frozenset(),
    }
    return VerifiedToken(**(fields | changes))


async def _acts(engine: VerifiedToken, subject: VerifiedToken | None, text: str = "a.b.c") -> str:
    """Return the user that the engine would get a token for."""

    async def verify(_: str) -> VerifiedToken:
        assert subject is not None, "the subject must be read as a user name"
        return subject

    form = oauth_routes.TokenRequest(grant_type=oauth_routes.EXCHANGE, subject_token=text, subject_token_type=_JWT)
    ctx = cast(Ctx, SimpleNamespace(services=SimpleNamespace(verify=verify)))
    found, _ = await oauth_routes._subject(ctx, form, engine)
    return found.user_id


@pytest.mark.parametrize("may_act", [None, "oidc~trino"])
async def test_a_user_token_is_valid_for_every_engine_or_the_one_it_names(may_act: str | None) -> None:
    assert await _acts(_verified("trino"), _verified("alice", may_act=may_act)) == "oidc~alice"


@pytest.mark.parametrize("may_act", ["oidc~spark", "other~trino", ""])
async def test_a_user_token_that_names_another_engine_is_refused(may_act: str) -> None:
    with pytest.raises(OAuthRefused, match="may_act"):
        await _acts(_verified("trino"), _verified("alice", may_act=may_act))


@pytest.mark.parametrize(
    "changes", [{"actor_user_id": "oidc~spark"}, {"user_id": "oidc~trino"}, {"project_id": "p-2"}], ids=str
)
async def test_delegated_own_and_foreign_project_tokens_are_refused_as_subject(
    changes: dict[str, Any],
) -> None:
    with pytest.raises(OAuthRefused):
        await _acts(_verified("trino", project_id="p-1"), _verified("alice", **changes))


@pytest.mark.parametrize(
    ("header", "claims"),
    [
        ({"alg": "HS256"}, {"sub": "alice"}),
        ({}, {"sub": "alice"}),
        ({"alg": "none"}, {"sub": "alice", "act": {"sub": "x"}}),
        ({"alg": "none"}, {"sub": ""}),
        ({"alg": "none"}, {"sub": "a\u202e"}),
        ({"alg": "none"}, {"sub": "\ud800"}),
        ({"alg": "none"}, {"sub": 7}),
        ({"alg": "none"}, {"sub": "alice", "exp": "never"}),
        ({"alg": "none"}, []),
    ],
    ids=str,
)
async def test_a_malformed_unsigned_user_name_token_is_refused(header: Any, claims: Any) -> None:
    parts = (base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, claims))
    with pytest.raises(OAuthRefused):
        await _acts(_verified("trino"), None, ".".join(parts) + ".")


async def _calls(caller: VerifiedToken | None, actor_token: str = "") -> VerifiedToken:
    """Return the calling engine. Only the verification of `caller` checks a proof of possession."""

    async def verified_caller() -> VerifiedToken | None:
        return caller

    async def verify(_: str) -> VerifiedToken:
        raise AuthenticationFailed("the token is bound to a key of its client", Refusal.BINDING)

    form = oauth_routes.TokenRequest(
        grant_type=oauth_routes.EXCHANGE, subject_token="d.e.f", subject_token_type=_JWT, actor_token=actor_token
    )
    ctx = cast(Ctx, SimpleNamespace(services=SimpleNamespace(verify=verify), verified_caller=verified_caller))
    return await oauth_routes._engine(ctx, form)


@pytest.mark.threat("LG-AUT-17")
async def test_a_bound_token_of_an_engine_is_accepted_in_the_header_only() -> None:
    engine = _verified("trino")
    assert await _calls(engine) == engine
    for caller in (None, engine):
        with pytest.raises(OAuthRefused, match="actor_token: the token is bound"):
            await _calls(caller, "a.b.c")
    with pytest.raises(OAuthUnauthenticated, match="the engine's own token is missing"):
        await _calls(None)
