# SPDX-License-Identifier: Apache-2.0
"""Statements on storage credentials, encryption keys, issued credentials, and the verdicts of the canary on their
scope.
"""
