//! `POST` and `DELETE {entity}/messages/head`: receives a message, or waits for one.
//!
//! A waiting request is a receiver with credit for one message. When its client disconnects the request is dropped, and its
//! reserved message is ready again. A message that it has taken stays locked even if the response is lost, until the lock
//! ends; a message received in receive-and-delete is gone, as over AMQP when a link breaks (semantics §2.2).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use servicebus_broker::{
    Context, Delivery, Entity, EntityPath, LockToken, Outcome, PropertyChanges, ReceiveMode,
    ReceiverId, RenewError, SettleError,
};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::LockedMessage;
use super::context::{Rejection, RequestContext, Target};
use super::decoded::DecodedMessage;
use crate::durable::MissingBodies;
use crate::nodes::{Condition, ServiceError, quote, settle_refusal};
use crate::service_http;
use crate::service_http::XML;

/// The default timeout, in seconds.
const DEFAULT_TIMEOUT: u64 = 60;
/// Longer than any client keeps a request open, in seconds.
const MAX_TIMEOUT: u64 = 24 * 60 * 60;
/// Characters that must be encoded in a path.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?');

/// A receiver for one message, which is removed when this is dropped.
struct RequestReceiver<'a> {
    context: &'a mut RequestContext,
    target: &'a Target,
    id: ReceiverId,
}

impl RequestContext {
    /// 201 with a locked message, 200 with one that was removed from the entity, or 204.
    pub(crate) async fn receive(
        &mut self,
        target: &Target,
        parts: &Parts,
        waiting: &Arc<Waiting>,
        mode: ReceiveMode,
    ) -> Result<Response, Rejection> {
        let Some(delivery) = self.await_delivery(target, parts, waiting, mode).await? else {
            return Ok(StatusCode::NO_CONTENT.into_response());
        };
        let (status, location) = match mode {
            ReceiveMode::PeekLock => {
                let location = self.location(target, parts, &delivery);
                (StatusCode::CREATED, location)
            }
            ReceiveMode::ReceiveAndDelete => (StatusCode::OK, None),
        };
        self.show(target, &delivery, status, location)
    }

    async fn await_delivery(
        &mut self,
        target: &Target,
        parts: &Parts,
        waiting: &Arc<Waiting>,
        mode: ReceiveMode,
    ) -> Result<Option<Delivery>, Rejection> {
        let deadline = Instant::now() + timeout(parts)?;
        check_receiving(self, target)?;
        let _turn = waiting.enter(target.namespace.name(), &target.entity.path)?;
        target.namespace.router.enter(self.id, &self.wake_handle);
        let wake_handle = Arc::clone(&self.wake_handle);
        let mut stop = self.connection_info.stop.clone();
        let mut receiver = RequestReceiver::open(self, target, mode);
        loop {
            if let Some(delivery) = receiver.take() {
                return Ok(Some(delivery));
            }
            tokio::select! {
                () = wake_handle.woken() => {}
                () = sleep_until(deadline) => return Ok(receiver.take()),
                _ = stop.changed() => return Err(Rejection::stopping()),
            }
            if wake_handle.take_event().is_some() {
                check_receiving(receiver.context, target)?;
            }
        }
    }

    fn show(
        &self,
        target: &Target,
        delivery: &Delivery,
        status: StatusCode,
        location: Option<HeaderValue>,
    ) -> Result<Response, Rejection> {
        // Unreachable: an accepted message was validated completely. A lock would expire.
        let mut opened = DecodedMessage::read(delivery, target.ahead()).map_err(|error| {
            let text = format!("A message cannot be decoded: {error}.");
            ServiceError::new(Condition::InternalError, text)
        })?;
        self.write_names(opened.names());
        Ok(opened.respond(status, location))
    }

    /// Returns the URL to settle the locked message; in lower case, since clients look for `/subscriptions/`. Each character by
    /// itself, as names are compared: the last Σ of a word has another lower case as part of the text.
    fn location(&self, target: &Target, parts: &Parts, delivery: &Delivery) -> Option<HeaderValue> {
        let written = parts.uri.scheme_str();
        let scheme = written.unwrap_or_else(|| self.connection_info.scheme());
        let authority = service_http::authority(parts);
        let address = target.entity.store_path(target.kind);
        let address: String = address.chars().flat_map(char::to_lowercase).collect();
        let address = utf8_percent_encode(&address, PATH);
        let number = delivery.broker_properties.sequence_number;
        let location = format!(
            "{scheme}://{authority}/{address}/messages/{number}/{}",
            delivery.token
        );
        HeaderValue::try_from(location).ok()
    }
}

