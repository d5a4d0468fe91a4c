"""The detectors `transformers:MODEL`: models of the library transformers, from a folder or from the hub.

What a model's own configuration says it is decides how it is used: detectors of a fixed list of classes (`fixed_vocabulary`),
of any words (`open_vocabulary`), and Florence-2, which writes down what it sees (`florence`).
"""

from __future__ import annotations

from typing import Any

from vip.errors import BackendError
from vip.models import hub
from vip.models.hardware import Hardware, choose_hardware
from vip.models.labels import refuse_labels
from vip.protocols import Detector
from vip.wording import option


def transformers_detector(
    detail: str | None, labels: tuple[str, ...] | None = None, device: str = "auto", precision: str = "auto"
) -> Detector:
    """Return the detector for a model.

    Args:
        detail: a folder with config.json, or the model's name on the hub.
        labels: the words to look for, for models that look for any.

    Raises:
        BackendError: the model, a package, or the device is not there, or it is no detector.
        UsageError: labels for a model that knows what it looks for.
    """
    if detail is None:
        raise BackendError(f"The detector transformers needs a model: {option('detector', 'transformers:PekingU/rtdetr_r50vd')}.")
    _refuse_missing_packages()
    hub.silence_hub_client()
    hardware = _choose_hardware(device, precision)

    from vip.models.transformers.fixed_vocabulary import load_fixed_vocabulary_detector
    from vip.models.transformers.florence import load_florence_detector
    from vip.models.transformers.model_files import ModelFiles
    from vip.models.transformers.open_vocabulary import DINO_TYPES, OWL_TYPES, load_open_vocabulary_detector

    files = ModelFiles.find(detail)
    model_type = files.load(_read_model_type)
    if model_type in {*OWL_TYPES, *DINO_TYPES}:
        return load_open_vocabulary_detector(files, hardware, model_type, labels)
    refuse_labels(f"transformers:{detail}", labels)
    if model_type == "florence2":
        return load_florence_detector(files, hardware)
    if model_type in _object_detection_types():
        return load_fixed_vocabulary_detector(files, hardware)
    known = ", ".join(sorted({*OWL_TYPES, *DINO_TYPES, *_object_detection_types(), "florence2"}))
    raise BackendError(f"{detail} is a {model_type} model, which is no detector that vip reads. It reads: {known}.")


def _refuse_missing_packages() -> None:
    try:
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as exc:
        raise BackendError(f"The detector transformers is not installed ({exc}). Run `pip install 'vip-keyframes[transformers]'`.") from exc


def _choose_hardware(device: str, precision: str) -> Hardware:
    """Return the device and the precision: on the CPU fp32 unless another precision is asked for.

    In bf16 a box would be off by some pixels, since its numbers have three digits.
    """
    hardware = choose_hardware(device, precision)
    return Hardware("cpu", "fp32") if precision == "auto" and hardware.device == "cpu" else hardware


def _read_model_type(path: str, **settings: Any) -> str:
    """Return the model type in a configuration; the weights are not read."""
    from transformers import PreTrainedConfig

    values, _ = PreTrainedConfig.get_config_dict(path, **settings)
    if not isinstance(values.get("model_type"), str):
        raise ValueError("config.json names no model_type")
    return str(values["model_type"])


def _object_detection_types() -> set[str]:
    """Return the types of models with a fixed list of classes; those of PaddlePaddle are left out: they find lines and columns of print."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES

    return {str(name) for name in MODEL_FOR_OBJECT_DETECTION_MAPPING_NAMES if not str(name).startswith("pp_")}
