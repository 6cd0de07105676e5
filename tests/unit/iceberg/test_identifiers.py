# SPDX-License-Identifier: Apache-2.0
"""Names: folding, parsing, and rules for new names."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.iceberg.errors import (
    CatalogError,
    IdentifierNameEmpty,
    InvalidNamespace,
    InvalidTableName,
    NamespaceDepthExceeded,
    NamespaceEmpty,
    NamespacePartContainsDot,
    NamespacePartEmpty,
    ReservedNamespace,
)
from gateway.iceberg.identifiers import Namespace, TableIdentifier, fold, validate_new_name, validate_new_namespace

RESERVED = frozenset({"system", "examples", "information_schema"})


# Letters with a longer folded form, and marks that compose with the preceding letter.
TRICKY = st.text(
    st.sampled_from(
        "aA\u0130\u00df\u1e9e\u0149\u01f0\u0390\u03a3\u03c2\u1f80\u1fb3\u1fb7\u1ffc\ufb03\u0345\u0308\u0301\u030c\u0323\u212a"
    )
)


@given(st.one_of(st.text(), TRICKY))
def test_folding_is_idempotent(name: str) -> None:
    assert fold(fold(name)) == fold(name)


@given(st.one_of(st.text(), TRICKY))
def test_names_that_differ_in_case_or_composition_only_have_one_key(name: str) -> None:
    assert fold(unicodedata.normalize("NFD", name)) == fold(unicodedata.normalize("NFC", name)) == fold(name)


def _matches_canonically(one: str, other: str) -> bool:
    """Compare by Unicode 3.13, D145, which needs no key."""

    def decomposed(text: str) -> str:
        return unicodedata.normalize("NFD", text)

    return decomposed(decomposed(one).casefold()) == decomposed(decomposed(other).casefold())


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a name and a variant of it in letter case, sometimes with a different letter."""
    name = draw(st.one_of(st.text(min_size=1), TRICKY))
    change = st.sampled_from((str.upper, str.lower, str.swapcase, str, lambda letter: letter + "x"))
    return name, "".join(draw(change)(letter) for letter in name)


@pytest.mark.threat("LG-POL-12")
@given(_pairs())
def test_two_names_have_one_key_if_and_only_if_they_differ_in_letter_case_alone(names: tuple[str, str]) -> None:
    one, other = names
    assert (fold(one) == fold(other)) == _matches_canonically(one, other)


def test_keys_are_in_unicode_composed_form() -> None:
    assert fold("E\u0301") == "\u00e9"


def test_composed_and_decomposed_spellings_with_iota_subscript_agree() -> None:
    assert fold("\u1f80\u0301") == fold(unicodedata.normalize("NFD", "\u1f80\u0301"))


@pytest.mark.parametrize(
    ("one", "other"), [("Straße", "STRASSE"), ("ΑΙ\u0345", "αι\u03b9"), ("é", "E\u0301"), ("K", "\u212a")]
)
def test_known_spellings_of_one_name_have_one_key(one: str, other: str) -> None:
    assert fold(one) == fold(other)


def test_different_names_have_different_keys() -> None:
    assert len({fold(name) for name in ("orders", "order", "orders_", "ördérs")}) == 4


@pytest.mark.threat("LG-POL-12")
def test_a_namespace_is_parsed_once_at_the_separator() -> None:
    assert Namespace.parse("a\x1fb").levels == ("a", "b")
    assert Namespace.parse("a.b", separator=".").levels == ("a", "b")
    assert Namespace.parse("a.b\x1fc", separator=".").levels == ("a.b", "c")


def test_a_namespace_has_a_parent_a_name_and_a_rendering() -> None:
    namespace = Namespace(("A", "b", "C"))
    assert (namespace.dotted, namespace.name, namespace.key) == ("A.b.C", "C", "a\x1fb\x1fc")
    assert namespace.parent == Namespace(("A", "b"))
    assert Namespace(("A",)).parent is None


def test_an_identifier_renders_with_dots_and_keys_without_case() -> None:
    identifier = TableIdentifier(Namespace(("A", "b")), "Tbl")
    assert (identifier.dotted, identifier.key) == ("A.b.Tbl", "a\x1fb\x1ftbl")


@pytest.mark.threat("LG-POL-12")
def test_a_level_cannot_contain_the_key_separator() -> None:
    with pytest.raises(InvalidNamespace):
        Namespace(("a\x1fb",))
    with pytest.raises(InvalidTableName):
        TableIdentifier(Namespace(("a",)), "b\x1fc")


