//! Routes the effects of an operation to the connections that must act on them.
//!
//! Each namespace has its own router, which knows only the namespace's connections. A receiver's id names its connection, so
//! that no table of receivers is needed.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use servicebus_broker::ReceiverId;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connection::ConnectionView;
use crate::lock_order::{Ordered, Rank, take};

/// How long a client counts as connecting, in real time: from its first frames to its first receiver with credit. The
/// emulator does not wait for clients that take longer.
const CONNECTING: Duration = Duration::from_secs(2);

/// A connection's number within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u32);

/// Finds the connections of a namespace by number.
#[derive(Debug, Default)]
pub(crate) struct Router {
    members: RwLock<Members>,
}

#[derive(Debug, Default)]
struct Members {
    wake_handles: BTreeMap<ConnectionId, Arc<WakeHandle>>,
    /// Whether the namespace is removed: later connections are dismissed at once.
    dismissed: bool,
}

/// How other tasks reach a connection.
#[derive(Debug, Default)]
pub(crate) struct WakeHandle {
    state: Mutex<WakeState>,
    notify: Notify,
    /// Whether the connection is asked for its view.
    is_asked: AtomicBool,
}

/// An event that affects a namespace's connections as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BroadcastEvent {
    /// Entities were changed or deleted: links to them may have to detach.
    EntitiesChanged,
    /// The service is updated: all links detach.
    ServiceUpdated,
    /// The namespace is removed: the connection closes.
    Dismissed,
    /// The client's process crashes or its network fails: the connection aborts without a close frame.
    Crashed,
}

#[derive(Debug, Default)]
struct WakeState {
    woken: Vec<ReceiverId>,
    /// Receivers that have lost their sessions.
    lost: Vec<ReceiverId>,
    /// Whether the connection has work or output left.
    busy: bool,
    /// The key name that the client uses.
    party: Option<Arc<str>>,
    /// The most severe event that the connection has not handled yet.
    news: Option<BroadcastEvent>,
    /// Whether output that follows from a change of entities is not written yet.
    following: bool,
    /// Whether something that the connection waits for has happened.
    nudged: bool,
    /// Whether the connection must read everything that its peer has written.
    to_read: bool,
    /// The answer of the connection to the last request for its view.
    view: Option<ConnectionView>,
    /// When the client no longer counts as connecting, unless it grants credit or attaches another link before.
    connecting_until: Option<Instant>,
}

impl ConnectionId {
    /// Returns the id of the `n`th receiver of this connection.
    pub(crate) fn receiver_id(self, n: u32) -> ReceiverId {
        ReceiverId(u64::from(self.0) << 32 | u64::from(n))
    }

    pub(crate) fn of(consumer: ReceiverId) -> Self {
        Self((consumer.0 >> 32) as u32)
    }
}

impl Router {
    /// Adds a connection; after [`Router::dismiss`] it is dismissed at once.
    pub(crate) fn enter(&self, id: ConnectionId, wake_handle: &Arc<WakeHandle>) {
        let mut members = self.members_mut();
        members.wake_handles.insert(id, Arc::clone(wake_handle));
        if members.dismissed {
            wake_handle.tell(BroadcastEvent::Dismissed);
        }
    }

    pub(crate) fn leave(&self, id: ConnectionId) {
        self.members_mut().wake_handles.remove(&id);
    }

