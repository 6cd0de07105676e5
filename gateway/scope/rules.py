# SPDX-License-Identifier: Apache-2.0
"""What the operator lets storage profiles and credentials name."""

from dataclasses import dataclass
from typing import Final

from gateway.scope.endpoint import ANY_NETWORK, DEFAULT_RULES, EndpointRules

__all__ = ["STORED", "STRICTEST", "StorageRules"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageRules:
    """Rules for what a client sends.

    `endpoints`: networks that endpoints may lead to. `system_identities`: credentials may be the gateway's own identity
    in its cloud.
    """

    endpoints: EndpointRules = DEFAULT_RULES
    system_identities: bool = False


STRICTEST: Final = StorageRules()
"""Rules of an operator who set nothing."""
STORED: Final = StorageRules(endpoints=ANY_NETWORK, system_identities=True)
"""Rules for what is stored already. It is judged again when it is used, by the operator's rules of that moment."""
