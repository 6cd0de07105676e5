# SPDX-License-Identifier: Apache-2.0
"""`POST /catalog/v1/oauth/tokens`: token exchange for engines (RFC 8693), and for everybody else an answer that says
where tokens come from.

Two things are never enough: a name without an engine that proves itself, and a user's token without an engine that may
act for others. Errors have the form of RFC 6749 section 5.2, which is what clients of this endpoint read.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec
from litestar import Response

from gateway.access.operations.exchanging import ExchangeToken
from gateway.access.principal_ids import fits_a_tuple
from gateway.api.context import Ctx
from gateway.api.errors import OAuthRefused, OAuthUnauthenticated
from gateway.api.serves import serves
from gateway.catalog.exchanges import NotAnEngine, Subject, UnfitSubject
from gateway.identity.bearer import bearer_token
from gateway.identity.claims import checked_subject
from gateway.identity.delegated import SCOPE
from gateway.identity.errors import NotAuthenticated
from gateway.identity.tokens import VerifiedToken

EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type, no token
_JWT: Final = "urn:ietf:params:oauth:token-type:jwt"
_TYPES: Final = frozenset({_ACCESS_TOKEN, _JWT})
_MAX_BODY: Final = 65_536
_MAX_FIELDS: Final = 40
_UNSIGNED: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.", re.ASCII)


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """RFC 8693 section 2.2.1."""

    access_token: str
    issued_token_type: str
    token_type: str
    expires_in: int
    scope: str


class _Header(msgspec.Struct, frozen=True):
    alg: str


class _Named(msgspec.Struct, frozen=True):
    sub: str
    exp: float | None = None
    act: msgspec.Raw | None = None


@serves(ExchangeToken)
async def exchange_token(ctx: Ctx) -> Response[TokenAnswer]:
    """A token with which the calling engine acts for the subject, for at most fifteen minutes."""
    form = _form(ctx.media_type, await ctx.raw_body())
    _require_exchange(form)
    engine = await _engine(ctx, form)
    subject, proven = await _subject(ctx, form, engine)
    await ctx.come_as(engine)
    try:
        permit = await ctx.admit(ExchangeToken(subject.user_id, proven))
        issued = await ctx.parts.exchanges.exchange(permit, subject)
    except NotAnEngine as refused:
        raise OAuthRefused("unauthorized_client", refused.message) from None
    except UnfitSubject as refused:
        raise OAuthRefused("invalid_request", refused.message) from None
    answer = TokenAnswer(
        access_token=issued.token,
        issued_token_type=_ACCESS_TOKEN,
        token_type="Bearer",  # noqa: S106 - as above
        expires_in=issued.seconds,
        scope=SCOPE,
    )
    return Response(answer, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})


def _form(media_type: str, body: bytes) -> Mapping[str, str]:
    """The parameters, each once (RFC 6749 section 3.2); empty ones count as left out."""
    if media_type != "application/x-www-form-urlencoded":
        raise OAuthRefused("invalid_request", "the request must be application/x-www-form-urlencoded")
    if len(body) > _MAX_BODY:
        raise OAuthRefused("invalid_request", f"the request is longer than {_MAX_BODY} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=_MAX_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise OAuthRefused("invalid_request", "the request is not a form that can be read") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OAuthRefused("invalid_request", "a parameter is given twice")
    return form


def _require_exchange(form: Mapping[str, str]) -> None:
    """Raise OAuthRefused for everything that is no exchange for this catalog."""
    if form.get("grant_type") != EXCHANGE:
        raise OAuthRefused(
            "unsupported_grant_type",
            "this server issues no tokens but to engines that act for users; get yours from the identity provider "
            "(set oauth2-server-uri in the client)",
        )
    if form.get("requested_token_type", _ACCESS_TOKEN) not in _TYPES:
        raise OAuthRefused("invalid_request", "requested_token_type can only be an access token")
    if SCOPE not in form.get("scope", SCOPE).split():
        raise OAuthRefused("invalid_scope", f"the only scope is {SCOPE}")
    if "resource" in form or "audience" in form:
        raise OAuthRefused("invalid_target", "tokens of this server are for this server alone; name no other")
    if form.get("subject_token_type") not in _TYPES or not form.get("subject_token"):
        raise OAuthRefused("invalid_request", "subject_token and subject_token_type (access_token or jwt) are needed")
    if "actor_token" in form and form.get("actor_token_type") not in _TYPES:
        raise OAuthRefused("invalid_request", "actor_token_type must be access_token or jwt")


async def _engine(ctx: Ctx, form: Mapping[str, str]) -> VerifiedToken:
    """Who asks: by the Authorization header, by `actor_token`, or by both if they are one and the same."""
    header, actor = ctx.authorizations, form.get("actor_token")
    if not header and actor is None:
        raise OAuthUnauthenticated("invalid_client", "the engine's own token is needed, as bearer or as actor_token")
    found: list[VerifiedToken] = []
    if header:
        try:
            found.append(await ctx.parts.verify(bearer_token(header)))
        except NotAuthenticated as unknown:
            raise OAuthUnauthenticated("invalid_client", unknown.message) from None
    if actor is not None:
        try:
            found.append(await ctx.parts.verify(actor))
        except NotAuthenticated as unknown:
            raise OAuthRefused("invalid_request", f"actor_token: {unknown.message}") from None
    if len({token.user_id for token in found}) > 1:
        raise OAuthRefused("invalid_request", "actor_token is of somebody else than the Authorization header")
    if any(token.engine is not None for token in found):
        raise OAuthRefused(
            "invalid_request",
            "a token that was exchanged is not exchanged or renewed; come with the engine's own token and the subject",
        )
    return found[0]


async def _subject(ctx: Ctx, form: Mapping[str, str], engine: VerifiedToken) -> tuple[Subject, bool]:
    """(whom the engine wants to act for, whether a token of theirs proves it)."""
    token = form["subject_token"]
    named = _named(token, engine)
    if named is None:
        try:
            verified = await ctx.parts.verify(token)
        except NotAuthenticated as unknown:
            raise OAuthRefused("invalid_request", f"subject_token: {unknown.message}") from None
        if verified.actor_user_id is not None:
            raise OAuthRefused("invalid_request", "subject_token: somebody acts for its subject already")
        named = Subject(
            user_id=verified.user_id,
            project_id=verified.project_id,
            groups=verified.groups,
            not_after=verified.expires_at,
        )
        proven = True
    else:
        proven = False
    if named.user_id == engine.user_id:
        raise OAuthRefused(
            "invalid_request",
            "the subject is the caller itself: tokens are not renewed here but at the identity provider (Iceberg "
            "clients: token-refresh-enabled=false, or oauth2-server-uri)",
        )
    if engine.project_id is not None and named.project_id not in (None, engine.project_id):
        raise OAuthRefused("invalid_request", "the two tokens are for different projects")
    return msgspec.structs.replace(named, project_id=named.project_id or engine.project_id), proven


def _named(token: str, engine: VerifiedToken) -> Subject | None:
    """The user that an unsigned JWT names (RFC 7519 section 6: `alg` none, no signature), of the engine's own provider;
    None when it is no unsigned JWT. It proves nothing: Trino sends it so, and the engine's word is what counts.
    """
    parts = _UNSIGNED.fullmatch(token)
    if parts is None:
        return None
    try:
        header = msgspec.json.decode(_decoded(parts[1]), type=_Header)
        named = msgspec.json.decode(_decoded(parts[2]), type=_Named)
    except (ValueError, RecursionError):
        raise OAuthRefused("invalid_request", "subject_token cannot be read") from None
    if header.alg != "none" or named.act is not None:
        raise OAuthRefused("invalid_request", "subject_token: an unsigned token has alg none and no actor")
    try:
        user_id = f"{engine.idp_id}~{checked_subject(named.sub, 'its subject')}"
    except NotAuthenticated as unfit:
        raise OAuthRefused("invalid_request", f"subject_token: {unfit.message}") from None
    if not fits_a_tuple(user_id):
        raise OAuthRefused("invalid_request", "subject_token: the subject is too long")
    return Subject(user_id=user_id, not_after=named.exp)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
