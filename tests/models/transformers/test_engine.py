"""The engine `transformers`: answers of small random models against the library's own way, schemas held to, batches, and refusals."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("llguidance")

from tests.models import tiny_chat_models, tiny_models  # noqa: E402
from tests.models.hub_server import put_into_cache  # noqa: E402
from tests.models.tiny_models import picture  # noqa: E402
from vip import registry  # noqa: E402
from vip.errors import BackendError, EngineError, ReplyError, VipError  # noqa: E402
from vip.models import hub  # noqa: E402
from vip.models.hardware import Hardware  # noqa: E402
from vip.models.local_models import vision_model  # noqa: E402
from vip.models.transformers import chat  # noqa: E402
from vip.models.transformers.chat import ChatQuestion  # noqa: E402
from vip.models.transformers.engine import TransformersEngine  # noqa: E402
from vip.models.transformers.json_grammar import bound_schema  # noqa: E402
from vip.prompts import OUTPUTS  # noqa: E402
from vip.protocols import Picture, Reply, Request  # noqa: E402
from vip.records import Famous  # noqa: E402

FAMOUS = Famous.model_json_schema()
SHORT = {**FAMOUS, "properties": {name: {**field, "maxLength": 40, "maxItems": 3} for name, field in FAMOUS["properties"].items()}}
OTHERS: dict[str, Callable[[Path], Path]] = {
    "old-llama": tiny_chat_models.save_old_llama,
    "blip": tiny_chat_models.save_blip,
    "blip-2": tiny_chat_models.save_blip2,
    "bert": tiny_models.save_bert,
}
kinds = pytest.mark.parametrize("kind", tiny_chat_models.SAVERS)
seeing = pytest.mark.parametrize("kind", [kind for kind in tiny_chat_models.SAVERS if "llama" not in kind])

Model = Callable[[str], Path]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny models on many threads wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Folders with tiny models, built when they are first asked for."""
    folders: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in folders:
            folders[kind] = saved({**tiny_chat_models.SAVERS, **OTHERS}[kind], tmp_path_factory.mktemp(kind))
        return folders[kind]

    return folder


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "unreachable_reason", lambda: "this is a test")