    /// Wakes the connection of a receiver to take what is reserved for it.
    pub(crate) fn wake(&self, consumer: ReceiverId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&ConnectionId::of(consumer)) {
            wake_handle.wake(consumer);
        }
    }

    /// Notifies the connection of a receiver that the receiver's session is lost.
    pub(crate) fn lose_session(&self, consumer: ReceiverId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&ConnectionId::of(consumer)) {
            let mut state = wake_handle.state();
            state.lost.push(consumer);
            state.busy = true;
            drop(state);
            wake_handle.notify.notify_one();
        }
    }

    /// Notifies all connections that entities were changed or deleted.
    pub(crate) fn entities_changed(&self) {
        for wake_handle in self.members().wake_handles.values() {
            wake_handle.tell(BroadcastEvent::EntitiesChanged);
        }
    }

    /// Notifies all connections that the service is updated and their links must detach.
    pub(crate) fn service_updated(&self) {
        for wake_handle in self.members().wake_handles.values() {
            wake_handle.tell(BroadcastEvent::ServiceUpdated);
        }
    }

    /// Aborts all connections of a party.
    pub(crate) fn crash(&self, party: &str) {
        for wake_handle in self.members().wake_handles.values() {
            if wake_handle.state().party.as_deref() == Some(party) {
                wake_handle.tell(BroadcastEvent::Crashed);
            }
        }
    }

    /// Aborts a connection without a close frame.
    pub(crate) fn drop_connection(&self, id: ConnectionId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&id) {
            wake_handle.tell(BroadcastEvent::Crashed);
        }
    }

    /// Returns whether the namespace is removed.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.members().dismissed
    }

    /// Notifies all connections, and later ones, that the namespace is removed.
    pub(crate) fn dismiss(&self) {
        let mut members = self.members_mut();
        members.dismissed = true;
        for wake_handle in members.wake_handles.values() {
            wake_handle.tell(BroadcastEvent::Dismissed);
        }
    }

    /// Notifies a connection that something it waits for has happened.
    pub(crate) fn nudge(&self, id: ConnectionId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&id) {
            wake_handle.nudge();
        }
    }

    /// Makes all connections read what their peers have written; they are busy until they have.
    pub(crate) fn read_all(&self) {
        for wake_handle in self.members().wake_handles.values() {
            let mut state = wake_handle.state();
            state.to_read = true;
            state.busy = true;
            drop(state);
            wake_handle.notify.notify_one();
        }
    }

    pub(crate) fn count(&self) -> usize {
        self.members().wake_handles.len()
    }

    /// Asks all connections for their views.
    pub(crate) fn ask_all(&self) {
        for wake_handle in self.members().wake_handles.values() {
            wake_handle.state().view = None;
            wake_handle.is_asked.store(true, Ordering::Relaxed);
            wake_handle.notify.notify_one();
        }
    }

    /// Returns whether all connections have answered with their views.
    pub(crate) fn have_all_answered(&self) -> bool {
        self.those_that(|state| state.view.is_none()).is_empty()
    }

    /// Returns the views of the connections.
    pub(crate) fn answers(&self) -> Vec<(ConnectionId, ConnectionView)> {
        let members = self.members();
        let answers = members.wake_handles.iter();
        let answers = answers.filter_map(|(&id, handle)| Some((id, handle.state().view.take()?)));
        answers.collect()
    }

    /// Returns the connections that have something to do, to read or to write.
    pub(crate) fn busy(&self) -> Vec<ConnectionId> {
        self.those_that(|state| state.busy)
    }

    /// Returns the connections whose clients count as connecting.
    pub(crate) fn connecting(&self) -> Vec<ConnectionId> {
        let now = Instant::now();
        self.those_that(|state| state.connecting_until.is_some_and(|until| now < until))
    }

    /// Returns the connections that have not yet written what follows from a change of entities.
    pub(crate) fn following(&self) -> Vec<ConnectionId> {
        self.those_that(|state| state.following)
    }

    fn those_that(&self, are: impl Fn(&WakeState) -> bool) -> Vec<ConnectionId> {
        let members = self.members();
        let found = members
            .wake_handles
            .iter()
            .filter(|(_, wake_handle)| are(&wake_handle.state()));
        found.map(|(&id, _)| id).collect()
    }

    fn members(&self) -> Ordered<RwLockReadGuard<'_, Members>> {
        take(Rank::Router, || self.members.read())
    }

    fn members_mut(&self) -> Ordered<RwLockWriteGuard<'_, Members>> {
        take(Rank::Router, || self.members.write())
    }
}

impl WakeHandle {
    /// Marks the client as connecting.
    pub(crate) fn connecting(&self) {
        self.state().connecting_until = Some(Instant::now() + CONNECTING);
    }

    /// Sets the party of the connection once it is known.
    pub(crate) fn belong_to(&self, party: &Arc<str>) {
        self.state().party = Some(Arc::clone(party));
    }

    /// Ends the state of connecting: the client has granted credit or attached another link.
    pub(crate) fn connected(&self) {
        self.state().connecting_until = None;
    }

    /// Returns whether the connection is asked for its view, and clears the question.
    pub(crate) fn takes_question(&self) -> bool {
        self.is_asked.load(Ordering::Relaxed) && self.is_asked.swap(false, Ordering::Relaxed)
    }

    /// Answers with the connection's view.
    pub(crate) fn answer_question(&self, view: ConnectionView) {
        self.state().view = Some(view);
    }

