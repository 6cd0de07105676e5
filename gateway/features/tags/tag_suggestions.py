# SPDX-License-Identifier: Apache-2.0
"""Suggest tags for columns by their names, types and sampled values. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final

import msgspec

from lakegate.restrictions.literals import ListType, MapType, NestedField, StructType, Type

_TEXTS: Final = frozenset({"string"})
_NUMBERS: Final = frozenset({"int", "long"})
_DATES: Final = frozenset({"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"})
_FRACTIONS: Final = frozenset({"float", "double", "decimal"})
_BYTES: Final = frozenset({"binary", "fixed", "uuid"})

#: Limits of a request: columns with their fields, and characters of a name.
_MOST_FIELDS: Final = 10_000
_LONGEST_NAME: Final = 256


class _Rule(msgspec.Struct, frozen=True):
    """A tag, the phrases (lower-case words) in column names that suggest it, and the types of columns that it fits."""

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
    """A suggested tag of a column. `because` is the full name of the field that suggests it: the column or a field
    inside it.

    `whole_name` is True if the whole name matches, and False if only a part of it does.
    """

    field_id: int
    column: str
    tag: str
    because: str
    whole_name: bool


def suggestions_for(columns: Sequence[NestedField]) -> list[Suggestion]:
    """Return the suggested tags of top-level columns, in the order of the columns. Fields inside a column count for it.

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
    """Yield (full name, name, type) of a field and of all fields inside it. An element of a list has the name of the
    list.
    """
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
    """Return (tag, True if the whole name matches) for the longest phrase that the name contains, or None."""
    words = [word.lower() for word in _WORD.findall(name[:_LONGEST_NAME])]
    for length in range(min(len(words), _LONGEST_PHRASE), 0, -1):
        for start in range(len(words) - length + 1):
            phrase = "_".join(words[start : start + length])
            for rule in _RULES:
                if phrase in rule.phrases and kind in rule.types:
                    return rule.tag, length == len(words)
    return None


#: Only this many values of a column are examined. Values longer than `_LONGEST` never match, which bounds the time of
#: the patterns.
MOST_VALUES: Final = 10_000
_LONGEST: Final = 254

#: A tag is suggested only if a column has at least this number of values, and at least this share of the values match.
_LEAST_VALUES: Final = 5
_LEAST_SHARE: Final = 0.8

_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[A-Za-z0-9.-]{1,185}\.[A-Za-z]{2,24}", re.ASCII)
_PHONE: Final = re.compile(r"(?:\+\d|\(\d|0)[\d ()./-]{5,24}\d", re.ASCII)
_SSN: Final = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}", re.ASCII)
_IBAN: Final = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", re.ASCII)
_CARD: Final = re.compile(r"\d{13,19}", re.ASCII)


class SampleSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A suggested tag of a column, and the share of the examined values that match it."""

    column: str
    tag: str
    examined: int
    share: float


def suggestions_of_samples(samples: Mapping[str, Iterable[str]]) -> list[SampleSuggestion]:
    """Return the suggested tag of each column, by sampled values. Empty values are ignored.

    A tag is suggested if at least four fifths of at least five values match. The rule with the largest share wins, or
    the first of several.
    """
    found = (_of_column(column, values) for column, values in samples.items())
    return [each for each in found if each is not None]


def _of_column(column: str, values: Iterable[str]) -> SampleSuggestion | None:
    matching = dict.fromkeys(_SAMPLE_RULES, 0)
    examined = 0
    for value in values:
        text = value.strip()
        if not text:
            continue
        if examined == MOST_VALUES:
            break
        examined += 1
        if len(text) <= _LONGEST:
            for tag, rule in _SAMPLE_RULES.items():
                matching[tag] += rule(text)
    tag = max(matching, key=lambda each: matching[each])
    if examined < _LEAST_VALUES or matching[tag] < _LEAST_SHARE * examined:
        return None
    return SampleSuggestion(column=column, tag=tag, examined=examined, share=round(matching[tag] / examined, 3))


def is_card_number(text: str) -> bool:
    """Return True for 13 to 19 digits, spaces and hyphens aside, with a valid checksum (ISO/IEC 7812-1, Luhn)."""
    digits = text.replace(" ", "").replace("-", "")
    if _CARD.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        number = int(digit) * (1 + place % 2)
        total += number - 9 if number > 9 else number
    return total % 10 == 0


def is_iban(text: str) -> bool:
    """Return True for a bank account number with a valid checksum (ISO 13616-1, modulo 97)."""
    compact = text.replace(" ", "").upper()
    if _IBAN.fullmatch(compact) is None:
        return False
    return int("".join(str(int(char, 36)) for char in compact[4:] + compact[:4])) % 97 == 1


def is_ip_address(text: str) -> bool:
    """Return True for an IPv4 or IPv6 address."""
    if "." not in text and ":" not in text:
        return False
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def is_phone_number(text: str) -> bool:
    """Return True for 7 to 15 digits that begin as a telephone number does: with a plus sign, a bracket or a zero."""
    digits = sum(char.isdigit() for char in text)
    return 7 <= digits <= 15 and _PHONE.fullmatch(text) is not None and not is_ip_address(text)


_SAMPLE_RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    "pii.email": lambda text: _EMAIL.fullmatch(text) is not None,
    "pii.bank-account": is_iban,
    "pii.payment-card": is_card_number,
    "pii.national-id": lambda text: _SSN.fullmatch(text) is not None,
    "pii.ip-address": is_ip_address,
    "pii.phone": is_phone_number,
}