@pytest.mark.parametrize(
    ("raw", "error"),
    [("", NamespaceEmpty), ("a\x1f", NamespacePartEmpty), ("\x1f", NamespacePartEmpty), ("a\x00b", InvalidNamespace)],
)
def test_malformed_namespaces_are_refused_when_parsed(raw: str, error: type[CatalogError]) -> None:
    with pytest.raises(error):
        Namespace.parse(raw)


def test_an_unpaired_surrogate_is_refused_before_it_reaches_a_database() -> None:
    with pytest.raises(InvalidNamespace):
        Namespace(("a\ud800",))
    with pytest.raises(InvalidTableName):
        TableIdentifier(Namespace(("a",)), "\udfff")


def test_an_empty_table_name_is_refused() -> None:
    with pytest.raises(IdentifierNameEmpty):
        TableIdentifier(Namespace(("a",)), "")


@pytest.mark.parametrize(
    ("levels", "error"),
    [
        (("SYSTEM",), ReservedNamespace),
        (("Information_Schema", "x"), ReservedNamespace),
        (("a.b",), NamespacePartContainsDot),
        (("..",), NamespacePartContainsDot),
        (("a+b",), InvalidNamespace),
        (("a/b",), InvalidNamespace),
        (("a\\b",), InvalidNamespace),
        (("a%2Fb",), InvalidNamespace),
        (("%2e%2e",), InvalidNamespace),
        (("%252e",), InvalidNamespace),
        ((" ",), InvalidNamespace),
        (("a ",), InvalidNamespace),
        (("\u00a0a",), InvalidNamespace),
        (("a\u2028b",), InvalidNamespace),
        (("a\u202eb",), InvalidNamespace),
        (("ü" * 128,), InvalidNamespace),
    ],
)
def test_an_invalid_new_namespace_is_refused(levels: tuple[str, ...], error: type[CatalogError]) -> None:
    with pytest.raises(error) as caught:
        validate_new_namespace(Namespace(levels), reserved=RESERVED)
    assert caught.value.code == 400
    assert caught.value.type == error.__name__


@pytest.mark.parametrize(
    ("levels", "reserved"),
    [
        (("a",), "a"),
        (("a", "b", "c", "d", "e"), "A"),
        (("a", "system"), "a"),
        (("Ünïcode 名",), "ünïcode 名"),
        (("a*b$c'",), "a*b$c'"),
        (("ü" * 127,), "ü" * 127),
    ],
)
def test_a_new_namespace_is_accepted_unless_its_first_level_is_reserved(levels: tuple[str, ...], reserved: str) -> None:
    validate_new_namespace(Namespace(levels), reserved=RESERVED)
    with pytest.raises(ReservedNamespace):
        validate_new_namespace(Namespace(levels), reserved=frozenset({reserved.casefold()}))


@pytest.mark.parametrize(
    "name", ["a+b", ".", "..", "a/b", "a\\..\\b", "a%2F..%2Fb", "\t", "a\n", "x" * 256, "\ufeffa", "a\u2066"]
)
def test_an_invalid_new_table_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidTableName):
        validate_new_name(name)


def test_a_new_name_must_not_be_empty_and_the_message_names_the_noun() -> None:
    with pytest.raises(IdentifierNameEmpty, match="View name"):
        validate_new_name("", noun="view")


@pytest.mark.parametrize("name", ["orders", "v1.2", "...", "100%", "50%off", "a b", "x" * 255])
def test_a_new_table_name_is_accepted_and_refused_with_a_slash(name: str) -> None:
    validate_new_name(name)
    with pytest.raises(InvalidTableName):
        validate_new_name(f"{name}/")


def test_messages_contain_no_terminal_control_characters() -> None:
    with pytest.raises(InvalidTableName) as caught:
        validate_new_name("a\x1b[31m")
    assert "\x1b" not in caught.value.message
    assert len(str(caught.value)) < 200


def test_names_beyond_the_length_and_depth_limits_are_refused() -> None:
    """Audit records of a request repeat its names, so their length is bounded."""
    with pytest.raises(InvalidNamespace):
        Namespace(("x" * 1025,))
    with pytest.raises(NamespaceDepthExceeded):
        Namespace(("x",) * 6)
    with pytest.raises(InvalidTableName):
        TableIdentifier(Namespace(("ns",)), "x" * 1025)
