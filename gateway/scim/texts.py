# SPDX-License-Identifier: Apache-2.0
"""Validation of attribute values. Identifying text is checked strictly, descriptive text is cleaned."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from gateway.scim.errors import InvalidValue

MAX_TEXT: Final = 512
#: Maximum length of a group name in characters, as in directory services.
MAX_NAME: Final = 256
_BOOLEANS: Final = {"true": True, "false": False}


def identifying(value: object, attribute: str, *, longest: int = MAX_TEXT) -> str:
    """Return the text if it is suitable to identify a user or group.

    Raises InvalidValue if it is empty or too long, has blanks at its ends, or contains control, format, line separator
    or paragraph separator characters. With these, two names could look the same.
    """
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidValue(f"{attribute} must be text of 1 to {longest} characters.")
    if value != value.strip() or any(_is_invisible(each) for each in value):
        raise InvalidValue(f"{attribute} must not have blanks at its ends, nor control or invisible characters.")
    return value


def describing(value: object, attribute: str) -> str | None:
    """Return text for display, cleaned and shortened; None if nothing remains. Raises InvalidValue if it is no text."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidValue(f"{attribute} must be text.")
    shown = "".join(" " if each.isspace() else each for each in value[:4096] if each.isspace() or not _is_bad(each))
    return " ".join(shown.split())[:MAX_TEXT].strip() or None


def boolean(value: Any, attribute: str) -> bool:
    """Return a boolean, also from its name as text, which Entra ID sends. Raises InvalidValue."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    raise InvalidValue(f"{attribute} must be true or false.")


def _is_bad(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")
