//! The state of one connection, and the steps of a turn.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use servicebus_amqp::{Connection as Engine, Event, Outcome, Output, PeerOpen, Settlement};
use servicebus_broker::LockToken;

use super::account::{HANDLED_AT_ONCE, MemoryAccount, OUTPUT_FULL};
use super::attach::EarlyAttach;
use super::client;
use super::client::Client;
use super::commit::{Work, attempted, confirmed};
use super::deliver::Outbound;
use super::faults::ConnectionFaults;
use super::idle::Idle;
use super::links::{Link, Links};
use super::outcomes::Outcomes;
use super::transactions::Transactions;
use crate::failures::{Broken, panic_text};
use crate::namespaces::ConnectionOrigin;
use crate::nodes::{Condition, ServiceError, broker_outcome};
use crate::router::BroadcastEvent;
use crate::shared::Shared;

/// One connection without its socket.
pub(crate) struct ClientConnection {
    pub(crate) client: Client,
    pub(crate) engine: Engine,
    pub(crate) links: Links,
    /// Attaches that wait for a token.
    pub(crate) early_attaches: Vec<EarlyAttach>,
    pub(crate) outcomes: Outcomes,
    pub(crate) idle: Idle,
    pub(crate) transactions: Transactions,
    pub(crate) faults: ConnectionFaults,
    pub(crate) memory: MemoryAccount,
    work: Work,
    pub(crate) turn: Turn,
    pub(crate) outbound: Outbound,
}

/// The progress of a turn.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// Events handled; those that visit all links count more than once.
    pub(crate) handled: usize,
    /// Bytes of the replies that wait for credit since then.
    pub(crate) replied: usize,
    /// Whether events were left to the next turn.
    pub(crate) is_interrupted: bool,
    /// Whether a link was answered after its events were handled: it may have got credit before.
    pub(crate) is_answered_late: bool,
}

impl ClientConnection {
    pub(crate) fn new(shared: Arc<Shared>, origin: &ConnectionOrigin) -> Self {
        let now = shared.real.elapsed();
        let mut client = Client::new(shared);
        client.transport = origin.transport();
        let config = client.shared.engine_config(client.caller.ids());
        if let Some(chosen) = client.shared.namespaces.of_origin(origin) {
            client.set_namespace(chosen);
        }
        Self {
            engine: Engine::new(config, now),
            links: Links::default(),
            early_attaches: Vec::new(),
            outbound: Outbound::default(),
            outcomes: Outcomes::new(),
            idle: Idle::default(),
            transactions: Transactions::default(),
            faults: ConnectionFaults::default(),
            memory: MemoryAccount::new(client.shared.memory.open()),
            work: Work::default(),
            turn: Turn::default(),
            client,
        }
    }

    /// Runs one turn as [`Self::turn`] does; returns false if it panicked. Errors for the client then wait to be written.
    pub(crate) fn turn_or_end(
        &mut self,
        input: &mut BytesMut,
        is_heard: impl FnOnce() -> bool,
    ) -> bool {
        self.client.shared.count_activity();
        let done = catch_unwind(AssertUnwindSafe(|| self.turn(input, is_heard)));
        if let Err(payload) = &done {
            self.end_broken(&**payload);
        }
        done.is_ok()
    }

