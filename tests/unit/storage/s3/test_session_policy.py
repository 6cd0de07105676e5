# SPDX-License-Identifier: Apache-2.0
"""The builder of session policies, checked by an independent evaluator."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, PolicyTooLarge
from gateway.scope.location import BaseLocation, Location
from gateway.storage.s3.aws.proof import Dialect, prove_scope
from gateway.storage.s3.aws.session_policy import MAX_POLICY_CHARACTERS, _literal, build_session_policy
from gateway.storage.s3.profile import SCHEME

TABLE = Location(SCHEME, "warehouse", ("base", "ns", "t1"))
LEVELS = list(AccessLevel)
NASTY = "t1T0*?${}[]aws:username\"'<>&|^%+~=,@!;()._-é中"
SEGMENT = st.text(st.sampled_from(NASTY), min_size=1, max_size=14)


def siblings(location: Location) -> list[str]:
    """Return keys that an imprecise pattern for the location would match."""
    path = location.key_prefix[:-1]
    parent = path.rpartition("/")[0]
    own = [path, path + "0/f", path + "_x/f", path + "./f", path + "-", path + "*/f", path + "?", path + "%2ff"]
    cut = [path[:-1] + "/f", path[:-1] + "*/f", path[1:] + "/f", "x/" + path + "/f", "x" + path + "/f"]
    around = [parent + "/f", parent, path.swapcase() + "x/f", "f"]
    filled = [path.replace("*", "other") + "x/f", path.replace("*", "any/in"), path.replace("?", "z")]
    return own + cut + around + filled + [path.replace("${*}", "z") + "y"]


def mutants(key: str, rng: random.Random, count: int) -> list[str]:
    """Draw keys similar to a key: one to three characters removed, doubled, replaced or moved."""
    alphabet = "abtT01/*?$._-{}é"
    made = []
    for _ in range(count):
        text = list(key)
        for _ in range(rng.randint(1, 3)):
            where = rng.randrange(len(text) + 1)
            match rng.randrange(3):
                case 0 if text:
                    text.pop(min(where, len(text) - 1))
                case 1:
                    text.insert(where, rng.choice(alphabet))
                case _ if where < len(text):
                    text[where] = rng.choice(alphabet)
        made.append("".join(text))
    return made


@pytest.mark.parametrize("level", LEVELS)
def test_of_ten_thousand_fuzzed_keys_the_policy_opens_only_table_keys(level: AccessLevel) -> None:
    rng = random.Random(20261121)
    locations = [
        TABLE,
        TABLE.child("a*b", "${x}", escapes_known=True),
        Location(SCHEME, "warehouse", ("t",)),
        TABLE.child("é"),
    ]
    for location in locations:
        policy = build_session_policy(location, level, escapes_known=True)
        keys = siblings(location)
        for seed in (
            location.key_prefix + "data/f.parquet",
            location.key_prefix[:-1] + "0/f",
            location.key_prefix[:-1],
        ):
            keys += mutants(seed, rng, 280)
        assert prove_scope(policy, location, level, keys) == []


@pytest.mark.threat("LG-POL-01", "LG-POL-03")
@settings(max_examples=150, deadline=None)
@given(
    segments=st.lists(SEGMENT, min_size=1, max_size=4),
    others=st.lists(st.lists(SEGMENT, max_size=4), max_size=4),
    data=st.data(),
)
def test_every_accepted_location_is_matched_literally(
    segments: list[str], others: list[list[str]], data: st.DataObject
) -> None:
    try:
        location = Location(SCHEME, "warehouse", tuple(segments))
        level = data.draw(st.sampled_from(LEVELS))
        policy = build_session_policy(location, level, escapes_known=True)
    except (InvalidLocation, PolicyTooLarge):
        return
    assert len(json.loads(policy)["Statement"]) == 2
    keys = ["/".join(other) for other in others if other] + siblings(location)
    assert prove_scope(policy, location, level, [key for key in keys if key]) == []


@pytest.mark.threat("LG-POL-01")
@settings(max_examples=100, deadline=None)
@given(segments=st.lists(SEGMENT, min_size=1, max_size=4))
def test_a_store_without_escapes_refuses_patterns_and_matches_literally(segments: list[str]) -> None:
    try:
        location = Location(SCHEME, "warehouse", tuple(segments))
    except InvalidLocation:
        return
    if set("*${}[]").intersection("".join(segments)):
        with pytest.raises(InvalidLocation):
            build_session_policy(location, AccessLevel.READ, escapes_known=False)
        return
    policy = build_session_policy(location, AccessLevel.READ, escapes_known=False)
    # Such a store also opens keys that differ in letter case: no two tables may have them (`Location.overlaps`).
    inside = (location.key_prefix.lower(), location.key_prefix)
    keys = [key for key in siblings(location) if not key.lower().startswith(inside)]
    assert prove_scope(policy, location, AccessLevel.READ, keys, dialect=Dialect.CASE_BLIND) == []


@pytest.mark.threat("LG-LOC-15")
def test_the_proof_detects_keys_that_differ_in_case_on_a_case_insensitive_store() -> None:
    twin = Location(SCHEME, "warehouse", ("base", "ns", "T1"))
    policy = build_session_policy(TABLE, AccessLevel.READ, escapes_known=False)
    violations = prove_scope(policy, TABLE, AccessLevel.READ, [twin.key_prefix + "f"], dialect=Dialect.CASE_BLIND)
    assert [(v.action, v.key) for v in violations] == [("s3:GetObject", "base/ns/T1/f")]
    assert TABLE.overlaps(twin)


@pytest.mark.threat("LG-DEC-07")
@pytest.mark.parametrize(
    ("level", "actions"),
    [
        (AccessLevel.READ, {"s3:GetObject"}),
        (
            AccessLevel.READ_WRITE,
            {"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
        ),
        (
            AccessLevel.READ_WRITE_DELETE,
            {
                "s3:GetObject",
                "s3:PutObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
                "s3:DeleteObject",
            },
        ),
    ],
)
def test_each_access_level_lists_actions_without_patterns(level: AccessLevel, actions: set[str]) -> None:
    objects, listing = json.loads(build_session_policy(TABLE, level, escapes_known=True))["Statement"]
    assert set(objects["Action"]) == actions
    assert objects["Resource"] == "arn:aws:s3:::warehouse/base/ns/t1/*"
    assert listing["Condition"] == {"StringLike": {"s3:prefix": "base/ns/t1/*"}}


@pytest.mark.threat("LG-LOC-20")
def test_the_resource_pattern_is_anchored_at_the_bucket() -> None:
    policy = build_session_policy(TABLE, AccessLevel.READ, escapes_known=True)
    keys = ["1a2b/base/ns/t1/data/f", "0110/1010/base/ns/t1/f", "base/ns/t1x/base/ns/t1/f"]
    assert prove_scope(policy, TABLE, AccessLevel.READ, keys) == []


@pytest.mark.threat("LG-POL-07")
def test_a_location_too_long_for_the_policy_is_refused_and_not_widened() -> None:
    # Every `$` becomes four characters, twice.
    long = Location(SCHEME, "warehouse", tuple("$" * 40 for _ in range(14)))
    with pytest.raises(PolicyTooLarge) as refused:
        build_session_policy(long, AccessLevel.READ, escapes_known=True)
    assert refused.value.code == 400


@pytest.mark.threat("LG-POL-07")
def test_fourteen_namespaces_of_32_characters_fit() -> None:
    deep = Location(SCHEME, "warehouse", tuple(f"{level:032}" for level in range(14)))
    policy = build_session_policy(deep, AccessLevel.READ_WRITE_DELETE, escapes_known=True)
    assert len(policy) <= MAX_POLICY_CHARACTERS
    assert prove_scope(policy, deep, AccessLevel.READ_WRITE_DELETE, siblings(deep)) == []


@pytest.mark.threat("LG-POL-06")
def test_a_policy_needs_a_location() -> None:
    with pytest.raises(InvalidLocation):
        build_session_policy(BaseLocation(SCHEME, "warehouse", ()).child(""), AccessLevel.READ, escapes_known=True)


@pytest.mark.threat("LG-POL-02")
def test_every_special_character_is_escaped() -> None:
    assert _literal("a*?$b${c}") == "a${*}${?}${$}b${$}{c}"


def test_only_the_configured_encryption_key_is_allowed_by_access_level() -> None:
    arn = "arn:aws:kms:eu-west-1:123456789012:key/0b2c"
    read, write = (
        json.loads(build_session_policy(TABLE, level, escapes_known=True, kms_key_arn=arn))["Statement"][2]
        for level in (AccessLevel.READ, AccessLevel.READ_WRITE)
    )
    assert read == {"Effect": "Allow", "Action": ["kms:Decrypt"], "Resource": arn}
    assert write["Action"] == ["kms:Decrypt", "kms:GenerateDataKey"] and write["Resource"] == arn


def test_non_ascii_letters_count_once_against_the_policy_limit() -> None:
    location = Location(SCHEME, "warehouse", ("中" * 300,))
    assert "中" in build_session_policy(location, AccessLevel.READ, escapes_known=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("base/ns/t1/*", "base/ns/t1*"),  # the slash removed everywhere
        ('"s3:prefix":"base/ns/t1/*"', '"s3:prefix":"base/ns/t1*"'),  # in the list condition only
        ('"s3:prefix":"base/ns/t1/*"', '"s3:prefix":["base/ns/t1","base/ns/t1/*"]'),  # the bare prefix added
        (',"Condition":{"StringLike":{"s3:prefix":"base/ns/t1/*"}}', ""),  # no condition
        ("StringLike", "StringLikeIfExists"),  # a listing without a prefix
        ("base/ns/t1/*", "base/ns/*"),
        ("base/ns/t1/*", "base/*/t1/*"),
        ("arn:aws:s3:::warehouse/base", "arn:aws:s3:::*/base"),
        ("s3:GetObject", "s3:GetObject*"),
        ("s3:ListBucket", "s3:List*"),
        ('"s3:GetObject"', '"s3:GetObject","s3:DeleteObject"'),
        ('"Effect":"Allow","Action":["s3:GetObject"]', '"Effect":"Deny","Action":["s3:GetObject"]'),
        ("base/ns/t1/*", "base/ns/t1/data/*"),  # too narrow is also wrong
        ('"Statement":[', '"Statement":[{"Effect":"Allow","Action":"sts:AssumeRole","Resource":"*"},'),
    ],
)
def test_the_proof_detects_slightly_wrong_policies(before: str, after: str) -> None:
    good = build_session_policy(TABLE, AccessLevel.READ, escapes_known=True)
    assert prove_scope(good, TABLE, AccessLevel.READ, siblings(TABLE)) == []
    bad = good.replace(before, after)
    assert bad != good
    assert prove_scope(bad, TABLE, AccessLevel.READ, siblings(TABLE))
