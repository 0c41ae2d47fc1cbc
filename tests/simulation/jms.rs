//! Clients of JMS 2.0: they ask over temporary queues, consume a topic with others, pass over what a selector does not match,
//! and roll back. Whatever ends their links, nothing that was made for these stays; what the judge knows of, they leave alone.

use std::time::Duration;

use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::transaction::{TransactionDischarge as _, TransactionRetirement as _};
use fe2o3_amqp::types::definitions::{Fields, ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, DeleteOnClose, Message, Outcome, Properties, Source,
    Target,
};
use fe2o3_amqp::types::primitives::{Array, Symbol, Value};
use fe2o3_amqp::{Receiver, Sender};
use rand::RngExt;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use tokio::time::timeout;

use crate::client::{Client, Exchange, ExchangeFailed, within};
use crate::worker::Worker;

/// The selector filter, by number.
const SELECTOR: u64 = 0x0000_468c_0000_0004;
/// What all of these clients consume together, as qpid-jms names its link.
const WATCH: &str = "watch|global-volatile1";

impl Worker {
    pub(crate) async fn connect_as_jms(&mut self) -> Exchange<()> {
        let mut properties = Fields::new();
        let provider = Symbol::from("com.microsoft:is-client-provider");
        properties.insert(provider, Value::Bool(true));
        self.client = Some(Client::connect_as(&self.world, &self.name, properties).await?);
        Ok(())
    }

    pub(crate) async fn use_jms(&mut self) -> Exchange<()> {
        match self.random.random_range(0..3) {
            0 => self.watch_the_news().await,
            _ => self.use_a_temporary_queue().await,
        }
    }

    /// Sends to a temporary queue and receives from it, all of it or what a selector matches, in order.
    async fn use_a_temporary_queue(&mut self) -> Exchange<()> {
        let selects = self.random.random_bool(0.5);
        let how_many = self.random.random_range(1..8);
        let (mut creator, address) = self.client().temporary_queue().await?;
        for number in 0..how_many {
            let outcome = within("send", creator.send(numbered(number))).await?;
            if !matches!(outcome, Outcome::Accepted(_)) {
                return Err(ExchangeFailed(format!(
                    "a temporary queue answers {outcome:?}"
                )));
            }
        }
        let selector = selects.then_some("number <> 1 AND number BETWEEN 0 AND 5");
        let mut receiver = self.client().selecting(&address, selector).await?;
        if self.random.random_bool(0.3) {
            self.roll_back_one(&mut receiver).await?;
        }
        let expected = (0..how_many).filter(|number| !selects || *number != 1 && *number <= 5);
        let flow = receiver.set_credit(100);
        within("flow", flow).await?;
        for number in expected {
            let delivery = within("receive", receiver.recv::<Body<Value>>()).await?;
            let properties = delivery.message().properties.as_ref();
            let id = properties.and_then(|properties| properties.message_id.clone());
            if id != Some(number.to_string().into()) {
                let found = format!("{address} gives {id:?} in the place of {number}");
                self.world.ledger.find(found);
            }
            within("accept", receiver.accept(&delivery)).await?;
        }
        match self.random.random_range(0..3) {
            // It is killed with everything that it has.
            0 => self.client = None,
            1 => {
                within("detach", receiver.close()).await?;
                within("detach", creator.close()).await?;
            }
            // The queue goes, and the receiver with it.
            _ => within("detach", creator.close()).await?,
        }
        Ok(())
    }

    /// Receives the first in a transaction and rolls that back, after which it is the first again.
    async fn roll_back_one(&mut self, receiver: &mut Receiver) -> Exchange<()> {
        let transaction = self.client().declare().await?;
        within("flow", receiver.set_credit(1)).await?;
        let delivery = within("receive", receiver.recv::<Body<Value>>()).await?;
        within("settle", transaction.accept(receiver, &delivery)).await?;
        within("rollback", transaction.rollback()).await
    }

    /// Consumes a topic for a while, together with others of its kind.
    async fn watch_the_news(&mut self) -> Exchange<()> {
        let max_wait = Duration::from_millis(self.random.random_range(200..3_000));
        let mut receiver = self.client().watching().await?;
        within("flow", receiver.set_credit(5)).await?;
        while let Ok(received) = timeout(max_wait, receiver.recv::<Body<Value>>()).await {
            let delivery =
                received.map_err(|error| ExchangeFailed(format!("receive: {error:?}")))?;
            within("accept", receiver.accept(&delivery)).await?;
            if self.random.random_bool(0.3) {
                break;
            }
        }
        within("detach", receiver.close()).await
    }
}

impl Client {
    /// A link that sends to a queue that is made for it, and the address of that.
    async fn temporary_queue(&mut self) -> Exchange<(Sender, String)> {
        let name = format!("qpid-jms:temp-queue-creator:{}", self.link_name());
        let target = Target::builder()
            .dynamic(true)
            .add_lifetime_policy(DeleteOnClose {})
            .capabilities(symbols(&["temporary-queue"]))
            .build();
        let attaching = Sender::builder()
            .name(name)
            .target(target)
            .attach(self.session());
        let sender = within("attach", Box::pin(attaching)).await?;
        let target = sender.target().as_ref();
        let address = target.and_then(|target| target.address.clone());
        match address {
            Some(address) => Ok((sender, address)),
            None => Err(ExchangeFailed("a temporary queue has no address".into())),
        }
    }

    async fn selecting(&mut self, address: &str, selector: Option<&str>) -> Exchange<Receiver> {
        let source = Source::builder()
            .address(address)
            .capabilities(symbols(&["temporary-queue"]));
        let source = match selector {
            Some(selector) => source.add_to_filter(
                "jms-selector",
                Described {
                    descriptor: Descriptor::Code(SELECTOR),
                    value: Value::from(selector),
                },
            ),
            None => source,
        };
        let name = self.link_name();
        // It settles with its disposition, as qpid-jms does.
        let attaching = Receiver::builder()
            .name(name)
            .source(source.build())
            .sender_settle_mode(SenderSettleMode::Unsettled)
            .receiver_settle_mode(ReceiverSettleMode::First)
            .credit_mode(CreditMode::Manual)
            .attach(self.session());
        within("attach", Box::pin(attaching)).await
    }

    async fn watching(&mut self) -> Exchange<Receiver> {
        let source = Source::builder()
            .address("news")
            .capabilities(symbols(&["topic", "shared", "global"]))
            .build();
        self.receiver_named(WATCH.to_owned(), source, Fields::new(), true)
            .await
    }
}

fn symbols(names: &[&str]) -> Array<Symbol> {
    Array::from(
        names
            .iter()
            .map(|name| Symbol::from(*name))
            .collect::<Vec<_>>(),
    )
}

fn numbered(number: i32) -> Message<AmqpValue<Value>> {
    Message {
        header: None,
        delivery_annotations: None,
        message_annotations: None,
        properties: Some(Properties::builder().message_id(number.to_string()).build()),
        application_properties: Some(
            ApplicationProperties::builder()
                .insert("number", number)
                .build(),
        ),
        body: AmqpValue(Value::Null),
        footer: None,
    }
}
