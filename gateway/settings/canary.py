# SPDX-License-Identifier: Apache-2.0
"""Settings of the canary (``LAKEGATE__CANARY__…``), which tests vended credentials on the live stores."""

from __future__ import annotations

import typing
from datetime import timedelta

import msgspec

from gateway.settings.env import PositiveSeconds, SecondsOrZero


class Canary(msgspec.Struct, frozen=True, kw_only=True):
    """The canary: attempts on the live stores to leave the scope of vended credentials."""

    interval: SecondsOrZero = 86_400.0
    """Time in seconds between two runs of the canary on the store of a warehouse. 0: no periodic runs.
    `SKIP_STORAGE_VALIDATION` turns them off too.
    """
    retry: PositiveSeconds = 900.0
    """Time in seconds after an inconclusive run until the next one, for example if the store did not answer."""
    enforce: typing.Literal["off", "escaped", "unproven"] = "off"
    """Warehouses for which no credentials are vended. `off`: none; a store that lets a credential escape is only
    reported. `escaped`: those whose store let one escape. `unproven`: all without a proof for their current storage
    profile. A new warehouse always needs the proof, unless `SKIP_STORAGE_VALIDATION` is set.
    """

    def keep(self) -> timedelta:
        """Return the time for which a proof counts although later runs are inconclusive: three intervals."""
        return timedelta(seconds=3 * self.interval)
