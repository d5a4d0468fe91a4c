"""Chat models, part by part: how a question is written, which tensors it becomes, what of an answer is text, and what is refused.

Tokenizers are real and small; a model is a fake with the settings and signatures that a real one has.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models import tiny_chat_models  # noqa: E402
from vip.errors import BackendError  # noqa: E402
from vip.models.hardware import Hardware, choose_hardware  # noqa: E402
from vip.models.transformers import chat  # noqa: E402
from vip.models.transformers.chat import CaptionModel, ChatModel, ChatQuestion, default_hardware  # noqa: E402
from vip.models.transformers.model_files import ModelFiles  # noqa: E402
from vip.protocols import Picture, Request  # noqa: E402

BOS, EOS, PAD, TURN = 0, 1, 2, 4
"""`<s>`, `</s>`, `<pad>`, `<|im_end|>`"""
PICTURE = Picture(b"", "image/png")


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """The library loads its parts when they are first used, which takes seconds."""
    transformers.LlavaConfig()
    assert transformers.AutoProcessor
    assert transformers.AutoModelForImageTextToText
    words()(["dog"], return_tensors="pt")


class Network:
    """A fake model: the names of its tensors, and what it generates with."""

    def __init__(self, **settings: Any) -> None:
        usual = {"eos_token_id": EOS, "do_sample": True, "temperature": 1.5, "repetition_penalty": 1.3}
        self.generation_config = transformers.GenerationConfig(**{**usual, **settings})

    def forward(self, input_ids: object, attention_mask: object) -> None: ...

    def prepare_inputs_for_generation(self, input_ids: object, pixel_values: object) -> None: ...


class Processor:
    """A fake processor of pictures: it hands texts to its tokenizer, and remembers what it was given."""

    def __init__(self, tokenizer: Any, **about: Any) -> None:
        self.tokenizer, self.image_processor, self.chat_template = tokenizer, self._prepare, None
        self.given: dict[str, Any] = {}
        self.__dict__.update(about)

    def __call__(self, *, text: list[str], **settings: Any) -> dict[str, Any]:
        self.given = {"text": text, **settings}
        pictures = settings.pop("images", None)
        found = dict(self.tokenizer(text=text, **settings))
        return found if pictures is None else {**found, "pixel_values": pictures, "rows": pictures}

    def _prepare(self, pictures: Any, return_tensors: str) -> dict[str, Any]:
        self.given = {"pictures": pictures}
        return {"pixel_values": torch.zeros(len(pictures), 3)}

    def apply_chat_template(self, messages: Any, **settings: Any) -> str:
        return f"{messages[0]['role']}|{messages[0]['content']}|{settings}"


def words(template: str | None = None, **about: Any) -> Any:
    made = tiny_chat_models.tokenizer(template)
    for name, value in about.items():
        setattr(made, name, value)
    return made


def files_of(folder: Path | None = None, name: str = "tiny") -> Any:
    return SimpleNamespace(name=name, folder=folder)


def config(**settings: Any) -> Any:
    return transformers.LlamaConfig(**{"vocab_size": 400, "max_position_embeddings": 128, **settings})


def plain(prompt: str, pictures: int) -> str:
    return f"{'P' * pictures}[{prompt}]"


def model_of(
    processor: Any,
    network: Any = None,
    *,
    template: Callable[[str, int], str] = plain,
    adds_special: bool | None = None,
    kind: type = ChatModel,
) -> Any:
    return kind(files_of(), config(), network or Network(), processor, template, adds_special=adds_special)


def question(prompt: str = "dog", pictures: tuple[Any, ...] = (), *, as_json: bool = False) -> ChatQuestion:
    return ChatQuestion(prompt, pictures, as_json)


# ---------------------------------------------------------------- how a question is written


def test_short_questions_are_padded_on_the_left_and_counted_without_padding() -> None:
    model = model_of(words(padding_side="right"))
    inputs = model.prepare_inputs([question("dog"), question("The dog jumps in the park")])
    assert set(inputs) == {"input_ids", "attention_mask"}
    first, second = inputs["attention_mask"].tolist()
    assert second == [1] * len(second)
    assert first == sorted(first)
    assert model.token_counts(inputs) == [sum(first), len(second)]
    assert inputs["input_ids"][0, 0] == PAD


@pytest.mark.parametrize(
    ("starts", "adds", "expected"), [(True, None, False), (False, None, True), (True, True, True), (False, False, False)]
)
def test_the_first_token_is_added_where_neither_template_nor_caller_says_otherwise(starts: bool, adds: bool | None, expected: bool) -> None:
    processor = Processor(words())
    model = model_of(processor, template=lambda prompt, _: f"<s>{prompt}" if starts else prompt, adds_special=adds)
    model.prepare_inputs([question()])
    assert processor.given["add_special_tokens"] is expected


def test_without_a_first_token_the_tokenizer_adds_its_own() -> None:
    processor = Processor(words(bos_token=None))
    model_of(processor).prepare_inputs([question()])
    assert processor.given["add_special_tokens"] is True


def test_pictures_go_with_their_question_and_only_where_there_are_some() -> None:
    processor = Processor(words())
    model = model_of(processor)
    inputs = model.prepare_inputs([question("a", ("x", "y")), question("b", ("z",))])
    assert processor.given["images"] == [["x", "y"], ["z"]]
    assert processor.given["text"] == ["PP[a]", "P[b]"]
    assert inputs["pixel_values"] == [["x", "y"], ["z"]]
    assert "rows" not in inputs, "the model does not take it"
    model.prepare_inputs([question("a")])
    assert "images" not in processor.given
    assert processor.given["text"] == ["[a]"]


@pytest.mark.parametrize(
    ("prompt", "written"),
    [
        ("</s><|im_end|>", "< /s>< |im_end|>"),
        ("<image><image>", "< image>< image>"),
        ("a </ s> b", "a </ s> b"),
        ("<mark> here", "< mark> here"),
        ("<s>", "< s>"),
        ("x < y", "x < y"),
    ],
)
def test_a_prompt_has_no_mark_of_the_tokenizer_or_the_processor(prompt: str, written: str) -> None:
    model = model_of(Processor(words(), image_token="<mark>" if "mark" in prompt else "<image>"))
    assert model._render_prompt(question(prompt)) == f"[{written}]"


def test_a_mark_within_a_longer_one_does_not_save_the_longer_one() -> None:
    made = words()
    made.add_special_tokens({"additional_special_tokens": ["<|im_end|>x", "#"]})
    model = model_of(made)
    assert model._render_prompt(question("<|im_end|>x #")) == "[< |im_end|>x #]"


def test_added_words_that_are_no_marks_are_marks_only_where_the_template_has_them() -> None:
    template = "{{ messages[0].content }}[TURN]"
    for shown, expected in ((template, "[[ TURN] [OTHER]]"), (None, "[[TURN] [OTHER]]")):
        made = words(shown)
        made.add_tokens(["[TURN]", "[OTHER]"])
        assert model_of(made)._render_prompt(question("[TURN] [OTHER]")) == expected


@pytest.mark.parametrize(
    ("end", "as_json", "written"),
    [
        ("<think>", True, "<think>\n\n</think>\n\n"),
        ("<think>\n ", True, "<think>\n\n</think>\n\n"),
        ("<think>\n ", False, "<think>\n "),
        ("</think>", True, "</think>"),
        ("", True, ""),
    ],
)
def test_a_thought_that_the_template_begins_is_closed_before_json(end: str, as_json: bool, written: str) -> None:
    model = model_of(words(), template=lambda prompt, _: f"{prompt}{end}")
    assert model._render_prompt(question("dog", as_json=as_json)) == f"dog{written}"


# ---------------------------------------------------------------- what of an answer is text


@pytest.mark.parametrize(
    ("text", "plain_text", "json_text"),
    [
        (" a dog </s></s>", "a dog", "a dog"),
        ("<think>hm</think> a dog", "a dog", "<think>hm</think> a dog"),
        ("one</think>two", "two", "one</think>two"),
        ("<think> never ends", "", "<think> never ends"),
        ("<think>only</think>", "", "<think>only</think>"),
        ("I <think> so", "I <think> so", "I <think> so"),
        ("a dog , it 's", "a dog , it 's", "a dog , it 's"),
        ("line\n\nline", "line\n\nline", "line\n\nline"),
        ("", "", ""),
    ],
)
@pytest.mark.parametrize("as_mark", [False, True])
def test_a_thought_before_free_text_is_left_out_and_json_stays_whole(text: str, plain_text: str, json_text: str, as_mark: bool) -> None:
    made = words()
    if as_mark:
        made.add_tokens(["<think>", "</think>"])
    model, tokens = model_of(made), made.encode(text, add_special_tokens=False)
    assert model.decode_answer(tokens, as_json=False) == plain_text
    assert model.decode_answer(tokens, as_json=True) == json_text
    assert model.decode_answer(tuple(tokens), as_json=False) == plain_text


def test_only_the_first_thought_is_left_out() -> None:
    made = words()
    assert model_of(made).decode_answer(made.encode("one</think>two</think>three"), as_json=False) == "two</think>three"


# ---------------------------------------------------------------- generation


@pytest.mark.parametrize(
    ("eos", "own", "ends"),
    [
        (EOS, "</s>", [EOS]),
        ([TURN, EOS], "</s>", [TURN, EOS]),
        ([TURN], "</s>", [TURN, EOS]),
        (TURN, None, [TURN]),
        (None, "</s>", [EOS]),
        ([TURN, TURN], None, [TURN]),
        (0, "</s>", [BOS, EOS]),
    ],
)
def test_every_token_that_may_end_an_answer_ends_it(eos: Any, own: str | None, ends: list[int]) -> None:
    network = Network(eos_token_id=eos)
    model = model_of(words(eos_token=own), network)
    assert model.end_tokens == ends
    assert network.generation_config.eos_token_id == ends


def test_a_model_is_made_to_write_the_likeliest_token_and_nothing_else_of_its_own_settings_counts() -> None:
    network = Network(bos_token_id=7, decoder_start_token_id=8, top_k=5, num_beams=4)
    model_of(words(), network)
    made = network.generation_config
    assert (made.do_sample, made.bos_token_id, made.decoder_start_token_id, made.pad_token_id) == (False, 7, 8, PAD)
    assert made.to_diff_dict().keys().isdisjoint({"temperature", "repetition_penalty", "top_k", "num_beams"})


def test_without_a_token_for_padding_the_first_that_ends_an_answer_serves() -> None:
    made, network = words(pad_token=None), Network(eos_token_id=[TURN, EOS])
    model_of(made, network)
    assert made.pad_token_id == network.generation_config.pad_token_id == TURN
    assert made.padding_side == "left"


def test_a_model_that_never_ends_is_refused() -> None:
    with pytest.raises(BackendError, match=r"tiny names no token that ends an answer\. Add eos_token_id to its generation_config\.json\."):
        model_of(words(eos_token=None), Network(eos_token_id=None))


def test_size_and_vocabulary_are_those_of_the_part_that_writes() -> None:
    inner = config(vocab_size=77, max_position_embeddings=55)
    both = transformers.LlavaConfig(text_config=inner, vision_config=transformers.CLIPVisionConfig())
    model = ChatModel(files_of(), both, Network(), words(), plain, adds_special=None)
    assert (model.vocabulary, model.context, model.name, model.hardware) == (77, 55, "tiny", Hardware("cpu", "fp32"))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("pictures", [0, 1])
@pytest.mark.parametrize("sees", [True, False])
def test_pictures_are_for_models_that_see(sees: bool, pictures: int) -> None:
    model = model_of(Processor(words()) if sees else words())
    request = Request("describe", "What?", pictures=(PICTURE,) * pictures)
    if sees or not pictures:
        model.check_request(request)
    else:
        with pytest.raises(BackendError, match="tiny reads text and cannot look at a picture"):
            model.check_request(request)


class Captioner(Network):
    """A fake captioner of one of two kinds."""

    def __init__(self, kind: str, end: Any = 3) -> None:
        super().__init__()
        self.config = SimpleNamespace(model_type=kind, text_config=SimpleNamespace(sep_token_id=9))
        if kind == "blip-2":
            self.config.num_query_tokens = 4
        self.language_model = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=end))


@pytest.mark.parametrize(("kind", "end", "ends", "tokens"), [("blip", 3, [9], 1), ("blip-2", 3, [3], 5), ("blip-2", [3, 5], [3, 5], 5)])
def test_a_captioner_gets_one_picture_a_question_and_no_text(kind: str, end: Any, ends: list[int], tokens: int) -> None:
    processor = Processor(words())
    model = model_of(processor, Captioner(kind, end), kind=CaptionModel)
    inputs = model.prepare_inputs([question("any", ("x",)), question("thing", ("y",))])
    assert processor.given == {"pictures": ["x", "y"]}
    assert list(inputs) == ["pixel_values"]
    assert model.token_counts(inputs) == [tokens, tokens]
    assert model.end_tokens == ends


@pytest.mark.parametrize(
    ("stage", "pictures", "schema", "allowed"),
    [
        ("caption", 1, None, True),
        ("describe", 1, None, True),
        ("structure", 1, None, False),
        ("caption", 0, None, False),
        ("caption", 2, None, False),
        ("caption", 1, {}, False),
    ],
)
def test_a_captioner_answers_with_a_caption_of_one_picture_or_not_at_all(stage: Any, pictures: int, schema: Any, allowed: bool) -> None:
    model = model_of(Processor(words()), Captioner("blip"), kind=CaptionModel)
    request = Request(stage, "What?", pictures=(PICTURE,) * pictures, schema=schema)
    if allowed:
        model.check_request(request)
    else:
        with pytest.raises(BackendError, match="tiny writes captions only, of one picture at a time"):
            model.check_request(request)


# ---------------------------------------------------------------- templates


def test_a_template_is_asked_for_one_users_turn_and_the_start_of_the_answer() -> None:
    template = "{% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}{{ 'go' if add_generation_prompt }}"
    language, adds = chat._language_template("tiny", words(template), config())
    assert language("dog", 3) == "user:dog;go"
    assert adds is False


@pytest.mark.parametrize(("template", "text"), [("{{ enable_thinking }}", "False"), ("{{ thinking }}", "")])
def test_thinking_is_disabled_where_a_template_knows_the_word(template: str, text: str) -> None:
    assert chat._language_template("tiny", words(template), config())[0]("dog", 0) == text


@pytest.mark.parametrize(("name", "path"), [("Vicuna-7b", ""), ("mine", "lmsys/vicuna-7b")])
def test_vicuna_is_known_by_its_name_or_where_it_came_from(name: str, path: str) -> None:
    language, adds = chat._language_template(name, words(), SimpleNamespace(_name_or_path=path))
    assert language("{dog}", 0).endswith(" USER: {dog} ASSISTANT:")
    assert adds is True, "its tokenizer writes the first token"


@pytest.mark.parametrize(("find", "processor"), [(chat._vision_template, Processor), (chat._language_template, lambda one: one)])
def test_without_a_template_a_model_is_refused_by_its_name(find: Callable[..., Any], processor: Callable[[Any], Any]) -> None:
    with pytest.raises(BackendError, match=r"^tiny has no chat template, .*-Instruct or -it\.$"):
        find("tiny", processor(words()), config())


def test_pictures_come_before_the_words_as_parts_of_the_turn() -> None:
    template = chat._vision_template("tiny", Processor(words("{{ 'not this' }}"), chat_template="x"), config())
    content = [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "dog"}]
    assert template("dog", 2) == f"user|{content}|{ {'tokenize': False, 'add_generation_prompt': True} }"


@pytest.mark.parametrize(("about", "mark"), [({}, "<image>"), ({"image_token": "<pic>"}, "<pic>")])
def test_where_only_the_tokenizer_has_a_template_pictures_are_marks_on_lines_of_their_own(about: dict[str, str], mark: str) -> None:
    template = chat._vision_template("tiny", Processor(words("[{{ messages[0].content }}]"), **about), config())
    assert template("dog", 2) == f"[{mark}\n{mark}\ndog]"
    assert template("dog", 0) == "[dog]"


def test_llava_without_any_template_is_asked_as_it_was_taught() -> None:
    template = chat._vision_template("tiny", Processor(words()), transformers.LlavaConfig())
    assert template("a {dog}", 1) == "USER: <image>\na {dog} ASSISTANT:"


def test_a_template_that_fails_is_refused_whatever_its_error() -> None:
    def fails(prompt: str, pictures: int) -> str:
        raise KeyError("roles")

    with pytest.raises(BackendError, match=r"The chat template of tiny does not work \(.*roles.*\)\. Choose another model\."):
        chat._check_template("tiny", fails)
    assert chat._check_template("tiny", plain) is plain


@pytest.mark.parametrize(("known", "kind", "changed"), [(None, "llava", True), (14, "llava", False), (None, "other", False)])
def test_only_what_an_old_copy_of_llava_lacks_is_set(known: int | None, kind: str, changed: bool) -> None:
    processor = SimpleNamespace(patch_size=known, vision_feature_select_strategy=None, num_additional_image_tokens=0)
    about = SimpleNamespace(model_type=kind, vision_config=SimpleNamespace(patch_size=8), vision_feature_select_strategy="full")
    chat._complete_llava(processor, about)
    found = (processor.patch_size, processor.vision_feature_select_strategy, processor.num_additional_image_tokens)
    assert found == ((8, "full", 1) if changed else (known, None, 0))
    without = SimpleNamespace()
    chat._complete_llava(without, about)
    assert vars(without) == {}


# ---------------------------------------------------------------- which model it is


@pytest.mark.parametrize(
    ("kind", "built", "sees"),
    [
        ("llama", ["LlamaForCausalLM"], False),
        ("llama", None, False),
        ("llava", ["LlavaForConditionalGeneration"], True),
        ("llava", None, True),
        ("blip-2", ["Blip2ForConditionalGeneration"], True),
    ],
)
def test_whether_a_model_takes_pictures_is_known_by_its_kind_and_class(kind: str, built: list[str] | None, sees: bool) -> None:
    assert chat._takes_pictures("tiny", SimpleNamespace(model_type=kind, architectures=built)) is sees


@pytest.mark.parametrize(
    ("kind", "built", "said"),
    [
        (
            "llama",
            ["LlamaForSequenceClassification"],
            r"tiny is a llama model \(LlamaForSequenceClassification\), which does not write text",
        ),
        ("bert", None, "tiny is a .*model"),
        ("clip", ["CLIPModel"], r"tiny is a clip model \(CLIPModel\), which does not write text"),
        ("nothing-known", None, "tiny is a nothing-known model, which does not write text"),
    ],
)
def test_a_model_that_does_not_write_is_refused_with_what_it_is(kind: str, built: list[str] | None, said: str) -> None:
    if kind == "bert":
        assert chat._takes_pictures("tiny", SimpleNamespace(model_type=kind, architectures=built)) is False, "one of its classes writes"
        return
    with pytest.raises(BackendError, match=said):
        chat._takes_pictures("tiny", SimpleNamespace(model_type=kind, architectures=built))


@pytest.mark.parametrize(("names", "found"), [(None, set()), ("A", {"A"}), (("A", "B"), {"A", "B"}), (["A"], {"A"})])
def test_names_of_classes_are_one_several_or_none(names: Any, found: set[str]) -> None:
    assert chat._as_set(names) == found


@pytest.mark.parametrize(
    ("device", "given", "saved", "used"),
    [
        ("cuda", "fp16", "bfloat16", "bf16"),
        ("cuda:1", "bf16", "torch.float16", "fp16"),
        ("cuda", "fp16", "float32", "fp16"),
        ("cuda", "fp16", None, "fp16"),
        ("cpu", "fp32", "bfloat16", "fp32"),
        ("mps", "fp16", "bfloat16", "fp16"),
    ],
)
def test_on_cuda_a_checkpoint_of_16_bits_keeps_its_precision(device: str, given: Any, saved: str | None, used: str) -> None:
    about = SimpleNamespace(dtype=saved, get_text_config=lambda: SimpleNamespace(dtype="bfloat16" if saved else None))
    assert default_hardware(Hardware(device, given), about) == Hardware(device, used)  # type: ignore[arg-type]


def test_the_precision_of_the_part_that_writes_counts_where_the_whole_says_none() -> None:
    about = SimpleNamespace(dtype=None, get_text_config=lambda: SimpleNamespace(dtype=torch.bfloat16))
    assert default_hardware(Hardware("cuda", "fp16"), about) == Hardware("cuda", "bf16")


def test_weights_are_known_by_names_sizes_and_times_of_their_files(tmp_path: Path) -> None:
    def fingerprint() -> str:
        return chat._weights_fingerprint(files_of(tmp_path), config())

    def write(name: str, text: str, time_ns: int = 10**18) -> None:
        (tmp_path / name).write_text(text)
        os.utime(tmp_path / name, ns=(time_ns, time_ns))

    seen = [fingerprint()]
    for change in (("a.bin", "x"), ("b.bin", "y"), ("b.bin", "yy"), ("b.bin", "yy", 10**18 + 1)):
        write(*change)
        seen.append(fingerprint())
        assert fingerprint() == seen[-1]
    (tmp_path / "b.bin").rename(tmp_path / "c.bin")
    seen.append(fingerprint())
    assert len(set(seen)) == len(seen)
    assert all(len(one) == 16 for one in seen)
    (tmp_path / "folder").mkdir()
    assert fingerprint() == seen[-1], "only files are weights"


@pytest.mark.parametrize(("commit", "found"), [("abc", "abc"), (None, "unknown")])
def test_weights_of_the_hub_are_known_by_their_commit(commit: str | None, found: str) -> None:
    assert chat._weights_fingerprint(files_of(None), SimpleNamespace(_commit_hash=commit)) == found


# ---------------------------------------------------------------- loaded


@pytest.mark.parametrize(("given", "used"), [(True, Hardware("cuda", "fp16")), (False, Hardware("cuda", "bf16"))])
def test_a_precision_that_the_user_names_goes_before_that_of_the_checkpoint(given: bool, used: Hardware) -> None:
    """The files are a fake; nothing is put on the device."""
    loaded: list[Any] = []
    made = words("{{ messages[0].content }}")

    class Files:
        name, folder = "tiny", None

        def load(self, loader: Any) -> Any:
            return made if "Tokenizer" in repr(loader) else config(architectures=["LlamaForCausalLM"], dtype="bfloat16")

        def load_model(self, loader: Any, dtype: Any) -> Any:
            loaded.append((loader.__self__.__name__, dtype))
            return Network()

    files: Any = Files()
    model = chat._build(files, Hardware("cuda", "fp16"), precision_given=given)
    assert model.hardware == used
    assert loaded == [("AutoModelForCausalLM", used.dtype)]
    assert not model.takes_pictures


def test_a_processor_that_prepares_no_pictures_is_refused() -> None:
    class Files:
        name, folder = "tiny", None

        def load(self, loader: Any) -> Any:
            return words() if "Processor" in repr(loader) else transformers.LlavaConfig(architectures=["LlavaForConditionalGeneration"])

    files: Any = Files()
    with pytest.raises(
        BackendError, match=r"tiny has no processor that prepares pictures\. Copy the whole model again, or choose another\."
    ):
        chat._build(files, Hardware("cpu", "fp32"), precision_given=True)


@pytest.mark.parametrize(("precision", "given"), [("auto", False), ("fp32", True), ("bf16", True)])
def test_auto_is_no_precision_that_the_user_names(precision: str, given: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[Any, ...]] = []
    monkeypatch.setattr(ModelFiles, "find", lambda name, kind: (name, kind))
    monkeypatch.setattr(chat, "_build", lambda files, hardware, *, precision_given: seen.append((files, hardware, precision_given)))
    chat.load_chat_model("a/b", "cpu", precision)
    assert seen == [(("a/b", "engine"), choose_hardware("cpu", precision), given)]
