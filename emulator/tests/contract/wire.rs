//! AMQP, frame by frame.

mod attach;
mod authorisation;
mod churn;
mod credit;
mod deliveries;
mod expiry;
mod garbage;
mod handshake;
mod limits;
mod management;
mod namespaces;
mod outcome_delay;
mod replies;
mod sends;
mod settlement;
mod slow;
mod times;
