"""One validated settings tree: defaults < user file < project file < environment < flags.

Every value that is refused is named with where it stands, the rule and the fix.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import platformdirs
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from rag_tui.engine.chunkers.base import ChunkingSettings, SizeUnit, Strategy
from rag_tui.engine.corpus_facts import Prices
from rag_tui.engine.documents.settings import MAX_BYTES, LoadSettings
from rag_tui.engine.errors import UsageError
from rag_tui.engine.knobs import make_column
from rag_tui.engine.settings import (
    DEFAULT_ANSWER_MODEL,
    DEFAULT_EMBEDDER,
    DEFAULT_RERANKER,
    AnswerSettings,
    Effort,
    EngineSettings,
    ModelSettings,
)
from rag_tui.engine.types import (
    DEFAULT_COLUMNS,
    MAX_COLUMNS,
    BM25Params,
    BM25Variant,
    PostSteps,
    PromptOrder,
    SearchRequest,
)

PROJECT_FILE = "rag-tui.toml"
ENV_PREFIX = "RAG_TUI_"
CACHE_ENV = "RAG_TUI_CACHE_DIR"
CONFIG_ENV = "RAG_TUI_CONFIG"

_NOT_IN_PROJECT = {
    ("answer", "base_url"),
    ("answer", "provider"),
    ("models", "allow_download"),
    ("models", "voyage_base_url"),
    ("loading", "outside_links"),
    ("loading", "pdf_passwords"),
}
"""A folder of documents may come from anywhere: it must not decide where a key is sent."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LoadingSection(_Section):
    """``[loading]``: which files are read, and how."""

    include: tuple[str, ...] = ()
    """Only files that match one of these globs, whatever their suffix. Empty: all known types."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders that are left out."""
    gitignore: bool = True
    """Leave out what ``.gitignore`` files name."""
    hidden: bool = False
    """Look into files and folders whose name begins with a dot."""
    outside_links: bool = False
    """Follow links that lead out of the folder. Not in project files."""
    max_bytes: int = Field(default=MAX_BYTES, ge=1)
    """Larger files are skipped by name."""
    timeout_s: float = Field(default=20.0, gt=0, allow_inf_nan=False)
    """Seconds after which the conversion of one file is given up."""
    json_text_fields: tuple[str, ...] = ()
    """Fields of a JSON record that make its text. Empty: all of it."""
    json_metadata_fields: tuple[str, ...] = ()
    """Fields of a JSON record that become metadata; each record is a document then."""
    json_id_field: str = ""
    """Field that names a record; each record is a document ``file#id`` then."""
    pdf_passwords: tuple[str, ...] = Field(default=(), repr=False)
    """Tried in turn on encrypted PDF files. Not in project files."""


class ChunkingSection(_Section):
    """``[chunking]``: how documents are cut."""

    strategy: Strategy = "headings"
    """``headings`` (sections), ``recursive``, ``sentences``, ``words``, ``tokens``, ``page``,
    ``whole``, ``semantic``, ``chonkie`` or ``semchunk``."""
    size: int = Field(default=256, ge=1)
    """Longest chunk in ``unit``; in tokens, context and special tokens included."""
    overlap: int = Field(default=32, ge=0)
    """Units that neighbouring windows of one long section share."""
    unit: SizeUnit = "tokens"
    """``tokens`` of the embedding model, ``words`` or ``characters``."""
    situations: bool = False
    """Whether chunks carry what ``rag-tui contextualise`` wrote for them."""

    @model_validator(mode="after")
    def _overlap_below_size(self) -> ChunkingSection:
        if self.overlap >= self.size:
            raise ValueError(
                f"overlap must be smaller than size (got overlap {self.overlap} >= "
                f"size {self.size})"
            )
        return self


