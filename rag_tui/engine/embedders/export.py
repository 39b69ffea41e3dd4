"""Making, checking and reopening the float32 ONNX export of an embedding model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rag_tui.engine.embedders.onnx import ExportedFiles, OnnxEmbedder
from rag_tui.engine.embedders.profile import EmbedderProfile
from rag_tui.engine.errors import ModelError
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.onnx_export import (
    EXPORTABLE,
    OPSET,
    ExportRefused,
    export_torch,
    finished_folder,
    wanted_inputs,
)
from rag_tui.engine.weight_hashes import file_sha256

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Embedder, Vectors
    from rag_tui.engine.embedders.sentence_transformer import SentenceTransformerEmbedder

TOLERANCE = 1e-5
"""Largest difference allowed between any component of an exported and an original vector."""

SAMPLES = (
    "Can I bring my dog?",
    "",
    "a",
    "  Leading space,\n\ttabs and a trailing newline\n",
    "早上好，请问几点可以办理入住？ ようこそ。 안녕하세요",
    "Café Zürich, naïve façade; Привет, мир! مرحبا 🙂👩‍👩‍👧",
    "```python\ndef f(x: int) -> list[int]:\n    return [x ** 2] * 3  # 0x1F\n```",
    "The kitchen closes at ten, the garden gate at eleven, and the key stays in the box. " * 40,
)
"""Short, empty, blank-edged, other scripts, code, and longer than the model reads."""

_N_QUICK = 3
"""Samples compared again at every start: a few milliseconds against a changed library."""
_META = "meta.json"
_REFERENCE = "reference.npy"


def export_folder(files: ModelFiles, profile: EmbedderProfile, cache_dir: Path) -> Path:
    """Where the export of this very model belongs."""
    return cache_dir / "models" / profile.fingerprint(files.sha256)


def open_export(files: ModelFiles, profile: EmbedderProfile, cache_dir: Path) -> Embedder | None:
    """The embedder of an existing export, or None when there is none that gives true vectors.

    A damaged export, or one that no longer gives the vectors sentence-transformers gave when
    it was made, is deleted.
    """
    exported = ExportedFiles(export_folder(files, profile, cache_dir))
    if not exported.folder.is_dir():
        return None
    try:
        meta = json.loads((exported.folder / _META).read_text("utf-8"))
        reference = np.load(exported.folder / _REFERENCE)
        if file_sha256(exported.model, cache_dir=cache_dir) == meta["model_sha256"]:
            embedder = OnnxEmbedder(exported, files, profile, pad_id=int(meta["pad_id"]))
            if _difference(_vectors(embedder, SAMPLES[:_N_QUICK]), reference) <= TOLERANCE:
                return embedder
    except (OSError, ValueError, KeyError, TypeError, ModelError):
        pass
    shutil.rmtree(exported.folder, ignore_errors=True)
    return None


def export_embedder(
    original: SentenceTransformerEmbedder,
    files: ModelFiles,
    profile: EmbedderProfile,
    cache_dir: Path,
) -> Embedder:
    """Export a loaded model, compare it with the original, and keep it if they agree.

    Raises:
        ExportRefused: When it cannot be exported, written, or differs from the original.
    """
    if profile.not_exportable:
        raise ExportRefused(profile.not_exportable)
    target = export_folder(files, profile, cache_dir)
    try:
        with finished_folder(target) as folder:
            exported = ExportedFiles(folder)
            pad_id = _write(original, exported)
            expected = _vectors(original, SAMPLES)
            embedder = OnnxEmbedder(exported, files, profile, pad_id=pad_id)
            difference = _difference(_vectors(embedder, SAMPLES), expected)
            if not difference <= TOLERANCE:
                raise ExportRefused(f"its vectors differ by {difference:.1e}")
            np.save(folder / _REFERENCE, _vectors(original, SAMPLES[:_N_QUICK]))
            meta = {
                "model": files.name,
                "weights_sha256": files.sha256,
                "model_sha256": file_sha256(exported.model),
                "pooling": profile.pooling,
                "max_tokens": profile.max_tokens,
                "query_prompt": profile.query_prompt,
                "document_prompt": profile.document_prompt,
                "pad_id": pad_id,
                "opset": OPSET,
                "max_difference": difference,
                "samples": fingerprint({"samples": SAMPLES}),
            }
            (folder / _META).write_text(json.dumps(meta, indent=2), "utf-8")
    except ExportRefused:
        raise
    except Exception as error:  # torch, onnxruntime and the disk fail in ways of their own
        raise ExportRefused(f"{type(error).__name__}: {error}") from error
    reopened = open_export(files, profile, cache_dir)
    if reopened is None:
        raise ExportRefused("it could not be read back")
    return reopened


def _write(original: SentenceTransformerEmbedder, exported: ExportedFiles) -> int:
    module = original.model[0]
    encoder = module.auto_model
    if encoder.config.model_type not in EXPORTABLE:
        raise ExportRefused(f"architecture {encoder.config.model_type} is not known")
    tokenizer = original.model.tokenizer
    export_torch(
        encoder,
        exported.model,
        input_names=wanted_inputs(tokenizer),
        output_attribute="last_hidden_state",
    )
    exported.tokenizer.write_text(tokenizer.backend_tokenizer.to_str(), "utf-8")
    return int(tokenizer.pad_token_id or 0)


def _vectors(embedder: Embedder, texts: Sequence[str]) -> Vectors:
    """Both roles: queries first, then documents as one set, so that padding is tried too."""
    queries = np.stack([embedder.embed_query(text) for text in texts])
    both: Vectors = np.concatenate([queries, embedder.embed_documents(texts)])
    return both


def _difference(a: Vectors, b: Vectors) -> float:
    if a.shape != b.shape:
        return float("inf")
    return float(np.abs(a - b).max())
