"""Write the generated blocks of the documents; tests/test_docs.py fails when they are not true.

python scripts/readme_blocks.py            all blocks
python scripts/readme_blocks.py keys …     only these
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
REFERENCE = ROOT / "docs" / "reference.md"
sys.path.insert(0, str(ROOT))


def keys_block() -> str:
    """Keys of the app and the Search screen from the registry, then those of other screens."""
    from textual.binding import Binding

    from rag_tui.tui.keys import KEYS
    from rag_tui.tui.screens.answer_keys import answer_keys
    from rag_tui.tui.screens.chunk_keys import chunk_keys
    from rag_tui.tui.screens.evaluate_keys import evaluate_keys
    from rag_tui.tui.screens.history_keys import history_keys
    from rag_tui.tui.screens.lab_keys import lab_keys
    from rag_tui.tui.screens.label_keys import label_keys
    from rag_tui.tui.screens.passage import passage_keys

    names = {
        "slash": "/", "question_mark": "?", "left_square_bracket": "[",
        "right_square_bracket": "]", "escape": "esc", "minus": "-", "plus": "+",
        "up": "↑", "down": "↓", "left": "←", "right": "→", "full_stop": ".",
        "equals_sign": "=",
    }  # fmt: skip
    lines = ["| keys | what | name in the settings |", "|---|---|---|"]
    rows = [(key.keys, f"{key.label}: {key.tooltip}", key.id) for key in KEYS]
    others = (
        chunk_keys,
        evaluate_keys,
        lab_keys,
        passage_keys,
        history_keys,
        label_keys,
        answer_keys,
    )
    for binding in [one for keys_of in others for one in keys_of()]:
        if isinstance(binding, Binding) and binding.id is not None:
            what = ": ".join(part for part in (binding.description, binding.tooltip) if part)
            rows.append((binding.key, what, binding.id))
    listed: set[str] = set()
    for keys, what, name in rows:
        if name not in listed:
            listed.add(name)
            shown = " ".join(f"`{names.get(part, part)}`" for part in keys.split(","))
            lines.append(f"| {shown} | {what} | `{name}` |")
    return "\n".join(lines)


def settings_block() -> str:
    """All settings with their defaults, from the field docs of `rag_tui.config`."""
    from pydantic import BaseModel

    from rag_tui.config import Settings

    source = (ROOT / "rag_tui" / "config.py").read_text(encoding="utf-8")
    lines = ["| setting | default | what |", "|---|---|---|"]
    for section, field in Settings.model_fields.items():
        model = field.annotation
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            body = source.split("class Settings(")[1]
            lines.append(f"| `{section}` | none | {_doc_of(section, body)} |")
            continue
        body = source.split(f"class {model.__name__}(")[1].split("\nclass ")[0]
        for name, value in model.model_fields.items():
            text = _doc_of(name, body)
            default = value.get_default(call_default_factory=True)
            shown = str(default).lower() if isinstance(default, bool) else default
            lines.append(
                f"| `{section}.{name}` | {f'`{shown}`' if shown != '' else 'none'} | {text} |"
            )
    return "\n".join(lines)


def _doc_of(name: str, body: str) -> str:
    """The literal text under a field."""
    doc = re.search(rf'^    {name}: .*?\n    """(.*?)"""', body, re.DOTALL | re.MULTILINE)
    return " ".join(doc.group(1).split()).replace("``", "`").replace("|", "\\|") if doc else ""


def ranks_block() -> str:
    """Ranks of the right sections, from the real models."""
    from scripts.demo_report import build, outcomes, rank_table

    return rank_table(outcomes(*build()))


def extractive_block() -> str:
    """What the extractive answerer says to each question of the demo."""
    from scripts.demo_report import answer_table, build, outcomes

    return answer_table(outcomes(*build()))


def eval_block() -> str:
    """Recall of the four lists on the demo questions."""
    from scripts.demo_report import build, eval_table

    return eval_table(*build())


def search_block() -> str:
    """The output of one search."""
    arguments = ["search", "Where is the lockbox?", "--top-k", "3"]
    done = subprocess.run(
        [sys.executable, "-m", "rag_tui", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    body = "\n".join(line.rstrip() for line in done.stdout.splitlines())
    return f'```\n$ rag-tui search "{arguments[1]}" --top-k 3\n{body}\n```'


BLOCKS: dict[str, Callable[[], str]] = {
    "ranks": ranks_block,
    "keys": keys_block,
    "settings": settings_block,
    "extractive": extractive_block,
    "eval": eval_block,
    "search": search_block,
}


def block_of(text: str, name: str) -> str:
    """The generated block with this name as it stands in a text."""
    return text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->", maxsplit=1)[0].strip()


def document_of(name: str) -> Path:
    """The document that holds a block."""
    return REFERENCE if name in ("keys", "settings") else README


def main() -> None:
    for name in sys.argv[1:] or BLOCKS:
        document = document_of(name)
        before, rest = document.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")
        after = rest.split(f"<!-- /{name} -->")[1]
        text = f"{before}<!-- {name} -->\n{BLOCKS[name]()}\n<!-- /{name} -->{after}"
        document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
