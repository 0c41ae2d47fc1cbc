//! Searches the messages of a store.

use servicebus_broker::filter::{Parameters, SqlFilter, Truth};
use servicebus_broker::{InspectedMessage, MessageState, SequenceNumber, SessionName, SubQueue};
use tokio::task::yield_now;

use crate::http::error::ApiError;
use crate::namespace::{Ids, Namespace, SharedEntity};

/// Messages that are copied under one lock: well below a millisecond.
const CHUNK: usize = 256;
/// Messages that are skipped under one lock.
const SKIPPED: usize = 20_000;
/// Messages that one request visits.
const SCANNED: usize = 10_000;
/// Bytes of bodies that one request searches.
const SEARCHED: usize = 64 * 1024 * 1024;
/// Longest text to search bodies for, in bytes, which limits the time of a comparison.
const MAX_TEXT: usize = 256;
/// Bytes of bodies that are searched before other tasks get their turn.
const AT_ONCE: usize = 1024 * 1024;

/// The searched messages; a field that is not set matches any.
pub(crate) struct Criteria {
    state: Option<MessageState>,
    session: Option<SessionName>,
    filter: Option<SqlFilter>,
    body_contains: Option<String>,
}

/// The position and direction of a search.
#[derive(Clone, Copy)]
pub(crate) struct SearchPosition {
    pub(crate) from: SequenceNumber,
    pub(crate) newest_first: bool,
}

impl Criteria {
    pub(crate) fn new(
        state: Option<MessageState>,
        session: Option<SessionName>,
        filter: Option<&str>,
        body_contains: Option<String>,
    ) -> Result<Self, ApiError> {
        let filter = filter.map(|text| {
            let parsed = SqlFilter::parse(text, Parameters::new());
            parsed.map_err(|error| {
                let allowed = format!("a SQL filter as rules have them; {error}");
                ApiError::not_allowed("where", text, allowed)
            })
        });
        let length = body_contains.as_ref().map_or(0, String::len);
        if length > MAX_TEXT {
            let allowed = format!("a text of up to {MAX_TEXT} bytes");
            return Err(ApiError::not_allowed("body_contains", length, allowed));
        }
        Ok(Self {
            state,
            session,
            filter: filter.transpose()?,
            body_contains,
        })
    }

    /// Returns whether every message matches.
    fn takes_all(&self) -> bool {
        let Self {
            state,
            session,
            filter,
            body_contains,
        } = self;
        state.is_none() && session.is_none() && filter.is_none() && body_contains.is_none()
    }

    fn takes(&self, message: &InspectedMessage, ids: &mut Ids) -> bool {
        let own = message.message.session_id();
        self.state.is_none_or(|state| state == message.state)
            && (self.session.as_ref())
                .is_none_or(|session| own.as_deref() == Some(session.as_str()))
            && (self.filter.as_ref()).is_none_or(|filter| {
                let view = message.filter_view();
                // Only true selects, as in a rule.
                view.is_ok_and(|view| filter.evaluate(&view, ids) == Ok(Truth::True))
            })
            && (self.body_contains.as_ref())
                .is_none_or(|text| contains(&message.message.content(), text.as_bytes()))
    }
}

impl SearchPosition {
    /// Skips messages; returns false if none are left.
    pub(crate) fn skip(
        &mut self,
        namespace: &Namespace,
        entity: &SharedEntity,
        kind: SubQueue,
        mut messages: usize,
    ) -> bool {
        while messages > 0 {
            let step = messages.min(SKIPPED);
            let next = namespace.read(entity, |entity| {
                entity
                    .inspect(kind, self.from, self.newest_first, step)
                    .next()
            });
            let Some(next) = next else {
                return false;
            };
            self.from = next.broker_properties.sequence_number;
            messages -= step;
        }
        true
    }

    /// Continues behind this message.
    fn pass(&mut self, number: SequenceNumber) {
        self.from = match self.newest_first {
            true => SequenceNumber(number.0 - 1),
            false => SequenceNumber(number.0 + 1),
        };
    }
}

/// Returns what `wanted` returns for up to `limit` messages, and where to continue if there may be more.
pub(crate) async fn scan<T>(
    namespace: &Namespace,
    entity: &SharedEntity,
    kind: SubQueue,
    mut place: SearchPosition,
    criteria: &Criteria,
    limit: usize,
    wanted: &impl Fn(&InspectedMessage) -> T,
) -> (Vec<T>, Option<SequenceNumber>) {
    let mut found = Vec::new();
    let mut ids = Ids::new(Some(0), 0);
    let chunk = match criteria.takes_all() {
        true => CHUNK.min(limit + 1),
        false => CHUNK,
    };
    let (mut scanned, mut searched, mut at_once) = (0, 0, 0);
    loop {
        // Allocated while nothing is locked.
        let mut room = Vec::with_capacity(chunk);
        let (messages, missing) = namespace.read_messages(
            entity,
            |entity| {
                let found = entity.inspect(kind, place.from, place.newest_first, 0);
                room.extend(found.take(chunk));
                room
            },
            |found: &InspectedMessage| &found.message,
        );
        let is_last = messages.len() < chunk;
        for mut message in messages {
            let number = message.broker_properties.sequence_number;
            if found.len() == limit || scanned == SCANNED || searched > SEARCHED {
                return (found, Some(number));
            }
            place.pass(number);
            scanned += 1;
            // One at a time, because the total size of bodies is not limited.
            if criteria.body_contains.is_some() {
                missing.fill([&mut message.message]);
                searched += message.message.content().len();
            }
            if criteria.takes(&message, &mut ids) {
                missing.fill([&mut message.message]);
                found.push(wanted(&message));
            }
            if searched >= at_once + AT_ONCE {
                at_once = searched;
                yield_now().await;
            }
        }
        if is_last {
            return (found, None);
        }
        yield_now().await;
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    let Some(&first) = text.first() else {
        return true;
    };
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|&byte| byte == first) {
        rest = &rest[at..];
        if rest.starts_with(text) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}
