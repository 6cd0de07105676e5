# SPDX-License-Identifier: Apache-2.0
"""Reading the text form of OPA's trace. `tests/contract/test_explain.py` reads traces of a real OPA."""

from __future__ import annotations

from gateway.opa.rule_hits import PolicyTrace, RuleHit, read_trace

TRACE = """\
query:1                                              Enter data.gateway.decisions = _
query:1                                              | Eval data.gateway.decisions = _
gateway/main.rego:25                                 | Enter data.gateway.decisions
gateway/main.rego:25                                 | | Eval input.context.time
gateway/guardrails/hours.rego:7                      | | Enter data.gateway.guardrails.hours.denials
gateway/guardrails/hours.rego:8                      | | | Eval __local1__ = input.questions[__local0__]
gateway/guardrails/hours.rego:9                      | | | Eval __local1__.facts.purge = true
gateway/guardrails/hours.rego:20                     | | | Enter data.shared.is_late
gateway/guardrails/hours.rego:21                     | | | | Eval input.context["client_address"] = "x"
gateway/guardrails/hours.rego:7                      | | | Exit data.gateway.guardrails.hours.denials
gateway/guardrails/life.rego:3                       | | Enter data.gateway.guardrails.life.obligations
gateway/guardrails/life.rego:3                       | | | Exit data.gateway.guardrails.life.obligations early
gateway/guardrails/life.rego:3                       | | Redo data.gateway.guardrails.life.obligations
gateway/guardrails/off.rego:3                        | | Enter data.gateway.guardrails.off.denials
gateway/guardrails/off.rego:4                        | | | Fail input.actor.kind = "x"
gateway/main.rego:30                                 | | Eval input.context.user_agent
"""


def test_rules_that_ended_are_hits_with_their_place() -> None:
    assert read_trace(TRACE.splitlines()).hits == (
        RuleHit("gateway.guardrails.hours", "denials", "gateway/guardrails/hours.rego", 7),
        RuleHit("gateway.guardrails.life", "obligations", "gateway/guardrails/life.rego", 3),
    )


def test_only_what_guardrails_read_counts() -> None:
    assert read_trace(TRACE.splitlines()).read == (
        "actor.kind", "context.client_address", "questions", "questions.facts.purge",
    )  # fmt: skip


def test_lines_of_another_form_are_ignored() -> None:
    assert read_trace(["", "nonsense", "a.rego:x Enter data.gateway.guardrails.a.denials"]) == PolicyTrace((), ())
