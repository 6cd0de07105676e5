# SPDX-License-Identifier: Apache-2.0
"""The rule by which vending consults the canary's verdict, and the proof of policies for random locations."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.cli.credentials import UNDECIDED, exit_code
from gateway.scope.credential import AccessLevel
from gateway.scope.location import Location
from gateway.storage.registry import prover_of
from gateway.storage.s3.profile import Flavor, S3Profile
from gateway.vending import scope_proof
from gateway.vending.scope_proof import ProofReport, prove_locations, random_locations
from gateway.vending.scope_verdict import Enforcement, Finding, ScopeReport, ScopeRule, Verdict

AWS = S3Profile(
    bucket="lake",
    region="eu-west-1",
    key_prefix="base",
    sts_enabled=True,
    sts_role_arn="arn:aws:iam::000000000000:role/vend",
)
COMPATIBLE = S3Profile(
    bucket="lake",
    region="eu-west-1",
    key_prefix="base",
    sts_enabled=True,
    flavor=Flavor.S3_COMPAT,
    endpoint="https://store.example.com",
)
VERDICTS = (None, *Verdict)


@pytest.mark.parametrize(
    ("enforcement", "allowed"),
    [
        (Enforcement.OFF, set(VERDICTS)),
        (Enforcement.ESCAPED, set(VERDICTS) - {Verdict.ESCAPED}),
        (Enforcement.UNPROVEN, {Verdict.PROVEN}),
    ],
)
def test_enforcement_decides_which_verdicts_may_vend(enforcement: Enforcement, allowed: set[Verdict | None]) -> None:
    rule = ScopeRule(enforcement)
    assert {verdict for verdict in VERDICTS if rule.refusal(verdict) is None} == allowed


@pytest.mark.parametrize("profile", [AWS, COMPATIBLE], ids=["aws", "compatible"])
def test_the_policies_of_random_locations_are_proven(profile: S3Profile) -> None:
    report = prove_locations(profile, count=4, seed=7)
    assert report is not None and report.proven
    assert report.policies + report.without_policy == 4 * len(AccessLevel)


def test_a_policy_that_is_too_wide_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    prove = prover_of(AWS)
    assert prove is not None

    def wide(profile: Any, location: Location, level: AccessLevel, others: Any) -> list[str]:
        parent = Location(location.scheme, location.authority, location.segments[:-1] or ("base",))
        return prove(profile, parent, level, [location.key_prefix + "f"]) + ["wider than the location"]

    monkeypatch.setattr(scope_proof, "prover_of", lambda _: wide)
    report = prove_locations(AWS, count=1, seed=7)
    assert report is not None and not report.proven and report.violations


def test_random_locations_are_different_and_below_the_base() -> None:
    found = random_locations(AWS, count=40, seed=3)
    assert len({location.text for location in found}) == 40
    assert all(AWS.base_location().contains(location, strict=True) for location in found)
    assert found == random_locations(AWS, count=40, seed=3)


def test_a_warehouse_that_vends_nothing_has_no_proof() -> None:
    assert prove_locations(S3Profile(bucket="lake", region="eu-west-1"), count=1, seed=0) is None


FOUND = Finding(level="read", attempt="copy", place="sibling", text="copy an object")
PROOF = ProofReport(policies=3, without_policy=0, violations=())


@pytest.mark.parametrize(
    ("report", "proof", "code"),
    [
        (ScopeReport(verdict=Verdict.PROVEN, attempts=9), PROOF, 0),
        (ScopeReport(verdict=Verdict.NOT_VENDED), None, 0),
        (ScopeReport(verdict=Verdict.ESCAPED, findings=(FOUND,)), PROOF, 3),
        (ScopeReport(verdict=Verdict.PROVEN), ProofReport(policies=3, without_policy=0, violations=("x",)), 3),
        (ScopeReport(verdict=Verdict.INCONCLUSIVE), PROOF, UNDECIDED),
        (ScopeReport(verdict=Verdict.PROVEN), ProofReport(policies=0, without_policy=3, violations=()), UNDECIDED),
    ],
)
def test_exit_codes_of_verify_scope(report: ScopeReport, proof: ProofReport | None, code: int) -> None:
    assert exit_code(report, proof) == code
