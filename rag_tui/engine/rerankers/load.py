"""Choosing and loading a reranker."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from rag_tui.engine.embedders.base import Precision
from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import Progress
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.models import Backend, ModelFiles
from rag_tui.engine.onnx_export import EXPORTABLE, ExportRefused
from rag_tui.engine.rerankers.base import Reranker, RerankerInfo
from rag_tui.engine.rerankers.cross_encoder import CrossEncoderReranker
from rag_tui.engine.rerankers.dequantised import dequantised
from rag_tui.engine.rerankers.export import export_reranker, open_export
from rag_tui.engine.rerankers.onnx import OnnxReranker
from rag_tui.engine.rerankers.scores import logit_kind

_DEFAULT_MAX_TOKENS = 512


def load_reranker(
    files: ModelFiles,
    cache_dir: Path,
    *,
    backend: Backend = "auto",
    device: str = "cpu",
    precision: Precision = "float32",
    report: Callable[[Progress], None] = lambda _: None,
) -> Reranker:
    """Load a reranker, by the fast path where it is proven equal.

    A folder with an ONNX graph runs as it is, only that integer arithmetic becomes float32
    (`dequantised`): its scores would depend on the processor. A transformers folder runs on the
    CPU from a checked export if there is one (no torch), else through sentence-transformers,
    which is exported on this occasion; when that is refused it keeps answering itself.

    Args:
        files: The resolved model.
        cache_dir: Where exports are kept, in ``models/``.
        backend: What may answer.
        device: ``cpu``, ``cuda``, ``mps``; ``auto`` lets sentence-transformers choose.
        precision: ``bfloat16`` runs in sentence-transformers only; a folder with an ONNX graph
            has its own.
        report: Told before something that takes seconds.

    Raises:
        ModelError: When the model cannot be loaded or gives more than one score a pair.
    """
    config = _read_json(files.folder / "config.json")
    info = _info(files, config)
    if files.format == "onnx":
        return _load_graph(files, info, cache_dir)
    is_fast = device == "cpu" and precision == "float32"
    if backend == "onnx" and not is_fast:
        raise ModelError(
            "the onnx backend runs on the CPU in float32 "
            f"(got models.device = {device}, models.precision = {precision})",
            "Set models.device to cpu and models.precision to float32, or models.backend to "
            "sentence-transformers.",
        )
    wants_export = backend != "sentence-transformers" and is_fast
    exportable = config.get("model_type") in EXPORTABLE
    if wants_export:
        exported = open_export(info, cache_dir)
        if exported is not None:
            return exported
    report(Progress("model", note=f"loading {files.asked_for}"))
    original = CrossEncoderReranker(files, info, device=device, precision=precision)
    if not wants_export:
        return original
    if exportable:
        report(Progress("model", note=f"preparing {files.asked_for} for faster starts"))
    try:
        return export_reranker(original, info, cache_dir)
    except ExportRefused as refusal:
        if backend == "onnx":
            raise ModelError(
                f"{files.asked_for} cannot run on the onnx backend: {refusal}",
                "Set models.backend to auto.",
            ) from refusal
        original.add_note(f"no fast path: {refusal}")
        return original


def _load_graph(files: ModelFiles, info: RerankerInfo, cache_dir: Path) -> OnnxReranker:
    graph = files.weights[0]
    with suppress(OSError):  # a cache that cannot be written to: it runs as it is, and says int8
        graph = dequantised(graph, files.sha256, cache_dir)
    if graph != files.weights[0]:
        info = replace(
            info,
            name=f"{files.name} (int8 weights)",
            fingerprint=fingerprint({"kind": "reranker", "float32 of": info.fingerprint}),
            backend="onnxruntime float32",
            precision="float32",
        )
    return OnnxReranker(graph, files.folder / "tokenizer.json", info=info)


def _info(files: ModelFiles, config: dict[str, Any]) -> RerankerInfo:
    max_tokens = _max_tokens(files.folder, config)
    return RerankerInfo(
        name=files.label,
        fingerprint=fingerprint(
            {"kind": "reranker", "version": 1, "weights": files.sha256, "max_tokens": max_tokens}
        ),
        max_tokens=max_tokens,
        score_kind=logit_kind(files.note),
        backend=f"onnxruntime {files.precision}" if files.format == "onnx" else "",
        source=files.source,
        weights_sha256=files.sha256,
        precision=files.precision,
        note=files.note,
    )


def _max_tokens(folder: Path, config: dict[str, Any]) -> int:
    limits = (
        _read_json(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    known = [int(limit) for limit in limits if limit and limit < 1_000_000]
    return min(known, default=_DEFAULT_MAX_TOKENS)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"a settings file of the model cannot be read: {path}: {error}",
            "Get the model again.",
        ) from error
