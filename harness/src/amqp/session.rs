//! Accepting a session over a link, and requests about that session to `$management`.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use fe2o3_amqp::{
    Receiver,
    link::receiver::CreditMode,
    types::{
        definitions::{Fields, ReceiverSettleMode, SenderSettleMode},
        messaging::Source,
        primitives::{Binary, Symbol, Value},
    },
};

use super::{
    Amqp, AmqpError, RESPONSE_TIMEOUT, ReceiverLink,
    management::{field, instant, map, unexpected},
};

/// The filter that makes a receiver one of sessions.
const FILTER: &str = "com.microsoft:session-filter";
/// How long the emulator waits for the next available session.
const TIMEOUT: &str = "com.microsoft:timeout";
/// When the lock of the session ends.
const LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
/// .NET ticks (100 ns) from the year 1 to the Unix epoch.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;
const TICKS_PER_MILLISECOND: i64 = 10_000;

/// An accepted session, and the link that holds it.
#[derive(Debug)]
pub(crate) struct AcceptedSession {
    pub(crate) receiver: ReceiverLink,
    pub(crate) session: String,
    pub(crate) locked_until: SystemTime,
}

impl Amqp {
    /// Accepts a session by its id, or waits for the next available one.
    pub(crate) async fn accept_session(
        &self,
        address: &str,
        wanted: Option<String>,
        timeout: Duration,
    ) -> Result<AcceptedSession, AmqpError> {
        let mut session = super::within(self.session()).await?;
        let wanted = wanted.map_or(Value::Null, Value::from);
        let source = Source::builder()
            .address(address)
            .add_to_filter_using_legacy_format(FILTER, wanted)
            .build();
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let mut properties = Fields::new();
        properties.insert(Symbol::from(TIMEOUT), Value::Uint(milliseconds));
        let attach = Receiver::builder()
            .name(self.link_name())
            .source(source)
            .properties(properties)
            .sender_settle_mode(SenderSettleMode::Mixed)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(&mut session.handle);
        let within = timeout.saturating_add(RESPONSE_TIMEOUT);
        let attach = async { Ok(attach.await?) };
        let receiver = session
            .connection_end
            .clone()
            .within_timeout(within, attach)
            .await?;
        Ok(AcceptedSession {
            session: granted_session_id(&receiver)?,
            locked_until: locked_until(&receiver)?,
            receiver: ReceiverLink::new(session, receiver),
        })
    }

    /// Renews the lock of a session and returns its new end, by the client's clock.
    pub(crate) async fn renew_session_lock(
        &self,
        address: &str,
        session: String,
    ) -> Result<SystemTime, AmqpError> {
        let body = map([("session-id", session.into())]);
        let answer = self.ask(address, "renew-session-lock", body).await?;
        match field(answer, "expiration")? {
            Value::Timestamp(end) => Ok(instant(end.milliseconds())),
            other => Err(unexpected("expiration", Some(&other))),
        }
    }

    pub(crate) async fn session_state(
        &self,
        address: &str,
        session: String,
    ) -> Result<Option<Bytes>, AmqpError> {
        let body = map([("session-id", session.into())]);
        let answer = self.ask(address, "get-session-state", body).await?;
        match field(answer, "session-state")? {
            Value::Null => Ok(None),
            Value::Binary(state) => Ok(Some(state.into_vec().into())),
            other => Err(unexpected("session-state", Some(&other))),
        }
    }

    /// Sets the state of a session; `None` clears it.
    pub(crate) async fn set_session_state(
        &self,
        address: &str,
        session: String,
        state: Option<Bytes>,
    ) -> Result<(), AmqpError> {
        let state = state.map_or(Value::Null, |state| {
            Value::Binary(Binary::from(state.to_vec()))
        });
        let body = map([("session-id", session.into()), ("session-state", state)]);
        let answer = self.ask(address, "set-session-state", body).await;
        answer.map(|_nothing| ())
    }
}

fn granted_session_id(receiver: &Receiver) -> Result<String, AmqpError> {
    let source = receiver.source().as_ref();
    let filter = source.and_then(|source| source.filter.as_ref());
    match filter.and_then(|filter| filter.get(&Symbol::from(FILTER))) {
        Some(Value::String(session)) => Ok(session.clone()),
        other => Err(unexpected("session filter", other)),
    }
}

fn locked_until(receiver: &Receiver) -> Result<SystemTime, AmqpError> {
    receiver.properties(|properties| {
        let properties = properties.as_ref();
        match properties.and_then(|properties| properties.get(&Symbol::from(LOCKED_UNTIL))) {
            Some(Value::Long(ticks)) => {
                let millis = ticks.saturating_sub(EPOCH_TICKS) / TICKS_PER_MILLISECOND;
                Ok(instant(millis))
            }
            other => Err(unexpected("end of a session's lock", other)),
        }
    })
}
