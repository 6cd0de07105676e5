# SPDX-License-Identifier: Apache-2.0
"""Asks OPA for decisions: the adapter of the policy engine.

`decider` sends the gateway's questions to one fixed path, and `answers` is the wire form of what comes back. `schema`
makes the schemas that the input and the guardrails are checked against.

Why not `opa-python-client`? Version 3.0.0 was tried on OPA 1.22 with `policies/system/authz.rego`, for health and for
commands that would list, inspect or evaluate policies.

- OPA refuses most of it. With both tokens, listing and reading policies, ad hoc and bulk queries, compiling, `config`,
  `metrics` and `status` are 401: no caller may read policies or choose the query. `check_health`, `get_data` below
  `policy_data` and `query_rule` for decisions are left. `lakegate policy check` and `test` need no server.
- It follows redirects: the answer of another host was taken for the decision.
- Its errors hold the request: `repr` of the error of a 401 prints the bearer token.
- It repeats a 500, which is a failed policy here, and its timeout counts anew for each repetition.
- `check_health` returns False for every exception, also for a wrong address or certificate.
- It adds `requests` and `aiofiles`. Health by another client would test other connections than the decisions use.
"""
