"""LSP beside our own methods, by pygls: capabilities, position encodings, open documents, editor features.

The only module that knows pygls, and the only one that touches underscore names of it; the project pins `pygls<2.2`
for that reason, and a test fails when an upgrade renames one. pygls decides what is answered. It never sees a socket,
our methods or their params, and all sessions share one converter, because making one costs more than a session does.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, cast
from urllib.parse import unquote, urlsplit

import cattrs
import orjson
from lsprotocol import converters, types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError, JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol
from pygls.workspace import TextDocument

from sidecar.core.blocks import LEVELS, is_shallow
from sidecar.core.limits import MIB
from sidecar.core.positions import Change, Encoding, Lines, changed
from sidecar.server.asking import Questions
from sidecar.server.caller import Client
from sidecar.server.failures import Failed, Failure, unknown_method, wrong_params

NAME = "artifact-sidecar"
DOCUMENT_CHARS = 64 * MIB  # of all documents that one client has open
DOCUMENTS = 2000  # that one client has open
EDITED_CHARS = 512 * MIB  # that one notification of changes may have us copy, or look at

# pygls logs whole bodies and a traceback for each refusal. What is worth a line, we write ourselves.
logging.getLogger("pygls").setLevel(logging.CRITICAL + 1)
log = logging.getLogger("sidecar.lsp")

# What of pygls' own handlers is in use. Notebooks and workspace folders mean nothing to one OUT_DIR, and keeping them
# for a client would cost memory without bound.
_BUILTIN = frozenset({
    types.SHUTDOWN, types.WORKSPACE_EXECUTE_COMMAND, types.INITIALIZED, types.SET_TRACE, types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE, types.TEXT_DOCUMENT_DID_CLOSE, types.WINDOW_WORK_DONE_PROGRESS_CANCEL,
})  # fmt: skip

_CONTENT = types.WORKSPACE_TEXT_DOCUMENT_CONTENT
_COMMAND = types.WORKSPACE_EXECUTE_COMMAND


@dataclass(frozen=True, slots=True)
class Feature:
    """One LSP method. `answer(editor, params)` may be async; `editor.document(uri)` is what that client has open.

    `options` are told in the capabilities. Where they depend on the client they are a function of its capabilities,
    which answers None when the client is not to be offered this at all.
    """

    method: str
    answer: Callable[[Editor, Any], Any]
    options: Any = None


class Wire(Protocol):
    """What a session needs of its connection."""

    questions: Questions

    def send(self, body: bytes) -> None:
        """Send one message, whatever waits already."""
        ...


class Editors:
    """What all sessions of a process share: the converter, the features, the version that is told."""

    def __init__(self, features: Iterable[Feature] = (), *, version: str) -> None:
        self.features = tuple(features)
        self.version = version
        self.converter = converters.get_converter()
        # The first use of a converter generates its code; no client should wait for that.
        self.converter.structure({"id": 0, "params": {"capabilities": {}}}, types.InitializeRequest)

    def session(self, client: Client, wire: Wire) -> EditorSession:
        return EditorSession(self, client, wire)


class Editor(LanguageServer):
    """What features see: pygls' server, but of one client, and without any power over the process."""

    protocol: _Protocol

    def __init__(self, shared: Editors, client: Client, wire: Wire) -> None:
        super().__init__(NAME, shared.version, protocol_cls=_Protocol, converter_factory=lambda: shared.converter)
        self.client = client
        self.works: dict[str | int, Callable[[], None]] = {}  # how work is given up, by the token of its progress
        self.protocol.wire = wire

    def document(self, uri: str) -> OpenText | None:
        """What the client has open there, unsaved as it may be. The disk is never asked."""
        document = self.workspace.text_documents.get(unquote(uri))
        return document if isinstance(document, OpenText) else None

    def report_server_error(self, error: Exception, source: Any) -> None:  # noqa: ARG002 - pygls passes it
        log.warning("client=%d an editor feature failed: %s", self.client.id, type(error).__name__)

    def shutdown(self) -> None:
        """The session ends with its connection."""


