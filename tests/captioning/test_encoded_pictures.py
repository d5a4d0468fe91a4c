"""Pictures as engines get them: small, encoded once, and without what tells who took them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import cv2
import numpy as np
import PIL.Image
import pytest

from tests.captioning.keyframes import keyframe, keyframes, noise
from vip.captioning.encoded_pictures import KeyframeReader, encode_keyframe
from vip.errors import InputError
from vip.protocols import Picture
from vip.records import Image
from vip.store import KeyframePicture


def decoded(picture: Picture) -> Image:
    assert picture.media_type == "image/jpeg"
    image = cv2.imdecode(np.frombuffer(picture.data, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    return np.asarray(image, np.uint8)


def test_a_small_jpeg_goes_as_it_lies(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    assert encode_keyframe(item, 64).data == item.path.read_bytes()


@pytest.mark.parametrize("suffix", ["png", "webp"])
def test_any_other_format_becomes_a_jpeg(suffix: str, tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0, suffix=suffix)
    assert decoded(encode_keyframe(item, 1024)).shape == (48, 64, 3)


@pytest.mark.parametrize(
    ("size", "longest", "expected"),
    [
        *(((300, 3000), 1024, (102, 1024)), ((3000, 300), 1024, (1024, 102)), ((48, 64), 32, (24, 32)), ((48, 64), 1024, (48, 64))),
        *(((1, 3000), 64, (1, 64)), ((3000, 1), 64, (64, 1))),
    ],
)
def test_the_longest_side_is_at_most_so_long_and_the_shape_stays(
    size: tuple[int, int], longest: int, expected: tuple[int, int], tmp_path: Path
) -> None:
    assert decoded(encode_keyframe(keyframe(tmp_path, 0, size=size), longest)).shape[:2] == expected


def test_a_jpeg_of_many_bytes_is_made_smaller(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0, size=(500, 500))
    assert len(item.path.read_bytes()) > 250_000
    assert len(encode_keyframe(item, 1024).data) < len(item.path.read_bytes())


def test_a_jpeg_is_of_the_quality_that_the_record_names(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0, suffix="png")
    PIL.Image.fromarray(item.image).save(tmp_path / "90.jpg", quality=90)
    sent, expected = (PIL.Image.open(BytesIO(data)) for data in (encode_keyframe(item, 1024).data, (tmp_path / "90.jpg").read_bytes()))
    assert sent.quantization == expected.quantization  # type: ignore[attr-defined]


def test_what_is_measured_goes_out_as_small_as_anything(tmp_path: Path) -> None:
    assert decoded(KeyframeReader(32).at(keyframe(tmp_path, 0), None, None).picture).shape == (24, 32, 3)


def test_colours_are_those_of_the_picture(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0, suffix="png")
    red = np.zeros((48, 64, 3), np.uint8)
    red[..., 0] = 200
    cv2.imwrite(str(item.path), cv2.cvtColor(red, cv2.COLOR_RGB2BGR))
    assert decoded(encode_keyframe(item, 1024)).mean(axis=(0, 1)) == pytest.approx((200, 0, 0), abs=6)


def test_where_a_picture_was_taken_stays_here(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    exif = PIL.Image.Exif()
    exif[0x8825] = {1: "N", 2: (52.0, 31.0, 0.0)}
    exif[0x010F] = "SecretCamera"
    PIL.Image.fromarray(noise(0)).save(item.path, exif=exif)
    assert b"SecretCamera" in item.path.read_bytes()
    sent = encode_keyframe(item, 1024).data
    assert b"SecretCamera" not in sent
    assert b"Exif" not in sent


def test_a_picture_that_exif_turns_goes_upright(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.fromarray(noise(0)).save(item.path, exif=exif)
    assert decoded(encode_keyframe(item, 1024)).shape == (64, 48, 3)


@pytest.mark.parametrize("damage", [b"", b"no picture", b"\xff\xd8\xff"])
def test_a_picture_that_is_none_is_refused_in_a_sentence(damage: bytes, tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    item.path.write_bytes(damage)
    with pytest.raises(InputError, match=r"0000\.jpg is not a picture that can be read"):
        encode_keyframe(item, 1024)


def test_a_jpeg_that_ends_early_is_not_sent_as_it_lies(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    item.path.write_bytes(item.path.read_bytes()[:-50])
    try:
        sent = encode_keyframe(item, 1024).data
    except InputError:
        return
    assert sent.endswith(b"\xff\xd9")


def test_a_file_that_only_ends_in_jpg_is_made_one(tmp_path: Path) -> None:
    item = keyframe(tmp_path, 0)
    _, data = cv2.imencode(".png", noise(0))
    item.path.write_bytes(data.tobytes())
    assert decoded(encode_keyframe(item, 1024)).shape == (48, 64, 3)


def test_what_is_measured_comes_with_the_picture(tmp_path: Path) -> None:
    first, second = keyframes(tmp_path, 2)
    reader = KeyframeReader(1024)
    before, after = reader.at(first, None, "test"), reader.at(second, first, "test")
    assert before.facts is not None
    assert after.facts is not None
    assert (before.facts.change, after.facts.detector) == (None, "test")
    assert after.facts.change is not None
    assert decoded(before.picture).shape == (48, 64, 3)
    of_another = KeyframePicture(second.record.model_copy(update={"video_id": "another"}), tmp_path)
    facts = reader.at(of_another, first, "test").facts
    assert facts is not None
    assert facts.change is None, "its view did not change: it is another video"


def test_a_picture_before_that_was_not_looked_at_just_now_is_read(tmp_path: Path) -> None:
    first, second = keyframes(tmp_path, 2)
    facts = KeyframeReader(1024).at(second, first, None).facts
    assert facts is not None
    assert facts.change is not None
    first.path.unlink()
    facts = KeyframeReader(1024).at(second, first, None).facts
    assert facts is not None
    assert facts.change is None


def test_a_picture_is_held_against_the_one_before_it_whatever_was_looked_at_last(tmp_path: Path) -> None:
    first, second, third = keyframes(tmp_path, 3)
    second.path.write_bytes(third.path.read_bytes())
    reader = KeyframeReader(1024)
    reader.at(first, None, None)
    facts = reader.at(third, second, None).facts
    assert facts is not None
    assert facts.change is not None
    assert facts.change.kind == "same view"


def test_pictures_do_not_show_their_data() -> None:
    assert repr(Picture(b"x" * 5000, "image/jpeg")) == "Picture(image/jpeg, 5000 bytes)"


def test_the_file_of_another_folder_is_not_taken(tmp_path: Path) -> None:
    item = keyframe(tmp_path / "a", 0)
    with pytest.raises(InputError, match="cannot be read"):
        encode_keyframe(KeyframePicture(item.record, tmp_path / "b"), 1024)
