# SPDX-License-Identifier: Apache-2.0
"""Wrong extensions of the form that passes a first look: each of them works for one careful caller."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from uuid import UUID

import msgspec
from lakegate_folders import (  # type: ignore[import-not-found]  # the tests install it
    authorizers,
    events,
    secrets,
    storage,
    verifiers,
)

from gateway.access.actor import Actor
from gateway.access.ports import Question
from gateway.events.port import Event
from gateway.scope.errors import InvalidStorageProfile
from gateway.storage.provider import Provider
from gateway.verification.port import Approved, ProposedChange, Verdict


class ReplacingSecrets(secrets.FolderSecrets):  # type: ignore[misc]  # the base class is installed by tests
    """Replace the content of an id, so a repeated request of an older credential wins."""

    name = "broken"

    async def put(self, id: UUID, plain: bytes) -> None:
        """Replace the file."""
        await self.delete(id)
        await super().put(id, plain)


class AllowsUnknown(authorizers.Freeze):  # type: ignore[misc]  # the base class is installed by tests
    """Allow everything if one of the questions is allowed."""

    name = "broken"

    async def check(self, actor: Actor, questions: Sequence[Question], **more: Any) -> list[bool]:
        """Return the most favourable answer for all questions."""
        answers = await super().check(actor, questions, **more)
        return [any(answers)] * len(answers)


class LosingSink(events.FolderSink):  # type: ignore[misc]  # the base class is installed by tests
    """Skip an event that is too large without an error, so it is lost unnoticed."""

    async def send(self, events: Sequence[Event]) -> None:
        """Store the small events."""
        await super().send([each for each in events if len(each.data) < 1_000_000])


class ForgetfulVerifier(verifiers.Calendar):  # type: ignore[misc]  # the base class is installed by tests
    """Assume that each table has a state before the change."""

    async def verify(self, change: ProposedChange) -> Verdict:
        """Approve a change that keeps the document."""
        assert change.before is not None
        return Approved()


def open_store() -> Any:
    """Return the secret store."""
    right = secrets.open_store()
    return ReplacingSecrets(right._folder)


def open_authorizer() -> Any:
    """Return the authorizer."""
    right = authorizers.open_authorizer()
    return AllowsUnknown(right._folder)


def open_sink(name: str, settings: object) -> Any:
    """Return the event sink."""
    right = events.open_sink(name, settings)
    return LosingSink(name, right._file.parent)


def open_verifier(name: str, options: Mapping[str, str]) -> Any:
    """Return the verifier."""
    right = verifiers.open_calendar(name, options)
    return ForgetfulVerifier(name, right._folder)


class LooseProfile(storage.FolderProfile, frozen=True, kw_only=True, tag="broken"):  # type: ignore[misc, call-arg]  # as above
    """Accept locations outside of the folder of the warehouse."""

    provider: ClassVar[str] = "broken"

    def base_location(self) -> Any:
        """Return the folder."""
        return SCHEME.parse(f"broken://{self.volume}/{self.path}", escapes_known=True)

    def parse_location(self, text: str) -> Any:
        """Parse a location. The comparison with the folder is missing."""
        return SCHEME.parse(text, escapes_known=True)


SCHEME = dataclasses.replace(storage.SCHEME, names=("broken",))


def provider() -> Provider:
    """Return the storage provider."""

    def decode(fields: dict[str, Any], rules: Any) -> Any:
        try:
            return msgspec.convert(fields, type=LooseProfile)
        except msgspec.ValidationError as error:
            raise InvalidStorageProfile(f"Invalid storage profile: {error}") from None

    right: Provider = storage.provider()
    return dataclasses.replace(right, profile=LooseProfile, scheme=SCHEME, decode_profile=decode)
