# SPDX-License-Identifier: Apache-2.0
"""Suggested tags: by names and types of columns, and by sampled values with checksums."""

from __future__ import annotations

import pytest

from gateway.features.tags.tag_suggestions import (
    MOST_VALUES,
    is_card_number,
    is_iban,
    is_ip_address,
    is_phone_number,
    suggestions_for,
    suggestions_of_samples,
)
from lakegate.restrictions.literals import ListType, NestedField, StructType, Type


def field(name: str, kind: Type = "string", id: int = 1) -> NestedField:
    return NestedField(id=id, name=name, required=False, type=kind)


@pytest.mark.parametrize(
    ("name", "kind", "tag"),
    [
        ("email", "string", "pii.email"),
        ("customerEmail", "string", "pii.email"),
        ("mail_address", "string", "pii.email"),
        ("ip_address", "string", "pii.ip-address"),
        ("HOME_ADDRESS", "string", "pii.address"),
        ("DateOfBirth", "date", "pii.birth-date"),
        ("dob", "timestamptz", "pii.birth-date"),
        ("SSN", "string", "pii.national-id"),
        ("iban", "string", "pii.bank-account"),
        ("card_number", "long", "pii.payment-card"),
        ("lat", "decimal(9, 6)", "pii.location"),
        ("client_ip", "fixed[16]", "pii.ip-address"),
        ("password_hash", "binary", "secret"),
        ("email", "boolean", None),
        ("is_email_verified", "boolean", None),
        ("shipping", "string", None),
        ("recipe", "string", None),
        ("emails_sent", "int", None),
        ("company_name", "string", None),
        ("_", "string", None),
        ("", "string", None),
    ],
)
def test_name_and_type_suggest_a_tag(name: str, kind: str, tag: str | None) -> None:
    assert [each.tag for each in suggestions_for([field(name, kind)])] == ([] if tag is None else [tag])


def test_nested_fields_suggest_tags_for_their_column() -> None:
    inner = (field("street", id=3), field("email", id=4), field("zip", id=5))
    column = field("contact", ListType(element_id=2, element=StructType(fields=inner), element_required=True))
    found = suggestions_for([column])
    assert [(each.field_id, each.column, each.tag, each.because) for each in found] == [
        (1, "contact", "pii.address", "contact.street"),
        (1, "contact", "pii.email", "contact.email"),
    ]


def test_part_of_a_name_is_told_from_the_whole_name() -> None:
    whole, part = suggestions_for([field("email"), field("backup_email", id=2)])
    assert (whole.whole_name, part.whole_name) == (True, False)


def test_number_of_examined_fields_is_bounded() -> None:
    many = [field("email", id=number) for number in range(10_001)]
    assert len(suggestions_for(many)) == 10_000


@pytest.mark.parametrize(
    ("text", "valid"),
    [("4111 1111 1111 1111", True), ("4111111111111112", False), ("0000000000000000", False), ("411111111111", False)],
)
def test_card_number_needs_its_checksum(text: str, valid: bool) -> None:
    assert is_card_number(text) is valid


@pytest.mark.parametrize(
    ("text", "valid"),
    [("DE89 3704 0044 0532 0130 00", True), ("GB82WEST12345698765432", True), ("DE88370400440532013000", False)],
)
def test_iban_needs_its_checksum(text: str, valid: bool) -> None:
    assert is_iban(text) is valid


@pytest.mark.parametrize(
    ("text", "phone", "address"),
    [
        ("+49 30 901820", True, False),
        ("(030) 901820", True, False),
        ("1234567890", False, False),
        ("10.0.0.1", False, True),
        ("2001:db8::1", False, True),
        ("2024-01-31", False, False),
    ],
)
def test_phone_numbers_and_addresses_are_not_confused(text: str, phone: bool, address: bool) -> None:
    assert (is_phone_number(text), is_ip_address(text)) == (phone, address)


def test_sample_suggests_the_tag_of_most_values() -> None:
    mails = [f"user{number}@example.org" for number in range(9)]
    found = suggestions_of_samples(
        {
            "contact": [*mails, "unknown", "", " "],
            "mixed": [*mails[:5], *map(str, range(5))],
            "few": mails[:4],
            "cards": ["4111 1111 1111 1111", "5500005555555559"] * 3,
            "numbers": [str(number) for number in range(100)],
        }
    )
    assert [(each.column, each.tag, each.examined, each.share) for each in found] == [
        ("contact", "pii.email", 10, 0.9),
        ("cards", "pii.payment-card", 6, 1.0),
    ]


def test_sample_is_bounded_in_values_and_in_length() -> None:
    [found] = suggestions_of_samples({"a": (f"u{number}@example.org" for number in range(MOST_VALUES + 7))})
    assert found.examined == MOST_VALUES
    assert suggestions_of_samples({"a": ["a" * 300 + "@example.org"] * 10}) == []
