//! Changes of a queue at run time, through the emulator's control API.

use servicebus_harness::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::within;

/// Changes properties of a queue, in the words of the configuration file; it keeps the others.
pub(crate) async fn configure(servicebus: &ServiceBus, queue: &str, properties: serde_json::Value) {
    request(servicebus, "PUT", queue, &properties.to_string()).await;
}

/// Deletes a queue.
pub(crate) async fn delete(servicebus: &ServiceBus, queue: &str) {
    request(servicebus, "DELETE", queue, "").await;
}

/// One request on a connection of its own, which must succeed.
async fn request(servicebus: &ServiceBus, method: &str, queue: &str, body: &str) {
    let url = servicebus.control_url();
    let (_, rest) = url.split_once("://").expect("the address is a URL");
    let (host, path) = rest.split_once('/').expect("the URL has a path");
    let request = format!(
        "{method} /{path}/namespaces/{}/queues/{queue} HTTP/1.1\r\nHost: {host}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        servicebus.namespace(),
        body.len()
    );
    let answering = async {
        let mut stream = TcpStream::connect(host).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = within("the control API's answer", answering)
        .await
        .expect("the control API is reached");
    assert!(answer.starts_with("HTTP/1.1 2"), "{request}\n\n{answer}");
}
