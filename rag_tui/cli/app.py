"""The typer commands. Heavy imports happen inside the commands, so that ``--help`` is quick.

Exit codes: 0 done; 1 something failed (corpus, index, model, server); 2 wrong usage or settings;
3 ``ask`` found no answer in the documents, or the passage of ``where`` is not among the sources;
4 ``chunks --fail-on`` found something; 5 a gate of ``eval`` was not met; 130 interrupted.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from rag_tui import __version__
from rag_tui.cli.options import (
    ColumnOption,
    EmbedderOption,
    FolderArgument,
    FolderOption,
    JsonOption,
    KnobOption,
    PresetOption,
    RerankerOption,
    WhereOption,
)

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_NOT_FOUND = 3
EXIT_INTERRUPTED = 130

EPILOG = (
    "Exit codes: 0 done; 1 failed; 2 wrong usage or settings; 3 ask found no answer, or "
    "the passage of where is not among the sources; "
    "4 chunks --fail-on found something; 5 a gate of eval was not met; 130 interrupted. "
    "stdout is data, stderr is narration."
)

cli = typer.Typer(
    name="rag-tui",
    help="Debug retrieval in the terminal: vector, BM25, hybrid and reranked lists side by side. "
    "`rag-tui FOLDER` opens the app; without a folder it opens the demo corpus.",
    epilog=EPILOG,
    no_args_is_help=False,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class MethodName(StrEnum):
    """The four lists."""

    vector = "vector"
    bm25 = "bm25"
    hybrid = "hybrid"
    reranked = "reranked"


class SortName(StrEnum):
    """Orders of the chunk list."""

    order = "order"
    longest = "longest"
    shortest = "shortest"


# typer 0.16 and later carry their own copy of click, earlier ones use the package: the base class
# of all usage errors is found through the one name that both export
_PARSER_ERROR: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; expected failures are told, never raised."""
    from rag_tui.engine.errors import RagTuiError, UsageError
    from rag_tui.logfile import silence

    silence()  # until a command knows the cache folder and starts the log file
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # whatever cannot be said in the terminal's encoding is said as an escape
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None or sys.stderr is None:
        return EXIT_FAILED
    try:
        result = cli(args=arguments, prog_name="rag-tui", standalone_mode=False)
    except typer.Exit as error:
        return error.exit_code
    except _PARSER_ERROR as error:
        sys.stderr.write(f"error: {_shown(error.format_message())}\n")
        sys.stderr.write("`rag-tui --help` lists the commands, `rag-tui COMMAND --help` options.\n")
        return EXIT_USAGE
    except (typer.Abort, KeyboardInterrupt):
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED
    except RagTuiError as error:
        from rag_tui.cli.output import note_error

        note_error(error)
        return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED
    except BrokenPipeError:
        # the reader (head, less) has gone: nothing more to say, and nothing to complain about
        sys.stderr.close()
        return 0
    except OSError as error:
        sys.stderr.write(f"error: {_shown(error.strerror or str(error))}\n")
        return EXIT_FAILED
    except Exception as error:
        from rag_tui.logfile import log, log_path

        log.exception("unexpected")
        sys.stderr.write(f"error: unexpected {type(error).__name__}: {_shown(str(error))}\n")
        if log_path():
            sys.stderr.write(f"This is a fault of rag-tui; the traceback is in {log_path()}.\n")
        return EXIT_FAILED
    return result if isinstance(result, int) else 0


def _shown(text: str) -> str:
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _version(value: bool) -> None:
    if value:
        sys.stdout.write(f"rag-tui {__version__}\n")
        raise typer.Exit


@cli.callback(invoke_without_command=True)
def _main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        from rag_tui.tui.run import run_app

        raise typer.Exit(run_app(None))


@cli.command("open")
def open_(
    folder: FolderArgument = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    theme: Annotated[str | None, typer.Option(help="Name of a theme.")] = None,
) -> int:
    """Open the app on a folder. `rag-tui FOLDER` is short for this."""
    from rag_tui.tui.run import run_app

    overrides = {"models.embedder": embedder, "models.reranker": reranker, "ui.theme": theme}
    return run_app(str(folder) if folder is not None else None, overrides)


