# SPDX-License-Identifier: Apache-2.0
"""Form bodies: one unambiguous meaning, or an error."""

from __future__ import annotations

import msgspec
import pytest

from gateway.api.request_encoding import FORM, UnreadableForm, read_form


class FormBody(msgspec.Struct, frozen=True):
    """A form of these tests."""

    grant_type: str
    scope: str = "catalog"


def test_missing_or_empty_fields_get_defaults_and_unknown_ones_are_ignored() -> None:
    assert read_form(FORM, b"grant_type=x&scope=a+b&else=1", FormBody) == FormBody("x", "a b")
    assert read_form(FORM, b"", FormBody) == FormBody("", "catalog")
    assert read_form(FORM, b"grant_type=&scope=", FormBody) == FormBody("", "catalog")


@pytest.mark.parametrize(
    ("media_type", "body", "message"),
    [
        ("application/json", b"{}", "must be application/x-www-form-urlencoded"),
        (FORM, b"grant_type=a&grant_type=b", "given twice"),
        (FORM, b"else=a&else=b", "given twice"),
        (FORM, b"x=" + b"a" * 65_536, "more than"),
        (FORM, b"&".join(b"f%d=1" % number for number in range(41)), "not a valid form"),
        (FORM, "grant_type=ü".encode(), "not a valid form"),
        (FORM, b"grant_type=%ff", "not a valid form"),
    ],
)
def test_an_ambiguous_or_unreadable_form_is_refused(media_type: str, body: bytes, message: str) -> None:
    with pytest.raises(UnreadableForm, match=message):
        read_form(media_type, body, FormBody)
