# SPDX-License-Identifier: Apache-2.0
"""Background work: delivery of the outbox to OpenFGA, and tasks that any worker process can run."""
