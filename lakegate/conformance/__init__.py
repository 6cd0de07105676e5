# SPDX-License-Identifier: Apache-2.0
"""Conformance kits: each checks the rules that every extension of one kind must keep, for example every secret store.

The author of an extension runs a kit against it, by `lakegate conformance` or in the extension's own tests.
docs/extensions.md describes both. The kits need no pytest, and each failure names the broken rule.
"""
