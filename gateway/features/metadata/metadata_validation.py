# SPDX-License-Identifier: Apache-2.0
"""Validate metadata files of callers without delaying other requests.

The parser is one call into a library that holds the GIL, so a thread does not help: a file of 8 MB takes 200 ms, one of
64 MB takes seconds. Small files are validated in this process, in a thread. Each large file is validated by a
subprocess that exits afterwards and so frees its memory.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec

import gateway
from gateway.iceberg import errors
from gateway.iceberg.errors import BadRequestException, CatalogError, MetadataTooLarge, TooManyRequests
from gateway.iceberg.limits import Limits, refuse_large_document
from gateway.scope.location import Location
from gateway.storage.examine import SECONDS, Answer, Examined, Kind, Question, Refused, examine

SMALL_BYTES: Final = 1024 * 1024
"""The largest document that is validated in this process. It takes 10 to 40 ms, even if it is malicious."""

_AT_ONCE: Final = 2
"""The number of callers' files that a process holds in memory at a time. Further requests wait."""

_PATIENCE_SECONDS: Final = 30.0


class MetadataValidator:
    """Validates documents against `limits`. `small_bytes` is the largest size that is validated in this process."""

    def __init__(self, limits: Limits, *, small_bytes: int = SMALL_BYTES) -> None:
        self._limits = limits
        self._small_bytes = small_bytes
        self._slots = asyncio.Semaphore(_AT_ONCE)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot from before the file is read until it is validated. Raises TooManyRequests (429) if no slot
        becomes free within 30 seconds.
        """
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise TooManyRequests("Too many metadata files are being validated at the moment. Try again.") from None
        try:
            yield
        finally:
            self._slots.release()

    async def validated(self, kind: Kind, document: bytes, *, file: Location, profile: bytes) -> Examined:
        """Return the validated document as it will be stored. Raises MetadataTooLarge and the other errors of
        `examine`.
        """
        refuse_large_document(document, self._limits, kind.capitalize())
        question = Question(kind=kind, document=document, file=file.text, profile=profile, limits=self._limits)
        if len(document) <= self._small_bytes:
            return await asyncio.to_thread(examine, question)
        answer = await _examine_in_subprocess(question)
        if isinstance(answer, Refused):
            raise _error(answer)
        return answer


async def _examine_in_subprocess(question: Question) -> Answer:
    """Validate in a subprocess, which inherits no environment except the path of the code."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-m",
        "gateway.storage.examine",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={"PYTHONPATH": str(Path(gateway.__file__).parent.parent)},
    )
    try:
        async with asyncio.timeout(2 * SECONDS):
            answer, _ = await process.communicate(msgspec.msgpack.encode(question))
    except TimeoutError:
        answer = b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise MetadataTooLarge(
            f"Reading the metadata file took more than {SECONDS} seconds, or too much memory. Make the metadata "
            "smaller, for example by expiring snapshots, and try again."
        )
    decoded: Answer = msgspec.msgpack.decode(answer, type=Answer)
    return decoded


def _error(refused: Refused) -> CatalogError:
    """Return the error that the subprocess reported by its type and message."""
    kind = getattr(errors, refused.type, BadRequestException)
    return kind(refused.message) if issubclass(kind, CatalogError) else BadRequestException(refused.message)
