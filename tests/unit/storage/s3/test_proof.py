# SPDX-License-Identifier: Apache-2.0
"""The policy evaluator, compared with results derived by hand from the IAM user guide."""

import json
from typing import Any

import pytest

from gateway.storage.s3.aws.proof import Dialect, UnsupportedPolicy, evaluate


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def allow(resource: str, action: str = "s3:GetObject", **more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **more}


def may_get(document: str, key: str, dialect: Dialect = Dialect.AWS, **context: str) -> bool:
    return evaluate(document, "s3:GetObject", bucket="b", key=key, context=context, dialect=dialect)


def test_an_empty_policy_allows_nothing() -> None:
    assert not may_get(policy(), "k")


@pytest.mark.parametrize(
    ("pattern", "key", "expected"),
    [
        ("k/*", "k/", True),
        ("k/*", "k/a/b", True),
        ("k/*", "k", False),
        ("k/*", "k0/a", False),
        ("k/*", "k/a\nb", True),
        ("k?", "k1", True),
        ("k?", "k", False),
        ("k?", "k12", False),
        ("a*c*e", "abcde", True),
        ("a*c*e", "abde", False),
        ("k${*}", "k*", True),
        ("k${*}", "kx", False),
        ("k${?}", "k?", True),
        ("k${?}", "kx", False),
        ("k${$}{x}", "k${x}", True),
        ("k${$}{*}", "k${anything}", True),
        ("a.c", "abc", False),
        ("[ab]", "a", False),
    ],
)
def test_patterns_and_escapes_match_as_in_the_iam_guide(pattern: str, key: str, expected: bool) -> None:
    assert may_get(policy(allow(f"arn:aws:s3:::b/{pattern}")), key) is expected


def test_a_policy_variable_is_the_request_value_and_never_matches_if_absent() -> None:
    document = policy(allow("arn:aws:s3:::b/${aws:username}/*"))
    assert evaluate(document, "s3:GetObject", bucket="b", key="ann/x", context={"aws:username": "ann"})
    assert not evaluate(document, "s3:GetObject", bucket="b", key="x*/x", context={"aws:username": "x"})
    # A pattern character in the value of a variable is taken literally.
    assert not evaluate(document, "s3:GetObject", bucket="b", key="bob/x", context={"aws:username": "*"})
    assert not may_get(document, "${aws:username}/x")


def test_the_case_insensitive_dialect_has_no_escapes() -> None:
    assert may_get(policy(allow("arn:aws:s3:::b/K/*")), "k/x", Dialect.CASE_BLIND)
    assert not may_get(policy(allow("arn:aws:s3:::b/K/*")), "k/x")
    assert not may_get(policy(allow("arn:aws:s3:::b/k${*}/*")), "k*/x", Dialect.CASE_BLIND)
    assert may_get(policy(allow("arn:aws:s3:::b/k${*}/*")), "k${any}/x", Dialect.CASE_BLIND)


def test_a_deny_overrides_allows_in_any_order() -> None:
    deny = allow("arn:aws:s3:::b/k/secret/*") | {"Effect": "Deny"}
    for document in (policy(deny, allow("arn:aws:s3:::b/k/*")), policy(allow("arn:aws:s3:::b/k/*"), deny)):
        assert may_get(document, "k/open") and not may_get(document, "k/secret/x")


def test_a_deny_with_an_unmet_condition_denies_nothing() -> None:
    deny = allow("*", Condition={"StringEquals": {"s3:unheard-of": "x"}}) | {"Effect": "Deny"}
    assert may_get(policy(allow("arn:aws:s3:::b/*"), deny), "k")


@pytest.mark.parametrize(
    ("operator", "value", "context", "expected"),
    [
        ("StringEquals", "a/", {"s3:prefix": "a/"}, True),
        ("StringEquals", "a/*", {"s3:prefix": "a/b"}, False),
        ("StringEquals", ["x", "a/"], {"s3:prefix": "a/"}, True),
        ("StringEquals", "a/", {}, False),
        ("StringLike", "a/*", {"s3:prefix": "a/b"}, True),
        ("StringLike", "a/*", {"s3:prefix": "a"}, False),
        ("StringLike", "a/*", {"s3:prefix": "A/b"}, False),
        ("StringLike", "*", {}, False),
        ("StringLike", "a/*", {"S3:Prefix": "a/b"}, True),
        ("StringLikeIfExists", "a/*", {}, True),
        ("StringLikeIfExists", "a/*", {"s3:prefix": "b"}, False),
        ("StringNotLike", "a/*", {"s3:prefix": "a/b"}, False),
        ("StringNotLike", "a/*", {}, True),
        ("StringNotEquals", ["a", "b"], {"s3:prefix": "b"}, False),
        ("StringEqualsIgnoreCase", "A/", {"s3:prefix": "a/"}, True),
        ("Null", "true", {}, True),
        ("Null", "true", {"s3:prefix": ""}, False),
    ],
)
def test_conditions_match_as_in_the_iam_guide(
    operator: str, value: Any, context: dict[str, str], expected: bool
) -> None:
    document = policy(allow("arn:aws:s3:::b", "s3:ListBucket", Condition={operator: {"s3:prefix": value}}))
    assert evaluate(document, "s3:ListBucket", bucket="b", context=context) is expected


def test_in_the_case_insensitive_dialect_negated_conditions_need_the_key() -> None:
    document = policy(allow("arn:aws:s3:::b", "s3:ListBucket", Condition={"StringNotLike": {"s3:prefix": "a/*"}}))
    assert not evaluate(document, "s3:ListBucket", bucket="b", dialect=Dialect.CASE_BLIND)


def test_all_condition_keys_and_operators_must_match() -> None:
    condition = {"StringLike": {"s3:prefix": "a/*", "s3:delimiter": "/"}}
    document = policy(allow("arn:aws:s3:::b", "s3:ListBucket", Condition=condition))
    assert evaluate(document, "s3:ListBucket", bucket="b", context={"s3:prefix": "a/", "s3:delimiter": "/"})
    assert not evaluate(document, "s3:ListBucket", bucket="b", context={"s3:prefix": "a/"})


def test_actions_are_case_insensitive_patterns_and_not_action_negates_them() -> None:
    assert may_get(policy(allow("*", "S3:get*")), "k")
    assert not may_get(policy(allow("*", "s3:Put*")), "k")
    turned = {"Effect": "Allow", "NotAction": "s3:Put*", "NotResource": "arn:aws:s3:::b/secret/*"}
    assert may_get(policy(turned), "k") and not may_get(policy(turned), "secret/k")
    assert not evaluate(policy(turned), "s3:PutObject", bucket="b", key="k")


@pytest.mark.parametrize(
    "document",
    [
        '{"Statement":[]}',
        '{"Version":"2008-10-17","Statement":[]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*"}]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"allow","Action":"*","Resource":"*"}]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*","Principal":"*"}]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Effect":"Allow","Action":"*","Resource":"*"}]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":[1]}]}',
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*",'
        '"Condition":{"NumericEquals":{"s3:max-keys":"1"}}}]}',
    ],
)
def test_the_evaluator_rejects_unknown_policy_elements(document: str) -> None:
    with pytest.raises(UnsupportedPolicy):
        evaluate(document, "s3:GetObject", bucket="b", key="k", context={"s3:max-keys": "1"})
