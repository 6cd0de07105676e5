# SPDX-License-Identifier: Apache-2.0
"""`POST /catalog/v1/oauth/tokens`: token exchange for engines (RFC 8693).

An exchange requires an engine that authenticates with a token of its own and holds the right to act for users. Neither
a user's name nor a user's token suffices without it. Requests other than an exchange get an error that refers the
client to its identity provider. Errors have the form of RFC 6749 section 5.2.
"""

from __future__ import annotations

import base64
import re
from typing import Annotated, Final

import msgspec
from litestar import Response
from msgspec import Meta

from gateway.access.operations.credentials import ExchangeToken, Subject
from gateway.access.request import Form, Header
from gateway.access.tuples import is_valid_in_tuples
from gateway.api.context import Ctx
from gateway.api.errors import OAuthRefused, OAuthUnauthenticated
from gateway.api.request_encoding import UnreadableForm
from gateway.api.serves import serves
from gateway.features.engines.token_exchange import NotAnEngine, SubjectOutsideLimits, TokenExchange, UnfitSubject
from gateway.identity.claims import checked_subject
from gateway.identity.delegated import SCOPE
from gateway.identity.errors import NotAuthenticated
from gateway.identity.tokens import VerifiedToken

EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a type of token, not a token
_JWT: Final = "urn:ietf:params:oauth:token-type:jwt"
_TYPES: Final = frozenset({_ACCESS_TOKEN, _JWT})
_UNSIGNED: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.", re.ASCII)


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A token exchange request (RFC 8693 section 2.1). An empty parameter counts as absent."""

    grant_type: Annotated[str, Meta(description=f"`{EXCHANGE}`; the only supported grant type.")]
    subject_token: Annotated[
        str,
        Meta(description="A token of the user; from an engine with that right, an unsigned JWT that names the user."),
    ]
    subject_token_type: Annotated[str, Meta(description=f"`{_ACCESS_TOKEN}` or `{_JWT}`.")]
    actor_token: Annotated[
        str, Meta(description="The token of the engine, if it is not in the header `Authorization`.")
    ] = ""
    actor_token_type: Annotated[str, Meta(description="The type of `actor_token`, as `subject_token_type`.")] = ""
    requested_token_type: Annotated[str, Meta(description="Only access tokens are issued.")] = _ACCESS_TOKEN
    scope: Annotated[str, Meta(description=f"`{SCOPE}`, possibly with other scopes.")] = SCOPE
    resource: Annotated[str, Meta(description="Refused: tokens of this server are valid for this server only.")] = ""
    audience: Annotated[str, Meta(description="Refused, as `resource`.")] = ""


class TokenAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The response of a token exchange (RFC 8693 section 2.2.1)."""

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


@serves(ExchangeToken, reads=(Form(TokenRequest), Header("x-assume-role")))
async def exchange_token(ctx: Ctx) -> Response[TokenAnswer]:
    """Issue a token with which the calling engine acts for the subject, for at most fifteen minutes.

    Raises OAuthRefused, and OAuthUnauthenticated for an engine without a valid token.
    """
    form = await _form(ctx)
    _require_exchange(form)
    if ctx.header("x-assume-role") is not None:
        # The engine exchanges tokens as itself and not as a role. If the header were ignored, the token would have more
        # rights than requested.
        raise OAuthRefused(
            "invalid_request",
            "a token request must not have the header x-assume-role; send it with each request that uses the token",
        )
    engine = await _engine(ctx, form)
    subject, proven = await _subject(ctx, form, engine)
    await ctx.authenticate_as(engine)
    try:
        issued = await ctx.use(TokenExchange).exchange(await ctx.admit(ExchangeToken(subject, proven)))
        ctx.recognize_engine()
    except (NotAnEngine, SubjectOutsideLimits) as refused:
        raise OAuthRefused("unauthorized_client", refused.message) from None
    except UnfitSubject as refused:
        raise OAuthRefused("invalid_request", refused.message) from None
    answer = TokenAnswer(
        access_token=issued.token,
        issued_token_type=_ACCESS_TOKEN,
        token_type="Bearer",  # noqa: S106 - the kind of token, not a token
        expires_in=issued.seconds,
        scope=SCOPE,
    )
    return Response(answer, headers={"Cache-Control": "no-store", "Pragma": "no-cache"})


async def _form(ctx: Ctx) -> TokenRequest:
    """Return the request as decoded from its form. Raises OAuthRefused if the form is malformed."""
    try:
        return await ctx.form(TokenRequest)
    except UnreadableForm as unreadable:
        raise OAuthRefused("invalid_request", str(unreadable)) from None


