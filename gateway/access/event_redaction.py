# SPDX-License-Identifier: Apache-2.0
"""PURE: removal of secrets from the data of events.

Users store secrets in properties of tables, views and namespaces against all advice. Sinks are read by more people than
the catalog, so a value leaves in an event only if the name of its property does not look like that of a secret.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

REDACTED: Final = "[redacted]"

_SECRET: Final = re.compile(
    r"secret|pass(?:word|wd|phrase|code)|pwd|token|credential|authorization|cookie|signature|connection[-_. ]?string"
    r"|(?:api|access|account|client|encryption|hmac|master|private|sas|service|session|shared|signing|ssh|storage)"
    r"[-_. ]?key",
    re.IGNORECASE,
)
_ANY_KEY: Final = re.compile(r"key$", re.IGNORECASE)
#: Names of keys that order or identify rows.
_KEY_OF_ROWS: Final = re.compile(
    r"(?:primary|partition|sort|cluster|clustering|distribution|foreign|merge|join|business|natural|surrogate|unique"
    r"|order|row|record|shard)[-_. ]?key$",
    re.IGNORECASE,
)
#: Every name of a secret contains one of these, ignoring letter case. `\\u` can write each of them in another way.
_HINTS: Final = (
    *(b"secret", b"pass", b"pwd", b"token", b"credential", b"authorization", b"cookie", b"signature", b"key"),
    *(b"connection", b"\\u"),
)


def is_secret_name(name: str) -> bool:
    """Return True if the name of a property looks like that of a secret."""
    if _SECRET.search(name):
        return True
    return _ANY_KEY.search(name) is not None and _KEY_OF_ROWS.search(name) is None


def without_secrets(data: bytes) -> bytes:
    """Return the JSON `data` with `REDACTED` in place of each value whose name looks like that of a secret.

    Objects and lists under such a name are replaced as a whole; null and booleans stay, because they are no secrets.
    """
    lowered = data.lower()
    if not any(hint in lowered for hint in _HINTS):
        return data
    return msgspec.json.encode(_redacted(msgspec.json.decode(data)))


def _redacted(value: Any) -> Any:
    match value:
        case dict():
            return {name: _of_member(name, each) for name, each in value.items()}
        case list():
            return [_redacted(each) for each in value]
    return value


def _of_member(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool) or not is_secret_name(name):
        return _redacted(value)
    return REDACTED
