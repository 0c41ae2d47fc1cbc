/** What `expect` waits for: the assertions of the emulator, and what each takes. */

/** A text, or a part of one. */
export type Text = string | { contains: string };

/** Which messages. */
interface Messages {
  messageId?: Text;
  body?: Text;
  bodyJson?: unknown;
}

interface Counted extends Messages {
  count?: number;
}

interface Repeated extends Messages {
  times?: number;
  atLeast?: number;
}

interface DeadLetter extends Messages {
  reason?: Text;
  description?: Text;
}

interface Scheduled extends Messages {
  at?: string;
  dueIn?: number;
  tolerance?: number;
}

type Delivered = Messages & { to?: Text };
type Counts = "active" | "deadLetter" | "transferDeadLetter" | "scheduled" | "locked" | "deferred" | "transfer";

/** Each assertion, by its name, with the fields that it takes. */
export interface Expectations {
  attached: { to?: Text; count?: number };
  "dead-lettered": DeadLetter & { count?: number };
  "not-dead-lettered": DeadLetter;
  completed: Counted;
  "not-completed": Messages;
  delivered: Delivered & { times?: number; atLeast?: number };
  "not-delivered": Delivered;
  abandoned: Repeated;
  "not-abandoned": Messages;
  "lock-renewed": Repeated;
  "lock-not-renewed": Messages;
  deferred: Counted;
  "not-deferred": Messages;
  scheduled: Scheduled & { count?: number };
  "not-scheduled": Scheduled;
  expired: Counted;
  "not-expired": Messages;
  forwarded: Messages & { to?: Text; count?: number };
  "not-forwarded": Messages & { to?: Text };
  "unsettled-sends": { atMost?: number; atLeast?: number; count?: number };
  "message-count": { [count in Counts]?: number };
  "session-order": { session: string; bodies: Text[] };
  "session-state": { session: string; text?: string; bytes?: string; json?: unknown; set?: boolean };
  empty: {};
}
