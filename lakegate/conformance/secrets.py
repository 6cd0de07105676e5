# SPDX-License-Identifier: Apache-2.0
"""Conformance kit for secret stores (`gateway.secret_stores.port.SecretStore`): the rules that every store must keep.

The kit writes a few secrets under new ids and deletes them again. It can run against a store that is in use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID, uuid4

from gateway.secret_stores.port import SecretStore, SecretUnreadable
from lakegate.conformance.rules import Broken, Rule, opened, require, run_kit

_LARGE: Final = 32 * 1024  # a service account's key with all its fields has less than 4 KiB
_CONCURRENT: Final = 20
_FIRST: Final = "first-content-of-the-kit"
_OTHER: Final = "other-content-of-the-kit"


async def _random_id() -> UUID:
    return uuid4()


@dataclass(frozen=True, slots=True)
class SecretSubject:
    """A store to be checked. `open` opens a new instance at each call. `new_id` returns an id that was never used.

    `name` is the name of the entry point. If a store accepts only ids with a row in its database, as the one in
    PostgreSQL does, it needs its own `new_id`.
    """

    name: str
    open: Callable[[], SecretStore]
    new_id: Callable[[], Awaitable[UUID]] = _random_id

    @asynccontextmanager
    async def written(self, *contents: bytes) -> AsyncIterator[tuple[SecretStore, list[UUID]]]:
        """Write each of `contents` under a new id. Yield (the store, the ids), and delete the ids after the block."""
        ids = [await self.new_id() for _ in contents]
        async with opened(self.open) as store:
            try:
                for id, content in zip(ids, contents, strict=True):
                    await store.put(id, content)
                yield store, ids
            finally:
                for id in ids:
                    await store.delete(id)


def content(value: str) -> bytes:
    """Return a secret as the gateway writes it: a JSON object in UTF-8."""
    return json.dumps({"type": "kit", "credential-type": "kit", "secret": value}, ensure_ascii=False).encode()


async def check_secret_store(subject: SecretSubject, *, passed: Callable[[str], None] = lambda _: None) -> None:
    """Check all rules of secret stores. `passed` is called with the name of each rule that holds.

    Raises ConformanceError with the first broken rule.
    """
    await run_kit(SECRET_RULES, subject, passed=passed)


async def _has_its_name(subject: SecretSubject) -> None:
    async with opened(subject.open) as store:
        require(isinstance(store, SecretStore), "the opened object lacks methods of the protocol SecretStore")
        require(store.name == subject.name, f"its name is {store.name!r} and must be {subject.name!r}")


async def _reports_that_it_works(subject: SecretSubject) -> None:
    async with opened(subject.open) as store:
        await store.check()


async def _returns_what_was_written(subject: SecretSubject) -> None:
    contents = [content("short"), content("größe 表 \n\t\"'\\ \u0000"), content("x" * _LARGE)]
    async with subject.written(*contents) as (store, ids):
        for id, expected in zip(ids, contents, strict=True):
            found = await store.get(id)
            require(found == expected, f"content of {len(expected)} bytes was read back with {len(found)} other bytes")


async def _keeps_content_after_a_restart(subject: SecretSubject) -> None:
    async with subject.written(content(_FIRST)) as (_, [id]), opened(subject.open) as second:
        require(await second.get(id) == content(_FIRST), "a second process reads other content")
    # The first store was closed after the deletion of the id, so the deletion must be durable as well.
    async with opened(subject.open) as third:
        await _require_missing(third, id, "a deleted id")


async def _repeats_a_write(subject: SecretSubject) -> None:
    async with subject.written(content(_FIRST)) as (store, [id]):
        await store.put(id, content(_FIRST))
        require(await store.get(id) == content(_FIRST), "a repeated write changed the content")


async def _never_replaces_content(subject: SecretSubject) -> None:
    async with subject.written(content(_FIRST)) as (store, [id]):
        try:
            await store.put(id, content(_OTHER))
        except Exception as error:  # the protocol defines no error: the store may raise any, or ignore the write
            for secret in (_FIRST, _OTHER):
                require(secret not in f"{error} {error!r}", "the message of its refusal contains a secret")
        require(await store.get(id) == content(_FIRST), "other content replaced that of an id")


async def _reports_a_missing_id(subject: SecretSubject) -> None:
    async with opened(subject.open) as store:
        await _require_missing(store, await subject.new_id(), "an id that was never written")


async def _deletes_completely(subject: SecretSubject) -> None:
    async with subject.written(content(_FIRST), content(_OTHER)) as (store, [id, other]):
        await store.delete(id)
        await _require_missing(store, id, "a deleted id")
        await store.delete(id)
        require(await store.get(other) == content(_OTHER), "the deletion of one id changed another")


async def _separates_concurrent_calls(subject: SecretSubject) -> None:
    contents = [content(f"secret-{number}") for number in range(_CONCURRENT)]
    ids = [await subject.new_id() for _ in contents]
    async with opened(subject.open) as store:
        try:
            await asyncio.gather(*map(store.put, ids, contents))
            found = await asyncio.gather(*map(store.get, ids))
        finally:
            await asyncio.gather(*map(store.delete, ids))
    require(found == contents, f"{_CONCURRENT} concurrent calls mixed the contents of their ids")


async def _check_changes_nothing(subject: SecretSubject) -> None:
    async with subject.written(content(_FIRST)) as (store, [id]):
        await store.check()
        require(await store.get(id) == content(_FIRST), "`check` changed the content of an id")


async def _require_missing(store: SecretStore, id: UUID, noun: str) -> None:
    try:
        await store.get(id)
    except SecretUnreadable:
        return
    except Exception as error:  # any other class would be reported to clients as an outage
        raise Broken(f"`get` of {noun} raised {type(error).__name__} and must raise SecretUnreadable") from error
    raise Broken(f"`get` of {noun} returned content and must raise SecretUnreadable")


SECRET_RULES: Final = (
    Rule("the name is that of the entry point", _has_its_name),
    Rule("a check succeeds", _reports_that_it_works),
    Rule("content is returned as it was written", _returns_what_was_written),
    Rule("a missing id raises SecretUnreadable", _reports_a_missing_id),
    Rule("a repeated write succeeds", _repeats_a_write),
    Rule("content is never replaced", _never_replaces_content),
    Rule("a deletion is complete and can be repeated", _deletes_completely),
    Rule("content and deletion are durable", _keeps_content_after_a_restart),
    Rule("concurrent calls do not mix", _separates_concurrent_calls),
    Rule("a check changes nothing", _check_changes_nothing),
)
"""The rules of secret stores, in the order of their checks."""
