//! Requests to a namespace beside its messages, in every mode.
//!
//! An emulator answers all of them by its control API. A namespace that runs elsewhere answers what its administration API
//! offers; for every other request the default methods return an error that says why it cannot be checked.

use std::{fmt, future::Future, pin::Pin, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use servicebus_assertions::EntityAddress;
use servicebus_control_api::{
    Clock, Counts, Explanation, Failure, Fault, Faults, LoseSessionLock, Receiver, ScriptedFault,
    Session, Timeline,
};

use crate::{catalog::Catalog, error::control::ControlError, running::Termination};

pub(crate) type BoxFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, ControlError>> + Send + 'a>>;

/// The part of a timeline to return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimelineQuery<'a> {
    /// The address of a queue, topic, subscription or sub-queue.
    pub(crate) entity: &'a str,
    /// One message; `None` for all.
    pub(crate) sequence_number: Option<i64>,
    /// Whether to return the messages as well.
    pub(crate) messages: bool,
}

/// A namespace, as requests see and change it.
pub(crate) trait Backend: fmt::Debug + Send + Sync {
    /// Returns the address of the emulator's control API; `None` without an emulator.
    fn control_url(&self) -> Option<String> {
        None
    }

    /// Returns whether this `ServiceBus` created an entity; a namespace that runs elsewhere may hold others.
    fn is_own(&self, name: &str) -> bool;

    /// Returns the name of an entity in the namespace, which may add a prefix.
    fn entity_name(&self, name: &str) -> String {
        name.to_owned()
    }

    /// Returns the state of its clock.
    fn clock(&self) -> BoxFuture<'_, Clock>;

    /// Lets time pass.
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()>;

    /// Counts the messages at an address.
    fn counts<'a>(&'a self, entity: &'a str) -> BoxFuture<'a, Counts>;

    /// Lists the entities.
    fn catalog(&self) -> BoxFuture<'_, Catalog>;

    /// Deletes an entity of this name that a killed run left; refuses if one is there that no test created.
    fn prepare_creation<'a>(&'a self, _address: &'a EntityAddress) -> BoxFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Creates an entity, or changes one and keeps properties that are not set.
    fn put<'a>(&'a self, address: &'a EntityAddress, properties: &'a Value) -> BoxFuture<'a, ()>;

    fn delete<'a>(&'a self, address: &'a EntityAddress) -> BoxFuture<'a, ()>;

    /// Stops the clock.
    fn freeze(&self) -> BoxFuture<'_, ()> {
        unsupported(FROZEN)
    }

    /// Lets a frozen clock run on.
    fn resume(&self) -> BoxFuture<'_, ()> {
        unsupported(FROZEN)
    }

    /// Waits until the namespace is idle.
    fn wait_idle(&self, _within: Duration) -> BoxFuture<'_, ()> {
        unsupported("whether the namespace is idle, which only an emulator knows")
    }

    /// Removes all messages, sessions and history.
    fn reset(&self) -> BoxFuture<'_, ()> {
        unsupported("a reset, which only an emulator supports: start another namespace")
    }

    /// Returns its entities as a configuration that declares the same.
    fn topology(&self) -> BoxFuture<'_, Value> {
        unsupported("an export of the topology, which only an emulator supports")
    }

    /// Returns the events of messages.
    fn timeline<'a>(&'a self, _query: TimelineQuery<'a>) -> BoxFuture<'a, Timeline> {
        unsupported("the record of message events, which only an emulator keeps")
    }

    /// Stores the record before the emulator is restarted.
    fn save_record(&self) -> BoxFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Continues the stored record after the restart.
    fn continue_record(&self, _termination: Termination) -> BoxFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Explains how the rules of a subscription evaluate an encoded message.
    fn explain<'a>(
        &'a self,
        _subscription: &'a str,
        _message: Bytes,
    ) -> BoxFuture<'a, Explanation> {
        unsupported("why a rule selects a message, which only an emulator explains")
    }

    /// Lists the receivers of an entity that have credit or wait for a session.
    fn receivers<'a>(&'a self, _entity: &'a str) -> BoxFuture<'a, Vec<Receiver>> {
        unsupported("which clients receive, which only an emulator lists")
    }

    /// Lists the sessions of a queue or subscription.
    fn sessions<'a>(&'a self, _entity: &'a str) -> BoxFuture<'a, Vec<Session>> {
        unsupported(SESSIONS)
    }

    /// Ends the lock of a session.
    fn lose_session_lock<'a>(&'a self, _lock: &'a LoseSessionLock) -> BoxFuture<'a, ()> {
        unsupported(SESSIONS)
    }

    fn add_fault<'a>(&'a self, _fault: &'a Fault) -> BoxFuture<'a, ScriptedFault> {
        unsupported(FAULT)
    }

    /// Lists all scripted faults.
    fn faults(&self) -> BoxFuture<'_, Faults> {
        unsupported(FAULT)
    }

    fn fault(&self, _id: u64) -> BoxFuture<'_, ScriptedFault> {
        unsupported(FAULT)
    }

    fn remove_fault(&self, _id: u64) -> BoxFuture<'_, ()> {
        unsupported(FAULT)
    }

    /// Ends all locks and links, as an update of the service does.
    fn update_service(&self) -> BoxFuture<'_, ()> {
        unsupported("an update of the service, which only an emulator simulates")
    }

    /// Returns the unmodified answer of the control API at a path of the namespace.
    fn get_json<'a>(
        &'a self,
        _path: &'a str,
        _query: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Value> {
        unsupported("what only the control API of an emulator answers")
    }

    /// Lists internal failures of the emulator.
    fn failures(&self) -> BoxFuture<'_, Vec<Failure>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    /// Returns the certificates that clients over TLS must trust, in PEM.
    fn ca_certificate(&self) -> BoxFuture<'_, String> {
        unsupported("the CA certificate of the namespace, which clients trust already")
    }
}

const FROZEN: &str = "a frozen clock, which only an emulator has";
const SESSIONS: &str = "the sessions with their holders and states, which only an emulator lists";
const FAULT: &str = "a scripted fault, which only an emulator has";

/// The error for requests that only an emulator supports.
fn unsupported<'a, T: Send + 'a>(what: &str) -> BoxFuture<'a, T> {
    let what = what.to_owned();
    Box::pin(async move { Err(ControlError::Unsupported { what }) })
}
