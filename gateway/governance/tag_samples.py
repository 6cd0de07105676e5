# SPDX-License-Identifier: Apache-2.0
"""Suggest tags for columns by sampled values: patterns, and checksums of card and bank account numbers. Pure.

The command `lakegate tag suggest --sample` uses it on the machine of the user: values are never sent to the gateway.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Final

import msgspec

#: Only this many values of a column are examined. Longer values never match, which bounds the time of the patterns.
MOST_VALUES: Final = 10_000
_LONGEST: Final = 254

#: Least number of values of a column, and the least share of them that must match.
_LEAST_VALUES: Final = 5
_LEAST_SHARE: Final = 0.8

_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[A-Za-z0-9.-]{1,185}\.[A-Za-z]{2,24}", re.ASCII)
_PHONE: Final = re.compile(r"(?:\+\d|\(\d|0)[\d ()./-]{5,24}\d", re.ASCII)
_SSN: Final = re.compile(r"(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}", re.ASCII)
_IBAN: Final = re.compile(r"[A-Z]{2}\d{2}[A-Z0-9]{11,30}", re.ASCII)
_CARD: Final = re.compile(r"\d{13,19}", re.ASCII)


class SampleSuggestion(msgspec.Struct, frozen=True, kw_only=True):
    """A tag for a column, and the share of the examined values that match it."""

    column: str
    tag: str
    examined: int
    share: float


def suggestions_of_samples(samples: Mapping[str, Iterable[str]]) -> list[SampleSuggestion]:
    """Return the suggested tag of each column, by the values of its sample. Empty values are ignored.

    A column needs at least five values, of which four fifths match. The first rule with the largest share is used.
    """
    found = (_of_column(column, values) for column, values in samples.items())
    return [each for each in found if each is not None]


def _of_column(column: str, values: Iterable[str]) -> SampleSuggestion | None:
    matching = dict.fromkeys(_RULES, 0)
    examined = 0
    for value in values:
        text = value.strip()
        if not text:
            continue
        if examined == MOST_VALUES:
            break
        examined += 1
        if len(text) <= _LONGEST:
            for tag, rule in _RULES.items():
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


_RULES: Final[Mapping[str, Callable[[str], bool]]] = {
    "pii.email": lambda text: _EMAIL.fullmatch(text) is not None,
    "pii.bank-account": is_iban,
    "pii.payment-card": is_card_number,
    "pii.national-id": lambda text: _SSN.fullmatch(text) is not None,
    "pii.ip-address": is_ip_address,
    "pii.phone": is_phone_number,
}
