# SPDX-License-Identifier: Apache-2.0
"""Admission control: limit what each principal may use of one worker process at the same time (its share).

A share limits concurrent requests, request bytes in memory and questions to the decision engines. Requests above a
share wait for a short time and are then refused with 429. Engines that act for users have slots of their own (a lane),
so that they and users do not take slots from each other.
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final, Protocol

from cachetools import LRUCache

from gateway.access.actor import Actor
from gateway.access.nouns.authz_errors import Overloaded, ShareExceeded
from gateway.access.shares.fair_slots import FairSlots, TokenBuckets, TooManyWaiting
from gateway.access.shares.overload import Overload

#: Maximum number of questions of an ordinary request. All of its questions are charged as one question, since the cache
#: answers most of them.
_ORDINARY: Final = 10
#: Requests with more questions than this are large. Large requests of one principal are answered one after the other.
_LARGE: Final = 50
_RECOGNIZED_SECONDS: Final = 300.0
_RECOGNIZED_MOST: Final = 10_000
_CREDENTIALS_MOST: Final = 10_000
#: An engine sends the questions about all of its users under its own identity, so each is charged as this fraction of a
#: question.
_ENGINE_QUESTION: Final = 0.1
#: The limit of one engine is the number of slots of the engines' lane divided by this number, because a right on one
#: warehouse is enough to enter the lane.
_ENGINE_PART: Final = 4


class Lane(StrEnum):
    """The slots that requests wait for: those for users, or those for engines."""

    USER = "user"
    ENGINE = "engine"


class Share(StrEnum):
    """A resource that principals share, and of which each may use a part."""

    REQUESTS = "requests"
    QUESTIONS = "questions"
    LARGE = "large_requests"
    BYTES = "bytes"
    OVERLOAD = "overload"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareLimits:
    """The limits of one process.

    `requests` and `bytes` are for one principal at a time. `questions_per_second` and `question_burst` are the rate of
    one principal. `total_requests` and `engine_requests` are the slots of the two lanes. A request waits at most `wait`
    seconds, together with at most `waiting` other requests of the principal.

    While decisions take longer than `decision_target` seconds, fewer requests run at the same time, but at least
    `least_requests`, and one principal has at most half of them. A request that would wait longer than `overload_wait`
    seconds behind other principals is refused immediately. A target of 0 turns both off.
    """

    requests: int
    waiting: int
    wait: float
    total_requests: int
    engine_requests: int
    questions_per_second: float
    question_burst: float
    bytes: int
    least_requests: int = 16
    decision_target: float = 0.0
    overload_wait: float = 0.5


class ShareObserver(Protocol):
    """Receives figures for metrics, without the names of principals."""

    def share_used(self, share: str, lane: str, amount: int) -> None:
        """Set the amount in use now."""
        ...

    def share_waited(self, share: str, lane: str) -> None:
        """Count a request that waited."""
        ...

    def share_refused(self, share: str, lane: str) -> None:
        """Count a refusal."""
        ...


def principal_key(actor: Actor) -> str:
    """Return the key of an actor's shares: its verified id, and the engine that acts for it if there is one."""
    return actor.id if actor.engine is None else f"{actor.engine}\x00{actor.id}"


