//! Records a test for the comparison of two targets (`servicebus-comparison`): what the test observes, and the traffic
//! between its clients and the namespace.
//!
//! The environment enables a comparison: it names a file for the observations, and the address of a recorder, a proxy
//! between clients and namespace. The recorder answers a request of one JSON line with one line; a recording lasts as long
//! as its connection. Without these variables this module does nothing.

use std::{
    env, fmt,
    fs::OpenOptions,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{IpAddr, Shutdown, SocketAddr, TcpStream},
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};
use servicebus_config::auth::ConnectionString;

use crate::{
    endpoints::{self, Endpoints, Namespace},
    error::Error,
    running::Started,
};

/// The environment variable with the file to which a test appends its observations.
pub const OBSERVATIONS_VARIABLE: &str = "SERVICEBUS_HARNESS_OBSERVATIONS";
/// The environment variable with the address of the recorder.
pub const RECORDER_VARIABLE: &str = "SERVICEBUS_HARNESS_RECORDER";

/// The longest recorded value, in characters: bodies may have megabytes.
const MAX_LENGTH: usize = 4_000;
/// How long the recorder may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// Records an observation for the comparison of two targets; does nothing outside of a comparison. It may contain ids, times
/// and hosts, which the comparison normalizes. Observations of spawned tasks are compared regardless of their order.
///
/// # Panics
///
/// Panics if the file that the environment names cannot be written: the comparison would be incomplete.
pub fn observe(what: impl Into<String>, value: impl Into<String>) {
    let Some(file) = env::var_os(OBSERVATIONS_VARIABLE) else {
        return;
    };
    let (what, value): (String, String) = (what.into(), value.into());
    let value: String = value.chars().take(MAX_LENGTH).collect();
    let aside = tokio::task::try_id().is_some();
    let observation = json!({ "what": what, "value": value, "aside": aside });
    if let Err(error) = append(file.as_ref(), &observation) {
        panic!(
            "cannot write {}, named by {OBSERVATIONS_VARIABLE}: {error}",
            file.display()
        );
    }
}

fn append(file: &Path, observation: &Value) -> io::Result<()> {
    let line = format!("{observation}\n");
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    // One write, so that lines of several threads do not mix.
    file.write_all(line.as_bytes())
}

/// Returns the topology to use instead of this one, if the comparison changes it.
pub(crate) fn changed_topology(topology: &str) -> io::Result<Option<String>> {
    let Some((_, answer)) = request_recorder(&json!({ "topology": topology }))? else {
        return Ok(None);
    };
    Ok(answer["topology"].as_str().map(str::to_owned))
}

/// How clients reach a namespace.
#[derive(Debug)]
pub(crate) struct ClientAccess {
    pub(crate) endpoints: Endpoints,
    pub(crate) namespace: Namespace,
    /// The recording proxy; must live as long as clients connect.
    pub(crate) recording: Option<Recording>,
}

/// A recording of the traffic; dropping it closes the connections through the recorder.
#[derive(Debug)]
pub(crate) struct Recording {
    connection: TcpStream,
    custom_endpoint: Option<String>,
}

/// Returns how clients reach a namespace: through the recorder if there is one, else directly.
pub(crate) fn client_access(started: &Started) -> Result<ClientAccess, Error> {
    let mut client_access = ClientAccess {
        endpoints: started.endpoints,
        namespace: started.first_namespace()?.clone(),
        recording: None,
    };
    let endpoints = started.endpoints;
    let request = json!({
        "host": host(&client_access.namespace),
        "amqp": endpoints.amqp,
        "amqps": endpoints.amqps,
        "http": endpoints.http,
        "https": endpoints.https,
        "secure": started.running.remote().is_some(),
    });
    let Some((connection, answer)) = request_recorder(&request).map_err(not_recorded)? else {
        return Ok(client_access);
    };
    let address = answer["address"].as_str().unwrap_or_default().parse();
    let address: IpAddr = address.map_err(not_recorded)?;
    // Tokens are signed for a host name, so the connection strings must keep it.
    let custom_endpoint = answer["custom_endpoint"].as_str().map(str::to_owned);
    if custom_endpoint.is_none() {
        client_access.endpoints = at_address(endpoints, address);
        client_access.namespace = with_host(client_access.namespace, address);
    }
    client_access.recording = Some(Recording {
        connection,
        custom_endpoint,
    });
    Ok(client_access)
}

/// The recorder cannot record this namespace.
fn not_recorded(error: impl fmt::Display) -> Error {
    Error::start(format!(
        "cannot record the traffic between clients and the namespace for the comparison: {error}"
    ))
}

impl Recording {
    /// Returns where a client must connect, if the connection strings keep the namespace's name.
    pub(crate) fn custom_endpoint(&self) -> Option<String> {
        self.custom_endpoint.clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // The recorder closes the connection when it has stopped recording, so nothing after this is recorded. If it is
        // gone, there is nothing to wait for.
        if self.connection.shutdown(Shutdown::Write).is_ok() {
            let _ = self.connection.read(&mut [0]);
        }
    }
}

/// Sends the recorder a request; `None` without a recorder.
fn request_recorder(request: &Value) -> io::Result<Option<(TcpStream, Value)>> {
    let Ok(address) = env::var(RECORDER_VARIABLE) else {
        return Ok(None);
    };
    let mut connection = TcpStream::connect(&address)?;
    connection.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
    connection.write_all(format!("{request}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(&connection).read_line(&mut line)?;
    let answer: Value = serde_json::from_str(&line)?;
    match answer["error"].as_str() {
        Some(error) => Err(io::Error::other(error.to_owned())),
        None => Ok(Some((connection, answer))),
    }
}

fn host(namespace: &Namespace) -> String {
    let read = namespace.connection_string.parse::<ConnectionString>();
    read.map(|read| read.host).unwrap_or_default()
}

fn at_address(endpoints: Endpoints, address: IpAddr) -> Endpoints {
    let at = |endpoint: SocketAddr| SocketAddr::new(address, endpoint.port());
    Endpoints {
        amqp: at(endpoints.amqp),
        amqps: at(endpoints.amqps),
        http: at(endpoints.http),
        https: endpoints.https.map(at),
    }
}

fn with_host(namespace: Namespace, address: IpAddr) -> Namespace {
    let at = |text: &str| endpoints::with_change(text, |string| string.host = address.to_string());
    Namespace {
        connection_string: at(&namespace.connection_string),
        admin_connection_string: at(&namespace.admin_connection_string),
        ..namespace
    }
}
