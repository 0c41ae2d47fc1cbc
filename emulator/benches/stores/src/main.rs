//! redb compared with fjall under the load of a data directory: small appends, deletes from the front, ten thousand queues.
//!
//!     cargo run --release -- DIRECTORY [COUNT]
//!
//! A message is a row of 200 bytes under its queue and its offset, and a body of 1 KiB under a number that only grows. Each
//! transaction adds a number of messages; once enough are stored, it also removes as many of the oldest.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use fjall::{Keyspace, KeyspaceCreateOptions, KvSeparationOptions, PersistMode};
use redb::{Builder, Database, ReadableDatabase as _, StorageBackend, TableDefinition};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Own = TableDefinition<'static, &'static [u8], &'static [u8]>;

const ROWS: Own = TableDefinition::new("rows");
const BODIES: Own = TableDefinition::new("bodies");
const QUEUES: u64 = 10_000;
const KEPT: u64 = 100_000;

trait Store {
    /// Adds the messages of `added` and removes those of `removed`.
    fn commit(&mut self, added: std::ops::Range<u64>, removed: std::ops::Range<u64>) -> Outcome;
    fn count(&self) -> Outcome<usize>;
}

fn row(number: u64) -> Vec<u8> {
    [(number % QUEUES).to_be_bytes(), number.to_be_bytes()].concat()
}

/// Bytes that do not compress.
fn bytes(number: u64, length: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(length + 8);
    while out.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend(state.to_le_bytes());
    }
    out.truncate(length);
    out
}

struct Redb(Database);

#[derive(Debug)]
struct Backend(File, bool);

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        if self.1 { self.0.sync_data() } else { Ok(()) }
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

impl Redb {
    fn open(directory: &Path, syncs: bool) -> Outcome<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true);
        let file = options.open(directory.join("store.redb"))?;
        let mut builder = Builder::new();
        builder.set_cache_size(32 << 20);
        let database = builder.create_with_backend(Backend(file, syncs))?;
        let transaction = database.begin_write()?;
        transaction.open_table(ROWS)?;
        transaction.open_table(BODIES)?;
        transaction.commit()?;
        Ok(Self(database))
    }
}

impl Store for Redb {
    fn commit(&mut self, added: std::ops::Range<u64>, removed: std::ops::Range<u64>) -> Outcome {
        let transaction = self.0.begin_write()?;
        let mut rows = transaction.open_table(ROWS)?;
        let mut bodies = transaction.open_table(BODIES)?;
        for number in added {
            rows.insert(&row(number)[..], &bytes(number, 200)[..])?;
            bodies.insert(&number.to_be_bytes()[..], &bytes(number, 1024)[..])?;
        }
        for number in removed {
            rows.remove(&row(number)[..])?;
            bodies.remove(&number.to_be_bytes()[..])?;
        }
        drop((rows, bodies));
        Ok(transaction.commit()?)
    }

    fn count(&self) -> Outcome<usize> {
        let rows = self.0.begin_read()?.open_table(ROWS)?;
        Ok(rows.range::<&[u8]>(..)?.count())
    }
}

struct Fjall {
    database: fjall::Database,
    rows: Keyspace,
    bodies: Keyspace,
    mode: PersistMode,
}

impl Fjall {
    fn open(directory: &Path, syncs: bool) -> Outcome<Self> {
        let builder = fjall::Database::builder(directory.join("fjall"));
        let database = builder.cache_size(32 << 20).open()?;
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default)?;
        let separated = || {
            let apart = KvSeparationOptions::default().separation_threshold(512);
            KeyspaceCreateOptions::default().with_kv_separation(Some(apart))
        };
        let bodies = database.keyspace("bodies", separated)?;
        let mode = match syncs {
            true => PersistMode::SyncData,
            false => PersistMode::Buffer,
        };
        Ok(Self {
            database,
            rows,
            bodies,
            mode,
        })
    }
}

