# SPDX-License-Identifier: Apache-2.0
"""What is done beside requests: delivering the outbox to OpenFGA, and tasks that any process may take."""
