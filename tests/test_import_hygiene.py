"""What may be imported when: in clean interpreters, by looking at ``sys.modules``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "sentence_transformers", "transformers", "anthropic", "onnxruntime")
ENGINE = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "rag_tui" / "engine").rglob("*.py")
    if path.name != "__init__.py"
)


def modules_after(code: str) -> set[str]:
    """Top-level modules that are loaded after the code ran in a clean interpreter."""
    script = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_package_itself_imports_nothing_else_of_ours() -> None:
    loaded = modules_after("import rag_tui")
    assert {name for name in loaded if name.startswith("rag_tui")} == {"rag_tui"}


def test_no_engine_module_imports_a_user_interface_or_a_model_library() -> None:
    loaded = modules_after("\n".join(f"import {name}" for name in ENGINE))
    assert len(ENGINE) > 20
    forbidden = {"textual", "rich", "typer", "rag_tui.tui", "rag_tui.cli", "rag_tui.config"}
    assert loaded & (forbidden | set(HEAVY)) == set()


def test_types_errors_and_events_do_not_need_numpy() -> None:
    loaded = modules_after(
        "import rag_tui.engine.types, rag_tui.engine.errors, rag_tui.engine.events"
    )
    assert "numpy" not in loaded


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_and_version_import_neither_the_app_nor_numpy(arguments: list[str]) -> None:
    code = (
        "import sys, contextlib, io\n"
        f"sys.argv = ['rag-tui', *{arguments!r}]\n"
        "from rag_tui.__main__ import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
    )
    loaded = modules_after(code)
    assert loaded & {"textual", "numpy", "pydantic", *HEAVY} == set()


def test_at_the_first_frame_nothing_heavy_is_loaded(tmp_path: Path) -> None:
    """The real app in a clean interpreter, looked at when its first frame has been drawn."""
    script = tmp_path / "probe.py"  # Textual looks for the source file of an app's class
    script.write_text(f"""
import asyncio, sys
from pathlib import Path
from rag_tui.tui.app import RagTuiApp
seen = []
def on_ready(self):
    seen.extend(sys.modules)
    self.exit()
RagTuiApp.on_ready = on_ready
app = RagTuiApp(Path({str(ROOT / "corpus")!r}))
async def run():
    async with app.run_test(size=(160, 45)) as pilot:
        await pilot.pause()
asyncio.run(run())
import json
print(json.dumps(sorted(seen)))
""")
    environment = {**os.environ, "RAG_TUI_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
    )
    seen = set(json.loads(done.stdout.splitlines()[-1]))
    assert "textual.app" in seen
    assert seen & {"numpy", "pydantic", "typer", "click", "scipy", *HEAVY} == set()
