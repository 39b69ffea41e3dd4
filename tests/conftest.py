"""Shared fixtures: an isolated home for every test, the shared data, real models, real indexes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_HOME"] = tempfile.mkdtemp(prefix="rag-tui-no-hub-")
os.environ["HF_HUB_CACHE"] = os.environ["HF_HOME"]
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.null.Keyring"
os.environ["TEXTUAL_ANIMATIONS"] = "none"
os.environ.pop("NO_COLOR", None)

import pytest

from rag_tui.engine.errors import RagTuiError
from rag_tui.engine.events import Progress
from rag_tui.engine.index import Index
from rag_tui.engine.indexing import IndexReady, refresh_index
from rag_tui.engine.loading import Models
from rag_tui.engine.settings import EngineSettings, ModelSettings

ROOT = Path(__file__).parent.parent
CORPUS = ROOT / "corpus"
SHARED = ROOT.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of shared cases and data that may lie beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("the shared cases and data are not beside this checkout")
    return SHARED


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The demo corpus."""
    return CORPUS


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache folder for the whole run, so that the real model is exported once."""
    return tmp_path_factory.mktemp("model-cache")


@pytest.fixture(scope="session")
def models(model_cache: Path) -> Models:
    """The real MiniLM and the real cross-encoder of the ``offline`` extra."""
    return Models(ModelSettings(allow_download=False), model_cache)


@pytest.fixture(autouse=True)
def _isolated_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the developer's own settings, cache or key."""
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    for name in list(os.environ):
        if name.startswith(("RAG_TUI_", "ANTHROPIC_", "VOYAGE_")):
            monkeypatch.delenv(name)


def build(folder: Path, settings: EngineSettings, models: Models) -> IndexReady:
    """Refresh an index to its end."""
    ready: IndexReady | None = None
    for item in refresh_index(folder, settings, models):
        if not isinstance(item, Progress):
            ready = item
    if ready is None:
        raise RagTuiError("no index")
    return ready


@pytest.fixture(scope="session")
def guesthouse(model_cache: Path, models: Models) -> Index:
    """The demo corpus, indexed with the real model."""
    settings = EngineSettings(cache_dir=model_cache, models=ModelSettings(allow_download=False))
    return build(CORPUS, settings, models).index


@pytest.fixture
def hashing_settings(tmp_path: Path) -> EngineSettings:
    """Settings with the hashing embedder, for tests of everything but the model."""
    return EngineSettings(
        cache_dir=tmp_path / "cache",
        models=ModelSettings(embedder="hashing", allow_download=False),
    )


@pytest.fixture
def hashing_models(hashing_settings: EngineSettings) -> Models:
    """Models that go with `hashing_settings`; the reranker is the real one, if it is used."""
    return Models(hashing_settings.models, hashing_settings.cache_dir)
