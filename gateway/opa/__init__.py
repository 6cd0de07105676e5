# SPDX-License-Identifier: Apache-2.0
"""The adapter to OPA, the policy engine.

`decider` queries one fixed path and decodes OPA's responses, and `cache` caches results. `schema` generates the schemas
of the policy input and of guardrails (packages that can deny or restrict operations).

The library `opa-python-client` is not used. Version 3.0.0 was tested with OPA 1.22 and the gateway's rules about the
callers of OPA (`policies/system/authz.rego`):

- OPA rejects most of its requests. Even with both valid tokens the response is 401 to listing and reading policies, ad
  hoc and bulk queries, compiling, `config`, `metrics` and `status`: no caller may read policies or choose the query.
  Only `check_health`, `get_data` below `policy_data`, and `query_rule` for decisions work. `lakegate policy check` and
  `lakegate policy test` need no server.
- It follows redirects, so it accepts a response of another host as the decision.
- Its errors contain the request: the `repr` of a 401 error prints the bearer token.
- It retries after a 500, which is a failed policy here. Its timeout restarts with each retry.
- `check_health` returns False for every exception, also for a wrong address or certificate.
- It adds the dependencies `requests` and `aiofiles`. A health check by another client would use other connections than
  the decisions.
"""
