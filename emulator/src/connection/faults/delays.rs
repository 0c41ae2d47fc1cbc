//! Delays by faults, of single operations, deliveries to a receiver or the whole connection, and the lasting effects of
//! faults on a connection.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use servicebus_amqp::{Event, LinkId};
use servicebus_broker::{LockToken, Timestamp};

use crate::connection::commit::Work;
use crate::connection::peer::ClientConnection;
use crate::faults::{
    Affected, Effect, HeldOperation, MatchContext, MatchedFault, Wait, WaitKey, Waiter,
};

/// Maximum number of waiting operations of a connection, and bytes of their messages; beyond that nothing more is read from
/// it.
const MAX_DELAYED: usize = 16 * 1024;
const MAX_DELAYED_BYTES: usize = 64 * 1024 * 1024;

/// How long a client waits for the lost reply to an attach or a token.
const LOST_REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// The end of a wait; waits by the real clock are ordered first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// Counted from the start of the real clock.
    Real(Duration),
    /// In the namespace's time, where it is registered under this key.
    Virtual(WaitKey),
    /// When it is released, by the number under which it waits.
    Released(u64),
}

#[derive(Debug)]
pub(crate) struct DelayedOperation {
    event: Event,
    /// The effect of the fault after the delay.
    fault: Option<MatchedFault>,
    affected: Affected,
    /// Keeps the namespace from being idle until the operation has gone on.
    _held: Option<HeldOperation>,
}

#[derive(Debug)]
pub(crate) struct DelayedDelivery {
    /// `None` once its delay is over.
    pub(crate) due: Option<Due>,
    /// Keeps the namespace from being idle during the delay.
    pub(crate) held: Option<HeldOperation>,
    /// The effect of the fault after the delay.
    pub(crate) fault: Option<MatchedFault>,
}

/// A paused connection.
#[derive(Debug)]
pub(crate) struct Pause {
    due: Due,
    /// Whether it does not write either.
    is_write_paused: bool,
}

impl Due {
    /// Before all others in the namespace's time.
    const FIRST_VIRTUAL: Self = Self::Virtual((Timestamp::from_millis(i64::MIN), 0));
    const FIRST_RELEASED: Self = Self::Released(0);
}

impl DelayedOperation {
    pub(crate) fn link(&self) -> Option<LinkId> {
        link_of(&self.event)
    }

    pub(crate) fn bytes(&self) -> usize {
        if let Event::Transfer(transfer) = &self.event {
            return transfer.payload.len();
        }
        if let Event::Settle(settlement) = &self.event {
            return settlement.outcome.bytes();
        }
        0
    }
}

impl ClientConnection {
    /// Returns the end of a wait that begins now; waits in the namespace's time are registered for a wake-up.
    pub(crate) fn due(&self, wait: Wait, now: Duration) -> Due {
        match (wait, &self.client.namespace) {
            (Wait::Virtual(length), Some(namespace)) => {
                let until = namespace.clock.now() + length;
                let waiter = Waiter::Connection(self.client.id);
                let key = namespace.faults.waits.add(until, waiter);
                namespace.alarm.arm(until);
                Due::Virtual(key)
            }
            (wait, _) => Due::Real(now + wait.length()),
        }
    }

    /// Drops the connection some time after it has lost the reply to an attach or a token, if the clock steps automatically:
    /// replies are lost with connections, and clients without a timeout of their own would wait for ever.
    pub(crate) fn drop_after_lost_reply(&self) {
        let namespace = self.client.namespace.as_ref();
        if let Some(namespace) = namespace.filter(|namespace| namespace.auto.is_on()) {
            let until = namespace.clock.now() + LOST_REPLY_TIMEOUT;
            let waiter = Waiter::LostReply(self.client.id);
            namespace.faults.waits.add(until, waiter);
            namespace.alarm.arm(until);
        }
    }

    /// Returns until when an operation waits because of this fault, if it does.
    pub(crate) fn due_of(&self, fault: Option<&MatchedFault>, now: Duration) -> Option<Due> {
        match (&fault?.effect, &self.client.namespace) {
            (Effect::Delay(wait), _) => Some(self.due(*wait, now)),
            (Effect::Postpone, Some(namespace)) => Some(Due::Released(
                namespace.faults.postponed.add(self.client.id),
            )),
            _ => None,
        }
    }

    /// Ends a wait whose operation is gone, so that no clock steps to its end.
    pub(crate) fn end_wait(&self, due: Due) {
        let namespace = self.client.namespace.as_ref();
        match (due, namespace.map(|namespace| &namespace.faults)) {
            (Due::Virtual(key), Some(faults)) => faults.waits.remove(key),
            (Due::Released(number), Some(faults)) => faults.postponed.remove(number),
            (Due::Real(_), _) | (_, None) => {}
        }
    }

    pub(crate) fn delay_operation(
        &mut self,
        due: Due,
        event: Event,
        fault: Option<MatchedFault>,
        affected: Affected,
    ) {
        let namespace = self.client.namespace.as_ref();
        let delayed = DelayedOperation {
            event,
            fault,
            affected,
            _held: namespace.map(|namespace| namespace.faults.held.add(self.client.id)),
        };
        let faults = &mut self.faults;
        faults.delayed_bytes += delayed.bytes();
        faults.delayed_ever += 1;
        faults.delayed.insert((due, faults.delayed_ever), delayed);
    }

