//! The effects of faults on operations.

use std::fmt;

use servicebus_control_api::{self as api, ErrorText, LoggedOperation, Operation, When};

macro_rules! effects {
    ($($name:ident $text:literal $strength:literal $sentence:literal),+ $(,)?) => {
        /// An effect of a fault on an operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "each has a sentence of its own, `sentence`")]
        pub enum Effect { $($name),+ }

        impl Effect {
            /// All effects, the weakest first.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Returns its name in tokens.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// Returns its description, as the end of a sentence about the operation.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence),+ }
            }

            /// Returns its strength: a failure with a weaker effect explains more.
            pub fn strength(self) -> u32 {
                match self { $(Self::$name => $strength),+ }
            }
        }
    };
}

effects! {
    Postpone "postpone" 1 "happened only when nothing else could happen",
    Elsewhere "elsewhere" 1 "went to another receiver",
    ServerBusy "server-busy" 2 "was refused because the service was busy",
    Answer408 "answer-408" 2 "was answered with the status 408",
    Answer500 "answer-500" 2 "was answered with the status 500",
    Answer503 "answer-503" 2 "was answered with the status 503",
    LoseReply "lose-reply" 3 "happened, and its reply was lost",
    DetachBefore "detach-before" 3 "did not happen: its link was detached",
    DetachAfter "detach-after" 3 "happened, then its link was detached",
    DeliverTwice "deliver-twice" 4 "was confirmed, and the message was delivered again",
    LoseLock "lose-lock" 4 "met a lock that had just been lost",
    LoseSessionLock "lose-session-lock" 4 "met the lock of a session that had just been lost",
    Reject "reject" 4 "was refused",
    Close "close" 5 "did not happen: its connection was closed",
    Failover "failover" 5 "happened, then the service was updated: all locks and links were lost",
    FailoverBefore "failover-before" 5 "did not happen: the service was updated, and all locks and links were lost",
    DropBefore "drop-before" 6 "did not happen: the connection dropped",
    DropAfter "drop-after" 6 "happened, then the connection dropped",
    CrashBefore "crash-before" 7 "did not happen: the process crashed",
    CrashAfter "crash-after" 7 "happened, then the process crashed",
}