impl Store for Fjall {
    fn commit(&mut self, added: std::ops::Range<u64>, removed: std::ops::Range<u64>) -> Outcome {
        let mut batch = self.database.batch().durability(Some(self.mode));
        for number in added {
            batch.insert(&self.rows, row(number), bytes(number, 200));
            batch.insert(&self.bodies, number.to_be_bytes(), bytes(number, 1024));
        }
        for number in removed {
            batch.remove(&self.rows, row(number));
            batch.remove(&self.bodies, number.to_be_bytes());
        }
        Ok(batch.commit()?)
    }

    fn count(&self) -> Outcome<usize> {
        let mut count = 0;
        for item in self.rows.iter() {
            item.key()?;
            count += 1;
        }
        Ok(count)
    }
}

fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else {
        return fs::metadata(path).map_or(0, |metadata| metadata.len());
    };
    entries.flatten().map(|entry| size(&entry.path())).sum()
}

/// Processor time of this process and bytes that it has written.
fn used() -> (Duration, u64) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut nanoseconds = 0;
    for task in fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten()
    {
        let text = fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
        nanoseconds += text
            .split(' ')
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(0);
    }
    let io = read("/proc/self/io");
    let wrote = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    (
        Duration::from_nanos(nanoseconds),
        wrote.and_then(|n| n.parse().ok()).unwrap_or(0),
    )
}

fn run(
    name: &str,
    directory: &Path,
    syncs: bool,
    at_once: u64,
    messages: u64,
    open: fn(&Path, bool) -> Outcome<Box<dyn Store>>,
) -> Outcome {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory)?;
    let mut store = open(directory, syncs)?;
    let kept = KEPT.min(messages / 4);
    let (before, begin) = (used(), Instant::now());
    let mut number = 0;
    while number < messages {
        let end = number + at_once;
        let removed = number.saturating_sub(kept)..end.saturating_sub(kept);
        store.commit(number..end, removed)?;
        number = end;
    }
    let took = begin.elapsed().as_secs_f64();
    let after = used();
    let written = (after.1 - before.1) as f64 / messages as f64;
    let processor = (after.0 - before.0).as_secs_f64() * 1e6 / messages as f64;
    let left = number - kept..number;
    let full = size(directory);
    drop(store);
    let begin = Instant::now();
    let mut store = open(directory, syncs)?;
    let rows = store.count()?;
    let start = begin.elapsed().as_secs_f64() * 1e3;
    assert_eq!(rows as u64, kept, "{name}");
    for number in left.step_by(1_000) {
        let end = (number + 1_000).min(messages);
        store.commit(0..0, number..end)?;
    }
    std::thread::sleep(Duration::from_secs(2));
    let (mib, rest) = (full as f64 / 1048576.0, size(directory) as f64 / 1048576.0);
    println!(
        "| {name} | {} | {at_once} | {:.0} | {processor:.1} | {written:.0} | {mib:.0} | {rest:.0} | {start:.0} |",
        if syncs { "yes" } else { "no" },
        messages as f64 / took,
    );
    Ok(())
}

fn main() -> Outcome {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("a directory")?;
    let most: u64 = arguments
        .next()
        .map_or(Ok(400_000), |count| count.parse())?;
    println!(
        "| store | fsync | messages in a transaction | messages/s | processor µs | bytes written | MiB at the end | MiB when emptied | ms to open and count |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let directory = Path::new(&directory).join("stores");
    for (syncs, at_once, share) in [
        (false, 1, 4),
        (false, 64, 1),
        (false, 1000, 1),
        (true, 1, 100),
        (true, 64, 4),
    ] {
        let messages = most / share / at_once * at_once;
        run(
            "redb",
            &directory,
            syncs,
            at_once,
            messages,
            |directory, syncs| Ok(Box::new(Redb::open(directory, syncs)?)),
        )?;
        run(
            "fjall",
            &directory,
            syncs,
            at_once,
            messages,
            |directory, syncs| Ok(Box::new(Fjall::open(directory, syncs)?)),
        )?;
    }
    let _ = fs::remove_dir_all(directory);
    Ok(())
}