    fn end_broken(&mut self, payload: &(dyn Any + Send)) {
        let place = format!("connection {}", self.client.id.0);
        let failures = &self.client.shared.namespaces.failures;
        failures.add_panic(&place, payload);
        let text = match payload.downcast_ref::<Broken>() {
            Some(broken) => broken.to_string(),
            None => format!("the connection {}", panic_text(payload)),
        };
        let error = ServiceError::new(Condition::InternalError, text);
        // If the engine itself panicked, the client gets no error.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let error = self.client.refuse(&error, None);
            self.engine.close(Some(error));
            self.engine.flush();
        }));
    }

    /// Runs one turn: handles everything in `input` and takes everything reserved, as far as the output has room. `is_heard`
    /// returns whether the client has sent something since the last turn, read or not.
    pub(crate) fn turn(&mut self, input: &mut BytesMut, is_heard: impl FnOnce() -> bool) {
        let now = self.client.shared.real.elapsed();
        (self.turn.handled, self.turn.replied) = (0, 0);
        // What waits while reading is paused is no silence.
        if self.engine.is_silent(now) && is_heard() {
            self.engine.record_input(now);
        }
        self.engine.handle_timeout(now);
        match self.client.wake_handle.take_event() {
            None => {}
            Some(BroadcastEvent::EntitiesChanged) => self.detach_from_changed_entities(),
            Some(BroadcastEvent::ServiceUpdated) => self.detach_all(),
            Some(BroadcastEvent::NamespaceRemoved) => self.close_for_removed_namespace(),
            Some(BroadcastEvent::Crashed) => self.abort(),
        }
        self.follow_tokens(now);
        let mut work = std::mem::take(&mut self.work);
        self.resume_delayed(now, &mut work);
        // Repeated after each event that the engine waited for: more input may follow a SASL init.
        loop {
            self.engine.receive(now, input);
            let handled = self.handle_events(now, &mut work);
            if !handled || input.is_empty() || self.engine.has_more() {
                break;
            }
        }
        self.commit(&mut work);
        self.repeat_outcomes(now);
        // Before the receivers take: sessions that timed-out links give back may be theirs.
        self.refuse_timed_out(now);
        self.detach_due(now);
        self.end_idle(now);
        self.acquire_reserved();
        while std::mem::take(&mut self.turn.is_answered_late) {
            self.handle_events(now, &mut work);
            self.commit(&mut work);
            self.acquire_reserved();
        }
        self.work = work;
        self.engine.flush();
    }

    /// Handles events while the output has room; returns whether there were any.
    fn handle_events(&mut self, now: Duration, work: &mut Work) -> bool {
        let before = self.turn.handled;
        while !self.is_full() {
            // Events are large, so that each is moved only once, from the engine to its handler.
            if !self.early_attaches.is_empty()
                && let Some(early) = self.next_early_attach()
            {
                self.turn.handled += 1;
                self.handle(early, now, work);
                continue;
            }
            let Some(event) = self.engine.poll_event() else {
                break;
            };
            self.turn.handled += 1;
            if self.memory.is_closed() {
                // What it had sent by then would take more.
                continue;
            }
            match self.waits_until(&event) {
                Some(until) => self.early_attaches.push(EarlyAttach { event, until }),
                None => self.handle(event, now, work),
            }
        }
        self.turn.handled > before
    }

    fn handle(&mut self, event: Event, now: Duration, work: &mut Work) {
        self.count_arrival(&event);
        self.record_use(&event, now);
        self.act_for(&event, work);
        self.choose_by_token(&event);
        match self.is_watched() {
            true => self.handle_watched(event, now, work),
            false => self.carry_out(event, now, work),
        }
    }

    pub(crate) fn carry_out(&mut self, event: Event, now: Duration, work: &mut Work) {
        match event {
            Event::Transfer(transfer) => self.on_transfer(transfer, now, work),
            Event::Settle(settlement) => self.on_settle(settlement, work),
            // All other events come after the collected work.
            rare @ (Event::Sasl { .. }
            | Event::Opened(_)
            | Event::Attach { .. }
            | Event::TransferTooLarge { .. }
            | Event::TransferDropped { .. }
            | Event::Credit { .. }
            | Event::Detached { .. }
            | Event::Refused(_)
            | Event::Closed { .. }) => {
                self.commit(work);
                self.handle_rare(rare, now);
            }
        }
    }

    fn handle_rare(&mut self, event: Event, now: Duration) {
        match event {
            Event::Sasl {
                mechanism,
                response,
                hostname,
            } => self.on_sasl(&mechanism, &response, hostname.as_deref()),
            Event::Opened(open) => {
                self.on_open(&open);
                self.connection_opened(now);
            }
            Event::Attach { link, attach } => {
                self.turn.handled += self.links.cost();
                self.on_attach(link, &attach);
            }
            Event::TransferTooLarge {
                link,
                delivery,
                settled,
                size,
                limit,
                head,
                transaction,
            } => {
                let refusal = ServiceError::message_too_large(delivery.0, size, limit);
                match self.links.get(link) {
                    Some(Link::Requests(requests)) => {
                        let requests = requests.clone();
                        let delivery = (link, delivery, settled);
                        self.refuse_large(&requests, delivery, &head, now, &refusal);
                    }
                    _ => {
                        self.refuse_at_commit(transaction.as_deref(), settled, &refusal);
                        self.refuse_transfer(link, delivery, settled, now, &refusal);
                    }
                }
            }
            Event::TransferDropped {
                link,
                settled,
                transaction,
            } => self.on_dropped(link, settled, Some(transaction)),
            Event::Credit {
                link,
                credit,
                drain,
            } => self.on_credit(link, credit, drain),
            Event::Detached { link, closed } => self.on_detached(link, closed),
            // What the engine refuses breaks the protocol, and will again.
            Event::Refused(error) => {
                self.client
                    .record(&error.condition, false, &error.description, None);
            }
            Event::Closed { error } => {
                if let Some(error) = error {
                    tracing::info!(connection = self.client.id.0, condition = %error.condition, text = error.description, "closed");
                }
            }
            Event::Transfer(_) | Event::Settle(_) => {}
        }
    }

    fn on_settle(&mut self, settlement: Settlement, work: &mut Work) {
        let Some(Link::Receiver(receiver)) = self.links.get(settlement.link) else {
            self.answer_late(settlement);
            return;
        };
        let (entity, kind) = (Arc::clone(&receiver.entity), receiver.kind);
        if let Some(transaction) = settlement.transaction.clone() {
            let session = receiver.session;
            self.commit(work);
            self.settle_in(transaction, (entity, kind), session, settlement);
            return;
        }
        match broker_outcome(&settlement.outcome) {
            Ok(outcome) => {
                let token = LockToken::from_tag(settlement.tag);
                if work.is_elsewhere(&entity) {
                    self.commit(work);
                }
                work.settle(entity, kind, token, outcome, settlement);
            }
            Err(refusal) => {
                self.client.attempt =
                    attempted(&settlement.outcome, LockToken::from_tag(settlement.tag));
                let error = self.client.refuse(&refusal, Some((&entity, kind)));
                if !settlement.settled {
                    let outcome = Outcome::from(error);
                    self.settle_delivery(settlement.link, settlement.delivery, outcome);
                }
            }
        }
    }

    /// Answers a settlement on a link that delivers no locked messages. The readers of replies settle them, which needs no
    /// action. On a link that the emulator has closed nothing can be settled any more.
    fn answer_late(&mut self, settlement: Settlement) {
        let refusal = match self.links.get(settlement.link) {
            Some(Link::Replies(_) | Link::Browser(_)) => None,
            Some(Link::Detached(refusal)) => Some(refusal.clone()),
            _ => Some(ServiceError::lock_lost()),
        };
        let outcome = match refusal {
            None => confirmed(settlement.outcome),
            Some(refusal) => {
                // A client that does not wait for outcomes learns of the error at the commit.
                if let Some(transaction) = settlement.transaction.filter(|_| settlement.settled)
                    && let Ok(open) = self.transactions.find(&transaction)
                {
                    open.refuse(&refusal);
                }
                let error = self.client.refuse(&refusal, None);
                if self.engine.shares_session(settlement.link) {
                    return;
                }
                Outcome::from(error)
            }
        };
        if !settlement.settled {
            self.settle_delivery(settlement.link, settlement.delivery, outcome);
        }
    }

    fn on_open(&mut self, open: &PeerOpen) {
        if let Some(host) = &open.hostname {
            self.client.host = without_port(host).to_owned();
            self.client.choose_by_host(host);
        }
        if client::opens_as_fe2o3(open) {
            self.adapt_to_fe2o3();
        }
        self.client.container_id.clone_from(&open.container_id);
        self.client.product.clone_from(&open.product);
        if let Some(namespace) = &self.client.namespace {
            namespace.name_client(self.client.caller.client, &open.container_id);
        }
        tracing::debug!(
            connection = self.client.id.0,
            container = open.container_id,
            "opened"
        );
        self.client.is_jms = open.is_jms;
        self.client.idle_seconds = open.idle_seconds;
        self.check_jms();
    }

    pub(crate) fn output(&mut self) -> &mut Output {
        self.engine.output()
    }

    pub(crate) fn unwritten(&mut self) -> usize {
        self.engine.output().len()
    }

    /// Ends a turn, after which all output was `written` or not; `is_unread` returns whether there is more to read.
    pub(crate) fn turn_ended(&mut self, written: bool, is_unread: impl FnOnce() -> bool) {
        let is_more = self.turn.handled >= HANDLED_AT_ONCE || self.engine.has_more();
        let untaken =
            is_more || !self.client.caller.woken.is_empty() || !self.client.caller.lost.is_empty();
        // Output that a fault holds back must not keep time from advancing.
        let is_unwritten = !written && !self.is_write_paused();
        if written {
            self.outcomes_written();
        }
        self.client
            .wake_handle
            .turn_ended(is_unwritten || untaken, is_unread);
        self.show_view();
        if let Some(namespace) = &self.client.namespace {
            namespace.turns.notify_waiters();
        }
    }

    /// Returns when the connection needs another turn, counted from the start of the clock.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        let timeouts = [
            self.engine.next_timeout(),
            self.outcomes.due(),
            self.client.token_state.due(),
            self.early_attach_due(),
            self.links.due(),
            self.idle.due(),
            self.next_real(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Returns whether this turn had no room for some work.
    pub(crate) fn has_postponed(&self) -> bool {
        let caller = &self.client.caller;
        let is_left = !caller.woken.is_empty() || !caller.lost.is_empty();
        is_left || self.outbound.has_postponed() || self.is_interrupted()
    }

    /// Returns whether the turn has left input to the next one.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.turn.is_interrupted || self.engine.has_more()
    }

    /// Returns whether the turn handles no more events: others get theirs, or the output has no room for a long reply. Replies
    /// that wait for credit count, since the connection's memory is limited between turns.
    fn is_full(&mut self) -> bool {
        let made = self.engine.output_len() + self.turn.replied;
        self.turn.is_interrupted = made >= OUTPUT_FULL || self.turn.handled >= HANDLED_AT_ONCE;
        self.turn.is_interrupted
    }

    /// Returns whether receivers of other connections were woken since the last call.
    pub(crate) fn has_woken_others(&mut self) -> bool {
        std::mem::take(&mut self.client.caller.woke_others)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.engine.is_closed()
    }

    /// Closes the connection because the emulator stops.
    pub(crate) fn send_close(&mut self) {
        let refusal = ServiceError::new(Condition::ConnectionForced, "The emulator is stopping.");
        let error = self.client.refuse(&refusal, None);
        self.engine.close(Some(error));
    }
}

/// Returns a host without its port. An IPv6 address has colons of its own, and a port only after brackets.
fn without_port(host: &str) -> &str {
    let is_port = |name: &str, port: &str| {
        let may_follow = name.ends_with(']') || !name.contains(':');
        may_follow && port.bytes().all(|byte| byte.is_ascii_digit())
    };
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(name, port) => name,
        _ => host,
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        for link in self.links.ids() {
            // A panic that breaks an entity here is reported where it happens, and may happen while another one unwinds.
            let _ = catch_unwind(AssertUnwindSafe(|| self.forget(link)));
        }
        if let Some(namespace) = &self.client.namespace {
            namespace.router.leave(self.client.id);
            namespace.faults.postponed.forget(self.client.id);
            namespace.faults.waits.forget(self.client.id);
            namespace.turns.notify_waiters();
        }
    }
}
