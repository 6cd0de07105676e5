# SPDX-License-Identifier: Apache-2.0
"""Settings of PostgreSQL: connections, TLS, and the keys that encrypt stored credentials. No I/O.

PostgreSQL URLs are parsed here: local hosts, TLS parameters, and the form for SQLAlchemy.
"""

from __future__ import annotations

import typing
from ipaddress import ip_address
from typing import Annotated
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from msgspec import Meta

from gateway.settings.env import PREFIX, PositiveSeconds, Secret, SettingsError
from gateway.settings.identity import IdentitySettings
from gateway.settings.sections import Count, Port


def is_local(url: Secret) -> bool:
    """Return True if all hosts of a PostgreSQL URL are loopback addresses or directories of sockets.

    A URL without a host is not local: the driver then reads the host from the environment.
    """
    parts = urlsplit(url.reveal())
    named = parts.netloc.rpartition("@")[2].split(",") if parts.netloc else []
    hosts = [urlsplit(f"//{each}").hostname or "" for each in named if each]
    for name, value in parse_qsl(parts.query):
        if name in ("host", "hostaddr"):
            hosts += [
                each if each.startswith("/") else urlsplit(f"//{each}").hostname or "" for each in value.split(",")
            ]
    return bool(hosts) and all(map(_is_local_host, hosts))


