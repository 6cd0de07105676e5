# SPDX-License-Identifier: Apache-2.0
"""The answer to a change that was made says that it is not known whether the change restricts the caller."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import unavailable
from gateway.access.operation import Operation
from gateway.features.policies.table_policies import restricts_caller
from gateway.obligations.data_policies import AppliesTo


async def _outage(*_: Any) -> None:
    raise unavailable(catalog_mutation=False)


def test_an_outage_after_the_change_is_no_error_and_no_denial() -> None:
    """An error would say that nothing was bound; no value would say that the caller is not restricted."""
    permit = cast("Permit[Operation]", SimpleNamespace(policy_standing=_outage, resolution=None))
    assert asyncio.run(restricts_caller(permit, {"policy": AppliesTo.EVERYONE})) == "unknown"
    assert asyncio.run(restricts_caller(permit, {})) is None
