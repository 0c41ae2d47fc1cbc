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
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, Notify};
use tokio::time::Instant;

use crate::blocking;
use crate::connection::ConnectionView;
use crate::lock_order::{Ordered, Rank, take};

/// How long a client counts as connecting, in real time: from its first frames to its first receiver with credit. The
/// emulator does not wait for clients that take longer.
pub(crate) const CONNECTING: Duration = Duration::from_secs(2);

/// A connection's number within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u32);

/// Finds the connections of a namespace by number.
#[derive(Debug, Default)]
pub(crate) struct Router {
    members: RwLock<Members>,
    /// Held by the request whose views the connections answer with.
    viewing: AsyncMutex<()>,
}

#[derive(Debug, Default)]
struct Members {
    wake_handles: BTreeMap<ConnectionId, Arc<WakeHandle>>,
    /// Whether the namespace is removed: later connections are dismissed at once.
    is_removed: bool,
}

/// How other tasks reach a connection.
#[derive(Debug, Default)]
pub(crate) struct WakeHandle {
    state: Mutex<WakeState>,
    notify: Notify,
    /// Whether the connection is asked for its view.
    is_view_requested: AtomicBool,
    /// Whether it is that of a single HTTP request.
    is_request: bool,
}

/// An event that affects a namespace's connections as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BroadcastEvent {
    /// Entities were changed or deleted: links to them may have to detach.
    EntitiesChanged,
    /// The service is updated: all links detach.
    ServiceUpdated,
    /// The namespace is removed: the connection closes.
    NamespaceRemoved,
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
    pending_event: Option<BroadcastEvent>,
    /// Whether output that follows from a change of entities is not written yet.
    following: bool,
    /// Whether something that the connection waits for has happened.
    notified: bool,
    /// Whether the connection must read everything that its peer has written.
    to_read: bool,
    /// The answer of the connection to the last request for its view.
    view: Option<ConnectionView>,
    /// Whether it was requested and is not answered.
    is_view_awaited: bool,
    /// When the client no longer counts as connecting, unless it grants credit or attaches another link before.
    connecting_until: Option<Instant>,
}

impl ConnectionId {
    /// Returns the id of the `n`th receiver of this connection.
    pub(crate) fn receiver_id(self, n: u32) -> ReceiverId {
        ReceiverId(u64::from(self.0) << 32 | u64::from(n))
    }

    pub(crate) fn of(receiver: ReceiverId) -> Self {
        Self((receiver.0 >> 32) as u32)
    }
}

impl Router {
    /// Adds a connection; after [`Router::close_all`] it is dismissed at once.
    pub(crate) fn enter(&self, id: ConnectionId, wake_handle: &Arc<WakeHandle>) {
        let mut members = self.members_mut();
        members.wake_handles.insert(id, Arc::clone(wake_handle));
        if members.is_removed {
            wake_handle.send_event(BroadcastEvent::NamespaceRemoved);
        }
    }

    pub(crate) fn leave(&self, id: ConnectionId) {
        self.members_mut().wake_handles.remove(&id);
    }