class ModelsSection(_Section):
    """``[models]``: which models, and how they may be found."""

    embedder: str = DEFAULT_EMBEDDER
    """A name on the hub, a local folder, ``voyage``, ``voyage/MODEL``, or ``hashing`` (no real
    model)."""
    reranker: str = DEFAULT_RERANKER
    """A name on the hub, a local folder, ``late_interaction``, ``voyage`` or ``voyage/MODEL``."""
    backend: Literal["auto", "onnx", "sentence-transformers"] = "auto"
    """``auto`` takes the verified float32 export when there is one."""
    device: str = "cpu"
    """For sentence-transformers: ``cpu``, ``cuda``, ``mps`` or ``auto``."""
    allow_download: bool = True
    """Whether a model that is not on this machine may be fetched. Not in project files."""
    truncate_dim: int = Field(default=0, ge=0)
    """So many numbers of each vector are kept (Matryoshka models); 0: all."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """``bfloat16``: faster and less exact, through torch, on processors that have it."""
    voyage_base_url: str = ""
    """Another server that speaks the Voyage API. Not in project files."""


class SearchSection(_Section):
    """``[search]``: rows and candidates."""

    top_k: int = Field(default=5, ge=1)
    """Rows shown."""
    depth: int = Field(default=50, ge=1)
    """Candidates fetched per retriever; never less than top_k."""
    rrf_k: float = Field(default=60.0, ge=0, allow_inf_nan=False)
    """The constant of reciprocal rank fusion."""
    fusion: Literal["rrf", "minmax", "zscore"] = "rrf"
    """How the lists are joined: by ranks, or a weighted sum of scores after min-max or z-score."""
    weight_vector: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """What the vector list counts in the fusion."""
    weight_bm25: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    """What the BM25 list counts in the fusion."""
    rerank: bool = True
    """Whether the reranker runs."""
    rerank_depth: int = Field(default=20, ge=1)
    """How many rows it reads."""
    rerank_from: Literal["hybrid", "vector", "bm25"] = "hybrid"
    """The list whose first rows it reads."""
    reranker: str = ""
    """Another reranker than ``models.reranker``: a name, a path, ``late_interaction`` or
    ``voyage``."""
    rerank_scale: Literal["logit", "sigmoid"] = "logit"
    """What the reranked list shows; both have the same order."""
    embedder: str = ""
    """Another embedder than the index's for the vector list; its vectors are made when wanted."""

    @model_validator(mode="after")
    def _depth_holds_top_k(self) -> SearchSection:
        if self.top_k > self.depth:
            raise ValueError(
                f"top_k must not be larger than depth (got top_k {self.top_k} > depth {self.depth})"
            )
        return self


def _off(value: object) -> object:
    """``"off"`` as the None that TOML cannot say."""
    return None if value == "off" else value


_OrOff = Annotated[float | None, BeforeValidator(_off)]


class BM25Section(_Section):
    """``[bm25]``: the lexical scorer."""

    variant: BM25Variant = "lucene"
    """``lucene`` (idf always positive), ``okapi`` (as rank_bm25, with its epsilon floor),
    ``robertson``, ``atire``, ``bm25l`` or ``bm25plus``."""
    k1: float = Field(default=1.5, ge=0, allow_inf_nan=False)
    """How soon more of the same word stops counting."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How much long chunks are held back: 0 not at all, 1 fully."""
    delta: _OrOff = Field(default=None, ge=0, allow_inf_nan=False)
    """Only ``bm25l`` and ``bm25plus``; unset: the papers' values, 0.5 and 1."""
    epsilon: float = Field(default=0.25, ge=0, allow_inf_nan=False)
    """Only ``okapi``: floor of a negative idf, as a share of the mean idf."""
    analyzer: str = "words"
    """How text becomes words: ``words``, ``english``, ``code``, ``cjk``, or a Snowball language."""
    backend: Literal["own", "rank_bm25"] = "own"
    """``rank_bm25`` runs that library itself, slower, with the same numbers."""


class PostSection(_Section):
    """``[post]``: steps after ranking, in this order; all off by default."""

    min_vector: _OrOff = Field(default=None, allow_inf_nan=False)
    """Drop vector rows that score less."""
    min_bm25: _OrOff = Field(default=None, allow_inf_nan=False)
    """Drop BM25 rows that score less."""
    min_hybrid: _OrOff = Field(default=None, allow_inf_nan=False)
    """Drop hybrid rows that score less."""
    min_reranked: _OrOff = Field(default=None, allow_inf_nan=False)
    """Drop reranked rows that score less."""
    fold: bool = False
    """Rows with nearly the same text stand as one."""
    max_per_document: int = Field(default=0, ge=0)
    """So many rows of one document at most; 0: no limit."""
    mmr: _OrOff = Field(default=None, ge=0, le=1)
    """Diversity (maximal marginal relevance): 1 is relevance alone, 0 difference alone."""
    neighbours: int = Field(default=0, ge=0)
    """So many chunks before and after each source go into the prompt with it."""


