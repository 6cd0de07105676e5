# SPDX-License-Identifier: Apache-2.0
"""The adapter to OPA, which judges under which circumstances.

`decider` puts the gateway's questions to one fixed path, and `answers` is the wire form of what comes back; `schema`
makes the schemas that the input and the guardrails are checked against.
"""
