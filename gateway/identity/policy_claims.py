# SPDX-License-Identifier: Apache-2.0
"""Claims of a verified token that row filters may use. The settings of the token's provider name their paths.

A claim is kept completely or not at all: with a part of its values, a filter could show more rows. A claim that is not
kept has no value, and every test with it is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog

from gateway.identity.claims import NOT_AN_IDENTITY, Claims, find, has_invisible

_log = structlog.get_logger("identity.policy_claims")

PolicyClaims = tuple[tuple[str, tuple[str, ...]], ...]
"""Pairs of (path, values), sorted. The values of a claim are sorted and distinct, and there is at least one."""

MAX_VALUES: Final = 100
MAX_VALUE_BYTES: Final = 256
_MOST_BITS: Final = 128
_LARGEST_EXACT: Final = 2**53
"""Numbers with a decimal point are doubles. Larger ones are not exact."""

SELF_ASSERTED: Final = NOT_AN_IDENTITY | {
    "address",
    "birthdate",
    "family_name",
    "first_name",
    "gender",
    "given_name",
    "last_name",
    "locale",
    "middle_name",
    "picture",
    "profile",
    "unsafe_metadata",
    "user_metadata",
    "website",
    "zoneinfo",
}
"""Claims that most providers let users change (OpenID Connect Core section 5.1), and the members of these claims.

Filters must not depend on them. `user_metadata` and `unsafe_metadata` are those of Auth0, Supabase and Clerk.
"""


class _Unusable(ValueError):
    """The claim has a value that cannot be kept. The text says why, without the value."""


def policy_claims_of(claims: Claims, paths: Sequence[str], idp_id: str) -> PolicyClaims:
    """Return the claims at `paths` that have values. `idp_id` names the provider in log lines.

    Texts are values, and so are numbers and booleans, as JSON writes them. A list of these has several values. Any
    other claim, and one beyond the limits, is left out with a log line that does not contain its value.
    """
    found: dict[str, tuple[str, ...]] = {}
    for path in paths:
        value = find(claims, path)
        if value is None:
            continue
        try:
            found[path] = _values(value)
        except _Unusable as reason:
            _log.warning("claim.omitted", provider=idp_id, claim=path, reason=str(reason))
    return tuple(sorted((path, values) for path, values in found.items() if values))


def _values(value: object) -> tuple[str, ...]:
    several = value if isinstance(value, list) else [value]
    if len(several) > MAX_VALUES:
        raise _Unusable(f"it has more than {MAX_VALUES} values")
    return tuple(sorted({_text(each) for each in several}))


def _text(value: object) -> str:
    """Return a single value as text. Raises _Unusable."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            text = _number(value)
        case str():
            text = value
        case _:
            raise _Unusable("a value is null, an object or a list")
    if not text or has_invisible(text):
        raise _Unusable("a value is empty or contains control or invisible characters")
    if len(text.encode()) > MAX_VALUE_BYTES:
        raise _Unusable(f"a value has more than {MAX_VALUE_BYTES} bytes")
    return text


def _number(value: float) -> str:
    """Return the shortest decimal text. Equal numbers have equal texts, so 1.0 is "1". Raises _Unusable."""
    if isinstance(value, int) and value.bit_length() <= _MOST_BITS:
        return str(value)
    if not abs(value) <= _LARGEST_EXACT:
        raise _Unusable("a number is too large")
    if value.is_integer():
        return str(int(value))
    text = repr(value)
    if "e" in text:
        raise _Unusable("a number is too small")
    return text
