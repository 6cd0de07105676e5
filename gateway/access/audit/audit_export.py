# SPDX-License-Identifier: Apache-2.0
"""The file format of exported audit records: JSON lines that can be verified without the database.

Records are exported in blocks. The line of a block has its digest, and is followed by the lines of its records. A
record is written as the exact text that its digest covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from gateway.access.audit.audit_chain import Anchor, Block, ChainVerifier, Fault, SealedRecord

_encoder = msgspec.json.Encoder()


class _BlockLine(msgspec.Struct, frozen=True, kw_only=True, tag="block", forbid_unknown_fields=True):
    number: int
    first: UUID
    last: UUID
    count: int
    records_digest: str
    previous: str
    sealed_at: datetime
    digest: str


class _RecordLine(msgspec.Struct, frozen=True, kw_only=True, tag="record", forbid_unknown_fields=True):
    id: UUID
    at: datetime
    request_id: str
    actor_id: str
    operation: str
    outcome: str
    record: str


_decoder = msgspec.json.Decoder(_BlockLine | _RecordLine)


class VerifiedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The result of verifying a file. `fault` is the first fault, None if the file has none."""

    blocks: int
    records: int
    first: Anchor | None
    last: Anchor | None
    fault: Fault | None


def lines_of(block: Block, records: Sequence[SealedRecord]) -> Iterator[bytes]:
    """Yield the line of a block and then the lines of its records. Each ends with a newline."""
    yield _line(
        _BlockLine(
            number=block.number,
            first=block.first,
            last=block.last,
            count=block.count,
            records_digest=block.records_digest.hex(),
            previous=block.previous.hex(),
            sealed_at=block.sealed_at,
            digest=block.digest.hex(),
        )
    )
    for each in records:
        yield _line(
            _RecordLine(
                id=each.id,
                at=each.at,
                request_id=each.request_id,
                actor_id=each.actor_id,
                operation=each.operation,
                outcome=each.outcome,
                record=each.record.decode(),
            )
        )


def verify_lines(lines: Iterable[bytes], *, key: bytes | None = None, anchor: Anchor | None = None) -> VerifiedFile:
    """Verify the lines of a file up to the first fault.

    The file may begin with any block: the blocks before it are not verified. With an `anchor`, a file that does not
    contain the anchor's block has a fault.
    """
    chain = ChainVerifier(key=key, anchor=anchor, anywhere=True)
    fault: Fault | None = None
    for block, found in _blocks(lines):
        fault = block if isinstance(block, Fault) else chain.add(block, found)
        if fault is not None:
            break
    return VerifiedFile(
        blocks=chain.blocks, records=chain.records, first=chain.first, last=chain.last, fault=fault or chain.end()
    )


def _blocks(lines: Iterable[bytes]) -> Iterator[tuple[Block | Fault, list[SealedRecord]]]:
    """Yield each block with its records. For a line that cannot be read, yield a fault of its block, and end."""
    block: Block | None = None
    records: list[SealedRecord] = []
    for number, line in enumerate(lines, 1):
        try:
            read = _decoder.decode(line)
            if isinstance(read, _RecordLine):
                if block is None:
                    raise ValueError
                records.append(_record(read))
                continue
            following = _block(read)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            yield Fault(block.number if block else 0, f"line {number} of the file is no block or record"), []
            return
        if block is not None:
            yield block, records
        block, records = following, []
    if block is not None:
        yield block, records


def _block(line: _BlockLine) -> Block:
    return Block(
        number=line.number,
        first=line.first,
        last=line.last,
        count=line.count,
        records_digest=bytes.fromhex(line.records_digest),
        previous=bytes.fromhex(line.previous),
        sealed_at=_aware(line.sealed_at),
        digest=bytes.fromhex(line.digest),
    )


def _record(line: _RecordLine) -> SealedRecord:
    return SealedRecord(
        id=line.id,
        at=_aware(line.at),
        request_id=line.request_id,
        actor_id=line.actor_id,
        operation=line.operation,
        outcome=line.outcome,
        record=line.record.encode(),
    )


def _aware(time: datetime) -> datetime:
    """Return the time. Raises ValueError if it has no time zone: its instant would depend on the reader."""
    if time.tzinfo is None:
        raise ValueError("a time in the audit export has no time zone")
    return time


def _line(value: _BlockLine | _RecordLine) -> bytes:
    return _encoder.encode(value) + b"\n"