class Shares:
    """The shares of all principals in one process."""

    def __init__(
        self,
        limits: ShareLimits,
        observer: ShareObserver,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.limits = limits
        self._observer = observer
        self._clock = clock
        self._sleep = sleep
        self._slots = {
            Lane.USER: FairSlots(limits.total_requests, each=limits.requests, waiting=limits.waiting),
            Lane.ENGINE: FairSlots(
                limits.engine_requests, each=max(1, limits.engine_requests // _ENGINE_PART), waiting=limits.waiting
            ),
        }
        self._overload = Overload(
            least=limits.least_requests, most=limits.total_requests, target=limits.decision_target, clock=clock
        )
        self._large = FairSlots(sys.maxsize, each=1, waiting=limits.waiting)
        self._buckets = TokenBuckets(limits.questions_per_second, limits.question_burst)
        self._bytes: dict[str, int] = {}
        self._engines: OrderedDict[str, float] = OrderedDict()
        self._credentials: LRUCache[bytes, Actor] = LRUCache(maxsize=_CREDENTIALS_MOST)

    def decided(self, seconds: float, questions: int) -> None:
        """Record the duration of a decision, and adapt the number of concurrent requests to it.

        Decisions of many questions are not recorded, because they take long on an idle machine too.
        """
        if questions <= _ORDINARY and self.limits.decision_target > 0:
            self._overload.decided(seconds)
            total = self._overload.limit
            shrunk = total < self.limits.total_requests
            # If the slots shrink, a principal may hold at most half of them. Otherwise slow requests of one principal
            # could hold all.
            each = min(self.limits.requests, max(1, total // 2)) if shrunk else self.limits.requests
            self._slots[Lane.USER].resize(total, each=each)

    @property
    def is_full(self) -> bool:
        """True while all slots for users are in use. Always False if overload control is off."""
        return self.limits.decision_target > 0 and self._slots[Lane.USER].is_full

    def early_refusal(self, credential: bytes) -> Overloaded | None:
        """Return the refusal of a request with this credential, before it is verified. Return None if the request may
        try to enter.

        Only credentials of users that entered while the process was full are known. The actor may have been recognized
        as an engine since: then it uses the lane of engines.
        """
        actor = self._credentials.get(sha256(credential).digest())
        if actor is None or self.lane_of(actor) is not Lane.USER or not self._waits_too_long(principal_key(actor)):
            return None
        return self._overloaded()

    def recognize(self, engine: str) -> None:
        """Record for five minutes that this user id is an inspector or a delegate, as a decision has shown."""
        self._engines[engine] = self._clock() + _RECOGNIZED_SECONDS
        self._engines.move_to_end(engine)
        if len(self._engines) > _RECOGNIZED_MOST:
            self._engines.popitem(last=False)

    def is_recognized(self, engine: str) -> bool:
        """Return True if the user id was recognized within the last five minutes."""
        return self._engines.get(engine, -math.inf) > self._clock()

    def lane_of(self, actor: Actor) -> Lane:
        """Return the lane for the sender of the request, which is the engine if one acts for a user."""
        return Lane.ENGINE if self.is_recognized(actor.engine or actor.id) else Lane.USER

    async def enter(self, actor: Actor, announced_bytes: int = 0, credential: bytes | None = None) -> Lease:
        """Wait for a slot and return the lease that holds it. Raises ShareExceeded and Overloaded.

        `credential` is the value of the header that proved the actor. It is recorded for `early_refusal`.
        """
        lane, principal = self.lane_of(actor), principal_key(actor)
        if credential is not None and lane is Lane.USER and self.is_full:
            self._credentials[sha256(credential).digest()] = actor
        # A user that an engine acts for has the share of a user, even in the lane of engines.
        lease = Lease(self, lane, principal, is_engine=lane is Lane.ENGINE and actor.engine is None)
        await self._take_slot(lane, principal)
        try:
            lease.take_bytes(announced_bytes)
        except BaseException:
            lease.release()
            raise
        return lease

    async def _take_slot(self, lane: Lane, principal: str) -> None:
        slots = self._slots[lane]
        if not slots.try_acquire(principal):
            if lane is Lane.USER and self._waits_too_long(principal):
                raise self._overloaded()
            self._observer.share_waited(Share.REQUESTS, lane)
            try:
                async with asyncio.timeout(self.limits.wait):
                    await slots.acquire(principal)
            except (TooManyWaiting, TimeoutError):
                raise self.refuse(Share.REQUESTS, lane, 1.0) from None
        self._observer.share_used(Share.REQUESTS, lane, slots.in_use)

    def _waits_too_long(self, principal: str) -> bool:
        position = self._slots[Lane.USER].position_of(principal)
        return self.limits.decision_target > 0 and self._overload.predicted_wait(position) > self.limits.overload_wait

    def _overloaded(self) -> Overloaded:
        self._observer.share_refused(Share.OVERLOAD, Lane.USER)
        return Overloaded(
            "This process has more requests than it can answer in time. Nothing was done. Retry after 1 s.",
            retry_after_s=1,
        )

    async def _take_large(self, lane: Lane, principal: str) -> None:
        """Wait until no other large request of the principal runs. Raises ShareExceeded."""
        if not self._large.try_acquire(principal):
            self._observer.share_waited(Share.LARGE, lane)
            try:
                async with asyncio.timeout(self.limits.wait):
                    await self._large.acquire(principal)
            except (TooManyWaiting, TimeoutError):
                raise self.refuse(Share.LARGE, lane, self.limits.wait) from None

    def _give_slot(self, lane: Lane, principal: str) -> None:
        slots = self._slots[lane]
        slots.release(principal)
        if lane is Lane.USER:
            self._overload.completed()
        self._observer.share_used(Share.REQUESTS, lane, slots.in_use)

    def refuse(self, share: Share, lane: Lane, seconds: float) -> ShareExceeded:
        """Count a refusal and return it. `seconds` is the time until a retry can succeed."""
        self._observer.share_refused(share, lane)
        retry = max(1, math.ceil(seconds))
        message = f"{_EXCEEDED_TEXTS[share].format(self.limits)} Nothing was done. {_retry(share, retry)}"
        return ShareExceeded(message, retry_after_s=retry)

    def _take_bytes(self, lease: Lease, amount: int) -> None:
        held = self._bytes.get(lease.principal, 0) + amount
        is_alone = held == lease.bytes + amount
        if held > self.limits.bytes and not is_alone:
            raise self.refuse(Share.BYTES, lease.lane, 1.0)
        self._bytes[lease.principal] = held
        lease.bytes += amount

    def _give_bytes(self, principal: str, amount: int) -> None:
        left = self._bytes.get(principal, 0) - amount
        if left > 0:
            self._bytes[principal] = left
        else:
            self._bytes.pop(principal, None)

    async def _charge_questions(self, lease: Lease, questions: int) -> None:
        tokens = questions * _ENGINE_QUESTION if lease.is_engine else questions
        taken, seconds = self._buckets.reserve(lease.principal, tokens, self._clock(), longest=self.limits.wait)
        if not taken:
            raise self.refuse(Share.QUESTIONS, lease.lane, seconds)
        if seconds > 0:
            self._observer.share_waited(Share.QUESTIONS, lease.lane)
            try:
                await self._sleep(seconds)
            except BaseException:
                self._buckets.refund(lease.principal, tokens, self._clock())
                raise


def _retry(share: Share, seconds: int) -> str:
    if share is Share.LARGE:
        return f"Retry after {seconds} s, and send fewer such requests at the same time."
    return f"Retry after {seconds} s. The operator can raise the limits LAKEGATE__SHARES__*."


_EXCEEDED_TEXTS: Final = {
    Share.REQUESTS: "Your share of concurrent requests ({0.requests} in this process) is in use.",
    Share.QUESTIONS: "Your share of authorization questions ({0.questions_per_second:g} a second in this process) is "
    "used up.",
    Share.LARGE: f"Your requests of more than {_LARGE} authorization questions are answered one after the other in "
    "this process, and the one under way takes long.",
    Share.BYTES: "Your share of request bytes in progress ({0.bytes} in this process) is in use.",
}


class Lease:
    """The slot of one request, with its share of bytes. `release` returns both; only the first call has an effect."""

    __slots__ = ("_has_slot", "_is_large", "_released", "_shares", "bytes", "is_engine", "lane", "principal")

    def __init__(self, shares: Shares, lane: Lane, principal: str, *, is_engine: bool) -> None:
        self._shares = shares
        self._released = False
        self._has_slot = True
        self._is_large = False
        self.lane = lane
        self.principal = principal
        self.is_engine = is_engine
        self.bytes = 0

    def take_bytes(self, amount: int) -> None:
        """Add bytes of the request's body to the share. Raises ShareExceeded, and then adds none.

        If the principal has no other request, this one may exceed the share, up to the general limit of a request.
        """
        if amount > 0:
            self._shares._take_bytes(self, amount)

    async def charge_questions(self, questions: int) -> None:
        """Charge the share for questions to the decision engines, before they are sent. Wait for a short time if
        necessary. Raises ShareExceeded.

        Up to ten questions, as in an ordinary request, are charged as one. A large request waits here until the
        previous large request of the principal has ended, so that it does not wait in the queues of the engines.
        """
        if questions > _LARGE and not self.is_engine and not self._is_large:
            await self._shares._take_large(self.lane, self.principal)
            self._is_large = True
        await self._shares._charge_questions(self, 1 if questions <= _ORDINARY else questions)

    def pause(self) -> None:
        """Return the slot for now, and keep the bytes. Do nothing if the lease holds no slot."""
        if self._has_slot and not self._released:
            self._has_slot = False
            self._shares._give_slot(self.lane, self.principal)

    async def resume(self) -> None:
        """Take a slot again after `pause`. Raises ShareExceeded."""
        if not self._has_slot and not self._released:
            await self._shares._take_slot(self.lane, self.principal)
            self._has_slot = True

    def release(self) -> None:
        """Return the slot and the bytes. A second call does nothing."""
        self.pause()
        if not self._released:
            self._released = True
            if self._is_large:
                self._shares._large.release(self.principal)
            self._shares._give_bytes(self.principal, self.bytes)
