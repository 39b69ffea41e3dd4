"""Writing a torch model as float32 ONNX, and putting a finished folder in place at once."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rag_tui.engine.onnx_session import INPUT_NAMES
from rag_tui.engine.quiet import quietly

EXPORTABLE = frozenset(
    {
        "albert",
        "bert",
        "camembert",
        "distilbert",
        "electra",
        "mpnet",
        "roberta",
        "xlm-roberta",
    }
)
"""``model_type`` of the encoder architectures whose inputs and outputs are understood here."""

OPSET = 17


class ExportRefused(Exception):  # noqa: N818 - the caller goes on with the original model
    """The export is not possible or not equal to the original; says why."""


def export_torch(
    model: Any, path: Path, *, input_names: Sequence[str], output_attribute: str
) -> None:
    """Trace a transformers encoder and write it to ``path``.

    Inputs are int64 ``(batch, sequence)``, both free; the one output is called ``output``.

    Args:
        model: A ``torch.nn.Module`` that takes the inputs by name.
        path: The file to write.
        input_names: Out of `INPUT_NAMES`, in that order.
        output_attribute: The attribute of the model's output to keep.
    """
    with quietly():
        import torch

        class Traced(torch.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.model = model

            def forward(self, *tensors: Any) -> Any:
                inputs = dict(zip(input_names, tensors, strict=True))
                return getattr(self.model(**inputs), output_attribute)

        ones = torch.ones((2, 8), dtype=torch.long)
        example = {
            "input_ids": ones * 5,
            "attention_mask": ones,
            "token_type_ids": torch.zeros_like(ones),
        }
        with torch.no_grad():
            torch.onnx.export(
                Traced().eval(),  # eval: else dropout becomes part of the graph
                tuple(example[name] for name in input_names),
                str(path),
                dynamo=False,
                opset_version=OPSET,
                input_names=list(input_names),
                output_names=["output"],
                dynamic_axes={
                    name: {0: "batch", 1: "sequence"} for name in (*input_names, "output")
                },
            )


def wanted_inputs(tokenizer: Any) -> tuple[str, ...]:
    """The inputs that a transformers tokenizer makes for its model, in `INPUT_NAMES` order."""
    return tuple(name for name in INPUT_NAMES if name in tokenizer.model_input_names)


@contextmanager
def finished_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes ``target`` in one step when the block succeeds.

    When another process was faster its folder stays: both hold the same.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=".new-"))
    try:
        yield temporary
        try:
            os.replace(temporary, target)  # noqa: PTH105 - replace of folders, said plainly
        except OSError:
            if not target.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
