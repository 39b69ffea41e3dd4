"""Choosing and loading an embedder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rag_tui.engine.embedders.base import Embedder, Precision
from rag_tui.engine.embedders.export import export_embedder, open_export
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.embedders.profile import EmbedderProfile, read_profile
from rag_tui.engine.embedders.sentence_transformer import SentenceTransformerEmbedder
from rag_tui.engine.embedders.truncated import TruncatedEmbedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import Progress
from rag_tui.engine.models import Backend, ModelFiles
from rag_tui.engine.onnx_export import ExportRefused


def load_embedder(
    files: ModelFiles | None,
    cache_dir: Path,
    *,
    backend: Backend = "auto",
    device: str = "cpu",
    precision: Precision = "float32",
    truncate_dim: int = 0,
    report: Callable[[Progress], None] = lambda _: None,
) -> Embedder:
    """Load an embedder, by the fast path where it is proven equal.

    On the CPU: a checked export if there is one (no torch), else sentence-transformers, which
    is exported on this occasion; when that is refused it keeps answering itself.

    Args:
        files: The resolved model; None for the hashing embedder, which is never cut.
        cache_dir: Where exports are kept, in ``models/``.
        backend: What may answer.
        device: ``cpu``, ``cuda``, ``mps``; ``auto`` lets sentence-transformers choose.
        precision: ``bfloat16`` runs in sentence-transformers only.
        truncate_dim: Numbers of each vector that are kept; 0: all of them.
        report: Told before something that takes seconds.

    Raises:
        ModelError: When the model cannot be loaded, the ``onnx`` backend is demanded and the
            model cannot be exported, or the processor lacks the precision.
    """
    if files is None:
        return HashingEmbedder()
    profile = read_profile(files)
    whole = _load_whole(files, profile, cache_dir, backend, device, precision, report)
    if truncate_dim <= 0:
        return whole
    return TruncatedEmbedder(whole, dimensions=truncate_dim, is_rescaled=profile.has_unit_output)


def _load_whole(
    files: ModelFiles,
    profile: EmbedderProfile,
    cache_dir: Path,
    backend: Backend,
    device: str,
    precision: Precision,
    report: Callable[[Progress], None],
) -> Embedder:
    is_fast = device == "cpu" and precision == "float32"
    if backend == "onnx" and not is_fast:
        raise ModelError(
            "the onnx backend runs on the CPU in float32 "
            f"(got models.device = {device}, models.precision = {precision})",
            "Set models.device to cpu and models.precision to float32, or models.backend to "
            "sentence-transformers.",
        )
    wants_export = backend != "sentence-transformers" and is_fast
    if wants_export:
        exported = open_export(files, profile, cache_dir)
        if exported is not None:
            return exported
    report(Progress("model", note=f"loading {files.asked_for}"))
    original = SentenceTransformerEmbedder(files, profile, device=device, precision=precision)
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