def _require_exchange(form: TokenRequest) -> None:
    """Raise OAuthRefused unless the request is a token exchange for this catalog."""
    if form.grant_type != EXCHANGE:
        raise OAuthRefused(
            "unsupported_grant_type",
            "this server supports only the token exchange of engines that act for users; get other tokens from the "
            "identity provider (set oauth2-server-uri in the client)",
        )
    if form.requested_token_type not in _TYPES:
        raise OAuthRefused("invalid_request", "requested_token_type must be access_token or jwt")
    if SCOPE not in form.scope.split():
        raise OAuthRefused("invalid_scope", f"scope must contain {SCOPE}")
    if form.resource or form.audience:
        raise OAuthRefused(
            "invalid_target", "tokens of this server are valid for this server only; leave out resource and audience"
        )
    if form.subject_token_type not in _TYPES or not form.subject_token:
        raise OAuthRefused(
            "invalid_request", "subject_token is required, and subject_token_type must be access_token or jwt"
        )
    if form.actor_token and form.actor_token_type not in _TYPES:
        raise OAuthRefused("invalid_request", "actor_token_type must be access_token or jwt")


async def _engine(ctx: Ctx, form: TokenRequest) -> VerifiedToken:
    """Return the token of the calling engine, from the Authorization header or `actor_token`. Both must identify the
    same engine.

    Raises OAuthUnauthenticated for a missing token or an invalid header. Raises OAuthRefused for an invalid
    `actor_token`, for two identities, and for a token that was issued by an exchange.
    """
    actor = form.actor_token or None
    try:
        caller = await ctx.verified_caller()
    except NotAuthenticated as unknown:
        raise OAuthUnauthenticated("invalid_client", unknown.message) from None
    if caller is None and actor is None:
        raise OAuthUnauthenticated(
            "invalid_client", "the engine's own token is missing; send it in the Authorization header or as actor_token"
        )
    found = [] if caller is None else [caller]
    if actor is not None:
        try:
            found.append(await ctx.services.verify(actor))
        except NotAuthenticated as unknown:
            raise OAuthRefused("invalid_request", f"actor_token: {unknown.message}") from None
    if len({token.user_id for token in found}) > 1:
        raise OAuthRefused(
            "invalid_request",
            "actor_token and the token in the Authorization header identify different users; send the engine's own "
            "token only",
        )
    if any(token.engine is not None for token in found):
        raise OAuthRefused(
            "invalid_request",
            "a token that this server issued cannot be exchanged or renewed; send the engine's own token and the "
            "user's original token as subject_token",
        )
    return found[0]


async def _subject(ctx: Ctx, form: TokenRequest, engine: VerifiedToken) -> tuple[Subject, bool]:
    """Return (the user to act for, True if the user's own token proves it). Raises OAuthRefused.

    An unsigned token is accepted only with the type `jwt`, as Trino sends it. With the type `access_token`, Trino sends
    a credential that its user chooses, so each user of the engine could claim to be another user.
    """
    token = form.subject_token
    named = _named(token, engine) if form.subject_token_type == _JWT else None
    if named is None:
        try:
            verified = await ctx.services.verify(token)
        except NotAuthenticated as unknown:
            raise OAuthRefused("invalid_request", f"subject_token: {unknown.message}") from None
        if verified.actor_user_id is not None:
            raise OAuthRefused(
                "invalid_request",
                "subject_token: the token already names an actor (claim act); send the user's own token",
            )
        if verified.may_act not in (None, engine.user_id):
            raise OAuthRefused(
                "invalid_request", "subject_token: its claim may_act allows another actor, not this engine"
            )
        named = Subject(
            user_id=verified.user_id,
            project_id=verified.project_id,
            groups=verified.groups,
            groups_known=verified.groups_known,
            policy_claims=verified.policy_claims,
            not_after=verified.expires_at,
        )
        proven = True
    else:
        proven = False
    if named.user_id == engine.user_id:
        raise OAuthRefused(
            "invalid_request",
            "the subject is the caller itself; renew tokens at the identity provider (Iceberg clients: "
            "token-refresh-enabled=false, or oauth2-server-uri)",
        )
    if engine.project_id is not None and named.project_id not in (None, engine.project_id):
        raise OAuthRefused("invalid_request", "the engine's token and subject_token are limited to different projects")
    return msgspec.structs.replace(named, project_id=named.project_id or engine.project_id), proven


def _named(token: str, engine: VerifiedToken) -> Subject | None:
    """Return the user in an unsigned JWT (RFC 7519 section 6: `alg` none); None for any other token.

    The user belongs to the engine's identity provider. The JWT proves nothing: the engine is trusted to name the user.
    Raises OAuthRefused for a malformed JWT or subject.
    """
    parts = _UNSIGNED.fullmatch(token)
    if parts is None:
        return None
    try:
        header = msgspec.json.decode(_decoded(parts[1]), type=_Header)
        named = msgspec.json.decode(_decoded(parts[2]), type=_Named)
    except (ValueError, RecursionError):
        raise OAuthRefused("invalid_request", "subject_token: the header or the claims cannot be decoded") from None
    if header.alg != "none" or named.act is not None:
        raise OAuthRefused(
            "invalid_request",
            "subject_token: an unsigned token must have the header alg=none, and must not have the claim act",
        )
    try:
        user_id = f"{engine.idp_id}~{checked_subject(named.sub, 'its subject')}"
    except NotAuthenticated as unfit:
        raise OAuthRefused("invalid_request", f"subject_token: {unfit.message}") from None
    if not is_valid_in_tuples(user_id):
        raise OAuthRefused("invalid_request", "subject_token: the subject has more bytes than a user id can have")
    return Subject(user_id=user_id, not_after=named.exp)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
