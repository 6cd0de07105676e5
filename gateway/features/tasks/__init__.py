# SPDX-License-Identifier: Apache-2.0
"""Background tasks: the worker that runs them, their queues, and the use cases by which clients control them."""
