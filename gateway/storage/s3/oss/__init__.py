# SPDX-License-Identifier: Apache-2.0
"""Sessions of Alibaba Cloud OSS. The builder of their policies and the proof of scope share no code."""
