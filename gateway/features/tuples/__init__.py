# SPDX-License-Identifier: Apache-2.0
"""Background work on OpenFGA's tuples: delivery of the outbox, and detection and repair of drift."""
