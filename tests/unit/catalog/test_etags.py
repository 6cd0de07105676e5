# SPDX-License-Identifier: Apache-2.0
"""Entity tags: what confirms an answer, and what never may."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.catalog.etags import CLIENT_MANAGED, METADATA_ONLY, Representation, parse_if_none_match
from gateway.iceberg.referenced import SnapshotsMode
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


def test_an_answer_is_confirmed_for_half_of_its_credentials_life_and_not_a_moment_longer() -> None:
    tag = _tag()
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=29, seconds=59)) == tag
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=30)) is None


def test_long_lived_credentials_are_confirmed_for_an_hour_at_most() -> None:
    tag = _tag(timedelta(hours=12))
    assert ANSWER.confirmed([tag], NOW + timedelta(minutes=59)) == tag
    assert ANSWER.confirmed([tag], NOW + timedelta(hours=1)) is None


def test_an_expired_credential_confirms_nothing() -> None:
    assert ANSWER.confirmed([_tag(timedelta(seconds=-5))], NOW) is None


def test_a_tag_from_the_future_confirms_nothing() -> None:
    assert ANSWER.confirmed([_tag()], NOW - timedelta(minutes=5)) is None


def test_an_answer_without_credentials_does_not_age() -> None:
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
def test_whatever_the_answer_depends_on_changes_its_tag(change: dict[str, Any]) -> None:
    other = replace(ANSWER, **change)
    assert other.confirmed([_tag()], NOW) is None
    assert other.tag(NOW, None) != ANSWER.tag(NOW, None)


def test_a_tag_whose_times_were_changed_confirms_nothing() -> None:
    head, _, life = _tag().rpartition(".")
    assert ANSWER.confirmed([f'{head}.ffffff"'], NOW) is None
    assert ANSWER.confirmed([f'{head}.-"'], NOW) is None
    digest, issued = head.rsplit(".", 1)
    assert ANSWER.confirmed([f"{digest}.{int(issued, 16) - 1:x}.{life}"], NOW) is None


def test_a_star_confirms_only_answers_that_do_not_age() -> None:
    assert ANSWER.confirmed(None, NOW) is None
    assert replace(ANSWER, access=METADATA_ONLY).confirmed(None, NOW) is not None


def test_a_star_confirms_no_answer_that_tells_what_to_hold_back() -> None:
    """The client may have been told before that nothing is."""
    for access in (METADATA_ONLY, CLIENT_MANAGED):
        told = replace(ANSWER, access=access, restricted=True)
        assert told.confirmed(None, NOW) is None
        assert told.confirmed([told.tag(NOW, None)], NOW) is not None


def test_one_of_many_tags_is_enough_and_the_strong_form_compares_equal() -> None:
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
def test_the_header_is_a_list_of_tags(header: str | None, tags: object) -> None:
    assert parse_if_none_match(header) == tags
