//! Creates and removes virtual namespaces over the control API, one after the other by one client on one connection: the
//! server's cost of a pair, alone and beside many others.

use std::io;
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::admin::Client;
use crate::arguments::Effort;
use crate::memory::resident;
use crate::process::Emulator;
use crate::report::Report;
use crate::statistics::Rounds;

/// Memory and threads settle within this time.
const REST: Duration = Duration::from_millis(200);
/// A test's declaration: a queue, a topic and a subscription.
const BODY: &str = r#"{"UserConfig":{"Namespaces":[{"Name":"any","Queues":[{"Name":"orders","Properties":{"MaxDeliveryCount":3}}],"Topics":[{"Name":"prices","Subscriptions":[{"Name":"all"}]}]}]}}"#;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let pairs = effort.pick(50, 5_000);
    let staying = effort.pick(10, 500);
    let (mut alone, mut beside, mut memory) =
        (Rounds::default(), Rounds::default(), Rounds::default());
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        let mut client = Client::connect(&emulator)?;
        make_and_remove(&emulator, &mut client, effort.pick(5, 500))?;
        alone.push(make_and_remove(&emulator, &mut client, pairs)?);
        let before = resident(emulator.pid())?;
        for number in 0..staying {
            client.control("PUT", &format!("namespaces/staying-{number}"), BODY)?;
        }
        thread::sleep(REST);
        let grown = resident(emulator.pid())?.saturating_sub(before);
        memory.push(grown as f64 / f64::from(staying));
        beside.push(make_and_remove(&emulator, &mut client, pairs)?);
    }
    report.at_most("make and remove a namespace", &alone, " µs", 100.0);
    report.at_most("the same beside 500 others", &beside, " µs", 100.0);
    report.note("memory of a namespace", format!("{memory} bytes"));
    Ok(())
}

/// Returns the server's processor time for one pair, in microseconds.
fn make_and_remove(emulator: &Emulator, client: &mut Client, pairs: u32) -> io::Result<f64> {
    let cost = client.cost(emulator, 0..pairs, |client, number| {
        let path = format!("namespaces/namespace-{number}");
        client.control("PUT", &path, BODY)?;
        client.control("DELETE", &path, "")
    });
    Ok(cost? / f64::from(pairs))
}
