"""Choosing and loading an embedder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.embedders.export import export_embedder, open_export
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.embedders.profile import read_profile
from rag_tui.engine.embedders.sentence_transformer import SentenceTransformerEmbedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import Progress
from rag_tui.engine.models import Backend, ModelFiles
from rag_tui.engine.onnx_export import ExportRefused

HASHING = "hashing"
"""The embedder that needs no model."""


def load_embedder(
    files: ModelFiles | None,
    cache_dir: Path,
    *,
    backend: Backend = "auto",
    device: str = "cpu",
    report: Callable[[Progress], None] = lambda _: None,
) -> Embedder:
    """Load an embedder, by the fast path where it is proven equal.

    On the CPU: a checked export if there is one (no torch), else sentence-transformers, which
    is exported on this occasion; when that is refused it keeps answering itself.

    Args:
        files: The resolved model; None for the hashing embedder.
        cache_dir: Where exports are kept, in ``models/``.
        backend: What may answer.
        device: ``cpu``, ``cuda``, ``mps``; ``auto`` lets sentence-transformers choose.
        report: Told before something that takes seconds.

    Raises:
        ModelError: When the model cannot be loaded, or the ``onnx`` backend is demanded and the
            model cannot be exported.
    """
    if files is None:
        return HashingEmbedder()
    profile = read_profile(files)
    wants_export = backend != "sentence-transformers" and device == "cpu"
    if backend == "onnx" and device != "cpu":
        raise ModelError(
            f"the onnx backend runs on the CPU (got models.device = {device})",
            "Set models.device to cpu, or models.backend to sentence-transformers.",
        )
    if wants_export:
        exported = open_export(files, profile, cache_dir)
        if exported is not None:
            return exported
    report(Progress("model", note=f"loading {files.asked_for}"))
    original = SentenceTransformerEmbedder(files, profile, device=device)
    if not wants_export:
        return original
    if not profile.not_exportable:
        report(Progress("model", note=f"preparing {files.asked_for} for faster starts"))
    try:
        return export_embedder(original, files, profile, cache_dir)
    except ExportRefused as refusal:
        if backend == "onnx":
            raise ModelError(
                f"{files.asked_for} cannot run on the onnx backend: {refusal}",
                "Set models.backend to auto.",
            ) from refusal
        original.add_note(f"no fast path: {refusal}")
        return original