def _is_local_host(host: str) -> bool:
    if host == "localhost" or unquote(host).startswith("/"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def require_no_tls(url: Secret, variable: str) -> None:
    """Raise SettingsError if the URL has `sslmode` or another TLS parameter. The message names its `variable`.

    Only the setting PG_SSL_MODE has an effect, so a `verify-full` in the URL would be ignored.
    """
    names = {name for name, _ in parse_qsl(urlsplit(url.reveal()).query, keep_blank_values=True)}
    if ssl_names := sorted(name for name in names if name.lower().startswith("ssl")):
        raise SettingsError(
            f"{PREFIX}{variable}: {', '.join(ssl_names)} in the URL has no effect; remove it from the URL, and set "
            f"{PREFIX}PG_SSL_MODE, and {PREFIX}PG_SSL_ROOT_CERT for certificates, instead"
        )


def asyncpg_url(url: Secret) -> str:
    """Return a PostgreSQL URL in the form in which SQLAlchemy uses asyncpg. It contains the password."""
    scheme, separator, rest = url.reveal().partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgresql", "postgres") else url.reveal()


SslMode = typing.Literal["disable", "prefer", "require", "verify-ca", "verify-full"]


class PostgresSettings(IdentitySettings, frozen=True, kw_only=True):
    """Settings of PostgreSQL. The class extends the identity settings, because a msgspec struct has one base."""

    pg_database_url_write: Secret | None = None
    """URL of the primary."""
    pg_database_url_read: Secret | None = None
    """URL of a replica for searches, statistics and management lists. Default: the primary."""
    pg_host_w: str | None = None
    """Host of the primary; used without `PG_DATABASE_URL_WRITE`."""
    pg_host_r: str | None = None
    """Host of the replica; used without `PG_DATABASE_URL_READ`."""
    pg_port: Port = 5432
    """Port of PostgreSQL; used with `PG_HOST_W` and `PG_HOST_R`."""
    pg_user: str | None = None
    """PostgreSQL role; used with `PG_HOST_W` and `PG_HOST_R`."""
    pg_password: Secret | None = None
    """Password of the role."""
    pg_database: str | None = None
    """Name of the database."""
    pg_ssl_mode: SslMode | None = None
    """TLS mode of connections to PostgreSQL, as libpq's `sslmode`. Only `verify-full` proves the identity of the
    server. Default: `verify-full`, or `prefer` if every host is a loopback address or a socket.
    """
    pg_ssl_root_cert: str | None = None
    """File of CA certificates (PEM) for PostgreSQL only; used by `verify-ca` and `verify-full`."""
    pg_encryption_key: Secret | None = None
    """Key that encrypts stored storage credentials; required by `serve`."""
    pg_encryption_key_other: Secret | None = None
    """Second key, which only decrypts: the next or the previous key during a key rotation."""
    pg_read_pool_connections: Count = 10
    """Maximum number of connections of a worker process to the replica. Without a replica it has no effect."""
    pg_write_pool_connections: Count = 5
    """Half of the maximum number of connections of a worker process to the primary. They are opened on demand and kept
    open. With `PG_DIRECT_READS`, a third of them (rounded down) only serve reads of one statement.
    """
    pg_direct_reads: bool = True
    """Execute reads of one statement on connections of their own, without SQLAlchemy. It saves CPU time of the gateway;
    answers do not depend on it.
    """
    pg_unshared_reads: Annotated[int, Meta(ge=0)] = 2
    """Number of name resolutions that a worker process sends alone at a time. Those of further concurrent requests wait
    for the next statement and share it, at most 32 together. 0: none share. It needs `PG_DIRECT_READS`.
    """
    pg_acquire_timeout: PositiveSeconds = 5.0
    """Timeout in seconds of waiting for a database connection. After it, the request gets 503, or 429 for a change of
    the catalog.
    """

    def write_url(self) -> Secret:
        """Return the connection URL of the primary database: as set, or composed of its parts.

        Raises:
            SettingsError: neither the URL nor every part is set, or the URL has a TLS parameter.
        """
        if self.pg_database_url_write is not None:
            require_no_tls(self.pg_database_url_write, "PG_DATABASE_URL_WRITE")
            return self.pg_database_url_write
        return self._url_from(self.pg_host_w, "PG_HOST_W", "PG_DATABASE_URL_WRITE")

    def postgres_tls_mode(self, url: Secret | None = None) -> SslMode:
        """Return the `sslmode` of libpq for the database at `url`, which is by default the primary.

        Without the setting it is `prefer` if all hosts of the URL are local, else `verify-full`.

        Raises:
            SettingsError: the setting and `url` are missing, and no valid URL of the primary is set.
        """
        if self.pg_ssl_mode is not None:
            return self.pg_ssl_mode
        return "prefer" if is_local(url or self.write_url()) else "verify-full"

    def read_url(self) -> Secret | None:
        """Return the connection URL of the replica: as set, or composed of its parts. Return None if there is no
        replica.

        Raises:
            SettingsError: a part is missing, or the URL has a TLS parameter.
        """
        if self.pg_database_url_read is not None:
            require_no_tls(self.pg_database_url_read, "PG_DATABASE_URL_READ")
            return self.pg_database_url_read
        return self._url_from(self.pg_host_r, "PG_HOST_R", "PG_DATABASE_URL_READ") if self.pg_host_r else None

    def encryption_keys(self) -> list[str]:
        """Return the keys for stored credentials: first the one that encrypts, then the one that is only used to
        decrypt.
        """
        return [key.reveal() for key in (self.pg_encryption_key, self.pg_encryption_key_other) if key]

    def require_encryption_key(self) -> None:
        """Raise SettingsError unless the encryption key of stored credentials and the URL of the primary are set.

        Raises:
            SettingsError: names the missing variable.
        """
        if not self.pg_encryption_key:
            raise SettingsError(f"{PREFIX}PG_ENCRYPTION_KEY must be set")
        self.write_url()

    def _url_from(self, host: str | None, host_name: str, url_name: str) -> Secret:
        parts = {host_name: host, "PG_USER": self.pg_user, "PG_DATABASE": self.pg_database}
        missing = [f"{PREFIX}{name}" for name, value in parts.items() if not value]
        if missing or host is None:
            raise SettingsError(f"{PREFIX}{url_name} must be set, or else {', '.join(missing)}")
        password = f":{quote(self.pg_password.reveal(), safe='')}" if self.pg_password else ""
        user = quote(self.pg_user or "", safe="")
        return Secret(f"postgresql://{user}{password}@{host}:{self.pg_port}/{quote(self.pg_database or '', safe='')}")
