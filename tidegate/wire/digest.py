"""The digest as bytes: JSON under gzip, the same bytes for the same digest.

Fields that this version does not know are ignored, so that head and planner may be updated
one after the other; missing or mistyped ones make the digest unreadable.
"""

import gzip
import json
import zlib
from contextlib import suppress

from pydantic import ValidationError

from tidegate.core.model.digest import Digest
from tidegate.core.model.errors import BadEvent
from tidegate.wire.finite import parse_json
from tidegate.wire.kind import Kind

# 100,000 queue rows take about 40 MB of text and no cluster of ours has so many; what is
# larger was not written by our agent. Bounds the memory that a few gzip bytes can claim.
MAX_BYTES = 100 * 1024 * 1024

GZIP = 16 + zlib.MAX_WBITS

DIGEST = Kind(Digest)


def encode_digest(digest: Digest) -> bytes:
    """Errors: BadEvent, when the digest is larger than a planner would read."""
    # Sets have no order of their own; sorting them is the `default` for what JSON lacks.
    text = json.dumps(
        DIGEST.adapter.dump_python(digest), default=sorted, separators=(",", ":"), allow_nan=False
    )
    raw = text.encode()
    if len(raw) > MAX_BYTES:
        raise BadEvent(f"the digest has {len(raw)} bytes, more than the {MAX_BYTES} allowed")
    return gzip.compress(raw, mtime=0)


def decode_digest(data: bytes) -> Digest:
    """Errors: BadEvent, with a sentence that says what is wrong with the bytes."""
    try:
        return DIGEST.adapter.validate_json(_as_now(_decompressed(data)), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        raise BadEvent(f"the digest is no digest: {place}: {first['msg']}") from error


def _as_now(raw: bytes) -> bytes:
    """The text with its caps as they are written now.

    Until the caps of other TRES came, each was one on GPUs: `max_gpus`, `gpu_type`.
    """
    if b'"max_gpus":' not in raw:
        return raw
    with suppress(ValueError, AttributeError, KeyError, TypeError):
        data = parse_json(raw)
        for cap in data["reading"]["associations"]:
            gpu_type = cap.pop("gpu_type")
            cap["tres"] = f"gres/gpu:{gpu_type}" if gpu_type else "gres/gpu"
            cap["in_all"] = cap.pop("max_gpus")
            cap["per_user"] = cap.pop("max_gpus_per_user")
            cap["per_job"] = cap.pop("max_gpus_per_job")
        return json.dumps(data).encode()
    return raw


def _decompressed(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(GZIP)
    try:
        raw = unpacker.decompress(data, MAX_BYTES + 1)
    except zlib.error as error:
        raise BadEvent(f"the digest is not gzip: {error}") from error
    if len(raw) > MAX_BYTES:
        raise BadEvent(f"the digest unpacks to more than the {MAX_BYTES} bytes allowed")
    if not unpacker.eof:
        raise BadEvent("the digest is cut short")
    if unpacker.unused_data:
        raise BadEvent("the digest has bytes after its end")
    return raw
