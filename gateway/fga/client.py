# SPDX-License-Identifier: Apache-2.0
"""A fast client for OpenFGA: batch checks, writes and reads over plain HTTP, with one store and one model.

Each request uses a kept-alive connection. Responses are decoded strictly: a check result that is neither allowed nor
denied raises an error. `model` uses the vendor's SDK, because speed does not matter there.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import msgspec

from gateway.access.dependency_errors import DecisionEngineUnavailable, WriteOutcomeUnknown, first_of
from gateway.access.shares.fair_slots import FairSlots
from gateway.fga.pacing import BATCH, LARGE, LONGEST_DELAY_SECONDS, Pacing
from gateway.fga.wire import (
    Answer,
    BatchAnswer,
    FgaTuple,
    Page,
    Store,
    Streamed,
    bare,
    decoded,
    holds,
    is_about_members,
    lines_of,
    origin,
    refuse,
    refuse_write,
    require_ulid,
    unreachable,
)

#: OpenFGA's default limits: tuples in one write, and contextual tuples of one check.
MAX_TUPLES_PER_WRITE = 100
MAX_CONTEXTUAL_TUPLES = 100
_PAGE_SIZE = 100

# The maximum numbers of concurrent batches of small questions, for the process and for one subject. OpenFGA's deadline
# starts when a request arrives. So too many concurrent requests would exceed their deadlines on a busy machine.
# Waiting batches of several subjects are served in rotation.
_SMALL_AT_ONCE, _SMALL_EACH = 32, 8

_Key = tuple[str, str, str]
"""(user, relation, object) of a check."""


class FgaClient:
    """A client for one store of one OpenFGA server. All checks use one model at a time.

    `timeout_s` limits each call of a method. In `read` it limits each page, and in `batch_check` each batch: a check of
    a thousand objects fails only if one of its batches takes too long. `max_batch` is the server's limit of checks in
    one request (50 by default). The first call opens connections in its event loop; `aclose` closes them. No error
    contains the API key.
    """

    def __init__(
        self,
        endpoint: str,
        api_key: str | None,
        store_id: str,
        model_id: str,
        *,
        timeout_s: float,
        max_batch: int = 50,
        tls: ssl.SSLContext | None = None,
        hooks: Sequence[aiohttp.TraceConfig] = (),
    ) -> None:
        self._tls = tls
        self._hooks = list(hooks)
        require_ulid("store", store_id)
        require_ulid("model", model_id)
        if max_batch < 1:
            raise ValueError(f"max_batch must be at least 1, not {max_batch}.")
        self._url = f"{endpoint.rstrip('/')}/stores/{store_id}"
        self._headers = {"Content-Type": "application/json"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        self._store_id = store_id
        self._model_id = model_id
        self._withheld: str | None = None
        self._timeout_s = timeout_s
        self._max_batch = max_batch
        self._pacing = Pacing()
        self._small = FairSlots(_SMALL_AT_ONCE, each=_SMALL_EACH)
        self._session: aiohttp.ClientSession | None = None

    @property
    def store_id(self) -> str:
        """Return the id of the store."""
        return self._store_id

    @property
    def model_id(self) -> str:
        """Return the id of the model that new checks use, for audit records."""
        return self._model_id

    @property
    def answers_key(self) -> str:
        """Return the part of cache keys for the model that new checks use. No entry has it while checks are blocked.

        Otherwise an allow that the former model gave after the switch would be used until the entry expires.
        """
        return self._model_id if self._withheld is None else f"{self._model_id} withheld"

    def use_model(self, model_id: str) -> None:
        """Use this model from the next call on, and end `block_checks`. Calls in progress finish with their model.

        Raises ValueError if the id is not a ULID.
        """
        require_ulid("model", model_id)
        self._model_id, self._withheld = model_id, None

    def block_checks(self, reason: str) -> None:
        """Let every check and `ping` raise DecisionEngineUnavailable with `reason`, until `use_model` is called."""
        self._withheld = reason

    async def batch_check(
        self,
        checks: Sequence[FgaTuple],
        *,
        contextual: Sequence[FgaTuple] = (),
        context: Mapping[str, str],
        paced: bool = True,
        model_id: str | None = None,
        asker: str | None = None,
    ) -> list[bool]:
        """Return for each of `checks` whether it holds, in order.

        `context` has the values for conditions, and must contain `current_time`. Checks of the members of a role
        (`role:<id>#assignee`) are sent without the contextual tuples. Many checks are sent in small batches,
        with a limited rate if they are `paced` (`pacing.py`). A check that fails only because a condition lacks its
        context is denied. `model_id` is another model of the store. The checks take their slots and their rate from
        `asker`, or without it from their own user. Raises DecisionEngineUnavailable if any check is neither allowed nor
        denied, and ValueError for too many contextual tuples.
        """
        if len(contextual) > MAX_CONTEXTUAL_TUPLES:
            raise ValueError(f"{len(contextual)} contextual tuples; OpenFGA accepts at most {MAX_CONTEXTUAL_TUPLES}.")
        if self._withheld is not None:
            raise DecisionEngineUnavailable(self._withheld)
        model_id = model_id or self._model_id
        unique = list({(check.user, check.relation, check.object): check for check in checks}.values())
        if len(unique) > LARGE:
            holding = await self._check_large_batch(model_id, unique, contextual, context, asker, paced=paced)
        else:
            holding = await self._check_small_batch(model_id, unique, contextual, context, asker)
        return [(check.user, check.relation, check.object) in holding for check in checks]

    async def _check_large_batch(
        self,
        model_id: str,
        unique: Sequence[FgaTuple],
        contextual: Sequence[FgaTuple],
        context: Mapping[str, str],
        asker: str | None,
        *,
        paced: bool,
    ) -> set[_Key]:
        """Send the checks in small batches, one after the other, and return those that hold."""
        holding: set[_Key] = set()
        pace = self._pacing.of(asker or unique[0].user, longest=LONGEST_DELAY_SECONDS if paced else 0.0)
        for chunk in _chunks(unique, min(BATCH, self._max_batch)):
            async with pace.batch():
                holding |= await self._check_chunk(model_id, chunk, contextual, context)
        return holding

    async def _check_small_batch(
        self,
        model_id: str,
        unique: Sequence[FgaTuple],
        contextual: Sequence[FgaTuple],
        context: Mapping[str, str],
        asker: str | None,
    ) -> set[_Key]:
        """Send the checks concurrently in batches of the server's maximum size, and return those that hold."""

        async def check_chunk(chunk: Sequence[FgaTuple]) -> set[_Key]:
            user = asker or chunk[0].user
            self._pacing.count_small_check(user)
            async with self._small.slot(user):
                return await self._check_chunk(model_id, chunk, contextual, context)

        try:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(check_chunk(chunk)) for chunk in _chunks(unique, self._max_batch)]
        except ExceptionGroup as failed:
            raise first_of(failed) from None
        return {key for task in tasks for key in task.result()}

    async def confirmed(
        self,
        user: str,
        relation: str,
        objects: Set[str],
        *,
        contextual: Sequence[FgaTuple] = (),
        context: Mapping[str, str],
        others: int,
    ) -> set[str]:
        """Return the `objects` that OpenFGA lists among the objects on which `user` has `relation`.

        All `objects` must be of one type. The result can be incomplete, so the caller must check the other objects:
        OpenFGA ends a list at its deadline without an error. This method stops at an error in the stream, at its own
        timeout, and after more than `others` listed objects that are not in `objects`. Raises DecisionEngineUnavailable
        if OpenFGA rejects the request or cannot be reached.
        """
        if self._withheld is not None:
            raise DecisionEngineUnavailable(self._withheld)
        body: dict[str, Any] = {
            "authorization_model_id": self._model_id,
            "consistency": "HIGHER_CONSISTENCY",
            "type": next(iter(objects)).partition(":")[0],
            "relation": relation,
            "user": user,
            "context": context,
        }
        if contextual:
            body["contextual_tuples"] = {"tuple_keys": contextual}
        found: set[str] = set()
        try:
            async with (
                asyncio.timeout(self._timeout_s),
                self._request("POST", "/streamed-list-objects", body) as answer,
            ):
                if answer.status != 200:
                    refuse(answer.status, await answer.read())
                async for line in lines_of(answer.content):
                    streamed = decoded(line, Streamed).result
                    if streamed is None:
                        break
                    if streamed.object in objects:
                        found.add(streamed.object)
                    else:
                        others -= 1
                    if len(found) == len(objects) or others < 0:
                        break
        except TimeoutError:
            return found
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._url, type(error)) from None
        return found

    async def write(self, writes: Sequence[FgaTuple] = (), deletes: Sequence[FgaTuple] = ()) -> None:
        """Write and delete tuples in one transaction of OpenFGA.

        Writing an existing tuple and deleting an absent one are not errors. A key must not be in both lists, so a
        change of a condition needs two calls. The request is never retried here.

        Raises:
        - ValueError for more than 100 tuples;
        - ConditionConflict if a tuple exists with another condition, and TuplesRefused if OpenFGA rejects the tuples.
          Nothing was written;
        - WriteOutcomeUnknown if the tuples may have been written;
        - DecisionEngineUnavailable if nothing was written and a later retry may succeed.
        """
        if len(writes) + len(deletes) > MAX_TUPLES_PER_WRITE:
            raise ValueError(
                f"A write has {len(writes) + len(deletes)} tuples; OpenFGA accepts at most {MAX_TUPLES_PER_WRITE} in "
                "one write."
            )
        body: dict[str, Any] = {"authorization_model_id": self._model_id}
        if writes:
            body["writes"] = {"tuple_keys": writes, "on_duplicate": "ignore"}
        if deletes:
            keys = [FgaTuple(gone.user, gone.relation, gone.object) for gone in deletes]
            body["deletes"] = {"tuple_keys": keys, "on_missing": "ignore"}
        if not writes and not deletes:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                status, answer = await self._send("POST", "/write", body)
        except aiohttp.ClientConnectorError as error:
            raise unreachable(self._url, type(error)) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise WriteOutcomeUnknown(f"OpenFGA did not answer a write ({type(error).__name__}).") from None
        if status != 200:
            refuse_write(status, answer)

    async def read(
        self, *, user: str | None = None, relation: str | None = None, object: str | None = None
    ) -> AsyncIterator[FgaTuple]:
        """Yield the stored tuples that match the filters, or all tuples without a filter, with HIGHER_CONSISTENCY.

        `object` may be only a type (`table:`) if `user` is given. Raises DecisionEngineUnavailable; the tuples yielded
        before it are incomplete.
        """
        given = {"user": user, "relation": relation, "object": object}
        body: dict[str, Any] = {"page_size": _PAGE_SIZE, "consistency": "HIGHER_CONSISTENCY"}
        key = {name: value for name, value in given.items() if value is not None}
        if key:
            body["tuple_key"] = key
        while True:
            page = decoded(await self._query("POST", "/read", body), Page)
            for found in page.tuples:
                yield found.key
            if not page.continuation_token:
                return
            if page.continuation_token == body.get("continuation_token"):
                raise DecisionEngineUnavailable("OpenFGA returned the same page of tuples twice.")
            body["continuation_token"] = page.continuation_token

    async def get(self, path: str, kind: type[Answer]) -> Answer:
        """Return the decoded response to `GET <path>` below the URL of the store, for other modules of this room.

        `path` begins with `/` and is percent-encoded. Raises DecisionEngineUnavailable.
        """
        return decoded(await self._query("GET", path, None), kind)

    async def ping(self) -> None:
        """Check that the server responds, accepts the API key and has the store, and that checks are not blocked.

        Raises DecisionEngineUnavailable if not.
        """
        if self._withheld is not None:
            raise DecisionEngineUnavailable(self._withheld)
        decoded(await self._query("GET", "", None), Store)

    async def aclose(self) -> None:
        """Close the connections. A later call opens new connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _check_chunk(
        self, model_id: str, chunk: Sequence[FgaTuple], contextual: Sequence[FgaTuple], context: Mapping[str, str]
    ) -> set[_Key]:
        """Send one batch and return the checks that hold. Raises DecisionEngineUnavailable, also after `timeout_s`."""
        shared: dict[str, Any] = {"context": context}
        of_caller = {**shared, "contextual_tuples": {"tuple_keys": contextual}} if contextual else shared
        body = {
            "authorization_model_id": model_id,
            "consistency": "HIGHER_CONSISTENCY",
            "checks": [
                {
                    "tuple_key": bare(check),
                    "correlation_id": str(number),
                    # Checks about members of a role are shared among callers, so they contain nothing about one caller.
                    **(shared if is_about_members(check) else of_caller),
                }
                for number, check in enumerate(chunk)
            ],
        }
        answer = decoded(await self._query("POST", "/batch-check", body), BatchAnswer).result
        if len(answer) != len(chunk):
            raise DecisionEngineUnavailable(
                f"OpenFGA received {len(chunk)} checks, but returned {len(answer)} answers."
            )
        return {
            (check.user, check.relation, check.object)
            for number, check in enumerate(chunk)
            if holds(answer.get(str(number)), check)
        }

    async def _query(self, method: str, path: str, body: Any) -> bytes:
        """Send a request that changes nothing and return the body of its 200 response.

        Retry once if the connection was dropped. Raises DecisionEngineUnavailable for an error or another status.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    status, answer = await self._send(method, path, body)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError, aiohttp.ClientOSError) as error:
                    if isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    status, answer = await self._send(method, path, body)
        except TimeoutError:
            raise DecisionEngineUnavailable(
                f"OpenFGA at {origin(self._url)} did not answer within {self._timeout_s} s."
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(self._url, type(error)) from None
        if status != 200:
            refuse(status, answer)
        return answer

    async def _send(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        async with self._request(method, path, body) as response:
            return response.status, await response.read()

    def _request(self, method: str, path: str, body: Any) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            connector = aiohttp.TCPConnector(ssl=self._tls or True)
            self._session = aiohttp.ClientSession(headers=self._headers, connector=connector, trace_configs=self._hooks)
        data = None if body is None else msgspec.json.encode(body)
        # Following a redirect would send the API key to another server.
        return self._session.request(method, self._url + path, data=data, allow_redirects=False)


def _chunks(checks: Sequence[FgaTuple], size: int) -> list[Sequence[FgaTuple]]:
    return [checks[start : start + size] for start in range(0, len(checks), size)]
