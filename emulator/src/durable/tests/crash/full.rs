//! A full disk, and a broken one.

use std::cell::Cell;
use std::io;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use servicebus_broker::BodyId;

use super::disk::{Fault, JOURNAL, ROWS};
use super::*;
use crate::durable::directory::open_error;
use crate::durable::journal::GROWTH;
use crate::durable::space::Reserve;
use crate::durable::{Pending, load};

/// A reserve that may or may not be allocated, and gives room to a file when it is released.
#[derive(Debug, Clone)]
struct Aside {
    file: SimulatedDisk,
    state: Arc<Mutex<(bool, bool)>>,
}

impl Aside {
    fn new(file: &SimulatedDisk) -> Self {
        Self {
            file: file.clone(),
            state: Arc::new(Mutex::new((true, false))),
        }
    }

    /// Whether there is room for it.
    fn allow(&self, is_possible: bool) {
        self.state.lock().0 = is_possible;
    }
}

impl Reserve for Aside {
    fn allocate(&mut self) -> io::Result<()> {
        let mut state = self.state.lock();
        state.1 = state.0;
        match state.0 {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn release(&mut self) -> bool {
        let was_there = std::mem::take(&mut self.state.lock().1);
        if was_there {
            self.file.set_fault(Fault::None);
        }
        was_there
    }
}

/// A new file with a reserve.
fn with_reserve() -> (SimulatedDisk, RowFile) {
    let file = SimulatedDisk::default();
    let space = DiskSpace::new(Box::new(Aside::new(&file)));
    space.fill_reserve();
    let [rows, journal] = file.files();
    let disk = RowFile::new(rows, journal, space, true).expect("there is room");
    (file, disk)
}

/// A reserve for which there is space once the journal has its shortest length.
#[derive(Debug)]
struct BesideJournal(SimulatedDisk);

impl Reserve for BesideJournal {
    fn allocate(&mut self) -> io::Result<()> {
        match self.0.journal_length() <= GROWTH {
            true => Ok(()),
            false => Err(io::ErrorKind::StorageFull.into()),
        }
    }

    fn release(&mut self) -> bool {
        false
    }
}

/// Starts a process with its writer thread and the queue `q`.
fn start(file: &SimulatedDisk, space: DiskSpace) -> (Arc<Store>, Namespace, Failures) {
    let process = Process::start(file, space);
    let Process {
        store,
        namespace,
        disk,
        failures,
        ..
    } = process;
    *store.disk.lock() = Some(disk);
    store.start(failures.clone()).expect("a thread can be made");
    let made = namespace.create(
        servicebus_broker::EntityKind::Queue,
        &path("q"),
        Default::default(),
        Vec::new(),
    );
    drop(made);
    (store, namespace, failures)
}

fn message(id: &str) -> Message {
    let sent = Sent::new(id).body("x").encode();
    Message::parse(sent.into(), &mut Ids::new(Some(1), 1)).expect("it is legal")
}

fn send(namespace: &Namespace, id: &str) -> Result<(), String> {
    let message = message(id);
    let entity = namespace.entity(&path("q"));
    let entity = entity.ok_or("there is no queue")?;
    let sent = namespace.operate_as_broker(&entity, |entity, cx| entity.send(cx, message));
    sent.map(drop).map_err(|error| error.to_string())
}

/// Receives a message and deletes it.
fn take(namespace: &Namespace) -> bool {
    use servicebus_broker::{ReceiveMode, ReceiverId};
    let entity = namespace.entity(&path("q")).expect("it is there");
    namespace.operate_as_broker(&entity, |entity, cx| {
        let (id, mut taken) = (ReceiverId(1 << 32), Vec::new());
        entity.attach_receiver(SubQueue::Active, id, ReceiveMode::ReceiveAndDelete);
        entity.set_credit(cx, SubQueue::Active, id, 1);
        entity.acquire(cx, SubQueue::Active, id, 1, usize::MAX, &mut taken);
        entity.detach_receiver(cx, SubQueue::Active, id);
        !taken.is_empty()
    })
}

/// Waits for a condition, for ten seconds at most.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(Duration::from_secs(10), async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    waited.await.expect(what);
}

#[tokio::test]
async fn a_full_disk_refuses_only_sends_until_there_is_space() {
    let file = SimulatedDisk::default();
    let aside = Aside::new(&file);
    let (store, namespace, failures) = start(&file, DiskSpace::new(Box::new(aside.clone())));
    until("a reserve is set aside", || aside.state.lock().1).await;
    send(&namespace, "first").expect("there is room");
    store.flush().await.expect("it can be written");
    // This one finds the disk full, and has the reserve.
    aside.allow(false);
    file.set_fault(Fault::Full);
    send(&namespace, "second").expect("nothing is known yet");
    store.flush().await.expect("there is the reserve");
    assert!(!store.has_space());
    let refused = send(&namespace, "third").expect_err("it is full");
    assert!(
        refused.contains("the disk of the emulator's data directory is full"),
        "{refused}"
    );
    assert!(take(&namespace));
    store.flush().await.expect("what follows is written");
    assert_eq!(active(&namespace, "q"), 1);
    // The reserve is used up, too: answers wait for space.
    file.set_fault(Fault::Full);
    assert!(take(&namespace));
    let waited = tokio::time::timeout(Duration::from_millis(300), store.flush()).await;
    waited.expect_err("nothing is acknowledged that is not written");
    file.set_fault(Fault::None);
    store.flush().await.expect("there is room");
    send(&namespace, "third").expect_err("there is no reserve yet");
    aside.allow(true);
    until("sends are accepted again", || store.has_space()).await;
    send(&namespace, "third").expect("there is room");
    store.flush().await.expect("it can be written");
    assert!(failures.all().is_empty(), "{:?}", failures.all());
    store.close();
    let process = Process::start(&file.copy(), DiskSpace::new(Box::new(())));
    assert_eq!(active(&process.namespace, "q"), 1);
}

/// Refused sends are changes, too: when the entity was last used.
#[tokio::test]
async fn a_full_disk_recovers_although_clients_try_again() {
    let file = SimulatedDisk::default();
    let reserve = Box::new(BesideJournal(file.clone()));
    let (store, namespace, failures) = start(&file, DiskSpace::new(reserve));
    for id in ["first", "second", "third", "fourth"] {
        send(&namespace, id).expect("there is room");
        store.flush().await.expect("it can be written");
    }
    let moved = store
        .disk
        .lock()
        .as_mut()
        .map(|disk| disk.checkpoint(&|| true));
    assert_eq!(moved, Some(Ok(())));
    file.set_fault(Fault::Full);
    store.append_resources(b"one".to_vec());
    until("it is full", || !store.has_space()).await;
    file.set_fault(Fault::None);
    let tried = || {
        let row = |pending: &mut Pending| pending.batch.put(vec![load::RESOURCES], b"two".to_vec());
        store.append(false, row);
        store.has_space()
    };
    until("sends are accepted again", tried).await;
    assert!(file.journal_length() <= GROWTH);
    send(&namespace, "fifth").expect("there is room");
    store.flush().await.expect("it can be written");
    assert!(failures.all().is_empty(), "{:?}", failures.all());
}

/// Otherwise it would wait for space with all clients, who could not receive what fills the disk.
#[test]
fn a_checkpoint_leaves_the_reserve_of_a_full_disk_to_settlements() {
    let (file, mut disk) = with_reserve();
    let body = |number, bytes| Batch {
        bodies: [(BodyId(number), bytes)].into(),
        ..Batch::default()
    };
    let [first, second] = [1, 2].map(|id| NonZeroU64::new(id).expect("it is not zero"));
    for number in [first, second] {
        let large = Bytes::from_static(&[7; 900]);
        disk.write(body(number, Some(large)))
            .expect("there is room");
    }
    file.set_fault(Fault::Full);
    disk.checkpoint(&|| true).expect("there is the reserve");
    assert!(!disk.space().is_available());
    assert_eq!(
        disk.bodies(),
        Ok((1, 1)),
        "the second one stays in the journal"
    );
    let untouched = || panic!("the journal has more than the reserve has space for");
    disk.checkpoint(&untouched).expect("nothing is written");
    disk.write(body(second, None))
        .expect("there is the reserve");
    disk.checkpoint(&|| true).expect("there is the reserve");
    let untouched = || panic!("the journal is empty");
    disk.checkpoint(&untouched).expect("nothing is written");
}

/// Each removed row may copy a page, which is free for the next step.
#[test]
fn a_checkpoint_on_a_full_disk_moves_few_rows_in_a_step() {
    let (file, mut disk) = with_reserve();
    let mut steps_of = |row: Option<&[u8]>| {
        let row = row.map(Bytes::copy_from_slice);
        let rows = (0..8).map(|key| (vec![key], row.clone())).collect();
        disk.write(Batch {
            rows,
            ..Batch::default()
        })
        .expect("there is room");
        let steps = Cell::new(0);
        let count = || steps.replace(steps.get() + 1) < 100;
        disk.checkpoint(&count).expect("there is room");
        steps.get()
    };
    assert_eq!(steps_of(Some(b"row")), 1);
    file.set_fault(Fault::Full);
    assert_eq!(steps_of(None), 8);
}

/// Clients that settle without a pause leave no time for the checkpoint of an idle store.
#[test]
fn a_backlog_is_drained_on_a_full_disk_without_more_space() {
    let file = SimulatedDisk::default();
    let space = DiskSpace::new(Box::new(Aside::new(&file)));
    space.fill_reserve();
    let [rows, journal] = file.files();
    let mut disk = RowFile::new(rows, journal, space, true).expect("there is room");
    let row = |key: u16, row: Option<&'static [u8]>| Batch {
        rows: [(key.to_be_bytes().to_vec(), row.map(Bytes::from_static))].into(),
        ..Batch::default()
    };
    let keys = 0..1000;
    for key in keys.clone() {
        disk.write(row(key, Some(b"message")))
            .expect("there is room");
    }
    disk.checkpoint(&|| true).expect("there is room");
    disk.shrink(&|| true).expect("there is room");
    for key in keys {
        file.set_fault(Fault::FullBeyond(JOURNAL, 0));
        disk.write(row(key, None)).expect("there is the reserve");
    }
    assert!(!disk.space().is_available(), "the reserve was used");
    disk.checkpoint(&|| true).expect("there is space");
    let mut left = 0;
    let mut count = |_: &[u8], _: &[u8]| {
        left += 1;
        Ok(())
    };
    disk.read(Table::Rows, &[], &mut count)
        .expect("it can be read");
    assert_eq!(left, 0);
}

