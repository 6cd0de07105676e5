# SPDX-License-Identifier: Apache-2.0
"""The hot path to OpenFGA: batch checks, writes and reads over plain HTTP, with one store and one model.

The vendor's SDK is used where speed does not count (`model`). Here each call is one request on a kept-alive connection
and each answer is read strictly: what is not a clear yes or no raises.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import msgspec

from gateway.access.dependency_errors import DecisionEngineUnavailable, WriteOutcomeUnknown, first_of
from gateway.access.fair_slots import FairSlots
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
    lines_of,
    refuse,
    refuse_write,
)

#: Tuples in one write, and contextual tuples with one check, that OpenFGA accepts by default.
MAX_TUPLES_PER_WRITE = 100
MAX_CONTEXTUAL_TUPLES = 100
_PAGE_SIZE = 100

# Batches of small questions in flight, of the process and of one subject. OpenFGA counts its deadline from when a
# request arrives, so too many at once make each other fail on a busy machine. Subjects take turns.
_SMALL_AT_ONCE, _SMALL_EACH = 32, 8
_STORE_ID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")

_Key = tuple[str, str, str]
"""User, relation and object of a check."""


class FgaClient:
    """One store of one OpenFGA server, asked by one model at a time.

    `timeout_s` bounds each call of a method as a whole, of `read` each page and of `batch_check` each batch: a question
    about a thousand objects fails when one batch hangs, not because it is long. `max_batch` is the server's limit of
    checks in one request (50 by default). Connections are opened in the event loop of the first call; `aclose` closes
    them. Nothing that is raised carries the API key.
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
    ) -> None:
        self._tls = tls
        _require_ulid("store", store_id)
        _require_ulid("model", model_id)
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
        """The store that is asked."""
        return self._store_id

    @property
    def model_id(self) -> str:
        """The model that questions are asked by at this moment, for audit and cache keys."""
        return self._model_id

    def use_model(self, model_id: str) -> None:
        """Ask by this model from the next call on; a call that is under way ends with the one it began with."""
        _require_ulid("model", model_id)
        self._model_id, self._withheld = model_id, None

    def withhold(self, reason: str) -> None:
        """Ask nothing until `use_model`: every check and `ping` raises DecisionEngineUnavailable with `reason`."""
        self._withheld = reason

    async def batch_check(
        self,
        checks: Sequence[FgaTuple],
        *,
        contextual: Sequence[FgaTuple] = (),
        context: Mapping[str, str],
        paced: bool = True,
    ) -> list[bool]:
        """Whether each of `checks` holds, in order. `context` are the values of conditions: always send `current_time`.

        Large questions go in small batches, and at a pace of their own if they are `paced` (`pacing.py`). A check that
        failed only because a condition lacked its context is a no: the tuple does not hold without it.
        Everything else that is not a yes or a no, for a single one of the checks too, raises DecisionEngineUnavailable.
        """
        if len(contextual) > MAX_CONTEXTUAL_TUPLES:
            raise ValueError(f"{len(contextual)} contextual tuples; OpenFGA takes at most {MAX_CONTEXTUAL_TUPLES}.")
        if self._withheld is not None:
            raise DecisionEngineUnavailable(self._withheld)
        model_id = self._model_id
        unique = list({(check.user, check.relation, check.object): check for check in checks}.values())
        if len(unique) > LARGE:
            holding = await self._ask_large(model_id, unique, contextual, context, paced=paced)
        else:
            holding = await self._ask_small(model_id, unique, contextual, context)
        return [(check.user, check.relation, check.object) in holding for check in checks]

    async def _ask_large(
        self,
        model_id: str,
        unique: Sequence[FgaTuple],
        contextual: Sequence[FgaTuple],
        context: Mapping[str, str],
        *,
        paced: bool,
    ) -> set[_Key]:
        """Those that hold, asked in small batches, one after the other."""
        holding: set[_Key] = set()
        pace = self._pacing.of(unique[0].user, longest=LONGEST_DELAY_SECONDS if paced else 0.0)
        for chunk in _chunks(unique, min(BATCH, self._max_batch)):
            async with pace.batch():
                holding |= await self._check_chunk(model_id, chunk, contextual, context)
        return holding

    async def _ask_small(
        self, model_id: str, unique: Sequence[FgaTuple], contextual: Sequence[FgaTuple], context: Mapping[str, str]
    ) -> set[_Key]:
        """Those that hold, asked in batches as large as the server takes them, all at the same time."""

        async def asked(chunk: Sequence[FgaTuple]) -> set[_Key]:
            self._pacing.asked_small(chunk[0].user)
            async with self._small.slot(chunk[0].user):
                return await self._check_chunk(model_id, chunk, contextual, context)

        try:
            async with asyncio.TaskGroup() as together:
                tasks = [together.create_task(asked(chunk)) for chunk in _chunks(unique, self._max_batch)]
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
        """Those of `objects`, all of one type, that OpenFGA names when it lists what `user` has `relation` on.

        What it does not name may hold too and has to be checked: OpenFGA ends a list as if it were whole when its
        deadline comes, and this stops at an error on the way, at our own timeout and when `others` objects were named
        that nobody asked about. Raises DecisionEngineUnavailable when OpenFGA refuses.
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
            raise _unreachable(error) from None
        return found

    async def write(self, writes: Sequence[FgaTuple] = (), deletes: Sequence[FgaTuple] = ()) -> None:
        """Write and delete in one transaction of OpenFGA; what exists, or is gone already, is fine.

        At most 100 tuples in all (ValueError above); no key in both lists, so another condition takes two calls. Never
        repeated here. Raises ConditionConflict and TuplesRefused when nothing was written, WriteOutcomeUnknown when
        that is not known, and plain DecisionEngineUnavailable when nothing was written and trying later may help.
        """
        if len(writes) + len(deletes) > MAX_TUPLES_PER_WRITE:
            raise ValueError(f"{len(writes) + len(deletes)} tuples; one write takes at most {MAX_TUPLES_PER_WRITE}.")
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
            raise _unreachable(error) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise WriteOutcomeUnknown(f"OpenFGA did not answer a write ({type(error).__name__}).") from None
        if status != 200:
            refuse_write(status, answer)

    async def read(
        self, *, user: str | None = None, relation: str | None = None, object: str | None = None
    ) -> AsyncIterator[FgaTuple]:
        """The stored tuples that match, page by page with HIGHER_CONSISTENCY. Without a filter: all of the store.

        `object` may be only a type (`table:`) if `user` is given. Raises DecisionEngineUnavailable; what came until
        then is not the whole answer.
        """
        given = {"user": user, "relation": relation, "object": object}
        body: dict[str, Any] = {"page_size": _PAGE_SIZE, "consistency": "HIGHER_CONSISTENCY"}
        key = {name: value for name, value in given.items() if value is not None}
        if key:
            body["tuple_key"] = key
        while True:
            page = decoded(await self._ask("POST", "/read", body), Page)
            for found in page.tuples:
                yield found.key
            if not page.continuation_token:
                return
            if page.continuation_token == body.get("continuation_token"):
                raise DecisionEngineUnavailable("OpenFGA gave the same page of tuples twice.")
            body["continuation_token"] = page.continuation_token

    async def get(self, path: str, kind: type[Answer]) -> Answer:
        """What the store answers to `GET <path>`, for the other modules of this room. `path` begins with `/` and is
        encoded. Raises DecisionEngineUnavailable.
        """
        return decoded(await self._ask("GET", path, None), kind)

    async def ping(self) -> None:
        """Return if the server answers, takes the API key, has the store and may be asked by the model that serves.
        Raises DecisionEngineUnavailable.
        """
        if self._withheld is not None:
            raise DecisionEngineUnavailable(self._withheld)
        decoded(await self._ask("GET", "", None), Store)

    async def aclose(self) -> None:
        """Close the connections. A later call opens new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _check_chunk(
        self, model_id: str, chunk: Sequence[FgaTuple], contextual: Sequence[FgaTuple], context: Mapping[str, str]
    ) -> set[_Key]:
        """Those of one batch that hold. Raises DecisionEngineUnavailable after `timeout_s`."""
        shared: dict[str, Any] = {"context": context}
        if contextual:
            shared["contextual_tuples"] = {"tuple_keys": contextual}
        body = {
            "authorization_model_id": model_id,
            "consistency": "HIGHER_CONSISTENCY",
            "checks": [
                {"tuple_key": bare(check), "correlation_id": str(number), **shared}
                for number, check in enumerate(chunk)
            ],
        }
        answer = decoded(await self._ask("POST", "/batch-check", body), BatchAnswer).result
        if len(answer) != len(chunk):
            raise DecisionEngineUnavailable(f"OpenFGA was asked {len(chunk)} checks and answered {len(answer)}.")
        return {
            (check.user, check.relation, check.object)
            for number, check in enumerate(chunk)
            if holds(answer.get(str(number)), check)
        }

    async def _ask(self, method: str, path: str, body: Any) -> bytes:
        """The body of a 200 answer to a request that changes nothing, sent again once if the connection was dropped."""
        try:
            async with asyncio.timeout(self._timeout_s):
                try:
                    status, answer = await self._send(method, path, body)
                except (aiohttp.ServerDisconnectedError, ConnectionResetError, aiohttp.ClientOSError) as error:
                    if isinstance(error, aiohttp.ClientConnectorError):
                        raise
                    status, answer = await self._send(method, path, body)
        except TimeoutError:
            raise DecisionEngineUnavailable(f"OpenFGA did not answer within {self._timeout_s} s.") from None
        except (aiohttp.ClientError, OSError) as error:
            raise _unreachable(error) from None
        if status != 200:
            refuse(status, answer)
        return answer

    async def _send(self, method: str, path: str, body: Any) -> tuple[int, bytes]:
        async with self._request(method, path, body) as response:
            return response.status, await response.read()

    def _request(self, method: str, path: str, body: Any) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                headers=self._headers, connector=aiohttp.TCPConnector(ssl=self._tls or True)
            )
        data = None if body is None else msgspec.json.encode(body)
        # A redirect would carry the API key to wherever it points.
        return self._session.request(method, self._url + path, data=data, allow_redirects=False)


def _chunks(checks: Sequence[FgaTuple], size: int) -> list[Sequence[FgaTuple]]:
    return [checks[start : start + size] for start in range(0, len(checks), size)]


def _require_ulid(name: str, value: str) -> None:
    if _STORE_ID.fullmatch(value) is None:
        raise ValueError(f"The id of a {name} of OpenFGA is a ULID of 26 characters, not {value!r}.")


def _unreachable(error: Exception) -> DecisionEngineUnavailable:
    return DecisionEngineUnavailable(f"OpenFGA cannot be reached ({type(error).__name__}).")
