# SPDX-License-Identifier: Apache-2.0
"""Remove secrets from log events.

No code may pass a secret to a log call. This module is a second protection for code that does so by mistake. It detects
secrets by the names of fields and by patterns in text. In doubt it redacts.
"""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from uuid import UUID

import msgspec

REDACTED = "[redacted]"
MAX_DEPTH = 8
MAX_ITEMS = 200
MAX_TEXT_CHARACTERS = 16_384

_NAMES = (
    r"authorization|pass(?:word|wd|phrase)|pwd|secret|token|credentials?|api[-_. ]?key|access[-_. ]?key"
    r"|account[-_. ]?key|private[-_. ]?key"
    r"|signing[-_. ]?key|encryption[-_. ]?key|session[-_. ]?key|sas[-_. ]?key|cookie|assertion"
    r"|code[-_. ]?verifier|signature|dsn|x-amz-security-token"
)
_SECRET_KEY = re.compile(_NAMES, re.IGNORECASE)

# Matches the value after the name of a secret in plain text, in JSON (also JSON inside JSON) and in query strings. All
# repetitions are bounded, so that text from clients cannot make a log line expensive.
_NAMED = re.compile(
    rf"""(?P<name>(?:{_NAMES})[A-Za-z0-9_.-]{{0,40}})(?P<between>(?:\\{{0,8}}["'])?\s{{0,8}}(?:[:=]|%3[AaDd])\s{{0,8}})"""
    r"""(?:(?P<quote>\\{0,8}["']).{0,4096}?(?P=quote)|\\{0,8}["'].{0,4096}"""
    r"""|(?:(?:bearer|basic|digest|negotiate)\s{1,8})?[^\s"'&,;)}\]]{1,4096})""",
    re.IGNORECASE | re.DOTALL,
)
_SCHEME = re.compile(
    r"\b(?P<scheme>bearer|basic|negotiate|dpop)(?:\s+|%20)(?P<value>[A-Za-z0-9\-._~+/]{6,}=*)", re.IGNORECASE
)
# Matches a JWS or JWE, complete or truncated: a base64url part that decodes to '{"', '{ ' or '{' and a line break, then
# a second part.
_JWT = re.compile(
    r"(?<![A-Za-z0-9])e(?:y[A-Z]|w[a-zA-Z])[A-Za-z0-9_-]{6,}(?:\.|%2E)[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]*)*"
)
_OWN_TOKEN = re.compile(r"(?<![A-Za-z0-9])lgscim_[A-Za-z0-9_-]{4,}")
_AWS_KEY_ID = re.compile(r"(?<![A-Za-z0-9])(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{8,}")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])")
_USERINFO = re.compile(r"(?<=://)[^\s/@\"']+@")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)

# Every match of a pattern above except _AWS_SECRET contains one of these texts, ignoring letter case. Nearly all lines
# contain none, and the search for these texts takes a tenth of the time of the patterns.
_HINTS = (
    *("auth", "pass", "pwd", "secret", "token", "credential", "key", "cookie", "assertion", "verifier", "signature"),
    *("dsn", "bearer", "basic", "negotiate", "dpop", "ey", "ew", "://", "akia", "asia", "abia", "acca", "lgscim_"),
)


