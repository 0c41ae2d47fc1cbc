//! Shrinks the file of a database whose rows need less: they are copied to a new file, which replaces it.
//!
//! The database can compact itself, but not in steps; and a crash while it is copied leaves it unchanged.

use std::fs;
use std::io;
use std::path::Path;

use redb::{Database, ReadableDatabase as _, ReadableTableMetadata as _};

use super::file::{BODIES, JOURNAL, ROWS, TableKind};

/// Bytes of one transaction of the copy.
const STEP: usize = 4 << 20;
/// Rows at each end of a table from which the size of the table is estimated.
const SAMPLE: usize = 64;
/// Smaller files are not shrunk.
const MIN_FILE: u64 = 4 << 20;

/// The free space in the file of a database.
#[derive(Debug)]
pub(super) struct FreeSpace {
    /// Bytes of rows that were removed since the file was last shrunk.
    removed: u64,
}

impl FreeSpace {
    /// An estimate for a file of `length` bytes that an earlier process has left.
    pub(super) fn of(database: &Database, length: u64) -> Result<Self, redb::Error> {
        let mut kept = 0;
        for table in [ROWS, BODIES] {
            kept += estimate(database, table)?;
        }
        // Pages are not full, and their sizes are powers of two.
        let removed = if kept < length / 2 { length } else { 0 };
        Ok(Self { removed })
    }

    pub(super) fn none() -> Self {
        Self { removed: 0 }
    }

    pub(super) fn add(&mut self, removed: usize) {
        self.removed = self.removed.saturating_add(removed as u64);
    }

    /// Whether to shrink a file of `length` bytes: at a fixed share of it, so that copies write no more than was written.
    pub(super) fn is_worth(&self, length: u64) -> bool {
        length > MIN_FILE && self.removed >= length / 4
    }
}

/// The approximate bytes of the rows of a table.
fn estimate(database: &Database, table: TableKind) -> Result<u64, redb::Error> {
    let table = database.begin_read()?.open_table(table)?;
    let (mut seen, mut bytes) = (0, 0);
    let all = || table.range::<&[u8]>(..);
    for row in all()?.take(SAMPLE).chain(all()?.rev().take(SAMPLE)) {
        let (key, value) = row?;
        seen += 1;
        bytes += (key.value().len() + value.value().len()) as u64;
    }
    Ok(table.len()? * bytes / seen.max(1))
}

/// Copies all tables in steps while `may_continue` and the copy has at most `limit` bytes; returns whether it is complete.
pub(super) fn copy(
    from: &Database,
    to: &Database,
    limit: u64,
    may_continue: &dyn Fn() -> bool,
) -> Result<bool, redb::Error> {
    let mut left = limit;
    for table in [JOURNAL, ROWS, BODIES] {
        let mut next = Some(Vec::new());
        while let Some(first) = next {
            if !may_continue() {
                return Ok(false);
            }
            let (copied, rest) = copy_step(from, to, table, &first)?;
            let Some(rest_of_limit) = left.checked_sub(copied) else {
                return Ok(false);
            };
            (left, next) = (rest_of_limit, rest);
        }
    }
    Ok(true)
}

/// Copies one step from the key `first`; returns its bytes and the first key of the next one.
fn copy_step(
    from: &Database,
    to: &Database,
    table: TableKind,
    first: &[u8],
) -> Result<(u64, Option<Vec<u8>>), redb::Error> {
    let source = from.begin_read()?.open_table(table)?;
    let transaction = to.begin_write()?;
    let mut target = transaction.open_table(table)?;
    let (mut copied, mut next) = (0, None);
    for row in source.range(first..)? {
        let (key, value) = row?;
        if copied >= STEP {
            next = Some(key.value().to_vec());
            break;
        }
        copied += key.value().len() + value.value().len();
        target.insert(key.value(), value.value())?;
    }
    drop(target);
    transaction.commit()?;
    Ok((copied as u64, next))
}

