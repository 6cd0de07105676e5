# SPDX-License-Identifier: Apache-2.0
"""Parsing of PostgreSQL URLs: local hosts, TLS parameters, and the form for SQLAlchemy.

No I/O. The settings that hold such URLs are in `gateway/settings/`.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import parse_qsl, unquote, urlsplit

from gateway.settings.env import PREFIX, Secret, SettingsError


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

    Only the setting PG_SSL_MODE has an effect. A `verify-full` in the URL would have no effect.
    """
    names = {name for name, _ in parse_qsl(urlsplit(url.reveal()).query, keep_blank_values=True)}
    if ssl_names := sorted(name for name in names if name.lower().startswith("ssl")):
        raise SettingsError(
            f"{PREFIX}{variable}: {', '.join(ssl_names)} in the URL has no effect; remove it from the URL, and set "
            f"{PREFIX}PG_SSL_MODE, and {PREFIX}PG_SSL_ROOT_CERT for certificates, instead"
        )


def asyncpg_url(url: Secret) -> str:
    """Return a PostgreSQL URL in SQLAlchemy's form for asyncpg. It contains the password."""
    scheme, separator, rest = url.reveal().partition("://")
    return f"postgresql+asyncpg{separator}{rest}" if scheme in ("postgresql", "postgres") else url.reveal()
