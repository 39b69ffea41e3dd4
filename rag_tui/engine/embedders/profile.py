"""What a sentence-transformers folder says about itself, read without loading the model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rag_tui.engine.embedders.base import Similarity
from rag_tui.engine.errors import ModelError
from rag_tui.engine.ids import fingerprint
from rag_tui.engine.models import ModelFiles
from rag_tui.engine.onnx_export import EXPORTABLE

Pooling = Literal["mean", "cls", "other"]

_UNKNOWN_LENGTH = 512
_ABSURD_LENGTH = 1_000_000
"""Tokenizers without a limit of their own say 1e30."""
_SIMILARITIES: dict[str, Similarity] = {
    "cosine": "cosine",
    "dot": "dot",
    "dot_product": "dot",
    "euclidean": "euclidean",
}
_POOLING_KEYS = {"pooling_mode_cls_token": "cls", "pooling_mode_mean_tokens": "mean"}


@dataclass(frozen=True, slots=True)
class EmbedderProfile:
    """Everything besides the weights that decides an embedding model's vectors."""

    modules: tuple[tuple[str, str], ...]
    """Class name and settings (JSON) of each module, in order."""
    pooling: Pooling
    max_tokens: int
    """Tokens read of one text, special tokens included."""
    query_prompt: str
    document_prompt: str
    not_exportable: str
    """Why this model cannot be exported; empty when it can be tried."""
    similarity: Similarity = "cosine"
    tokenizer_file: Path | None = None
    """The ``tokenizer.json``; None when there is none."""

    @property
    def reads_all(self) -> bool:
        """Whether the model reads texts of any length."""
        return self.max_tokens >= _ABSURD_LENGTH

    @property
    def has_unit_output(self) -> bool:
        """Whether the model's own last step scales vectors to norm 1."""
        return bool(self.modules) and self.modules[-1][0] == "Normalize"

    def fingerprint(self, weights_sha256: str) -> str:
        """The same for every backend, so that an index fits all of them."""
        decides: dict[str, object] = {
            "version": 1,
            "weights": weights_sha256,
            "modules": self.modules,
            "max_tokens": self.max_tokens,
            "query_prompt": self.query_prompt,
            "document_prompt": self.document_prompt,
        }
        if self.similarity != "cosine":  # left out otherwise: indexes made before there were others
            decides["similarity"] = self.similarity
        return fingerprint(decides)


def read_profile(files: ModelFiles) -> EmbedderProfile:
    """Read the profile of an embedding model's folder.

    A folder without ``modules.json`` is a bare encoder: sentence-transformers pools it by mean.

    Raises:
        ModelError: When a settings file is not valid JSON, the folder holds only ONNX, or the
            model wants a similarity that is not known here.
    """
    if files.format != "transformers":
        raise ModelError(
            f"{files.folder} holds no embedding model that can be loaded: only an ONNX file",
            "Give a sentence-transformers folder (config.json, model.safetensors).",
        )
    folder = files.folder
    config = _read_json(folder / "config.json")
    transformer = _read_json(folder / "sentence_bert_config.json")
    own = _read_json(folder / "config_sentence_transformers.json")
    prompts = own.get("prompts") or {}
    modules = _modules(folder)
    pooling = _pooling(folder)
    return EmbedderProfile(
        modules=modules,
        pooling=pooling,
        max_tokens=_max_tokens(folder, config, transformer, modules),
        query_prompt=str(prompts.get("query") or ""),
        document_prompt=str(
            next(
                (prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), ""
            )
        ),
        not_exportable=_not_exportable(config, transformer, modules, pooling),
        similarity=_similarity(files, own.get("similarity_fn_name")),
        tokenizer_file=next(
            (
                path
                for part in (".", *_folders(folder))
                if (path := folder / part / "tokenizer.json").is_file()
            ),
            None,
        ),
    )


def _similarity(files: ModelFiles, name: object) -> Similarity:
    known = _SIMILARITIES.get(str(name or "cosine"))
    if known is None:
        raise ModelError(
            f"{files.asked_for} compares its vectors by {name}; "
            "known here are cosine, dot and euclidean",
            "Choose another embedding model, or change similarity_fn_name in its "
            "config_sentence_transformers.json.",
        )
    return known


def _folders(folder: Path) -> list[str]:
    """The folders of a model's modules, in their order."""
    path = folder / "modules.json"
    return [str(entry["path"]) for entry in _load(path)] if path.is_file() else []


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    return dict(_load(path))


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(
            f"a settings file of the model cannot be read: {path}: {error}",
            "Get the model again.",
        ) from error


def _modules(folder: Path) -> tuple[tuple[str, str], ...]:
    path = folder / "modules.json"
    if not path.is_file():
        return (("Transformer", "{}"), ("Pooling", '{"pooling_mode":"mean"}'))
    modules = []
    for entry in _load(path):
        own = folder / str(entry["path"]) / "config.json" if entry["path"] else None
        settings = _read_json(own) if own is not None else {}
        name = str(entry["type"]).rpartition(".")[2]
        modules.append((name, json.dumps(settings, sort_keys=True, separators=(",", ":"))))
    return tuple(modules)


def _pooling(folder: Path) -> Pooling:
    path = folder / "modules.json"
    if not path.is_file():
        return "mean"
    for entry in _load(path):
        if str(entry["type"]).endswith(".Pooling"):
            settings = _read_json(folder / str(entry["path"]) / "config.json")
            if not settings.get("include_prompt", True):
                return "other"
            mode = settings.get("pooling_mode")
            active = (
                [mode]
                if mode
                else [
                    _POOLING_KEYS.get(key, "other")
                    for key, value in settings.items()
                    if key.startswith("pooling_mode_") and value
                ]
            )
            if active == ["cls"]:
                return "cls"
            if active in (["mean"], []):
                return "mean"
    return "other"


def _max_tokens(
    folder: Path,
    config: dict[str, Any],
    transformer: dict[str, Any],
    modules: tuple[tuple[str, str], ...],
) -> int:
    if modules and modules[0][0] == "StaticEmbedding":
        return _ABSURD_LENGTH  # word vectors: it reads everything
    own = transformer.get("max_seq_length")
    if own:
        return int(own)
    limits = (
        _read_json(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings"),
    )
    known = [int(limit) for limit in limits if limit and limit < _ABSURD_LENGTH]
    return min(known, default=_UNKNOWN_LENGTH)


def _not_exportable(
    config: dict[str, Any],
    transformer: dict[str, Any],
    modules: tuple[tuple[str, str], ...],
    pooling: Pooling,
) -> str:
    model_type = config.get("model_type")
    if model_type not in EXPORTABLE:
        return f"architecture {model_type} is not known to export exactly"
    names = [name for name, _ in modules]
    if names not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        return f"it has modules besides pooling and normalisation: {', '.join(names)}"
    if pooling == "other":
        return "its pooling is neither mean nor first token"
    if transformer.get("do_lower_case"):
        return "it changes texts before they are tokenised"
    return ""