    /// Wakes the connection of a receiver to take what is reserved for it.
    pub(crate) fn wake(&self, receiver: ReceiverId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&ConnectionId::of(receiver)) {
            wake_handle.wake(receiver);
        }
    }

    /// Notifies the connection of a receiver that the receiver's session is lost.
    pub(crate) fn lose_session(&self, receiver: ReceiverId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&ConnectionId::of(receiver)) {
            let mut state = wake_handle.state();
            state.lost.push(receiver);
            state.busy = true;
            drop(state);
            wake_handle.notify.notify_one();
        }
    }

    /// Notifies all connections that entities were changed or deleted.
    pub(crate) fn entities_changed(&self) {
        for wake_handle in self.members().wake_handles.values() {
            wake_handle.send_event(BroadcastEvent::EntitiesChanged);
        }
    }

    /// Notifies all connections that the service is updated and their links must detach.
    pub(crate) fn service_updated(&self) {
        for wake_handle in self.members().wake_handles.values() {
            wake_handle.send_event(BroadcastEvent::ServiceUpdated);
        }
    }

    /// Aborts all connections of a party.
    pub(crate) fn crash(&self, party: &str) {
        for wake_handle in self.members().wake_handles.values() {
            if wake_handle.state().party.as_deref() == Some(party) {
                wake_handle.send_event(BroadcastEvent::Crashed);
            }
        }
    }

    /// Aborts a connection without a close frame.
    pub(crate) fn drop_connection(&self, id: ConnectionId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&id) {
            wake_handle.send_event(BroadcastEvent::Crashed);
        }
    }

    pub(crate) fn is_namespace_removed(&self) -> bool {
        self.members().is_removed
    }

    /// Notifies all connections, and later ones, that the namespace is removed.
    pub(crate) fn close_all(&self) {
        let mut members = self.members_mut();
        members.is_removed = true;
        for wake_handle in members.wake_handles.values() {
            wake_handle.send_event(BroadcastEvent::NamespaceRemoved);
        }
    }

    /// Notifies a connection that something it waits for has happened.
    pub(crate) fn notify(&self, id: ConnectionId) {
        if let Some(wake_handle) = self.members().wake_handles.get(&id) {
            wake_handle.notify();
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

    /// Returns the number of AMQP connections.
    pub(crate) fn count(&self) -> usize {
        let members = self.members();
        let wake_handles = members.wake_handles.values();
        wake_handles.filter(|handle| !handle.is_request).count()
    }

    /// Asks all connections for their views, once no other request waits for its own; the next one waits for the guard.
    pub(crate) async fn request_views(&self) -> AsyncMutexGuard<'_, ()> {
        let alone = self.viewing.lock().await;
        for wake_handle in self.members().wake_handles.values() {
            let mut state = wake_handle.state();
            state.view = None;
            state.is_view_awaited = true;
            drop(state);
            wake_handle.is_view_requested.store(true, Ordering::Relaxed);
            wake_handle.notify.notify_one();
        }
        alone
    }

    /// Returns whether all connections that were asked have answered with their views.
    pub(crate) fn have_all_views(&self) -> bool {
        self.filter_connections(|state| state.is_view_awaited)
            .is_empty()
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
        self.filter_connections(|state| state.busy)
    }

    /// Returns the connections whose clients count as connecting.
    pub(crate) fn connecting(&self) -> Vec<ConnectionId> {
        let now = Instant::now();
        self.filter_connections(|state| state.connecting_until.is_some_and(|until| now < until))
    }

    /// Returns the connections that have not yet written what follows from a change of entities.
    pub(crate) fn following(&self) -> Vec<ConnectionId> {
        self.filter_connections(|state| state.following)
    }

    fn filter_connections(&self, matches: impl Fn(&WakeState) -> bool) -> Vec<ConnectionId> {
        let members = self.members();
        let found = members
            .wake_handles
            .iter()
            .filter(|(_, wake_handle)| matches(&wake_handle.state()));
        found.map(|(&id, _)| id).collect()
    }

    fn members(&self) -> Ordered<RwLockReadGuard<'_, Members>> {
        take(Rank::Router, || blocking::read(&self.members))
    }

    fn members_mut(&self) -> Ordered<RwLockWriteGuard<'_, Members>> {
        take(Rank::Router, || blocking::write(&self.members))
    }
}

impl WakeHandle {
    /// Creates the handle of a single HTTP request.
    pub(crate) fn of_request() -> Self {
        Self {
            is_request: true,
            ..Self::default()
        }
    }

    /// Marks the client as connecting.
    pub(crate) fn connecting(&self) {
        self.state().connecting_until = Some(Instant::now() + CONNECTING);
    }

    /// Sets the party of the connection once it is known.
    pub(crate) fn set_party(&self, party: &Arc<str>) {
        self.state().party = Some(Arc::clone(party));
    }

    /// Ends the state of connecting: the client has granted credit or attached another link.
    pub(crate) fn connected(&self) {
        self.state().connecting_until = None;
    }

