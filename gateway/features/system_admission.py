# SPDX-License-Identifier: Apache-2.0
"""Admission of the gateway's own tasks by the door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeVar

from gateway.access.actor import Actor
from gateway.access.door.door import Door
from gateway.access.door.permit import Permit
from gateway.access.door.request_context import RequestContext
from gateway.access.operation import Operation

Op = TypeVar("Op", bound=Operation)


@asynccontextmanager
async def admitted(door: Door, task: str, run: str, operation: Op) -> AsyncIterator[Permit[Op]]:
    """Yield the permit for `operation` of the system task `task`; `run` identifies the run. An exception in the block
    is recorded in the audit.

    Raises the error of a policy refusal and the errors of outages.
    """
    context = RequestContext(actor=Actor.system(task), request_id=f"task-{run}")
    try:
        yield await door.admit(context, operation)
    except BaseException as error:
        context.abandon(type(error).__name__)
        raise
