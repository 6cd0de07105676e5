# SPDX-License-Identifier: Apache-2.0
"""Views: creation, loads, commits, and the rules about their owners."""
