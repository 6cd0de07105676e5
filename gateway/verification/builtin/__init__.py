# SPDX-License-Identifier: Apache-2.0
"""Verifiers without an outside system: pure rules on the documents before and after a change."""