@cli.command()
def index(
    folder: FolderArgument = None,
    embedder: EmbedderOption = None,
    as_json: JsonOption = False,
) -> int:
    """Index a folder, or bring its index up to date; unchanged chunks cost no embedding."""
    from rag_tui.cli.commands import index_command

    return index_command(folder, {"models.embedder": embedder}, as_json=as_json)


@cli.command()
def search(
    question: Annotated[str, typer.Argument(help="The question.")],
    folder: FolderOption = None,
    method: Annotated[
        list[MethodName] | None,
        typer.Option("--method", "-m", help="Only these lists; may be given several times."),
    ] = None,
    top_k: Annotated[int | None, typer.Option("--top-k", "-k", help="Rows shown.")] = None,
    depth: Annotated[int | None, typer.Option(help="Candidates per retriever.")] = None,
    rrf_k: Annotated[float | None, typer.Option(help="Constant of RRF.")] = None,
    rerank_depth: Annotated[int | None, typer.Option(help="Rows the reranker reads.")] = None,
    bm25: Annotated[
        str | None,
        typer.Option(help="lucene, okapi, robertson, atire, bm25l or bm25plus."),
    ] = None,
    k1: Annotated[float | None, typer.Option(help="BM25 k1.")] = None,
    b: Annotated[float | None, typer.Option(help="BM25 b.")] = None,
    knob: KnobOption = None,
    preset: PresetOption = None,
    column: ColumnOption = None,
    where: WhereOption = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    as_json: JsonOption = False,
) -> int:
    """Ask one question and print the four lists, or your own columns, side by side or as JSON."""
    from rag_tui.cli.commands import SearchOptions, search_command

    overrides: dict[str, Any] = {
        "search.top_k": top_k,
        "search.depth": depth,
        "search.rrf_k": rrf_k,
        "search.rerank_depth": rerank_depth,
        "bm25.variant": bm25,
        "bm25.k1": k1,
        "bm25.b": b,
        "models.embedder": embedder,
        "models.reranker": reranker,
    }
    asked = SearchOptions(
        methods=tuple(name.value for name in method or ()),
        where=where or "",
        preset=preset or "",
        knobs=tuple(knob or ()),
        columns=tuple(column or ()),
    )
    return search_command(question, folder, overrides, asked, as_json=as_json)