    /// Resumes operations whose delay is over.
    pub(crate) fn resume_delayed(&mut self, now: Duration, work: &mut Work) {
        let pause = self.faults.pause.as_ref();
        if pause.is_some_and(|pause| self.is_due(pause.due, now)) {
            self.faults.pause = None;
        }
        while let Some(delayed) = self.next_delayed(now) {
            let is_attach = matches!(delayed.event, Event::Attach { .. });
            self.act_again_for(&delayed.event, work);
            self.resume_operation(delayed.event, delayed.fault, &delayed.affected, now, work);
            self.turn.is_answered_late |= is_attach;
        }
        self.release_receivers(now);
    }

    /// Removes a due operation: by each clock the first comes first.
    fn next_delayed(&mut self, now: Duration) -> Option<DelayedOperation> {
        let delayed = &self.faults.delayed;
        let firsts = [
            delayed.first_key_value(),
            delayed.range((Due::FIRST_VIRTUAL, 0)..).next(),
        ];
        let firsts = firsts.map(|first| first.map(|(&key, _)| key));
        let postponed = delayed.range((Due::FIRST_RELEASED, 0)..);
        let postponed = postponed.map(|(&key, _)| key);
        let mut firsts = firsts.into_iter().flatten().chain(postponed);
        let key = firsts.find(|&(due, _)| self.is_due(due, now))?;
        let delayed = self.faults.delayed.remove(&key)?;
        self.faults.delayed_bytes -= delayed.bytes();
        Some(delayed)
    }

    pub(crate) fn is_due(&self, due: Due, now: Duration) -> bool {
        match (due, &self.client.namespace) {
            (Due::Real(at), _) => at <= now,
            (Due::Virtual((at, _)), Some(namespace)) => at <= namespace.clock.now(),
            (Due::Released(number), Some(namespace)) => !namespace.faults.postponed.has(number),
            (Due::Virtual(_) | Due::Released(_), None) => true,
        }
    }

    /// Pauses the connection.
    pub(crate) fn pause(&mut self, wait: Wait, now: Duration, is_write_paused: bool) {
        let due = self.due(wait, now);
        self.faults.pause = Some(Pause {
            due,
            is_write_paused,
        });
    }

    /// Returns whether nothing is read now.
    pub(crate) fn is_read_paused(&self) -> bool {
        let faults = &self.faults;
        faults.pause.is_some()
            || faults.delayed.len() >= MAX_DELAYED
            || faults.delayed_bytes >= MAX_DELAYED_BYTES
    }

    /// Returns whether nothing is written now.
    pub(crate) fn is_write_paused(&self) -> bool {
        let pause = self.faults.pause.as_ref();
        pause.is_some_and(|pause| pause.is_write_paused)
    }

    /// Returns when the next wait in real time ends, counted from the start of the clock.
    pub(crate) fn next_real(&self) -> Option<Duration> {
        let faults = &self.faults;
        let delayed = faults.delayed.first_key_value();
        let delayed = delayed.map(|(&(due, _), _)| due);
        let receivers = faults.receivers.values();
        let receivers = receivers.filter_map(|delayed| delayed.due);
        let pause = faults.pause.as_ref().map(|pause| pause.due);
        let dues = delayed.into_iter().chain(receivers).chain(pause);
        let real = dues.filter_map(|due| match due {
            Due::Real(at) => Some(at),
            Due::Virtual(_) | Due::Released(_) => None,
        });
        real.min()
    }
}

/// The lasting effects of faults on a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionFaults {
    pub(crate) suppressed: Suppressed,
    /// Delayed events, by the end of the delay and their order of arrival.
    pub(crate) delayed: BTreeMap<(Due, u64), DelayedOperation>,
    pub(crate) delayed_ever: u64,
    /// Bytes of messages and outcomes among them.
    pub(crate) delayed_bytes: usize,
    pub(crate) pause: Option<Pause>,
    /// Receivers whose next delivery is delayed.
    pub(crate) receivers: BTreeMap<LinkId, DelayedDelivery>,
    /// Deliveries whose settlement is confirmed without being carried out.
    pub(crate) redelivered: BTreeSet<LockToken>,
    /// Links whose attach must not be answered.
    pub(crate) unanswered: BTreeSet<LinkId>,
    /// The simulated round trip.
    pub(crate) round_trip: Duration,
    pub(crate) end: End,
    /// Whether the connection is open, but counts as open only once its party is known.
    pub(crate) awaits_party: bool,
}

impl ConnectionFaults {
    /// Returns whether the next delivery of a link is delayed.
    pub(crate) fn delays_deliveries(&self, link: LinkId) -> bool {
        let delayed = self.receivers.get(&link);
        delayed.is_some_and(|delayed| delayed.due.is_some())
    }
}

/// The answers that are suppressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Suppressed {
    #[default]
    Nothing,
    /// To transfers, settlements and attaches.
    Outcomes,
    /// To requests, whose transfers are still accepted.
    Replies,
}

/// How a fault has ended the connection; later input of the client is ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    None,
    /// With a close frame.
    Closed,
    /// Without a close frame.
    Dropped,
}

/// An operation that is about to happen, and where timelines report its faults.
pub(crate) struct ObservedOperation<'a> {
    pub(crate) context: MatchContext<'a>,
    pub(crate) affected: Affected,
}

pub(crate) fn link_of(event: &Event) -> Option<LinkId> {
    match event {
        Event::Transfer(transfer) => Some(transfer.link),
        Event::Settle(settlement) => Some(settlement.link),
        Event::Attach { link, .. } => Some(*link),
        Event::Sasl { .. }
        | Event::Opened(_)
        | Event::TransferTooLarge { .. }
        | Event::TransferDropped { .. }
        | Event::Credit { .. }
        | Event::Detached { .. }
        | Event::Refused(_)
        | Event::Closed { .. } => None,
    }
}