/// Removes an incomplete copy.
pub(super) fn remove(copy: &Path) -> io::Result<()> {
    match fs::remove_file(copy) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU64;
    use std::ops::Range;

    use bytes::Bytes;
    use servicebus_broker::BodyId;
    use servicebus_test_support::temporary::TemporaryDirectory;

    use super::super::{Batch, Disk, Sync, Table, open};
    use super::*;

    fn open_in(directory: &TemporaryDirectory) -> Box<dyn Disk> {
        open(&directory.0, Sync::Always).expect("it is whole").0
    }

    fn length(directory: &TemporaryDirectory) -> u64 {
        let file = fs::metadata(directory.0.join("store.redb"));
        file.expect("it is there").len()
    }

    fn body(number: u64) -> BodyId {
        BodyId(NonZeroU64::MIN.saturating_add(number))
    }

    fn write(disk: &mut dyn Disk, numbers: Range<u64>, bytes: Option<Bytes>) {
        let bodies = numbers.map(|number| (body(number), bytes.clone()));
        let rows = BTreeMap::from([(b"row".to_vec(), Some(Bytes::from_static(b"is kept")))]);
        let batch = Batch {
            bodies: bodies.collect(),
            rows,
            ..Batch::default()
        };
        disk.write(batch).expect("it can be written");
        disk.checkpoint(&|| true).expect("it can be written");
    }

    fn is_whole(disk: &dyn Disk) -> bool {
        let mut rows = Vec::new();
        let read = disk.read(Table::Rows, b"", &mut |key, row| {
            rows.push((key.to_vec(), row.to_vec()));
            Ok(())
        });
        read.expect("it can be read");
        let last = disk.body(body(3999)).expect("it can be read");
        rows == [(b"row".to_vec(), b"is kept".to_vec())]
            && disk.bodies() == Ok((10, 4000))
            && last == Some(Bytes::from_static(&[7; 4000]))
    }

    #[test]
    fn a_mostly_empty_store_file_is_replaced() {
        let directory = TemporaryDirectory::unused();
        let mut disk = open_in(&directory);
        write(&mut *disk, 0..4000, Some(Bytes::from_static(&[7; 4000])));
        let reader = disk.reader();
        let before = reader.snapshot(&[body(0)]).expect("it can be read");
        write(&mut *disk, 0..3990, None);
        let large = length(&directory);
        disk.shrink(&|| false).expect("nothing is written");
        assert_eq!(length(&directory), large, "others have their turn first");
        disk.shrink(&|| true).expect("there is room");
        assert!(
            length(&directory) < large / 4,
            "{} bytes",
            length(&directory)
        );
        assert!(is_whole(&*disk), "as it was");
        let first = before.body(body(0)).expect("it can be read");
        assert_eq!(
            first,
            Some(Bytes::from_static(&[7; 4000])),
            "who reads reads on"
        );
        let now = reader.snapshot(&[body(0)]).expect("it can be read");
        assert_eq!(now.body(body(0)), Ok(None));
        write(&mut *disk, 0..1, Some(Bytes::from_static(b"later")));
        write(&mut *disk, 0..1, None);
        drop((disk, before, now));
        assert!(
            is_whole(&*open_in(&directory)),
            "another process goes on with it"
        );
    }

    #[test]
    fn a_store_file_left_mostly_empty_by_another_process_is_shrunk() {
        let directory = TemporaryDirectory::unused();
        let mut disk = open_in(&directory);
        write(&mut *disk, 0..4000, Some(Bytes::from_static(&[7; 4000])));
        let full = length(&directory);
        drop(disk);
        let mut disk = open_in(&directory);
        disk.shrink(&|| true).expect("nothing is written");
        assert!(length(&directory) > full / 2, "there is nothing to win");
        write(&mut *disk, 0..3990, None);
        drop(disk);
        fs::write(directory.0.join("store.new"), b"half a copy").expect("there is room");
        let mut disk = open_in(&directory);
        disk.shrink(&|| true).expect("there is room");
        assert!(
            length(&directory) < full / 4,
            "{} bytes",
            length(&directory)
        );
        assert!(is_whole(&*disk), "as it was");
    }
}
