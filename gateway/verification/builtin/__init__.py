# SPDX-License-Identifier: Apache-2.0
"""Verifiers without an outside system: pure rules on the documents before and after a change.

They are no rules in OPA, because OPA would receive both documents again for each change of a schema. They also use
regular expressions and case folding that Rego does not have.
"""
