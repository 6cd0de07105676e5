# SPDX-License-Identifier: Apache-2.0
"""Delivery of change events to their sinks."""
