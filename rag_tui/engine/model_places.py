"""The places on this machine where a model may lie, looked at without loading anything."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from rag_tui.engine.known_models import ModelKind, hub_name, known_model
from rag_tui.engine.quiet import quiet_environment

ModelSource = Literal["path", "hub cache", "offline extra", "hub download"]
ModelFormat = Literal["transformers", "onnx"]
CandidateState = Literal["not found", "incomplete", "found", "sha256 ok", "sha256 mismatch"]

_WEIGHT_PATTERNS = ("model*.safetensors", "pytorch_model*.bin")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model's files on this machine."""

    name: str
    """The model that really runs; a stand-in carries its own name, not the one asked for."""
    asked_for: str
    kind: ModelKind
    folder: Path
    source: ModelSource
    weights: tuple[Path, ...]
    """Weight files, at least one, sorted."""
    format: ModelFormat = "transformers"
    precision: str = "float32"
    sha256: str = ""
    """Digest of the weights; empty until they were hashed."""
    expected_sha256: str = ""
    """What the digest must be; empty when nobody has said."""
    note: str = ""
    """Says that this is a stand-in."""

    @property
    def label(self) -> str:
        """The name with its precision where that is reduced."""
        return self.name if self.precision == "float32" else f"{self.name} ({self.precision})"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One place where a model was looked for, and what lay there."""

    source: ModelSource
    place: str
    """A path or a package name, for people."""
    state: CandidateState
    detail: str = ""
    files: ModelFiles | None = None
    """Set unless nothing usable lies there."""


def is_path_like(name: str) -> bool:
    """Whether a model's name can only be meant as a path."""
    return name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name


def look_at_path(name: str, kind: ModelKind) -> Candidate:
    """The folder that the name itself says, if there is one."""
    folder = Path(name).expanduser()
    if not folder.is_dir():
        return Candidate("path", str(folder), "not found")
    files = _files_in(folder.resolve(), name, kind, "path")
    return _candidate("path", folder, files)


def look_in_hub_cache(name: str, kind: ModelKind) -> Candidate:
    """The newest complete snapshot in the hub client's cache; no request is made."""
    quiet_environment()  # the client reads its switches once, when it is imported
    from huggingface_hub import constants

    repository = hub_name(name, kind)
    cache = Path(constants.HF_HUB_CACHE)
    place = cache / f"models--{repository.replace('/', '--')}"
    if is_path_like(name) or not place.is_dir():
        return Candidate("hub cache", str(place), "not found")
    from huggingface_hub import try_to_load_from_cache

    # Asking for one file gives the snapshot of the main branch, as the client itself would.
    config = try_to_load_from_cache(repository, "config.json", cache_dir=cache)
    if not isinstance(config, str):
        return Candidate("hub cache", str(place), "incomplete", "it holds no config.json")
    folder = Path(config).parent
    return _candidate("hub cache", folder, _files_in(folder, name, kind, "hub cache"))


def look_in_offline_extra(name: str, kind: ModelKind) -> Candidate:
    """The data package of the ``offline`` extra; located by its metadata, never imported."""
    known = known_model(name)
    data = known.offline if known is not None and known.kind == kind else None
    if known is None or data is None:
        return Candidate("offline extra", "-", "not found", "the extra does not carry this model")
    place = f"package {data.distribution}"
    try:
        folder = Path(str(metadata.distribution(data.distribution).locate_file(data.folder)))
    except metadata.PackageNotFoundError:
        return Candidate("offline extra", place, "not found", "the package is not installed")
    weights = folder / data.weights_file
    if not weights.is_file():
        return Candidate("offline extra", place, "incomplete", f"{weights} is missing")
    is_stand_in = data.true_name not in (known.name, *known.aliases)
    files = ModelFiles(
        name=data.true_name,
        asked_for=name,
        kind=kind,
        folder=folder,
        source="offline extra",
        weights=(weights,),
        format="onnx" if weights.suffix == ".onnx" else "transformers",
        precision=data.precision,
        expected_sha256=data.sha256,
        note=f"stands in for {name}, which is not on this machine" if is_stand_in else "",
    )
    return Candidate("offline extra", place, "found", str(folder), files)


def _candidate(source: ModelSource, folder: Path, files: ModelFiles | None) -> Candidate:
    if files is None:
        return Candidate(
            source, str(folder), "incomplete", "it needs config.json and weights, or model.onnx"
        )
    return Candidate(source, str(folder), "found", files=files)


def _files_in(folder: Path, name: str, kind: ModelKind, source: ModelSource) -> ModelFiles | None:
    expected = ""
    weights = _transformers_weights(folder)
    model_format: ModelFormat = "transformers"
    if weights:
        if source != "path" and len(weights) == 1:
            expected = _blob_sha256(weights[0])
    elif (folder / "model.onnx").is_file() and (folder / "tokenizer.json").is_file():
        weights, model_format = (folder / "model.onnx",), "onnx"
    else:
        return None
    return ModelFiles(
        name=hub_name(name, kind) if source != "path" else name,
        asked_for=name,
        kind=kind,
        folder=folder,
        source=source,
        weights=weights,
        format=model_format,
        precision="float32" if model_format == "transformers" else "as stored",
        expected_sha256=expected,
    )


def _transformers_weights(folder: Path) -> tuple[Path, ...]:
    if (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
        # Word vectors and routers: no transformer at the top, weights wherever modules lie.
        return tuple(
            sorted(
                path
                for pattern in _WEIGHT_PATTERNS
                for path in folder.rglob(pattern)
                if path.is_file()
            )
        )
    if not (folder / "config.json").is_file():
        return ()
    for pattern in _WEIGHT_PATTERNS:
        found = [path for path in folder.glob(pattern) if path.is_file()]
        if found:
            # Modules such as a dense layer keep weights of their own in numbered folders.
            found += [path for path in folder.glob(f"[0-9]*_*/{pattern}") if path.is_file()]
            return tuple(sorted(found))
    return ()


def _blob_sha256(weights: Path) -> str:
    """The hub's cache names a large file by its own SHA-256; empty when it does not."""
    blob = weights.resolve().name
    return blob if len(blob) == 64 and set(blob) <= set("0123456789abcdef") else ""
