"""`--verify`: descriptions are checked, not believed.

In: a folder whose keyframes are described. Out: the same descriptions, each with a Verification: what finds support in its own
frame (see `vip.captioning.claims`), and, where the engine sees, the answer of a second look at the picture about the rest. The words
before the correction are kept. A picture that cannot be read supports nothing and contradicts nothing: its claims are `unchecked`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from vip.captioning.claims import apply_corrections, check_claims, mark_unchecked, unsupported
from vip.captioning.describe import failure_of
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.describer import Describer
from vip.captioning.encoded_pictures import EncodedKeyframe, encode_keyframe
from vip.captioning.run_async import task_group
from vip.errors import InputError, ReplyError
from vip.llm.budget import Usage
from vip.llm.client import Deferred
from vip.protocols import Embedder
from vip.records import Call, Check, Description, Failure, Review, Vectors, Verification
from vip.store import KeyframePicture

AT_ONCE = 512  # keyframes whose vectors are compared with each other; so memory does not grow with their number
BATCH = 32  # pictures an embedder gets at once, where it takes several

Row = tuple[KeyframePicture, Description]


@dataclass(frozen=True, slots=True)
class Verifier:
    """A check of the descriptions of whole folders.

    Args:
        embedder: with a joint space of pictures and texts; None where there is none, and then the detector decides alone.
    """

    describer: Describer
    embedder: Embedder | None

    async def verify(self, folder: DescribedFolder) -> None:
        """Check what is not checked yet, and write it down.

        Raises:
            EngineError: the engine cannot be asked, or the money is spent; what is checked stays.
        """
        rows = folder.rows_in_order()
        while chunk := list(islice(rows, AT_ONCE)):
            if all(row.verification for _, row in chunk):
                continue
            found = await asyncio.to_thread(self._check_chunk, chunk, folder.detector)
            async with task_group() as group:
                for (item, row), verification in zip(chunk, found, strict=True):
                    if row.verification is None:
                        group.create_task(self._settle(folder, item, row, verification))

    def _check_chunk(self, chunk: Sequence[Row], detector: str | None) -> list[Verification]:
        """Return the Verification of each row."""
        images, readable = None, list(range(len(chunk)))
        if self.embedder is not None:
            images, readable = _vectors([item for item, _ in chunk], self.embedder)
        rows = [chunk[index] for index in readable]
        detections = [item.record.detections for item, _ in rows]
        found = dict(zip(readable, check_claims([row for _, row in rows], images, self.embedder, detections, detector), strict=True))
        return [found[index] if index in found else mark_unchecked(row) for index, (_, row) in enumerate(chunk)]

    async def _settle(self, folder: DescribedFolder, item: KeyframePicture, row: Description, verification: Verification) -> None:
        """Write the description with its checks, after a second look at what finds no support."""
        checks, calls = verification.checks, row.calls
        marked = unsupported(verification)
        if marked and not self.describer.measures:
            try:
                after, more = await self._second_look(item, row, marked, folder.usage)
            except (ReplyError, InputError) as exc:  # the marks stay; the description as it is was good enough to be kept
                folder.add_second_look_failure(_failure_of_second_look(item.id, exc))
            except Deferred as exc:
                folder.deferred.append(exc.question)
                return
            else:
                checks, calls = tuple(after.get(check, check) for check in checks), (*calls, *more)
        famous = apply_corrections(row.famous, checks)
        before = row.famous if famous != row.famous else None
        folder.append(row.model_copy(update={"famous": famous, "verification": Verification(checks=checks, before=before), "calls": calls}))

    async def _second_look(
        self, item: KeyframePicture, row: Description, marked: Sequence[Check], usage: Usage
    ) -> tuple[dict[Check, Check], tuple[Call, ...]]:
        """Return the marked claims that were answered, each with its check afterwards, and the calls."""
        config = self.describer.config
        encoded_keyframe = EncodedKeyframe(await asyncio.to_thread(encode_keyframe, item, config.longest_side_px))
        values = {
            "claims": "\n".join(f"{number}. {check.field}: {check.claim}" for number, check in enumerate(marked, 1)),
            "time": "unknown, the picture comes from no video" if row.time_s is None else f"{row.time_s:.1f} s",
            "language": config.language,
        }
        answer = await self.describer.ask("verify", values, encoded_keyframe, usage)
        said = {one.number: one for one in answer.value.claims} if isinstance(answer.value, Review) else {}
        after = {}
        for number, check in enumerate(marked, 1):
            if one := said.get(number):
                after[check] = check.model_copy(update={"after": check.claim if one.seen else one.text.strip()})
        return after, answer.calls


def _failure_of_second_look(item: str, exc: ReplyError | InputError) -> Failure:
    failure = failure_of(item, exc)
    return failure.model_copy(update={"message": f"The second look failed, and the marked claims stay: {failure.message}"})


def _vectors(items: Sequence[KeyframePicture], embedder: Embedder) -> tuple[Vectors, list[int]]:
    """Return the vectors (N, D) of the pictures that can be read, and which of the items these are."""
    prepare = embedder.capabilities.prepare or (lambda image: image)
    parts, readable = [np.zeros((0, embedder.dim), np.float32)], list[int]()
    for start in range(0, len(items), BATCH):
        pictures = []
        for index, item in enumerate(items[start : start + BATCH], start):
            try:
                pictures.append(prepare(item.image))
            except InputError:
                continue
            readable.append(index)
        if pictures:
            parts.append(embedder.embed_images(pictures))
    return np.concatenate(parts), readable
