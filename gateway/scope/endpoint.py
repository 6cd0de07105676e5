# SPDX-License-Identifier: Apache-2.0
"""Check the hosts and addresses in storage profiles, and the addresses of stores that the operator sets.

The gateway connects to the endpoints of a profile with credentials. Without these checks, the creator of a profile
could make the gateway connect to addresses that the creator cannot reach. No setting allows these addresses:

- link-local addresses (metadata services of clouds and containers) and site-local addresses,
- metadata services with other addresses or names,
- unspecified, multicast and reserved addresses,
- notations of an IPv4 address that resolvers accept and readers do not recognise.

Loopback, private and unique local addresses are refused unless the operator lists their network. The addresses of a
host name are checked when it is resolved: the code that connects (`storage/connector.py`) calls `refuse_address`.

The operator's own addresses of stores are settings and not part of a storage profile, so the allowed networks do not
apply to them. They may use plain HTTP only on loopback: elsewhere it would send tokens and files unencrypted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Protocol
from urllib.parse import urlsplit

from gateway.scope.errors import InvalidStorageProfile

__all__ = [
    "ACCOUNT",
    "ANY_NETWORK",
    "DEFAULT_RULES",
    "EndpointRoute",
    "EndpointRules",
    "NO_ADDRESSES",
    "RouteTo",
    "StoreAddresses",
    "check_endpoint",
    "parse_networks",
    "parse_store_address",
    "refuse_address",
]


_METADATA_NAMES: Final = (
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "metadata.goog",
    "metadata.azure.internal",
)
_METADATA_NETWORKS: Final = tuple(
    ip_network(text)
    for text in (
        "169.254.0.0/16",  # AWS, Azure, GCP, Oracle, ECS and EKS agents
        "168.63.129.16/32",  # Azure wire server
        "100.100.100.200/32",  # Alibaba
        "192.0.0.192/32",  # Oracle classic
        "fd00:ec2::/32",  # AWS over IPv6
        "fd20:ce::254/128",  # GCP over IPv6
    )
)
_NAT64: Final = ip_network("64:ff9b::/96")
# RFC 8215: each site chooses the position of the IPv4 address in these addresses, so it cannot be read reliably.
_LOCAL_NAT64: Final = ip_network("64:ff9b:1::/48")
_DOCUMENTATION: Final = ip_network("3fff::/20")  # RFC 9637; unknown to the `ipaddress` module of Python 3.11
_LOOPBACK: Final = (ip_address("127.0.0.1"), ip_address("::1"))
_NOT_LISTED: Final = (
    "which this server does not allow. The operator can list its network in LAKEGATE__STORAGE_ENDPOINT_NETWORKS"
)
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
# Matches text that inet_aton accepts as an address: decimal, octal and hexadecimal parts.
_NUMERIC: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", re.ASCII)


@dataclass(frozen=True, slots=True)
class EndpointRules:
    """Networks whose addresses storage profiles may use in addition to public addresses."""

    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    def lists(self, address: IPv4Address | IPv6Address) -> bool:
        """Return True if the operator listed a network that contains the address."""
        return any(address in network for network in self.networks)


DEFAULT_RULES: Final = EndpointRules()
"""Rules that allow public addresses only."""
ANY_NETWORK: Final = EndpointRules((ip_network("0.0.0.0/0"), ip_network("::/0")))
"""Rules that also allow loopback and private addresses. For stored profiles, which every connection checks again."""


class EndpointRoute(Protocol):
    """A route to one endpoint that connects only to checked addresses."""

    @property
    def proxy_url(self) -> str:
        """Return the URL of the local HTTP proxy for requests. It contains a secret for this endpoint only."""
        ...

    @property
    def refusal(self) -> str | None:
        """Return the reason why the newest connection was refused; None if its address was allowed."""
        ...


RouteTo = Callable[[str], EndpointRoute]
"""Function that returns the route to an endpoint of a storage profile, given as `scheme://host[:port]`."""


def parse_networks(texts: Sequence[str]) -> EndpointRules:
    """Parse networks in CIDR form, such as `10.1.0.0/16` or `fd00::/8`. Raises ValueError with the first invalid
    one.
    """
    networks = []
    for text in texts:
        try:
            networks.append(ip_network(text))
        except ValueError:
            raise ValueError(f"{text!r} is not a network in CIDR form, such as 10.1.0.0/16 or fd12:3456::/32") from None
    return EndpointRules(tuple(networks))


def check_endpoint(url: str, field: str, rules: EndpointRules) -> str:
    """Return the endpoint as `scheme://host[:port]` without a trailing slash.

    Raises `InvalidStorageProfile` for another form or a forbidden host. The message names `field`.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidStorageProfile(f"Storage profile field {field!r} is not a valid URL") from None
    if parts.scheme not in {"http", "https"}:
        raise InvalidStorageProfile(f"Storage profile field {field!r} must start with http:// or https://")
    if "@" in parts.netloc or "?" in url or "#" in url or "\\" in url or parts.path not in {"", "/"}:
        raise InvalidStorageProfile(
            f"Storage profile field {field!r} must consist of scheme, host and port only, without user, path, query "
            "or fragment"
        )
    host = (parts.hostname or "").lower()
    _check_host(host, field, rules)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")


