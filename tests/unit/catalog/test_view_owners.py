# SPDX-License-Identifier: Apache-2.0
"""Owners that a view may name."""

from __future__ import annotations

import pytest

from gateway.access.actor import Actor
from gateway.features.views.views import ViewOwners
from gateway.iceberg.codec import Parts
from gateway.iceberg.errors import ViewActionForbidden
from gateway.iceberg.schema import Schema
from gateway.iceberg.views import ViewHistoryEntry, ViewMetadata, ViewVersion

_BOB = Actor.user("oidc~bob")


def _view(runs_as: str | None, *, version: int = 1) -> ViewMetadata:
    return ViewMetadata(
        view_uuid="u",
        format_version=1,
        location="s3://b/v",
        properties={} if runs_as is None else {"trino.run-as-owner": runs_as},
        schemas=Parts(Schema),
        current_version_id=version,
        versions=Parts(ViewVersion),
        version_log=Parts(ViewHistoryEntry),
        extra={},
    )


@pytest.mark.parametrize("name", [None, "bob", "oidc~bob"])
def test_a_view_may_run_as_its_reader_or_its_author(name: str | None) -> None:
    ViewOwners("oidc").require_own(_BOB, _view(name))


@pytest.mark.parametrize("name", ["alice", "oidc~alice", "", "Bob", "bob "])
def test_a_view_cannot_run_as_another_user(name: str) -> None:
    with pytest.raises(ViewActionForbidden):
        ViewOwners("oidc").require_own(_BOB, _view(name))


def test_a_subject_without_provider_is_refused_if_several_providers_exist() -> None:
    with pytest.raises(ViewActionForbidden):
        ViewOwners(None).require_own(_BOB, _view("bob"))
    with pytest.raises(ViewActionForbidden):
        ViewOwners("oidc").require_own(Actor.user("corp~bob"), _view("bob"))


def test_a_view_of_another_owner_can_be_changed_but_not_redefined() -> None:
    owners = ViewOwners("oidc")
    owners.require_own(_BOB, _view("alice"), _view("alice"))
    owners.require_own(_BOB, _view(None, version=2), _view("alice"))
    owners.require_own(_BOB, _view("bob", version=2), _view("alice"))
    with pytest.raises(ViewActionForbidden):
        owners.require_own(_BOB, _view("alice", version=2), _view("alice"))
    with pytest.raises(ViewActionForbidden):
        owners.require_own(_BOB, _view("alice"), _view("carol"))
