# SPDX-License-Identifier: Apache-2.0
"""Decide every operation with OpenFGA and OPA, write its audit record, and mint its permit."""
