"""Claims held against their own frames, with a made-up space of pictures and texts, and with the path of the real one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.clip_models import folder
from vip.captioning.claims import MOST_OTHERS, apply_corrections, check_claims, unsupported
from vip.models.clip.embedder import OpenClipEmbedder
from vip.protocols import EmbedderCapabilities
from vip.records import Check, Description, Detection, Famous, Image, Vectors, Verification

THINGS = ("dog", "cat", "boat", "train", "piano", "mountain", "kitchen", "bicycle", "crowd", "horse", "desk", "tower")
DOES = (
    "leaping",
    "sleeping",
    "sailing",
    "arriving",
    "playing",
    "towering",
    "cooking",
    "racing",
    "cheering",
    "grazing",
    "writing",
    "shining",
)
PLACES = ("meadow", "sofa", "harbour", "station", "stage", "valley", "house", "road", "stadium", "pasture", "office", "city")
MOODS = ("playful", "calm", "breezy", "busy", "solemn", "grand", "homely", "tense", "loud", "peaceful", "dull", "glamorous")
VOCABULARY = (*THINGS, *DOES, *PLACES, *MOODS, "unicorn", "juggling", "volcano", "eerie", "spaceship")
NOISE = 0.05  # of a cosine, as unrelated pairs have it in CLIP


def unit(vectors: Vectors) -> Vectors:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32)


class WordSpace:
    """A joint space: each word of the vocabulary is a direction, a text the sum of its words, a picture that of what it shows."""

    name, dim = "words", 400
    capabilities = EmbedderCapabilities(joint_space=True)

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._words = unit(np.random.default_rng(5).normal(size=(len(VOCABULARY), self.dim)).astype(np.float32))

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        self.asked += texts
        return unit(np.stack([self._sum(text) for text in texts]))

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        raise AssertionError("pictures come as vectors")

    def shows(self, famous: Famous, seed: int = 0) -> Vectors:
        """The vector of a picture that shows all of it."""
        text = " ".join((famous.focus, famous.action, famous.mood, famous.setting, *famous.objects))
        noise = np.random.default_rng(seed).normal(size=self.dim) / self.dim**0.5
        return unit(self._sum(text) + (0.5 * noise).astype(np.float32))

    def _sum(self, text: str) -> Vectors:
        rows = [self._words[VOCABULARY.index(word)] for word in text.split() if word in VOCABULARY]
        odd = np.random.default_rng(sum(text.encode())).normal(size=self.dim) * NOISE / self.dim**0.5
        return np.asarray(np.sum(rows, axis=0) + odd if rows else odd, np.float32)


def scene(number: int) -> Famous:
    thing = THINGS[number]
    return Famous(focus=f"a {thing}", action=DOES[number], mood=MOODS[number], objects=(thing,), setting=f"a {PLACES[number]}")


def described(famous: Famous) -> Description:
    return Description(keyframe_id="v:1", time_s=0.0, engine="fake", grounding=(), dense_caption="", famous=famous, calls=())


def nothing(count: int) -> list[tuple[Detection, ...] | None]:
    return [None] * count


def verdicts(verification: Verification) -> dict[str, str]:
    return {check.claim: check.verdict for check in verification.checks}


def looked(famous: Sequence[Famous], shown: Sequence[Famous] | None = None) -> list[Verification]:
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(shown or famous)])
    return check_claims([described(one) for one in famous], images, space, nothing(len(famous)), None)


SCENES = [scene(number) for number in range(12)]


# ---------------------------------------------------------------- the embedder


def test_claims_that_fit_their_frames_are_supported() -> None:
    for verification in looked(SCENES):
        assert set(verdicts(verification).values()) == {"supported"}
        assert all(check.by == ("words",) for check in verification.checks)
        for check in verification.checks:
            assert check.similarity is not None
            assert check.baseline is not None
            assert check.similarity > check.baseline + 0.1


def test_a_claim_of_each_field_that_was_made_up_is_unsupported_and_the_others_stay() -> None:
    lie = Famous(focus="a unicorn", action="juggling", mood="eerie", objects=("dog", "spaceship"), setting="a volcano")
    found = looked([lie, *SCENES[1:]], SCENES)
    assert verdicts(found[0]) == {
        **dict.fromkeys(("a unicorn", "juggling", "eerie", "spaceship", "a volcano"), "unsupported"),
        "dog": "supported",
    }
    assert [check.claim for check in unsupported(found[0])] == ["a unicorn", "juggling", "eerie", "spaceship", "a volcano"]
    assert not any(unsupported(one) for one in found[1:])


@pytest.mark.parametrize("count", [2, 6, 12])
def test_descriptions_that_were_swapped_are_unsupported(count: int) -> None:
    shown = SCENES[:count]
    found = looked([shown[1], shown[0], *shown[2:]], shown)
    for one in found[:2]:
        assert set(verdicts(one).values()) == {"unsupported"}
    assert not any(unsupported(one) for one in found[2:])


def test_of_three_descriptions_two_that_were_swapped_are_not_supported_at_least() -> None:
    found = looked([SCENES[1], SCENES[0], SCENES[2]], SCENES[:3])
    assert not {verdict for one in found[:2] for verdict in verdicts(one).values()} & {"supported"}
    assert not unsupported(found[2])


def test_a_scene_that_stays_has_nothing_unsupported() -> None:
    space = WordSpace()
    image = space.shows(SCENES[0])
    noisy = unit(image + np.random.default_rng(1).normal(size=(8, space.dim)).astype(np.float32) * 0.005)
    said = [SCENES[0], *SCENES[:7]]
    found = check_claims([described(one) for one in said], noisy, space, nothing(8), None)
    assert {verdict for one in found for verdict in verdicts(one).values()} == {"unchecked"}


def test_a_claim_that_holds_everywhere_is_not_called_unsupported() -> None:
    shown = [one.model_copy(update={"setting": f"a city {one.setting}"}) for one in SCENES]
    said = [one.model_copy(update={"setting": f"the city{' ' * number}"}) for number, one in enumerate(SCENES)]
    for one in looked(said, shown):
        assert one.checks[-1].field == "setting"
        assert one.checks[-1].verdict == "unchecked"


def test_who_says_the_same_elsewhere_says_nothing_against_it() -> None:
    said = [one.model_copy(update={"mood": "Calm." if number % 2 else "calm"}) for number, one in enumerate(SCENES)]
    for one in looked(said, SCENES):
        mood = next(check for check in one.checks if check.field == "mood")
        assert (mood.verdict, mood.by, mood.baseline) == ("unchecked", (), None)


def test_what_is_not_determined_is_not_checked() -> None:
    said = SCENES[0].model_copy(update={"mood": "not determined", "action": "Not determined.", "setting": " "})
    found = looked([said, *SCENES[1:]], SCENES)[0]
    open_ones = [check for check in found.checks if check.field in ("mood", "action", "setting")]
    assert [(check.verdict, check.by, check.similarity) for check in open_ones] == [("unchecked", (), None)] * 3


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(st.permutations(range(12)), st.integers(0, 11))
def test_the_order_of_the_others_does_not_matter(order: list[int], lying: int) -> None:
    said = [scene(number) if number != lying else scene(lying).model_copy(update={"focus": "a unicorn"}) for number in range(12)]
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(SCENES)])
    straight = check_claims([described(one) for one in said], images, space, nothing(12), None)
    mixed = check_claims([described(said[number]) for number in order], images[order], space, nothing(12), None)
    assert mixed == [straight[number] for number in order]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 11), min_size=1, max_size=9), st.integers(0, 11))
def test_frames_that_are_identical_never_have_anything_unsupported(said: list[int], shown: int) -> None:
    space = WordSpace()
    images = np.stack([space.shows(scene(shown))] * len(said))
    found = check_claims([described(scene(number)) for number in said], images, space, nothing(len(said)), None)
    assert not any(unsupported(one) for one in found)


@settings(max_examples=25, deadline=None)
@given(st.text(max_size=30), st.lists(st.text(max_size=20), max_size=4))
def test_a_single_frame_is_never_judged_by_the_embedder(focus: str, objects: list[str]) -> None:
    famous = SCENES[0].model_copy(update={"focus": focus, "objects": tuple(objects)})
    [found] = looked([famous])
    assert {check.verdict for check in found.checks} == {"unchecked"}
    assert [check.claim for check in found.checks if check.field == "objects"] == objects


def test_there_may_be_no_descriptions() -> None:
    assert check_claims([], np.zeros((0, 4), np.float32), WordSpace(), [], "opencv") == []


def test_without_a_joint_space_the_embedder_has_no_say() -> None:
    space = WordSpace()
    space.capabilities = EmbedderCapabilities()
    said = [described(one) for one in SCENES]
    images = np.stack([space.shows(one) for one in reversed(SCENES)])
    for found in (check_claims(said, images, space, nothing(12), None), check_claims(said, None, None, nothing(12), None)):
        assert {verdict for one in found for verdict in verdicts(one).values()} == {"unchecked"}
    assert not space.asked


def test_each_text_is_embedded_once() -> None:
    space = WordSpace()
    images = np.stack([space.shows(one) for one in SCENES * 2])
    check_claims([described(one) for one in SCENES * 2], images, space, nothing(24), None)
    assert len(space.asked) == len(set(space.asked)) == 5 * 12


def test_of_many_frames_a_lie_stands_out_too() -> None:
    count = 3 * MOST_OTHERS
    said = [scene(number % 12) for number in range(count)]
    said[100] = said[100].model_copy(update={"action": "juggling"})
    found = looked(said, [scene(number % 12) for number in range(count)])
    assert [check.claim for one in found for check in unsupported(one)] == ["juggling"]


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="1 descriptions, 2 detections"):
        check_claims([described(SCENES[0])], None, None, nothing(2), None)


# ---------------------------------------------------------------- the detector


def detection(label: str, score: float = 0.9, **more: str) -> Detection:
    return Detection.model_validate({"label": label, "score": score, "box_xyxy": (0, 0, 1, 1), "source": "detr", **more})


def judged(name: str, found: tuple[Detection, ...] | None, elsewhere: tuple[Detection, ...] = (), *, detector: str = "detr") -> Check:
    """The check of one object that the made-up space does not know, beside another frame."""
    said = [SCENES[0].model_copy(update={"objects": (name,)}), SCENES[1]]
    return next(check for check in check_claims([described(one) for one in said], None, None, [found, elsewhere], detector)[0].checks[3:4])


@pytest.mark.parametrize(("name", "label"), [("a brown dog", "dog"), ("two women", "person"), ("girl", "face"), ("phone", "cell phone")])
def test_an_object_that_was_detected_is_supported(name: str, label: str) -> None:
    check = judged(name, (detection("tree"), detection(label, 0.5)))
    assert (check.field, check.claim, check.verdict, check.by) == ("objects", name, "supported", ("detr",))


def test_the_surest_of_several_detections_counts() -> None:
    assert judged("dog", (detection("dog", 0.3), detection("dog", 0.9), detection("dog", 0.4))).verdict == "supported"


def test_a_detection_is_evidence_for_objects_alone() -> None:
    checks = check_claims([described(SCENES[0])], None, None, [(detection("dog"),)], "detr")[0].checks
    assert {check.field: check.verdict for check in checks} == {
        **dict.fromkeys(("focus", "action", "mood", "setting"), "unchecked"),
        "objects": "supported",
    }


@pytest.mark.parametrize(
    "found",
    [(), None, (detection("cat"),), (detection("dog", 0.49),), (detection("dog", kind="region"),), (detection("hot dog"),)],
)
def test_what_was_not_detected_is_no_evidence_by_itself(found: tuple[Detection, ...] | None) -> None:
    assert judged("dog", found, (detection("dog"),)).verdict == "unchecked"


def test_both_may_support_an_object() -> None:
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(SCENES)])
    found = check_claims([described(one) for one in SCENES], images, space, [(detection("dog"),), *nothing(11)], "detr")
    assert found[0].checks[3].by == ("words", "detr")
    assert found[1].checks[3].by == ("words",)


def test_a_detection_outweighs_the_embedder() -> None:
    said = [SCENES[0].model_copy(update={"objects": ("unicorn",)}), *SCENES[1:]]
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(SCENES)])
    found = check_claims([described(one) for one in said], images, space, [(detection("unicorn"),), *nothing(11)], "detr")
    assert (found[0].checks[3].verdict, found[0].checks[3].by) == ("supported", ("detr",))


@pytest.mark.parametrize(("detector", "by"), [("detr", ("words", "detr")), ("opencv", ("words",))])
def test_absence_counts_only_with_a_detector_that_finds_such_things(detector: str, by: tuple[str, ...]) -> None:
    said = [SCENES[0].model_copy(update={"objects": ("horse",)}), *SCENES[1:]]
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(SCENES)])
    detections = [(), *[(detection("horse"),)] * 11]
    check = check_claims([described(one) for one in said], images, space, detections, detector)[0].checks[3]
    assert (check.verdict, check.by) == ("unsupported", by)


def test_absence_says_nothing_about_what_is_no_object() -> None:
    said = [SCENES[0].model_copy(update={"focus": "horse"}), *SCENES[1:]]
    space = WordSpace()
    images = np.stack([space.shows(one, seed) for seed, one in enumerate(SCENES)])
    detections = [(), *[(detection("horse"),)] * 11]
    check = check_claims([described(one) for one in said], images, space, detections, "detr")[0].checks[0]
    assert (check.field, check.verdict, check.by) == ("focus", "unsupported", ("words",))


# ---------------------------------------------------------------- by hand


class Axes:
    """A joint space in which each text is an axis of its own, in the order that the test says."""

    name, capabilities = "axes", EmbedderCapabilities(joint_space=True)

    def __init__(self, *texts: str, dim: int = 32) -> None:
        self.texts, self.dim = texts, dim

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        return np.eye(self.dim, dtype=np.float32)[[self.texts.index(text) for text in texts]]

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        raise AssertionError("pictures come as vectors")

    def shows(self, **cosines: float) -> Vectors:
        """A picture with these cosines to texts; what is missing to a length of 1 goes to an axis that no text has."""
        vector = np.zeros(self.dim, np.float32)
        for text, cosine in cosines.items():
            vector[self.texts.index(text)] = cosine
        vector[-1] = (1 - float(vector @ vector)) ** 0.5
        return vector


def says(focus: str = "not determined", *objects: str) -> Description:
    return described(Famous(focus=focus, action="", mood="", objects=objects, setting=""))


def test_the_baseline_is_the_mean_of_this_claim_elsewhere_and_of_the_others_here_each_counted_once() -> None:
    space = Axes("a", "b", "c", "d")
    images = np.stack([space.shows(a=0.9, b=0.3, c=0.1), space.shows(a=0.6, b=0.5), space.shows(c=0.5), space.shows(d=0.5)])
    check = check_claims([says(text) for text in "abcd"], images, space, nothing(4), None)[0].checks[0]
    assert check.similarity == pytest.approx(0.9, abs=1e-3)
    assert check.baseline == pytest.approx(((0.6 + 0 + 0) / 3 + (0.3 + 0.1 + 0) / 3) / 2, abs=1e-3)


def test_of_a_long_list_of_another_frame_the_first_eight_names_count() -> None:
    names = [f"{letter}thing" for letter in "abcdefghijklmnop"]
    space = Axes("mine", *names)
    images = np.stack([space.shows(mine=0.5, **dict.fromkeys(names[8:], 0.25)), space.shows()])
    check = check_claims([says("", "mine"), says("", *names)], images, space, nothing(2), None)[0].checks[3]
    assert (check.claim, check.baseline) == ("mine", 0.0)


def test_what_a_frame_shows_too_is_no_chance_that_its_claims_are_held_against() -> None:
    space = Axes("dog", "cat", "car")
    images = np.stack([space.shows(dog=0.5, cat=0.8), space.shows()])
    check = check_claims([says("", "dog", "cat"), says("", "cat", "car")], images, space, nothing(2), None)[0].checks[3]
    assert (check.claim, check.baseline) == ("dog", 0.0)


@pytest.mark.parametrize(
    ("elsewhere", "verdict"), [((), "unchecked"), ((detection("cat"),), "unsupported"), ((detection("cat", kind="region"),), "unchecked")]
)
def test_of_two_frames_an_object_that_a_detector_misses_and_the_picture_hardly_shows_is_unsupported(
    elsewhere: tuple[Detection, ...], verdict: str
) -> None:
    space = Axes("cat", "tree")
    images = np.stack([space.shows(), space.shows(tree=0.9)])
    check = check_claims([says("", "cat"), says("", "tree")], images, space, [(), elsewhere], "detr")[0].checks[3]
    assert (check.claim, check.verdict) == ("cat", verdict)


# ---------------------------------------------------------------- after the second look


def check_of(field: str, claim: str, after: str | None) -> Check:
    return Check.model_validate({"field": field, "claim": claim, "verdict": "unsupported", "after": after})


def test_what_a_second_look_made_of_the_claims_goes_in() -> None:
    famous = Famous(focus="a unicorn", action="juggling", mood="eerie", objects=("dog", "spaceship", "hat", "cat"), setting="a volcano")
    checks = [
        check_of("focus", "a unicorn", "a dog"),
        check_of("action", "juggling", ""),
        check_of("mood", "eerie", None),
        check_of("setting", "a volcano", " not determined "),
        check_of("objects", "spaceship", ""),
        check_of("objects", "hat", "dog"),
        check_of("objects", "cat", "not determined"),
    ]
    assert apply_corrections(famous, checks) == Famous(
        focus="a dog", action="not determined", mood="eerie", objects=("dog",), setting="not determined"
    )


def test_a_correction_of_another_claim_changes_nothing() -> None:
    checks = [check_of("focus", "a cat", "a mouse"), check_of("objects", "a dog", "")]
    assert apply_corrections(SCENES[0], checks) == SCENES[0]


# ---------------------------------------------------------------- the real path


def test_vectors_of_open_clip_pass_through(tmp_path: Path) -> None:
    embedder = OpenClipEmbedder(str(folder(tmp_path / "clip", "clip")), device="cpu")
    pictures = np.random.default_rng(0).integers(0, 256, (4, 64, 64, 3), np.uint8)
    images = embedder.embed_images(list(pictures))
    found = check_claims([described(one) for one in SCENES[:4]], images, embedder, nothing(4), None)
    assert len(found) == 4
    texts = embedder.embed_texts(["a dog"])
    assert found[0].checks[0].similarity == pytest.approx(float(images[0] @ texts[0]), abs=1e-3)  # weights at random: no verdict to expect
