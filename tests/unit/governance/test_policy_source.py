# SPDX-License-Identifier: Apache-2.0
"""The settings of the policy bundles that the gateway serves."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway import settings
from gateway.assembly.policies import policy_source
from gateway.features.server.policy_bundles import PolicyBundles
from gateway.opa.bundle import BundleName
from gateway.settings import SettingsError
from tests.support.kits import kit_of
from tests.support.servers.opa_bundles import key_pair
from tests.support.servers.opa_program import source as policies_of


def source(**variables: str) -> object:
    return policy_source(settings.load({f"LAKEGATE__{name}": value for name, value in variables.items()}))


def test_without_settings_the_package_is_served_unsigned() -> None:
    assert source() == (None, None)


def test_a_missing_directory_and_an_unreadable_key_stop_the_start(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="LAKEGATE__POLICY_DIRECTORY must be an existing directory"):
        source(POLICY_DIRECTORY=str(tmp_path / "none"))
    with pytest.raises(SettingsError, match="LAKEGATE__POLICY_SIGNING_KEY_FILE, .*cannot be read"):
        source(POLICY_SIGNING_KEY_FILE=str(tmp_path / "none.pem"))


def test_a_key_of_another_algorithm_stops_the_start_and_is_not_printed(tmp_path: Path) -> None:
    private = key_pair("RS256")[0]
    (tmp_path / "key.pem").write_text(private)
    with pytest.raises(SettingsError, match="key.pem: the signing key is not a key for ES256") as refused:
        source(POLICY_SIGNING_KEY_FILE=str(tmp_path / "key.pem"), POLICY_SIGNING_ALGORITHM="ES256")
    assert private.splitlines()[1] not in str(refused.value)


def test_a_change_behind_a_linked_folder_is_served(tmp_path: Path) -> None:
    real, repository = tmp_path / "real", tmp_path / "repository"
    real.mkdir()
    repository.mkdir()
    (repository / "policies").symlink_to(real)
    (real / "mine.rego").write_text("package gateway.guardrails.mine\n")
    bundles = PolicyBundles(kit_of(policy_source=(policies_of(repository), None)))
    before = bundles._current(BundleName.GATEWAY)
    assert bundles._current(BundleName.GATEWAY) is before
    (real / "more.rego").write_text("package gateway.guardrails.more\n")
    assert bundles._current(BundleName.GATEWAY).revision != before.revision
