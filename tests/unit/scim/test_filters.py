# SPDX-License-Identifier: Apache-2.0
"""SCIM filters: equality comparisons, or a refusal; a filter is never widened."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scim.errors import InvalidFilter
from gateway.scim.filters import GROUPS, USERS, Condition, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('userName eq "Ann"', [Condition("username", "Ann")]),
        ('USERNAME EQ "a\\"b"', [Condition("username", 'a"b')]),
        ('urn:ietf:params:scim:schemas:core:2.0:User:userName eq "x"', [Condition("username", "x")]),
        ("active eq TRUE", [Condition("active", True)]),
        (' externalId  eq "1" AND id eq "2" ', [Condition("externalid", "1"), Condition("id", "2")]),
        ('displayName eq "a and b eq c"', [Condition("displayname", "a and b eq c")]),
    ],
)
def test_filters_of_common_directories_are_parsed(text: str, expected: list[Condition]) -> None:
    assert list(parse(text, USERS)) == expected


def test_member_filters_have_three_forms() -> None:
    for text in ('members eq "x"', 'members.value eq "x"', 'members[value eq "x"]'):
        assert parse(f'id eq "g" and {text}', GROUPS) == (Condition("id", "g"), Condition("members", "x"))


@pytest.mark.parametrize(
    "text",
    [
        *("", "userName", 'userName co "a"', 'userName eq "a" or id eq "b"', 'not (userName eq "a")', 'title eq "x"'),
        *('userName eq "a"id eq "b"', 'userName eq "a" and', 'userName eq "\\x"', 'userName eq "\\u0000"', "id pr"),
        *(
            'active eq "true"',
            "userName eq true",
            'members[value eq "x"]',
            "id eq 1",
            'id eq "a" and ' * 6 + 'id eq "a"',
        ),
        'userName eq "' + "x" * 3000 + '"',
    ],
)
def test_every_other_filter_is_refused(text: str) -> None:
    with pytest.raises(InvalidFilter):
        parse(text, USERS)


@given(st.text())
def test_arbitrary_filter_text_is_parsed_or_refused(text: str) -> None:
    for known in (USERS, GROUPS):
        try:
            assert all(each.attribute in known for each in parse(text, known))
        except InvalidFilter:
            continue


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=200))
def test_every_filter_value_round_trips(value: str) -> None:
    assert parse(f"userName eq {json.dumps(value)}", USERS) == (Condition("username", value),)
