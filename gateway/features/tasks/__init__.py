# SPDX-License-Identifier: Apache-2.0
"""Background tasks: the worker that runs them, their queues, and what clients may do with them."""