impl Effect {
    /// Returns the effect with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|effect| effect.name() == name)
    }

    /// Returns whether the effect ends the party of the operation, which is then restarted.
    pub fn is_crash(self) -> bool {
        matches!(self, Self::CrashBefore | Self::CrashAfter)
    }

    /// Returns the effect for the emulator. For a crash the emulator ends the party's connections, and the exploration ends
    /// its code.
    pub fn scripted(self) -> api::Effect {
        let answer = |status| api::Effect::Answer {
            status,
            error: ErrorText::new("amqp:internal-error"),
        };
        let detach = |when| api::Effect::Detach {
            when,
            error: ErrorText::new("amqp:link:detach-forced"),
        };
        match self {
            Self::Postpone => api::Effect::Postpone,
            Self::Elsewhere => api::Effect::Elsewhere,
            Self::Failover => api::Effect::Failover { when: When::After },
            Self::FailoverBefore => api::Effect::Failover { when: When::Before },
            Self::CrashBefore => api::Effect::Crash { when: When::Before },
            Self::CrashAfter => api::Effect::Crash { when: When::After },
            Self::ServerBusy => api::Effect::Reject(ErrorText::new("com.microsoft:server-busy")),
            Self::Answer408 => answer(408),
            Self::Answer500 => answer(500),
            Self::Answer503 => answer(503),
            Self::LoseReply => api::Effect::LoseReply,
            Self::DetachBefore => detach(When::Before),
            Self::DetachAfter => detach(When::After),
            Self::DeliverTwice => api::Effect::DeliverTwice,
            Self::LoseLock => api::Effect::LoseLock,
            Self::LoseSessionLock => api::Effect::LoseSessionLock,
            Self::Reject => api::Effect::Reject(ErrorText::new("amqp:internal-error")),
            Self::Close => api::Effect::Close {
                when: When::Before,
                error: ErrorText::new("amqp:connection:forced"),
            },
            Self::DropBefore => api::Effect::Drop { when: When::Before },
            Self::DropAfter => api::Effect::Drop { when: When::After },
        }
    }

    /// Returns the effects that are possible at an operation.
    pub fn applicable(operation: &LoggedOperation) -> Vec<Self> {
        let mut effects = Self::of(operation.operation).to_vec();
        effects.retain(|effect| effect.is_feasible(operation));
        effects
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "most effects need nothing of an operation"
    )]
    fn is_feasible(self, operation: &LoggedOperation) -> bool {
        match self {
            Self::LoseLock => operation.locked,
            Self::LoseSessionLock => operation.session_locked,
            Self::DeliverTwice => operation.repeatable,
            // Needs another receiver with credit.
            Self::Elsewhere => operation.before.is_some_and(|before| before.receivers > 1),
            _ => true,
        }
    }

    /// Returns the effects on a kind of operation.
    pub(crate) fn of(operation: Operation) -> &'static [Self] {
        use Effect::{
            Answer408, Answer500, Answer503, Close, CrashAfter, CrashBefore, DeliverTwice,
            DetachAfter, DetachBefore, DropAfter, DropBefore, Elsewhere, Failover, FailoverBefore,
            LoseLock, LoseReply, LoseSessionLock, Postpone, Reject, ServerBusy,
        };
        match operation {
            Operation::Send => &[
                Postpone,
                ServerBusy,
                LoseReply,
                DetachBefore,
                DetachAfter,
                Failover,
                FailoverBefore,
                DropBefore,
                DropAfter,
                CrashBefore,
                CrashAfter,
            ],
            Operation::Deliver => &[
                Postpone,
                Elsewhere,
                DetachAfter,
                LoseLock,
                LoseSessionLock,
                Failover,
                DropAfter,
                CrashAfter,
            ],
            Operation::Complete => &[
                DetachBefore,
                DetachAfter,
                DeliverTwice,
                LoseLock,
                LoseSessionLock,
                Failover,
                FailoverBefore,
                DropBefore,
                DropAfter,
                CrashBefore,
                CrashAfter,
            ],
            Operation::Settle | Operation::Abandon | Operation::DeadLetter | Operation::Defer => &[
                DetachBefore,
                DetachAfter,
                LoseLock,
                LoseSessionLock,
                Failover,
                FailoverBefore,
                DropBefore,
                DropAfter,
                CrashBefore,
                CrashAfter,
            ],
            Operation::RenewLock => &[
                Answer408, Answer500, LoseReply, LoseLock, DropBefore, DropAfter,
            ],
            Operation::Management => &[Answer408, Answer500, LoseReply, DropBefore, DropAfter],
            Operation::Attach => &[LoseReply, DetachBefore, DropBefore],
            Operation::Token => &[LoseReply, DropBefore],
            Operation::Connect => &[Close, DropBefore],
            Operation::Discharge => &[LoseReply, Reject, DropBefore, DropAfter],
            Operation::Http => &[Answer503, DropBefore],
            _ => &[],
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_effect_is_allowed_at_its_operations() {
        for operation in Operation::all() {
            for &effect in Effect::of(operation) {
                assert_eq!(Effect::named(effect.name()), Some(effect));
                assert!(
                    operation.allows(effect.scripted().kind()),
                    "{effect} at {}",
                    operation.name()
                );
            }
        }
    }
    #[test]
    fn only_a_lock_that_an_operation_has_is_lost() {
        for (has, lacks) in [
            (Effect::LoseLock, Effect::LoseSessionLock),
            (Effect::LoseSessionLock, Effect::LoseLock),
        ] {
            let operation = serde_json::json!({
                "number": 1, "at": "2026-01-01T00:00:00Z", "operation": "complete", "party": "p", "offset": 0.0,
                "entity": "orders", "session_id": "s", "messages": 1, "repeatable": true,
                "locked": has == Effect::LoseLock, "session_locked": has == Effect::LoseSessionLock,
            });
            let operation = serde_json::from_value(operation).unwrap();
            let effects = Effect::applicable(&operation);
            assert!(
                effects.contains(&has) && !effects.contains(&lacks),
                "{effects:?}"
            );
        }
    }
}
