# SPDX-License-Identifier: Apache-2.0
"""Entity tags: conditions under which a response is confirmed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.features.metadata.etags import CLIENT_MANAGED, METADATA_ONLY, Representation, parse_if_none_match
from gateway.iceberg.excerpts import SnapshotsMode
from gateway.obligations.kinds import CredentialLife
from gateway.obligations.merging import Obligations

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ANSWER = Representation(
    table_id=UUID(int=1),
    metadata_location="s3://b/t/metadata/00001.metadata.json",
    snapshots=SnapshotsMode.ALL,
    delegation="",
    principal="oidc~alice",
    role="",
    access="read",
    profile="w/1",
    obligations=b"",
)


def _tag(life: timedelta | None = timedelta(hours=1)) -> str:
    return ANSWER.tag(NOW, None if life is None else NOW + life)


def test_an_etag_is_confirmed_until_half_of_its_credential_lifetime() -> None:
    tag = _tag()
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=29, seconds=59)) == tag
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=30)) is None


def test_an_etag_of_long_lived_credentials_is_confirmed_for_an_hour_at_most() -> None:
    tag = _tag(timedelta(hours=12))
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=59)) == tag
    assert ANSWER.confirmed([tag], NOW + timedelta(hours=1)) is None


def test_an_etag_with_an_expired_credential_is_not_confirmed() -> None:
    assert ANSWER.confirmed([_tag(timedelta(seconds=-5))], NOW) is None


def test_an_etag_from_the_future_is_not_confirmed() -> None:
    assert ANSWER.confirmed([_tag()], NOW - timedelta(minutes=5)) is None


def test_an_etag_without_credentials_does_not_expire() -> None:
    tag = _tag(None)
    assert ANSWER.confirmed([tag], NOW + timedelta(days=400)) == tag


@pytest.mark.parametrize(
    "change",
    [
        {"table_id": UUID(int=2)},
        {"metadata_location": "s3://b/t/metadata/00002.metadata.json"},
        {"snapshots": SnapshotsMode.REFS},
        {"delegation": CLIENT_MANAGED},
        {"principal": "oidc~bob"},
        {"role": "r"},
        {"access": "read-write-delete"},
        {"profile": "w/2"},
        {"obligations": Obligations.of(CredentialLife(900)).fingerprint},
        {"restricted": True},
        {"labels": b"{}"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_input_of_the_response_changes_its_etag(change: dict[str, Any]) -> None:
    other = replace(ANSWER, **change)
    assert other.confirmed([_tag()], NOW) is None
    assert other.tag(NOW, None) != ANSWER.tag(NOW, None)


def test_an_etag_with_altered_times_is_not_confirmed() -> None:
    head, _, life = _tag().rpartition(".")
    assert ANSWER.confirmed([f'{head}.ffffff"'], NOW) is None
    assert ANSWER.confirmed([f'{head}.-"'], NOW) is None
    digest, issued = head.rsplit(".", 1)
    assert ANSWER.confirmed([f"{digest}.{int(issued, 16) - 1:x}.{life}"], NOW) is None


def test_a_star_confirms_only_responses_without_expiry() -> None:
    assert ANSWER.confirmed(None, NOW) is None
    assert replace(ANSWER, access=METADATA_ONLY).confirmed(None, NOW) is not None


def test_a_star_confirms_no_response_with_column_restrictions() -> None:
    """The client may hold an earlier response without restrictions."""
    for access in (METADATA_ONLY, CLIENT_MANAGED):
        changed = replace(ANSWER, access=access, restricted=True)
        assert changed.confirmed(None, NOW) is None
        assert changed.confirmed([changed.tag(NOW, None)], NOW) is not None


def test_one_matching_etag_of_many_suffices_and_strong_equals_weak() -> None:
    tag = _tag()
    strong = tag.removeprefix("W/")
    assert ANSWER.confirmed(['"x"', strong], NOW) == strong


@pytest.mark.parametrize(
    ("header", "tags"),
    [
        (None, ()),
        ("*", None),
        ('W/"a"', ('W/"a"',)),
        ('"a", W/"b,c" ,"d"', ('"a"', 'W/"b,c"', '"d"')),
        ("plain", ()),
        ('"a" "b"', ()),
        ("", ()),
    ],
)
def test_the_if_none_match_header_is_a_list_of_etags(header: str | None, tags: object) -> None:
    assert parse_if_none_match(header) == tags