class ColumnSection(_Section):
    """``[[columns]]``: one column of the Search screen."""

    name: str
    """What it is called."""
    method: Literal["vector", "bm25", "hybrid", "reranked"]
    """The list that is shown."""
    knobs: dict[str, float | int | bool | str] = Field(default_factory=dict)
    """What is set otherwise than in the sections above: ``{ "bm25.k1" = 0.9 }``."""


class HistorySection(_Section):
    """``[history]``: the local log of searches."""

    enabled: bool = True
    """Keep every search with its lists in a private file of the cache folder."""


class AnswerSection(_Section):
    """``[answer]``: who answers. The key is only ever read from environment or keyring."""

    provider: str = Field(default="auto", min_length=1)
    """``auto`` (claude when a key or base URL is there), ``claude``, ``extractive``, or the name of
    an installed answerer. Not in project files."""
    model: str = DEFAULT_ANSWER_MODEL
    """Model name sent to the Messages API."""
    max_tokens: int = Field(default=4096, ge=1)
    """Longest answer, thinking included; the default model always thinks."""
    base_url: str = ""
    """Another server that speaks the Messages API. Not in project files."""
    timeout_s: float = Field(default=60.0, gt=0, allow_inf_nan=False)
    """Seconds to wait for the server."""
    n_sources: int = Field(default=5, ge=1)
    """Chunks put into the prompt; independent of top_k."""
    template: str = Field(default="numbered", min_length=1)
    """``numbered``, ``documents``, ``native`` (the service's own citations), or a TOML file (that
    not in project files)."""
    order: PromptOrder = "best first"
    """Sources in the prompt: ``best first``, ``best last`` or ``document order``."""
    thinking: bool = False
    """Ask the model to think and to show it. Some models think anyway, unseen."""
    effort: Effort = ""
    """``low``, ``medium``, ``high``, ``xhigh`` or ``max``; empty: the model's own default."""
    cache_prompt: bool = False
    """Have the service keep rules and sources for a few minutes: cheaper questions on them."""
    max_retries: int = Field(default=2, ge=0, le=10)
    """Further tries when the service is busy or out of reach, before any text has come."""
    not_found_below: float | None = Field(default=None, allow_inf_nan=False)
    """Extractive: best reranker logit that is enough; unset: logit 0, or cosine 0.40."""


class PricesSection(_Section):
    """``[prices]``: what tokens cost, for estimates. The defaults are examples."""

    input: float = Field(default=5.0, ge=0, allow_inf_nan=False)
    """Per million tokens read without a cache."""
    cache_write: float = Field(default=6.25, ge=0, allow_inf_nan=False)
    """Per million tokens read and put into the prompt cache."""
    cache_read: float = Field(default=0.5, ge=0, allow_inf_nan=False)
    """Per million tokens taken from the prompt cache."""
    output: float = Field(default=25.0, ge=0, allow_inf_nan=False)
    """Per million tokens written."""
    currency: str = "USD"
    """Shown behind amounts."""
    context_window: int = Field(default=200_000, ge=1)
    """Tokens that the answering model reads at once."""


class UiSection(_Section):
    """``[ui]``: the app."""

    theme: str = "textual-dark"
    """Any theme of the command palette."""
    search_as_you_type: bool = False
    """Search after a short pause in typing instead of on enter."""
    keys: dict[str, str] = Field(default_factory=dict)
    """``binding-id = "key,other key"``; the ids stand in the help (``?``)."""


