"""Chat models of the library transformers, loaded and prompted: vision-language models, language models, BLIP.

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
from vip.models.transformers.model_files import ModelFiles, silence_transformers
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

PromptTemplate = Callable[[str, int], str]
"""The text that a model gets for a prompt and a number of pictures."""


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A request, its pictures decoded."""

    prompt: str
    pictures: tuple[PIL.Image.Image, ...]
    as_json: bool


class ChatModel:
    """A loaded model that is asked through a chat template; it is still on the CPU."""

    def __init__(
        self, files: ModelFiles, config: Any, model: Any, processor: Any, template: PromptTemplate, *, adds_special: bool | None
    ) -> None:
        """Prepare tokenizer and model. `adds_special`: the tokenizer adds its own tokens; None: unless the template begins with them."""
        self.name, self.model, self.hardware = files.name, model, Hardware("cpu", "fp32")
        self.tokenizer = getattr(processor, "tokenizer", processor)
        self.takes_pictures = processor is not self.tokenizer
        self.context: int | None = getattr(config.get_text_config(), "max_position_embeddings", None)
        self.vocabulary = int(config.get_text_config().vocab_size)
        self.fingerprint = _weights_fingerprint(files, config)
        self._processor, self._template, self._adds_special = processor, template, adds_special
        self._input_names = _input_names(model)
        self._special_text = _special_text_pattern(self.tokenizer, processor)
        self.end_tokens = self._configure_generation()

    def check_request(self, request: Request) -> None:
        """Refuse a request that the model is not made for.

        Raises:
            BackendError: pictures for a model that reads only text.
        """
        if request.pictures and not self.takes_pictures:
            raise BackendError(
                f"{self.name} reads text and cannot look at a picture. Choose a vision-language model, such as that of"
                f" {option('engine', 'transformers')}."
            )

    def prepare_inputs(self, questions: Sequence[ChatQuestion]) -> dict[str, Any]:
        """Return tensors for questions of which all or none have pictures; shorter ones are padded on the left."""
        texts = [self._render_prompt(question) for question in questions]
        start = self.tokenizer.bos_token
        adds = self._adds_special if self._adds_special is not None else not (start and texts[0].startswith(start))
        settings: dict[str, Any] = {"padding": True, "return_tensors": "pt", "add_special_tokens": adds}
        if questions[0].pictures:
            settings["images"] = [list(question.pictures) for question in questions]
        inputs = self._processor(text=texts, **settings)
        return {key: value for key, value in inputs.items() if key in self._input_names}

    def token_counts(self, inputs: Mapping[str, Any]) -> list[int]:
        """Return the tokens of each question, without padding."""
        return [int(count) for count in inputs["attention_mask"].sum(dim=1)]

    def decode_answer(self, tokens: Sequence[int], *, as_json: bool) -> str:
        """Return the text of an answer, without special tokens. A thought before free text is left out; a thought alone is no answer."""
        thought = self.tokenizer.get_vocab().get("</think>")
        if not as_json and thought in tokens:  # as a mark it would not be in the text
            tokens = tokens[tokens.index(thought) + 1 :]
        text = str(self.tokenizer.decode(list(tokens), skip_special_tokens=True, clean_up_tokenization_spaces=False)).strip()
        if as_json:
            return text
        text = _THINKING.sub("", text).strip()
        return "" if text.startswith("<think>") else text

    def _render_prompt(self, question: ChatQuestion) -> str:
        text = self._template(self._special_text.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", question.prompt), len(question.pictures))
        if question.as_json and text.rstrip().endswith("<think>"):  # what follows is JSON from the first letter on
            return f"{text.rstrip()}\n\n</think>\n\n"
        return text

    def _configure_generation(self) -> list[int]:
        """Make the model decode greedily, and return the tokens that end an answer."""
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

    def check_request(self, request: Request) -> None:
        """Refuse everything but a caption of one picture.

        Raises:
            BackendError: something else is asked for.
        """
        if request.schema is not None or request.stage not in CAPTIONS or len(request.pictures) != 1:
            raise BackendError(
                f"{self.name} writes captions only, of one picture at a time. Let another model give the structure:"
                f" {option('recipe', 'paper')} {option('structure_engine', 'transformers:MODEL')}."
            )

    def prepare_inputs(self, questions: Sequence[ChatQuestion]) -> dict[str, Any]:
        pictures = [question.pictures[0] for question in questions]
        return dict(self._processor.image_processor(pictures, return_tensors="pt"))

    def token_counts(self, inputs: Mapping[str, Any]) -> list[int]:
        """Return the token that a caption starts with, and those of the query, for each picture."""
        return [1 + int(getattr(self.model.config, "num_query_tokens", 0))] * len(inputs["pixel_values"])

    def _configure_generation(self) -> list[int]:
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
    return _build(ModelFiles.find(name, "engine"), hardware, precision_given=precision != "auto")


def _build(files: ModelFiles, hardware: Hardware, *, precision_given: bool) -> ChatModel:
    import transformers

    config: Any = files.load(transformers.AutoConfig.from_pretrained)
    kind, sees = str(config.model_type), _takes_pictures(files.name, config)
    if not precision_given:
        hardware = default_hardware(hardware, config)
    model_class: type[ChatModel] = CaptionModel if kind in CAPTIONERS else ChatModel
    adds_special: bool | None = None
    if sees:
        processor: Any = files.load(transformers.AutoProcessor.from_pretrained)
        if not (hasattr(processor, "tokenizer") and hasattr(processor, "image_processor")):
            raise BackendError(f"{files.name} has no processor that prepares pictures. Copy the whole model again, or choose another.")
        _complete_llava(processor, config)
        template = _vision_template(files.name, processor, config) if model_class is ChatModel else _no_template
        loader: Any = transformers.AutoModelForImageTextToText
    else:
        processor = files.load(transformers.AutoTokenizer.from_pretrained)
        template, adds_special = _language_template(files.name, processor, config)
        loader = transformers.AutoModelForCausalLM
    model = files.load_model(loader.from_pretrained, hardware.dtype)
    chat_model = model_class(files, config, model, processor, template, adds_special=adds_special)
    chat_model.hardware = hardware
    return chat_model


def default_hardware(hardware: Hardware, config: Any) -> Hardware:
    """Return, on CUDA, the precision of the checkpoint if that has 16 bits: models trained in bf16 overflow in fp16."""
    own = str(getattr(config, "dtype", None) or getattr(config.get_text_config(), "dtype", None)).removeprefix("torch.")
    short = {"bfloat16": "bf16", "float16": "fp16"}.get(own)
    return Hardware(hardware.device, short) if short and hardware.device.startswith("cuda") else hardware


def _takes_pictures(name: str, config: Any) -> bool:
    """Return whether the model takes pictures; refuse a model that does not write text."""
    from transformers.models.auto import modeling_auto as tables

    kind, built = str(config.model_type), set(config.architectures or ())
    vision, language = (
        _as_set(table.get(kind)) for table in (tables.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
    )
    if (vision or language) and (not built or built & (vision | language)):
        return bool(vision) and (not built or bool(built & vision))
    what = next(iter(built), None)
    raise BackendError(
        f"{name} is a {kind} model{f' ({what})' if what else ''}, which does not write text. Choose a vision-language or a language model,"
        f" such as that of {option('engine', 'transformers')}."
    )


def _as_set(names: Any) -> set[str]:
    """Return the names in a row of the library's tables as a set: one, several or none."""
    return set(names) if isinstance(names, list | tuple) else {names} - {None}


def _complete_llava(processor: Any, config: Any) -> None:
    """Set the tokens of a picture, which old copies of LLaVA's processor lack, from the model's configuration."""
    if config.model_type == "llava" and getattr(processor, "patch_size", 0) is None:
        processor.patch_size = config.vision_config.patch_size
        processor.vision_feature_select_strategy = config.vision_feature_select_strategy
        processor.num_additional_image_tokens = CLIP_EXTRA_TOKENS


def _no_template(prompt: str, pictures: int) -> str:
    raise AssertionError("a captioner gets no text")


def _vision_template(name: str, processor: Any, config: Any) -> PromptTemplate:
    tokenizer, mark = processor.tokenizer, str(getattr(processor, "image_token", "<image>"))
    if processor.chat_template:

        def render_parts(prompt: str, pictures: int) -> str:
            content = [*({"type": "image"} for _ in range(pictures)), {"type": "text", "text": prompt}]
            return _render(processor, content)

        return _check_template(name, render_parts)
    marked = f"{mark}\n"
    if tokenizer.chat_template:
        return _check_template(name, lambda prompt, pictures: _render(tokenizer, marked * pictures + prompt))
    if config.model_type == "llava":
        return lambda prompt, pictures: LLAVA.format(pictures=marked * pictures, prompt=prompt)
    raise _missing_template_error(name)


def _language_template(name: str, tokenizer: Any, config: Any) -> tuple[PromptTemplate, bool]:
    """Return the template, and whether the tokenizer has to add its own tokens to it."""
    if tokenizer.chat_template:
        return _check_template(name, lambda prompt, _: _render(tokenizer, prompt)), False
    if "vicuna" in f"{name} {getattr(config, '_name_or_path', '')}".lower():
        return lambda prompt, _: VICUNA.format(prompt=prompt), True
    raise _missing_template_error(name)


def _render(by: Any, content: Any) -> str:
    """Return the template's text for one question, with thinking disabled if the template can do that."""
    settings = {"enable_thinking": False} if "enable_thinking" in str(by.chat_template) else {}
    with silence_transformers():
        return str(by.apply_chat_template([{"role": "user", "content": content}], tokenize=False, add_generation_prompt=True, **settings))


def _check_template(name: str, template: PromptTemplate) -> PromptTemplate:
    """Return the template; refuse one that fails."""
    try:
        template("?", 0)
    except Exception as exc:  # a template is a program of its own
        raise BackendError(f"The chat template of {name} does not work ({hub.first_line(exc)}). Choose another model.") from exc
    return template


def _missing_template_error(name: str) -> BackendError:
    return BackendError(
        f"{name} has no chat template, as models have that learnt to answer. Choose one made for chat, often named -Instruct or -it."
    )


def _input_names(model: Any) -> set[str]:
    """Return names of the tensors that generate() takes; the library refuses others."""
    import inspect

    return {name for function in (model.forward, model.prepare_inputs_for_generation) for name in inspect.signature(function).parameters}


def _special_text_pattern(tokenizer: Any, processor: Any) -> re.Pattern[str]:
    """Return a pattern of the texts of special tokens, such as the end of a turn: a prompt must not contain one."""
    template = str(getattr(processor, "chat_template", None) or tokenizer.chat_template or "")
    added = tokenizer.added_tokens_decoder.values()
    marks = {str(one.content) for one in added if one.special or (one.content in template and not one.content.isspace())}
    marks.add(str(getattr(processor, "image_token", "<image>")))
    return re.compile("|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True) if len(mark) > 1))


def _weights_fingerprint(files: ModelFiles, config: Any) -> str:
    """Return a fingerprint of the weights: the commit on the hub, or a digest of sizes and times of the files."""
    import hashlib

    if files.folder is None:
        return str(getattr(config, "_commit_hash", None) or "unknown")
    states = [(path.name, path.stat()) for path in sorted(files.folder.iterdir()) if path.is_file()]
    text = "\n".join(f"{name} {state.st_size} {state.st_mtime_ns}" for name, state in states)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
