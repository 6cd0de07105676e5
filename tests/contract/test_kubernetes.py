# SPDX-License-Identifier: Apache-2.0
"""Service accounts of Kubernetes clusters: TokenReview by the cluster's API server, over TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.support.servers.kubernetes_api import AUDIENCE, OWN_AUDIENCE, StubCluster, stub_cluster
from tests.support.servers.toxic import second_gateway
from tests.support.stack.providers import signed
from tests.support.stack.token_groups import give, of_group
from tests.support.stack.world import Person, World, error_triple, unique

pytestmark = pytest.mark.servers

USER = "/management/v1/user"


@dataclass(frozen=True)
class Two:
    """A gateway with two clusters.

    `lab` names accounts by uid and publishes its keys. `mill` names accounts by name, publishes no keys and has a
    short cache lifetime.
    """

    base: str
    lab: StubCluster
    mill: StubCluster

    def whoami(self, token: str) -> httpx.Response:
        """Return the principal that the gateway reports for the caller."""
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.post(f"{self.base}{USER}", json={}, headers=headers, timeout=60, trust_env=False)


@pytest.fixture(scope="module")
def two(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    lab_files, mill_files = tmp_path_factory.mktemp("lab"), tmp_path_factory.mktemp("mill")
    with stub_cluster(lab_files) as lab, stub_cluster(mill_files) as mill:
        mill.issuer, mill.hides_keys = "https://mill.example", True
        settings = {
            "KUBERNETES_CLUSTERS__LAB__URL": lab.url,
            "KUBERNETES_CLUSTERS__LAB__AUDIENCE": AUDIENCE,
            "KUBERNETES_CLUSTERS__LAB__CA_FILE": str(lab_files / "authority.pem"),
            "KUBERNETES_CLUSTERS__LAB__TOKEN_FILE": str(lab_files / "token"),
            "KUBERNETES_CLUSTERS__MILL__URL": mill.url,
            "KUBERNETES_CLUSTERS__MILL__AUDIENCE": AUDIENCE,
            "KUBERNETES_CLUSTERS__MILL__CA_FILE": str(mill_files / "authority.pem"),
            "KUBERNETES_CLUSTERS__MILL__TOKEN_FILE": str(mill_files / "token"),
            "KUBERNETES_CLUSTERS__MILL__ISSUERS": mill.issuer,
            "KUBERNETES_CLUSTERS__MILL__SUBJECT_SOURCE": "username",
            "KUBERNETES_CLUSTERS__MILL__ACCEPT_LEGACY_SERVICEACCOUNT": "true",
            "KUBERNETES_CLUSTERS__MILL__REVIEW_LIFETIME": "1s",
        }
        log = tmp_path_factory.mktemp("clusters") / "gateway.log"
        with second_gateway(world.ready, log, **settings) as (base, _):
            yield Two(base, lab, mill)


@pytest.fixture(autouse=True)
def as_it_was(two: Two) -> Iterator[None]:
    yield
    for cluster in (two.lab, two.mill):
        cluster.answer, cluster.pause = None, 0.0


def test_service_account_is_identified_by_uid_or_name(two: Two) -> None:
    uid = unique("9e1c")
    made = two.whoami(two.lab.account("etl", "nightly", uid=uid)).json()
    assert (made["id"], made["name"], made["user-type"]) == (f"lab~{uid}", "etl/nightly", "application")
    name = unique("nightly").replace("_", "-")
    made = two.whoami(two.mill.account("etl", name, uid=uid)).json()
    assert made["id"] == f"mill~system:serviceaccount:etl:{name}"


def test_service_account_grant_applies_and_its_namespace_is_a_group(world: World, two: Two, ns: str) -> None:
    table = world.table(ns)
    namespace = unique("etl").replace("_", "-")
    person = Person("pod", "", two.lab.account(namespace, "loader", uid=unique("u")), two.base)
    person.id = two.whoami(person.token).json()["id"]
    assert error_triple(person.get(table.path))[0] == 404
    world.grant("select", person, "table", table.uuid)
    assert person.get(table.path).status_code == 200
    world.revoke("select", person, "table", table.uuid)
    assert error_triple(person.get(table.path))[0] == 404
    role = of_group(world, f"system:serviceaccounts:{namespace}", provider="lab")
    give(world, "select", role, "table", table.uuid)
    assert person.get(table.path).status_code == 200
    person.http.close()


def test_token_of_one_cluster_is_refused_by_the_other(two: Two) -> None:
    uid = unique("u")
    requested = two.mill.questions
    assert two.whoami(two.lab.account("etl", "x", uid=uid)).json()["id"] == f"lab~{uid}"
    assert two.mill.questions == requested


def test_unknown_cluster_token_is_refused_and_reviewed_once(two: Two) -> None:
    token = two.lab.account("etl", "gone", uid=unique("u"))
    del two.lab.accounts[token]
    requested = two.lab.questions
    for _ in range(8):
        refused = two.whoami(token)
        assert refused.status_code == 401 and "cluster" in refused.json()["error"]["message"]
    assert two.lab.questions - requested <= 4, "each worker process may request one review"


@pytest.mark.parametrize(
    "claims",
    [
        {"audience": "https://kubernetes.default.svc"},
        {"exp": -600},
        {"exp": ...},
        {"exp": "soon"},
        {"nbf": 600},
        {"iss": "https://kubernetes.default.svc.cluster.local/"},
        {"iss": "kubernetes/serviceaccount", "sub": "x"},
    ],
)
def test_evidently_invalid_token_is_not_reviewed(two: Two, claims: dict[str, Any]) -> None:
    # Numbers are seconds from now: parameters are made long before the test runs.
    moments = {name: time.time() + value for name, value in claims.items() if isinstance(value, int)}
    token = two.lab.account("etl", "odd", uid=unique("u"), **claims | moments)
    if claims.get("iss") == "kubernetes/serviceaccount":
        del two.lab.accounts[token]
    requested = two.lab.questions
    assert two.whoami(token).status_code == 401
    assert two.lab.questions == requested


def test_forged_token_flood_blocks_no_pod_if_the_cluster_publishes_keys(two: Two) -> None:
    """The flood fills the queues of all processes; each token is valid except for the signature or the key id."""
    two.whoami(two.lab.account("etl", "first", uid=unique("u")))
    requested = two.lab.questions
    for _ in range(50):
        head, _, signature = two.lab.account("etl", "x", uid=unique("u")).rpartition(".")
        refused = two.whoami(f"{head}.{'A' * len(signature)}")
        assert refused.status_code == 401 and "signature" in refused.json()["error"]["message"]
    assert two.lab.questions == requested
    assert set(two.lab.calls) == {"/openid/v1/jwks"}
    two.lab.pause = 0.3
    strangers = [signed(two.lab.key, two.lab.claims("x", aud=[AUDIENCE]), kid=unique("k")) for _ in range(320)]
    with ThreadPoolExecutor(320) as pool:
        storm = [pool.submit(two.whoami, token) for token in strangers]
        while two.lab.questions < requested + 4:
            time.sleep(0.01)
        for _ in range(5):
            uid = unique("u")
            assert two.whoami(two.lab.account("etl", "real", uid=uid)).json()["id"] == f"lab~{uid}"
        statuses = [each.result().status_code for each in storm]
    assert statuses.count(503) > 0, "expected some tokens with unknown keys to be refused with 503"
    assert set(statuses) <= {401, 503}


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": True, "user": {"username": "admin", "uid": "u"}, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": "system:node:n1", "uid": "u"}, "audiences": [AUDIENCE]},
        {
            "authenticated": True,
            "user": {"username": "system:serviceaccount:a:b:c", "uid": "u"},
            "audiences": [AUDIENCE],
        },
        {"authenticated": True, "user": {"username": "system:serviceaccount:a:b", "uid": ""}, "audiences": [AUDIENCE]},
        {"authenticated": True, "user": {"username": "system:serviceaccount:a:b", "uid": "u"}, "audiences": ["else"]},
        {"authenticated": True, "user": {"username": "system:serviceaccount:a:b", "uid": "u"}},
        {
            "authenticated": False,
            "user": {"username": "system:serviceaccount:a:b", "uid": "u"},
            "audiences": [AUDIENCE],
        },
        {"user": {"username": "system:serviceaccount:a:b", "uid": "u"}, "audiences": [AUDIENCE]},
        {},
    ],
)
def test_review_without_an_account_for_the_audience_is_refused(two: Two, status: dict[str, Any]) -> None:
    review = {"kind": "TokenReview", "apiVersion": "authentication.k8s.io/v1", "status": status}
    two.lab.answer = (201, review)
    assert two.whoami(two.lab.account("etl", "odd", uid=unique("u"))).status_code == 401


@pytest.mark.parametrize(
    "answer",
    [
        (500, {}),
        (403, {"kind": "Status", "reason": "Forbidden"}),
        (401, {"kind": "Status"}),
        (429, {}),
        (302, {}),
        (201, b"no json"),
        (201, {"status": {"authenticated": "true"}}),
        (201, {"kind": "Other", "apiVersion": "v1", "status": {"authenticated": True}}),
        (201, b'{"status": {"authenticated": true, "user": {"uid": "' + b"x" * 300_000 + b'"}}}'),
    ],
)
def test_unusable_review_response_is_an_outage_and_no_permission(two: Two, answer: tuple[int, Any]) -> None:
    two.lab.answer = answer
    refused = two.whoami(two.lab.account("etl", "late", uid=unique("u")))
    assert error_triple(refused)[0] == 503 and int(refused.headers["retry-after"]) > 0
    assert "127.0.0.1" not in refused.text
    assert two.whoami(two.mill.account("etl", "fine", uid=unique("u"))).status_code in (200, 201)


def test_deleted_account_is_refused_when_its_cached_review_expires(two: Two) -> None:
    token = two.mill.account("etl", unique("short").replace("_", "-"), uid=unique("u"))
    assert two.whoami(token).status_code == 201
    del two.mill.accounts[token]
    deadline = time.monotonic() + 60
    while two.whoami(token).status_code != 401:
        assert time.monotonic() < deadline
        time.sleep(0.3)


def test_legacy_token_is_accepted_only_if_configured(two: Two) -> None:
    name = unique("old").replace("_", "-")
    claims = {"iss": "kubernetes/serviceaccount", "exp": ..., "iat": ...}
    token = two.mill.account("etl", name, uid=unique("u"), audience=None, **claims)
    assert two.whoami(token).json()["id"] == f"mill~system:serviceaccount:etl:{name}"
    named = two.mill.account("etl", name, uid=unique("u"), audience=OWN_AUDIENCE, **claims)
    assert error_triple(two.whoami(named))[0] == 401, (
        "a token for the API server must not be accepted as a legacy token"
    )


def test_token_for_the_api_server_audience_is_refused(two: Two) -> None:
    """Every pod has a token for this audience."""
    for audience in (OWN_AUDIENCE, None):
        token = two.mill.account("etl", unique("own").replace("_", "-"), uid=unique("u"), audience=audience)
        assert error_triple(two.whoami(token))[0] == 401


def test_replaced_reviewer_token_is_reread(two: Two) -> None:
    two.lab.own = two.lab.account("lakegate", "gateway", uid="uid-of-the-gateway", jti=unique("j"))
    assert error_triple(two.whoami(two.lab.account("etl", "x", uid=unique("u"))))[0] == 503
    (two.lab.files / "token").write_text(two.lab.own)
    assert two.whoami(two.lab.account("etl", "x", uid=unique("u"))).status_code == 201
