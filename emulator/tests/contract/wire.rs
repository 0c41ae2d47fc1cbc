//! AMQP, frame by frame.

mod attach;
mod authorisation;
mod credit;
mod deliveries;
mod handshake;
mod management;
mod replies;
mod sends;
mod settlement;
mod times;
