# SPDX-License-Identifier: Apache-2.0
"""Settings of the caches and of the memory of a worker process."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import SecondsOrZero


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Caches of a worker process. An entry is not used longer than the data that it depends on is valid."""

    allow_seconds: SecondsOrZero = 60.0
    """Maximum time in seconds for which an allow is cached. 0: no cache."""
    confirm_grants: bool = True
    """True: confirm single grants in OpenFGA, and answer from one confirmed grant for all members of a role and all
    contents of a container. False: send every question to OpenFGA as it is.
    """
    silent_callers: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached callers about which no guardrail can speak. OPA is not asked about them, and its
    decision log lacks these questions. 0: OPA is asked about every caller.
    """
    token_seconds: SecondsOrZero = 300.0
    """Maximum time in seconds for which a verified token is cached. 0: no cache."""
    credentials: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached storage credentials. They are used for half of their lifetime. 0: no cache."""
    expiries: Annotated[int, Meta(ge=0)] = 10_000
    """Maximum number of cached expiries of the grants behind credentials. An entry is cached for `ALLOW_SECONDS` at
    most. 0: no cache.
    """
    documents: Annotated[int, Meta(ge=0)] = 33_554_432
    """Maximum size in bytes of the cache of metadata documents. Documents larger than a quarter of it are not cached.
    0: no cache.
    """
    shared_modules: bool = True
    """Import the application before the worker processes are forked, so that they share its memory."""
    large_block: Annotated[int, Meta(ge=0, le=33554432)] = 1_048_576
    """Size in bytes from which freed memory blocks are returned to the system at once, with the GNU C library. 0: the
    library adapts this size, and keeps large blocks after large requests.
    """
