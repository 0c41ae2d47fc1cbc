// An AMQP client that holds locks and sessions.

import rhea from "rhea";

const SESSION_FILTER = "com.microsoft:session-filter";

/** Connects to a namespace by its connection string. */
export async function connect(connectionString) {
  const parts = Object.fromEntries(connectionString.split(";").filter(Boolean).map((part) => part.split(/=(.*)/s)));
  const { hostname, port } = new URL(parts.Endpoint.replace("sb:", "http:"));
  const container = rhea.create_container();
  const connection = container.connect({
    host: hostname,
    port: Number(port || 5672),
    username: parts.SharedAccessKeyName,
    password: parts.SharedAccessKey,
    container_id: "worker",
    reconnect: false,
  });
  await once(connection, "connection_open", "connection_close", "disconnected");
  return {
    /** Receives the next message in peek-lock mode. */
    receive: async (entity, { session } = {}) => {
      const filter = session === undefined ? undefined : { [SESSION_FILTER]: rhea.types.wrap_described(session, SESSION_FILTER) };
      const receiver = connection.open_receiver({ source: { address: entity, filter }, credit_window: 0, autoaccept: false });
      await once(receiver, "receiver_open", "receiver_close");
      receiver.add_credit(1);
      const { message, delivery } = await once(receiver, "message", "receiver_close");
      return { message, delivery, receiver };
    },
    /** Sets the state of a session whose lock this connection holds. */
    setSessionState: async (entity, session, state) => {
      const node = `${entity}/$management`;
      const replies = connection.open_receiver({ source: { address: node }, target: { address: "replies" } });
      await once(replies, "receiver_open", "receiver_close");
      const requests = connection.open_sender({ target: { address: node } });
      await once(requests, "sendable", "sender_close");
      requests.send({
        message_id: "1",
        reply_to: "replies",
        application_properties: { operation: "com.microsoft:set-session-state" },
        body: rhea.types.wrap_map({ "session-id": session, "session-state": rhea.types.wrap_binary(Buffer.from(state)) }),
      });
      const { message } = await once(replies, "message", "receiver_close");
      const status = message.application_properties.statusCode;
      if (status !== 200) throw new Error(`${status}: ${message.application_properties.statusDescription}`);
    },
    close: () => connection.close(),
  };
}

/** Resolves on the first event and rejects on the others. */
function once(emitter, expected, ...failures) {
  return new Promise((resolve, reject) => {
    emitter.once(expected, resolve);
    for (const name of failures) emitter.once(name, (context) => reject(new Error(`${name}: ${context.receiver?.error ?? context.connection?.error ?? ""}`)));
  });
}
