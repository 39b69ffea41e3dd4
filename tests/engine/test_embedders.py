from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag_tui.engine.embedders.base import Embedder
from rag_tui.engine.embedders.export import export_folder, open_export
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.embedders.load import load_embedder
from rag_tui.engine.embedders.onnx import BATCH_TOKENS, OnnxEmbedder, _batches
from rag_tui.engine.embedders.profile import read_profile
from rag_tui.engine.embedders.sentence_transformer import (
    SentenceTransformerEmbedder,
    is_same_direction,
)
from rag_tui.engine.embedders.unit import unit_rows
from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.models import ModelFiles, resolve
from rag_tui.engine.settings import DEFAULT_EMBEDDER
from tests.engine.test_models import ROOT, offline_folder

QUESTION = "Can I bring my dog?"
PASSAGE = (
    "House rules > Pets\n\nDogs are welcome in the garden rooms for a small cleaning fee. "
    "Please tell us before you arrive, and keep them off the beds."
)
TEXTS = [
    PASSAGE,
    "a",
    "",
    "   \n\t ",
    "早上好，请问几点可以办理入住？",
    "Wi-Fi: name `garden`, key `0x1F-bee`; naïve café 🙂",
    "The kettle is in the cupboard above the sink, next to the tea. " * 60,
    *(f"Sentence number {i} of a longer text. " * (i % 13 + 1) for i in range(40)),
]


@pytest.fixture(scope="module")
def files() -> ModelFiles:
    offline_folder(DEFAULT_EMBEDDER)
    return resolve(DEFAULT_EMBEDDER, "embedder", allow_download=False)


@pytest.fixture(scope="module")
def fast(files: ModelFiles, model_cache: Path) -> Embedder:
    return load_embedder(files, model_cache)


