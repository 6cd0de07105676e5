# SPDX-License-Identifier: Apache-2.0
"""Errors of authentication.

The messages are for the client. They name the rule that the token violates, and never repeat content of the token: it
may be a secret, or text that an attacker chose.
"""

from enum import StrEnum

from gateway.iceberg.errors import NotAuthorizedException, ServiceUnavailableException


class Refusal(StrEnum):
    """The rule that the credential of a request violates. The audit log counts refused logins by this rule."""

    MISSING = "missing"
    """The request has no token, and its operation needs one."""
    MALFORMED = "malformed"
    """The header, the token or one of its claims has an invalid form."""
    SIGNATURE = "signature"
    """No accepted key verifies the signature."""
    ISSUER = "issuer"
    """The issuer is not configured."""
    AUDIENCE = "audience"
    """No audience is configured, or the audiences contradict each other."""
    EXPIRED = "expired"
    """The token has expired, or has no expiry."""
    NOT_YET_VALID = "not_yet_valid"
    """The token becomes valid later, by the clock of the gateway."""
    SCOPE = "scope"
    """The token lacks the required scope."""
    REVOKED = "revoked"
    """The issuer does not accept the token any more."""
    WRONG_KIND = "wrong_kind"
    """The token is of a kind that this endpoint does not accept."""
    BINDING = "binding"
    """The token is bound to a key of its client, and the request does not prove the key."""


class NotAuthenticated(NotAuthorizedException, type="AuthenticationFailed"):
    """The caller is not authenticated (401). `challenge` is the value of `WWW-Authenticate` (RFC 6750 section 3)."""

    challenge = 'Bearer error="invalid_token"'
    reason: Refusal


class MissingAuthorizationHeader(NotAuthenticated):
    """The request has no `Authorization` header. RFC 6750 section 3.1: the challenge then has no error code."""

    challenge = "Bearer"
    reason = Refusal.MISSING

    def __init__(self) -> None:
        super().__init__("this service needs an 'Authorization: Bearer <token>' header")


class AuthenticationFailed(NotAuthenticated):
    """The header or its token violates a rule. The message names the rule. `reason` is the kind of the rule, for the
    audit log.
    """

    def __init__(self, message: str, reason: Refusal = Refusal.MALFORMED) -> None:
        super().__init__(message)
        self.reason = reason


class IdentityProviderUnavailable(ServiceUnavailableException):
    """The identity provider or its keys are not available, so the token cannot be verified (503).

    `reason` is for the log only, because it can contain internal addresses. `retry_after_s` is in seconds.
    """

    def __init__(self, reason: str, *, retry_after_s: int) -> None:
        super().__init__(
            "the identity provider is not available, so the token could not be verified; try again later",
            retry_after_s=retry_after_s,
        )
        self.reason = reason


def unknown_issuer() -> AuthenticationFailed:
    """Return the error for a token of an issuer that is not configured."""
    return AuthenticationFailed("the issuer of the token (iss) is not configured on this server", Refusal.ISSUER)


def wrong_audience() -> AuthenticationFailed:
    """Return the error for a token that has none of the configured audiences."""
    return AuthenticationFailed("the token has no audience (aud) that is configured on this server", Refusal.AUDIENCE)


def not_yet_valid() -> AuthenticationFailed:
    """Return the error for a token that is not valid yet."""
    return AuthenticationFailed(
        "the token is not valid yet (nbf); check the clocks of the servers", Refusal.NOT_YET_VALID
    )


def invalid_signature() -> AuthenticationFailed:
    """Return the error for a token whose signature no key verifies."""
    return AuthenticationFailed("the token's signature is not valid", Refusal.SIGNATURE)


def rejected_by_cluster() -> AuthenticationFailed:
    """Return the error for a token that a Kubernetes cluster rejects in its review."""
    message = "the cluster rejected the token: it is unknown, has expired or was revoked"
    return AuthenticationFailed(message, Refusal.REVOKED)


def unconfirmed_audience() -> AuthenticationFailed:
    """Return the error for a token whose audience a Kubernetes cluster does not confirm."""
    message = "the cluster did not confirm that the token's audience is this service"
    return AuthenticationFailed(message, Refusal.AUDIENCE)
