# SPDX-License-Identifier: Apache-2.0
"""Decode form bodies, which the OAuth endpoint receives (RFC 6749 section 4), into a struct."""

from __future__ import annotations

from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

FORM: Final = "application/x-www-form-urlencoded"
MAX_FORM: Final = 65_536
_MAX_FIELDS: Final = 40
Form = TypeVar("Form", bound=msgspec.Struct)


class UnreadableForm(Exception):
    """The body is not a form, or an ambiguous one. The message gives the reason."""


def read_form(media_type: str, body: bytes, kind: type[Form]) -> Form:
    """Return the form as a `kind`. A parameter may occur only once (RFC 6749 section 3.2).

    Missing parameters are empty strings and unknown ones are ignored, as that section requires. Raises UnreadableForm.
    """
    if media_type != FORM:
        raise UnreadableForm(f"the content type of the request must be {FORM}")
    if len(body) > MAX_FORM:
        raise UnreadableForm(f"the request body has more than {MAX_FORM} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=_MAX_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise UnreadableForm("the request body is not a valid form") from None
    if any("\x00" in text for pair in pairs for text in pair):
        raise UnreadableForm("a parameter contains the character U+0000")
    given = dict(pairs)
    if len(given) != len(pairs):
        raise UnreadableForm("a parameter is given twice")
    left_out = {field.encode_name: "" for field in msgspec.structs.fields(kind) if field.required}
    return msgspec.convert(left_out | given, kind)