@pytest.fixture(scope="module")
def reference() -> Any:
    """The library called directly, as its own documentation shows."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(offline_folder(DEFAULT_EMBEDDER)), device="cpu")


def in_new_process(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120
    )


# --- the real model -----------------------------------------------------------------------


def test_vectors_are_those_of_sentence_transformers(fast: Embedder, reference: Any) -> None:
    documents = reference.encode_document(TEXTS, normalize_embeddings=True)
    question = reference.encode_query(QUESTION, normalize_embeddings=True)
    vectors = fast.embed_documents(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(vectors, documents, atol=1e-5)
    np.testing.assert_allclose(fast.embed_query(QUESTION), question, atol=1e-5)


def test_the_cosine_of_question_and_passage_is_the_models_to_three_digits(
    fast: Embedder, reference: Any
) -> None:
    from sentence_transformers.util import cos_sim

    expected = float(cos_sim(reference.encode(QUESTION), reference.encode(PASSAGE)))
    cosine = float(fast.embed_query(QUESTION) @ fast.embed_documents([PASSAGE])[0])
    assert round(cosine, 3) == round(expected, 3)
    assert cosine > 0.3


def test_the_library_backend_gives_the_same_vectors_under_the_same_fingerprint(
    fast: Embedder, files: ModelFiles, tmp_path: Path
) -> None:
    slow = load_embedder(files, tmp_path, backend="sentence-transformers")
    assert slow.info.backend == "sentence-transformers"
    assert fast.info.backend == "onnxruntime float32"
    assert slow.info.fingerprint == fast.info.fingerprint
    assert slow.info.dimensions == fast.info.dimensions == 384
    np.testing.assert_allclose(slow.embed_documents(TEXTS), fast.embed_documents(TEXTS), atol=1e-5)
    np.testing.assert_allclose(slow.embed_query(QUESTION), fast.embed_query(QUESTION), atol=1e-5)


def test_the_info_says_what_runs(fast: Embedder, files: ModelFiles) -> None:
    assert fast.info.name == DEFAULT_EMBEDDER
    assert fast.info.max_tokens == 256
    assert fast.info.source == files.source
    assert fast.info.weights_sha256 == files.sha256
    assert fast.info.note == ""


def test_every_vector_has_norm_one_and_a_text_is_most_like_itself(fast: Embedder) -> None:
    vectors = fast.embed_documents(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    assert float(fast.embed_query(PASSAGE) @ vectors[0]) == pytest.approx(1.0, abs=1e-5)


def test_results_stand_in_the_order_of_the_texts(fast: Embedder) -> None:
    together = fast.embed_documents(TEXTS)
    alone = np.stack([fast.embed_documents([text])[0] for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_no_texts_give_no_vectors(fast: Embedder) -> None:
    assert fast.embed_documents([]).shape == (0, 384)


def test_what_lies_beyond_the_limit_changes_nothing(fast: Embedder) -> None:
    start = "dog " * 254  # 256 less the two special tokens
    a, b = fast.embed_documents([start + "lockbox", start + "breakfast and much more"])
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_lone_surrogate_is_embedded_instead_of_raised(fast: Embedder) -> None:
    assert np.isfinite(fast.embed_documents(["caf\udce9"])).all()
    assert np.isfinite(fast.embed_query("caf\udce9")).all()


def test_cancelling_stops_before_the_next_batch(
    fast: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(fast, OnnxEmbedder)
    cancel = CancelToken()
    original: Callable[..., Any] = fast._run
    calls: list[int] = []

    def run_and_cancel(session: Any, encodings: Any) -> Any:
        calls.append(len(encodings))
        cancel.cancel()
        return original(session, encodings)

    monkeypatch.setattr(fast, "_run", run_and_cancel)
    with pytest.raises(Cancelled):
        fast.embed_documents(TEXTS, cancel=cancel)
    assert len(calls) == 1


def test_a_model_that_gives_nan_is_refused_with_the_index_of_the_text(
    fast: Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert isinstance(fast, OnnxEmbedder)
    monkeypatch.setattr(fast, "_run", lambda _, batch: np.full((len(batch), 384), np.nan))
    with pytest.raises(ModelError, match="NaN or infinity for text 0: 'ok'"):
        fast.embed_documents(["ok", "fine"])
    with pytest.raises(ModelError, match="NaN"):
        fast.embed_query("ok")


# --- starts -------------------------------------------------------------------------------


def test_a_second_start_imports_neither_torch_nor_sentence_transformers(
    fast: Embedder, model_cache: Path
) -> None:
    done = in_new_process(
        "import sys, json\n"
        "from pathlib import Path\n"
        "from rag_tui.engine.loading import Models\n"
        "from rag_tui.engine.settings import ModelSettings\n"
        f"models = Models(ModelSettings(allow_download=False), Path({str(model_cache)!r}))\n"
        f"vector = models.embed_query({QUESTION!r})\n"
        "models.token_counter().count(['a'])\n"
        "bad = {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
        "print(json.dumps([sorted(bad), vector.tolist()]))\n"
    )
    assert done.stderr == ""
    bad, vector = json.loads(done.stdout)
    assert bad == []
    np.testing.assert_allclose(vector, fast.embed_query(QUESTION), atol=1e-6)


def test_a_first_start_prints_nothing_and_reports_what_it_does(tmp_path: Path) -> None:
    offline_folder(DEFAULT_EMBEDDER)
    done = in_new_process(
        "import sys\n"
        "from pathlib import Path\n"
        "from rag_tui.engine.loading import Models\n"
        "from rag_tui.engine.settings import ModelSettings\n"
        "notes = []\n"
        f"models = Models(ModelSettings(allow_download=False), Path({str(tmp_path)!r}),\n"
        "                report=lambda progress: notes.append(progress.note))\n"
        "models.embedder().embed_documents(['a text'])\n"
        "assert any('loading' in note for note in notes), notes\n"
        "assert 'torch' in sys.modules\n"
        "assert models.embedder().info.backend == 'onnxruntime float32'\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_export_that_no_longer_gives_true_vectors_is_thrown_away(
    fast: Embedder, files: ModelFiles, model_cache: Path, tmp_path: Path
) -> None:
    profile = read_profile(files)
    made = export_folder(files, profile, model_cache)
    copy = export_folder(files, profile, tmp_path)
    copy.mkdir(parents=True)
    for path in made.iterdir():
        (copy / path.name).symlink_to(path)
    assert open_export(files, profile, tmp_path) is not None
    (copy / "reference.npy").unlink()
    np.save(copy / "reference.npy", -np.load(made / "reference.npy"))
    assert open_export(files, profile, tmp_path) is None
    assert not copy.exists()
    assert made.exists()


def test_a_damaged_export_is_thrown_away(
    fast: Embedder, files: ModelFiles, model_cache: Path, tmp_path: Path
) -> None:
    profile = read_profile(files)
    made = export_folder(files, profile, model_cache)
    copy = export_folder(files, profile, tmp_path)
    copy.mkdir(parents=True)
    for path in made.iterdir():
        (copy / path.name).symlink_to(path)
    (copy / "model.onnx").unlink()
    (copy / "model.onnx").write_bytes(b"cut")
    assert open_export(files, profile, tmp_path) is None
    assert not copy.exists()


def test_an_export_leaves_no_temporary_folder(fast: Embedder, model_cache: Path) -> None:
    assert [path.name for path in (model_cache / "models").iterdir() if path.is_dir()]
    assert not list((model_cache / "models").glob(".new-*"))


def test_a_folder_that_is_no_model_is_an_error_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "model.safetensors").write_bytes(b"nonsense")
    files = resolve(str(tmp_path), "embedder")
    with pytest.raises(ModelError, match="cannot be loaded") as caught:
        load_embedder(files, tmp_path / "cache")
    assert str(tmp_path) in caught.value.message


def test_a_cache_that_cannot_be_written_only_costs_the_fast_path(
    files: ModelFiles, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("a file where a folder should be")
    embedder = load_embedder(files, tmp_path / "cache")
    assert embedder.info.backend == "sentence-transformers"
    assert "no fast path" in embedder.info.note
    assert embedder.embed_query(QUESTION).shape == (384,)


def test_an_export_with_other_vectors_is_not_used(
    files: ModelFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., Any] = OnnxEmbedder._run

    def slightly_wrong(self: OnnxEmbedder, session: Any, encodings: Any) -> Any:
        raw = original(self, session, encodings)
        raw[:, 0] += 1e-3 * np.linalg.norm(raw, axis=1)
        return raw

    monkeypatch.setattr(OnnxEmbedder, "_run", slightly_wrong)
    embedder = load_embedder(files, tmp_path)
    assert embedder.info.backend == "sentence-transformers"
    assert "vectors differ by" in embedder.info.note
    assert [path.name for path in (tmp_path / "models").iterdir() if path.is_dir()] == []


def test_the_onnx_backend_on_another_device_is_refused(files: ModelFiles, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="runs on the CPU"):
        load_embedder(files, tmp_path, backend="onnx", device="cuda")


# --- prompts, pooling, limits -------------------------------------------------------------


def variant(folder: Path, changes: dict[str, object]) -> Path:
    """The real MiniLM with other settings around the same weights."""
    original = offline_folder(DEFAULT_EMBEDDER)
    for path in original.rglob("*"):
        target = folder / path.relative_to(original)
        if path.is_file() and path.relative_to(original).as_posix() not in changes:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to(path)
    for name, content in changes.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    return folder


def test_another_pooling_and_prompts_for_both_roles_survive_the_export(tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    folder = variant(
        tmp_path / "model",
        {
            "1_Pooling/config.json": {
                "word_embedding_dimension": 384,
                "pooling_mode_cls_token": True,
                "pooling_mode_mean_tokens": False,
            },
            "config_sentence_transformers.json": {
                "prompts": {"query": "query: ", "passage": "passage: "}
            },
            "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
        },
    )
    files = resolve(str(folder), "embedder")
    embedder = load_embedder(files, tmp_path / "cache", backend="onnx")
    direct = SentenceTransformer(str(folder), device="cpu")
    texts = [PASSAGE, "a", "The kettle is in the cupboard. " * 30]
    expected = direct.encode([f"passage: {text}" for text in texts], normalize_embeddings=True)
    question = direct.encode(f"query: {QUESTION}", normalize_embeddings=True)
    np.testing.assert_allclose(embedder.embed_documents(texts), expected, atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query(QUESTION), question, atol=1e-5)
    assert (embedder.info.query_prompt, embedder.info.document_prompt) == ("query: ", "passage: ")
    assert embedder.info.max_tokens == 32


def test_a_model_that_cannot_be_exported_says_so_and_still_answers(tmp_path: Path) -> None:
    folder = variant(
        tmp_path / "model",
        {
            "1_Pooling/config.json": {
                "word_embedding_dimension": 384,
                "pooling_mode_max_tokens": True,
            }
        },
    )
    files = resolve(str(folder), "embedder")
    embedder = load_embedder(files, tmp_path / "cache")
    assert embedder.info.backend == "sentence-transformers"
    assert "no fast path" in embedder.info.note
    assert embedder.embed_query(QUESTION).shape == (384,)
    with pytest.raises(ModelError, match="cannot run on the onnx backend"):
        load_embedder(files, tmp_path / "cache", backend="onnx")


@pytest.mark.parametrize(
    "changes",
    [
        {"config_sentence_transformers.json": {"prompts": {"query": "query: "}}},
        {"sentence_bert_config.json": {"max_seq_length": 128}},
        {"1_Pooling/config.json": {"pooling_mode": "cls"}},
    ],
)
def test_whatever_changes_the_vectors_changes_the_fingerprint(
    files: ModelFiles, tmp_path: Path, changes: dict[str, object]
) -> None:
    changed = resolve(str(variant(tmp_path, changes)), "embedder")
    assert changed.sha256 == files.sha256
    before = read_profile(files).fingerprint(files.sha256)
    assert read_profile(changed).fingerprint(changed.sha256) != before


def test_the_fingerprint_does_not_depend_on_where_the_model_lies(
    files: ModelFiles, tmp_path: Path
) -> None:
    moved = resolve(str(variant(tmp_path, {})), "embedder")
    assert read_profile(moved).fingerprint(moved.sha256) == read_profile(files).fingerprint(
        files.sha256
    )


def test_a_model_without_a_limit_of_its_own_takes_the_tokenizers_or_the_positions(
    tmp_path: Path,
) -> None:
    folder = variant(tmp_path, {"sentence_bert_config.json": {}})
    assert read_profile(resolve(str(folder), "embedder")).max_tokens == 512


# --- parts --------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_number_is_refused_with_the_index_and_the_text(bad: float) -> None:
    raw = np.ones((3, 4), dtype=np.float32)
    raw[1, 2] = bad
    with pytest.raises(ModelError, match="m gave a vector with NaN or infinity for text 1: 'two'"):
        unit_rows(raw, ["one", "two", "three"], model="m")


def test_a_zero_vector_is_refused() -> None:
    with pytest.raises(ModelError, match="zero vector for text 0"):
        unit_rows(np.zeros((1, 4), dtype=np.float32), ["one"], model="m")


def test_vectors_are_scaled_to_norm_one_without_touching_the_input() -> None:
    raw = np.array([[3.0, 4.0]], dtype=np.float32)
    np.testing.assert_allclose(unit_rows(raw, ["t"], model="m"), [[0.6, 0.8]])
    assert raw.tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ([[1.0, 0.0], [0.0, 1.0]], True),
        ([[0.9999, 0.0141], [0.0, 1.0]], True),
        ([[1.0, 0.0], [0.1, 0.995]], False),
        ([[1.0, 0.0], [np.nan, 1.0]], False),
    ],
)
def test_a_device_is_trusted_only_when_every_vector_points_the_same_way(
    other: list[list[float]], expected: bool
) -> None:
    assert is_same_direction(np.eye(2), np.array(other)) is expected


class OnBrokenDevice:
    """A loaded model on a device of which this machine has none: every second vector is NaN."""

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SentenceTransformer

        self._real = SentenceTransformer(str(folder), device="cpu")
        self.device = SimpleNamespace(type="mps")

    def to(self, device: Any) -> None:
        self.device = SimpleNamespace(type=device) if isinstance(device, str) else device

    def encode_document(self, texts: list[str], **settings: Any) -> Any:
        vectors = self._real.encode_document(texts, **settings)
        if self.device.type == "mps":
            vectors[1::2] = np.nan
        return vectors


def test_a_device_that_gives_nan_is_left_for_the_cpu(
    files: ModelFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rag_tui.engine.embedders.sentence_transformer._load",
        lambda files, *_: OnBrokenDevice(files.folder),
    )
    embedder = SentenceTransformerEmbedder(files, read_profile(files), device="mps")
    assert embedder.info.device == "cpu"
    assert "gives other vectors for this model" in embedder.info.note
    assert np.isfinite(embedder.embed_documents(["one", "two"])).all()


def test_batches_hold_every_row_once_and_stay_within_the_cap() -> None:
    lengths = [3, 256, 0, 17, 256, 90, 600, 1, 1]
    batches = list(_batches(lengths))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[row] for row in batch)
        assert padded <= BATCH_TOKENS or len(batch) == 1


def test_hashing_is_deterministic_and_says_that_it_is_no_model() -> None:
    one, other = HashingEmbedder(), HashingEmbedder()
    np.testing.assert_array_equal(one.embed_query(PASSAGE), other.embed_documents([PASSAGE])[0])
    assert one.info.fingerprint == other.info.fingerprint
    assert HashingEmbedder(dimensions=64).info.fingerprint != one.info.fingerprint
    assert "not a language model" in one.info.note


def test_hashed_texts_are_alike_when_they_share_words() -> None:
    embedder = HashingEmbedder()
    dog, dogs, wifi = embedder.embed_documents(["the dog barks", "dog", "password"])
    assert float(dog @ dogs) == pytest.approx(1 / np.sqrt(3), abs=1e-6)
    assert float(dog @ wifi) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("text", ["", " \n", "...", "\udce9", "早上好"])
def test_hashing_gives_a_unit_vector_for_any_text(text: str) -> None:
    assert np.linalg.norm(HashingEmbedder().embed_query(text)) == pytest.approx(1.0)


def test_hashing_can_be_cancelled() -> None:
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        HashingEmbedder().embed_documents(["a"], cancel=cancel)


def test_loading_an_existing_export_reports_nothing(
    fast: Embedder, files: ModelFiles, model_cache: Path
) -> None:
    reports: list[Progress] = []
    load_embedder(files, model_cache, report=reports.append)
    assert reports == []