impl<'a> RequestReceiver<'a> {
    fn open(context: &'a mut RequestContext, target: &'a Target, mode: ReceiveMode) -> Self {
        let id = context.id.receiver_id(1);
        let kind = target.kind;
        target
            .namespace
            .operate(&target.entity, &mut context.caller, |entity, cx| {
                entity.attach_receiver(kind, id, mode);
                entity.set_credit(cx, kind, id, 1);
            });
        Self {
            context,
            target,
            id,
        }
    }

    /// Takes the message reserved for the request, if any.
    fn take(&mut self) -> Option<Delivery> {
        let Target {
            namespace,
            entity,
            kind,
        } = self.target;
        let (mut taken, mut missing) = (Vec::new(), MissingBodies::default());
        namespace.operate(entity, &mut self.context.caller, |entity, cx| {
            entity.acquire(cx, *kind, self.id, 1, usize::MAX, &mut taken);
            missing = namespace.missing_bodies_of(&taken);
        });
        missing.fill(taken.iter_mut().map(|delivery| &mut delivery.message));
        let (caller, wake_handle) = (&mut self.context.caller, &self.context.wake_handle);
        wake_handle.take_woken(&mut caller.woken, &mut caller.lost);
        caller.woken.clear();
        wake_handle.turn_ended(false, || false);
        namespace.turns.notify_waiters();
        taken.pop()
    }
}

impl Drop for RequestReceiver<'_> {
    fn drop(&mut self) {
        let Target {
            namespace,
            entity,
            kind,
        } = self.target;
        // The entity may break while a panic unwinds; the panic is reported where it happens.
        let _ = namespace.try_operate(entity, &mut self.context.caller, |entity, cx| {
            entity.detach_keeping_locks(cx, *kind, self.id);
        });
    }
}

/// Checks whether messages can be received from this address now. The API does not support sessions.
fn check_receiving(context: &RequestContext, target: &Target) -> Result<(), ServiceError> {
    let Target {
        namespace,
        entity,
        kind,
    } = target;
    entity.check_is_received_from(*kind)?;
    namespace.check_receiving(entity, *kind, &context.host)?;
    match namespace.requires_session(entity, *kind) {
        true => Err(ServiceError::requires_session()),
        false => Ok(()),
    }
}

/// Parses `timeout=` in seconds of real time (decision D19).
fn timeout(parts: &Parts) -> Result<Duration, Rejection> {
    let pairs = parts.uri.query().unwrap_or_default().split('&');
    let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let found = pairs.find(|(name, _)| name.eq_ignore_ascii_case("timeout"));
    let Some((_, written)) = found else {
        return Ok(Duration::from_secs(DEFAULT_TIMEOUT));
    };
    let decoded = percent_decode_str(written).decode_utf8_lossy();
    let is_number = !decoded.is_empty() && decoded.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number {
        let text = format!(
            "The query parameter 'timeout' is '{}'; allowed: a number of seconds from 0.",
            quote(&decoded)
        );
        return Err(Rejection::bad_request(text));
    }
    let seconds = decoded.parse().unwrap_or(MAX_TIMEOUT).min(MAX_TIMEOUT);
    Ok(Duration::from_secs(seconds))
}

impl RequestContext {
    /// Completes the message: it is removed.
    pub(crate) fn complete(
        &mut self,
        target: &Target,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        self.settle(target, lock, Outcome::Complete)
    }

    /// Unlocks the message: it is ready again, and the delivery counts as failed, as after an abandon.
    pub(crate) fn unlock(
        &mut self,
        target: &Target,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        let changes = PropertyChanges::new();
        self.settle(target, lock, Outcome::Abandon { changes })
    }

    /// Renews the lock: it lasts from now for the lock duration.
    pub(crate) fn renew(
        &mut self,
        target: &Target,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        let kind = target.kind;
        let renewed = self.with_lock(target, lock, |entity, cx, token| {
            entity.renew_locks(cx, kind, &[token]).map(drop)
        });
        let renewed = renewed.unwrap_or_else(|| Err(RenewError::LockLost(token(lock))));
        let path = &target.entity.path;
        let renewed = renewed.map_err(|error| match error {
            RenewError::LockLost(_) => ServiceError::lock_lost(),
            RenewError::UnderSession(_) => ServiceError::locked_by_session(path.as_str()),
            RenewError::Disabled => ServiceError::disabled(&self.host, path.as_str()),
        });
        self.answer(target, renewed)
    }

