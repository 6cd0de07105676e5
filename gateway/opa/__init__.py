# SPDX-License-Identifier: Apache-2.0
"""The adapter to OPA, which judges under which circumstances.

`decider` puts the gateway's questions to one fixed path; `schema` makes the input schema that the rules are checked
against.
"""