class OpenText(TextDocument):
    """An open document. The library ends lines where Python does, and writes the text anew line by line: not this."""

    @property
    def placed(self) -> Lines:
        """The text with its lines, in the encoding of positions that was agreed upon."""
        known: Lines | None = vars(self).get("_placed")
        if known is None or known.text is not self._source:
            known = self._placed = self._in_lines(self._source or "")
        return known

    def change(self, changes: Sequence[types.TextDocumentContentChangeEvent]) -> str | None:
        """Make all changes of one notification, and answer the new text; None where that is too much work."""
        lines = self.placed
        whole = [at for at, one in enumerate(changes) if not isinstance(one, types.TextDocumentContentChangePartial)]
        if whole:
            lines, changes = self._in_lines(changes[whole[-1]].text), changes[whole[-1] + 1 :]
        made = changed(lines, [_change(one) for one in changes], most=EDITED_CHARS)
        if made is None:
            return None
        self._placed, self._source = made, made.text
        return made.text

    def _in_lines(self, text: str) -> Lines:
        return Lines(text, _encoding(self.position_codec.encoding))


def _change(one: Any) -> Change:
    start, end = one.range.start, one.range.end
    return (start.line, start.character), (end.line, end.character), one.text


def _encoding(named: Any) -> Encoding:
    name = str(getattr(named, "value", named))
    return cast(Encoding, name) if name in ("utf-8", "utf-16", "utf-32") else "utf-16"


