"""Building, refreshing, and what no accident may do to an index."""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rag_tui.engine.embedders.base import Embedder, EmbedderInfo
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.errors import BadIndexError, Cancelled, CorpusError, ModelError
from rag_tui.engine.events import CancelToken, Progress
from rag_tui.engine.indexing import IndexReady, open_index, refresh_index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import EngineSettings
from rag_tui.engine.stores import local
from tests.conftest import build

if TYPE_CHECKING:
    from rag_tui.engine.embedders.base import Vectors


class CountingEmbedder:
    """The hashing embedder, counting the texts it is given."""

    def __init__(self) -> None:
        self._inner: Embedder = HashingEmbedder()
        self.texts: list[str] = []

    @property
    def info(self) -> EmbedderInfo:
        return self._inner.info

    def embed_query(self, text: str) -> Vectors:
        return self._inner.embed_query(text)

    def embed_documents(
        self, texts: Sequence[str], *, cancel: CancelToken | None = None
    ) -> Vectors:
        self.texts.extend(texts)
        return self._inner.embed_documents(texts, cancel=cancel)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def models(hashing_settings: EngineSettings, embedder: CountingEmbedder) -> Models:
    return Models(hashing_settings.models, hashing_settings.cache_dir, embedder=embedder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(4):
        (root / f"page{i}.md").write_text(
            f"# Page {i}\n\n## One\n\nalpha {i}\n\n## Two\n\nbeta {i}\n"
        )
    return root


def test_second_run_without_changes_embeds_nothing(
    folder: Path, hashing_settings: EngineSettings, models: Models, embedder: CountingEmbedder
) -> None:
    first = build(folder, hashing_settings, models)
    assert first.n_embedded == 8
    assert len(embedder.texts) == 8
    second = build(folder, hashing_settings, models)
    assert (second.n_embedded, len(embedder.texts)) == (0, 8)
    assert (second.added, second.changed, second.deleted) == ((), (), ())
    assert second.index.chunk_ids == first.index.chunk_ids


def test_touching_a_file_embeds_nothing_and_changing_one_embeds_only_its_changed_chunk(
    folder: Path, hashing_settings: EngineSettings, models: Models, embedder: CountingEmbedder
) -> None:
    build(folder, hashing_settings, models)
    embedder.texts.clear()
    os.utime(folder / "page1.md", (1, 1))
    assert build(folder, hashing_settings, models).changed == ()
    assert embedder.texts == []
    page = folder / "page2.md"
    page.write_text(page.read_text().replace("beta 2", "gamma 2"))
    ready = build(folder, hashing_settings, models)
    assert ready.changed == ("page2.md",)
    assert embedder.texts == ["Page 2 > Two\n\ngamma 2"]


def test_a_change_that_keeps_size_and_time_stamp_is_noticed(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    build(folder, hashing_settings, models)
    page = folder / "page3.md"
    before = page.stat()
    page.write_text(page.read_text().replace("alpha", "omega"))
    os.utime(page, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert page.stat().st_size == before.st_size
    ready = build(folder, hashing_settings, models)
    assert ready.changed == ("page3.md",)
    assert any("omega 3" in chunk.text for chunk in ready.index.chunks)


def test_new_and_deleted_files_are_named_and_chunk_ids_of_others_stay(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    first = build(folder, hashing_settings, models)
    (folder / "page0.md").unlink()
    (folder / "aaa.md").write_text("# New\n\ntext\n")
    ready = build(folder, hashing_settings, models)
    assert (ready.added, ready.deleted) == (("aaa.md",), ("page0.md",))
    assert set(first.index.chunk_ids) - set(ready.index.chunk_ids) == {
        c.chunk_id for c in first.index.chunks if c.doc_id == "page0.md"
    }


def test_an_incremental_refresh_equals_a_build_from_nothing(
    folder: Path, hashing_settings: EngineSettings, models: Models, tmp_path: Path
) -> None:
    build(folder, hashing_settings, models)
    (folder / "page1.md").write_text("# Page 1\n\nother words entirely\n")
    (folder / "page2.md").unlink()
    refreshed = build(folder, hashing_settings, models).index
    clean_settings = dataclasses.replace(hashing_settings, cache_dir=tmp_path / "other")
    clean = build(folder, clean_settings, models).index
    assert refreshed.chunks == clean.chunks
    assert refreshed.documents == clean.documents
    assert refreshed.vectors is not None
    assert clean.vectors is not None
    np.testing.assert_array_equal(refreshed.vectors, clean.vectors)
    np.testing.assert_array_equal(refreshed.n_tokens, clean.n_tokens)
    assert refreshed.bm25.vocabulary == clean.bm25.vocabulary


def test_saved_and_opened_index_is_the_same(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    built = build(folder, hashing_settings, models).index
    opened = open_index(folder, hashing_settings)
    assert opened is not None
    assert opened.documents == built.documents
    assert opened.chunks == built.chunks
    assert opened.manifest == built.manifest
    assert opened.reports == built.reports
    assert opened.vectors is not None
    assert built.vectors is not None
    np.testing.assert_array_equal(opened.vectors, built.vectors)


def test_keyword_only_index_comes_before_the_complete_one(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    ready = [
        item
        for item in refresh_index(folder, hashing_settings, models)
        if isinstance(item, IndexReady)
    ]
    assert [item.is_final for item in ready] == [False, True]
    assert ready[0].index.vectors is None
    assert ready[0].index.bm25.n_chunks == 8


@pytest.mark.parametrize("damage", ["truncate", "garbage", "missing", "pointer", "manifest"])
def test_a_damaged_index_is_rebuilt_without_embedding_anything_again(
    damage: str,
    folder: Path,
    hashing_settings: EngineSettings,
    models: Models,
    embedder: CountingEmbedder,
) -> None:
    build(folder, hashing_settings, models)
    embedder.texts.clear()
    directory = local.index_dir(hashing_settings.cache_dir, folder)
    generation = directory / (directory / "CURRENT").read_text()
    if damage == "truncate":
        path = generation / "vectors.npy"
        path.write_bytes(path.read_bytes()[:-7])
    elif damage == "garbage":
        (generation / "chunks.json").write_bytes(b"\xff\xfe{]")
    elif damage == "missing":
        (generation / "documents.json").unlink()
    elif damage == "pointer":
        (directory / "CURRENT").write_bytes(b"../../etc\xff")
    else:
        (generation / "manifest.json").write_text("{}")
    assert open_index(folder, hashing_settings) is None
    ready = build(folder, hashing_settings, models)
    assert embedder.texts == []
    assert "rebuilt" in " ".join(ready.notes)
    assert open_index(folder, hashing_settings) is not None


def test_flipped_bytes_inside_the_vectors_are_noticed(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    build(folder, hashing_settings, models)
    directory = local.index_dir(hashing_settings.cache_dir, folder)
    path = directory / (directory / "CURRENT").read_text() / "vectors.npy"
    data = bytearray(path.read_bytes())
    data[-3] ^= 0xFF
    path.write_bytes(bytes(data))
    assert open_index(folder, hashing_settings) is None


def test_cancelling_keeps_the_old_index(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    old = build(folder, hashing_settings, models).index
    (folder / "page9.md").write_text("# Nine\n\nnew text\n")
    token = CancelToken()
    with pytest.raises(Cancelled):
        for item in refresh_index(folder, hashing_settings, models, cancel=token):
            if isinstance(item, Progress) and item.stage == "embed":
                token.cancel()
    opened = open_index(folder, hashing_settings)
    assert opened is not None
    assert opened.chunk_ids == old.chunk_ids


def test_a_killed_run_goes_on_where_it_stopped(
    tmp_path: Path, hashing_settings: EngineSettings
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    for i in range(200):
        (folder / f"{i:03}.md").write_text(f"# Doc {i}\n\nword{i} text\n")
    script = f"""
import os, sys
from pathlib import Path
from rag_tui.engine.embedders.hashing import HashingEmbedder
from rag_tui.engine.indexing import refresh_index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import EngineSettings, ModelSettings
class Killing:
    def __init__(self): self.inner = HashingEmbedder(); self.n = 0
    info = property(lambda self: self.inner.info)
    def embed_query(self, text): return self.inner.embed_query(text)
    def embed_documents(self, texts, *, cancel=None):
        self.n += len(texts)
        if self.n > 100: os.kill(os.getpid(), 9)
        return self.inner.embed_documents(texts, cancel=cancel)
settings = EngineSettings(
    Path({str(hashing_settings.cache_dir)!r}), models=ModelSettings(embedder="hashing")
)
models = Models(settings.models, settings.cache_dir, embedder=Killing())
for _ in refresh_index(Path({str(folder)!r}), settings, models): pass
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()
    embedder = CountingEmbedder()
    models = Models(hashing_settings.models, hashing_settings.cache_dir, embedder=embedder)
    assert open_index(folder, hashing_settings) is None
    ready = build(folder, hashing_settings, models)
    assert len(ready.index.chunks) == 200
    assert 100 <= len(embedder.texts) < 200


def _index_in_process(folder: str, cache: str, results: str) -> None:
    from rag_tui.engine.settings import ModelSettings

    settings = EngineSettings(Path(cache), models=ModelSettings(embedder="hashing"))
    ready = build(Path(folder), settings, Models(settings.models, settings.cache_dir))
    Path(results).write_text(json.dumps([len(ready.index.chunks), ready.index.vectors is not None]))


def test_two_processes_on_one_folder_both_end_with_a_whole_index(
    folder: Path, hashing_settings: EngineSettings, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("spawn")
    outputs = [tmp_path / f"out{i}" for i in range(3)]
    workers = [
        context.Process(
            target=_index_in_process,
            args=(str(folder), str(hashing_settings.cache_dir), str(output)),
        )
        for output in outputs
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [json.loads(output.read_text()) for output in outputs] == [[8, True]] * 3
    opened = open_index(folder, hashing_settings)
    assert opened is not None
    assert len(opened.chunks) == 8


def test_a_waiting_process_says_so_and_can_be_cancelled(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    import filelock

    directory = local.index_dir(hashing_settings.cache_dir, folder)
    directory.mkdir(parents=True)
    token = CancelToken()
    notes = []
    with filelock.FileLock(directory / "lock"), pytest.raises(Cancelled):
        for item in refresh_index(folder, hashing_settings, models, cancel=token):
            if isinstance(item, Progress) and item.stage == "wait":
                notes.append(item.note)
                token.cancel()
    assert notes == ["another rag-tui is indexing this folder"]


def test_opening_with_another_model_is_refused_with_the_fix_and_index_rebuilds(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    build(folder, hashing_settings, models)
    other = dataclasses.replace(
        hashing_settings,
        models=dataclasses.replace(hashing_settings.models, embedder="other/model"),
    )
    with pytest.raises(BadIndexError, match="was made with hashing") as caught:
        list(refresh_index(folder, other, models))
    assert "rag-tui index" in caught.value.hint
    assert "--embedder other/model" in caught.value.hint
    assert open_index(folder, other) is not None
    *_, ready = refresh_index(folder, other, models, rebuild=True)
    assert isinstance(ready, IndexReady)
    assert ready.index.manifest.embedder_name == "other/model"


def test_without_a_model_the_index_is_keyword_only_and_says_why(
    folder: Path, hashing_settings: EngineSettings
) -> None:
    class Broken(Models):
        def embedder(self, name: str = "") -> Embedder:
            raise ModelError("No such model.", "Install the offline extra.")

    models = Broken(hashing_settings.models, hashing_settings.cache_dir)
    ready = build(folder, hashing_settings, models)
    assert ready.is_final
    assert ready.index.vectors is None
    assert "No such model.\nInstall the offline extra." in ready.notes[0]
    healthy = Models(hashing_settings.models, hashing_settings.cache_dir)
    assert build(folder, hashing_settings, healthy).index.vectors is not None


def test_changed_chunk_settings_replace_all_chunks_and_say_so(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    (folder / "long.md").write_text("# Long\n\n" + "many words here " * 200)
    before = build(folder, hashing_settings, models).index
    smaller = dataclasses.replace(
        hashing_settings,
        chunking=dataclasses.replace(hashing_settings.chunking, size=64, overlap=0),
    )
    ready = build(folder, smaller, models)
    assert len(ready.index.chunks) > len(before.chunks)
    assert int(ready.index.n_tokens.max()) <= 64
    assert any("chunking settings" in note for note in ready.notes)


def test_missing_empty_and_unreadable_corpora_are_named_with_a_fix(
    tmp_path: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    with pytest.raises(CorpusError, match="does not exist") as missing:
        list(refresh_index(tmp_path / "nowhere", hashing_settings, models))
    assert missing.value.hint
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CorpusError, match="no files that can be indexed"):
        list(refresh_index(empty, hashing_settings, models))
    (empty / "blank.md").write_bytes(b"")
    (empty / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    with pytest.raises(CorpusError, match="None of the 2 files"):
        list(refresh_index(empty, hashing_settings, models))


def test_one_bad_file_never_stops_an_index(
    folder: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    (folder / "blank.md").write_bytes(b"")
    (folder / "picture.md").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\0")
    (folder / "latin.md").write_bytes("# Caf\xe9\n\nna\xefve\n".encode("latin-1"))
    (folder / os.fsdecode(b"bad-\xff-name.md")).write_text("# Odd\n\nodd name\n")
    ready = build(folder, hashing_settings, models)
    states = {report.path: report.state for report in ready.index.reports}
    assert states["blank.md"] == "skipped"
    assert states["picture.md"] == "skipped"
    assert states["latin.md"] == "partly"
    assert states[os.fsdecode(b"bad-\xff-name.md")] == "indexed"
    assert all(report.reason for report in ready.index.reports if report.state != "indexed")
    opened = open_index(folder, hashing_settings)
    assert opened is not None
    assert opened.documents == ready.index.documents


def test_an_unreadable_file_is_reported_as_failed(
    folder: Path,
    hashing_settings: EngineSettings,
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_bytes = Path.read_bytes

    def refuse(path: Path) -> bytes:  # root may read everything, so the refusal is made here
        if path.name == "page0.md":
            raise PermissionError(13, "Permission denied", str(path))
        return read_bytes(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    ready = build(folder, hashing_settings, models)
    states = {report.path: (report.state, report.reason) for report in ready.index.reports}
    assert states["page0.md"] == ("failed", "cannot be read: Permission denied")
    assert len(ready.index.documents) == 3


def test_an_index_folder_that_cannot_be_written_is_named_with_the_fix(
    folder: Path, hashing_settings: EngineSettings, models: Models, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    settings = dataclasses.replace(hashing_settings, cache_dir=blocked)
    with pytest.raises(BadIndexError) as caught:
        build(folder, settings, models)
    assert "RAG_TUI_CACHE_DIR" in caught.value.hint


def test_real_documentation_is_indexed_and_touching_one_file_embeds_only_that_file(
    shared: Path, tmp_path: Path, hashing_settings: EngineSettings, models: Models
) -> None:
    source = shared / "data/docs/fastapi-en"
    if not source.is_dir():
        pytest.skip("the fastapi documentation is not in the shared data")
    folder = tmp_path / "fastapi"
    shutil.copytree(source, folder)
    first = build(folder, hashing_settings, models)
    assert len(first.index.documents) == 155
    assert {report.state for report in first.index.reports} == {"indexed"}
    for chunk in first.index.chunks:
        document = first.index.document_of[chunk.doc_id]
        assert document.text[chunk.start : chunk.end] == chunk.text
    assert build(folder, hashing_settings, models).n_embedded == 0
    page = folder / "tutorial" / "cors.md"
    page.chmod(0o644)
    page.write_text(page.read_text() + "\nOne more sentence about origins.\n")
    second = build(folder, hashing_settings, models)
    assert second.changed == ("tutorial/cors.md",)
    assert second.n_embedded == 1


def test_a_document_that_cannot_be_cut_is_reported_and_the_others_are_indexed(
    folder: Path,
    hashing_settings: EngineSettings,
    models: Models,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from rag_tui.engine.chunkers.headings import HeadingsChunker
    from rag_tui.engine.types import Chunk, Document

    chunk = HeadingsChunker.chunk

    def fail(self: HeadingsChunker, document: Document) -> tuple[Chunk, ...]:
        if document.doc_id == "page1.md":
            raise ValueError("a fault [/] of ours")
        return chunk(self, document)

    monkeypatch.setattr(HeadingsChunker, "chunk", fail)
    index = build(folder, hashing_settings, models).index
    reports = {report.path: report for report in index.reports}
    assert reports["page1.md"].state == "failed"
    assert reports["page1.md"].reason == "cannot be cut: ValueError: a fault [/] of ours"
    assert len(index.chunks) == 6


def test_damaged_rows_of_the_embedding_cache_are_made_again(
    folder: Path, hashing_settings: EngineSettings, models: Models, embedder: CountingEmbedder
) -> None:
    import sqlite3

    first = build(folder, hashing_settings, models).index
    assert first.vectors is not None
    with sqlite3.connect(hashing_settings.cache_dir / "embeddings.sqlite") as cache:
        blobs = [bytes(400), bytes(first.vectors.shape[1] * 4), b"\xff" * 4096]
        keys = cache.execute("SELECT text_hash FROM vectors ORDER BY text_hash LIMIT 3")
        for (key,), blob in zip(keys.fetchall(), blobs, strict=True):
            cache.execute("UPDATE vectors SET vector = ? WHERE text_hash = ?", (blob, key))
    shutil.rmtree(local.index_dir(hashing_settings.cache_dir, folder))
    embedder.texts.clear()
    again = build(folder, hashing_settings, models).index
    assert len(embedder.texts) == 3
    assert again.vectors is not None
    np.testing.assert_allclose(again.vectors, first.vectors, atol=1e-6)
