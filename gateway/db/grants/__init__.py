# SPDX-License-Identifier: Apache-2.0
"""Statements on grants and their history, on probes of engines, and on grants of `delegate`.

A probe tests whether an engine enforces restrictions. By `delegate` an engine may act for users.
"""
