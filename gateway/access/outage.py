# SPDX-License-Identifier: Apache-2.0
"""Failures of what the door depends on. None of them is ever an allow."""

from __future__ import annotations


class DecisionEngineUnavailable(Exception):
    """OpenFGA or OPA did not answer, answered late, or answered something that is no decision."""


class AuditUnavailable(Exception):
    """An audit record could not be taken or made durable, so what it records must not happen."""
