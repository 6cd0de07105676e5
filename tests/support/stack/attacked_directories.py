# SPDX-License-Identifier: Apache-2.0
"""Fixtures for attacks by SCIM directories on a gateway; import the fixtures that a module uses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.support.servers.toxic import Shaky, shaky_gateway
from tests.support.stack.directories import Directory, provisioning, settings_of
from tests.support.stack.providers import AUDIENCE, stub_provider
from tests.support.stack.world import World

#: An id that no resource has.
UNUSED_UUID = "0199d0c4-0000-7000-8000-00000000dead"


@dataclass
class Attacked:
    """A gateway with three directories; one belongs to the administrator's own provider."""

    entra: Directory
    okta: Directory
    own: Directory
    shaky: Shaky


@pytest.fixture(scope="module")
def attacked(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    log = tmp_path_factory.mktemp("scim") / "gateway.log"
    with stub_provider() as provider:
        settings = settings_of(provider) | {"OPENID_SCIM_SUBJECT": "externalId", "OPENFGA__TIMEOUT": "2s"}
        with shaky_gateway(world.ready, log, **settings) as shaky:
            audiences = {"entra": AUDIENCE, "okta": "okta", "oidc": ""}
            with provisioning(world, shaky.base, shaky.process, provider, **audiences) as found:
                yield Attacked(found["entra"], found["okta"], found["oidc"], shaky)
            shaky.well()


@pytest.fixture
def entra(attacked: Attacked) -> Directory:
    return attacked.entra


@pytest.fixture
def okta(attacked: Attacked) -> Directory:
    return attacked.okta
