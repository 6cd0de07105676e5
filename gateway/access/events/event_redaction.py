# SPDX-License-Identifier: Apache-2.0
"""Remove secrets from the data of events.

Users store secrets in properties of tables, views and namespaces although they should not. More people can read event
sinks than the catalog. So an event contains the value of a property only if its name does not look like that of a
secret. A URL or connection string loses its password and each parameter with such a name, whatever the name of its
property.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

REDACTED: Final = "[redacted]"

_SECRET: Final = re.compile(
    r"secret|pass(?:word|wd|phrase|code)|pwd|token|credential|authorization|cookie|signature|connection[-_. ]?string"
    r"|(?:api|access|account|client|encryption|hmac|master|private|sas|service|session|shared|signing|ssh|storage)"
    r"[-_. ]?key|(?<![a-z])pass(?![a-z])",
    re.IGNORECASE,
)
_ANY_KEY: Final = re.compile(r"key$", re.IGNORECASE)
#: Names of keys that order or identify rows, and so are no secrets.
_KEY_OF_ROWS: Final = re.compile(
    r"(?:primary|partition|sort|cluster|clustering|distribution|foreign|merge|join|business|natural|surrogate|unique"
    r"|order|row|record|shard)[-_. ]?key$",
    re.IGNORECASE,
)
#: Every name of a secret contains one of these, ignoring letter case. The escape `\\u` can spell any of these in
#: another way.
_HINTS: Final = (
    *(b"secret", b"pass", b"pwd", b"token", b"credential", b"authorization", b"cookie", b"signature", b"key"),
    *(b"connection", b"\\u"),
    # Secrets in URLs: a password before `@`, or the parameter `sig`.
    *(b"@", b"sig="),
)

#: The password in a URL: `jdbc:postgresql://user:password@host`. A user without a password stays:
#: `scheme://container@account`.
_PASSWORD: Final = re.compile(r"(?<=://)([^\s/:@\"']*):[^\s/@\"']+@")
#: A parameter of a URL, a signed URL or a connection string.
_PARAMETER: Final = re.compile(r"(^|[?&;])([^\s?&;=]{1,128})=([^\s&;\"']+)")
_SIGNATURE: Final = "sig"
"""The parameter with the signature of a signed URL."""


def is_secret_name(name: str) -> bool:
    """Return True if a property with this name probably contains a secret."""
    if _SECRET.search(name):
        return True
    return _ANY_KEY.search(name) is not None and _KEY_OF_ROWS.search(name) is None


def without_secrets(data: bytes) -> bytes:
    """Return the JSON `data` with secrets replaced by `REDACTED`.

    A value is a secret if its name looks like that of a secret. Objects and lists under such a name are replaced as a
    whole; null and booleans stay. The passwords and the parameters with such names in URLs are replaced too.
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
        case str() if "://" in value or "=" in value:
            return _PARAMETER.sub(_parameter, _PASSWORD.sub(rf"\1:{REDACTED}@", value))
    return value


def _parameter(match: re.Match[str]) -> str:
    before, name, value = match.groups()
    is_secret = is_secret_name(name) or name.lower() == _SIGNATURE
    return f"{before}{name}={REDACTED if is_secret else value}"


def _of_member(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool) or not is_secret_name(name):
        return _redacted(value)
    return REDACTED
