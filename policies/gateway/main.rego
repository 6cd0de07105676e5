# SPDX-License-Identifier: Apache-2.0

# METADATA
# title: What the gateway asks
# description: |
#   OpenFGA decides who is related to what. The policies decide under which circumstances: they may deny, shorten
#   credentials or add obligations, and can never allow what OpenFGA refuses. Every question is allowed unless a
#   guardrail denies it. A guardrail is a package below gateway.guardrails; it is asked by being there. It says
#   denials[index] and obligations[index] for the question at that index, so that many questions cost no more each.
# schemas:
#   - input: schema.input
package gateway

# METADATA
# title: The entry point
# description: |
#   One answer per question, in the order of the questions, and how long they hold if that can be promised. Without a
#   list of questions this is undefined, which the gateway takes for a refusal.
# entrypoint: true
decisions := object.union({"decisions": answers}, _lasting) if {
	is_array(input.questions)
	answers := [answer | some index, _ in input.questions; answer := _answer(index)]
}

# METADATA
# description: The answer to the question at this index.
_answer(index) := {
	"allow": count(_reasons(index)) == 0,
	"reasons": [reason | some reason in _reasons(index)],
	"obligations": _obligations(index),
}

# METADATA
# description: Why the question is denied; one denial is enough.
_reasons(index) := {denial | some denial in data.gateway.guardrails[_].denials[index]}

# METADATA
# description: What the guardrails ask for, the strictest of each kind; a kind nobody asks for is left out.
_obligations(index) := object.union_n([_shortest_life(index), _switches(index), _hidden_operations(index)])

# METADATA
# description: The shortest of all lives of credentials that are asked for.
_shortest_life(index) := {"max_credential_seconds": min(seconds)} if {
	seconds := {asked.max_credential_seconds | some asked in _asked(index)}
	count(seconds) > 0
} else := {}

# METADATA
# description: A switch is on if anybody wants it on.
_switches(index) := {name: true |
	some name in ["append_only", "no_vending"]
	some asked in _asked(index)
	asked[name] == true
}

# METADATA
# description: Whatever anybody wants hidden is hidden.
_hidden_operations(index) := {"hide_operations": [name | some name in names]} if {
	names := {name | some asked in _asked(index); some name in asked.hide_operations}
	count(names) > 0
} else := {}

# METADATA
# description: The obligations that guardrails ask for on this question, one by one.
_asked(index) := {asked | some asked in data.gateway.guardrails[_].obligations[index]}

# METADATA
# description: |
#   Until when the same input has the same answers: for as many seconds as the policy data says, if every guardrail
#   that speaks says that it is steady, which is that its answers to this input do not change with the time. As shipped
#   the seconds are none: nothing is remembered, and a change of the policy data counts from the next request on.
_lasting := object.union({"valid_until": until}, _revision) if {
	seconds := data.policy_data.memory.answers_last_seconds
	is_number(seconds)
	seconds > 0
	count(_unsteady) == 0
	until := time.format(time.parse_rfc3339_ns(input.context.time) + (seconds * 1000000000))
} else := {}

# METADATA
# description: By which rules and data the promise is given. Without it the gateway remembers nothing.
_revision := {"revision": current | current := data.system.revision.current}

# METADATA
# description: The guardrails that answer this input by the time, or do not say that they do not.
_unsteady contains name if {
	some name in _guardrails
	not data.gateway.guardrails[name].steady
}

# METADATA
# description: The guardrails by name.
_guardrails contains name if data.gateway.guardrails[name].denials

# METADATA
# description: Those that only oblige, too.
_guardrails contains name if data.gateway.guardrails[name].obligations
