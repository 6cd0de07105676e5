# SPDX-License-Identifier: Apache-2.0
"""Combine reads of concurrent requests into one statement.

A statement costs PostgreSQL and the gateway more than the lookup in it. While few statements are in flight, a read is
sent immediately and alone. Reads that arrive meanwhile wait for the next free slot and are sent together. A statement
contains only reads that were requested before it was sent, so no result is older than its request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Any, Final

from gateway.access.dependency_errors import DatabaseUnavailable
from gateway.db.pools.compiled_reads import DirectRead
from gateway.db.pools.driver_pool import DriverPool
from gateway.db.pools.rows import RowType
from gateway.db.pools.statement_hooks import named, summary_of
from gateway.spans import spanned

_LARGEST: Final = 32
"""Limit of the members of a statement: its slowest member delays all others."""


@dataclass(slots=True, eq=False)
class _Member:
    parameters: Mapping[str, Any]
    answer: asyncio.Future[Any]
    alarm: asyncio.TimerHandle


class _Queues:
    """The waiting requests of one read, in the order of each principal."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, deque[_Member]] = OrderedDict()

    def add(self, principal: str, member: _Member) -> None:
        self._of.setdefault(principal, deque()).append(member)

    def take(self, largest: int) -> list[_Member]:
        """Remove and return at most `largest` waiting requests whose callers still wait, one of each principal in
        turn.
        """
        taken: list[_Member] = []
        while self._of and len(taken) < largest:
            principal, queue = self._of.popitem(last=False)
            member = queue.popleft()
            if queue:
                self._of[principal] = queue
            if not member.answer.done():
                taken.append(member)
        return taken

    def __bool__(self) -> bool:
        return bool(self._of)


class SharedReads:
    """The reads of one worker process that may share statements.

    At most `unshared` statements are in flight. A read waits at most `wait` seconds until its statement is sent.
    Different reads never share a statement. Principals take turns, so that a principal with many requests does not
    delay the others.
    """

    def __init__(self, pool: DriverPool, *, unshared: int, wait: float, largest: int = _LARGEST) -> None:
        """Raise ValueError unless `unshared` and `largest` are at least 1."""
        if unshared < 1 or largest < 1:
            raise ValueError(f"unshared {unshared} and largest {largest} must be at least 1")
        self._pool = pool
        self._unshared = unshared
        self._wait = wait
        self._largest = largest
        self._in_flight = 0
        self._waiting: OrderedDict[DirectRead[Any], _Queues] = OrderedDict()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Return True if the next read has to wait. It may then share its statement."""
        return self._in_flight >= self._unshared

    @spanned(
        "postgresql.statement",
        lambda self, read, *_: {**named(summary_of(read)), "lakegate.waits_for_slot": self.is_busy},
    )
    async def one(self, read: DirectRead[RowType], parameters: Mapping[str, Any], principal: str) -> RowType:
        """Return the row of a read that always finds exactly one. Raises DatabaseUnavailable."""
        # No read waits while a slot is free, so this read is sent immediately.
        if self._in_flight < self._unshared:
            self._in_flight += 1
            try:
                (row,) = await read.all(self._pool, parameters)
            finally:
                self._end()
            return row
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[RowType] = loop.create_future()
        member = _Member(parameters, answer, loop.call_later(self._wait, _expire, answer))
        if read not in self._waiting:
            self._waiting[read] = _Queues()
        self._waiting[read].add(principal, member)
        try:
            return await answer
        finally:
            member.alarm.cancel()

    def _end(self) -> None:
        """Release a slot, and send the waiting reads."""
        self._in_flight -= 1
        while self._waiting and self._in_flight < self._unshared:
            read, queues = self._waiting.popitem(last=False)
            members = queues.take(self._largest)
            if queues:
                self._waiting[read] = queues
            if not members:
                continue
            for member in members:
                member.alarm.cancel()
            self._in_flight += 1
            # The statement runs in a separate task with an empty context: a cancelled member must not cancel the
            # others.
            sending = asyncio.get_running_loop().create_task(self._send(read, members), context=Context())
            self._running.add(sending)
            sending.add_done_callback(self._running.discard)

    async def _send(self, read: DirectRead[Any], members: Sequence[_Member]) -> None:
        try:
            await self._answer(read, members)
        finally:
            for member in members:
                if not member.answer.done():
                    member.answer.set_exception(DatabaseUnavailable("the statement was interrupted"))
            self._end()

    async def _answer(self, read: DirectRead[Any], members: Sequence[_Member]) -> None:
        if len(members) > 1:
            try:
                rows = await read.each(self._pool, [member.parameters for member in members])
            except Exception:  # one member may be at fault, so each is repeated alone and gets its own error
                await asyncio.gather(*(self._answer_alone(read, member) for member in members))
                return
            for member, row in zip(members, rows, strict=True):
                if not member.answer.done():
                    member.answer.set_result(row)
            return
        await self._answer_alone(read, members[0])

    async def _answer_alone(self, read: DirectRead[Any], member: _Member) -> None:
        if member.answer.done():
            return
        try:
            (row,) = await read.all(self._pool, member.parameters)
        except Exception as error:
            if not member.answer.done():
                member.answer.set_exception(error)
        else:
            if not member.answer.done():
                member.answer.set_result(row)


def _expire(answer: asyncio.Future[Any]) -> None:
    if not answer.done():
        answer.set_exception(DatabaseUnavailable("no connection to the database became free in time"))
