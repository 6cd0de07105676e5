# SPDX-License-Identifier: Apache-2.0
"""Bundles of policies on a real OPA: policy data that outlives a restart, ownership of data, and signatures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.opa.bundle import BundleName, PolicyBundle, SigningAlgorithm, SigningKey, policy_bundle
from gateway.opa.policy_files import policy_files
from tests.support.servers.opa_bundles import (
    OPERATOR,
    BundleServer,
    PollingOpa,
    bundle_server,
    key_pair,
    polling,
    until,
)
from tests.support.servers.opa_program import source

pytestmark = [pytest.mark.integration, pytest.mark.servers]

POLICIES = Path(__file__).parents[2] / "policies"
FILE = "/gateway.tar.gz"
MIRA = "oidc~mira"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a policy repository that contains a list of contractors."""
    data = tmp_path / "repository" / "policies" / "policy_data" / "contractors"
    shutil.copytree(POLICIES / "policy_data" / "contractors", data)
    return tmp_path / "repository"


def listed(repository: Path, *users: str) -> None:
    """Write the deny list of the repository."""
    file = repository / "policies" / "policy_data" / "contractors" / "data.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"users": list(users)}))


def built(directory: Path, key: SigningKey | None = None, *, complete: bool = False) -> PolicyBundle:
    return policy_bundle(policy_files(source(directory, complete=complete)), BundleName.GATEWAY, key)


def _failed_more(opa: PollingOpa, failures: int) -> bool:
    return opa.log.count("Bundle load failed") > failures


def config(server: str, **bundle: Any) -> dict[str, Any]:
    """Return the configuration of an OPA that polls the bundle server every second."""
    polled = {"min_delay_seconds": 1, "max_delay_seconds": 1}
    return {
        "services": {"policies": {"url": server}},
        "bundles": {"gateway": {"service": "policies", "resource": FILE, "polling": polled, **bundle}},
    }


@pytest.fixture
def server() -> Iterator[BundleServer]:
    with bundle_server() as running:
        yield running


def test_deny_list_of_the_bundle_denies_after_a_change_and_after_a_killed_opa(
    repository: Path, server: BundleServer, tmp_path: Path
) -> None:
    server.files[FILE] = built(repository).content
    with polling(tmp_path / "opa", config(server.url)) as opa:
        until(lambda: opa.codes(MIRA) == [], lambda: opa.log)
        before = opa.revision()
        listed(repository, MIRA)
        changed = built(repository)
        server.files[FILE] = changed.content
        until(lambda: opa.codes(MIRA) == ["contractor_outside_hours"], lambda: opa.log)
        assert opa.revision() not in (None, before), "the gateway would keep cached answers of the old list"
        until(lambda: server.statuses[-1] == 304, lambda: "OPA downloaded an unchanged bundle again")
        opa.kill()
        opa.start()
        until(lambda: opa.codes(MIRA) is not None, lambda: opa.log)
        assert opa.codes(MIRA) == ["contractor_outside_hours"]


def test_data_of_the_bundle_cannot_be_replaced_by_a_request(
    repository: Path, server: BundleServer, tmp_path: Path
) -> None:
    listed(repository, MIRA)
    server.files[FILE] = built(repository).content
    with polling(tmp_path / "opa", config(server.url)) as opa:
        until(lambda: opa.codes(MIRA) == ["contractor_outside_hours"], lambda: opa.log)
        operator = {"Authorization": f"Bearer {OPERATOR}"}
        for path in ("policy_data/contractors", "policy_data/new", "policy_data"):
            refused = httpx.put(f"{opa.url}/v1/data/{path}", json={}, headers=operator, trust_env=False, timeout=60)
            assert refused.status_code == 400, refused.text
            assert "owned by bundle" in refused.text
        assert opa.codes(MIRA) == ["contractor_outside_hours"]


