# SPDX-License-Identifier: Apache-2.0
"""Row filters and masks of guardrails restrict the table of the question, as data policies do."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog.testing

from gateway.access.nouns.relations import Can
from gateway.access.operations.tables import LoadTable
from gateway.access.operations.views import LoadView
from gateway.db.policies.policy_alerts import PolicyAlerts
from gateway.features.credentials.credential_terms import load_level
from gateway.iceberg.errors import ForbiddenException
from gateway.obligations.application import restrictions_for_load
from gateway.obligations.binding import PolicyProblem
from gateway.obligations.guardrail_policies import GUARDRAIL
from gateway.obligations.kinds import CredentialLife
from gateway.scope.credential import AccessLevel
from tests.support.door import world
from tests.support.door.data_restrictions import (
    COMMIT,
    EUROPE,
    LOAD,
    MASKED,
    SIGN,
    TRUSTED,
    VEND,
    People,
    by_engine,
    policy,
    restrictions_of,
)
from tests.support.door.guardrail_restrictions import MASKING, guarded
from tests.support.door.policy_rows import Rows
from tests.support.door.world import request_context

FILTERING = {
    "row_filters": [{"type": "compare", "operator": "eq", "column": {"name": "region"}, "value": "EU"}],
}
FILTER = {"type": "eq", "left": {"type": "reference", "id": 2}, "right": {"type": "literal", "value": "EU"}}


@pytest.mark.parametrize("stated", [MASKING, {"column_masks": ["email: mask-alphanum"]}])
async def test_both_forms_of_a_mask_reach_the_enforcer(stated: dict[str, Any]) -> None:
    assert await restrictions_of(guarded(stated)) == MASKED


async def test_a_row_filter_restricts_load_and_credentials_of_a_warehouse_without_data_policies() -> None:
    house = guarded({**FILTERING, "max_credential_seconds": 900})
    permit, keys = await house.door.admit_with(request_context(by_engine()), LOAD, VEND)
    assert keys is not None
    encoded = restrictions_for_load(permit.obligations, str(world.TABLE_ID))
    assert msgspec.json.decode(encoded) == {"required-row-filter": FILTER}
    assert keys.restricted(world.TABLE)
    assert load_level(keys) is AccessLevel.READ
    assert keys.obligations.find(CredentialLife) == CredentialLife(900)
    assert permit.obligations.fingerprint != b""


async def test_guardrails_and_data_policies_merge_and_an_exemption_lifts_only_the_policy() -> None:
    house = guarded(MASKING, bound=[policy("p", EUROPE)], governed=True)
    assert await restrictions_of(house) == {**MASKED, "required-row-filter": FILTER}
    exempt = People({"oidc~alice": {(Can.SKIP_POLICY, "p")}}, engine_has=TRUSTED)
    assert await restrictions_of(guarded(MASKING, exempt, bound=[policy("p", EUROPE)], governed=True)) == MASKED


@pytest.mark.parametrize("operation", [LOAD, VEND, SIGN, COMMIT])
async def test_a_guardrail_without_an_enforcer_is_refused_with_the_remedy(operation: LoadTable) -> None:
    house = guarded(MASKING, People())
    with pytest.raises(ForbiddenException, match="enforcer"):
        await house.door.admit(request_context(by_engine()), operation)


@pytest.mark.parametrize("operation", [SIGN, COMMIT])
async def test_an_enforcer_gets_no_signature_and_no_commit(operation: LoadTable) -> None:
    with pytest.raises(ForbiddenException):
        await guarded(MASKING).door.admit(request_context(by_engine()), operation)


async def test_a_view_has_no_table_to_bind_to_and_is_refused() -> None:
    house = guarded(MASKING)
    with pytest.raises(ForbiddenException, match="no component enforces"):
        await house.door.admit(request_context(by_engine()), LoadView(world.VIEW))


async def test_a_table_whose_columns_cannot_be_read_is_refused() -> None:
    house = guarded(MASKING)
    house.resolver.documents[world.TABLE_ID] = b"{}"
    with pytest.raises(ForbiddenException):
        await house.door.admit(request_context(by_engine()), LOAD)


async def test_a_filter_over_an_absent_column_hides_all_rows() -> None:
    absent = {"row_filters": [{"type": "is-null", "column": {"name": "absent"}}]}
    assert await restrictions_of(guarded(absent)) == {"required-row-filter": False}


async def test_a_filter_that_holds_for_all_rows_restricts_nothing() -> None:
    house = guarded({"row_filters": [{"type": "constant", "value": True}]}, People())
    assert not (await house.door.admit(request_context(), LOAD)).restricted(world.TABLE)


async def test_a_problem_of_a_guardrail_is_logged_and_not_written() -> None:
    """A problem without the id of a stored policy would make the statement fail for all problems of its batch."""
    rows = Rows()
    alerts = PolicyAlerts(rows, lambda _: None)  # type: ignore[arg-type]  # the method that is used
    with structlog.testing.capture_logs() as logs:
        alerts.note([PolicyProblem(GUARDRAIL, "t", "wrong"), PolicyProblem("p", "t", "one")])
        await alerts.flush()
    assert [each["policy_id"] for each in logs] == [GUARDRAIL, "p"]
    assert [each["policies"] for each in rows.written] == [["p"]]
