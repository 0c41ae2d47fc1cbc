//! The end of a simulation: what is left is taken out of every entity, and then nothing may be left of anything.

use std::sync::Arc;
use std::time::Duration;

use fe2o3_amqp::Receiver;
use fe2o3_amqp::types::messaging::Body;
use fe2o3_amqp::types::messaging::message::DecodeIntoMessage as _;
use fe2o3_amqp::types::primitives::{Array, Value};
use serde_amqp::read::SliceReader;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use crate::client::{Client, Exchange, ExchangeFailed, map, within};
use crate::entities::{ENTITIES, SESSIONS};
use crate::http::Http;
use crate::receivers::arrival;
use crate::senders::SESSIONS as SESSION_NAMES;
use crate::world::World;

/// Until locks, schedules and silent connections have all ended.
const SETTLE_TIME: Duration = Duration::from_secs(400);
/// How soon a message comes to whom it is there for.
const RECEIVE_TIMEOUT: Duration = Duration::from_secs(2);
const CREDIT: u32 = 100;

/// Empties everything; says whether that was possible.
pub(crate) async fn drain(world: &Arc<World>) -> bool {
    let ledger = &world.ledger;
    sleep(SETTLE_TIME).await;
    let left = world.network.open_at_server();
    if !left.is_empty() {
        ledger.find(format!("connections {left:?} have no client, and stay"));
    }
    let drained = try_drain(world).await;
    if let Err(ExchangeFailed(why)) = &drained {
        ledger.find(format!("the entities cannot be emptied: {why}"));
    }
    sleep(RECEIVE_TIMEOUT).await;
    let left = world.network.open_at_server();
    if !left.is_empty() {
        ledger.find(format!("connections {left:?} were closed, and stay"));
    }
    drained.is_ok()
}

async fn try_drain(world: &Arc<World>) -> Exchange<()> {
    let mut http = Http::connect(world);
    let mut client = Client::connect(world, "drain").await?;
    for (number, place) in ENTITIES.iter().enumerate() {
        let counts = http.get(&counts_of(place.address)).await?;
        // Those that are deferred are active, too.
        let ready = count(&counts, "active") - count(&counts, "deferred");
        if number == SESSIONS {
            drain_sessions(world, &mut client, ready).await?;
        } else {
            drain_store(world, &mut client, number, "", ready).await?;
        }
        if count(&counts, "deferred") > 0 {
            drain_deferred(world, &mut client, number).await?;
        }
        let counts = http.get(&counts_of(place.address)).await?;
        for (name, suffix) in [
            ("dead_letter", "/$DeadLetterQueue"),
            ("transfer_dead_letter", "/$Transfer/$DeadLetterQueue"),
        ] {
            let expected = count(&counts, name);
            if expected > 0 {
                drain_store(world, &mut client, number, suffix, expected).await?;
            }
        }
    }
    clear_states(&mut client).await?;
    client.close().await;
    check_for_leftovers(world, &mut http).await?;
    settle(world, &mut http).await
}

/// What was made for the link of a client of JMS goes with it, whatever ended that.
async fn check_for_leftovers(world: &Arc<World>, http: &mut Http) -> Exchange<()> {
    for kind in ["queues", "subscriptions"] {
        let path = format!("/$emulator/v1/namespaces/simulated/{kind}");
        let listed = http.get(&path).await?;
        for entity in listed[kind].as_array().into_iter().flatten() {
            let name = entity["name"].as_str().unwrap_or_default();
            if name.starts_with("temporary-") || name.ends_with("$ND") {
                world.ledger.find(format!("{name} outlives its links"));
            }
        }
    }
    Ok(())
}

/// Receives all of a store, which must come as fast as it is asked for.
async fn drain_store(
    world: &Arc<World>,
    client: &mut Client,
    place: usize,
    suffix: &str,
    expected: u64,
) -> Exchange<()> {
    if expected == 0 {
        return Ok(());
    }
    let link = world
        .ledger
        .attaching(place, !suffix.is_empty(), &client.observed);
    let address = format!("{}{suffix}", ENTITIES[place].address);
    let mut receiver = client.receiver(&address, false).await?;
    let mut found = 0;
    within("credit", receiver.set_credit(CREDIT)).await?;
    while found < expected {
        let Ok(received) = timeout(RECEIVE_TIMEOUT, receiver.recv::<Body<Value>>()).await else {
            break;
        };
        let delivery = received.map_err(|error| ExchangeFailed(format!("{error:?}")))?;
        let mut arrival = arrival(delivery.message())?;
        world.ledger.delivered(link, &mut arrival);
        world.ledger.found(place, arrival.key);
        found += 1;
    }
    if found < expected {
        world.ledger.find(format!(
            "{address} has {expected} messages and gives {found}"
        ));
    }
    world.ledger.closing(link);
    within("detach", receiver.close()).await
}

