# SPDX-License-Identifier: Apache-2.0
"""A development identity provider with one confidential client for each demonstration user.

Programs get tokens with the client-credentials grant. There the subject of a token is the client's id (RFC 9068 section
2.2), so the client ``alice`` gets tokens of ``alice``. Users can also sign in with a browser (authorization code with
PKCE) or with a device code (RFC 8628). Both use one public client, which has no secret and gets no tokens of its own.
The password of a user is the secret of the client of that name. A client sends its secret by HTTP Basic or in the body
of the request (`identity_provider_app`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from gateway.identity.oauth_client import LoginFailed, OAuthClient
from lakegate.local import identity_provider_app
from lakegate.local.children import Child, Children, ChildSpec, until_answering
from lakegate.local.errors import StackError
from lakegate.local.ports import LOOPBACK, without_tls
from lakegate.local.ready import PROGRAMS, Secrets, write_private

AUDIENCE = "lakegate"
PUBLIC_CLIENT = "lakegate-ui"
"""The client of all interactive sign-ins."""
TOKEN_MINUTES = 60
SCOPES = ("openid", "profile", "email", "offline_access", "catalog")
"""The scopes that clients may request. The Iceberg clients request `catalog` unless they are configured otherwise."""

_START_SECONDS = 60.0
_CALL_SECONDS = 60.0  # all users get their tokens at the same time, also on a busy machine


class IdentityProvider:
    """One identity provider. Its signing key is stored in ``data``, so tokens stay valid after a restart."""

    def __init__(
        self, binary: Path, data: Path, port: int, secrets: Secrets, *, pages: str, redirect_uris: Sequence[str] = ()
    ) -> None:
        """Configure the provider. `pages` is the origin of the gateway, which serves the sign-in pages.

        `redirect_uris` are pages of further programs in which users sign in, as the same client.
        """
        self._pages = pages
        self._redirect_uris = redirect_uris
        self._binary = binary
        self._data = data
        self._port = port
        self._secrets = secrets
        self.issuer = f"http://{LOOPBACK}:{port}"
        self.token_endpoint = f"{self.issuer}/token"

    async def start(self, children: Children) -> Child:
        """Write the configuration and start the provider. Return when it serves its discovery document."""
        self._data.mkdir(mode=0o700, exist_ok=True)
        # The files are JSON, which is valid YAML. They contain the port, so they are written at each start.
        write_private(self._data / "settings.yaml", msgspec.json.encode(self._settings()))
        write_private(self._data / "users.yaml", msgspec.json.encode(self._people()))
        server = await children.start(
            ChildSpec(
                name="identity-provider",
                argv=[*self._program(), "--config", str(self._data)],
                env={"HOME": str(self._data), "PYTHONUNBUFFERED": "1"},
                cwd=self._data,
            )
        )
        await until_answering(server, self._port, "/.well-known/openid-configuration", timeout=_START_SECONDS)
        return server

    def _program(self) -> list[str]:
        """Return the command that starts the provider in its own virtual environment, with `identity_provider_app`.

        `NANOIDP_BIN` may name a program outside of a virtual environment. It is started without
        `identity_provider_app`; then its clients can send their secrets only by HTTP Basic.
        """
        interpreter = self._binary.with_name("python")
        if not interpreter.is_file():
            return [str(self._binary), "--strict-config"]
        # Python runs isolated: the working directory holds the provider's data, and no module is imported from there.
        return [str(interpreter), "-I", "-u", str(Path(identity_provider_app.__file__).resolve())]

    def _people(self) -> dict[str, object]:
        """Return the configuration of the users that are people, not programs. Each has a password."""
        people = {
            name: {"password": secret, "email": f"{name}@example.com"}
            for name, secret in self._secrets.clients.items()
            if name not in PROGRAMS
        }
        return {"config_version": 1, "users": people}

    def _settings(self) -> dict[str, object]:
        clients: list[dict[str, object]] = [
            {"client_id": name, "client_secret": secret, "token_endpoint_auth_method": "client_secret_basic"}
            for name, secret in self._secrets.clients.items()
        ]
        back_to = [f"{self._pages}/ui", f"{self._pages}/swagger-ui/oauth2-redirect.html", *self._redirect_uris]
        clients.append(
            {"client_id": PUBLIC_CLIENT, "token_endpoint_auth_method": "none", "redirect_uris": back_to},
        )
        return {
            "config_version": 1,
            # The stricter profile allows ten tokens a minute, too few for this stack. The other settings of that
            # profile are below.
            "security_profile": "dev",
            "server": {"host": LOOPBACK, "port": self._port, "rate_limit_enabled": False},
            "session": {
                "secret_key": self._secrets.identity_session,
                "management_secret": self._secrets.identity_management,
                "require_ui_login": True,
                "enforce_password_check": True,
            },
            "cors_allowed_origins": [self.issuer, self._pages, *origins_of(self._redirect_uris)],
            "jwt": {"keys_dir": str(self._data / "keys")},
            "logging": {"level": "WARNING", "verbose_logging": False},
            "oauth": {
                "issuer": self.issuer,
                "audience": AUDIENCE,
                "scopes_supported": list(SCOPES),
                "token_expiry_minutes": TOKEN_MINUTES,
                "clients": clients,
            },
        }

    async def token(self, user: str) -> str:
        """Return a new access token of ``user``, valid for one hour.

        Raises:
            StackError: the provider refused.
        """
        oauth = OAuthClient(user, client_secret=self._secrets.clients[user], tls=without_tls(), seconds=_CALL_SECONDS)
        try:
            async with oauth:
                return (await oauth.fetch_token(self.token_endpoint, "client_credentials")).access_token
        except LoginFailed as failed:
            raise StackError(f"the identity provider issued no token to {user}: {failed}") from failed


def origins_of(uris: Iterable[str]) -> list[str]:
    """Return the distinct origins of the addresses."""
    parts = [urlsplit(uri) for uri in uris]
    return list(dict.fromkeys(f"{each.scheme}://{each.netloc}" for each in parts))
