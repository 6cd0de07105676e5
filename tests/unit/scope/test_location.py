# SPDX-License-Identifier: Apache-2.0
"""Locations: refused texts, equality and overlap."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.scope.errors import InvalidLocation
from gateway.scope.location import BaseLocation, Location, fold
from gateway.storage.s3.profile import SCHEME
from tests.support.location_segments import SEGMENT


@pytest.mark.threat("LG-LOC-13")
def test_scheme_aliases_denote_one_location() -> None:
    locations = {SCHEME.parse(f"{scheme}://bucket/a/b") for scheme in ("s3", "s3a", "s3n", "S3", "S3A")}
    assert locations == {Location(SCHEME, "bucket", ("a", "b"))}


@pytest.mark.threat("LG-LOC-12")
@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a//b",
        "s3://bucket//a",
        "s3://bucket/a//",
        "s3://bucket/./a",
        "s3://bucket/a/..",
        "s3://bucket/a/../b",
        "s3://bucket/a b",
        "s3://bucket/a ",
        "s3://bucket/a\tb",
        "s3://bucket/a\nb",
        "s3://bucket/a\x00b",
        "s3://bucket/a\x7fb",
        "s3://bucket/a\x85b",
        "s3://bucket/a\u00a0b",
        "s3://bucket/a\u2028b",
        "s3://bucket/a\u200bb",
        "s3://bucket/a\u202eb",
        "s3://bucket/a\ufeffb",
        "s3://bucket/a\u3164b",
        "s3://bucket/a\ud800b",
        "s3://bucket/a\\b",
        "s3://bucket/..\\b",
    ],
)
def test_odd_segments_and_characters_are_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(text, escapes_known=True)


@pytest.mark.threat("LG-LOC-11")
@pytest.mark.parametrize("dots", ["%2e%2e", "%2E.", "a%2F..%2Fb", "%252e%252e", "%25252e", "a%5cb", "%00", "a%0ab"])
def test_encoded_dots_and_separators_are_refused_at_every_encoding_depth(dots: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(f"s3://bucket/ns/{dots}/t", escapes_known=True)


@pytest.mark.parametrize("segment", ["my%20table", "a%25b", "100%", "%zz", "a%2Ab", "v1.2", "..a", "a..", "...", "ünï"])
def test_a_percent_encoded_name_without_separators_is_a_plain_segment(segment: str) -> None:
    assert SCHEME.parse(f"s3://bucket/{segment}").segments == (segment,)


@pytest.mark.threat("LG-LOC-14")
@pytest.mark.parametrize("text", ["s3://bucket", "s3://bucket/", "s3:///", "s3://", "", "bucket/a", "s3:/bucket/a"])
def test_the_root_of_a_bucket_is_not_a_location(text: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(text)


@pytest.mark.threat("LG-LOC-14")
def test_no_location_without_a_path_can_be_constructed() -> None:
    with pytest.raises(InvalidLocation):
        Location(SCHEME, "bucket", ())


@pytest.mark.threat("LG-LOC-21")
@pytest.mark.parametrize(
    "text",
    [
        "file:///etc/passwd",
        "file://host/share",
        "http://169.254.169.254/latest/meta-data",
        "https://bucket.s3.amazonaws.com/a",
        "gs://bucket/a",
        "abfss://fs@account.dfs.core.windows.net/a",
        "hdfs://name/a",
        "ſ3://bucket/a",
        " s3://bucket/a",
    ],
)
def test_other_schemes_are_refused(text: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(text)


@pytest.mark.threat("LG-LOC-15")
@pytest.mark.parametrize(
    "bucket",
    ["Bucket", "bucket.", "user@bucket", "user:pw@bucket", "bucket:9000", "b", "a..b", "-bucket", "bucket-",
     "buck_et", "127.0.0.1", "bücket", "bucket*", "x" * 64, "a.-b", "data--x-s3",
     "alias-s3alias", "xn--bucket", "buc ket", "bucket\n"],
)  # fmt: skip
def test_bucket_names_are_kept_exactly_or_refused(bucket: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(f"s3://{bucket}/a")


@pytest.mark.parametrize("character", list("*${}[]"))
def test_pattern_characters_need_a_store_with_policy_escapes(character: str) -> None:
    text = f"s3://bucket/ns/t{character}"
    with pytest.raises(InvalidLocation):
        SCHEME.parse(text)
    assert SCHEME.parse(text, escapes_known=True).key_prefix == f"ns/t{character}/"


@pytest.mark.parametrize("character", ["?", "#"])
def test_characters_that_clients_cut_a_key_at_are_refused_for_every_store(character: str) -> None:
    with pytest.raises(InvalidLocation):
        SCHEME.parse(f"s3://bucket/ns/t{character}x", escapes_known=True)


def test_a_key_beyond_the_store_limit_is_refused() -> None:
    SCHEME.parse("s3://bucket/" + "a" * 1023)
    with pytest.raises(InvalidLocation):
        SCHEME.parse("s3://bucket/" + "é" * 512)


def test_location_errors_escape_the_text_to_keep_one_log_line() -> None:
    with pytest.raises(InvalidLocation) as refused:
        SCHEME.parse("s3://bucket/a\n2026-01-01 forged")
    assert "\n" not in str(refused.value)


@pytest.mark.threat("LG-LOC-01")
def test_a_sibling_with_the_same_beginning_is_neither_contained_nor_overlapping() -> None:
    table = SCHEME.parse("s3://bucket/ns/t1")
    for name in ("t10", "t1_x", "t1.", "t", "t1-"):
        sibling = SCHEME.parse(f"s3://bucket/ns/{name}")
        assert not table.contains(sibling) and not sibling.contains(table) and not table.overlaps(sibling)
    other = SCHEME.parse("s3://bucket2/ns/t1")
    assert not table.contains(other) and not table.overlaps(other)


@pytest.mark.threat("LG-LOC-16")
def test_an_ancestor_overlaps_in_both_orders_and_with_or_without_a_slash() -> None:
    for ancestor in (
        SCHEME.parse("s3://bucket/ns"),
        SCHEME.parse("s3a://bucket/ns/"),
        BaseLocation(SCHEME, "bucket", ()),
    ):
        child = SCHEME.parse("s3://bucket/ns/t")
        assert ancestor.overlaps(child) and child.overlaps(ancestor)
        assert ancestor.contains(child, strict=True) and not child.contains(ancestor)


def test_a_location_contains_itself_only_if_not_strict() -> None:
    table = SCHEME.parse("s3://bucket/ns/t")
    assert table.contains(table) and not table.contains(table, strict=True) and table.overlaps(table)


@pytest.mark.threat("LG-LOC-15")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("t1", "T1"),
        ("straße", "STRASSE"),
        ("İx", "ix"),
        ("ı", "I"),
        ("K", "k"),
        ("é", "e\u0301"),
        ("ſ", "s"),
        ("ﬁ", "fi"),
        ("σ", "ς"),
    ],
)
def test_locations_equal_but_for_case_or_composition_only_overlap(one: str, other: str) -> None:
    first, second = SCHEME.parse(f"s3://bucket/ns/{one}"), SCHEME.parse(f"s3://bucket/ns/{other}/deeper")
    assert first.overlaps(second) and second.overlaps(first)
    assert not first.contains(second)


def test_ancestors_are_all_parent_locations_outermost_first() -> None:
    assert [location.text for location in SCHEME.parse("s3://b-1/a/b/c").ancestors()] == [
        "s3://b-1",
        "s3://b-1/a",
        "s3://b-1/a/b",
    ]


@given(st.lists(SEGMENT, min_size=1, max_size=5))
def test_every_accepted_location_round_trips(segments: list[str]) -> None:
    try:
        location = Location(SCHEME, "bucket", tuple(segments))
    except InvalidLocation:
        return
    assert (
        SCHEME.parse(location.text, escapes_known=True)
        == SCHEME.parse(location.prefix_text, escapes_known=True)
        == location
    )
    assert location.prefix_text == f"s3://bucket/{location.key_prefix}"


@pytest.mark.threat("LG-LOC-16")
@given(st.lists(SEGMENT, min_size=1, max_size=3), st.lists(SEGMENT, min_size=1, max_size=3))
def test_overlap_is_symmetric_and_equals_the_comparison_of_ancestors(one: list[str], other: list[str]) -> None:
    try:
        first, second = Location(SCHEME, "bucket", tuple(one)), Location(SCHEME, "bucket", tuple(other))
    except InvalidLocation:
        return
    by_ancestors = first.overlap_key in {
        p.overlap_key for p in (second, *second.ancestors())
    } or second.overlap_key in {p.overlap_key for p in (first, *first.ancestors())}
    assert first.overlaps(second) == second.overlaps(first) == by_ancestors
    assert not first.contains(second) or first.overlaps(second)


@given(st.text(max_size=20))
def test_folding_is_idempotent_and_case_insensitive(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert fold(text.lower()) == fold(text) == fold(text.upper())
    assert fold(text).count("/") >= text.count("/")


@pytest.mark.threat("LG-LOC-15")
@given(st.text(st.characters(max_codepoint=126), max_size=6), st.text(st.characters(max_codepoint=126), max_size=6))
def test_folding_distinguishes_texts_that_differ_beyond_letter_case(one: str, other: str) -> None:
    for changed in (other, one.swapcase(), one + "x", one[1:]):
        assert (fold(one) == fold(changed)) == (one.lower() == changed.lower())
