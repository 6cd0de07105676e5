# SPDX-License-Identifier: Apache-2.0
"""The errors of authentication.

Messages are written for the client: they say which rule a token broke, and never repeat anything that came out of
the token, because the text of a token that fails is either a secret or an attacker's.
"""

from gateway.iceberg.errors import NotAuthorizedException, ServiceUnavailableException


class NotAuthenticated(NotAuthorizedException, type="AuthenticationFailed"):
    """The caller is not known (401). `challenge` is the value for `WWW-Authenticate` (RFC 6750 section 3)."""

    challenge = 'Bearer error="invalid_token"'


class MissingAuthorizationHeader(NotAuthenticated):
    """There was no `Authorization` header at all. RFC 6750 section 3.1: no error code in the challenge then."""

    challenge = "Bearer"

    def __init__(self) -> None:
        super().__init__("this service needs an 'Authorization: Bearer <token>' header")


class AuthenticationFailed(NotAuthenticated):
    """The header or the token in it broke a rule; the message names the rule."""


class IdentityProviderUnavailable(ServiceUnavailableException):
    """The keys of the identity provider are not to be had, so no token can be judged (503).

    `reason` is for the log: it names addresses of the provider, which the client has no business to know.
    """

    def __init__(self, reason: str, *, retry_after_s: int) -> None:
        super().__init__(
            "the identity provider is not available, so the token could not be checked; try again later",
            retry_after_s=retry_after_s,
        )
        self.reason = reason
