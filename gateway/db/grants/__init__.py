# SPDX-License-Identifier: Apache-2.0
"""Statements on grants and their history, and on the engines that act for users."""