class _Protocol(LanguageServerProtocol):
    """pygls' protocol with another way out: bodies go to the wire, and so do its questions to the client."""

    wire: Wire

    # The inherited two cache by instance, which would keep the last sessions alive after their clients are gone.
    def get_message_type(self, method: str) -> type[Any] | None:
        return types.METHOD_TO_TYPES.get(method, (None, None))[0]

    def get_result_type(self, method: str) -> type[Any] | None:
        return types.METHOD_TO_TYPES.get(method, (None, None))[1]

    def _send_data(self, data: Any) -> None:
        self.wire.send(orjson.dumps(data, default=self._converter.unstructure))

    def send_request(
        self,
        method: str,
        params: Any | None = None,
        callback: Callable[[Any], None] | None = None,
        msg_id: Any = None,  # noqa: ARG002 - answers are taken for ids of ours only
    ) -> Future[Any]:
        """Ask the client. The future gets the plain result, or NoAnswer."""
        number, future = self.wire.questions.ask()
        if callback is not None:
            future.add_done_callback(lambda done: None if done.exception() else callback(done.result()))
        self._send_data({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return future


class EditorSession:
    """LSP with one client. Answers are JSON bytes, or a coroutine that gives them; failures are raised as Failed."""

    def __init__(self, shared: Editors, client: Client, wire: Wire) -> None:
        self._converter = shared.converter
        self._editor = Editor(shared, client, wire)
        self._protocol = self._editor.protocol
        self._weights: dict[str, int] = {}
        self._weight = 0  # of all of them
        self._features = shared.features

    def initialize(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """pygls' InitializeResult as a dict, with no claim to workspace folders."""
        params = message.get("params") or {}
        if isinstance(params, dict):
            params = {"capabilities": {}, **params}
        handler = self._protocol.fm.builtin_features[types.INITIALIZE]
        structured = self._structured(types.INITIALIZE, {**message, "params": params})
        options = self._offer(structured.capabilities)
        answer = self._call(handler, structured)
        workspace = self._editor.workspace
        workspace._create_text_document = partial(_open_text, workspace)
        result: dict[str, Any] = self._converter.unstructure(answer)
        if _COMMAND in options:
            result["capabilities"]["executeCommandProvider"] = self._converter.unstructure(options[_COMMAND])
        _tell_of_workspace(result["capabilities"], self._converter.unstructure(options.get(_CONTENT)))
        return result

    def _offer(self, capabilities: types.ClientCapabilities) -> dict[str, Any]:
        """Take in the features that this client can use: what `fm.feature` does, without its inspections."""
        fm = self._protocol.fm
        for feature in self._features:
            options = feature.options(capabilities) if callable(feature.options) else feature.options
            if options is None and feature.options is not None:
                continue
            fm._features[feature.method] = _bound(feature.answer, self._editor)
            if options is not None:
                fm._feature_options[feature.method] = options
        return fm._feature_options

    def request(self, message: Mapping[str, Any]) -> bytes | Coroutine[Any, Any, bytes]:
        method = message["method"]
        handler = self._handler(method)
        if handler is None or not _is_request(method):
            raise Failed(unknown_method(method))
        if not is_shallow(message.get("params")):  # much of it may come back in the answer, which could not be written
            raise Failed(wrong_params([("", f"JSON may nest {LEVELS} levels deep")]))
        return self._answer(handler, self._structured(method, message))

    def notify(self, message: Mapping[str, Any]) -> Coroutine[Any, Any, bytes] | None:
        """Take a notification; unknown ones are ignored. What it gives is still to be run."""
        method = message["method"]
        handler = self._handler(method)
        if handler is None or _is_request(method):
            return None
        params = self._structured(method, message)
        if not self._is_kept(method, params):
            return None
        answer = self._answer(handler, params)
        return None if isinstance(answer, bytes) else answer

    def progress_cancelled(self, token: str | int | None) -> None:
        """The user gave up what is told of under this token."""
        if token is not None and (give_up := self._editor.works.get(token)) is not None:
            give_up()

    def _handler(self, method: str) -> Callable[..., Any] | None:
        if method in _BUILTIN and (method != _COMMAND or _COMMAND not in self._protocol.fm.features):
            return self._protocol.fm.builtin_features.get(method)
        return self._protocol.fm.features.get(method)

    def _structured(self, method: str, message: Mapping[str, Any]) -> Any:
        try:
            return self._converter.structure(message, types.METHOD_TO_TYPES[method][0]).params
        except Exception as error:  # noqa: BLE001 - cattrs raises whatever its hooks meet in what the client sent
            raise Failed(wrong_params(_faults(error))) from None

    def _answer(self, handler: Callable[..., Any], params: Any) -> bytes | Coroutine[Any, Any, bytes]:
        if asyncio.iscoroutinefunction(handler):
            return self._later(handler, params)
        try:
            answer = self._call(handler, params)
        except JsonRpcException as error:
            raise _failed(error) from None
        return self._later(asyncio.wrap_future, answer) if isinstance(answer, Future) else self._encoded(answer)

    async def _later(self, work: Callable[[Any], Any], params: Any) -> bytes:
        try:
            return self._encoded(await work(params))
        except JsonRpcException as error:
            raise _failed(error) from None

    def _call(self, handler: Callable[..., Any], params: Any) -> Any:
        """Call a plain handler, or run one of pygls' generators to its end, or until it waits for an async feature."""
        if not inspect.isgeneratorfunction(handler):
            return handler(params)
        future = Future[Any]()
        self._protocol._run_generator(None, gen=handler(params), result_future=future)
        self._forget_done()
        return future.result() if future.done() else future

    def _forget_done(self) -> None:
        # pygls remembers each feature that one of its handlers called, and forgets none.
        waiting = self._protocol._request_futures
        for key in [key for key, future in waiting.items() if future.done()]:
            del waiting[key]

    def _encoded(self, answer: Any) -> bytes:
        return orjson.dumps(answer, default=self._converter.unstructure)

    def _is_kept(self, method: str, params: Any) -> bool:
        """Weigh a document before any feature hears of it. What takes its client over a limit is forgotten.

        Changes to it mean nothing from then on, and a line in the log says so.
        """
        if method == types.TEXT_DOCUMENT_DID_CLOSE:
            self._unload(params.text_document.uri)
        elif method == types.TEXT_DOCUMENT_DID_OPEN:
            if not _is_uri(params.text_document.uri):
                log.warning("client=%d opened a document at no URI; it is not kept", self._editor.client.id)
                return False
            return self._load(params.text_document.uri, params.text_document.text)
        elif method == types.TEXT_DOCUMENT_DID_CHANGE and params.content_changes:
            document = self._editor.document(params.text_document.uri)
            if document is None:
                log.warning("client=%d changed a document that is not open", self._editor.client.id)
                return False
            text = document.change(params.content_changes)
            if not self._load(params.text_document.uri, text):
                return False
            # The library makes changes one by one, and copies the text for each of them.
            params.content_changes = [types.TextDocumentContentChangeWholeDocument(document.placed.text)]
        return True

    def _load(self, uri: str, text: str | None) -> bool:
        self._unload(uri)
        weight = 1024 + 3 * len(uri) + len(text or "")
        if text is None or len(self._weights) >= DOCUMENTS or self._weight + weight > DOCUMENT_CHARS:
            log.warning("client=%d has too much text open; a document is not kept", self._editor.client.id)
            if self._editor.document(uri) is not None:
                close = self._protocol.fm.builtin_features[types.TEXT_DOCUMENT_DID_CLOSE]
                self._call(close, types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri)))
            return False
        self._weights[unquote(uri)] = weight
        self._weight += weight
        return True

    def _unload(self, uri: str) -> None:
        self._weight -= self._weights.pop(unquote(uri), 0)


def _is_uri(text: str) -> bool:
    """Whether the library can take it apart; it raises what the parser below it raises."""
    try:
        urlsplit(text)
    except ValueError:
        return False
    return True


def _open_text(
    workspace: Any, uri: str, source: str | None = None, version: int | None = None, language_id: str | None = None
) -> OpenText:
    return OpenText(
        uri, source=source, version=version, language_id=language_id, position_codec=workspace.position_codec
    )


def _tell_of_workspace(capabilities: dict[str, Any], content: Any) -> None:
    """Of the workspace, what is really offered: the library claims folders for every server."""
    told = capabilities.pop("workspace", {})
    kept = {"fileOperations": told.get("fileOperations"), "textDocumentContent": content}
    kept = {key: value for key, value in kept.items() if value}
    if kept:
        capabilities["workspace"] = kept


def _bound(answer: Callable[[Editor, Any], Any], editor: Editor) -> Callable[[Any], Any]:
    if asyncio.iscoroutinefunction(answer):

        async def later(params: Any) -> Any:
            return await answer(editor, params)

        return later
    return lambda params: answer(editor, params)


def _is_request(method: str) -> bool:
    return types.METHOD_TO_TYPES[method][1] is not None


def _failed(error: JsonRpcException) -> Failed | JsonRpcException:
    """A feature's own error with its number and words, but never one that carries a traceback or what was sent."""
    if isinstance(error, JsonRpcInternalError):
        return error
    if isinstance(error, JsonRpcInvalidParams):
        return Failed(wrong_params([("", "there is no such command, or it takes other arguments")]))
    return Failed(Failure(error.code, error.message, error.data, "feature_error"))


def _faults(error: Exception) -> Iterable[tuple[str, str]]:
    """Where cattrs met something else than it expected, in LSP's spelling."""
    try:
        found = cattrs.transform_error(error)
    except Exception:  # noqa: BLE001 - it explains only the errors it knows
        return [("", "not of the form that LSP gives it")]
    problem = "not of the type that LSP gives it"
    return [(_place(text), "missing" if text.startswith("required") else problem) for text in found]


def _place(text: str) -> str:
    steps = text.rpartition(" @ ")[2].removeprefix("$.").removeprefix("params.")
    steps = re.sub(r"_([a-z])", lambda found: found[1].upper(), steps)
    return re.sub(r"\[('?)([^\]]*)\1\]", r".\2", steps)
