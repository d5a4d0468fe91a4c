"""`--verify`: descriptions are checked, not believed.

In: a folder whose keyframes are described. Out: the same descriptions, each with a Verification: what finds support in its own
frame (see `vip.captioning.claims`), and, where the engine sees, what a second look at the picture made of the rest. The words
before the correction are kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from vip.captioning.claims import checked, corrected
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.describer import Describer
from vip.captioning.encoded_pictures import EncodedKeyframe, encoded
from vip.errors import InputError, ReplyError
from vip.llm.client import Deferred
from vip.protocols import Embedder
from vip.records import Call, Check, Description, Review, Vectors, Verification
from vip.store import KeyframePicture

AT_ONCE = 512  # keyframes whose vectors are compared with each other; so memory does not grow with their number
BATCH = 32  # pictures an embedder gets at once, where it takes several

Row = tuple[KeyframePicture, Description]


@dataclass(frozen=True, slots=True)
class Verifier:
    """Checks the descriptions of whole folders.

    Args:
        embedder: with a joint space of pictures and texts; None where there is none, and then only the detector has a say.
    """

    describer: Describer
    embedder: Embedder | None

    async def verify(self, folder: DescribedFolder) -> None:
        """Check what is not checked yet, and write it down."""
        rows = folder.rows_in_order()
        while chunk := list(islice(rows, AT_ONCE)):
            if all(row.verification for _, row in chunk):
                continue
            found = await asyncio.to_thread(self._checked, chunk, folder.detector)
            todo = [(item, row, one) for (item, row), one in zip(chunk, found, strict=True) if row.verification is None]
            try:
                async with asyncio.TaskGroup() as group:
                    for one in todo:
                        group.create_task(self._settle(folder, *one))
            except ExceptionGroup as several:
                first = several.exceptions[0]
                raise first from first.__cause__

    def _checked(self, chunk: Sequence[Row], detector: str | None) -> list[Verification]:
        descriptions = [row for _, row in chunk]
        detections = [item.record.detections for item, _ in chunk]
        images = None if self.embedder is None else np.concatenate(list(_vectors([item for item, _ in chunk], self.embedder)))
        return checked(descriptions, images, self.embedder, detections, detector)

    async def _settle(self, folder: DescribedFolder, item: KeyframePicture, row: Description, verification: Verification) -> None:
        checks, calls = verification.checks, row.calls
        marked = [check for check in checks if check.verdict == "unsupported"]
        if marked and not self.describer.measures:
            try:
                after, more = await self._second_look(item, row, marked)
            except (ReplyError, InputError):  # the marks stay; the description as it is was good enough to be kept
                pass
            except Deferred as exc:
                folder.deferred.append(exc.question)
                return
            else:
                checks, calls = tuple(after.get(check, check) for check in checks), (*calls, *more)
        famous = corrected(row.famous, checks)
        before = row.famous if famous != row.famous else None
        folder.append(row.model_copy(update={"famous": famous, "verification": Verification(checks=checks, before=before), "calls": calls}))

    async def _second_look(
        self, item: KeyframePicture, row: Description, marked: Sequence[Check]
    ) -> tuple[dict[Check, Check], tuple[Call, ...]]:
        """Of each marked claim what became of it, and the calls."""
        config = self.describer.config
        encoded_keyframe = EncodedKeyframe(await asyncio.to_thread(encoded, item, config.longest_side_px))
        values = {
            "claims": "\n".join(f"{number}. {check.field}: {check.claim}" for number, check in enumerate(marked, 1)),
            "time": "unknown, the picture comes from no video" if row.time_s is None else f"{row.time_s:.1f} s",
            "language": config.language,
        }
        answer = await self.describer.ask("verify", values, encoded_keyframe)
        said = {one.number: one for one in answer.value.claims} if isinstance(answer.value, Review) else {}
        after = {}
        for number, check in enumerate(marked, 1):
            if one := said.get(number):
                after[check] = check.model_copy(update={"after": check.claim if one.seen else one.text.strip()})
        return after, answer.calls


def _vectors(items: Sequence[KeyframePicture], embedder: Embedder) -> Iterator[Vectors]:
    """(N, D) of the pictures, part by part; a picture that cannot be read looks like nothing."""
    prepare = embedder.capabilities.prepare or (lambda image: image)
    for at in range(0, len(items), BATCH):
        pictures = []
        for item in items[at : at + BATCH]:
            try:
                pictures.append(prepare(item.image))
            except InputError:
                pictures.append(prepare(np.zeros((32, 32, 3), np.uint8)))
        yield embedder.embed_images(pictures)
