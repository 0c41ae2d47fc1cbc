//! The state of one connection, and how a turn goes through it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use servicebus_amqp::{
    Connection as Engine, Error, Event, LinkId, Outcome, Output, PeerOpen, Settlement,
};
use servicebus_broker::{Delivery, LockToken, ReceiverId, SubQueue};

use super::account::Books;
use super::clients;
use super::commit::{Work, attempted};
use super::faults::ConnectionFaults;
use super::held::Held;
use super::identifiers::Identifiers;
use super::idle::Idle;
use super::links::Link;
use super::tokens::Proof;
use super::transactions::Transactions;
use super::{HANDLED_AT_ONCE, OUTPUT_FULL};
use crate::auth::Grants;
use crate::namespace::{Attempt, Caller, Namespace, SharedEntity, system_tracker};
use crate::namespaces::ConnectionOrigin;
use crate::nodes::{Condition, ServiceError, broker_outcome};
use crate::router::{BroadcastEvent, ConnectionId, WakeHandle};
use crate::shared::Shared;

/// One connection without its socket.
pub(super) struct ClientConnection {
    pub(super) shared: Arc<Shared>,
    pub(super) id: ConnectionId,
    pub(super) bell: Arc<WakeHandle>,
    pub(super) engine: Engine,
    /// Chosen once (interfaces.md); until then only `$cbs` may be attached.
    pub(super) namespace: Option<Arc<Namespace>>,
    pub(super) caller: Caller,
    pub(super) grants: Grants,
    pub(super) proof: Proof,
    pub(super) host: String,
    /// What the client calls itself; empty until it has said so.
    container_id: String,
    pub(super) is_jms: bool,
    pub(super) identifiers: Identifiers,
    /// What is refused next, if it is.
    pub(super) attempt: Attempt,
    pub(super) links: BTreeMap<LinkId, Link>,
    pub(super) receivers: BTreeMap<ReceiverId, LinkId>,
    pub(super) consumers_made: u32,
    /// The links that wait for a session, by when they have waited for long enough.
    pub(super) waiting: BTreeSet<(Duration, LinkId)>,
    /// The links that have lost their sessions, by when they are detached.
    pub(super) lost: BTreeSet<(Duration, LinkId)>,
    /// Whether a link was answered after its events were handled: it may have been given credit before.
    pub(super) answered_late: bool,
    pub(super) held: Held,
    pub(super) idle: Idle,
    pub(super) transactions: Transactions,
    pub(super) faults: ConnectionFaults,
    pub(super) books: Books,
    work: Work,
    /// Events handled in this turn.
    handled: usize,
    /// Whether events were left to the next turn.
    pub(super) interrupted: bool,
    /// Receivers with something reserved that the output had no room for.
    pub(super) postponed: Vec<ReceiverId>,
    pub(super) taken: Vec<Delivery>,
    pub(super) scratch: Vec<u8>,
    /// Links with outcomes that are not in the socket yet.
    pub(super) answered: Vec<LinkId>,
    pub(super) replies_sent: u64,
}

impl ClientConnection {
    /// A connection of somebody who came in this way.
    pub(super) fn new(shared: Arc<Shared>, arrival: &ConnectionOrigin) -> Self {
        let id = shared.next_connection();
        let now = shared.real.elapsed();
        let mut caller = Caller::new(id, shared.options.seed);
        let config = shared.engine_config(caller.ids());
        let chosen = shared.namespaces.of_arrival(arrival);
        let proof = Proof::Owed(now + shared.options.patience);
        let mut peer = Self {
            engine: Engine::new(config, now),
            namespace: None,
            held: Held::new(),
            idle: Idle::default(),
            transactions: Transactions::default(),
            faults: ConnectionFaults::default(),
            books: Books::new(shared.memory.open()),
            id,
            bell: Arc::default(),
            caller,
            shared,
            grants: Grants::default(),
            proof,
            host: String::from("localhost"),
            container_id: String::new(),
            is_jms: false,
            identifiers: Identifiers::default(),
            attempt: Attempt::default(),
            links: BTreeMap::new(),
            receivers: BTreeMap::new(),
            consumers_made: 0,
            waiting: BTreeSet::new(),
            lost: BTreeSet::new(),
            answered_late: false,
            work: Work::default(),
            handled: 0,
            interrupted: false,
            postponed: Vec::new(),
            taken: Vec::new(),
            scratch: Vec::new(),
            answered: Vec::new(),
            replies_sent: 0,
        };
        if let Some(chosen) = chosen {
            peer.belong_to(chosen);
        }
        peer
    }

    /// Chooses the namespace: from here on its rest includes us, and its timeline knows our name.
    pub(super) fn belong_to(&mut self, namespace: Arc<Namespace>) {
        namespace.router.enter(self.id, &self.bell);
        self.bell.connecting();
        if !self.container_id.is_empty() {
            namespace.name_client(self.caller.client, &self.container_id);
        }
        self.namespace = Some(namespace);
    }

