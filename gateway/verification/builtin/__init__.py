# SPDX-License-Identifier: Apache-2.0
"""Built-in verifiers, which need no other system: pure rules on the documents before and after a change.

They are not rules in OPA: for each change of a schema, OPA would have to receive both documents. They also use regular
expressions and case folding that Rego does not have.
"""
