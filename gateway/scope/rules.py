# SPDX-License-Identifier: Apache-2.0
"""What the operator lets storage profiles and credentials name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.scope.endpoint import ANY_NETWORK, DEFAULT_RULES, EndpointRules
from gateway.scope.errors import InvalidLocation
from gateway.scope.location import check_segment

__all__ = ["STORED", "STRICTEST", "StorageRules", "parse_directories"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRules:
    """Rules for what a client sends.

    `endpoints`: networks that endpoints may lead to. `directories`: absolute paths below which warehouses on the
    gateway's own machine may lie; empty for no such warehouse, None for anywhere. `system_identities`: credentials may
    be the gateway's own identity in its cloud.
    """

    endpoints: EndpointRules = DEFAULT_RULES
    directories: tuple[str, ...] | None = ()
    system_identities: bool = False


STRICTEST: Final = StorageRules()
"""Rules of an operator who set nothing."""
STORED: Final = StorageRules(endpoints=ANY_NETWORK, directories=None, system_identities=True)
"""Rules for what is stored already. It is judged again when it is used, by the operator's rules of that moment."""


def parse_directories(texts: Sequence[str]) -> tuple[str, ...]:
    """Read absolute paths in canonical form, such as `/srv/lake`. Raises ValueError that names the wrong one."""
    for text in texts:
        root, *segments = text.split("/")
        try:
            if root or not segments:
                raise InvalidLocation("it must start with a slash")
            for segment in segments:
                check_segment(segment)
        except InvalidLocation as wrong:
            raise ValueError(f"{text!r} is no canonical path such as /srv/lake: {wrong.message}") from None
    return tuple(texts)