    /// One turn: everything in `input` is dealt with and everything reserved is taken, as far as the output
    /// has room. Returns how many bytes wait to be written.
    pub(super) fn turn(&mut self, input: &mut BytesMut) -> usize {
        let now = self.shared.real.elapsed();
        self.handled = 0;
        self.engine.handle_timeout(now);
        match self.bell.news() {
            None => {}
            Some(BroadcastEvent::EntitiesChanged) => self.follow_changes(),
            Some(BroadcastEvent::ServiceUpdated) => self.detach_all(),
            Some(BroadcastEvent::Dismissed) => self.follow_dismissal(),
        }
        self.follow_tokens();
        let mut work = std::mem::take(&mut self.work);
        self.release_parked(now, &mut work);
        // Once more after each event that the engine waited for: behind a SASL init more may stand already.
        loop {
            self.engine.receive(now, input);
            let handled = self.handle_events(now, &mut work);
            if !handled || input.is_empty() {
                break;
            }
        }
        self.commit(&mut work);
        self.release_held(now);
        // Before the others take: what the impatient give back may be theirs.
        self.refuse_impatient(now);
        self.detach_due(now);
        self.end_idle(now);
        self.acquire_reserved();
        while std::mem::take(&mut self.answered_late) {
            self.handle_events(now, &mut work);
            self.commit(&mut work);
            self.acquire_reserved();
        }
        self.work = work;
        self.engine.flush();
        self.engine.output().len()
    }

    /// Handles what happened, as far as the output has room; says whether anything did.
    fn handle_events(&mut self, now: Duration, work: &mut Work) -> bool {
        let before = self.handled;
        while !self.is_full()
            && let Some(event) = self.engine.poll_event()
        {
            self.handled += 1;
            self.handle(event, now, work);
        }
        self.handled > before
    }

    fn handle(&mut self, event: Event, now: Duration, work: &mut Work) {
        self.count_arrival(&event);
        self.note_use(&event, now);
        self.act_for(&event, work);
        match self.is_watched() {
            true => self.handle_watched(event, now, work),
            false => self.carry_out(event, now, work),
        }
    }

    /// Does what an event asks for.
    pub(super) fn carry_out(&mut self, event: Event, now: Duration, work: &mut Work) {
        match event {
            Event::Transfer(transfer) => self.on_transfer(transfer, now, work),
            Event::Settle(settlement) => self.on_settle(settlement, work),
            // Whatever else happens comes after what has gathered.
            rare @ (Event::Sasl { .. }
            | Event::Opened(_)
            | Event::Attach { .. }
            | Event::TransferTooLarge { .. }
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
                self.meet_connection(now);
            }
            Event::Attach { link, attach } => self.on_attach(link, &attach),
            Event::TransferTooLarge {
                link,
                delivery,
                settled,
                size,
                limit,
            } => {
                let refusal = ServiceError::message_too_large(delivery.0, size, limit);
                self.refuse_transfer(link, delivery, settled, now, &refusal);
            }
            Event::Credit {
                link,
                credit,
                drain,
            } => self.on_credit(link, credit, drain),
            Event::Detached { link } => self.forget(link),
            // What the engine refuses breaks the protocol, and will again.
            Event::Refused(error) => {
                self.record(&error.condition, false, &error.description, None);
            }
            Event::Closed { error } => {
                if let Some(error) = error {
                    tracing::info!(connection = self.id.0, condition = %error.condition, text = error.description, "closed");
                }
            }
            Event::Transfer(_) | Event::Settle(_) => {}
        }
    }

