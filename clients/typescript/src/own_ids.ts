// Gives the requests of one session ids that nobody else has, and notes which of them have left us whole.
//
// vscode-jsonrpc counts requests from 0. On an inherited descriptor an answer to somebody before us may still come,
// and it must not be taken for ours.

import type { Message, MessageReader, MessageWriter, RequestMessage, ResponseMessage } from "vscode-jsonrpc/node";

let sessions = 0;

export interface Identified {
  readonly reader: MessageReader;
  readonly writer: MessageWriter;
  /** The params of requests that were written to their last byte. */
  readonly written: WeakSet<object>;
}

/** The same reader and writer, with ids of our own on the wire. */
export function ownIds(reader: MessageReader, writer: MessageWriter): Identified {
  const prefix = `${process.pid}.${++sessions}-`;
  const written = new WeakSet<object>();
  const incoming: MessageReader = {
    onError: reader.onError,
    onClose: reader.onClose,
    onPartialMessage: reader.onPartialMessage,
    dispose: () => reader.dispose(),
    listen: (callback) =>
      reader.listen((message) => {
        if (!isAnswer(message)) return callback(message);
        const { id } = message;
        if (typeof id === "string" && id.startsWith(prefix)) {
          callback({ ...message, id: Number(id.slice(prefix.length)) } as Message);
        }
      }),
  };
  const outgoing: MessageWriter = {
    onError: writer.onError,
    onClose: writer.onClose,
    end: () => writer.end(),
    dispose: () => writer.dispose(),
    write: async (message) => {
      await writer.write(withOwnId(message, prefix));
      const { params } = message as RequestMessage;
      if (typeof params === "object") written.add(params);
    },
  };
  return { reader: incoming, writer: outgoing, written };
}

function isAnswer(message: Message): message is ResponseMessage {
  return !("method" in message);
}

function withOwnId(message: Message, prefix: string): Message {
  const { method, id, params } = message as RequestMessage;
  if (method === "$/cancelRequest") {
    const cancelled = (params as { id: number }).id;
    return { ...message, params: { id: `${prefix}${cancelled}` } } as Message;
  }
  return method === undefined || id === undefined ? message : ({ ...message, id: `${prefix}${id}` } as Message);
}