@cli.command()
def chunks(
    folder: FolderOption = None,
    document: Annotated[
        str | None, typer.Option("--document", "-d", help="Only this file of the corpus.")
    ] = None,
    where: WhereOption = None,
    text: Annotated[
        str | None, typer.Option("--filter", help="Only chunks with this text, path or heading.")
    ] = None,
    regex: Annotated[
        str | None, typer.Option("--regex", help="Only chunks whose text matches.")
    ] = None,
    warning: Annotated[
        list[str] | None,
        typer.Option("--warning", help="Only chunks of this kind of lint or health; repeatable."),
    ] = None,
    sort: Annotated[SortName, typer.Option("--sort", help="By place or by tokens.")] = (
        SortName.order
    ),
    sample: Annotated[
        int | None, typer.Option("--sample", help="Read so many random chunks, whole.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="The same sample again.")] = None,
    lint: Annotated[bool, typer.Option("--lint", help="What is wrong with the texts.")] = False,
    health: Annotated[
        bool, typer.Option("--health", help="Copies, hubs, orphans, torn sentences.")
    ] = False,
    facts: Annotated[
        bool, typer.Option("--facts", help="Lengths, size, and whether to retrieve at all.")
    ] = False,
    fail_on: Annotated[
        list[str] | None,
        typer.Option("--fail-on", help="Exit 4 if there is this kind, or any; repeatable."),
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", help="Context window in tokens, for --facts.")
    ] = None,
    prices: Annotated[
        str | None,
        typer.Option("--prices", help="Per million tokens: input,cache write,cache read,output."),
    ] = None,
    embedder: EmbedderOption = None,
    as_json: JsonOption = False,
) -> int:
    """List the chunks the index really holds; read a sample; lint, health and facts."""
    from rag_tui.cli.chunks import ChunksRequest, chunks_command

    request = ChunksRequest(
        document=document,
        where=where or "",
        text=text,
        regex=regex,
        warnings=tuple(warning or ()),
        sort=sort.value,
        sample=sample,
        seed=seed,
        lint=lint,
        health=health,
        facts=facts,
        fail_on=tuple(fail_on or ()),
        context_window=window,
        prices=prices,
    )
    return chunks_command(folder, {"models.embedder": embedder}, request, as_json=as_json)


@cli.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question.")],
    folder: FolderOption = None,
    provider: Annotated[str | None, typer.Option(help="auto, claude or extractive.")] = None,
    model: Annotated[str | None, typer.Option(help="Model of the Messages API.")] = None,
    sources: Annotated[int | None, typer.Option(help="Chunks put into the prompt.")] = None,
    template: Annotated[
        str | None, typer.Option(help="numbered, documents, native, or a template file.")
    ] = None,
    order: Annotated[
        str | None, typer.Option(help="best first, best last or document order.")
    ] = None,
    column: Annotated[
        str | None,
        typer.Option(help='Where sources come from: a column\'s name, or "name=bm25:bm25.k1=0.9".'),
    ] = None,
    knob: KnobOption = None,
    preset: PresetOption = None,
    embedder: EmbedderOption = None,
    reranker: RerankerOption = None,
    where: WhereOption = None,
    show_prompt: Annotated[
        bool, typer.Option("--prompt", help="Print the exact prompt instead of asking.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Compare each sentence with the sources it cites.")
    ] = False,
    as_json: JsonOption = False,
) -> int:
    """Answer from the retrieved chunks, streamed, with its citations listed."""
    from rag_tui.cli.answers import AskOptions, ask_command

    overrides = {
        "answer.provider": provider,
        "answer.model": model,
        "answer.n_sources": sources,
        "answer.template": template,
        "answer.order": order,
        "models.embedder": embedder,
        "models.reranker": reranker,
    }
    asked = AskOptions(
        where=where or "",
        column=column or "",
        preset=preset or "",
        knobs=tuple(knob or ()),
        show_prompt=show_prompt,
        is_checked=check,
        as_json=as_json,
    )
    return ask_command(question, folder, overrides, asked)


@cli.command()
def contextualise(
    folder: FolderArgument = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before paying.")] = False,
    model: Annotated[str | None, typer.Option(help="Model of the Messages API.")] = None,
    input_price: Annotated[
        float | None, typer.Option(min=0, help="US dollars per million input tokens.")
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(min=0, help="US dollars per million output tokens.")
    ] = None,
    as_json: JsonOption = False,
) -> int:
    """Let a model write where each chunk stands in its document; costs money, so it asks first."""
    from rag_tui.cli.contextualise import contextualise_command
    from rag_tui.engine.contextual import ModelPrices
    from rag_tui.engine.errors import UsageError

    prices = None
    if input_price is not None and output_price is not None:
        prices = ModelPrices(input_price, output_price)
    elif input_price is not None or output_price is not None:
        raise UsageError(
            "One of the two prices is missing.", "Give --input-price and --output-price."
        )
    return contextualise_command(folder, model, prices, is_agreed=yes, as_json=as_json)


@cli.command()
def doctor(folder: FolderOption = None, as_json: JsonOption = False) -> int:
    """Versions, models and where they are, checksums, index state, terminal, key or none."""
    from rag_tui.cli.doctor import doctor_command

    return doctor_command(folder, as_json=as_json)


@cli.command()
def locate(
    what: Annotated[str, typer.Argument(help="cache, config, index, log or corpus.")],
    folder: FolderOption = None,
) -> int:
    """Print where something is kept."""
    from rag_tui.cli.commands import locate_command

    return locate_command(what, folder)


def _add_commands() -> None:
    """The commands that live in modules of their own, each next to its subject."""
    from rag_tui.cli import evaluation, lab, sweep

    lab.register(cli)
    evaluation.register(cli)
    sweep.register(cli)


_add_commands()