def test_missing_policy_data_denies_every_request(server: BundleServer, tmp_path: Path) -> None:
    policies = shutil.copytree(POLICIES, tmp_path / "policies")
    shutil.rmtree(policies / "policy_data")
    server.files[FILE] = built(policies, complete=True).content
    with polling(tmp_path / "opa", config(server.url)) as opa:
        until(lambda: opa.codes(MIRA) is not None, lambda: opa.log)
        assert set(opa.codes(MIRA) or []) == {"contractors_unknown", "credential_rules_unreadable"}


def test_opa_without_its_bundle_makes_no_decision(server: BundleServer, tmp_path: Path) -> None:
    with polling(tmp_path / "opa", config(server.url)) as opa:
        until(lambda: 404 in server.statuses, lambda: opa.log)
        assert opa.decisions(MIRA) is None
        assert opa.revision() is None


@pytest.mark.parametrize("algorithm", list(SigningAlgorithm))
def test_signed_bundle_is_accepted_and_one_with_another_key_keeps_the_old_rules(
    repository: Path, server: BundleServer, tmp_path: Path, algorithm: SigningAlgorithm
) -> None:
    private, public = key_pair(algorithm)
    other = "b" * 40 if algorithm is SigningAlgorithm.HS256 else key_pair(algorithm)[0]
    listed(repository, MIRA)
    server.files[FILE] = built(repository, SigningKey(algorithm, private)).content
    keys = {"keys": {"policies": {"algorithm": algorithm, "key": public}}}
    with polling(tmp_path / "opa", config(server.url, signing={"keyid": "policies"}) | keys) as opa:
        until(lambda: opa.codes(MIRA) == ["contractor_outside_hours"], lambda: opa.log)
        before = opa.revision()
        listed(repository)
        for wrong in (built(repository, SigningKey(algorithm, other)), built(repository)):
            failures = opa.log.count("Bundle load failed")
            server.files[FILE] = wrong.content
            until(partial(_failed_more, opa, failures + 1), lambda: opa.log)
            assert (opa.revision(), opa.codes(MIRA)) == (before, ["contractor_outside_hours"])
        server.files[FILE] = built(repository, SigningKey(algorithm, private)).content
        until(lambda: opa.codes(MIRA) == [], lambda: opa.log)


def test_text_that_go_and_python_escape_differently_does_not_break_the_signature(
    repository: Path, server: BundleServer, tmp_path: Path
) -> None:
    listed(repository, '<&>\u2028\u2029\u007f\b\f\n"\\\x01ä𝄞', MIRA)
    extra = repository / "policies" / "policy_data" / "more" / "data.json"
    extra.parent.mkdir()
    extra.write_text('{"z": 1.0, "a": 1e3, "ä": -0, "m": 12345678901234567890123, "b": [true, null, 1e-7, 0.10]}')
    private, public = key_pair("HS256")
    server.files[FILE] = built(repository, SigningKey(SigningAlgorithm.HS256, private)).content
    keys = {"keys": {"policies": {"algorithm": "HS256", "key": public}}}
    with polling(tmp_path / "opa", config(server.url, signing={"keyid": "policies"}) | keys) as opa:
        until(lambda: opa.codes(MIRA) == ["contractor_outside_hours"], lambda: opa.log)


def test_a_seeded_bundle_serves_while_the_bundle_server_is_down(repository: Path, tmp_path: Path) -> None:
    listed(repository, MIRA)
    seed = tmp_path / "opa" / "kept" / "bundles" / "gateway" / "bundle.tar.gz"
    seed.parent.mkdir(parents=True)
    seed.write_bytes(built(repository).content)
    settings = config("http://127.0.0.1:1", persist=True) | {"persistence_directory": str(tmp_path / "opa" / "kept")}
    with polling(tmp_path / "opa", settings) as opa:
        until(lambda: opa.codes(MIRA) == ["contractor_outside_hours"], lambda: opa.log)
