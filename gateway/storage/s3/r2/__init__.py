# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials of Cloudflare R2.

The builder of scopes and their proof share no code, so that a fault of one is found by the other.
"""
