# SPDX-License-Identifier: Apache-2.0
"""Log in to HashiCorp Vault, and renew the token that the login returns. Each process has its own token.

All functions block; `gateway.secret_stores.vault` calls them in threads. hvac is imported when a session is opened,
because only gateways with this store need it. Messages of errors contain no password, secret id or token.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from gateway.secret_stores.port import SecretStoreRefused, SecretStoreUnavailable

if TYPE_CHECKING:
    import hvac

Answer = TypeVar("Answer")

REFUSED: Final = (
    "The secret store refuses the gateway, so nothing was changed. The operator finds the reason in the log."
)
UNAVAILABLE: Final = (
    "The secret store does not answer, so a storage credential could be neither read nor stored. Nothing was changed. "
    "Try again later."
)
_MOST_CHARACTERS: Final = 300
#: Matches tokens of Vault, in the current and the former format, and JWTs
#: (https://developer.hashicorp.com/vault/docs/concepts/tokens).
_TOKEN_LIKE: Final = re.compile(r"\b(?:hv[sbr]|[sbr])\.[\w-]{16,}|\beyJ[\w.-]+")
_SHORTEST_SECRET: Final = 4
_SHORTEST_LEASE_SECONDS: Final = 5.0
_NO_LOGIN_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class UserPassLogin:
    """Login with user name and password (https://developer.hashicorp.com/vault/api-docs/auth/userpass)."""

    mount: str
    user: str
    password: str = field(repr=False)

    def __call__(self, client: hvac.Client) -> Any:
        """Return Vault's response to the login."""
        return client.auth.userpass.login(self.user, self.password, use_token=False, mount_point=self.mount)

    def secrets(self) -> tuple[str, ...]:
        """Return the values that no error message may contain."""
        return (self.password,)


@dataclass(frozen=True, slots=True)
class AppRoleLogin:
    """Login with role id and secret id (https://developer.hashicorp.com/vault/api-docs/auth/approle)."""

    mount: str
    role_id: str
    secret_id: str = field(repr=False)

    def __call__(self, client: hvac.Client) -> Any:
        """Return Vault's response to the login."""
        return client.auth.approle.login(self.role_id, self.secret_id, use_token=False, mount_point=self.mount)

    def secrets(self) -> tuple[str, ...]:
        """Return the values that no error message may contain."""
        return (self.secret_id,)


@dataclass(frozen=True, slots=True)
class KubernetesLogin:
    """Login with the token of the pod's service account, which the kubelet replaces in its file before it expires
    (https://developer.hashicorp.com/vault/api-docs/auth/kubernetes).
    """

    mount: str
    role: str
    token_file: str

    def __call__(self, client: hvac.Client) -> Any:
        """Return Vault's response to the login. Raises SecretStoreRefused if the file is unreadable."""
        return client.auth.kubernetes.login(self.role, self._token(), use_token=False, mount_point=self.mount)

    def secrets(self) -> tuple[str, ...]:
        """Return the values that no error message may contain."""
        try:
            return (self._token(),)
        except SecretStoreRefused:
            return ()

    def _token(self) -> str:
        try:
            return Path(self.token_file).read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise SecretStoreRefused(
                REFUSED, reason=f"KV2__TOKEN_FILE: {self.token_file} cannot be read ({type(error).__name__})"
            ) from None


Login: TypeAlias = UserPassLogin | AppRoleLogin | KubernetesLogin


@dataclass(frozen=True, slots=True)
class VaultAddress:
    """The address of a Vault server. `ca_bundle` is the path of a file of CA certificates; None means the system's.

    `timeout` limits each call in seconds.
    """

    url: str
    ca_bundle: str | None
    namespace: str | None
    timeout: float


@dataclass(frozen=True, slots=True)
class _Token:
    value: str = field(repr=False)
    renewable: bool
    renew_at: float
    """Time of the monotonic clock after which the token is renewed; infinite for a token without an end."""


class VaultSession:
    """Calls Vault with a valid token. All threads of a process share the token; each has its own connection.

    The token is renewed after two thirds of its lease. If Vault does not renew the token, or refuses it, the session
    logs in again. `clock` is a monotonic clock in seconds.
    """

    def __init__(self, address: VaultAddress, login: Login, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = address
        self._login = login
        self._clock = clock
        self._lock = threading.Lock()
        self._token: _Token | None = None
        # Vault locks users out after a few refused logins, so a login is not repeated for each request.
        self._refusal: str | None = None
        self._refused_until = 0.0
        self._clients = threading.local()
        self._opened: list[hvac.Client] = []

    def call(self, work: Callable[[hvac.Client], Answer]) -> Answer:
        """Call `work` with a client that has a token, and return its result. If Vault returns 403, log in again once.

        Raises SecretStoreUnavailable for outages, SecretStoreRefused for a refused login, and other errors of hvac
        unchanged.
        """
        from hvac import exceptions

        token = self._valid_token()
        try:
            return self._with(token, work)
        except exceptions.Forbidden:
            # Vault's response is the same for an expired or revoked token and for a missing right. A retry with a new
            # token fails only if the right is missing.
            return self._with(self._valid_token(refused=token), work)

    def message_of(self, error: Exception) -> str:
        """Return Vault's text about an error, limited in length and without the secrets of this session."""
        errors = getattr(error, "errors", None)
        text = "; ".join(map(str, errors)) if isinstance(errors, list | tuple) else str(errors or "")
        token = self._token
        for secret in (*self._login.secrets(), *([token.value] if token else [])):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "********")
        return " ".join(_TOKEN_LIKE.sub("********", text).split())[:_MOST_CHARACTERS]

    def close(self) -> None:
        """Close all connections. The token ends with its lease."""
        for client in self._opened:
            client.adapter.close()

    def _with(self, token: _Token, work: Callable[[hvac.Client], Answer]) -> Answer:
        client = self._client()
        client.token = token.value
        return self._guarded(lambda: work(client))

    def _client(self) -> hvac.Client:
        client: hvac.Client | None = getattr(self._clients, "client", None)
        if client is None:
            import hvac
            import requests

            address = self._address
            session = requests.Session()
            # Otherwise requests reads proxies, certificates and passwords (.netrc) from the environment.
            session.trust_env = False
            session.verify = address.ca_bundle or True
            client = hvac.Client(
                url=address.url,
                token="",  # otherwise hvac reads VAULT_TOKEN and ~/.vault-token
                verify=session.verify,
                timeout=address.timeout,
                # On a redirect, requests would send the token to another host, too.
                allow_redirects=False,
                session=session,
                namespace=address.namespace,
            )
            self._clients.client = client
            self._opened.append(client)
        return client

    def _valid_token(self, *, refused: _Token | None = None) -> _Token:
        """Return a token other than `refused`. Only one thread logs in at a time, and the others then use its token."""
        with self._lock:
            token = self._token
            if token is None or token is refused:
                token = self._log_in()
            elif self._clock() >= token.renew_at:
                token = self._renewed(token) or self._log_in()
            self._token = token
            return token

    def _renewed(self, token: _Token) -> _Token | None:
        """Renew the lease of the token, and return it. Return None if Vault does not extend it by more than a few
        seconds.
        """
        from hvac import exceptions

        if not token.renewable:
            return None
        client = self._client()
        client.token = token.value
        started = self._clock()
        try:
            renewed = self._token_of(self._guarded(client.auth.token.renew_self), started)
        except exceptions.VaultError:
            return None
        # Near the end of a token's maximum lifetime, Vault shortens each further lease to the time that is left, in the
        # end to 0 seconds. Only for a login, a lease of 0 seconds means "without an end".
        return renewed if _SHORTEST_LEASE_SECONDS <= renewed.renew_at - started < float("inf") else None

    def _log_in(self) -> _Token:
        from hvac import exceptions

        if self._refusal is not None and self._clock() < self._refused_until:
            raise SecretStoreRefused(REFUSED, reason=self._refusal)
        client = self._client()
        client.token = ""
        started = self._clock()
        try:
            return self._token_of(self._guarded(lambda: self._login(client)), started)
        except exceptions.VaultError as error:
            self._refused_until = self._clock() + _NO_LOGIN_SECONDS
            self._refusal = (
                f"Vault refused the login at auth/{self._login.mount}: {self.message_of(error)}. Check the settings "
                "KV2__AUTH, KV2__AUTH_MOUNT and those of the login."
            )
            raise SecretStoreRefused(REFUSED, reason=self._refusal) from None

    def _token_of(self, answer: Any, started: float) -> _Token:
        auth = answer.get("auth") if isinstance(answer, Mapping) else None
        if not isinstance(auth, Mapping) or not isinstance(auth.get("client_token"), str):
            raise SecretStoreRefused(REFUSED, reason="the response to the login contains no token")
        seconds = auth.get("lease_duration")
        lease = float(seconds) if isinstance(seconds, int | float) and seconds > 0 else float("inf")
        return _Token(auth["client_token"], auth.get("renewable") is True, started + lease * 2 / 3)

    def _guarded(self, send: Callable[[], Answer]) -> Answer:
        """Return the result of `send`. Raises SecretStoreUnavailable if there is no response, or a response that means
        an outage.
        """
        import requests
        from hvac import exceptions

        outages = (
            exceptions.RateLimitExceeded,
            exceptions.InternalServerError,
            exceptions.VaultNotInitialized,
            exceptions.BadGateway,
            exceptions.VaultDown,
            exceptions.UnexpectedError,
        )
        try:
            return send()
        except outages as error:
            raise outage(f"{type(error).__name__} {self.message_of(error)}") from None
        except (requests.RequestException, OSError) as error:
            # The text of the error can contain the address with a user name, so only its class is logged.
            raise outage(type(error).__name__) from None


class VaultOutage(SecretStoreUnavailable, code=503, type="ServiceUnavailableException"):
    """An outage of Vault. `reason` is for the operator, and contains no secret."""

    reason: str = ""


def outage(reason: str) -> VaultOutage:
    """Return the error for an outage of Vault."""
    error = VaultOutage(UNAVAILABLE)
    error.reason = reason.strip()
    return error
