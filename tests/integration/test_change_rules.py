# SPDX-License-Identifier: Apache-2.0
"""The verifier `opa` with a real OPA that runs the shipped policies and the documented rule."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import msgspec
import pytest

from gateway.verification.opa_rule import OpaRule
from gateway.verification.panel import VerifierFailed
from gateway.verification.port import Approved, ChangeKind, Pending, ProposedChange, Rejected
from lakegate.conformance.verifiers import VERIFIER_RULES, VerifierSubject, check_verifier
from tests.support.docs_commands import blocks
from tests.support.servers.opa_serving import GATEWAY, OPERATOR, POLICIES, serving_from

pytestmark = pytest.mark.integration

ODD = """package lakegate.changes

import rego.v1

unnamed := {"verdict": "maybe"} if input.kind == "drop"

broken := {"verdict": "approve"} if { to_number(input.name) > 0 }

reasoned := {"verdict": "reject", "reasons": reasons} if {
	reasons := [sprintf("column %s", [field.name]) | some field in input.after.schemas[0].fields]
}
"""


@pytest.fixture(scope="module")
def opa(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the shipped policies with the rule of docs/change-approval.md and a few wrong ones."""
    policies = tmp_path_factory.mktemp("opa") / "policies"
    shutil.copytree(POLICIES, policies)
    (documented,) = (block.text for block in blocks() if block.text.startswith("package lakegate.changes"))
    (policies / "changes").mkdir()
    (policies / "changes" / "verdict.rego").write_text(documented)
    (policies / "changes" / "odd.rego").write_text(ODD)
    tokens = {"LAKEGATE_OPA_GATEWAY_TOKEN": GATEWAY, "LAKEGATE_OPA_OPERATOR_TOKEN": OPERATOR}
    with serving_from(policies, tokens) as address:
        yield address


def rule(opa: str, name: str = "verdict", token: str = GATEWAY) -> OpaRule:
    return OpaRule("o", opa, name, token=token, timeout=30, connections=4)


def change(kind: ChangeKind, namespace: str = "finance", after: bytes | None = None) -> ProposedChange:
    return ProposedChange(
        kind=kind,
        object_type="table",
        object_id="t",
        warehouse_id="w",
        warehouse_name="w",
        namespace=(namespace,),
        name="orders",
        principal="oidc~alice",
        request_id="r",
        after=None if after is None else msgspec.Raw(after),
    )


async def verdict(opa: str, proposed: ProposedChange, name: str = "verdict", token: str = GATEWAY) -> object:
    asked = rule(opa, name, token)
    try:
        return await asked.verify(proposed)
    finally:
        await asked.close()


async def test_documented_rule_holds_drops_in_finance_and_approves_all_others(opa: str) -> None:
    assert await verdict(opa, change(ChangeKind.DROP)) == Pending(("drops in finance need an approval",))
    assert await verdict(opa, change(ChangeKind.DROP, "sales")) == Approved()
    assert await verdict(opa, change(ChangeKind.COMMIT)) == Approved()


async def test_rule_reads_the_metadata_document(opa: str) -> None:
    after = b'{"schemas":[{"fields":[{"name":"total"}]}]}'
    assert await verdict(opa, change(ChangeKind.COMMIT, after=after), "reasoned") == Rejected(("column total",))


@pytest.mark.parametrize(
    ("name", "token", "kind"),
    [
        ("absent", GATEWAY, ChangeKind.DROP),
        ("unnamed", GATEWAY, ChangeKind.DROP),
        ("unnamed", GATEWAY, ChangeKind.COMMIT),
        ("broken", GATEWAY, ChangeKind.DROP),
        ("verdict", "another token", ChangeKind.COMMIT),
        ("verdict", OPERATOR, ChangeKind.COMMIT),
    ],
)
async def test_undefined_wrong_erroneous_or_refused_rule_is_a_failure(
    opa: str, name: str, token: str, kind: ChangeKind
) -> None:
    with pytest.raises(VerifierFailed):
        await verdict(opa, change(kind), name, token)


async def test_rule_conforms(opa: str) -> None:
    kept: list[str] = []
    await check_verifier(VerifierSubject("o", lambda: rule(opa), seconds=60), passed=kept.append)
    assert len(kept) == len(VERIFIER_RULES)
