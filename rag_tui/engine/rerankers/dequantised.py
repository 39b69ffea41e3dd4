"""Float32 arithmetic for a graph whose matrix products run on integers.

Dynamic quantisation (ONNX `DynamicQuantizeLinear` and `MatMulInteger`) rounds the activations of a
whole batch to 8 bits, and on processors without the VNNI instructions onnxruntime's 16-bit sums
saturate: the same pair gets another score in another batch and on another machine. With the
weights kept as they are and everything else in float32, a pair has one score everywhere (1e-5).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

VERSION = 1
"""Goes into the file name: a change of the rewriting makes the graph anew."""


def dequantised(model: Path, weights_sha256: str, cache_dir: Path) -> Path:
    """The graph in float32, made once and kept in ``cache_dir/models``.

    Args:
        model: The quantised graph.
        weights_sha256: Its hash, which names the result.
        cache_dir: The cache folder.

    Returns:
        The path of the float32 graph; ``model`` itself where nothing in it is quantised so, or
        where it cannot be read.

    Raises:
        OSError: When the cache cannot be written to.
    """
    place = cache_dir / "models" / f"float32-{weights_sha256[:16]}-v{VERSION}" / "model.onnx"
    if place.is_file():
        return place
    import onnx
    from google.protobuf.message import DecodeError

    try:
        graph = onnx.load(str(model))
    except DecodeError:  # whoever opens it for use says what is wrong with it
        return model
    if not rewrite(graph):
        return model
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=place.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(graph.SerializeToString())
        Path(name).replace(place)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return place


def rewrite(model: Any) -> int:
    """Replace each quantised matrix product by one in float32, in place.

    The pattern is what onnxruntime's ``quantize_dynamic`` writes: ``DynamicQuantizeLinear(x)``,
    ``MatMulInteger`` with a constant weight, ``Cast``, and ``Mul`` by the product of both scales.

    Returns:
        How many products were replaced. A product that does not fit the pattern stays.
    """
    import numpy as np
    from onnx import helper, numpy_helper

    graph = model.graph
    constants = {one.name: one for one in graph.initializer}
    maker = {output: node for node in graph.node for output in node.output}
    users: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    replaced: dict[str, Any] = {}
    for node in graph.node:
        if node.op_type != "MatMulInteger":
            continue
        quantise = maker.get(node.input[0])
        cast = _only(users.get(node.output[0], ()), "Cast")
        scale = _only(users.get(cast.output[0], ()), "Mul") if cast is not None else None
        if quantise is None or quantise.op_type != "DynamicQuantizeLinear" or scale is None:
            continue
        both = maker.get(next(name for name in scale.input if name != cast.output[0]))
        factors = [name for name in both.input if name in constants] if both is not None else []
        if node.input[1] not in constants or len(factors) != 1:
            continue
        weight = numpy_helper.to_array(constants[node.input[1]]).astype(np.float32)
        if len(node.input) > 3 and node.input[3]:
            weight = weight - numpy_helper.to_array(constants[node.input[3]]).astype(np.float32)
        weight = weight * numpy_helper.to_array(constants[factors[0]])
        name = f"{node.input[1]}_float32"
        if name not in constants:
            constants[name] = numpy_helper.from_array(weight.astype(np.float32), name)
        replaced[scale.output[0]] = helper.make_node(
            "MatMul", [quantise.input[0], name], [scale.output[0]], name=f"{node.name}_float32"
        )
    nodes = [replaced.get(node.output[0], node) for node in graph.node]
    _keep_what_is_needed(graph, nodes, constants)
    return len(replaced)


def _only(nodes: Any, kind: str) -> Any:
    """The node, if there is just one and it is of this kind."""
    return nodes[0] if len(nodes) == 1 and nodes[0].op_type == kind else None


def _keep_what_is_needed(graph: Any, nodes: list[Any], constants: dict[str, Any]) -> None:
    needed = {output.name for output in graph.output}
    kept = []
    for node in reversed(nodes):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(node.input)
    del graph.node[:]
    graph.node.extend(reversed(kept))
    del graph.initializer[:]
    graph.initializer.extend(one for name, one in constants.items() if name in needed)
