# SPDX-License-Identifier: Apache-2.0
"""Reading what is sent as a form, once and into one type, as OAuth's endpoint is asked (RFC 6749 section 4)."""

from __future__ import annotations

from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

FORM: Final = "application/x-www-form-urlencoded"
MAX_FORM: Final = 65_536
_MAX_FIELDS: Final = 40
Form = TypeVar("Form", bound=msgspec.Struct)


class UnreadableForm(Exception):
    """What was sent is no form, or one that two readers could take for different things; the text says why."""


def read_form(media_type: str, body: bytes, kind: type[Form]) -> Form:
    """The fields of `kind`, each of them text and given once (RFC 6749 section 3.2). What is left out is empty, and
    what is unknown is passed over, as the section asks.

    Raises UnreadableForm.
    """
    if media_type != FORM:
        raise UnreadableForm(f"the request must be {FORM}")
    if len(body) > MAX_FORM:
        raise UnreadableForm(f"the request is longer than {MAX_FORM} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), max_num_fields=_MAX_FIELDS, errors="strict")
    except (UnicodeDecodeError, ValueError):
        raise UnreadableForm("the request is not a form that can be read") from None
    if any("\x00" in text for pair in pairs for text in pair):
        raise UnreadableForm("a parameter holds U+0000")
    given = dict(pairs)
    if len(given) != len(pairs):
        raise UnreadableForm("a parameter is given twice")
    left_out = {field.encode_name: "" for field in msgspec.structs.fields(kind) if field.required}
    return msgspec.convert(left_out | given, kind)
