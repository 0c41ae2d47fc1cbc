//! The cost of a data directory compared with memory alone, with a bare write and `fdatasync`, and with a durable queue of
//! RabbitMQ on the same disk, if `RABBITMQ` has its address (`benches/with-rabbitmq` starts it).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::memory::resident;
use crate::process::{Emulator, scratch, time_to_first_line};
use crate::rabbitmq::Publisher;
use crate::receiver::{Accept, Receiver};
use crate::report::Report;
use crate::sender::Sender;
use crate::statistics::{Rounds, histogram};
use crate::throughput::through_emulator;

const BODY: usize = 1024;
const LARGE: usize = 64 * 1024;
/// Senders, each with a connection of its own and one outstanding message; and the total of their messages.
const SENDERS: [(u32, u32); 3] = [(1, 2_000), (16, 16_000), (64, 32_000)];
/// A file must have shrunk within this time.
const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    measure_throughput(effort, report)?;
    measure_one_at_a_time(effort, report)?;
    measure_senders(effort, report)?;
    measure_start(effort, report)?;
    measure_million(effort, report)?;
    measure_large(effort, report)
}

/// A directory without data.
fn empty(name: &str) -> io::Result<PathBuf> {
    let directory = scratch(&format!("data-{name}"));
    match fs::remove_dir_all(&directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(directory),
    }
}

fn kept(directory: &Path, sync: &str) -> io::Result<Emulator> {
    let directory = directory.to_string_lossy();
    Emulator::start_local(&["--data", &*directory, "--sync", sync])
}

fn measure_throughput(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(2_000, 200_000);
    let memory = Emulator::start()?;
    let [process, always] = ["process", "always"].map(|sync| kept(&empty(sync)?, sync));
    let emulators = [memory, process?, always?];
    let mut speeds = [(); 3].map(|()| Rounds::default());
    let mut ratios = [(); 3].map(|()| Rounds::default());
    for emulator in &emulators {
        through_emulator(emulator, count / 10)?;
    }
    for _ in 0..effort.rounds() {
        let mut of_memory = None;
        for (at, emulator) in emulators.iter().enumerate() {
            let speed = through_emulator(emulator, count)?.per_second;
            speeds[at].push(speed);
            ratios[at].push(speed / *of_memory.get_or_insert(speed));
        }
    }
    let names = ["memory alone", "--sync process", "--sync always"];
    for (name, speed) in names.iter().zip(&speeds) {
        report.note(
            &format!("{name}, messages per second, 1000 sends outstanding"),
            speed.to_string(),
        );
    }
    report.at_least("--sync process ÷ memory alone", &ratios[1], "", 0.5);
    report.note("--sync always ÷ memory alone", ratios[2].to_string());
    Ok(())
}

/// Measures the median time from sending a message to its outcome, and that of a write of as many bytes with `fdatasync`.
fn measure_one_at_a_time(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(20, 1_000);
    let directory = empty("one-at-a-time")?;
    let emulator = kept(&directory, "always")?;
    let mut file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("bare"))?;
    let message = message(BODY, None);
    let mut sender = Sender::attach(emulator.amqp, &message)?;
    let (mut bare, mut ours, mut ratio) = (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let (mut write, mut send) = (histogram()?, histogram()?);
        for _ in 0..count {
            write.saturating_record(time(|| write_bare(&mut file, &message))?);
            send.saturating_record(time(|| sender.send(1, 1))?);
        }
        let [write, send] = [write, send].map(|times| times.value_at_quantile(0.5) as f64 / 1000.0);
        bare.push(write);
        ours.push(send);
        ratio.push(send / write);
    }
    report.note(
        "a bare write and fdatasync of 1 KiB, p50",
        format!("{bare} µs"),
    );
    report.note("a send with --sync always, p50", format!("{ours} µs"));
    report.at_most("a send ÷ a bare write", &ratio, "", 1.3);
    Ok(())
}

fn write_bare(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_data()
}

/// Nanoseconds that something takes.
fn time(work: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
    let begin = Instant::now();
    work()?;
    Ok(begin.elapsed().as_nanos() as u64)
}

fn measure_senders(effort: Effort, report: &mut Report) -> Outcome {
    let rabbitmq: Option<SocketAddr> = match env::var("RABBITMQ") {
        Ok(address) => Some(address.parse()?),
        Err(_) => None,
    };
    let emulator = kept(&empty("senders")?, "always")?;
    for (senders, count) in SENDERS {
        let count = effort.pick(senders, count);
        let (mut ours, mut theirs, mut ratio) =
            (Rounds::default(), Rounds::default(), Rounds::default());
        for _ in 0..effort.rounds() {
            let own = rate(senders, count, |count| {
                let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
                Ok(move || sender.send(count, 1))
            })?;
            ours.push(own);
            if let Some(address) = rabbitmq {
                let other = rate(senders, count, |count| {
                    let mut publisher = Publisher::open(address, BODY)?;
                    Ok(move || publisher.publish(count))
                })?;
                theirs.push(other);
                ratio.push(own / other);
            }
        }
        let of = match senders {
            1 => "1 sender".to_owned(),
            more => format!("{more} senders"),
        };
        report.note(
            &format!("{of}, one send outstanding each, messages per second"),
            ours.to_string(),
        );
        let ratio_to = format!("{of} ÷ RabbitMQ's durable queue with confirms");
        match rabbitmq {
            Some(_) => {
                report.note(&format!("RabbitMQ, {of}"), theirs.to_string());
                report.at_least(&ratio_to, &ratio, "", 3.0);
            }
            None => report.miss(&ratio_to, "RABBITMQ names no server"),
        }
    }
    Ok(())
}

