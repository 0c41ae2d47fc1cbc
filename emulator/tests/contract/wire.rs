//! AMQP, frame by frame.

mod attach;
mod authorisation;
mod batch_delete;
mod batches;
mod churn;
mod credit;
mod deferral;
mod deliveries;
mod duplicates;
mod entities;
mod expiry;
mod forwarding;
mod garbage;
mod handshake;
mod headers;
mod limits;
mod management;
mod namespaces;
mod outcome_delay;
mod partitions;
mod replies;
mod scheduling;
mod sends;
mod settlement;
mod slow;
mod times;
