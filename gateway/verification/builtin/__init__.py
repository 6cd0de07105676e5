# SPDX-License-Identifier: Apache-2.0
"""Built-in verifiers: pure rules that compare the documents before and after a change, and approve or reject it.

They are not rules in OPA: for each change of a schema, OPA would have to receive both documents. They also use regular
expressions and case folding that Rego does not have.
"""