    /// Returns whether the connection is asked for its view, and clears the question.
    pub(crate) fn take_view_request(&self) -> bool {
        self.is_view_requested.load(Ordering::Relaxed)
            && self.is_view_requested.swap(false, Ordering::Relaxed)
    }

    /// Answers with the connection's view.
    pub(crate) fn publish_view(&self, view: ConnectionView) {
        let mut state = self.state();
        state.view = Some(view);
        state.is_view_awaited = false;
    }

    /// Resolves when the handle was notified since the last call.
    pub(crate) async fn woken(&self) {
        self.notify.notified().await;
    }

    /// Takes the receivers that were woken, each as often as it was, and those that have lost their sessions.
    pub(crate) fn take_woken(&self, woken: &mut Vec<ReceiverId>, lost: &mut Vec<ReceiverId>) {
        let mut state = self.state();
        woken.append(&mut state.woken);
        lost.append(&mut state.lost);
    }

    /// Takes the most severe event of the namespace since the last call.
    pub(crate) fn take_event(&self) -> Option<BroadcastEvent> {
        let mut state = self.state();
        state.notified = false;
        state.pending_event.take()
    }

    fn notify(&self) {
        let mut state = self.state();
        state.notified = true;
        state.busy = true;
        drop(state);
        self.notify.notify_one();
    }

    /// Records at the end of a turn whether output is left to write, and, if needed, input to read.
    pub(crate) fn turn_ended(&self, unwritten: bool, is_unread: impl FnOnce() -> bool) {
        let mut state = self.state();
        state.to_read = state.to_read && is_unread();
        let called = !state.woken.is_empty() || !state.lost.is_empty();
        let called = called || state.pending_event.is_some() || state.notified;
        state.busy = unwritten || called || state.to_read;
        state.following = state.pending_event.is_some() || (state.following && unwritten);
    }

    fn send_event(&self, event: BroadcastEvent) {
        let mut state = self.state();
        state.pending_event = state.pending_event.max(Some(event));
        state.following = true;
        state.busy = true;
        drop(state);
        self.notify.notify_one();
    }

    fn wake(&self, receiver: ReceiverId) {
        let mut state = self.state();
        state.woken.push(receiver);
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
    fn a_change_is_complete_once_notified_connections_have_written() {
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
        assert_eq!(
            wake_handle.take_event(),
            Some(BroadcastEvent::EntitiesChanged)
        );
        wake_handle.turn_ended(true, || false);
        assert!(follows(), "not written yet");
        wake_handle.turn_ended(false, || false);
        assert!(!follows());
        router.entities_changed();
        router.leave(id);
        assert!(!follows());
    }

    #[test]
    fn a_connection_told_to_read_is_busy_until_its_input_is_read() {
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
    fn a_connection_added_after_the_removal_is_notified() {
        let router = Router::default();
        let (early, late) = (Arc::<WakeHandle>::default(), Arc::<WakeHandle>::default());
        router.enter(ConnectionId(1), &early);
        router.entities_changed();
        router.close_all();
        router.enter(ConnectionId(2), &late);
        router.entities_changed();
        for wake_handle in [early, late] {
            assert_eq!(
                wake_handle.take_event(),
                Some(BroadcastEvent::NamespaceRemoved),
                "graver than a change"
            );
            assert_eq!(wake_handle.take_event(), None, "told once");
        }
        assert_eq!(router.busy(), [ConnectionId(1), ConnectionId(2)]);
    }

    #[test]
    fn a_removed_connection_is_not_notified() {
        let router = Router::default();
        let wake_handle = Arc::<WakeHandle>::default();
        let id = ConnectionId(7);
        router.enter(id, &wake_handle);
        router.wake(id.receiver_id(1));
        router.leave(id);
        router.wake(id.receiver_id(2));
        let (mut woken, mut lost) = (Vec::new(), Vec::new());
        wake_handle.take_woken(&mut woken, &mut lost);
        assert_eq!((woken, lost), (vec![id.receiver_id(1)], Vec::new()));
    }
}
