# SPDX-License-Identifier: Apache-2.0
"""Conformance kits: checks of the rules that every extension of one kind keeps, such as every secret store.

The author of an extension runs them against it, by `lakegate conformance` or in tests of their own. docs/extensions.md
describes both. The kits need no pytest, and each failure names the broken rule.
"""
