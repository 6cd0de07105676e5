# SPDX-License-Identifier: Apache-2.0
"""Sessions by AssumeRole, for AWS and compatible stores.

The builder of session policies and the proof of their scope share no code, so that a fault of one is found by the
other.
"""
