"""The sampler, pruner, embedder and detector that the settings name, and whether they can do together what is asked."""

from __future__ import annotations

from dataclasses import dataclass

from vip import registry
from vip.config import ExtractSettings, ModelSettings
from vip.errors import BackendError, UsageError
from vip.protocols import Detector, Embedder, Pruner, Sampler
from vip.wording import option

VIEW = "classic"  # tells one view of a scene from another, whatever the embedder
BY_RELEVANCE, BY_DEFAULT = "aks", str(ExtractSettings.model_fields["pruner"].default)


@dataclass(frozen=True, slots=True)
class Backends:
    """The sampler, pruner, embedders and detector of a run."""

    sampler: Sampler
    pruner: Pruner
    view: Embedder
    embedder: Embedder
    detector: Detector
    notes: tuple[str, ...]
    """What the user should know about their choice."""

    @property
    def names(self) -> dict[str, str]:
        """The names as the manifest has them."""
        return {
            "sampler": self.sampler.name,
            "pruner": self.pruner.name,
            "embedder": self.embedder.name,
            "detector": self.detector.name,
        }

    @property
    def device(self) -> str:
        """The devices of the models: `cpu`, `cuda in fp16`, `embedder cuda in fp16, detector cpu`."""
        embedder, detector = device_of(self.embedder), device_of(self.detector)
        return embedder if embedder == detector else f"embedder {embedder}, detector {detector}"


def load(settings: ExtractSettings) -> Backends:
    """Return all of them, loaded.

    Raises:
        BackendError: one is unknown, not installed, or lacks weights or device.
        UsageError: they cannot do together what is asked.
    """
    pruner = pruner_for(settings)
    embedder, why = embedder_for(settings)
    detector = detector_for(settings)
    _check_device(settings, embedder, detector)
    return Backends(
        registry.sampler(settings.sampler),
        pruner,
        embedder if registry.auto_embedder(settings.embedder)[0] == VIEW else registry.embedder(VIEW),
        embedder,
        detector,
        (registry.auto_note(embedder.name, why),) if why else (),
    )


def pruner_for(settings: ExtractSettings) -> Pruner:
    """Return the pruner; with `--query` the one that goes by relevance.

    Raises:
        UsageError: a query and another pruner, or none and the pruner that needs one.
    """
    if settings.query is None:
        if settings.pruner == BY_RELEVANCE:
            raise UsageError(
                f"The pruner {BY_RELEVANCE} chooses by relevance to a question. Add {option('query', 'a dog catches a frisbee')}."
            )
        return registry.pruner(settings.pruner)
    if settings.pruner not in (BY_DEFAULT, BY_RELEVANCE):
        raise UsageError(
            f"{option('query')} chooses by relevance, and {option('pruner', settings.pruner)} does not. Leave one of them out."
        )
    return registry.pruner(BY_RELEVANCE)


def embedder_for(settings: ExtractSettings) -> tuple[Embedder, str | None]:
    """Return the embedder, and why `auto` took it.

    Raises:
        BackendError: it does not put pictures and texts into one space, and `--query` needs that.
    """
    name, why = registry.auto_embedder(settings.embedder)
    embedder = registry.embedder(name, device=settings.device, precision=settings.precision)
    if settings.query is not None:
        check_joint(embedder, why)
    return embedder, why


def check_joint(embedder: Embedder, why: str | None = None) -> None:
    """Refuse a query where a picture and a text cannot be compared.

    Raises:
        BackendError: the embedder has no joint space.
    """
    if not embedder.capabilities.joint_space:
        needs = f"{option('query')} needs an embedder that puts pictures and texts into one space, and {embedder.name} does not"
        if not registry.has_clip():
            raise BackendError(f"{needs}. Write {option('embedder', 'clip')}, after pip install 'vip-keyframes[clip]'.")
        if why:
            raise BackendError(
                f"{needs}. clip is installed, but {why}. Run it once with a connection, or give {option('embedder', 'clip:ARCH@FILE')}."
            )
        raise BackendError(f"{needs}. Write {option('embedder', 'clip')}.")


def detector_for(settings: ModelSettings) -> Detector:
    return registry.detector(settings.detector, labels=settings.labels, device=settings.device, precision=settings.precision)


def device_of(backend: Embedder | Detector) -> str:
    """Return where it runs: `cpu`, `cuda in fp16`."""
    return backend.capabilities.device or "cpu"


def _check_device(settings: ExtractSettings, embedder: Embedder, detector: Detector) -> None:
    """Refuse a device or a precision that nobody would use: no setting is passed over in silence."""
    models = [backend for backend in (embedder, detector) if backend.capabilities.device]
    for name, value in (("device", settings.device), ("precision", settings.precision)):
        if value not in ("auto", "cpu") and not models:
            raise UsageError(
                f"{option(name, value)}: neither the embedder {embedder.name} nor the detector {detector.name} is a model"
                " that could run so."
                f" Leave {option(name)} out, or add {option('embedder', 'clip')}."
            )
