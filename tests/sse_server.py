"""A small local server that replays Messages-API streams: threads, standard library only."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

Ending = Literal["normal", "drop", "hang", "hang before headers"]

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Request:
    """One request the server got."""

    path: str
    headers: Mapping[str, str]
    body: Any
    """The parsed JSON body."""


@dataclass(slots=True)
class Script:
    """How the server replies."""

    events: Sequence[str] = ()
    """Each is sent as one piece of the body, with a blank line behind it."""
    ending: Ending = "normal"
    """``drop`` closes the socket inside the body; ``hang`` falls silent with the socket open."""
    tail: bytes = b""
    """Sent as it is behind the events: the beginning of an event that never ends."""
    cut_every: int = 0
    """Send the body in pieces of so many bytes, wherever they fall; 0: an event at a time."""
    delay_s: float = 0.0
    """Pause before each event."""
    status: int = 0
    """Answer the first ``times`` requests with this status instead."""
    times: int = 1_000_000
    retry_after: str = ""
    message: str = "replayed"
    """The message of such an answer."""
    reply: Callable[[Any], Mapping[str, Any]] | None = None
    """Instead of events: makes the whole JSON reply from the request's body."""


@dataclass(slots=True)
class ReplayServer:
    """A running server."""

    base_url: str
    script: Script
    requests: list[Request] = field(default_factory=list)
    sent: threading.Event = field(default_factory=threading.Event)
    """Set when all events of a reply were sent."""
    client_gone: threading.Event = field(default_factory=threading.Event)
    """Set when a client closed the connection of a hanging reply."""
    stopping: threading.Event = field(default_factory=threading.Event)


def text_events(
    *pieces: str, stop_reason: str | None = "end_turn", output_tokens: int = 20
) -> list[str]:
    """The events of a reply with one text block; without a stop reason the stream just ends."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": 100, "output_tokens": 1},
    }
    events = [
        event("message_start", message=message),
        event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    ]
    events += [
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        for piece in pieces
    ]
    if stop_reason is not None:
        events += [
            event("content_block_stop", index=0),
            event(
                "message_delta",
                delta={"stop_reason": stop_reason, "stop_sequence": None},
                usage={"output_tokens": output_tokens},
            ),
            event("message_stop"),
        ]
    return events


def block_events(
    *blocks: Sequence[Mapping[str, Any]], usage: Mapping[str, int] | None = None
) -> list[str]:
    """The events of a reply whose blocks are given by their deltas (``text_delta`` …)."""
    start, _, *end = text_events()
    kinds = {"thinking_delta": "thinking"}
    events = [start]
    for index, deltas in enumerate(blocks):
        kind = kinds.get(deltas[0]["type"], "text")
        block: dict[str, Any] = {"type": kind, kind: ""}
        if kind == "thinking":
            block["signature"] = ""
        events.append(event("content_block_start", index=index, content_block=block))
        events += [event("content_block_delta", index=index, delta=delta) for delta in deltas]
        events.append(event("content_block_stop", index=index))
    delta = {"stop_reason": "end_turn", "stop_sequence": None}
    counted = {"output_tokens": 20, **(usage or {})}
    return [*events, event("message_delta", delta=delta, usage=counted), end[-1]]


def text_delta(text: str) -> dict[str, Any]:
    """A piece of an answer."""
    return {"type": "text_delta", "text": text}


def thinking_delta(text: str) -> dict[str, Any]:
    """A piece of thinking."""
    return {"type": "thinking_delta", "thinking": text}


def citation_delta(index: int, cited_text: str) -> dict[str, Any]:
    """A citation of a search result."""
    citation = {
        "type": "search_result_location",
        "cited_text": cited_text,
        "search_result_index": index,
        "source": "a.md",
        "title": "A",
        "start_block_index": 0,
        "end_block_index": 1,
    }
    return {"type": "citations_delta", "citation": citation}


def whole_message(
    text: str, *, stop_reason: str = "end_turn", usage: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """A reply that is not streamed."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **(usage or {})},
    }


def event(kind: str, **fields: Any) -> str:
    """One server-sent event, without the blank line behind it."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}"


def read_events(text: str) -> list[str]:
    """The events of a recorded stream."""
    return [part for part in text.split("\n\n") if part.strip()]


@contextmanager
def replay_server(script: Script) -> Iterator[ReplayServer]:
    """Run a server on a free port of this machine until the block ends."""
    state = ReplayServer(base_url="", script=script)

    class Handler(_Handler):
        server_state = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield state
    finally:
        state.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_state: ReplayServer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Stay quiet."""

    def do_POST(self) -> None:
        state, script = self.server_state, self.server_state.script
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        state.requests.append(Request(self.path, headers, json.loads(body)))
        if script.status and len(state.requests) <= script.times:
            self._refuse(script)
            return
        if script.reply is not None:
            self._send_json(200, script.reply(state.requests[-1].body))
            return
        if script.ending == "hang before headers":
            state.sent.set()
            self._wait_for_client()
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.close_connection = True
        try:
            for data in _pieces(script):
                if script.delay_s and state.stopping.wait(script.delay_s):
                    return
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            state.sent.set()
            if script.ending == "hang":
                self._wait_for_client()
            elif script.ending == "normal":
                self.wfile.write(b"0\r\n\r\n")
                self.wfile.flush()
        except ConnectionError:
            state.client_gone.set()

    def _refuse(self, script: Script) -> None:
        error = {"type": ERROR_TYPES.get(script.status, "api_error"), "message": script.message}
        self._send_json(
            script.status, {"type": "error", "error": error}, retry_after=script.retry_after
        )

    def _send_json(self, status: int, value: Mapping[str, Any], *, retry_after: str = "") -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if retry_after:
            self.send_header("retry-after", retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _wait_for_client(self) -> None:
        self.connection.settimeout(0.05)
        while not self.server_state.stopping.is_set():
            try:
                if self.connection.recv(1) == b"":
                    self.server_state.client_gone.set()
                    return
            except TimeoutError:
                continue


def _pieces(script: Script) -> list[bytes]:
    events = [f"{one}\n\n".encode() for one in script.events]
    if not script.cut_every:
        return [*events, script.tail] if script.tail else events
    body = b"".join((*events, script.tail))
    return [body[at : at + script.cut_every] for at in range(0, len(body), script.cut_every)]