#[test]
fn a_start_on_a_full_disk_names_the_space_that_it_needs() {
    let file = SimulatedDisk::default();
    let open = |is_new| {
        let [rows, journal] = file.files();
        RowFile::new(rows, journal, DiskSpace::new(Box::new(())), is_new)
    };
    let mut disk = open(true).expect("there is room");
    let (id, length) = (BodyId(NonZeroU64::MIN), 4 << 20);
    let batch = Batch {
        bodies: [(id, Some(vec![7u8; length].into()))].into(),
        ..Batch::default()
    };
    disk.write(batch).expect("there is room");
    drop(disk);
    file.set_fault(Fault::FullBeyond(ROWS, 1 << 20));
    let error = open(false).err().expect("there is no room");
    let text = open_error(Path::new("data"), error).to_string();
    let needed = format!("needs up to {} bytes", 2 * length + GROWTH);
    assert!(text.contains(&needed), "{text}");
    file.set_fault(Fault::None);
    let disk = open(false).expect("there is room");
    assert_eq!(disk.bodies(), Ok((1, 1)));
}

#[tokio::test]
async fn a_stopping_emulator_does_not_wait_for_disk_space() {
    let file = SimulatedDisk::default();
    let (store, namespace, _) = start(&file, DiskSpace::new(Box::new(())));
    store.flush().await.expect("it can be written");
    file.set_fault(Fault::Full);
    send(&namespace, "lost").expect("nothing is known yet");
    until("it is full", || !store.has_space()).await;
    store.close();
    store.flush().await.expect_err("it was never written");
    file.set_fault(Fault::None);
    let process = Process::start(&file.copy(), DiskSpace::new(Box::new(())));
    assert_eq!(active(&process.namespace, "q"), 0);
}

#[tokio::test]
async fn writes_are_not_acknowledged_after_a_failed_sync() {
    let file = SimulatedDisk::default();
    let (store, namespace, failures) = start(&file, DiskSpace::new(Box::new(())));
    store.flush().await.expect("it can be written");
    file.set_fault(Fault::Unsynchronized);
    send(&namespace, "lost").expect("nothing is known yet");
    let failed = store.flush().await.expect_err("it is not safe").to_string();
    assert!(
        failed.contains("The emulator accepts no changes until it is restarted"),
        "{failed}"
    );
    assert_eq!(failures.all()[0].reason, failed);
    // Not even when the disk works again: its state after the last transaction is unknown.
    file.set_fault(Fault::None);
    send(&namespace, "later").expect("it stays in memory");
    store.flush().await.expect_err("and it is not acknowledged");
}