class Settings(_Section):
    """All settings. Field docs are user documentation: the README's table is held to them."""

    loading: LoadingSection = Field(default_factory=LoadingSection)
    chunking: ChunkingSection = Field(default_factory=ChunkingSection)
    models: ModelsSection = Field(default_factory=ModelsSection)
    search: SearchSection = Field(default_factory=SearchSection)
    bm25: BM25Section = Field(default_factory=BM25Section)
    post: PostSection = Field(default_factory=PostSection)
    columns: tuple[ColumnSection, ...] = Field(default=(), max_length=MAX_COLUMNS)
    """A ``[[columns]]`` table each, 1 to 6, left to right: ``name``, ``method`` and ``knobs``, what
    is set otherwise than in the sections above: ``{ "bm25.k1" = 0.9 }``. Empty: the four
    methods."""
    presets: dict[str, dict[str, float | int | bool | str]] = Field(default_factory=dict)
    """A ``[presets."name"]`` table each, a line a knob: ``"search.depth" = 200``."""
    history: HistorySection = Field(default_factory=HistorySection)
    answer: AnswerSection = Field(default_factory=AnswerSection)
    prices: PricesSection = Field(default_factory=PricesSection)
    ui: UiSection = Field(default_factory=UiSection)

    @property
    def engine(self) -> EngineSettings:
        """The part the engine reads."""
        return EngineSettings(
            cache_dir=cache_dir(),
            loading=LoadSettings(**self.loading.model_dump()),
            chunking=ChunkingSettings(**self.chunking.model_dump()),
            models=ModelSettings(**self.models.model_dump()),
            answer=AnswerSettings(**self.answer.model_dump()),
            analyzer=self.bm25.analyzer,
        )

    @property
    def context_window(self) -> int:
        """Tokens that the answering model reads at once."""
        return self.prices.context_window

    @property
    def token_prices(self) -> Prices:
        """What tokens cost."""
        return Prices(**self.prices.model_dump(exclude={"context_window"}))

    @property
    def keeps_history(self) -> bool:
        """Whether finished searches are kept."""
        return self.history.enabled

    def request(self, query: str) -> SearchRequest:
        """A search with these settings."""
        return SearchRequest(
            query=query,
            **self.search.model_dump(),
            bm25=BM25Params(**self.bm25.model_dump()),
            post=PostSteps(**self.post.model_dump()),
            columns=tuple(make_column(c.name, c.method, c.knobs) for c in self.columns)
            or DEFAULT_COLUMNS,
        )


def cache_dir() -> Path:
    """Indexes, embeddings and exported models: ``RAG_TUI_CACHE_DIR``, else the user's cache."""
    override = os.environ.get(CACHE_ENV)
    return Path(override).expanduser() if override else platformdirs.user_cache_path("rag-tui")


def user_file() -> Path:
    """The user's settings: ``RAG_TUI_CONFIG``, else ``config.toml`` in the config folder."""
    override = os.environ.get(CONFIG_ENV)
    if override:
        return Path(override).expanduser()
    return platformdirs.user_config_path("rag-tui") / "config.toml"


def bundled_corpus() -> Path:
    """The demo corpus: inside the installed package, or beside it in a checkout."""
    inside = Path(__file__).parent / "corpus"
    return inside if inside.is_dir() else Path(__file__).parent.parent / "corpus"


def load_settings(
    folder: Path | None = None, overrides: Mapping[str, object] | None = None
) -> Settings:
    """The settings in force for a folder.

    Args:
        folder: The corpus; its ``rag-tui.toml`` is read if there is one.
        overrides: ``"section.key": value``, from flags; None values are left out.

    Raises:
        UsageError: Naming the file or variable, the value, the rule and the fix.
    """
    layers: list[tuple[str, dict[str, Any]]] = []
    path = user_file()
    if path.is_file():
        values = _read_toml(path)
        _root_template(path, values)
        layers.append((str(path), values))
    elif os.environ.get(CONFIG_ENV):
        raise UsageError(f"{CONFIG_ENV} names {path}, which is not a file.", "Correct or unset it.")
    if folder is not None:
        base = folder if folder.is_dir() else folder.parent
        project = base / PROJECT_FILE
        if project.is_file():
            values = _read_toml(project)
            _refuse_foreign_keys(project, values)
            _refuse_service(project, values)
            layers.append((str(project), values))
    layers.append(("the environment", _from_environment()))
    layers.append(("the command line", _nested(overrides or {})))
    merged: dict[str, Any] = {}
    origin: dict[tuple[str, ...], str] = {}
    for name, values in layers:
        _merge(merged, values, origin, name, ())
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise _readable(error, origin) from error


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except RecursionError as error:
        raise UsageError(f"{path} is nested too deeply.", "Mend or remove it.") from error
    except ValueError as error:  # TOML, UTF-8, or a number of thousands of digits
        raise UsageError(f"{path} is not valid TOML: {error}.", "Mend that line.") from error
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}.", "Check its rights."
        ) from error


