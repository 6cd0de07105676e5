# SPDX-License-Identifier: Apache-2.0
"""Packages of extensions as third parties write them, and their installation for a test."""
