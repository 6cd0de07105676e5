# SPDX-License-Identifier: Apache-2.0
"""The operator's rules for storage profiles and storage credentials."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.scope.endpoint import ANY_NETWORK, DEFAULT_RULES, EndpointRules
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import check_segment

__all__ = ["STORED", "STRICTEST", "StorageRules", "parse_directories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRules:
    """Rules for storage profiles and credentials that clients send.

    `endpoints`: networks in which endpoints may lie. `directories`: absolute paths below which warehouses on the
    gateway's own machine may lie. An empty tuple allows no such warehouse, None allows any path. `system_identities`:
    True if a credential may be the gateway's own identity in its cloud. `hosts`: hosts of stores that profiles may name
    in addition to those of the provider; None allows any.
    """

    endpoints: EndpointRules = DEFAULT_RULES
    directories: tuple[str, ...] | None = ()
    system_identities: bool = False
    hosts: tuple[str, ...] | None = ()


STRICTEST: Final = StorageRules()
"""The rules of the default settings."""
STORED: Final = StorageRules(endpoints=ANY_NETWORK, directories=None, system_identities=True, hosts=None)
"""Rules for reading stored profiles and credentials. Each use checks them again by the operator's current rules."""


def parse_directories(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the paths after a check that each is absolute and canonical, such as `/srv/lake`.

    Raises ValueError that names an invalid one.
    """
    for text in texts:
        root, *segments = text.split("/")
        try:
            if root or not segments:
                raise InvalidLocation("it must start with a slash")
            for segment in segments:
                check_segment(segment)
        except InvalidLocation as wrong:
            raise ValueError(f"{text!r} is not a canonical path, such as /srv/lake: {wrong.message}") from None
    return tuple(texts)
