# SPDX-License-Identifier: Apache-2.0
"""Settings of the probes of engines (``LAKEGATE__ENGINE_PROBES__…``)."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class EngineProbes(msgspec.Struct, frozen=True, kw_only=True):
    """Probes, in which an engine shows that it enforces restrictions."""

    required: Annotated[
        bool,
        Meta(
            description="True: an engine with `enforcer` is trusted in a warehouse only while its last probe there "
            "passed and is recent. False: also without a probe. A failed probe ends the trust in both cases."
        ),
    ] = True
    valid_days: Annotated[
        float,
        Meta(gt=0, le=365, description="Time in days for which a passed probe counts. Probe engines more often."),
    ] = 7.0
