"""How the models of the library transformers that write are read and asked: vision-language models, language models, BLIP.

In: a folder or a name on the hub, then questions. Out: the loaded model, and the tensors it takes. A model is asked through the chat
template that comes with it. Without one are known: Vicuna, by its name, and LLaVA 1.5. BLIP and BLIP-2 are asked for nothing but a
caption. Any other model without a template has not learnt to answer, and is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vip.errors import BackendError
from vip.models import hub
from vip.models.hardware import Hardware, choose_hardware
from vip.models.transformers.model_files import ModelFiles, quiet
from vip.protocols import Request
from vip.wording import option

if TYPE_CHECKING:
    import PIL.Image

VICUNA = (
    "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, detailed, and polite answers"
    " to the user's questions. USER: {prompt} ASSISTANT:"
)
LLAVA = "USER: {pictures}{prompt} ASSISTANT:"
CAPTIONERS = frozenset({"blip", "blip-2"})
CAPTIONS = frozenset({"caption", "describe"})  # the questions that a caption answers
CLIP_EXTRA_TOKENS = 1  # the class token of LLaVA's vision tower

_THINKING = re.compile(r"\A.*?</think>", re.DOTALL)  # some templates begin the thought, so that the model only ends it

Form = Callable[[str, int], str]
"""The text that a model gets for a prompt and a number of pictures."""


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A request, its pictures decoded."""

    prompt: str
    pictures: tuple[PIL.Image.Image, ...]
    as_json: bool


