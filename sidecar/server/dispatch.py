"""JSON-RPC with one client: each body in, exactly one answer for each request out, in whatever order they are ready.

Our own methods are answered here; what LSP defines goes to pygls through `lsp`. Plain handlers run at once, so that
changes happen in the order in which they were asked for. Async ones become tasks, and whatever such a task ends with,
be it a refusal, a cancellation, an accident or `SystemExit`, becomes its answer and nothing else.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, NamedTuple, Protocol

import orjson

from sidecar.core.errors import Refusal, ShuttingDown, TooLarge
from sidecar.server import failures, greeting
from sidecar.server.asking import Questions
from sidecar.server.caller import Caller, Client, Later
from sidecar.server.failures import Failed, Failure, invalid_request, refused, unexpected
from sidecar.server.lsp import EditorSession
from sidecar.server.parsing import LARGE_BYTES, parse
from sidecar.server.routes import Handler
from sidecar.server.service import Service

SPLICE_BYTES = 64 * 1024  # a result of this size is sent as it is, without a copy inside its answer


class Line(Protocol):
    """The connection, as far as the dispatch needs it."""

    questions: Questions

    def send(self, *chunks: bytes) -> None: ...

    def post(self, method: str, params: bytes) -> None: ...

    def notify(self, method: str, params: bytes) -> bool: ...

    def finished(self) -> None:
        """A task has ended, so there may be room for another; or a large message was parsed."""
        ...

    async def room(self) -> None:
        """Wait until the client has read most of what it was sent."""
        ...

    def leave(self) -> None:
        """The client said `exit`."""
        ...


class Encoded(NamedTuple):
    """A result as it is sent, in pieces perhaps, and how many bytes it has."""

    json: bytes | list[bytes]
    size: int


class Dispatch:
    """One client's requests. `take` them in order; `running` are those that are not answered yet."""

    def __init__(self, service: Service, client: Client, line: Line) -> None:
        self._service = service
        self._bounds = service.bounds
        self._routes = service.routes
        self._log = service.log
        self._client = client
        self._line = line
        self._lsp: EditorSession | None = None  # made by `initialize`
        self._over = ""  # why no more requests are taken, once that is so
        self._retiring = False
        self._hurried = False
        self.bytes = 0  # of the params of those that are running, and of answers that wait for room
        self.running: dict[object, Caller] = {}
        self._unstarted = 0  # tasks that have not taken their first step
        self._parsing: asyncio.Task[object] | None = None  # a large message
        self._making = asyncio.Semaphore(self._bounds.bulky_at_once)

    @property
    def full(self) -> bool:
        """Whether so much is under way that the next request has to wait."""
        return len(self.running) >= self._bounds.in_flight or self.bytes >= self._bounds.bytes_in_flight

    @property
    def busy(self) -> bool:
        """Whether anything is done for this client now."""
        return bool(self.running) or self._parsing is not None

    def take(self, body: bytes) -> bool:
        """Handle one message. False when it is a request and there is no room for it, or when it is large and has not
        been parsed yet; offer it again later.

        Raises TooManyValues, after which the connection is to end: an answer would need an id that is not known.
        """
        if len(body) >= LARGE_BYTES:
            return self._take_large(body)
        try:
            message = orjson.loads(body)
        except orjson.JSONDecodeError:
            self._refuse(None, failures.PARSE)
            return True
        return self._take(message, len(body))

    def _take_large(self, body: bytes) -> bool:
        """The same for one that is parsed off the loop. It is the first that waits until it is taken."""
        if self._parsing is None:
            if self.full:
                return False
            work = self._service.parsing.run(parse, body, self._bounds.message_values)
            self._parsing = asyncio.get_running_loop().create_task(work)
            self._parsing.add_done_callback(self._is_parsed)
        if not self._parsing.done():
            return False
        try:
            taken = self._take(self._parsing.result(), len(body))
        except orjson.JSONDecodeError:
            self._refuse(None, failures.PARSE)
            taken = True
        if taken:
            self._parsing = None
        return taken

    def _is_parsed(self, parsing: asyncio.Task[object]) -> None:
        if not parsing.cancelled():
            parsing.exception()  # looked at, as its client may be gone
            self._line.finished()

    def _take(self, message: object, size: int) -> bool:
        if type(message) is not dict:
            self._refuse(None, invalid_request("a message is one object; there are no batches"))
            return True
        method, number = message.get("method"), message.get("id")
        well_numbered = type(number) is int or (type(number) is str and number != "")
        if message.get("jsonrpc") != "2.0" or (type(method) is not str and not _is_answer(message)):
            self._refuse(number if well_numbered else None, invalid_request("this is no JSON-RPC 2.0 message"))
        elif type(method) is not str:
            self._line.questions.settle(message)
        elif "id" not in message:
            return self._notified(method, message, size)
        elif not well_numbered:
            self._refuse(None, invalid_request("an id is an integer or a text that is not empty"))
        elif number in self.running:
            self._refuse(number, invalid_request("a request with this id is under way"))
        else:
            return self._requested(number, method, message, size)
        return True

    def retire(self) -> None:
        """Refuse what comes from now on; what is under way may end."""
        self._retiring = True

    def hurry(self) -> None:
        """What is under way has had its time: it is answered as refused."""
        self._hurried = True
        for caller in self.running.values():
            if caller.started and caller.task is not None:
                caller.task.cancel()

    def close(self) -> None:
        """Give up everything under way; nobody is there to be answered."""
        if self._parsing is not None:
            self._parsing.cancel()
            self._parsing = None
        for caller in self.running.values():
            caller.give_up()

    def _requested(self, number: Any, method: str, message: dict[str, Any], size: int) -> bool:
        if self.full:
            return False
        caller = Caller(self._client, number, method, size=size, post=self._line)
        bulky = False
        try:
            if self._lsp is None or self._over or self._retiring:
                result = self._out_of_season(caller, message)
            elif (route := self._routes.get(method)) is not None:
                caller.params = params = route.read(caller, message.get("params"))
                # What waits for its first step was asked before this.
                is_next = not (route.ordered and self._unstarted)
                result = route.handler(caller, params) if is_next else _begun_later(route.handler, caller, params)
                bulky = route.bulky
            else:
                result = self._standard(method, message)
        except BaseException as error:  # noqa: BLE001 - even SystemExit is only this request's end
            self._fail(caller, error)
        else:
            if type(result) is CoroutineType:
                self._start(caller, result, key=number, bulky=bulky)
            elif type(result) is Later:
                self._wait(caller, result, key=number)
            else:
                self._answer(caller, result)
        return True

    def _out_of_season(self, caller: Caller, message: dict[str, Any]) -> object:
        """Before `initialize`, after `shutdown`, and while the daemon ends."""
        if self._over:
            raise Failed(invalid_request(self._over))
        if self._retiring:
            raise ShuttingDown(caller.method, "connect again")
        if caller.method != "initialize":
            raise Failed(failures.TOO_EARLY)
        options = greeting.options(message.get("params"))
        session = self._service.editors.session(self._client, self._line)
        result = session.initialize(message)
        self._client.labels, self._client.events = greeting.labels(options), frozenset(options.events)
        answer = greeting.answer(result, self._service.hello(caller))
        self._lsp = session
        return answer

    def _standard(self, method: str, message: dict[str, Any]) -> object:
        if method == "initialize":
            raise Failed(invalid_request("`initialize` was answered already"))
        assert self._lsp is not None
        result = self._lsp.request(message)
        if method == "shutdown":
            self._over = "the session was shut down; only `exit` is left"
        return result

    def _notified(self, method: str, message: dict[str, Any], size: int) -> bool:
        match method:
            case "exit":
                self._line.leave()
            case "$/cancelRequest":
                self._cancel(_named(message, "id"))
            case "window/workDoneProgress/cancel":
                self._cancel_progress(_named(message, "token"))
            case _ if self._lsp is not None and not self._over:
                return self._told(self._lsp, method, message, size)
        return True

    def _told(self, lsp: EditorSession, method: str, message: dict[str, Any], size: int) -> bool:
        if self.full:
            return False
        caller = Caller(self._client, None, method, size=size, post=self._line)
        try:
            work = lsp.notify(message)
        except BaseException as error:  # noqa: BLE001 - a notification has no answer, whatever becomes of it
            self._fail(caller, error)
        else:
            if work is not None:
                self._start(caller, work, key=caller)
        return True

    def _cancel(self, number: str | int | None) -> None:
        if number is not None and (caller := self.running.get(number)) is not None:
            caller.give_up()

    def _cancel_progress(self, token: str | int | None) -> None:
        """The progress is one of a request of ours, or of what an editor runs."""
        self._cancel(next((caller.request for caller in self.running.values() if caller.token == token), None))
        if self._lsp is not None:
            self._lsp.progress_cancelled(token)

    def _start(self, caller: Caller, work: Coroutine[Any, Any, object], *, key: object, bulky: bool = False) -> None:
        self.running[key] = caller
        self.bytes += caller.size
        self._unstarted += 1
        caller.task = asyncio.get_running_loop().create_task(self._serve(caller, work, key, bulky=bulky))

    async def _serve(self, caller: Caller, work: Coroutine[Any, Any, object], key: object, *, bulky: bool) -> None:
        caller.started = True
        self._unstarted -= 1
        result: object = None
        problem: BaseException | None = None
        if caller.cancelled or self._hurried:
            work.close()
            problem = asyncio.CancelledError()
        else:
            try:
                result = await (self._in_turn(caller, work) if bulky else work)
            except BaseException as error:  # noqa: BLE001 - the edge of the task: nothing may pass it
                problem = error
        self._end(caller, key, result, problem)
        problem = None  # which knows this frame by its traceback: all that it names would stay until a collection

    async def _in_turn(self, caller: Caller, work: Coroutine[Any, Any, object]) -> Encoded:
        """Make a long answer while few others are made for this client, and give it once those before it were read.

        So a client that asks for much at once gets all of it without being cut off, and stands before nobody else where
        contents are read.
        """
        try:
            async with self._making:
                await self._line.room()
                answer = self._encoded(caller, await work)
                self.bytes += answer.size
                try:
                    await self._line.room()
                finally:
                    self.bytes -= answer.size
                return answer
        finally:
            work.close()

    def _wait(self, caller: Caller, later: Later, *, key: object) -> None:
        """Answer once it is durable. Until then it can be cancelled like a task; the change itself cannot."""
        self.running[key] = caller
        self.bytes += caller.size
        caller.task, caller.started = later.durable, True
        later.durable.add_done_callback(partial(self._is_durable, caller, key, later.answer))

    def _is_durable(self, caller: Caller, key: object, answer: object, durable: asyncio.Future[Any]) -> None:
        problem = asyncio.CancelledError() if durable.cancelled() else durable.exception()
        self._end(caller, key, answer, problem)

    def _end(self, caller: Caller, key: object, result: object, problem: BaseException | None) -> None:
        """What was under way has ended."""
        del self.running[key]
        self.bytes -= caller.size
        if caller.cancelled:
            problem = Failed(failures.CANCELLED_BY_CLIENT)  # also when the handler did not care
        elif isinstance(problem, asyncio.CancelledError) and self._retiring:
            problem = ShuttingDown(caller.method, "connect again")
        if problem is None:
            self._answer(caller, result)
        else:
            self._fail(caller, problem)
        self._line.finished()

    def _answer(self, caller: Caller, result: object) -> None:
        if caller.request is None:
            return
        try:
            answer = result if type(result) is Encoded else self._encoded(caller, result)
            caller.finish()
        except BaseException as error:  # noqa: BLE001 - a result that cannot be sent is a failure of its request
            self._fail(caller, error)
            return
        head = b'{"jsonrpc":"2.0","id":%b,"result":' % _number(caller.request)
        if type(answer.json) is list:
            self._line.send(head, *answer.json, b"}")
        elif answer.size < SPLICE_BYTES:
            self._line.send(b"%b%b}" % (head, answer.json))
        else:
            self._line.send(head, answer.json, b"}")
        self._log.note(caller, "ok")

    def _encoded(self, caller: Caller, result: object) -> Encoded:
        """Raises TooLarge, and whatever spelling it raises."""
        json = result if type(result) is bytes else self._service.encode(result, self._client.role)
        size = len(json) if type(json) is bytes else sum(map(len, json))
        if size > self._bounds.message_bytes:
            raise TooLarge(caller.method, f"ask for less at once; an answer has {self._bounds.message_bytes} bytes")
        return Encoded(json, size)

    def _fail(self, caller: Caller, error: BaseException) -> None:
        match error:
            case Failed():
                failure = error.failure
            case Refusal():
                failure = refused(error)
            case _:
                failure = unexpected(error, client=self._client.id, method=caller.method)
        caller.finish()
        if caller.request is not None:
            self._refuse(caller.request, failure)
        self._log.note(caller, failure.outcome, failure.about)

    def _refuse(self, number: str | int | None, failure: Failure) -> None:
        self._line.send(orjson.dumps({"jsonrpc": "2.0", "id": number, "error": failure.error()}))


async def _begun_later(handler: Handler, caller: Caller, params: object) -> object:
    answer = handler(caller, params)
    return await answer if inspect.isawaitable(answer) else answer


def _is_answer(message: dict[str, Any]) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _named(message: dict[str, Any], field: str) -> str | int | None:
    """The id or token in a notification's params. Its type counts: to Python, True and 1.0 are request 1."""
    params = message.get("params")
    name = params.get(field) if type(params) is dict else None
    return name if type(name) in (str, int) else None


def _number(number: str | int) -> bytes:
    return b"%d" % number if type(number) is int else orjson.dumps(number)
