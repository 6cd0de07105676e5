# SPDX-License-Identifier: Apache-2.0
"""Which outside addresses a storage profile may send the gateway to.

A profile's endpoints are fetched by the gateway with credentials, so they are a way to make it speak to addresses its
author cannot reach. Never allowed, whatever the setting: link-local addresses (the metadata services of the clouds
and of containers), the metadata services with other addresses or names, unspecified, multicast and reserved ones, and
every odd spelling of an IPv4 address that a resolver would take but a reader would not recognise.

Loopback and private addresses are allowed by default, because most stores that are not AWS live on them and creating
a warehouse is a right of its own; an operator whose project administrators are not trusted with the inner network
sets both off. A host *name* can only be judged after it is resolved: `refuse_address` is for whoever connects.
"""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from gateway.scope.errors import InvalidStorageProfile

__all__ = ["DEFAULT_RULES", "EndpointRules", "check_endpoint", "refuse_address"]

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
_LABEL: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)", re.ASCII)
# What inet_aton would take as an address: decimal, octal and hexadecimal parts.
_NUMERIC: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+))*", re.ASCII)


@dataclass(frozen=True, slots=True)
class EndpointRules:
    """What the operator allows beyond public addresses."""

    allow_loopback: bool = True
    allow_private: bool = True


DEFAULT_RULES: Final = EndpointRules()


def check_endpoint(url: str, field: str, rules: EndpointRules) -> str:
    """Return the endpoint as `scheme://host[:port]`, no trailing slash, or raise `InvalidStorageProfile`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidStorageProfile(f"Storage profile field {field!r} is no valid URL") from None
    if parts.scheme not in {"http", "https"}:
        raise InvalidStorageProfile(f"Storage profile field {field!r} must start with http:// or https://")
    if "@" in parts.netloc or "?" in url or "#" in url or "\\" in url or parts.path not in {"", "/"}:
        raise InvalidStorageProfile(
            f"Storage profile field {field!r} must be scheme, host and port alone: no user, path, query or fragment"
        )
    host = (parts.hostname or "").lower()
    _check_host(host, field, rules)
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")


def refuse_address(address: str, field: str, rules: EndpointRules) -> None:
    """Raise `InvalidStorageProfile` when the resolved IP address must not be spoken to."""
    found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    if isinstance(found, IPv6Address):
        # An IPv4 address in IPv6 clothes reaches the same machine.
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    forbidden = found.is_link_local or found.is_unspecified or found.is_multicast
    forbidden = forbidden or (found.is_reserved and not found.is_loopback)
    if forbidden or any(found in network for network in _METADATA_NETWORKS):
        raise InvalidStorageProfile(
            f"Storage profile field {field!r} leads to a link-local or metadata address, never allowed"
        )
    if found.is_loopback:
        if not rules.allow_loopback:
            raise InvalidStorageProfile(
                f"Storage profile field {field!r} leads to a loopback address, not allowed here"
            )
    elif not found.is_global and not rules.allow_private:
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a private address, not allowed here")


def _check_host(host: str, field: str, rules: EndpointRules) -> None:
    if ":" in host or _NUMERIC.fullmatch(host.removesuffix(".")):
        try:
            ip_address(host)
        except ValueError:
            raise InvalidStorageProfile(
                f"Storage profile field {field!r} must write an IPv4 address as four decimal numbers"
            ) from None
        refuse_address(host, field, rules)
        return
    labels = host.split(".")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise InvalidStorageProfile(f"Storage profile field {field!r} has no valid host name")
    if host in _METADATA_NAMES:
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a metadata service, never allowed")
    if (host == "localhost" or host.endswith(".localhost")) and not rules.allow_loopback:
        raise InvalidStorageProfile(f"Storage profile field {field!r} leads to a loopback address, not allowed here")
