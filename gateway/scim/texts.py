# SPDX-License-Identifier: Apache-2.0
"""Values of attributes: what identifies is strict, what only describes is cleaned."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from gateway.scim.errors import InvalidValue

MAX_TEXT: Final = 512
#: Longest name of a group, as directories have it.
MAX_NAME: Final = 256
_BOOLEANS: Final = {"true": True, "false": False}


def identifying(value: object, attribute: str, *, longest: int = MAX_TEXT) -> str:
    """Text that names somebody or something. Raises InvalidValue for an empty or too long one, blanks at its ends, and
    control, format or separator characters: two spellings of one name would be two names.
    """
    if not isinstance(value, str) or not 0 < len(value) <= longest:
        raise InvalidValue(f"{attribute} is text of 1 to {longest} characters.")
    if value != value.strip() or any(_is_invisible(each) for each in value):
        raise InvalidValue(f"{attribute} has blanks at its ends, or control or invisible characters.")
    return value


def describing(value: object, attribute: str) -> str | None:
    """Text to show, cleaned and cut; None when nothing is left. Raises InvalidValue for what is no text."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidValue(f"{attribute} is text.")
    shown = "".join(" " if each.isspace() else each for each in value[:4096] if each.isspace() or not _is_bad(each))
    return " ".join(shown.split())[:MAX_TEXT].strip() or None


def boolean(value: Any, attribute: str) -> bool:
    """A boolean, also as the text that Entra ID sends. Raises InvalidValue."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in _BOOLEANS:
        return _BOOLEANS[value.lower()]
    raise InvalidValue(f"{attribute} is true or false.")


def _is_bad(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn")


def _is_invisible(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] == "C" or category in ("Zl", "Zp")