    fn on_settle(&mut self, settlement: Settlement, work: &mut Work) {
        let Some(Link::Receiver(receiver)) = self.links.get(&settlement.link) else {
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
                self.attempt = attempted(&settlement.outcome, LockToken::from_tag(settlement.tag));
                let error = self.refuse(&refusal, Some((&entity, kind)));
                if !settlement.settled {
                    let outcome = Outcome::from(error);
                    self.settle_delivery(settlement.link, settlement.delivery, outcome);
                }
            }
        }
    }

    /// Replies are settled by their readers; there is nothing to do but to agree. On a link that we have detached
    /// nothing can be settled any more.
    fn answer_late(&mut self, settlement: Settlement) {
        let outcome = match self.links.get(&settlement.link) {
            Some(Link::Detached(refusal)) => {
                let refusal = refusal.clone();
                Outcome::from(self.refuse(&refusal, None))
            }
            _ => settlement.outcome,
        };
        if !settlement.settled {
            self.settle_delivery(settlement.link, settlement.delivery, outcome);
        }
    }

    fn on_open(&mut self, open: &PeerOpen) {
        if let Some(host) = &open.hostname {
            self.host = host
                .rsplit_once(':')
                .map_or(host.as_str(), |(host, _)| host)
                .to_owned();
            self.choose_by_host(host);
        }
        if self.shared.options.outcome_delay && clients::opens_as_fe2o3(open) {
            self.held.delay();
        }
        self.container_id.clone_from(&open.container_id);
        if let Some(namespace) = &self.namespace {
            namespace.name_client(self.caller.client, &open.container_id);
        }
        tracing::debug!(
            connection = self.id.0,
            container = open.container_id,
            "opened"
        );
        self.is_jms = open.is_jms;
        self.check_jms();
    }

    pub(super) fn choose_by_host(&mut self, host: &str) {
        if self.namespace.is_none()
            && let Some(namespace) = self.shared.namespaces.of_host(host)
        {
            self.belong_to(namespace);
        }
    }

    /// Makes a refusal an AMQP error, with a tracking id, in the log and the timeline.
    pub(super) fn refuse(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> Error {
        let text = self.track(refusal, place);
        refusal.error(text)
    }

    /// The text of a refusal with its tracking id (decision D29).
    pub(super) fn track(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> String {
        let text = self.track_quietly(refusal, place);
        let condition = refusal.condition;
        self.record(condition.symbol(), condition.may_retry(), &text, place);
        text
    }

    /// The same for what the record tells of in another way.
    pub(super) fn track_quietly(
        &mut self,
        refusal: &ServiceError,
        place: Option<(&SharedEntity, SubQueue)>,
    ) -> String {
        let system = system_tracker(self.namespace.as_deref(), place);
        let tracking = self.shared.tracking_id(self.caller.ids());
        refusal.tracked(tracking, &system, self.shared.real.now())
    }

    /// Puts a refusal into the log and the timeline.
    fn record(
        &mut self,
        condition: &str,
        may_retry: bool,
        text: &str,
        place: Option<(&SharedEntity, SubQueue)>,
    ) {
        tracing::info!(
            connection = self.id.0,
            condition,
            may_retry,
            text,
            "refused"
        );
        if let Some(namespace) = &self.namespace {
            let attempt = std::mem::take(&mut self.attempt);
            let refusal = (condition, text);
            namespace.note_refused_attempt(self.caller.client, place, &attempt, refusal);
        }
    }

    pub(super) fn output(&mut self) -> &mut Output {
        self.engine.output()
    }

    pub(super) fn unwritten(&mut self) -> usize {
        self.engine.output().len()
    }

    /// A turn is over, and all output was `written` or not; `is_unread` says whether there is more to read.
    pub(super) fn turn_ended(&mut self, written: bool, is_unread: impl FnOnce() -> bool) {
        let is_more = self.handled >= HANDLED_AT_ONCE;
        let untaken = is_more || !self.caller.woken.is_empty() || !self.caller.lost.is_empty();
        // What a fault keeps from being written must not keep time from going on.
        let is_unwritten = !written && !self.is_silent();
        if written {
            self.outcomes_written();
        }
        self.bell.turn_ended(is_unwritten || untaken, is_unread);
        if let Some(namespace) = &self.namespace {
            namespace.turns.notify_waiters();
        }
    }

    /// When this wants another turn, counted from the start of the clock.
    pub(super) fn next_timeout(&self) -> Option<Duration> {
        let impatient = self.waiting.first().map(|&(until, _)| until);
        let lost = self.lost.first().map(|&(until, _)| until);
        let timeouts = [
            self.engine.next_timeout(),
            self.held.due(),
            self.proof.due(&self.shared.real),
            impatient,
            lost,
            self.idle.due(),
            self.next_real(),
        ];
        timeouts.into_iter().flatten().min()
    }

    /// Whether there is work that this turn had no room for.
    pub(super) fn has_postponed(&self) -> bool {
        !self.postponed.is_empty() || self.interrupted
    }

    /// Whether the turn handles no more events: others have theirs, or the output has no room for a long reply.
    fn is_full(&mut self) -> bool {
        self.interrupted = self.engine.output().len() + self.held.bytes() >= OUTPUT_FULL
            || self.handled >= HANDLED_AT_ONCE;
        self.interrupted
    }

    /// Whether others were told of messages since this was last asked.
    pub(super) fn has_told_others(&mut self) -> bool {
        std::mem::take(&mut self.caller.told_others)
    }

    pub(super) fn is_over(&self) -> bool {
        self.engine.is_closed()
    }

    /// The emulator stops.
    pub(super) fn say_goodbye(&mut self) {
        let refusal = ServiceError::new(Condition::ConnectionForced, "The emulator is stopping.");
        let error = self.refuse(&refusal, None);
        self.engine.close(Some(error));
    }
}

impl Drop for ClientConnection {
    fn drop(&mut self) {
        let links: Vec<LinkId> = self.links.keys().copied().collect();
        for link in links {
            // What breaks an entity here is told of where it breaks, and may happen while a panic is carried on.
            let _ = catch_unwind(AssertUnwindSafe(|| self.forget(link)));
        }
        if let Some(namespace) = &self.namespace {
            namespace.router.leave(self.id);
            namespace.turns.notify_waiters();
        }
    }
}
