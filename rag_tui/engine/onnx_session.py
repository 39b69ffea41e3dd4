"""Opening ONNX models with onnxruntime on the CPU."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_tui.engine.errors import ModelError

if TYPE_CHECKING:
    import numpy.typing as npt

INPUT_NAMES = ("input_ids", "attention_mask", "token_type_ids")
"""All inputs a text model may have, in the order in which they are exported."""

_FATAL_ONLY = 4


def bulk_threads() -> int:
    """Threads for long work: all cores but one, which stays free for the interface; at least 1."""
    # The affinity mask is what a container or taskset leaves to this process; not on every system.
    usable = getattr(os, "sched_getaffinity", None)
    n_cores = len(usable(0)) if usable is not None else os.cpu_count() or 1
    return max(1, n_cores - 1)


def open_session(path: Path, *, n_threads: int) -> Any:
    """An ``onnxruntime.InferenceSession`` on the CPU.

    Raises:
        ModelError: When onnxruntime cannot load the file.
    """
    import onnxruntime

    onnxruntime.set_default_logger_severity(_FATAL_ONLY)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = n_threads
    options.inter_op_num_threads = 1
    options.log_severity_level = _FATAL_ONLY
    # Spinning threads burn a core for nothing between batches and slow down everyone else.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's exceptions share no public base class
        raise ModelError(
            f"onnxruntime cannot load {path}: {error}",
            "Delete the file, so that it is made or downloaded again.",
        ) from error


def input_names(session: Any) -> tuple[str, ...]:
    """Names of a session's inputs, in the session's order."""
    return tuple(value.name for value in session.get_inputs())


def feed(
    encodings: Sequence[Any], names: Sequence[str], *, pad_id: int = 0
) -> dict[str, npt.NDArray[np.int64]]:
    """Padded inputs of one batch: int64 ``(len(encodings), longest)`` under each name.

    Args:
        encodings: Of the ``tokenizers`` library.
        names: Inputs wanted, out of `INPUT_NAMES`.
        pad_id: Token id of padding; masked, so it only has to exist.
    """
    shape = (len(encodings), max(1, *(len(encoding.ids) for encoding in encodings), 1))
    ids = np.full(shape, pad_id, dtype=np.int64)
    mask = np.zeros(shape, dtype=np.int64)
    types = np.zeros(shape, dtype=np.int64)
    for row, encoding in enumerate(encodings):
        length = len(encoding.ids)
        ids[row, :length] = encoding.ids
        mask[row, :length] = 1
        types[row, :length] = encoding.type_ids
    arrays = dict(zip(INPUT_NAMES, (ids, mask, types), strict=True))
    return {name: arrays[name] for name in names}
