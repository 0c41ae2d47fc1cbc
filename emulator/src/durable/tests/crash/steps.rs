//! A record with many rows is moved into the database in steps, and ends as if it were moved at once.

use std::cell::Cell;
use std::num::NonZeroU64;

use bytes::Bytes;
use servicebus_broker::BodyId;

use super::disk::SimulatedDisk;
use super::{Batch, Content, Disk as _, DiskSpace, RowFile};

/// Rows, and bodies, of a record; a step moves eight rows and bodies.
const MANY: u8 = 20;

struct Steps {
    disk: SimulatedDisk,
    file: RowFile,
    expected: Content,
}

impl Steps {
    fn new() -> Self {
        let disk = SimulatedDisk::default();
        Self {
            file: open(&disk, true),
            disk,
            expected: Content::default(),
        }
    }

    fn write(&mut self, batch: Batch) {
        self.expected.apply(&batch);
        self.file.write(batch).expect("there is room");
    }

    /// Takes up to `most` steps; returns how many were needed.
    fn take(&mut self, most: usize) -> usize {
        let taken = Cell::new(0);
        let may_continue = || {
            let is_more = taken.get() < most;
            taken.set(taken.get() + usize::from(is_more));
            is_more
        };
        self.file.checkpoint(&may_continue).expect("there is room");
        taken.get()
    }

    /// Ends the process, and starts another.
    fn restart(&mut self) {
        self.file = open(&self.disk.copy(), false);
    }
}

fn open(disk: &SimulatedDisk, is_new: bool) -> RowFile {
    let [rows, journal] = disk.files();
    let opened = RowFile::new(rows, journal, DiskSpace::new(Box::new(())), is_new);
    opened.expect("it can be opened")
}

/// Rows and bodies with this value; none removes them.
fn many(value: Option<&'static str>) -> Batch {
    let value = value.map(Bytes::from);
    let rows = (0..MANY).map(|number| (vec![1, number], value.clone()));
    let bodies = (0..MANY).map(|number| {
        let body = NonZeroU64::MIN.saturating_add(number.into());
        (BodyId(body), value.clone())
    });
    Batch {
        rows: rows.collect(),
        bodies: bodies.collect(),
        ..Batch::default()
    }
}

/// A row that is written or removed while the record is moved.
fn one(number: u8, value: Option<&'static str>) -> Batch {
    let row = (vec![1, number], value.map(Bytes::from));
    Batch {
        rows: [row].into(),
        ..Batch::default()
    }
}

#[test]
fn each_checkpoint_step_moves_eight_rows_and_bodies() {
    let mut steps = Steps::new();
    steps.write(many(Some("first")));
    assert_eq!(steps.take(usize::MAX), 5);
    // As the deletion of an entity: its rows by their prefix, its bodies one by one.
    steps.write(Batch {
        rows: [].into(),
        removed: vec![vec![1]],
        ..many(None)
    });
    assert_eq!(steps.take(2), 2);
    assert_eq!(Content::read(&steps.file).rows.len(), 4);
    assert_eq!(steps.take(usize::MAX), 3);
    assert_eq!(Content::read(&steps.file), Content::default());
}

#[test]
fn records_written_between_checkpoint_steps_are_kept() {
    for is_restarted in [false, true] {
        for done in 0..5 {
            let mut steps = Steps::new();
            steps.write(many(Some("first")));
            steps.take(done);
            for number in [0, MANY - 2] {
                steps.write(one(number, Some("later")));
                steps.write(one(number + 1, None));
            }
            let last = BodyId(NonZeroU64::MIN.saturating_add(u64::from(MANY) - 1));
            steps.write(Batch {
                bodies: [(last, None)].into(),
                ..Batch::default()
            });
            steps.take(1);
            steps.write(one(0, Some("last")));
            if is_restarted {
                steps.restart();
            }
            steps.take(usize::MAX);
            assert_eq!(Content::read(&steps.file), steps.expected, "{done}");
        }
    }
}