def _refuse_foreign_keys(path: Path, values: Mapping[str, Any]) -> None:
    for section, key in sorted(_NOT_IN_PROJECT):
        table = values.get(section)
        if isinstance(table, dict) and key in table:
            raise UsageError(
                f"{path} sets {section}.{key}, which a folder of documents may not decide.",
                f"Set it in {user_file()}, or as {ENV_PREFIX}{section.upper()}__{key.upper()}.",
            )
    answer = values.get("answer")
    if isinstance(answer, dict) and _is_file(answer.get("template")):
        # The rules by which documents are only read are not theirs to write.
        raise UsageError(
            f"{path} sets answer.template to a file, which a folder of documents may not decide.",
            f"Name a shipped template, or set it in {user_file()}.",
        )


def _refuse_service(path: Path, values: Mapping[str, Any]) -> None:
    """A folder of documents does not decide that its texts are sent away, or who is paid."""
    waiting: list[Any] = [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str) and (value == "voyage" or value.startswith("voyage/")):
            raise UsageError(
                f"{path} names {value}, but a folder of documents may not decide that texts are "
                "sent to a service.",
                f"Set it in {user_file()}, in the environment or on the command line.",
            )


def _root_template(path: Path, values: Mapping[str, Any]) -> None:
    """A template file is meant from where its name was written down."""
    table = values.get("answer")
    if isinstance(table, dict) and _is_file(table.get("template")):
        table["template"] = str(path.parent / Path(table["template"]).expanduser())


def _is_file(template: object) -> bool:
    return isinstance(template, str) and template.endswith(".toml")


def _from_environment() -> dict[str, Any]:
    flat = {}
    for name, value in os.environ.items():
        section, double, key = name.removeprefix(ENV_PREFIX).partition("__")
        if name.startswith(ENV_PREFIX) and double:
            flat[f"{section.lower()}.{key.lower()}"] = _listed(section.lower(), key.lower(), value)
    return _nested(flat)


def _listed(section: str, key: str, value: str) -> object:
    """A variable's value: for a list a JSON array, or its parts between commas."""
    model = Settings.model_fields[section].annotation if section in Settings.model_fields else None
    field = getattr(model, "model_fields", {}).get(key)
    if field is None or not str(field.annotation).startswith("tuple"):
        return value
    if value.lstrip().startswith("["):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return [part.strip() for part in value.split(",") if part.strip()]


def _nested(flat: Mapping[str, object]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in flat.items():
        if value is not None:
            section, _, key = name.partition(".")
            tree.setdefault(section, {})[key] = value
    return tree


def _merge(
    into: dict[str, Any],
    values: Mapping[str, Any],
    origin: dict[tuple[str, ...], str],
    name: str,
    path: tuple[str, ...],
) -> None:
    for key, value in values.items():
        here = (*path, key)
        if isinstance(value, dict) and not path and not isinstance(into.get(key, {}), dict):
            raise UsageError(
                f"{key} (in {origin[here]}) must be a table of settings (got {into[key]!r}).",
                f"Write it as [{key}] with a line for each setting.",
            )
        if isinstance(value, dict) and isinstance(into.get(key, {}), dict):
            into.setdefault(key, {})
            origin.setdefault(here, name)
            _merge(into[key], value, origin, name, here)
        else:
            into[key] = value
            origin[here] = name


def _readable(error: ValidationError, origin: Mapping[tuple[str, ...], str]) -> UsageError:
    first = error.errors(include_url=False)[0]
    path = tuple(str(part) for part in first["loc"])
    where = origin.get(path) or origin.get(path[:1]) or "the settings"
    name = ".".join(path)
    if first["type"] == "extra_forbidden":
        section = Settings.model_fields if len(path) == 1 else _fields_of(path[0])
        return UsageError(
            f"{name} (in {where}) is not a setting.", f"There are: {', '.join(section)}."
        )
    rule = first["msg"].removeprefix("Value error, ")
    value = first["input"]
    shown = "" if isinstance(value, dict | BaseModel) else f" (got {value!r})"
    return UsageError(f"{name} (in {where}): {rule}{shown}.", "Correct it, or remove it.")


def _fields_of(section: str) -> list[str]:
    model = Settings.model_fields[section].annotation
    if isinstance(model, type) and issubclass(model, BaseModel):
        return list(model.model_fields)
    return []