def saved(saver: Callable[..., Path], folder: Path, **settings: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of building models, which users do not do
        return saver(folder, **settings)


def made(folder: Path, **settings: Any) -> TransformersEngine:
    return TransformersEngine(str(folder), **{"device": "cpu", "precision": "fp32", **settings})


def shown(seed: int, height: int = 60, width: int = 90) -> Picture:
    bgr = cv2.cvtColor(picture(seed, height, width), cv2.COLOR_RGB2BGR)
    return Picture(cv2.imencode(".png", bgr)[1].tobytes(), "image/png")


def describe(seed: int, engine: TransformersEngine, **settings: Any) -> Request:
    """Of another length, with other pictures and of another shape than its neighbours."""
    pictures = tuple(shown(seed + more, height=60 + 20 * (seed % 2)) for more in range(1 + seed % 2)) if engine.capabilities.sees else ()
    return Request("describe", f"Describe this{' very' * (3 * seed)} dog.", pictures=pictures, **{"max_tokens": 40, **settings})


def structure(seed: int, **settings: Any) -> Request:
    return Request("structure", f"A dog{' jumps and' * (2 * seed)} jumps.", **{"schema": SHORT, "max_tokens": 3500, **settings})


def together(engine: TransformersEngine, requests: Sequence[Request]) -> list[Reply | VipError]:
    async def ask() -> list[Any]:
        return await asyncio.gather(*(engine.generate(request) for request in requests), return_exceptions=True)

    answers = asyncio.run(ask())
    for answer in answers:
        if not isinstance(answer, Reply | VipError):
            raise answer
    return answers


def ask(engine: TransformersEngine, request: Request) -> Reply:
    return asyncio.run(engine.generate(request))


def said(answer: Reply | VipError) -> tuple[Any, ...]:
    """All that an answer says, to compare it with another."""
    if isinstance(answer, Reply):
        return (answer.text, answer.tokens_in, answer.tokens_out)
    assert isinstance(answer, ReplyError), answer
    return (answer.kind, str(answer), answer.tokens_in, answer.tokens_out)


# ---------------------------------------------------------------- the same as the library's own way


def own_answer(folder: Path, request: Request, *, most: int) -> str:
    """What the library's documentation does for one question, without a batch, padding or a schema."""
    language = not request.pictures
    loader = transformers.AutoModelForCausalLM if language else transformers.AutoModelForImageTextToText
    processor = (transformers.AutoTokenizer if language else transformers.AutoProcessor).from_pretrained(folder)
    network = loader.from_pretrained(folder, dtype=torch.float32).eval()
    images = [transformers.image_utils.load_image(str(put(folder, one))) for one in request.pictures]
    content: Any = request.prompt
    if images:
        content = [*({"type": "image", "image": image} for image in images), {"type": "text", "text": request.prompt}]
    inputs = processor.apply_chat_template(
        [{"role": "user", "content": content}], tokenize=True, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    inputs = {key: value for key, value in inputs.items() if key != "token_type_ids"}
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of settings for sampling, which is not done
        written = network.generate(**inputs, max_new_tokens=most, do_sample=False, repetition_penalty=1.0)
    return str(processor.decode(written[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True)).strip()


def put(folder: Path, image: Picture) -> Path:
    path = folder.parent / f"{abs(hash(image.data))}.png"
    path.write_bytes(image.data)
    return path


@pytest.mark.parametrize("kind", [*tiny_chat_models.SAVERS, "old-llama"])
def test_it_writes_what_the_librarys_own_steps_write(kind: str, model: Model) -> None:
    engine = made(model(kind))
    requests = [describe(seed, engine) for seed in range(6)]
    whole = 0
    for request, answer in zip(requests, together(engine, requests), strict=True):
        own = own_answer(model(kind), request, most=40)
        if isinstance(answer, Reply):
            assert answer.text == own
            whole += 1
        else:
            assert said(answer)[0] in {"length", "empty"}
    assert whole >= 2, "or the test would say nothing"


def test_blip_writes_the_librarys_own_caption(model: Model) -> None:
    engine = made(model("blip"))
    requests = [Request("caption", "whatever", pictures=(shown(seed),), max_tokens=30) for seed in range(6)]
    processor = transformers.AutoProcessor.from_pretrained(model("blip"))
    network = transformers.BlipForConditionalGeneration.from_pretrained(model("blip")).eval()
    texts = set()
    for seed, answer in enumerate(together(engine, requests)):
        with torch.no_grad():
            written = network.generate(**processor(images=picture(seed), return_tensors="pt"), max_new_tokens=30)
        own = processor.decode(written[0], skip_special_tokens=True)
        if isinstance(answer, Reply):
            assert answer.text == own
            texts.add(own)
        else:
            assert said(answer)[0] == ("empty" if len(written[0]) < 30 else "length")
    assert texts


@pytest.mark.parametrize("kind", [*tiny_chat_models.SAVERS, "old-llama", "blip", "blip-2"])
def test_an_answer_does_not_depend_on_what_else_is_asked_at_the_same_time(kind: str, model: Model) -> None:
    engine = made(model(kind))
    if kind.startswith("blip"):
        requests = [Request("caption", "", pictures=(shown(seed),), max_tokens=10 + seed) for seed in range(6)]
    else:
        requests = [describe(seed, engine, max_tokens=10 + 5 * seed) for seed in range(6)] + [structure(seed) for seed in range(2)]
    requests = requests[::2] + requests[1::2]  # with and without pictures, in turns
    alone = [said(together(engine, [request])[0]) for request in requests]
    assert [said(answer) for answer in together(engine, requests)] == alone
    assert len(set(alone)) > 2


def test_questions_share_batches_of_no_more_than_the_engine_says(model: Model) -> None:
    engine = made(model("llama"))
    sizes = []
    engine._model.model.get_input_embeddings().register_forward_hook(lambda _, given, __: sizes.append(tuple(given[0].shape)))
    answers = together(engine, [describe(seed, engine) for seed in range(9)])
    assert len(answers) == 9
    assert [rows for rows, length in sizes if length > 1] == [4, 4, 1] == [engine.capabilities.max_in_flight] * 2 + [1]


def test_tokens_are_counted_without_padding(model: Model) -> None:
    engine = made(model("llama"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(model("llama"))
    requests = [describe(seed, engine) for seed in (5, 0, 2)]
    for request, answer in zip(requests, together(engine, requests), strict=True):
        chat = [{"role": "user", "content": request.prompt}]
        assert said(answer)[-2] == len(tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)["input_ids"])
        if isinstance(answer, Reply) and "\N{REPLACEMENT CHARACTER}" not in answer.text:
            assert answer.tokens_out == len(tokenizer.encode(answer.text, add_special_tokens=False)) + 1


# ---------------------------------------------------------------- answers that fit a schema


@kinds
def test_a_random_model_fits_famous_in_every_answer(kind: str, model: Model) -> None:
    engine = made(model(kind))
    requests = [structure(seed, schema=FAMOUS) for seed in range(8)]
    answers = together(engine, requests)
    for answer in answers:
        assert isinstance(answer, Reply), answer
        found = Famous.model_validate_json(answer.text)
        assert list(json.loads(answer.text)) == list(FAMOUS["properties"]), "in the order of the schema"
        assert all(len(text) <= 300 for text in (found.focus, found.action, found.mood, found.setting))
        assert len(found.objects) <= 40
    assert len({said(answer) for answer in answers}) > 5


def test_a_tokenizer_whose_letters_fall_apart_into_bytes_fits_a_schema(model: Model) -> None:
    """That of Vicuna and LLaVA 1.5; without a token for padding."""
    engine = made(model("old-llama"))
    for answer in together(engine, [structure(seed) for seed in range(8)]):
        assert isinstance(answer, Reply), answer
        Famous.model_validate_json(answer.text)
        assert json.loads(answer.text).keys() == FAMOUS["properties"].keys()


@seeing
def test_a_schema_is_kept_to_with_pictures_too(kind: str, model: Model) -> None:
    engine = made(model(kind))
    for answer in together(engine, [describe(seed, engine, schema=SHORT, max_tokens=3500) for seed in range(4)]):
        assert isinstance(answer, Reply), answer
        Famous.model_validate_json(answer.text)


def test_other_schemas_and_free_text_are_asked_at_the_same_time(model: Model) -> None:
    engine = made(model("llama"))
    records = list(OUTPUTS.values())
    schemas = [record.model_json_schema() for record in records]
    for schema in schemas:
        for field in schema["properties"].values():
            if field["type"] == "array":
                field["maxItems"] = 3
        for part in schema.get("$defs", {}).values():
            if "count" in part.get("properties", {}):
                part["properties"]["count"] |= {"minimum": 0, "maximum": 99}  # random weights write numbers of any length
    requests = [Request("structure", "A dog.", schema=schema, max_tokens=4000) for schema in schemas]
    *answers, free = together(engine, [*requests, describe(1, engine)])
    assert said(free) == said(together(engine, [describe(1, engine)])[0])
    for record, answer in zip(records, answers, strict=True):
        assert isinstance(answer, Reply), answer
        record.model_validate_json(answer.text)


def test_json_that_is_not_whole_after_the_last_token_is_cut_off(model: Model) -> None:
    engine = made(model("llama"))
    short, whole = together(engine, [structure(3, max_tokens=25), structure(3)])
    assert isinstance(short, ReplyError)
    assert (short.kind, short.tokens_out, short.exit_code) == ("length", 25, 6)
    assert isinstance(whole, Reply)


def test_a_model_in_half_precision_fits_a_schema(model: Model) -> None:
    engine = made(model("llava"), precision="bf16")
    assert engine.capabilities.parameters["precision"] == "bf16"
    assert "bf16" in engine.device
    Famous.model_validate_json(ask(engine, describe(1, engine, schema=SHORT, max_tokens=3500)).text)


def test_a_schema_that_nobody_can_keep_to_is_refused(model: Model) -> None:
    engine = made(model("llama"))
    impossible = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Nowhere"}}, "required": ["a"]}
    bad, good = together(engine, [Request("structure", "A dog.", schema=impossible), structure(1)])
    assert isinstance(bad, BackendError)
    assert "cannot be held to its schema" in str(bad)
    assert isinstance(good, Reply)


def test_everything_in_a_schema_gets_an_end_and_what_has_one_keeps_it() -> None:
    text, many = {"type": "string"}, {"type": "array"}
    schema = {
        "properties": {
            "dense_caption": text,
            "short": {**text, "maxLength": 5},
            "kind": {**text, "enum": ["a" * 500]},
            "maybe": {"anyOf": [text, {"type": "null"}, True]},
            "names": {**many, "items": text},
            "few": {**many, "items": {"$ref": "#/$defs/One"}, "maxItems": 2},
            "number": {"type": "integer", "minimum": 1},
        },
        "$defs": {"One": {"type": "object", "properties": {"what": text}}},
    }
    before = json.dumps(schema)
    found = bound_schema(schema)
    fields = found["properties"]
    assert json.dumps(schema) == before, "the caller's own stays as it is"
    assert (fields["dense_caption"]["maxLength"], fields["dense_caption"]["minLength"]) == (1500, 1)
    assert fields["short"]["maxLength"] == 5
    assert "maxLength" not in fields["kind"]
    assert [part.get("maxLength") for part in fields["maybe"]["anyOf"][:2]] == [300, None]
    assert (fields["names"]["maxItems"], fields["names"]["items"]["maxLength"]) == (40, 60)
    assert fields["few"] == schema["properties"]["few"]
    assert (fields["number"]["minimum"], fields["number"]["maximum"]) == (1, 10**9)
    assert found["$defs"]["One"]["properties"]["what"]["maxLength"] == 300
    assert found["additionalProperties"] is found["$defs"]["One"]["additionalProperties"] is False


# ---------------------------------------------------------------- callers


def test_the_event_loop_goes_on_while_a_model_writes(model: Model) -> None:
    engine = made(model("llama"))

    async def count() -> int:
        asked = asyncio.create_task(engine.generate(structure(2)))
        turns = 0
        while not asked.done():
            turns += 1
            await asyncio.sleep(0)
        await asked
        return turns

    assert asyncio.run(count()) > 10


def test_what_nobody_waits_for_is_not_written_to_its_end(model: Model) -> None:
    engine = made(model("llama"))
    steps, begun = [], threading.Event()

    def stepped(*_: object) -> None:
        steps.append(1)
        begun.set()

    hook = engine._model.model.get_input_embeddings().register_forward_hook(stepped)

    async def give_up() -> None:
        asked = [asyncio.create_task(engine.generate(structure(seed, schema=FAMOUS))) for seed in range(6)]
        await asyncio.to_thread(begun.wait)
        for one in asked:
            one.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    asyncio.run(give_up())
    for thread in threading.enumerate():
        if thread.name == "transformers engine":
            thread.join()
    assert len(steps) < 100, "an answer has more than 100, and a second batch was waiting"
    hook.remove()
    assert isinstance(together(engine, [structure(0)])[0], Reply)


def test_a_request_that_is_no_good_does_not_cost_its_neighbours_theirs(model: Model) -> None:
    engine = made(model("llava"))
    good = describe(3, engine)
    broken = dataclasses.replace(good, pictures=(Picture(good.pictures[0].data[:50], "image/png"),))
    long = dataclasses.replace(good, prompt="dog " * 4200)
    first, second, third = together(engine, [broken, good, long])
    assert isinstance(first, ReplyError)
    assert first.kind == "picture"
    assert isinstance(third, ReplyError)
    assert third.kind == "too_large"
    assert "takes 4096 with its answer" in str(third)
    assert said(second) == said(together(engine, [good])[0])


def test_the_answer_to_a_long_question_ends_with_the_models_context(model: Model) -> None:
    engine = made(model("llama"))
    tokenizer = engine._model.tokenizer
    words = (tiny_chat_models.LONGEST - 60) // len(tokenizer.encode(" dog"))
    answer = together(engine, [structure(0), Request("structure", " dog" * words, schema=FAMOUS)])[1]
    assert isinstance(answer, ReplyError)
    assert answer.kind == "length"
    assert answer.tokens_in is not None
    assert answer.tokens_out is not None
    assert answer.tokens_in + answer.tokens_out == tiny_chat_models.LONGEST


def test_memory_that_does_not_suffice_for_a_batch_may_suffice_for_half_of_it(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = made(model("llama"))
    requests = [describe(seed, engine) for seed in range(4)]
    wanted = [said(answer) for answer in together(engine, requests)]
    real, sizes = engine._model.model.generate, []

    def generate(most: int) -> Callable[..., Any]:
        def short_of_memory(**inputs: Any) -> Any:
            sizes.append(len(inputs["input_ids"]))
            if sizes[-1] > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
            return real(**inputs)

        return short_of_memory

    monkeypatch.setattr(engine._model.model, "generate", generate(1))
    assert [said(answer) for answer in together(engine, requests)] == wanted
    assert sizes == [4, 2, 1, 1, 1, 1]
    monkeypatch.setattr(engine._model.model, "generate", generate(0))
    (answer,) = together(engine, requests[:1])
    assert isinstance(answer, EngineError)
    assert "does not fit into the memory" in str(answer)


def test_what_the_library_does_not_take_is_told_in_a_sentence(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = made(model("llava"))
    monkeypatch.setattr(engine._model._processor, "patch_size", 16)  # fewer tokens a picture than the model has
    (answer,) = together(engine, [describe(0, engine)])
    assert isinstance(answer, EngineError)
    assert "failed (" in str(answer)


# ---------------------------------------------------------------- how a model is asked


def given(engine: TransformersEngine, prompt: str, *, as_json: bool = False, pictures: int = 0) -> str:
    """The text that a model gets."""
    from PIL import Image as Pillow

    images = tuple(Pillow.fromarray(picture(seed)) for seed in range(pictures))
    row = engine._model.prepare_inputs([ChatQuestion(prompt, images, as_json)])["input_ids"][0]
    return str(engine._model.tokenizer.decode(row))


@kinds
def test_marks_in_a_prompt_are_words_and_not_marks(kind: str, model: Model) -> None:
    engine = made(model(kind))
    nasty = "He holds a <image> sign</s><|im_end|><|vision_start|> and a {brace}."
    broken = "He holds a < image> sign< /s>< |im_end|>< |vision_start|> and a {brace}."
    assert broken in given(engine, nasty)
    (answer,) = together(engine, [dataclasses.replace(describe(1, engine), prompt=nasty)])
    assert isinstance(answer, Reply | ReplyError)


def test_vicuna_without_a_template_is_asked_as_it_was_taught(tmp_path: Path) -> None:
    engine = made(saved(tiny_chat_models.save_llama, tmp_path / "vicuna-7b-v1.5", template=None))
    text = given(engine, "What is {this}?")
    assert text.startswith("A chat between a curious user and an artificial intelligence assistant. The assistant gives")
    assert text.endswith("the user's questions. USER: What is {this}? ASSISTANT:")
    Famous.model_validate_json(ask(engine, structure(1)).text)


def test_an_old_copy_of_llava_is_asked_as_it_was_taught(tmp_path: Path, model: Model) -> None:
    """It has no template, and does not say of how many tokens a picture is."""
    unsaid = {"patch_size": None, "vision_feature_select_strategy": None, "num_additional_image_tokens": 0}
    engine = made(saved(tiny_chat_models.save_llava, tmp_path, template=None, **unsaid))
    text = given(engine, "What is this?", pictures=2)
    assert text == f"USER: {'<image>' * 16}\n{'<image>' * 16}\nWhat is this? ASSISTANT:"
    assert given(engine, "What is this?") == "USER: What is this? ASSISTANT:"
    Famous.model_validate_json(ask(engine, describe(1, engine, schema=SHORT, max_tokens=3500)).text)


def test_a_template_of_the_tokenizer_alone_serves_for_pictures(tmp_path: Path, model: Model) -> None:
    folder = saved(tiny_chat_models.save_llava, tmp_path, template=None)
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    tokenizer = tiny_chat_models.tokenizer("{% for m in messages %}[{{ m.content }}]{% endfor %}{{ enable_thinking }}")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": tokenizer.chat_template}))
    assert given(made(folder), "What?", pictures=1) == f"[{'<image>' * 16}\nWhat?]False"


def test_thoughts_are_closed_before_json_and_left_out_of_a_text(tmp_path: Path) -> None:
    engine = made(
        saved(tiny_chat_models.save_llama, tmp_path, template=tiny_chat_models.PARTS.replace("assistant: ", "assistant: <think>\n"))
    )
    assert given(engine, "What?").endswith("<think>\n")
    assert given(engine, "What?", as_json=True).endswith("<think>\n\n</think>\n\n")
    tokenizer = engine._model.tokenizer

    def read(text: str, *, as_json: bool = False) -> str:
        return engine._model.decode_answer(tokenizer.encode(text), as_json=as_json)

    assert {read(text) for text in ("a dog</s>", "<think>hm</think>\n a dog", "hm</think>a dog")} == {"a dog"}
    assert read("<think> hm, a dog") == ""
    assert read('{"focus": "</think>"}</s>', as_json=True) == '{"focus": "</think>"}'
    tokenizer.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
    assert read("<think>hm</think> a dog</s>") == "a dog"


def test_on_a_gpu_a_model_keeps_the_precision_it_was_saved_in() -> None:
    gpu = Hardware("cuda:1", "fp16")
    for saved_in, wanted in (("bfloat16", "bf16"), ("float16", "fp16"), ("float32", "fp16")):
        assert chat.default_hardware(gpu, transformers.LlamaConfig(dtype=saved_in)) == Hardware("cuda:1", wanted)
        of_words = transformers.LlavaConfig(text_config=transformers.LlamaConfig(dtype=saved_in))
        assert of_words.dtype is None, "only the part that writes says it"
        assert chat.default_hardware(gpu, of_words) == Hardware("cuda:1", wanted)
    assert chat.default_hardware(Hardware("cpu", "fp32"), transformers.LlamaConfig(dtype="bfloat16")) == Hardware("cpu", "fp32")


def test_it_says_what_its_answers_depend_on(tmp_path: Path, model: Model) -> None:
    engine = registry.engine(f"transformers:{model('llama')}", device="cpu", precision="fp32")
    assert engine is registry.engine(f"transformers:{model('llama')}", device="cpu", precision="fp32"), "loaded once a process"
    assert isinstance(engine, TransformersEngine)
    assert engine.name == f"transformers:{model('llama')}"
    assert (engine.capabilities.sees, made(model("llava")).capabilities.sees) == (False, True)
    assert engine.capabilities.max_in_flight == 4
    first = made(saved(tiny_chat_models.save_llama, tmp_path)).capabilities.parameters
    assert first == made(tmp_path).capabilities.parameters
    assert first == {"decoding": "greedy", "precision": "fp32", "weights": first["weights"]}
    saved(tiny_chat_models.save_llama, tmp_path)
    assert made(tmp_path).capabilities.parameters != first, "the weights were written anew"


# ---------------------------------------------------------------- what is refused


def refused(*, match: str) -> Any:
    return pytest.raises(BackendError, match=match)


def test_a_language_model_looks_at_no_picture(model: Model) -> None:
    with refused(match="reads text and cannot look at a picture"):
        ask(made(model("llama")), Request("describe", "What?", pictures=(shown(1),)))


@pytest.mark.parametrize(
    "settings",
    [{"schema": FAMOUS}, {"stage": "structure"}, {"stage": "topic"}, {"pictures": ()}, {"pictures": (shown(1), shown(2))}],
)
def test_blip_is_asked_for_captions_only(settings: dict[str, Any], model: Model) -> None:
    request = dataclasses.replace(Request("caption", "What?", pictures=(shown(1),)), **settings)
    with refused(match=r"captions only.*--recipe paper --structure-engine"):
        ask(made(model("blip")), request)


def test_a_model_without_a_chat_template_is_refused(tmp_path: Path) -> None:
    with refused(match="has no chat template"):
        made(saved(tiny_chat_models.save_llama, tmp_path / "base", template=None))


def test_a_template_that_does_not_work_is_refused_at_once(tmp_path: Path) -> None:
    with refused(match=r"The chat template of .* does not work \(no roles here\)"):
        made(saved(tiny_chat_models.save_llama, tmp_path, template="{{ raise_exception('no roles here') }}"))


def test_an_embedding_model_and_a_detector_write_no_text(model: Model, tmp_path: Path) -> None:
    with refused(match=r"is a bert model \(BertModel\), which does not write text"):
        made(model("bert"))
    with refused(match=r"is a yolos model .*does not write text.*that of --engine transformers\."):
        made(saved(tiny_models.save_yolos, tmp_path))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("./no/such/folder", "There is no folder"),
        ("someone/no-such-model", r"not in the local cache.*this is a test.*--engine transformers:FOLDER"),
        ("no-such-detail", "not in the local cache"),
    ],
)
def test_a_model_that_is_not_there_is_refused(name: str, said: str) -> None:
    with refused(match=said) as caught:
        registry.engine(f"transformers:{name}")
    assert caught.value.exit_code == 4
    assert "--detector" not in str(caught.value)


def test_a_model_whose_weights_are_not_in_the_cache_is_refused(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path.name: path.read_bytes() for path in model("llama").iterdir() if path.suffix in {".json", ".jinja"}}
    put_into_cache(tmp_path, "someone/half", files)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with refused(match="The model someone/half cannot be loaded"):
        TransformersEngine("someone/half", device="cpu")


def test_a_folder_without_a_model_and_weights_of_another_are_refused(model: Model, tmp_path: Path) -> None:
    with refused(match=r"has no config\.json"):
        made(tmp_path)
    folder = saved(tiny_chat_models.save_llama, tmp_path / "other")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 3}))
    with refused(match="The weights of .* are not those of a llama model"):
        made(folder)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("llguidance", "torch", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with refused(match=r"pip install 'vip-keyframes\[transformers\]'"):
                TransformersEngine("a/b")


def test_it_needs_a_model_and_a_device_that_is_there(model: Model) -> None:
    with refused(match=f"The model {vision_model().model} is not in the local cache"):
        registry.engine("transformers")
    with refused(match="There is no device"):
        made(model("llama"), device="tpu")
    with refused(match="fp16 is for GPUs"):
        made(model("llama"), precision="fp16")


def test_a_closed_engine_answers_again_for_the_next_video(model: Model) -> None:
    engine = made(model("llama"))
    asyncio.run(engine.close())
    assert isinstance(together(engine, [structure(0)])[0], Reply)
