# SPDX-License-Identifier: Apache-2.0
"""The errors of authentication.

The messages are for the client. They name the rule that the token violates, and never repeat content of the token: it
may be a secret, or text that an attacker chose.
"""

from gateway.iceberg.errors import NotAuthorizedException, ServiceUnavailableException


class NotAuthenticated(NotAuthorizedException, type="AuthenticationFailed"):
    """The caller is not authenticated (401). `challenge` is the value of `WWW-Authenticate` (RFC 6750 section 3)."""

    challenge = 'Bearer error="invalid_token"'


class MissingAuthorizationHeader(NotAuthenticated):
    """The request has no `Authorization` header. RFC 6750 section 3.1: the challenge then has no error code."""

    challenge = "Bearer"

    def __init__(self) -> None:
        super().__init__("this service needs an 'Authorization: Bearer <token>' header")


class AuthenticationFailed(NotAuthenticated):
    """The header or its token violates a rule. The message names the rule."""


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
