/** The assertions of the emulator for `expect`, and the fields of each. */

/** A text, or a part of one; bytes are decoded as UTF-8. */
export type Text = string | Uint8Array | { contains: string | Uint8Array };

/** Selects messages by id or body; without a field, all messages. */
interface Messages {
  messageId?: Text;
  body?: Text;
  bodyJson?: unknown;
}

type Counted = Messages & { count?: number };
type Repeated = Messages & { times?: number; atLeast?: number };
type DeadLetter = Messages & { reason?: Text; description?: Text };
type Scheduled = Messages & { at?: string | Date; dueIn?: number; tolerance?: number };
type Directed = Messages & { to?: Text };
/** The states of messages that are counted. */
export type MessageState =
  "active" | "deadLetter" | "transferDeadLetter" | "scheduled" | "locked" | "deferred" | "transfer";

/** Each assertion, by its name, with the fields that it takes. */
export interface Expectations
  extends
    Record<"completed" | "deferred" | "expired", Counted>,
    Record<"abandoned" | "lock_renewed", Repeated>,
    Record<"not_delivered" | "not_forwarded", Directed>,
    Record<"not_completed" | "not_abandoned" | "lock_not_renewed" | "not_deferred" | "not_expired", Messages> {
  attached: { to?: Text; count?: number };
  dead_lettered: DeadLetter & { count?: number };
  not_dead_lettered: DeadLetter;
  delivered: Directed & Repeated;
  scheduled: Scheduled & { count?: number };
  not_scheduled: Scheduled;
  forwarded: Directed & Counted;
  unsettled_sends: { atMost?: number; atLeast?: number; count?: number };
  message_count: { [state in MessageState]?: number };
  session_order: { session: string; bodies: Text[] };
  session_state: { session: string; text?: string; bytes?: string | Uint8Array; json?: unknown; set?: boolean };
  empty: {};
}
