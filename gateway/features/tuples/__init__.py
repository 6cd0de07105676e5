# SPDX-License-Identifier: Apache-2.0
"""Background work on OpenFGA's tuples: delivery of the outbox, detection of drift and its repair."""
