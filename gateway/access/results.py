# SPDX-License-Identifier: Apache-2.0
"""Results of use cases beside the body: the ETag of a response, and whether a change restricts its own caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from gateway.iceberg.wire import LoadTableResult

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Tagged:
    """A response with its ETag. `body` is None if the client's copy is still valid (304)."""

    etag: str
    body: LoadTableResult | None


Restricts = Literal["caller", "unknown"]
"""The value of the header. `unknown`: OpenFGA did not answer after the change was made."""


@dataclass(frozen=True, slots=True)
class Stated(Generic[Answer]):
    """The body of a response to a change, and the value of the header about restrictions; None for no header."""

    body: Answer
    restricts: Restricts | None
