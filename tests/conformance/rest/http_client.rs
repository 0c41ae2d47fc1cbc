//! An HTTP client for the SDK that talks to the bus whatever host and scheme a URL has.

use std::sync::Arc;

use async_trait::async_trait;
use azure_core_rest::error::{Error, ErrorKind};
use azure_core_rest::headers::Headers;
use azure_core_rest::{Body, BytesStream, HttpClient, Request, Response, StatusCode};
use azure_messaging_servicebus::service_bus::{QueueClient, TopicClient};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use servicebus_harness::prelude::*;
use servicebus_test_support::client::part;
use tokio::net::TcpStream;

/// Sends every request to one address.
#[derive(Debug)]
struct Redirected(String);

#[async_trait]
impl HttpClient for Redirected {
    async fn execute_request(&self, request: &Request) -> azure_core_rest::Result<Response> {
        let failed = |error: String| Error::message(ErrorKind::Io, error);
        let response = self
            .send(request)
            .await
            .map_err(|error| failed(error.to_string()))?;
        let (parts, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map_err(|error| failed(error.to_string()))?;
        let mut headers = Headers::new();
        for (name, value) in &parts.headers {
            let value = value.to_str().expect("headers are ASCII").to_owned();
            headers.insert(name.as_str().to_owned(), value);
        }
        let status = StatusCode::try_from(parts.status.as_u16());
        let status = status.map_err(|error| failed(error.to_string()))?;
        let stream = Box::pin(BytesStream::new(body.to_bytes()));
        Ok(Response::new(status, headers, stream))
    }
}

impl Redirected {
    async fn send(
        &self,
        request: &Request,
    ) -> Result<hyper::Response<hyper::body::Incoming>, Box<dyn std::error::Error + Send + Sync>>
    {
        let stream = TcpStream::connect(&self.0).await?;
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut plain = hyper::Request::builder()
            .method(request.method().as_ref())
            .uri(request.path_and_query())
            .header("host", request.url().host_str().unwrap_or_default());
        for (name, value) in request.headers().iter() {
            plain = plain.header(name.as_str(), value.as_str());
        }
        let body = match request.body() {
            Body::Bytes(bytes) => bytes.clone(),
            Body::SeekableStream(_) => Bytes::new(),
        };
        Ok(sender.send_request(plain.body(Full::new(body))?).await?)
    }
}

fn http_client(servicebus: &ServiceBus) -> Arc<dyn HttpClient> {
    crate::conformance::client::assert_plain(servicebus);
    Arc::new(Redirected(servicebus.endpoints().http.to_string()))
}

/// The SDK's client of a queue.
pub(crate) fn queue(servicebus: &ServiceBus, name: &str) -> QueueClient {
    let (policy, key) = key(servicebus);
    let namespace = servicebus.namespace();
    QueueClient::new(http_client(servicebus), namespace, name, policy, key)
        .expect("a client can be made")
}

/// The SDK's client of a topic.
pub(crate) fn topic(servicebus: &ServiceBus, name: &str) -> TopicClient {
    let (policy, key) = key(servicebus);
    let namespace = servicebus.namespace();
    TopicClient::new(http_client(servicebus), namespace, name, policy, key)
        .expect("a client can be made")
}

/// The name and value of the key in the connection string.
fn key(servicebus: &ServiceBus) -> (&str, String) {
    let string = servicebus.connection_string();
    let key = part(string, "SharedAccessKey").to_owned();
    (part(string, "SharedAccessKeyName"), key)
}
