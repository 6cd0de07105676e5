# SPDX-License-Identifier: Apache-2.0
"""Common form of the conformance kits. A kit is a list of rules, each with a function that raises an error if it is
broken.

A kit is run like this::

    await run_kit(SECRET_RULES, SecretSubject(open_store))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeVar

Subject = TypeVar("Subject")

RULE_SECONDS: Final = 60.0
"""The limit of one rule, so that an extension that hangs fails instead of waiting for ever."""


class ConformanceError(Exception):
    """A rule is broken. `rule` is its name. `detail` tells what the extension did and what the rule requires."""

    def __init__(self, rule: str, detail: str) -> None:
        super().__init__(f"rule {rule!r} is broken: {detail}")
        self.rule = rule
        self.detail = detail


class Broken(Exception):
    """Raised by a check if the rule does not hold. The message has the reason."""


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject]):
    """A rule: its name, which reports and tests use, and its check, which raises `Broken`."""

    name: str
    check: Callable[[Subject], Awaitable[None]]


class _Closable(Protocol):
    """Has the method `close`, as extensions of all kinds do."""

    async def close(self) -> None: ...


Extension = TypeVar("Extension", bound=_Closable)


@asynccontextmanager
async def opened(open: Callable[[], Extension]) -> AsyncIterator[Extension]:
    """Yield the extension that `open` returns, and close it after the block."""
    extension = open()
    try:
        yield extension
    finally:
        await extension.close()


def require(holds: bool, detail: str) -> None:
    """Raise Broken with `detail` unless `holds`."""
    if not holds:
        raise Broken(detail)


async def run_kit(
    rules: Sequence[Rule[Subject]],
    subject: Subject,
    *,
    passed: Callable[[str], None] = lambda _: None,
    seconds: float = RULE_SECONDS,
) -> tuple[str, ...]:
    """Check all rules in order, and return their names. `passed` is called with the name of each rule that holds.

    Raises ConformanceError for the first broken rule. A rule is also broken if the extension raises an unexpected
    error, or the check takes longer than `seconds`.
    """
    for rule in rules:
        try:
            async with asyncio.timeout(seconds):
                await rule.check(subject)
        except Broken as broken:
            raise ConformanceError(rule.name, str(broken)) from broken
        except TimeoutError as late:
            raise ConformanceError(rule.name, f"the extension did not finish within {seconds:g} seconds") from late
        except Exception as error:  # an extension's own code runs here: whatever it raises breaks the rule
            raise ConformanceError(rule.name, f"the extension raised {type(error).__name__}: {error}") from error
        passed(rule.name)
    return tuple(rule.name for rule in rules)