def refuse_address(address: str, field: str, rules: EndpointRules) -> None:
    """Raise `InvalidStorageProfile` if the rules forbid connections to the resolved IP address.

    The message names `field`.
    """
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        found = _embedded(found) or found
    if _never_allowed(found) or any(map(_never_allowed, _local_translations(found))):
        raise InvalidStorageProfile(
            f"Storage profile field {field!r} leads to a link-local or metadata address, which is never allowed"
        )
    if found.is_loopback and not rules.lists(found):
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a loopback address, {_NOT_LISTED}")
    public = found.is_global and found not in _LOCAL_NAT64 and found not in _DOCUMENTATION
    if not public and not rules.lists(found):
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a private address, {_NOT_LISTED}")


def _never_allowed(address: IPv4Address | IPv6Address) -> bool:
    """Return True for an address that no setting can allow."""
    if address in _LOCAL_NAT64:
        return False  # `ipaddress` reports these as reserved, but sites with NAT64 use them.
    forbidden = address.is_link_local or address.is_unspecified or address.is_multicast
    forbidden = forbidden or (address.is_reserved and not address.is_loopback)
    forbidden = forbidden or (isinstance(address, IPv6Address) and address.is_site_local)
    return forbidden or any(address in network for network in _METADATA_NETWORKS)


def _local_translations(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses to which a local NAT64 address may translate (RFC 6052, section 2.2).

    The length of the prefix is unknown, so these are candidates. They are used only to refuse addresses.
    """
    if address not in _LOCAL_NAT64:
        return []
    bits = int(address)
    without_u = (bits >> 64 << 56) | (bits & ((1 << 56) - 1))  # Leave out bits 64 to 71.
    shifts = (40, 32, 24)  # For prefixes of 48, 56 and 64 bits.
    found = [(without_u >> shift) & 0xFFFFFFFF for shift in shifts] + [bits & 0xFFFFFFFF]
    return [IPv4Address(each) for each in found if each]


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address maps or translates to; None if there is none."""
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)


def _check_host(host: str, field: str, rules: EndpointRules) -> None:
    if ":" in host or _NUMERIC.fullmatch(host.removesuffix(".")):
        try:
            ip_address(host)
        except ValueError:
            raise InvalidStorageProfile(
                f"Storage profile field {field!r} must contain an IPv4 address as four decimal numbers, an IPv6 "
                "address in brackets, or a host name"
            ) from None
        refuse_address(host, field, rules)
        return
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidStorageProfile(f"Storage profile field {field!r} does not contain a valid host name")
    if host in _METADATA_NAMES:
        raise InvalidStorageProfile(
            f"Storage profile field {field!r} leads to a metadata service, which is never allowed"
        )
    if (host == "localhost" or host.endswith(".localhost")) and not any(map(rules.lists, _LOOPBACK)):
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a loopback address, {_NOT_LISTED}")


#: The placeholder for the account of a profile in an address.
ACCOUNT: Final = "{account}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreAddresses:
    """The operator's addresses of one provider. None means the provider's own.

    `files` is the address of the store, `tokens` the address of its authorization server.
    """

    files: str | None = None
    tokens: str | None = None

    @property
    def unencrypted(self) -> bool:
        """Return True if the store is an emulator on this machine, reached by plain HTTP."""
        return self.files is not None and self.files.startswith("http://")


NO_ADDRESSES: Final = StoreAddresses()


def parse_store_address(text: str, *, account: bool = False) -> str:
    """Return the address without a trailing slash. With `account` it must contain `{account}`.

    The form is `scheme://host[:port][/path]`. Raises ValueError that tells what is wrong.
    """
    filled = text.replace(ACCOUNT, "account") if account else text
    if account and text.count(ACCOUNT) != 1:
        raise ValueError(f"it must contain {ACCOUNT} once, in place of the name of the storage account")
    try:
        parts = urlsplit(filled)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise ValueError("it is not a valid URL") from None
    if not host or parts.username is not None or "?" in text or "#" in text or "\\" in text or not text.isascii():
        raise ValueError("it must consist of scheme, host, port and path only")
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_loopback(host)):
        raise ValueError("it must start with https://, or with http:// and a loopback address such as 127.0.0.1")
    return text.rstrip("/")


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