async fn drain_sessions(world: &Arc<World>, client: &mut Client, expected: u64) -> Exchange<()> {
    let address = ENTITIES[SESSIONS].address;
    let mut found = 0;
    while found < expected {
        let link = world.ledger.attaching(SESSIONS, false, &client.observed);
        let accepted = client
            .session_receiver(address, None, RECEIVE_TIMEOUT, false)
            .await?;
        let Some((mut receiver, session, until)) = accepted else {
            break;
        };
        world.ledger.holds(link, &session, until);
        world.ledger.grant_credit(link, CREDIT);
        within("credit", receiver.set_credit(CREDIT)).await?;
        let before = found;
        while let Ok(received) =
            timeout(Duration::from_millis(200), receiver.recv::<Body<Value>>()).await
        {
            let delivery = received.map_err(|error| ExchangeFailed(format!("{error:?}")))?;
            let mut arrival = arrival(delivery.message())?;
            world.ledger.delivered(link, &mut arrival);
            world.ledger.found(SESSIONS, arrival.key);
            found += 1;
        }
        world.ledger.closing(link);
        within("detach", receiver.close()).await?;
        if found == before {
            break;
        }
    }
    if found < expected {
        world.ledger.find(format!(
            "{address} has {expected} messages and gives {found}"
        ));
    }
    Ok(())
}

/// Locks a session, which no other client holds now.
async fn hold(client: &mut Client, address: &str, session: &str) -> Exchange<Receiver> {
    let accepting = client.session_receiver(address, Some(session), RECEIVE_TIMEOUT, true);
    match accepting.await? {
        Some((receiver, ..)) => Ok(receiver),
        None => Err(ExchangeFailed(format!("session {session} is locked"))),
    }
}

/// Forgets what is kept with sessions.
async fn clear_states(client: &mut Client) -> Exchange<()> {
    let address = ENTITIES[SESSIONS].address;
    for session in SESSION_NAMES {
        let receiver = hold(client, address, session).await?;
        let body = map([
            ("session-id", session.into()),
            ("session-state", Value::Null),
        ]);
        client.ask(address, "set-session-state", body).await?;
        within("detach", receiver.close()).await?;
    }
    Ok(())
}

/// Asks for what was deferred, by the numbers that peeking shows.
async fn drain_deferred(world: &Arc<World>, client: &mut Client, place: usize) -> Exchange<()> {
    let address = ENTITIES[place].address;
    for session in sessions_of(place) {
        let mut body = map([
            ("from-sequence-number", Value::Long(1)),
            ("message-count", Value::Int(250)),
        ]);
        if let Some(session) = session {
            body.insert("session-id".into(), session.into());
        }
        let mut answer = client.ask(address, "peek-message", body).await?;
        let Some(Value::List(entries)) = answer.take("messages") else {
            continue;
        };
        let mut numbers = Vec::new();
        for entry in entries {
            let number = read(entry)?.number;
            numbers.push(Value::Long(number));
        }
        let holder = match session {
            Some(session) => Some(hold(client, address, session).await?),
            None => None,
        };
        let mut body = map([
            ("sequence-numbers", Value::Array(Array::from(numbers))),
            ("receiver-settle-mode", Value::Uint(0)),
        ]);
        if let Some(session) = session {
            body.insert("session-id".into(), session.into());
        }
        let mut answer = client
            .ask(address, "receive-by-sequence-number", body)
            .await?;
        let entries = match answer.take("messages") {
            Some(Value::List(entries)) => entries,
            // One that has expired goes when it is asked for, and none is given then.
            _ if ENTITIES[place].ttl.is_some() => continue,
            _ => {
                return Err(ExchangeFailed(format!(
                    "{address} does not give what was deferred: {}",
                    answer.condition
                )));
            }
        };
        for entry in entries {
            world.ledger.found(place, read(entry)?.key);
        }
        if let Some(receiver) = holder {
            within("detach", receiver.close()).await?;
        }
    }
    Ok(())
}

fn sessions_of(place: usize) -> Vec<Option<&'static str>> {
    match ENTITIES[place].sessions {
        true => SESSION_NAMES.map(Some).to_vec(),
        false => vec![None],
    }
}

fn read(entry: Value) -> Exchange<crate::ledger::Arrival> {
    let Value::Map(mut entry) = entry else {
        return Err(ExchangeFailed("an answer holds no map".into()));
    };
    let Some(Value::Binary(bytes)) = entry.swap_remove(&Value::from("message")) else {
        return Err(ExchangeFailed("an answer holds no message".into()));
    };
    let message = Body::<Value>::decode_message_from_reader(SliceReader::new(&bytes))
        .map_err(|error| ExchangeFailed(error.to_string()))?;
    arrival(&message)
}

/// Nothing is left, and nothing is under way.
async fn settle(world: &Arc<World>, http: &mut Http) -> Exchange<()> {
    let ledger = &world.ledger;
    let rest = http
        .post(
            "/$emulator/v1/namespaces/simulated/settled",
            r#"{"within":1}"#,
        )
        .await;
    if let Err(ExchangeFailed(why)) = rest {
        ledger.find(format!("the namespace does not come to rest: {why}"));
    }
    let forwarding = [
        "source",
        "first",
        "second",
        "third",
        "fourth",
        "sixth",
        "closed",
        "news",
        "news/subscriptions/blue",
    ];
    for address in ENTITIES.iter().map(|place| place.address).chain(forwarding) {
        let counts = http.get(&counts_of(address)).await?;
        let is_empty = counts
            .as_object()
            .is_some_and(|counts| counts.values().all(|count| *count == 0));
        if !is_empty {
            ledger.find(format!("{address} was emptied, and has {counts}"));
        }
    }
    Ok(())
}

fn counts_of(address: &str) -> String {
    format!("/$emulator/v1/namespaces/simulated/counts?entity={address}")
}

fn count(counts: &Json, name: &str) -> u64 {
    counts[name]
        .as_u64()
        .unwrap_or_else(|| panic!("no {name} in {counts}"))
}
