# SPDX-License-Identifier: Apache-2.0
"""Random requests of every provider that vends: (provider, location, level, action, key) against its evaluator.

A credential for a location must allow an action of its level on every key below it, and nothing else. The expected
answer is computed here from the text of key and location. `make test-long` sends a million requests;
docs/long-tests.md has the last result.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from gateway.scope.credential import AccessLevel
from gateway.scope.errors import InvalidLocation, PolicyTooLarge
from gateway.scope.location import Location, Scheme
from gateway.storage.adls.profile import SCHEME as ADLS
from gateway.storage.adls.proof import evaluate as evaluate_signature
from gateway.storage.adls.sas import build_directory, read_directory, sign_with_account
from gateway.storage.gcs.access_boundary import build_access_boundary
from gateway.storage.gcs.profile import SCHEME as GCS
from gateway.storage.gcs.proof import evaluate as evaluate_boundary
from gateway.storage.provider import Provider
from gateway.storage.registry import PROVIDERS, decode_profile
from gateway.storage.s3.aws.proof import evaluate as evaluate_policy
from gateway.storage.s3.aws.session_policy import build_session_policy
from gateway.storage.s3.profile import SCHEME as S3

_NASTY = "abtT01-_.~+=@!,;&()'\"|<>^%$*?{}[]:é中ß\\ "
_INJECTED = (
    "') || true || ('", "${*}", "${aws:username}", "&sp=racwdl", "\n", "%2e%2e", "%2F", "..", ".", "*", "t1/../t2",
    "').startsWith('", "\\'", "?sig=x", "\ufeff", "t1 ", "t1.", "T1",
)  # fmt: skip
_ACCOUNT_KEY = b"k" * 64
_READ, _WRITE, _ALL = AccessLevel.READ, AccessLevel.READ_WRITE, AccessLevel.READ_WRITE_DELETE


@dataclass(frozen=True)
class Case:
    """One provider: `policy` builds the confinement, `allows` evaluates it for (document, action, key).

    `actions`: the levels that allow each action, empty for actions that no credential may have.
    """

    scheme: Scheme
    authority: str
    policy: Callable[[Location, AccessLevel], str]
    allows: Callable[[str, str, str], bool]
    actions: Mapping[str, frozenset[AccessLevel]]


def _levels(*levels: AccessLevel) -> frozenset[AccessLevel]:
    return frozenset(levels)


def _sign(location: Location, level: AccessLevel) -> str:
    start = datetime(2026, 11, 25, tzinfo=UTC)
    directory = read_directory(build_directory(location, level))
    return sign_with_account(directory, _ACCOUNT_KEY, start=start, expiry=start + timedelta(hours=1))


CASES: Mapping[str, Case] = {
    "s3": Case(
        S3,
        "lake-1",
        lambda location, level: build_session_policy(location, level, escapes_known=True),
        lambda document, action, key: evaluate_policy(document, action, bucket="lake-1", key=key),
        {
            "s3:GetObject": _levels(_READ, _WRITE, _ALL),
            "s3:PutObject": _levels(_WRITE, _ALL),
            "s3:AbortMultipartUpload": _levels(_WRITE, _ALL),
            "s3:DeleteObject": _levels(_ALL),
            "s3:PutObjectAcl": _levels(),
            "s3:PutBucketPolicy": _levels(),
            "sts:AssumeRole": _levels(),
        },
    ),
    "gcs": Case(
        GCS,
        "lake-1",
        build_access_boundary,
        lambda document, action, key: evaluate_boundary(document, action, bucket="lake-1", name=key),
        {
            "storage.objects.get": _levels(_READ, _WRITE, _ALL),
            "storage.objects.create": _levels(_WRITE, _ALL),
            "storage.objects.delete": _levels(_ALL),
            "storage.objects.setIamPolicy": _levels(),
            "storage.buckets.update": _levels(),
            "iam.serviceAccounts.getAccessToken": _levels(),
        },
    ),
    "adls": Case(
        ADLS,
        "lake@account1.dfs.core.windows.net",
        _sign,
        lambda document, action, key: evaluate_signature(
            document, _ACCOUNT_KEY, action, account="account1", filesystem="lake", path=key
        ),
        {
            "read": _levels(_READ, _WRITE, _ALL),
            "list": _levels(_READ, _WRITE, _ALL),
            "write": _levels(_WRITE, _ALL),
            "append": _levels(_WRITE, _ALL),
            "delete": _levels(_ALL),
            "move": _levels(),
            "set permissions": _levels(),
            "set owner": _levels(),
        },
    ),
}


def test_every_provider_that_vends_is_fuzzed() -> None:
    assert {provider.tag for provider in PROVIDERS if provider.decode_credential is not None} == set(CASES)


def _segment(rng: random.Random) -> str:
    if rng.random() < 0.2:
        return rng.choice(_INJECTED)
    return "".join(rng.choice(_NASTY) for _ in range(rng.randint(1, 8)))


def _key(rng: random.Random, path: str) -> str:
    """Return a key below the path, beside it, above it, or similar to it."""
    match rng.randrange(8):
        case 0 | 1:
            return f"{path}/{_segment(rng)}/{_segment(rng)}"
        case 2:
            return path[: rng.randint(0, len(path))] + _segment(rng)
        case 3:
            return f"{path}{_segment(rng)}"
        case 4:
            return f"{_segment(rng)}/{path}/{_segment(rng)}"
        case 5:
            return f"{path.swapcase()}/{_segment(rng)}"
        case 6:
            changed = list(f"{path}/{_segment(rng)}")
            changed[rng.randrange(len(changed))] = rng.choice(_NASTY)
            return "".join(changed)
        case _:
            return "/".join(_segment(rng) for _ in range(rng.randint(1, 4)))


def _is_below(provider: str, key: str, path: str) -> bool:
    if provider == "adls":
        # The directory itself is included, and the file service refuses names that are no path.
        return f"{key}/".startswith(path + "/") and not {"", ".", ".."} & set(key.rstrip("/").split("/"))
    return key.startswith(path + "/")


@pytest.mark.threat("LG-POL-01", "LG-POL-03", "LG-POL-04", "LG-POL-05")
@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_no_random_request_escapes_the_location_of_its_credential(count: int) -> None:
    rng = random.Random(random.randrange(2**32))
    asked: Counter[tuple[str, bool]] = Counter()
    while sum(asked.values()) < count:
        provider = rng.choice(sorted(CASES))
        case = CASES[provider]
        try:
            location = Location(case.scheme, case.authority, tuple(_segment(rng) for _ in range(rng.randint(1, 4))))
            level = rng.choice(sorted(AccessLevel))
            document = case.policy(location, level)
        except (InvalidLocation, PolicyTooLarge):
            continue
        path = "/".join(location.segments)
        for _ in range(20):
            key, action = _key(rng, path), rng.choice(sorted(case.actions))
            if not key:
                continue
            expected = _is_below(provider, key, path) and level in case.actions[action]
            assert case.allows(document, action, key) is expected, (provider, location.text, level, action, key)
            asked[provider, expected] += 1
    # Requests of both kinds were sent for each provider.
    assert all(asked[provider, allowed] > count / 100 for provider in CASES for allowed in (True, False))


@pytest.mark.parametrize("provider", [each for each in PROVIDERS if each.prove is not None], ids=lambda each: each.tag)
def test_the_proof_of_a_provider_accepts_its_own_policies(provider: Provider) -> None:
    profiles = {
        "s3": {"bucket": "lake-1", "region": "r"},
        "gcs": {"bucket": "lake-1"},
        "adls": {"account-name": "account1", "filesystem": "lake"},
    }
    profile = decode_profile(json.dumps({"type": provider.tag, **profiles[provider.tag]}).encode())
    case = CASES[provider.tag]
    location = Location(case.scheme, case.authority, ("wh", "t'1"))
    assert provider.prove is not None
    for level in AccessLevel:
        assert provider.prove(profile, location, level, ["wh/t'10/f", "wh/t", "other"]) == []
