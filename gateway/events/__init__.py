# SPDX-License-Identifier: Apache-2.0
"""Sinks of change events (Kafka, NATS, webhook, log), their interface, and the conversion of events to messages."""