def redact_text(text: str) -> str:
    """Return `text` without parts that look like secrets, cut to `MAX_TEXT_CHARACTERS`, in a form that UTF-8 can
    encode.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        text = text[:MAX_TEXT_CHARACTERS] + "…"
    if not text.isascii():
        # A lone surrogate cannot be encoded as UTF-8. A name that a client chose must not make a log call fail.
        text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) >= 40:
        text = _AWS_SECRET.sub(_unless_plain, text)
    lowered = text.lower()
    if not any(hint in lowered for hint in _HINTS):
        return text
    text = _OWN_TOKEN.sub(REDACTED, text)
    text = _PEM.sub(REDACTED, text)
    text = _JWT.sub(REDACTED, text)
    text = _NAMED.sub(rf"\g<name>\g<between>{REDACTED}", text)
    text = _SCHEME.sub(rf"\g<scheme> {REDACTED}", text)
    text = _USERINFO.sub(f"{REDACTED}@", text)
    return _AWS_KEY_ID.sub(REDACTED, text)


def _unless_plain(match: re.Match[str]) -> str:
    """Return `REDACTED` if the match contains letters of both cases and digits, as generated secrets do. Otherwise
    return the match.

    Other matches of forty characters are digests or paths.
    """
    text = match[0]
    mixed = any(map(str.isupper, text)) and any(map(str.islower, text)) and any(map(str.isdigit, text))
    return REDACTED if mixed else text


def redact_fields(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields of one log event after redaction. The values have types that can be encoded as JSON."""
    return dict(_redact_field(name, value, 0) for name, value in fields.items())


def _redact_field(name: object, value: object, depth: int) -> tuple[str, object]:
    shown, is_secret = _judge_name(name.decode("latin-1") if isinstance(name, bytes) else str(name))
    # None and booleans show whether a secret is set, and never its value.
    if is_secret and value is not None and not isinstance(value, bool):
        return shown, REDACTED
    return shown, _redact(value, depth)


@lru_cache(maxsize=1024)
def _judge_name(name: str) -> tuple[str, bool]:
    """Return (name for display, True if the field is secret). The result is cached, because there are few field
    names.
    """
    return redact_text(name), _SECRET_KEY.search(name) is not None


def _redact(value: object, depth: int) -> object:
    match value:
        case None | bool() | float():
            return value
        case Enum():
            return _redact(value.value, depth + 1)
        case int():
            return value if -(2**63) <= value < 2**63 else str(value)
        case str():
            return redact_text(str(value))
        case bytes() | bytearray() | memoryview():
            return redact_text(bytes(value).decode("latin-1"))
        case datetime() | date() | time() | timedelta() | UUID() | Decimal():
            return value
    return _redact_container(value, depth + 1) if depth < MAX_DEPTH else "[too deep]"


def _redact_container(value: object, depth: int) -> object:
    if isinstance(value, msgspec.Struct):
        return _redact_pairs(((name, getattr(value, name)) for name in value.__struct_fields__), depth)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _redact_pairs(
            ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value)), depth
        )
    if isinstance(value, Mapping):
        return _redact_pairs(value.items(), depth)
    if isinstance(value, list | tuple | set | frozenset):
        return _redact_items(value, depth)
    try:
        return redact_text(repr(value))
    except Exception as error:
        # `__repr__` of a foreign class may raise any exception. The other fields must still be logged.
        return f"[unprintable {type(value).__name__}: {type(error).__name__}]"


def _redact_pairs(pairs: Iterable[tuple[object, object]], depth: int) -> dict[str, object]:
    redacted: dict[str, object] = {}
    for name, value in pairs:
        if len(redacted) >= MAX_ITEMS:
            redacted["…"] = "[more]"
            break
        shown, redacted_value = _redact_field(name, value, depth)
        redacted[shown] = redacted_value
    return redacted


def _redact_items(items: Iterable[object], depth: int) -> list[object]:
    redacted: list[object] = []
    secret_follows = False
    for item in items:
        if len(redacted) >= MAX_ITEMS:
            redacted.append("[more]")
            break
        redacted.append(REDACTED if secret_follows and item is not None else _redact(item, depth))
        # Pairs may be lists, as in raw headers and argument lists: [["authorization", "…"]].
        secret_follows = isinstance(item, str | bytes) and _names_a_secret(item)
    return redacted


def _names_a_secret(item: str | bytes) -> bool:
    text = item.decode("latin-1") if isinstance(item, bytes) else item
    return len(text) <= 64 and " " not in text and _SECRET_KEY.search(text) is not None
