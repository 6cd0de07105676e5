# SPDX-License-Identifier: Apache-2.0
"""Replace what differs from run to run in recorded requests and answers, and everything secret, by fixed values.

Ids become numbered ids in the order of their appearance, so that equal ids stay equal within one example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

#: The first groups of every id in the examples. A test refuses other ids.
ID: Final = "01a1fe72-4e99-725d-80d8"

#: Replacements inside of texts, in this order: addresses, times, names that tests number, long digests.
_TEXTS: Final = (
    (re.compile(r"https?://(127\.0\.0\.1|localhost)(:\d+)?"), "https://lakegate.example.com"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"), "2026-11-02T09:30:00Z"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(?!:)"), "2026-11-02T09:30"),
    (re.compile(r"\bns(_\d+){2}(?!\d)"), "sales"),
    (re.compile(r"\bt(_\d+){2}(?!\d)"), "orders"),
    (re.compile(r"(_\d+){2}(?!\d)|-\d{3,}-\d+\b"), ""),
    (re.compile(r"\bstranger\b"), "alice"),
    (re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b"), "01K92KT4Z8Q7F3V5N6M1R0D2XC"),
    (re.compile(r"\b1\d{12}\b"), "1793612200000"),
    (re.compile(r"\b[0-9a-f]{32,}\b"), "9f86d081884c7d659a2feaa0c55ad015"),
    (re.compile(r"\beyJ[\w-]+(\.[\w-]+){1,2}"), "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.c2lnbmF0dXJl"),
)

_SECRET: Final = re.compile(
    r"secret|password|access-key|session-token|signature|authorization$|x-amz|credential-ref", re.I
)
_TOKEN: Final = re.compile(r"page-?token$", re.I)
_MASK: Final = "…"

#: Numbers that are times in milliseconds or random.
_LARGE: Final = 10**11
_MILLISECONDS: Final = 1_793_612_200_000
_DURATION: Final = 12
_RANDOM: Final = 3_051_729_675_574_597_004

#: The largest number of elements of a list in an example.
_ELEMENTS: Final = 2


def masked(value: Any, ids: dict[str, str] | None = None, key: str = "") -> Any:
    """Return a JSON value without ids, times, addresses and secrets of its run.

    `ids` has the masked ids of an example by the real ones. `key` is the key of the value in its parent.
    """
    ids = {} if ids is None else ids
    match value:
        case dict():
            return _masked_members(value, ids)
        case list():
            return [masked(each, ids, key) for each in value[:_ELEMENTS]]
        case bool():
            return value
        case int() if abs(value) >= _LARGE:
            return _MILLISECONDS if value < 10**14 else _RANDOM
        case int() if key.endswith("duration-ms"):
            return _DURATION
        case float():
            return round(value, 1)
        case str():
            return _text(value, ids, key)
        case _:
            return value


def _masked_members(value: Mapping[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    return {_text(key, ids, ""): masked(each, ids, key) for key, each in value.items()}


def _text(text: str, ids: dict[str, str], key: str) -> str:
    if text and (_SECRET.search(key) or _TOKEN.search(key)):
        return _MASK
    for pattern, replacement in _TEXTS[:1]:
        text = pattern.sub(replacement, text)
    text = _UUID.sub(lambda found: ids.setdefault(found[0], f"{ID}-{len(ids) + 1:012x}"), text)
    for pattern, replacement in _TEXTS[1:]:
        text = pattern.sub(replacement, text)
    return text
