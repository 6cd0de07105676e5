# SPDX-License-Identifier: Apache-2.0
"""Hooks of pytest: seeds, golden files, retries, kept logs, scheduling."""
