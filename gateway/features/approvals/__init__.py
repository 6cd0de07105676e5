# SPDX-License-Identifier: Apache-2.0
"""Changes that verifiers approve: their description, their tickets, and decisions about them."""
