//! `DELETE`, `PUT` and `POST {entity}/messages/{message id or sequence number}/{lock token}`: a locked message is
//! completed, unlocked, or locked for longer.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use servicebus_broker::{
    Context, Entity, LockToken, Outcome, PropertyChanges, RenewError, SettleError,
};
use uuid::Uuid;

use super::context::{Place, RequestContext};
use super::rejection::Rejection;
use super::route::LockedMessage;
use crate::nodes::{ServiceError, settle_refusal};
use crate::service_http::XML;

impl RequestContext {
    /// Done: it is removed.
    pub(crate) fn complete(
        &mut self,
        place: &Place,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        self.settle(place, lock, Outcome::Complete)
    }

    /// It is ready again, and the delivery counts as failed, as when it is abandoned.
    pub(crate) fn unlock(
        &mut self,
        place: &Place,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        let changes = PropertyChanges::new();
        self.settle(place, lock, Outcome::Abandon { changes })
    }

    /// Its lock lasts from now for the lock duration.
    pub(crate) fn renew(
        &mut self,
        place: &Place,
        lock: &LockedMessage,
    ) -> Result<Response, Rejection> {
        let kind = place.kind;
        let renewed = self.with_lock(place, lock, |entity, cx, token| {
            entity.renew_locks(cx, kind, &[token]).map(drop)
        });
        let renewed = renewed.unwrap_or_else(|| Err(RenewError::LockLost(token(lock))));
        let path = &place.entity.path;
        let renewed = renewed.map_err(|error| match error {
            RenewError::LockLost(_) => ServiceError::lock_lost(),
            RenewError::UnderSession(_) => ServiceError::locked_by_session(path.as_str()),
            RenewError::Disabled => ServiceError::disabled(&self.host, path.as_str()),
        });
        self.answer(place, renewed)
    }

    fn settle(
        &mut self,
        place: &Place,
        lock: &LockedMessage,
        outcome: Outcome,
    ) -> Result<Response, Rejection> {
        let kind = place.kind;
        let settled = self.with_lock(place, lock, |entity, cx, token| {
            entity.settle(cx, kind, token, outcome)
        });
        let settled = settled.unwrap_or(Err(SettleError::LockLost));
        let path = &place.entity.path;
        let settled = settled.map_err(|error| settle_refusal(&error, &self.host, path));
        self.answer(place, settled)
    }

    /// Does something to a lock, if it is that of the message that the path names.
    fn with_lock<T>(
        &mut self,
        place: &Place,
        lock: &LockedMessage,
        work: impl FnOnce(&mut Entity, &mut Context<'_>, LockToken) -> T,
    ) -> Option<T> {
        let token = token(lock);
        let (entity, kind) = (&place.entity, place.kind);
        place
            .namespace
            .operate(entity, &mut self.caller, |entity, cx| {
                let (number, message) = entity.locked_message(kind, token)?;
                let is_meant = message.id() == lock.id || number.to_string() == lock.id;
                is_meant.then(|| work(entity, cx, token))
            })
    }

    fn answer(
        &self,
        place: &Place,
        result: Result<(), ServiceError>,
    ) -> Result<Response, Rejection> {
        let entity = &place.entity;
        result.map_err(|refusal| match entity.is_deleted() {
            true => self.not_found(entity),
            false => refusal.into(),
        })?;
        Ok((StatusCode::OK, [(CONTENT_TYPE, XML)]).into_response())
    }
}

/// What is no token is one that locks nothing.
fn token(lock: &LockedMessage) -> LockToken {
    lock.token.parse().unwrap_or(Uuid::nil()).into()
}
