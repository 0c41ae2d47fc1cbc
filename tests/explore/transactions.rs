//! Transactions whose outcome is unknown. azservicebus has none, so the code under test is a plain AMQP client.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use fe2o3_amqp::{
    Connection, Sender, Session,
    sasl_profile::SaslProfile,
    transaction::{OwnedTransaction, TransactionDischarge, TransactionPosting},
    types::{
        messaging::{Data, Message as AmqpMessage, MessageId, Properties},
        primitives::Binary,
    },
};
use tokio::{net::TcpStream, time::timeout};

use crate::support::*;

#[derive(Debug, Clone, Copy)]
enum Bug {
    RepeatsWhatMayHaveHappened,
}

const TRANSFERS: [&str; 2] = ["t-1", "t-2"];

/// Books each transfer in two queues at once. A row goes when that is committed.
async fn book(bus: &Party, rows: &Mutex<Vec<&'static str>>) -> Outcome {
    let part = |name: &str| {
        let mut parts = bus.connection_string().split(';');
        let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        part.expect("a connection string has it").to_owned()
    };
    let host = part("Endpoint");
    let host = host.trim_start_matches("sb://").trim_end_matches('/');
    let port = if host.contains(':') { "" } else { ":5672" };
    let stream = TcpStream::connect(format!("{host}{port}")).await?;
    let mut connection = Connection::builder()
        .container_id("transfers")
        .hostname(host)
        .sasl_profile(SaslProfile::Plain {
            username: part("SharedAccessKeyName"),
            password: part("SharedAccessKey"),
        })
        .open_with_stream(stream)
        .await?;
    let mut session = Session::begin(&mut connection).await?;
    let mut debits = Sender::attach(&mut session, "debits", "debits").await?;
    let mut credits = Sender::attach(&mut session, "credits", "credits").await?;
    loop {
        let Some(id) = rows.lock().unwrap().first().copied() else {
            return Ok(());
        };
        let name = format!("transaction of {id}");
        let mut transaction = OwnedTransaction::declare(&mut session, name, None).await?;
        transaction.set_rollback_on_drop_trials(0);
        transaction.post(&mut debits, transfer(id)).await?;
        transaction.post(&mut credits, transfer(id)).await?;
        transaction.commit().await?;
        rows.lock().unwrap().remove(0);
    }
}

fn transfer(id: &str) -> AmqpMessage<Data> {
    let mut message = AmqpMessage::builder()
        .data(Binary::from(id.as_bytes()))
        .build();
    let properties = Properties::builder().message_id(MessageId::from(id.to_owned()));
    message.properties = Some(properties.build());
    message
}

/// Where the queues do not know duplicates, a transaction whose outcome is unknown must not be repeated as it is.
fn explore(bug: Option<Bug>) -> Explore {
    let queue = |name| Queue::new(name).requires_duplicate_detection(bug.is_none());
    Explore::new(
        Topology::new()
            .queue(queue("debits"))
            .queue(queue("credits")),
    )
}

#[test]
fn repeats_a_transaction_that_may_have_been_committed() {
    let fault = "lose-reply at transfers.discharge@debits#1";
    finds(Bug::RepeatsWhatMayHaveHappened, fault, explore, |_| {
        async move |run: &Run| {
            let rows = Arc::new(Mutex::new(TRANSFERS.to_vec()));
            run.job("transfers", async move |bus| {
                timeout(Duration::from_secs(30), book(&bus, &rows)).await?
            });
            run.wait_idle().await;
            assert_eq!(bodies(run, "debits").await, TRANSFERS);
            assert_eq!(bodies(run, "credits").await, TRANSFERS);
        }
    });
}
