# SPDX-License-Identifier: Apache-2.0
"""Settings of the caches and of the memory of a worker process."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.settings.env import SECONDS
from gateway.settings.sections import Count


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """Caches of a worker process. An entry is not used longer than the data that it depends on is valid."""

    allows: Annotated[
        Count,
        Meta(
            description="Maximum number of cached allows of OpenFGA, about 500 bytes each. The least recently used are "
            "dropped first."
        ),
    ] = 20_000
    allow_seconds: Annotated[
        float,
        Meta(ge=0, description="Maximum time in seconds for which an allow is cached. 0: no cache.", extra=SECONDS),
    ] = 60.0
    confirm_grants: Annotated[
        bool,
        Meta(
            description="True: confirm single grants in OpenFGA, and answer from one confirmed grant for all members "
            "of a role and all contents of a container. False: send every question to OpenFGA as it is."
        ),
    ] = True
    policy_answers: Annotated[
        Count, Meta(description="Maximum number of cached answers of OPA. An answer is cached until its `valid_until`.")
    ] = 10_000
    silent_callers: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum number of cached callers about which no guardrail can speak. OPA is not asked about "
            "them, and its decision log lacks these questions. 0: OPA is asked about every caller.",
        ),
    ] = 10_000
    tokens: Annotated[Count, Meta(description="Maximum number of cached results of token verification.")] = 10_000
    token_seconds: Annotated[
        float,
        Meta(
            ge=0,
            description="Maximum time in seconds for which a verified token is cached. 0: no cache.",
            extra=SECONDS,
        ),
    ] = 300.0
    credentials: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum number of cached storage credentials. They are used for half of their lifetime. 0: no "
            "cache.",
        ),
    ] = 10_000
    expiries: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum number of cached expiries of the grants behind credentials. An entry is cached for "
            "`ALLOW_SECONDS` at most. 0: no cache.",
        ),
    ] = 10_000
    documents: Annotated[
        int,
        Meta(
            ge=0,
            description="Maximum size in bytes of the cache of metadata documents. Documents larger than a quarter of "
            "it are not cached. 0: no cache.",
        ),
    ] = 33_554_432
    shared_modules: Annotated[
        bool,
        Meta(
            description="Import the application before the worker processes are forked, so that they share its memory."
        ),
    ] = True
    large_block: Annotated[
        int,
        Meta(
            ge=0,
            le=33_554_432,
            description="Size in bytes from which freed memory blocks are returned to the system at once, with the GNU "
            "C library. 0: the library adapts this size, and keeps large blocks after large requests.",
        ),
    ] = 1_048_576