/// Returns messages per second of several senders, each of which is opened before the clock runs.
fn rate<S: FnOnce() -> io::Result<()> + Send>(
    senders: u32,
    count: u32,
    open: impl Fn(u32) -> io::Result<S>,
) -> io::Result<f64> {
    let all = (0..senders).map(|_| open(count / senders));
    let all = all.collect::<io::Result<Vec<_>>>()?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sending: Vec<_> = all.into_iter().map(|send| scope.spawn(send)).collect();
        let mut ended = sending
            .into_iter()
            .map(|thread| thread.join().expect("the sender does not panic"));
        ended.try_for_each(|ended| ended)
    })?;
    Ok(f64::from(count / senders * senders) / begin.elapsed().as_secs_f64())
}

fn measure_start(effort: Effort, report: &mut Report) -> Outcome {
    let starts = effort.pick(1, 20);
    let mut more = Rounds::default();
    for _ in 0..effort.rounds() {
        let [mut memory, mut data] = [(); 2].map(|()| Rounds::default());
        for _ in 0..starts {
            let begin = |arguments: &[&str]| {
                let mut emulator = Command::new(Emulator::binary());
                emulator.args(["--amqp-port", "0", "--http-port", "0"]);
                let took = time_to_first_line(emulator.args(arguments))?;
                Ok::<_, io::Error>(took.as_secs_f64() * 1000.0)
            };
            memory.push(begin(&[])?);
            let directory = empty("start")?;
            data.push(begin(&["--data", &*directory.to_string_lossy()])?);
        }
        more.push(data.median() - memory.median());
    }
    report.at_most(
        "start with an empty directory − that without one",
        &more,
        " ms",
        5.0,
    );
    Ok(())
}

/// Measures many messages of 1 KiB: the start that recovers them, and the file after they are gone.
fn measure_million(effort: Effort, report: &mut Report) -> Outcome {
    let messages = effort.pick(1_000, 1_000_000);
    let directory = empty("million")?;
    let emulator = kept(&directory, "process")?;
    Sender::attach(emulator.amqp, &message(BODY, None))?.send(messages, 1000)?;
    drop(emulator);
    let begin = Instant::now();
    let emulator = kept(&directory, "process")?;
    let took = [begin.elapsed().as_secs_f64()].into_iter().collect();
    report.at_most(
        &format!("start with {messages} messages of 1 KiB"),
        &took,
        " s",
        5.0,
    );
    let memory = resident(emulator.pid())? as f64 / f64::from(messages);
    report.at_most(
        "memory for each of them",
        &[memory].into_iter().collect(),
        " bytes",
        effort.pick(f64::INFINITY, 1024.0),
    );
    let before = size_of_file(&directory)?;
    let mut receiver = Receiver::attach(emulator.amqp)?;
    receiver.grant(1000)?;
    receiver.receive(messages, 1000, Accept::Ranges(64), |_| {})?;
    let begin = Instant::now();
    let small = effort.pick(before, before / 20);
    while size_of_file(&directory)? > small && begin.elapsed() < MINUTE {
        thread::sleep(Duration::from_millis(100));
    }
    let took = [begin.elapsed().as_secs_f64()].into_iter().collect();
    let after = size_of_file(&directory)?;
    let what = format!("the file shrinks from {before} bytes to {after} when they are gone");
    report.at_most(&what, &took, " s", 59.0);
    Ok(())
}

/// Measures a start after a kill that left the journal full, while the database has none of it.
pub(crate) fn measure_full_journal(effort: Effort, report: &mut Report) -> Outcome {
    let full = effort.pick(1_u64, 127) << 20;
    let mut starts = Rounds::default();
    for _ in 0..effort.rounds() {
        let directory = empty("journal")?;
        let emulator = kept(&directory, "process")?;
        let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
        while fs::metadata(directory.join("journal"))?.len() < full {
            sender.send(1_000, 1_000)?;
        }
        drop(emulator);
        let begin = Instant::now();
        drop(kept(&directory, "process")?);
        starts.push(begin.elapsed().as_secs_f64());
    }
    report.note(
        "start after kill -9 with a journal of 128 MiB",
        format!("{starts} s"),
    );
    Ok(())
}

fn size_of_file(directory: &Path) -> io::Result<u64> {
    let mut size = 0;
    for entry in fs::read_dir(directory)? {
        size += entry?.metadata()?.len();
    }
    Ok(size)
}

/// Measures more bytes than memory may hold.
fn measure_large(effort: Effort, report: &mut Report) -> Outcome {
    let messages = effort.pick(100, 160_000);
    let directory = empty("large")?;
    let directory = &*directory.to_string_lossy();
    let arguments = [
        "--data", directory, "--sync", "process", "--tier", "premium",
    ];
    let emulator = Emulator::start_local(&arguments)?;
    let mut sender = Sender::attach(emulator.amqp, &message(LARGE - 1024, None))?;
    let (mut most, mut sent) = (0, 0);
    while sent < messages {
        let some = (messages - sent).min(1_000);
        sender.send(some, 50)?;
        sent += some;
        most = most.max(resident(emulator.pid())?);
    }
    let mut receiver = Receiver::attach(emulator.amqp)?;
    receiver.grant(50)?;
    let mut received = 0;
    receiver.receive(messages, 50, Accept::AsItComes, |_| {
        received += 1;
        if received % 1_000 == 0 {
            most = most.max(resident(emulator.pid()).unwrap_or(0));
        }
    })?;
    let gigabytes = f64::from(messages) * LARGE as f64 / 1e9;
    report.at_most(
        &format!("most memory for {gigabytes:.1} GB that are sent and received"),
        &[most as f64 / 1e6].into_iter().collect(),
        " MB",
        300.0,
    );
    Ok(())
}