    /// Resolves when the handle was notified since the last call.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// Takes the receivers that were woken, each as often as it was, and those that have lost their sessions.
    pub(crate) fn answer(&self, woken: &mut Vec<ReceiverId>, lost: &mut Vec<ReceiverId>) {
        let mut state = self.state();
        woken.append(&mut state.woken);
        lost.append(&mut state.lost);
    }

    /// Takes the most severe event of the namespace since the last call.
    pub(crate) fn news(&self) -> Option<BroadcastEvent> {
        let mut state = self.state();
        state.nudged = false;
        state.news.take()
    }

    fn nudge(&self) {
        let mut state = self.state();
        state.nudged = true;
        state.busy = true;
        drop(state);
        self.notify.notify_one();
    }

    /// Records at the end of a turn whether output is left to write, and, if needed, input to read.
    pub(crate) fn turn_ended(&self, unwritten: bool, is_unread: impl FnOnce() -> bool) {
        let mut state = self.state();
        state.to_read = state.to_read && is_unread();
        let called = !state.woken.is_empty() || !state.lost.is_empty();
        let called = called || state.news.is_some() || state.nudged;
        state.busy = unwritten || called || state.to_read;
        state.following = state.news.is_some() || (state.following && unwritten);
    }

    fn tell(&self, news: BroadcastEvent) {
        let mut state = self.state();
        state.news = state.news.max(Some(news));
        state.following = true;
        state.busy = true;
        drop(state);
        self.notify.notify_one();
    }

    fn wake(&self, consumer: ReceiverId) {
        let mut state = self.state();
        state.woken.push(consumer);
        if !mem::replace(&mut state.busy, true) || state.woken.len() == 1 {
            drop(state);
            self.notify.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, WakeState> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_followed_when_what_comes_of_it_is_written() {
        let router = Router::default();
        let id = ConnectionId(1);
        let wake_handle = Arc::default();
        router.enter(id, &wake_handle);
        let follows = || router.following() == [id];
        assert!(!follows());
        router.entities_changed();
        assert!(follows());
        wake_handle.turn_ended(false, || false);
        assert!(follows(), "a turn that began before");
        assert_eq!(wake_handle.news(), Some(BroadcastEvent::EntitiesChanged));
        wake_handle.turn_ended(true, || false);
        assert!(follows(), "not written yet");
        wake_handle.turn_ended(false, || false);
        assert!(!follows());
        router.entities_changed();
        router.leave(id);
        assert!(!follows());
    }

    #[test]
    fn a_connection_that_is_to_read_is_busy_until_nothing_is_left() {
        let router = Router::default();
        let wake_handle = Arc::default();
        router.enter(ConnectionId(1), &wake_handle);
        wake_handle.turn_ended(false, || panic!("it was not asked"));
        router.read_all();
        wake_handle.turn_ended(false, || true);
        assert_eq!(router.busy(), [ConnectionId(1)]);
        wake_handle.turn_ended(false, || false);
        assert_eq!(router.busy(), []);
        wake_handle.turn_ended(false, || panic!("it was asked once"));
    }

    #[test]
    fn a_connection_that_enters_after_the_end_is_told_of_it() {
        let router = Router::default();
        let (early, late) = (Arc::<WakeHandle>::default(), Arc::<WakeHandle>::default());
        router.enter(ConnectionId(1), &early);
        router.entities_changed();
        router.dismiss();
        router.enter(ConnectionId(2), &late);
        router.entities_changed();
        for wake_handle in [early, late] {
            assert_eq!(
                wake_handle.news(),
                Some(BroadcastEvent::Dismissed),
                "graver than a change"
            );
            assert_eq!(wake_handle.news(), None, "told once");
        }
        assert_eq!(router.busy(), [ConnectionId(1), ConnectionId(2)]);
    }

    #[test]
    fn who_has_left_is_not_called() {
        let router = Router::default();
        let wake_handle = Arc::<WakeHandle>::default();
        let id = ConnectionId(7);
        router.enter(id, &wake_handle);
        router.wake(id.receiver_id(1));
        router.leave(id);
        router.wake(id.receiver_id(2));
        let (mut woken, mut lost) = (Vec::new(), Vec::new());
        wake_handle.answer(&mut woken, &mut lost);
        assert_eq!((woken, lost), (vec![id.receiver_id(1)], Vec::new()));
    }
}
