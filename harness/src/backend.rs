//! What a namespace can be asked beside its messages, whichever way it runs.
//!
//! An emulator answers everything by its control API. A namespace that runs elsewhere answers what its administration API
//! tells; every other question has a default answer here: it could not be checked, and why.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use servicebus_assertions::Place;
use servicebus_control_api::{
    Clock, Counts, Explanation, Failure, Fault, Faults, LoseSessionLock, Receiver, ScriptedFault,
    Session, Timeline,
};

use crate::{catalog::Catalog, error::control::ControlError, running::Ending};

/// An answer that is waited for.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, ControlError>> + Send + 'a>>;

/// Which part of a timeline is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimelineQuery<'a> {
    /// The address of a queue, topic, subscription or sub-queue.
    pub(crate) entity: &'a str,
    /// One message; all where none is named.
    pub(crate) sequence_number: Option<i64>,
    /// Whether the messages are asked for, too.
    pub(crate) messages: bool,
}

/// A namespace, by what can be asked of it and done to it.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// The address of the emulator's control API, if it is one of an emulator.
    fn control_url(&self) -> Option<String> {
        None
    }

    /// Whether an entity was made by this `ServiceBus`; a namespace that runs elsewhere may hold others.
    fn is_own(&self, name: &str) -> bool;

    /// The name that an entity has there, where entities are renamed.
    fn entity_name(&self, name: &str) -> String {
        name.to_owned()
    }

    /// What its clock shows.
    fn clock(&self) -> Answer<'_, Clock>;

    /// Lets time pass.
    fn advance(&self, by: Duration) -> Answer<'_, ()>;

    /// How many messages are at an address.
    fn counts<'a>(&'a self, entity: &'a str) -> Answer<'a, Counts>;

    /// The entities that there are.
    fn catalog(&self) -> Answer<'_, Catalog>;

    /// Makes an entity, or changes one and leaves what is not said.
    fn put<'a>(&'a self, place: &'a Place, properties: &'a Value) -> Answer<'a, ()>;

    /// Removes an entity.
    fn delete<'a>(&'a self, place: &'a Place) -> Answer<'a, ()>;

    /// Stops the clock.
    fn freeze(&self) -> Answer<'_, ()> {
        uncheckable(FROZEN)
    }

    /// Lets a frozen clock run on.
    fn resume(&self) -> Answer<'_, ()> {
        uncheckable(FROZEN)
    }

    /// Waits until the namespace is idle.
    fn wait_idle(&self, _within: Duration) -> Answer<'_, ()> {
        uncheckable("whether all is idle, which only an emulator knows")
    }

    /// Removes every message, session and history.
    fn reset(&self) -> Answer<'_, ()> {
        uncheckable("a reset, which only an emulator does: start another namespace")
    }

    /// What it holds, as a configuration that declares the same again.
    fn topology(&self) -> Answer<'_, Value> {
        uncheckable("what a namespace holds as a topology, which only an emulator writes")
    }

    /// What happened to messages.
    fn timeline<'a>(&'a self, _query: TimelineQuery<'a>) -> Answer<'a, Timeline> {
        uncheckable("the record of what happened to messages, which only an emulator keeps")
    }

    /// Remembers what happened so far, before the emulator is started again.
    fn remember(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Goes on with what was remembered, now that the emulator has been started again.
    fn go_on(&self, _ending: Ending) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// What the rules of a subscription say of an encoded message.
    fn explain<'a>(&'a self, _subscription: &'a str, _message: Bytes) -> Answer<'a, Explanation> {
        uncheckable("why a rule selects a message, which only an emulator explains")
    }

    /// The receivers of an entity that have asked for messages or wait for a session.
    fn receivers<'a>(&'a self, _entity: &'a str) -> Answer<'a, Vec<Receiver>> {
        uncheckable("which clients receive, which only an emulator lists")
    }

    /// The sessions of a queue or subscription.
    fn sessions<'a>(&'a self, _entity: &'a str) -> Answer<'a, Vec<Session>> {
        uncheckable(SESSIONS)
    }

    /// Ends the lock of a session.
    fn lose_session_lock<'a>(&'a self, _lock: &'a LoseSessionLock) -> Answer<'a, ()> {
        uncheckable(SESSIONS)
    }

    /// Scripts a fault.
    fn add_fault<'a>(&'a self, _fault: &'a Fault) -> Answer<'a, ScriptedFault> {
        uncheckable(FAULT)
    }

    /// All faults that are scripted.
    fn faults(&self) -> Answer<'_, Faults> {
        uncheckable(FAULT)
    }

    /// One of them.
    fn fault(&self, _id: u64) -> Answer<'_, ScriptedFault> {
        uncheckable(FAULT)
    }

    /// Removes a fault.
    fn remove_fault(&self, _id: u64) -> Answer<'_, ()> {
        uncheckable(FAULT)
    }

    /// Ends all locks and links, as when the service is updated.
    fn update_service(&self) -> Answer<'_, ()> {
        uncheckable("an update of the service, which only an emulator does when it is told to")
    }

    /// The answer of the control API at a path of the namespace, as it stands.
    fn answer<'a>(&'a self, _path: &'a str, _query: &'a [(&'a str, &'a str)]) -> Answer<'a, Value> {
        uncheckable("what only the control API of an emulator answers")
    }

    /// What has failed inside, by a mistake of an emulator.
    fn failures(&self) -> Answer<'_, Vec<Failure>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// The certificates that clients over TLS must trust, in PEM.
    fn ca_certificate(&self) -> Answer<'_, String> {
        uncheckable(
            "the authority that signed for the namespace, which clients trust by their system",
        )
    }
}

const FROZEN: &str =
    "what happens while the clock stands still, which only that of an emulator does";
const SESSIONS: &str = "the sessions with their holders and states, which only an emulator lists";
const FAULT: &str = "a scripted fault, which only an emulator has";

/// What only an emulator can tell or do.
fn uncheckable<'a, T: Send + 'a>(what: &str) -> Answer<'a, T> {
    let what = what.to_owned();
    Box::pin(async move { Err(ControlError::Uncheckable { what }) })
}
