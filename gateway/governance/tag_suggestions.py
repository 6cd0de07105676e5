# SPDX-License-Identifier: Apache-2.0
"""Suggest tags for columns by their names and types. Pure.

A suggestion attaches nothing. It is a hint for a person who classifies a table: a name proves nothing about the values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from gateway.iceberg.types import ListType, MapType, NestedField, StructType, Type

_TEXTS: Final = frozenset({"string"})
_NUMBERS: Final = frozenset({"int", "long"})
_DATES: Final = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_FRACTIONS: Final = frozenset({"float", "double", "decimal"})
_BYTES: Final = frozenset({"binary", "fixed", "uuid"})

#: Limits of a request: columns with their fields, and characters of a name.
_MOST_FIELDS: Final = 10_000
_LONGEST_NAME: Final = 256


class _Rule(msgspec.Struct, frozen=True):
    """A tag with the phrases of column names that suggest it, as words in lower case, and the types that fit."""

    tag: str
    phrases: frozenset[str]
    types: frozenset[str]


def _rule(tag: str, phrases: str, *types: frozenset[str]) -> _Rule:
    return _Rule(tag, frozenset(phrases.split()), frozenset().union(*types))


_RULES: Final = (
    _rule("pii.email", "email e_mail mail mail_address email_address emailaddress", _TEXTS),
    _rule("pii.phone", "phone telephone mobile fax msisdn phone_number phonenumber cell_phone", _TEXTS, _NUMBERS),
    _rule(
        "pii.name",
        "first_name last_name full_name given_name family_name middle_name maiden_name firstname lastname fullname "
        "surname forename customer_name person_name",
        _TEXTS,
    ),
    _rule(
        "pii.birth-date",
        "birth_date birthdate date_of_birth dob birthday birth_day year_of_birth birth_year",
        _DATES,
        _TEXTS,
        _NUMBERS,
    ),
    _rule(
        "pii.national-id",
        "ssn social_security social_security_number national_id nin passport passport_number tax_id driver_license "
        "drivers_license",
        _TEXTS,
        _NUMBERS,
    ),
    _rule("pii.bank-account", "iban bank_account bank_account_number account_iban bic_iban", _TEXTS),
    _rule("pii.payment-card", "card_number credit_card creditcard cc_number card_pan pan", _TEXTS, _NUMBERS),
    _rule(
        "pii.address",
        "address street street_name street_address home_address postal_address postal_code postcode zip zip_code "
        "zipcode house_number",
        _TEXTS,
        _NUMBERS,
    ),
    _rule(
        "pii.ip-address",
        "ip ip_address ip_addr ipaddress ipv4 ipv6 client_ip remote_addr remote_address",
        _TEXTS,
        _NUMBERS,
        _BYTES,
    ),
    _rule("pii.location", "latitude longitude lat lon lng geolocation gps", _FRACTIONS, _TEXTS),
    _rule("pii.gender", "gender sex", _TEXTS),
    _rule("secret", "password passwd pwd password_hash secret api_key access_token", _TEXTS, _BYTES),
)
_LONGEST_PHRASE: Final = max(phrase.count("_") + 1 for rule in _RULES for phrase in rule.phrases)
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")


class Suggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A tag for a column. `because` is the full name of the field that suggests it: the column or a field inside.

    `whole_name` is True if the whole name matches, and False if only a part of it does.
    """

    field_id: int
    column: str
    tag: str
    because: str
    whole_name: bool


def suggestions_for(columns: Sequence[NestedField]) -> list[Suggestion]:
    """Return the suggested tags of top-level columns, in their order. Fields inside of a column count for it.

    Each tag is suggested once for a column. Only the first 10,000 fields are examined.
    """
    found: dict[tuple[int, str], Suggestion] = {}
    examined = 0
    for column in columns:
        for path, name, kind in _fields(column.name, column.name, column.type):
            examined += 1
            if examined > _MOST_FIELDS:
                return list(found.values())
            match = _match(name, kind)
            if match is not None:
                made = Suggestion(
                    field_id=column.id, column=column.name, tag=match[0], because=path, whole_name=match[1]
                )
                found.setdefault((column.id, made.tag), made)
    return list(found.values())


def _fields(path: str, name: str, kind: Type) -> Iterable[tuple[str, str, str]]:
    """Yield (full name, name, type) of a field and the fields inside. An element of a list has the list's name."""
    match kind:
        case StructType(fields=fields):
            for field in fields:
                yield from _fields(f"{path}.{field.name}", field.name, field.type)
        case ListType(element=element):
            yield from _fields(path, name, element)
        case MapType(value=value):
            yield from _fields(path, name, value)
        case str():
            yield path, name, kind.partition("(")[0].partition("[")[0]


def _match(name: str, kind: str) -> tuple[str, bool] | None:
    """Return (tag, True if the whole name matches) of the longest phrase in a name, or None."""
    words = [word.lower() for word in _WORD.findall(name[:_LONGEST_NAME])]
    for length in range(min(len(words), _LONGEST_PHRASE), 0, -1):
        for start in range(len(words) - length + 1):
            phrase = "_".join(words[start : start + length])
            for rule in _RULES:
                if phrase in rule.phrases and kind in rule.types:
                    return rule.tag, length == len(words)
    return None
