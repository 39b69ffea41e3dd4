"""Similarities, truncation, precision, models of other shapes, and vectors of single tokens."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.embedders.load import load_embedder
from rag_tui.engine.embedders.onnx import OnnxEmbedder
from rag_tui.engine.embedders.profile import read_profile
from rag_tui.engine.embedders.tokens import TokenVectors, token_vectors
from rag_tui.engine.embedders.truncated import TruncatedEmbedder
from rag_tui.engine.errors import ModelError
from rag_tui.engine.loading import Models
from rag_tui.engine.models import ModelFiles, resolve
from rag_tui.engine.precision import cpu_has_bfloat16
from rag_tui.engine.settings import DEFAULT_EMBEDDER, ModelSettings
from tests.engine.test_models import offline_folder

TEXTS = [
    "Dogs are welcome in the garden rooms.",
    "The kitchen closes at ten.",
    "a",
    "早上好，请问几点可以办理入住？",
    "The kettle is in the cupboard above the sink. " * 30,
]


def save_model(folder: Path, *, similarity: str = "cosine", normalize: bool = False) -> Path:
    """A small random sentence-transformers model with MiniLM's tokenizer."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(offline_folder(DEFAULT_EMBEDDER))
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=tokenizer.vocab_size, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=2, intermediate_size=64, max_position_embeddings=64,
        initializer_range=0.3,
    )  # fmt: skip
    plain = folder / "plain"
    BertModel(config).eval().save_pretrained(plain)
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(plain)
    modules: list[Any] = [Transformer(str(plain)), Pooling(32, "mean")]
    if normalize:
        modules.append(Normalize())
    model = SentenceTransformer(
        modules=modules,
        similarity_fn_name=similarity,
        prompts={"query": "query: ", "document": "passage: "},
        device="cpu",
    )
    model.save(str(folder / "model"))
    return folder / "model"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One random model for each similarity; only ``dot-unit`` normalises by itself."""
    base = tmp_path_factory.mktemp("kinds")
    return {
        "cosine": save_model(base / "cosine"),
        "dot": save_model(base / "dot", similarity="dot"),
        "euclidean": save_model(base / "euclidean", similarity="euclidean"),
        "dot-unit": save_model(base / "dot-unit", similarity="dot", normalize=True),
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds-cache")


def load(folder: Path, cache: Path, **settings: Any) -> Embedder:
    return load_embedder(resolve(str(folder), "embedder"), cache, **settings)


def direct(folder: Path) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu")


# --- similarity ---------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["onnx", "sentence-transformers"])
@pytest.mark.parametrize("kind", ["cosine", "dot", "euclidean", "dot-unit"])
def test_scores_are_those_of_the_models_own_similarity_in_the_library(
    folders: dict[str, Path], cache: Path, kind: str, backend: Any
) -> None:
    from rag_tui.engine.retrievers.dense import retrieve_dense

    embedder = load(folders[kind], cache, backend=backend)
    model = direct(folders[kind])
    expected = model.similarity(model.encode_query(TEXTS[0]), model.encode_document(TEXTS))[
        0
    ].numpy()
    ranking = retrieve_dense(
        embedder.embed_query(TEXTS[0]), embedder.embed_documents(TEXTS), "abcde",
        depth=5, similarity=embedder.info.similarity,
    )  # fmt: skip
    assert embedder.info.similarity == kind.partition("-")[0]
    assert [hit.position for hit in ranking.hits] == np.argsort(-expected).tolist()
    scores = {hit.position: hit.score for hit in ranking.hits}
    np.testing.assert_allclose([scores[i] for i in range(5)], expected, rtol=2e-5, atol=2e-5)


def test_only_for_cosine_are_vectors_scaled_to_norm_one(
    folders: dict[str, Path], cache: Path
) -> None:
    norms = {
        kind: np.linalg.norm(load(folder, cache).embed_documents(TEXTS), axis=1)
        for kind, folder in folders.items()
    }
    for kind in ("cosine", "dot-unit"):
        np.testing.assert_allclose(norms[kind], 1.0, atol=1e-6)
    for kind in ("dot", "euclidean"):
        assert norms[kind].min() > 1.5


def test_another_similarity_is_another_fingerprint_and_cosine_keeps_the_old_one(
    folders: dict[str, Path],
) -> None:
    files = resolve(str(folders["dot"]), "embedder")
    profile = read_profile(files)
    as_cosine = replace(profile, similarity="cosine").fingerprint(files.sha256)
    assert profile.fingerprint(files.sha256) != as_cosine
    from rag_tui.engine.ids import fingerprint

    assert as_cosine == fingerprint(
        {
            "version": 1, "weights": files.sha256, "modules": profile.modules,
            "max_tokens": 64, "query_prompt": "query: ", "document_prompt": "passage: ",
        }
    )  # fmt: skip


def test_a_similarity_that_is_not_known_is_refused_by_name(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    for path in folders["dot"].iterdir():
        (tmp_path / path.name).symlink_to(path)
    own = tmp_path / "config_sentence_transformers.json"
    content = json.loads(own.read_text())
    own.unlink()
    own.write_text(json.dumps({**content, "similarity_fn_name": "manhattan"}))
    with pytest.raises(ModelError, match="manhattan"):
        load(tmp_path, tmp_path / "cache")


def test_an_index_of_a_dot_product_model_remembers_and_uses_it(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    from rag_tui.engine.indexing import open_index
    from rag_tui.engine.searching import search
    from rag_tui.engine.settings import EngineSettings
    from rag_tui.engine.types import SearchRequest
    from tests.conftest import build

    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for i, text in enumerate(TEXTS[:3]):
        (corpus / f"{i}.txt").write_text(text)
    chosen = ModelSettings(embedder=str(folders["dot"]), allow_download=False)
    settings = EngineSettings(cache_dir=tmp_path / "cache", models=chosen)
    models = Models(chosen, settings.cache_dir)
    build(corpus, settings, models)
    index = open_index(corpus, settings)
    assert index is not None
    assert index.manifest.similarity == "dot"
    (result,) = search(SearchRequest("a dog", methods=("vector",)), index, models)
    assert result.ranking is not None
    assert result.ranking.score_kind.name == "dot product"
    model = direct(folders["dot"])
    best = result.ranking.hits[0]
    text = index.chunks[best.position].embedded_text
    expected = model.similarity(model.encode_query("a dog"), model.encode_document(text))
    assert best.score == pytest.approx(float(expected), rel=1e-4)
    assert build(corpus, settings, models).n_embedded == 0


# --- truncation ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cosine", "dot"])
def test_truncated_vectors_are_the_librarys_and_scaled_again_for_cosine(
    folders: dict[str, Path], cache: Path, kind: str
) -> None:
    from sentence_transformers import SentenceTransformer

    embedder = load(folders[kind], cache, truncate_dim=8)
    model = SentenceTransformer(str(folders[kind]), device="cpu", truncate_dim=8)
    expected = model.encode_document(TEXTS, normalize_embeddings=kind == "cosine")
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(
        embedder.embed_query(TEXTS[0]),
        model.encode_query(TEXTS[0], normalize_embeddings=kind == "cosine"),
        atol=1e-5,
    )
    assert (embedder.info.dimensions, embedder.info.truncated_from) == (8, 32)
    assert "first 8 of 32" in embedder.info.note


def test_a_truncated_model_has_a_fingerprint_of_its_own_and_shares_the_export(
    folders: dict[str, Path], cache: Path
) -> None:
    whole = load(folders["cosine"], cache)
    exports = sorted((cache / "models").iterdir())
    cut = load(folders["cosine"], cache, truncate_dim=8)
    other = load(folders["cosine"], cache, truncate_dim=16)
    assert len({whole.info.fingerprint, cut.info.fingerprint, other.info.fingerprint}) == 3
    assert sorted((cache / "models").iterdir()) == exports


def test_a_truncation_beyond_the_model_changes_nothing_and_says_so(
    folders: dict[str, Path], cache: Path
) -> None:
    whole, cut = (load(folders["cosine"], cache, truncate_dim=n) for n in (0, 999))
    assert cut.info.fingerprint == whole.info.fingerprint
    assert "cuts nothing" in cut.info.note
    np.testing.assert_array_equal(cut.embed_documents(TEXTS), whole.embed_documents(TEXTS))


def test_a_truncated_model_that_normalises_stays_normalised(
    folders: dict[str, Path], cache: Path
) -> None:
    vectors = load(folders["dot-unit"], cache, truncate_dim=8).embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


# --- precision ----------------------------------------------------------------------------


def test_bfloat16_is_refused_with_the_reason_where_the_processor_lacks_it(
    folders: dict[str, Path], cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr("rag_tui.engine.precision._CPU_INFO", info)
    info.write_text("flags\t\t: fpu avx2 avx512f\n")
    with pytest.raises(ModelError, match=r"neither amx_bf16 nor avx512_bf16") as caught:
        load(folders["cosine"], cache, precision="bfloat16")
    assert "float32" in caught.value.hint
    assert cpu_has_bfloat16() is False
    info.write_text("flags\t\t: fpu avx2 amx_bf16\n")
    assert cpu_has_bfloat16() is True
    info.unlink()
    assert cpu_has_bfloat16() is None
    with pytest.raises(ModelError, match="does not tell"):
        load(folders["cosine"], cache, precision="bfloat16")


def test_bfloat16_is_stated_scaled_in_float32_and_another_fingerprint(
    folders: dict[str, Path], cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: True)
    full = load(folders["cosine"], cache)
    reduced = load(folders["cosine"], cache, precision="bfloat16")
    assert reduced.info.backend == "sentence-transformers"
    assert "reduced precision" in reduced.info.note
    assert (reduced.info.precision, full.info.precision) == ("bfloat16", "float32")
    assert reduced.info.fingerprint != full.info.fingerprint
    vectors, exact = reduced.embed_documents(TEXTS), full.embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    cosines = (vectors * exact).sum(axis=1)
    assert 0.99 < cosines.min() < 0.999999


def test_a_vector_list_of_reduced_precision_says_so(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rag_tui.engine.searching import search
    from rag_tui.engine.types import Document, SearchRequest
    from tests.engine.small_index import index_of

    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: True)
    models = Models(ModelSettings(precision="bfloat16", allow_download=False), tmp_path)
    index = index_of([Document("a.md", "A", "a dog\n\na cat", "0")])
    request = SearchRequest("dog", embedder=str(folders["cosine"]), methods=("vector",))
    (result,) = search(request, index, models)
    assert result.ranking is not None
    assert "reduced precision" in result.ranking.note


def test_bfloat16_on_the_onnx_backend_is_refused(folders: dict[str, Path], cache: Path) -> None:
    with pytest.raises(ModelError, match="bfloat16"):
        load(folders["cosine"], cache, backend="onnx", precision="bfloat16")


# --- models of other shapes -----------------------------------------------------------------


@pytest.fixture(scope="module")
def static(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Word vectors without a transformer: nothing but a table and a tokenizer."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(offline_folder(DEFAULT_EMBEDDER) / "tokenizer.json"))
    rows = np.random.default_rng(1).normal(size=(tokenizer.get_vocab_size(), 16))
    module = StaticEmbedding(tokenizer, embedding_weights=rows.astype(np.float32))
    folder = tmp_path_factory.mktemp("static")
    SentenceTransformer(modules=[module], device="cpu").save(str(folder))
    return folder


def test_word_vectors_without_a_transformer_are_loaded_and_read_everything(
    static: Path, cache: Path
) -> None:
    embedder = load(static, cache)
    expected = direct(static).encode_document(TEXTS, normalize_embeddings=True)
    np.testing.assert_allclose(embedder.embed_documents(TEXTS), expected, atol=1e-5)
    assert embedder.info.max_tokens >= 1_000_000
    assert "no fast path" in embedder.info.note
    counter = Models(ModelSettings(embedder=str(static)), cache).token_counter()
    assert counter.name.startswith("tokenizer")


def test_word_vectors_without_a_transformer_say_that_they_have_no_tokens(
    static: Path, cache: Path
) -> None:
    with pytest.raises(ModelError, match="no vectors of single tokens"):
        token_vectors(load(static, cache), ["a dog"], "query")


# --- tokens -------------------------------------------------------------------------------


def pieces(text: str, tokens: TokenVectors) -> list[str]:
    return [text[start:end] for start, end in tokens.spans]


@pytest.fixture(scope="module")
def small(folders: dict[str, Path], cache: Path) -> Embedder:
    return load(folders["cosine"], cache)


def test_every_word_piece_has_its_place_and_a_unit_vector(small: Embedder) -> None:
    text = "Unbelievable: the lockbox 🙂 is [SEP] open"
    (tokens,) = token_vectors(small, [text], "document")
    assert pieces(text, tokens) == [
        "Unbelievable", ":", "the", "lock", "box", "🙂", "is", "[SEP]", "open",
    ]  # fmt: skip
    assert tokens.vectors.shape == (9, 32)
    assert tokens.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(tokens.vectors, axis=1), 1.0, atol=1e-6)
    assert tokens.n_cut == 0


@pytest.mark.parametrize("role", ["query", "document"])
def test_token_vectors_are_the_librarys_token_embeddings_behind_the_prompt(
    folders: dict[str, Path], cache: Path, role: Any
) -> None:
    text = "The lockbox is open."
    model = direct(folders["cosine"])
    prompt = "query: " if role == "query" else "passage: "
    states = model.encode(prompt + text, output_value="token_embeddings").numpy()
    n_prompt = 2  # "query" or "passage", and the colon
    wanted = states[1 + n_prompt : -1]
    wanted = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
    for backend in ("onnx", "sentence-transformers"):
        embedder = load(folders["cosine"], cache, backend=backend)
        (tokens,) = token_vectors(embedder, [text], role)
        assert pieces(text, tokens) == ["The", "lock", "box", "is", "open", "."]
        np.testing.assert_allclose(tokens.vectors, wanted, atol=1e-5)


@pytest.mark.parametrize("backend", ["onnx", "sentence-transformers"])
def test_tokens_beyond_the_limit_are_counted_and_left_out(
    folders: dict[str, Path], cache: Path, backend: Any
) -> None:
    embedder = load(folders["cosine"], cache, backend=backend)
    text = "dog " * 100
    (tokens,) = token_vectors(embedder, [text], "document")
    read = 64 - 2 - 2  # special tokens, "passage", ":"
    assert (len(tokens.spans), tokens.n_cut) == (read, 100 - read)
    assert tokens.spans[-1][1] == read * 4 - 1


def test_hashed_words_have_the_vectors_of_their_buckets() -> None:
    embedder = HashingEmbedder()
    (tokens,) = token_vectors(embedder, ["Dog, dog"], "document")
    assert tokens.spans == ((0, 3), (5, 8))
    np.testing.assert_array_equal(tokens.vectors[0], tokens.vectors[1])
    np.testing.assert_allclose(tokens.vectors[0], embedder.embed_query("dog"))


def test_an_embedder_without_tokens_is_an_error_that_says_so() -> None:
    class Whole:
        info = HashingEmbedder().info

        def embed_query(self, text: str) -> Any:
            return HashingEmbedder().embed_query(text)

        def embed_documents(self, texts: Any, *, cancel: Any = None) -> Any:
            return HashingEmbedder().embed_documents(texts)

    with pytest.raises(ModelError, match="none for its words"):
        token_vectors(Whole(), ["a"], "query")


def test_a_truncated_embedder_shows_whole_tokens(folders: dict[str, Path], cache: Path) -> None:
    cut = load(folders["cosine"], cache, truncate_dim=8)
    assert isinstance(cut, TruncatedEmbedder)
    (tokens,) = token_vectors(cut, ["a dog"], "query")
    assert tokens.vectors.shape == (2, 32)


def test_tokens_of_an_empty_text_are_none(small: Embedder) -> None:
    assert isinstance(small, OnnxEmbedder)
    (tokens,) = token_vectors(small, [""], "document")
    assert (tokens.spans, tokens.vectors.shape) == ((), (0, 32))


def test_a_module_folder_without_weights_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    files: ModelFiles | None = None
    with pytest.raises(ModelError, match="no embedder at"):
        files = resolve(str(tmp_path), "embedder")
    assert files is None
