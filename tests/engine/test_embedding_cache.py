from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from rag_tui.engine.embedding_cache import EmbeddingCache
from rag_tui.engine.ids import text_hash


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "embeddings.sqlite"


def vectors(n: int, *, seed: int = 0, dim: int = 8) -> dict[str, np.ndarray]:
    rows = np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)
    return {text_hash(f"{seed}/{i}"): row for i, row in enumerate(rows)}


def test_vectors_come_back_bit_for_bit_as_float32(path: Path) -> None:
    kept = vectors(1203)
    EmbeddingCache(path).put_many("model", kept)
    found = EmbeddingCache(path).get_many("model", list(kept))
    assert found.keys() == kept.keys()
    for key, vector in kept.items():
        assert found[key].dtype == np.float32
        np.testing.assert_array_equal(found[key], vector)


def test_unknown_texts_are_absent(path: Path) -> None:
    cache = EmbeddingCache(path)
    kept = vectors(2)
    cache.put_many("model", kept)
    assert cache.get_many("model", ["nowhere", *kept]).keys() == kept.keys()
    assert cache.get_many("model", []) == {}


def test_models_do_not_see_each_others_vectors(path: Path) -> None:
    cache = EmbeddingCache(path)
    kept = vectors(2)
    cache.put_many("model a", kept)
    assert cache.get_many("model b", list(kept)) == {}


def test_a_second_vector_for_a_text_replaces_the_first(path: Path) -> None:
    cache = EmbeddingCache(path)
    cache.put_many("model", {"h": np.zeros(3, dtype=np.float32)})
    cache.put_many("model", {"h": np.ones(3, dtype=np.float32)})
    assert cache.get_many("model", ["h"])["h"].tolist() == [1, 1, 1]


def test_what_comes_back_can_be_changed_without_changing_the_cache(path: Path) -> None:
    cache = EmbeddingCache(path)
    cache.put_many("model", {"h": np.ones(3, dtype=np.float32)})
    cache.get_many("model", ["h"])["h"][:] = 9
    assert cache.get_many("model", ["h"])["h"].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    "content", [b"this is no database" * 100, b"SQLite format 3\0" + b"x" * 900]
)
def test_a_damaged_file_is_set_aside_and_begun_anew(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    cache = EmbeddingCache(path)
    kept = vectors(3)
    assert cache.get_many("model", list(kept)) == {}
    assert "set aside" in cache.problem
    cache.put_many("model", kept)
    assert cache.get_many("model", list(kept)).keys() == kept.keys()
    (aside,) = path.parent.glob("*.damaged-*")
    assert aside.read_bytes() == content


def test_pages_overwritten_in_the_middle_do_not_crash(path: Path) -> None:
    cache = EmbeddingCache(path)
    kept = vectors(400, dim=64)
    cache.put_many("model", kept)
    content = bytearray(path.read_bytes())
    middle = slice(4096, len(content) - 4096)
    content[middle] = b"\xff" * len(content[middle])
    path.write_bytes(bytes(content))
    found = cache.get_many("model", list(kept))
    assert all(np.array_equal(found[key], kept[key]) for key in found)
    cache.put_many("model", kept)
    assert cache.get_many("model", list(kept)).keys() == kept.keys()


def test_where_nothing_can_be_written_nothing_is_kept_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder should be")
    cache = EmbeddingCache(tmp_path / "file" / "embeddings.sqlite")
    cache.put_many("model", vectors(1))
    assert cache.get_many("model", list(vectors(1))) == {}
    assert "file" in cache.problem


def test_a_foreign_table_is_reported_and_left_alone(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE vectors (something TEXT)")
        connection.execute("INSERT INTO vectors VALUES ('theirs')")
    connection.close()
    cache = EmbeddingCache(path)
    assert cache.get_many("model", ["h"]) == {}
    assert "no such column" in cache.problem
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT something FROM vectors").fetchall() == [("theirs",)]
    connection.close()


def test_threads_share_one_cache(path: Path) -> None:
    cache = EmbeddingCache(path)
    sets = [vectors(50, seed=seed) for seed in range(6)]
    threads = [Thread(target=cache.put_many, args=("model", kept)) for kept in sets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = {key for kept in sets for key in kept}
    assert cache.get_many("model", sorted(everything)).keys() == everything
    assert cache.problem == ""


def _write_from_a_process(path: Path, seed: int) -> None:
    cache = EmbeddingCache(path)
    for part in range(10):
        cache.put_many("model", vectors(20, seed=seed * 100 + part))
    if cache.problem:
        raise SystemExit(cache.problem)


def test_two_processes_write_at_once_and_nothing_is_lost(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [
        context.Process(target=_write_from_a_process, args=(path, seed)) for seed in (1, 2)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    keys = [key for s in (1, 2) for part in range(10) for key in vectors(20, seed=s * 100 + part)]
    assert len(EmbeddingCache(path).get_many("model", keys)) == 400
