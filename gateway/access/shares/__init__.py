# SPDX-License-Identifier: Apache-2.0
"""Admission control: limit what each principal may use of one worker process at the same time."""
