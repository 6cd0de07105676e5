# SPDX-License-Identifier: Apache-2.0
"""Settings of tokens that are bound to a key of their client (``LAKEGATE__BOUND_TOKENS__…``)."""

from __future__ import annotations

import typing
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import PREFIX

_VARIABLE = f"{PREFIX}BOUND_TOKENS__"


class BoundTokens(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens with the claim `cnf`. Without these settings they are refused."""

    certificate_header: Annotated[str, Meta(pattern="^[A-Za-z0-9-]+$")] | None = None
    """Header in which a proxy for mutual TLS sends the client certificate, such as `Client-Cert`. It proves tokens with
    `cnf.x5t#S256` (RFC 8705). Without it, such tokens are refused.
    """
    certificate_format: typing.Literal["rfc9440", "pem"] = "rfc9440"
    """Format of this header: `rfc9440` (DER in base64 between colons), or `pem` (URL-encoded PEM, as nginx's
    `$ssl_client_escaped_cert`).
    """
    proxy_networks: tuple[str, ...] = ()
    """Networks (CIDR) of these proxies. The header is ignored in requests from other addresses."""
    required_for: tuple[str, ...] = ()
    """Users whose tokens must be bound, such as machine identities: user ids, or `<provider>~*` for all users of an
    OpenID provider.
    """

    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Return the networks of the proxies. Raises ValueError for an invalid one."""
        return tuple(ip_network(each) for each in self.proxy_networks)

    def problems(self, providers: Collection[str]) -> list[str]:
        """Return the problems of these settings, one line each. `providers` are the ids of the OpenID providers."""
        lines = []
        try:
            if any(network.prefixlen == 0 for network in self.networks()):
                lines.append(
                    f"{_VARIABLE}PROXY_NETWORKS contains all addresses, so every client could claim a certificate; "
                    "list only the networks of the proxies"
                )
        except ValueError as error:
            lines.append(f"{_VARIABLE}PROXY_NETWORKS: {error}; write networks as 10.1.2.0/24")
        if self.certificate_header is not None and not self.proxy_networks:
            lines.append(f"{_VARIABLE}PROXY_NETWORKS must be set with {_VARIABLE}CERTIFICATE_HEADER")
        if self.certificate_header is None and self.required_for:
            lines.append(f"{_VARIABLE}REQUIRED_FOR needs {_VARIABLE}CERTIFICATE_HEADER, which checks the proofs")
        for each in self.required_for:
            id, _, subject = each.partition("~")
            if id not in providers or not subject:
                lines.append(
                    f"{_VARIABLE}REQUIRED_FOR: {each!r} is not a user of an OpenID provider; write "
                    "<provider>~<subject> or <provider>~*"
                )
        return lines
