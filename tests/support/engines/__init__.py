# SPDX-License-Identifier: Apache-2.0
"""Real engines, and the tables and users that they are tested with."""
