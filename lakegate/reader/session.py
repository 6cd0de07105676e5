# SPDX-License-Identifier: Apache-2.0
"""Open tables as a trusted service, as itself or on behalf of a user by token exchange.

On the warehouse, the service needs the privilege `enforcer` to get restricted tables, and `delegate` to act for users.
The gateway decides by the user's rights and records both identities.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec
import requests

from lakegate.reader.catalog import LoadFailed, opened, session
from lakegate.reader.table import RestrictedTable

_GRANT: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
_ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  # the name of a type, not a token
_JWT: Final = "urn:ietf:params:oauth:token-type:jwt"


class ExchangeFailed(Exception):
    """Raised if the gateway refuses a token exchange. `status` is the HTTP status, or None without a response."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class _Token(msgspec.Struct):
    access_token: str


class _Refusal(msgspec.Struct):
    error: str = ""
    error_description: str = ""


@dataclass(frozen=True)
class _Subject:
    """The user for whom a token is exchanged."""

    token: str = field(repr=False)
    kind: str


@dataclass(frozen=True)
class Reader:
    """Open restricted tables of one warehouse.

    `gateway` is the address of the server, for example `https://lake.example`. `service_token` is the service's own
    token, or a function that returns a valid one. `properties` configure PyIceberg's file client, and take precedence
    over those of the server. No `repr` and no error contains tokens.
    """

    gateway: str
    warehouse: str
    service_token: str | Callable[[], str] = field(repr=False)
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    _subject: _Subject | None = field(default=None, repr=False)

    def as_user(self, token: str) -> Reader:
        """Return a reader with the rights of a user, whose own token `token` proves the identity."""
        return replace(self, _subject=_Subject(token, _ACCESS_TOKEN))

    def as_named(self, subject: str) -> Reader:
        """Return a reader with the rights of the user that has this subject at the service's own identity provider.

        The name proves nothing: the gateway accepts it because the service holds `delegate`. Names that end users
        choose must never reach this function.
        """
        return replace(self, _subject=_Subject(_unsigned(subject), _JWT))

    def table(self, identifier: str | tuple[str, ...]) -> RestrictedTable:
        """Load a table, for example `people.flights`. Each call exchanges the token again.

        Raises ExchangeFailed, LoadFailed, or RestrictionNotSupported.
        """
        token = self._token()
        catalog = opened("lakegate", uri=f"{self._base}/catalog", warehouse=self.warehouse, token=token)
        try:
            return catalog.load_restricted(identifier, self.properties)
        except requests.RequestException as error:
            problem = type(error).__name__
        finally:
            catalog.close()
        raise LoadFailed(f"the gateway could not be reached ({problem})")

    @property
    def _base(self) -> str:
        return self.gateway.rstrip("/")

    def _token(self) -> str:
        own = self.service_token() if callable(self.service_token) else self.service_token
        if self._subject is None:
            return own
        form = {
            "grant_type": _GRANT,
            "subject_token": self._subject.token,
            "subject_token_type": self._subject.kind,
            "scope": "catalog",
        }
        try:
            with session() as http:
                answer = http.post(
                    f"{self._base}/catalog/v1/oauth/tokens",
                    data=form,
                    headers={"Authorization": f"Bearer {own}"},
                    allow_redirects=False,  # a redirect would send the tokens to another server
                )
        except requests.RequestException as error:
            problem = type(error).__name__
        else:
            return _exchanged(answer)
        # Raised outside of the handler: the original error refers to the request with its tokens.
        raise ExchangeFailed(f"the gateway could not be reached ({problem})")


def _exchanged(answer: requests.Response) -> str:
    problem = f"HTTP {answer.status_code}"
    try:
        if answer.status_code == 200:
            return msgspec.json.decode(answer.content, type=_Token).access_token
        refusal = msgspec.json.decode(answer.content, type=_Refusal)
        problem = (refusal.error_description or refusal.error or problem)[:500]
    except ValueError:
        pass
    raise ExchangeFailed(
        f"the gateway refused to exchange the token: {problem}. The service needs `delegate` on the warehouse",
        answer.status_code,
    )


def _unsigned(subject: str) -> str:
    """Return a JWT without a signature (RFC 7519, section 6)."""
    parts: tuple[dict[str, str], ...] = ({"alg": "none"}, {"sub": subject})
    encoded = (base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in parts)
    return ".".join((*encoded, ""))
