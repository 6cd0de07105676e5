# SPDX-License-Identifier: Apache-2.0
"""References such as `table/demo/hr.people`: each is read as it was written, and others are refused with the form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.apply.references import (
    KINDS_OF_REFERENCES,
    TABULARS,
    InvalidReference,
    Reference,
    parse_reference,
)
from gateway.apply.state import Kind

_NAMES = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)


@st.composite
def references(draw: st.DrawFn) -> Reference:
    """Draw a reference of any kind."""
    kind = draw(st.sampled_from(KINDS_OF_REFERENCES))
    names = draw(st.lists(_NAMES, min_size=2, max_size=4).map(tuple))
    match kind:
        case Kind.SERVER:
            return Reference(kind)
        case Kind.WAREHOUSE:
            return Reference(kind, (), names[0])
        case Kind.NAMESPACE:
            return Reference(kind, names[1:], names[0])
        case Kind.COLUMN:
            return Reference(kind, names, draw(_NAMES), draw(_NAMES))
    if kind in TABULARS:
        return Reference(kind, names, draw(_NAMES))
    return Reference(kind, names[:1])


@given(references())
def test_a_written_reference_is_read_as_the_same_object(reference: Reference) -> None:
    text = str(reference)
    assert parse_reference(text) == reference
    assert parse_reference(text, kind=reference.kind) == reference


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_reference(text)
    except InvalidReference as refused:
        assert "Write" in str(refused)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("table/demo/hr.people", Reference(Kind.TABLE, ("hr", "people"), "demo")),
        ('view/demo/hr."a.b"', Reference(Kind.VIEW, ("hr", "a.b"), "demo")),
        ("table/my.lake/hr.people", Reference(Kind.TABLE, ("hr", "people"), "my.lake")),
        ("namespace/demo/hr.eu.raw", Reference(Kind.NAMESPACE, ("hr", "eu", "raw"), "demo")),
        ('column/demo/hr.people/"a/b"', Reference(Kind.COLUMN, ("hr", "people"), "demo", "a/b")),
        ("user/bob@example.com", Reference(Kind.USER, ("bob@example.com",))),
        ("role/data/analysts.eu", Reference(Kind.ROLE, ("data/analysts.eu",))),
        ("project", Reference(Kind.PROJECT)),
        (
            "table/demo/01a22757-67e8-7591-871d-1da0bd48c59a",
            Reference(Kind.TABLE, ("01a22757-67e8-7591-871d-1da0bd48c59a",), "demo"),
        ),
    ],
)
def test_the_documented_forms_are_read(text: str, found: Reference) -> None:
    assert parse_reference(text) == found


@pytest.mark.parametrize(
    "text",
    ["", "people", "tables/demo/hr.people", "table/demo", "table/demo/people", "table/demo/hr.", "table//hr.people"]
    + [
        "table/demo/hr..people",
        'table/demo/hr."open',
        "role/",
        "user/",
        "server/x",
        "column/demo/hr.people",
        "table/a/b.c/d",
    ],
)
def test_other_texts_are_refused_with_the_form(text: str) -> None:
    with pytest.raises(InvalidReference, match="Write"):
        parse_reference(text)


def test_the_kind_may_be_left_out_where_only_one_fits() -> None:
    assert parse_reference("demo/hr.people", kind=Kind.TABLE) == parse_reference("table/demo/hr.people")
    assert parse_reference("table/demo/hr.people", kind=Kind.TABLE) == parse_reference("table/demo/hr.people")
