# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that check permissions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from gateway.protocol.base import Answer, Request
from gateway.protocol.rights import Identity

#: Checks in one request.
MAX_CHECKS = 1000


class CheckRequest(Request, frozen=True):
    """`POST /permissions/check`."""

    operation: dict[str, dict[str, Any]]
    identity: Identity | None = None


class CheckAnswer(Answer, frozen=True):
    """Whether it would be allowed."""

    allowed: bool


class CheckItem(Request, frozen=True):
    """One check of a batch."""

    operation: dict[str, dict[str, Any]]
    id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    identity: Identity | None = None


class BatchCheckRequest(Request, frozen=True):
    """`POST /action/batch-check`. With `delegated`, which is ours, an engine asks in the name of its users."""

    checks: tuple[CheckItem, ...]
    error_on_not_found: bool = False
    delegated: bool = False


class CheckResult(Answer, frozen=True, omit_defaults=True):
    """One answer of a batch. To `read_columns` a yes with `columns` (names in the table's current schema) is one for
    these columns alone; without them it is for all.
    """

    allowed: bool
    id: str | None = None
    columns: list[str] | None = None


class BatchCheckAnswer(Answer, frozen=True):
    """The answers, in the order of the checks."""

    results: list[CheckResult]
