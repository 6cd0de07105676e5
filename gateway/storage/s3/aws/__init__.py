# SPDX-License-Identifier: Apache-2.0
"""Sessions by AssumeRole, for AWS and compatible stores. The builder of their policies and the proof of scope share no
code.
"""