class ChatModel:
    """A loaded model that is asked through a chat template; it is still on the CPU."""

    def __init__(self, files: ModelFiles, config: Any, model: Any, processor: Any, form: Form, *, adds_special: bool | None) -> None:
        """`adds_special`: whether the tokenizer puts its own tokens around the form; None where the form may begin with them itself."""
        self.name, self.model, self.hardware = files.name, model, Hardware("cpu", "fp32")
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.sees = processor is not self.tokenizer
        self.context: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
        self.vocabulary = int(config.get_text_config().vocab_size)
        self.state = _state(files, config)
        self._processor, self._form, self._adds_special = processor, form, adds_special
        self._takes = _inputs_of(model)
        self._marks = _marks(self.tokenizer, processor)
        self.ends = self._set_up()

    def refuse(self, request: Request) -> None:
        """Refuse what the model is not made for.

        Raises:
            BackendError: pictures for a model that reads only text.
        """
        if request.pictures and not self.sees:
            raise BackendError(
                f"{self.name} reads text and cannot look at a picture. Choose a vision-language model, such as that of"
                f" {option('engine', 'transformers')}."
            )

    def inputs(self, questions: Sequence[ChatQuestion]) -> dict[str, Any]:
        """Return tensors for questions of which all or none have pictures; shorter ones are padded on the left."""
        texts = [self._text(question) for question in questions]
        start = self.tokenizer.bos_token
        adds = self._adds_special if self._adds_special is not None else not (start and texts[0].startswith(start))
        settings: dict[str, Any] = {"padding": True, "return_tensors": "pt", "add_special_tokens": adds}
        if questions[0].pictures:
            settings["images"] = [list(question.pictures) for question in questions]
        given = self._processor(text=texts, **settings)
        return {key: value for key, value in given.items() if key in self._takes}

    def lengths(self, inputs: Mapping[str, Any]) -> list[int]:
        """Return the tokens of each question, without padding."""
        return [int(count) for count in inputs["attention_mask"].sum(dim=1)]

    def read(self, tokens: Sequence[int], *, as_json: bool) -> str:
        """Return the text of an answer, without the model's marks. Of free text a thought before it is left out; one alone is no answer."""
        thought = self.tokenizer.get_vocab().get("</think>")
        if not as_json and thought in tokens:  # as a mark it would not be in the text
            tokens = tokens[tokens.index(thought) + 1 :]
        text = str(self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)).strip()
        if as_json:
            return text
        text = _THINKING.sub("", text).strip()
        return "" if text.startswith("<think>") else text

    def _text(self, question: ChatQuestion) -> str:
        text = self._form(self._marks.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", question.prompt), len(question.pictures))
        if question.as_json and text.rstrip().endswith("<think>"):  # what follows is JSON from the first letter on
            return f"{text.rstrip()}\n\n</think>\n\n"
        return text

    def _set_up(self) -> list[int]:
        """Make the model decode greedily and nothing else; the tokens that end an answer."""
        import transformers

        settings: Any = transformers.GenerationConfig
        old, tokenizer = self.model.generation_config, self.tokenizer
        tokenizer.padding_side = "left"
        listed = old.eos_token_id if isinstance(old.eos_token_id, list) else [old.eos_token_id]
        ends = [end for end in dict.fromkeys([*listed, tokenizer.eos_token_id]) if end is not None]
        if not ends:
            raise BackendError(f"{self.name} names no token that ends an answer. Add eos_token_id to its generation_config.json.")
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token_id = ends[0]
        # what a repetition penalty does to a row would depend on the row's padding
        self.model.generation_config = settings(
            bos_token_id=old.bos_token_id,
            decoder_start_token_id=old.decoder_start_token_id,
            eos_token_id=ends,
            pad_token_id=tokenizer.pad_token_id,
            do_sample=False,
        )
        return ends


class CaptionModel(ChatModel):
    """BLIP and BLIP-2: a short caption of one picture, whatever the prompt says."""

    def refuse(self, request: Request) -> None:
        """Refuse everything but a caption of one picture.

        Raises:
            BackendError: something else is asked for.
        """
        if request.schema is not None or request.stage not in CAPTIONS or len(request.pictures) != 1:
            raise BackendError(
                f"{self.name} writes captions only, of one picture at a time. Let another model give the structure:"
                f" {option('recipe', 'paper')} {option('structure_engine', 'transformers:MODEL')}."
            )

    def inputs(self, questions: Sequence[ChatQuestion]) -> dict[str, Any]:
        pictures = [question.pictures[0] for question in questions]
        return dict(self._processor.image_processor(pictures, return_tensors="pt"))

    def lengths(self, inputs: Mapping[str, Any]) -> list[int]:
        """1 for each: the token that a caption starts with."""
        return [1 + int(getattr(self.model.config, "num_query_tokens", 0))] * len(inputs["pixel_values"])

    def _set_up(self) -> list[int]:
        if self.model.config.model_type == "blip":  # it passes on only this token
            return [int(self.model.config.text_config.sep_token_id)]
        end = self.model.language_model.generation_config.eos_token_id
        return [int(one) for one in (end if isinstance(end, list) else [end])]


def load_chat_model(name: str, device: str, precision: str) -> ChatModel:
    """Return the model, with all its weights, still on the CPU.

    Raises:
        BackendError: it cannot be loaded, or does not write; or the device is not there.
    """
    hardware = choose_hardware(device, precision)
    return _read(ModelFiles.find(name, "engine"), hardware, given=precision != "auto")


def _read(files: ModelFiles, hardware: Hardware, *, given: bool) -> ChatModel:
    import transformers

    config: Any = files.load(transformers.AutoConfig.from_pretrained)
    kind, sees = str(config.model_type), _sees(files.name, config)
    if not given:
        hardware = usual(hardware, config)
    maker: type[ChatModel] = CaptionModel if kind in CAPTIONERS else ChatModel
    adds_special: bool | None = None
    if sees:
        processor: Any = files.load(transformers.AutoProcessor.from_pretrained)
        if not (hasattr(processor, "tokenizer") and hasattr(processor, "image_processor")):
            raise BackendError(f"{files.name} has no processor that prepares pictures. Copy the whole model again, or choose another.")
        _complete_llava(processor, config)
        form = _vision_form(files.name, processor, config) if maker is ChatModel else _no_form
        loader: Any = transformers.AutoModelForImageTextToText
    else:
        processor = files.load(transformers.AutoTokenizer.from_pretrained)
        form, adds_special = _language_form(files.name, processor, config)
        loader = transformers.AutoModelForCausalLM
    model = files.load_model(loader.from_pretrained, hardware.dtype)
    talker = maker(files, config, model, processor, form, adds_special=adds_special)
    talker.hardware = hardware
    return talker


def usual(hardware: Hardware, config: Any) -> Hardware:
    """On CUDA the precision of the checkpoint where that is of 16 bits: models trained in bf16 overflow in fp16."""
    own = str(getattr(config, "dtype", None) or getattr(config.get_text_config(), "dtype", None)).removeprefix("torch.")
    short = {"bfloat16": "bf16", "float16": "fp16"}.get(own)
    return Hardware(hardware.device, short) if short and hardware.device.startswith("cuda") else hardware


def _sees(name: str, config: Any) -> bool:
    """Return whether it takes pictures; refuses what does not write."""
    from transformers.models.auto import modeling_auto as tables

    kind, built = str(config.model_type), set(config.architectures or ())
    vision, language = (
        _listed(table.get(kind)) for table in (tables.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    )
    if (vision or language) and (not built or built & (vision | language)):
        return bool(vision) and (not built or bool(built & vision))
    what = next(iter(built), None)
    raise BackendError(
        f"{name} is a {kind} model{f' ({what})' if what else ''}, which does not write text. Choose a vision-language or a language model,"
        f" such as that of {option('engine', 'transformers')}."
    )


def _listed(names: Any) -> set[str]:
    """Return a row of the library's tables holds one name, several, or is missing."""
    return set(names) if isinstance(names, list | tuple) else {names} - {None}


def _complete_llava(processor: Any, config: Any) -> None:
    """Old copies of LLaVA do not say of how many tokens a picture is; the model itself does."""
    if config.model_type == "llava" and getattr(processor, "patch_size", 0) is None:
        processor.patch_size = config.vision_config.patch_size
        processor.vision_feature_select_strategy = config.vision_feature_select_strategy
        processor.num_additional_image_tokens = CLIP_EXTRA_TOKENS


def _no_form(prompt: str, pictures: int) -> str:
    raise AssertionError("a captioner gets no text")


def _vision_form(name: str, processor: Any, config: Any) -> Form:
    tokenizer, mark = processor.tokenizer, str(getattr(processor, "image_token", "<image>"))
    if processor.chat_template:

        def in_parts(prompt: str, pictures: int) -> str:
            content = [*({"type": "image"} for _ in range(pictures)), {"type": "text", "text": prompt}]
            return _rendered(processor, content)

        return _tried(name, in_parts)
    marked = f"{mark}\n"
    if tokenizer.chat_template:
        return _tried(name, lambda prompt, pictures: _rendered(tokenizer, marked * pictures + prompt))
    if config.model_type == "llava":
        return lambda prompt, pictures: LLAVA.format(pictures=marked * pictures, prompt=prompt)
    raise _no_template(name)


def _language_form(name: str, tokenizer: Any, config: Any) -> tuple[Form, bool]:
    """Return the form, and whether the tokenizer has to add its own tokens to it."""
    if tokenizer.chat_template:
        return _tried(name, lambda prompt, _: _rendered(tokenizer, prompt)), False
    if "vicuna" in f"{name} {getattr(config, '_name_or_path', '')}".lower():
        return lambda prompt, _: VICUNA.format(prompt=prompt), True
    raise _no_template(name)


def _rendered(by: Any, content: Any) -> str:
    """Return the template's text for one question. Thoughts are asked to be left out, where a template knows of them."""
    settings = {"enable_thinking": False} if "enable_thinking" in str(by.chat_template) else {}
    with quiet():
        return str(by.apply_chat_template([{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, **settings))


def _tried(name: str, form: Form) -> Form:
    """Return the form, after a template that fails has been refused."""
    try:
        form("?", 0)
    except Exception as exc:  # a template is a program of its own
        raise BackendError(f"The chat template of {name} does not work ({hub.first_line(exc)}). Choose another model.") from exc
    return form


def _no_template(name: str) -> BackendError:
    return BackendError(
        f"{name} has no chat template, as models have that learnt to answer. Choose one made for chat, often named -Instruct or -it."
    )


def _inputs_of(model: Any) -> set[str]:
    """Return names of the tensors that generate() takes; the library refuses others."""
    import inspect

    return {name for made in (model.forward, model.prepare_inputs_for_generation) for name in inspect.signature(made).parameters}


def _marks(tokenizer: Any, processor: Any) -> re.Pattern[str]:
    """Return texts that are no words to the model but marks, such as of the end of a turn: a caption must not bring its own."""
    template = str(getattr(processor, "chat_template", None) or tokenizer.chat_template or "")
    added = tokenizer.added_tokens_decoder.values()
    marks = {str(one.content) for one in added if one.special or (one.content in template and not one.content.isspace())}
    marks.add(str(getattr(processor, "image_token", "<image>")))
    return re.compile("|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True) if len(mark) > 1))


def _state(files: ModelFiles, config: Any) -> str:
    """Return what tells these weights from others of the same name: the commit on the hub, or a digest of sizes and times of the files."""
    import hashlib

    if files.folder is None:
        return str(getattr(config, "_commit_hash", None) or "unknown")
    states = [(path.name, path.stat()) for path in sorted(files.folder.iterdir()) if path.is_file()]
    text = "\n".join(f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