    fn settle(
        &mut self,
        target: &Target,
        lock: &LockedMessage,
        outcome: Outcome,
    ) -> Result<Response, Rejection> {
        let kind = target.kind;
        let settled = self.with_lock(target, lock, |entity, cx, token| {
            entity.settle(cx, kind, token, outcome)
        });
        let settled = settled.unwrap_or(Err(SettleError::LockLost));
        let path = &target.entity.path;
        let settled = settled.map_err(|error| settle_refusal(&error, &self.host, path));
        self.answer(target, settled)
    }

    /// Runs an operation on a lock, if it is that of the message in the path.
    fn with_lock<T>(
        &mut self,
        target: &Target,
        lock: &LockedMessage,
        work: impl FnOnce(&mut Entity, &mut Context<'_>, LockToken) -> T,
    ) -> Option<T> {
        let token = token(lock);
        let (entity, kind) = (&target.entity, target.kind);
        target
            .namespace
            .operate(entity, &mut self.caller, |entity, cx| {
                let (number, message) = entity.locked_message(kind, token)?;
                let is_meant = message.id() == lock.id || number.to_string() == lock.id;
                is_meant.then(|| work(entity, cx, token))
            })
    }

    fn answer(
        &self,
        target: &Target,
        result: Result<(), ServiceError>,
    ) -> Result<Response, Rejection> {
        let entity = &target.entity;
        result.map_err(|refusal| match entity.is_deleted() {
            true => self.not_found(entity),
            false => refusal.into(),
        })?;
        Ok((StatusCode::OK, [(CONTENT_TYPE, XML)]).into_response())
    }
}

/// An invalid token counts as one that locks nothing.
fn token(lock: &LockedMessage) -> LockToken {
    lock.token.parse().unwrap_or(Uuid::nil()).into()
}

/// The waiting requests, by namespace and by queue or topic.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// Maximum number of concurrent ones on one entity.
    most: u32,
    counts: Mutex<BTreeMap<WaitKey, u32>>,
}

/// A namespace and a queue or topic in it.
type WaitKey = (String, EntityPath);

/// A waiting request, until this is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    waiting: Arc<Waiting>,
    target: WaitKey,
}

impl Waiting {
    pub(crate) fn new(most: u32) -> Self {
        Self {
            most,
            counts: Mutex::default(),
        }
    }

    /// Lets a request wait for messages of `entity`, unless too many do already.
    pub(crate) fn enter(
        self: &Arc<Self>,
        namespace: &str,
        entity: &EntityPath,
    ) -> Result<Permit, ServiceError> {
        let counted = entity
            .topic()
            .map_or_else(|| entity.clone(), |(topic, _)| topic);
        let target = (namespace.to_owned(), counted);
        let most = self.most;
        let mut waiting = self.counts.lock();
        let count = waiting.entry(target.clone()).or_insert(0);
        if *count >= most {
            let text = format!(
                "The request was terminated because the entity is being throttled: {most} receive requests wait at \
                 '{}' already. Error code: 50009. Please wait 2 seconds and try again.",
                target.1
            );
            return Err(ServiceError::new(Condition::ServerBusy, text));
        }
        *count += 1;
        Ok(Permit {
            waiting: Arc::clone(self),
            target,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let waiting = &self.waiting.counts;
        let mut waiting = waiting.lock();
        if let Some(count) = waiting.get_mut(&self.target) {
            *count -= 1;
            if *count == 0 {
                waiting.remove(&self.target);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_receives_of_a_topic_are_counted_together_until_removed() {
        const MOST: u32 = 10;
        let waiting = Arc::new(Waiting::new(MOST));
        let path = |text: &str| EntityPath::of_address(text).expect("a path");
        let enter = |namespace: &str, text: &str| waiting.enter(namespace, &path(text));
        let half = |name: &str| {
            (0..MOST / 2)
                .map(|_| enter("a", name).expect("room"))
                .collect()
        };
        let first: Vec<Permit> = half("t/Subscriptions/one");
        let second: Vec<Permit> = half("T/subscriptions/two");
        let refused = enter("a", "t/Subscriptions/three").expect_err("no room");
        assert_eq!(refused.condition, Condition::ServerBusy);
        assert!(
            enter("b", "t/Subscriptions/three").is_ok(),
            "another namespace"
        );
        assert!(enter("a", "q").is_ok(), "another entity");
        drop(first);
        assert!(enter("a", "t/Subscriptions/three").is_ok());
        drop(second);
        assert!(waiting.counts.lock().is_empty());
    }
}
