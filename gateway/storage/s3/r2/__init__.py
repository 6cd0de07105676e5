# SPDX-License-Identifier: Apache-2.0
"""Temporary credentials of Cloudflare R2. The builder of their scope and the proof of scope share no code."""
