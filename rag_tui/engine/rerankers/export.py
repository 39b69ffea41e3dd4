"""Making, checking and reopening the float32 ONNX export of a cross-encoder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rag_tui.engine.errors import ModelError
from rag_tui.engine.onnx_export import (
    EXPORTABLE,
    OPSET,
    ExportRefused,
    export_torch,
    finished_folder,
    wanted_inputs,
)
from rag_tui.engine.rerankers.base import Reranker, RerankerInfo
from rag_tui.engine.rerankers.onnx import OnnxReranker
from rag_tui.engine.weight_hashes import file_sha256

if TYPE_CHECKING:
    from rag_tui.engine.rerankers.cross_encoder import CrossEncoderReranker

TOLERANCE = 1e-4
"""Largest difference allowed between logits, which go up to about 11."""

SAMPLE_QUERY = "How many people live in Berlin?"
SAMPLES = (
    "Berlin is well known for its museums.",
    "",
    "人口は三百五十万人です。 Население Берлина 🙂",
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 km². " * 60,
)
"""Short, empty, other scripts, longer than the model reads."""

_N_QUICK = 2
_META = "meta.json"


def open_export(info: RerankerInfo, cache_dir: Path) -> Reranker | None:
    """The reranker of an existing export, or None when there is none that gives true scores.

    A damaged export, or one that no longer gives the scores the original gave when it was
    made, is deleted.
    """
    folder = _folder(info, cache_dir)
    if not folder.is_dir():
        return None
    try:
        meta = json.loads((folder / _META).read_text("utf-8"))
        if file_sha256(folder / "model.onnx", cache_dir=cache_dir) == meta["model_sha256"]:
            reranker = _opened(folder, info, int(meta["pad_id"]))
            scores = list(reranker.score(SAMPLE_QUERY, SAMPLES[:_N_QUICK]))
            if _difference(scores, meta["reference"]) <= TOLERANCE:
                return reranker
    except (OSError, ValueError, KeyError, TypeError, ModelError):
        pass
    shutil.rmtree(folder, ignore_errors=True)
    return None


def export_reranker(
    original: CrossEncoderReranker, info: RerankerInfo, cache_dir: Path
) -> Reranker:
    """Export a loaded cross-encoder, compare it with the original, and keep it if they agree.

    Raises:
        ExportRefused: When it cannot be exported, written, or differs from the original.
    """
    try:
        with finished_folder(_folder(info, cache_dir)) as folder:
            pad_id = _write(original, folder)
            expected = list(original.score(SAMPLE_QUERY, SAMPLES))
            scores = list(_opened(folder, info, pad_id).score(SAMPLE_QUERY, SAMPLES))
            difference = _difference(scores, expected)
            if not difference <= TOLERANCE:
                raise ExportRefused(f"its scores differ by {difference:.1e}")
            meta = {
                "model": info.name,
                "weights_sha256": info.weights_sha256,
                "model_sha256": file_sha256(folder / "model.onnx"),
                "max_tokens": info.max_tokens,
                "pad_id": pad_id,
                "opset": OPSET,
                "max_difference": difference,
                "reference": expected[:_N_QUICK],
            }
            (folder / _META).write_text(json.dumps(meta, indent=2), "utf-8")
    except ExportRefused:
        raise
    except Exception as error:  # torch, onnxruntime and the disk fail in ways of their own
        raise ExportRefused(f"{type(error).__name__}: {error}") from error
    reopened = open_export(info, cache_dir)
    if reopened is None:
        raise ExportRefused("it could not be read back")
    return reopened


def _folder(info: RerankerInfo, cache_dir: Path) -> Path:
    return cache_dir / "models" / info.fingerprint


def _opened(folder: Path, info: RerankerInfo, pad_id: int) -> OnnxReranker:
    return OnnxReranker(
        folder / "model.onnx",
        folder / "tokenizer.json",
        info=replace(info, backend="onnxruntime float32"),
        pad_id=pad_id,
    )


def _write(original: CrossEncoderReranker, folder: Path) -> int:
    network = original.model.model
    if network.config.model_type not in EXPORTABLE:
        raise ExportRefused(
            f"architecture {network.config.model_type} is not known to export exactly"
        )
    tokenizer = original.model.tokenizer
    export_torch(
        network,
        folder / "model.onnx",
        input_names=wanted_inputs(tokenizer),
        output_attribute="logits",
    )
    (folder / "tokenizer.json").write_text(tokenizer.backend_tokenizer.to_str(), "utf-8")
    return int(tokenizer.pad_token_id or 0)


def _difference(a: Sequence[float], b: Sequence[float]) -> float:
    return max(abs(x - y) for x, y in zip(a, b, strict=True))
