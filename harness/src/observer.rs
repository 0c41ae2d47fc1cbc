//! What the comparison of two targets (`servicebus-comparison`) sees of a test: what it observes, and what its clients and
//! the namespace say to each other.
//!
//! The environment says whether there is a comparison: it names a file for what is observed, and the address of a
//! recorder, which stands between clients and namespace. One line of JSON is asked there, and one answered; a recording
//! lasts as long as its connection. Where the environment names neither nothing of this happens.

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

/// The environment variable that names the file in which a test writes down what it observes.
pub const OBSERVATIONS_VARIABLE: &str = "SERVICEBUS_HARNESS_OBSERVATIONS";
/// The environment variable with the address of the recorder.
pub const RECORDER_VARIABLE: &str = "SERVICEBUS_HARNESS_RECORDER";

/// Longest value that is written down, in characters: bodies may have megabytes.
const LONGEST: usize = 4_000;
/// How long the recorder may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// Writes down what a test observes, for the comparison of two targets; does nothing where none is made. Ids, times and
/// hosts may be in it, they are normalised. What a test's spawned tasks observe is compared without its order.
///
/// # Panics
///
/// When the file that the environment names cannot be written: a comparison without what was seen would be none.
pub fn observe(what: impl Into<String>, value: impl Into<String>) {
    let Some(file) = env::var_os(OBSERVATIONS_VARIABLE) else {
        return;
    };
    let (what, value): (String, String) = (what.into(), value.into());
    let value: String = value.chars().take(LONGEST).collect();
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
    // In one piece, so that lines of several threads stay whole.
    file.write_all(line.as_bytes())
}

/// Returns the topology that a namespace is to have in place of this one, where a comparison changes it.
pub(crate) fn changed(topology: &str) -> io::Result<Option<String>> {
    let Some((_, answer)) = ask(&json!({ "topology": topology }))? else {
        return Ok(None);
    };
    Ok(answer["topology"].as_str().map(str::to_owned))
}

/// How clients come to a namespace.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) endpoints: Endpoints,
    pub(crate) namespace: Namespace,
    /// The recorder in between; it must stay as long as clients connect.
    pub(crate) recording: Option<Recording>,
}

/// A recording of what is said; dropping it cuts the connections that came by the recorder.
#[derive(Debug)]
pub(crate) struct Recording {
    connection: TcpStream,
    custom_endpoint: Option<String>,
}

/// Returns how clients come to a namespace: by the recorder if there is one, else directly.
pub(crate) fn entrance(started: &Started) -> Result<Entrance, Error> {
    let mut entrance = Entrance {
        endpoints: started.endpoints,
        namespace: started.first_namespace()?.clone(),
        recording: None,
    };
    let endpoints = started.endpoints;
    let question = json!({
        "host": host(&entrance.namespace),
        "amqp": endpoints.amqp,
        "amqps": endpoints.amqps,
        "http": endpoints.http,
        "https": endpoints.https,
        "secure": started.running.remote().is_some(),
    });
    let Some((connection, answer)) = ask(&question).map_err(not_recorded)? else {
        return Ok(entrance);
    };
    let address = answer["address"].as_str().unwrap_or_default().parse();
    let address: IpAddr = address.map_err(not_recorded)?;
    // Tokens are signed for the name of a host, so that connection strings cannot have another.
    let custom_endpoint = answer["custom_endpoint"].as_str().map(str::to_owned);
    if custom_endpoint.is_none() {
        entrance.endpoints = moved(endpoints, address);
        entrance.namespace = renamed(entrance.namespace, address);
    }
    entrance.recording = Some(Recording {
        connection,
        custom_endpoint,
    });
    Ok(entrance)
}

/// Nothing can be put between the namespace that a comparison observes and its clients.
fn not_recorded(error: impl fmt::Display) -> Error {
    Error::start(format!(
        "cannot record for the comparison what clients and the namespace say to each other: {error}"
    ))
}

impl Recording {
    /// Returns where a client must connect that keeps the namespace's name.
    pub(crate) fn custom_endpoint(&self) -> Option<String> {
        self.custom_endpoint.clone()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // What ends afterwards is not recorded any more: the recorder says that it has stopped by closing. Where it is
        // gone there is nothing to wait for.
        if self.connection.shutdown(Shutdown::Write).is_ok() {
            let _ = self.connection.read(&mut [0]);
        }
    }
}

/// Asks the recorder; nothing where there is none.
fn ask(question: &Value) -> io::Result<Option<(TcpStream, Value)>> {
    let Ok(address) = env::var(RECORDER_VARIABLE) else {
        return Ok(None);
    };
    let mut connection = TcpStream::connect(&address)?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    connection.write_all(format!("{question}\n").as_bytes())?;
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

fn moved(endpoints: Endpoints, address: IpAddr) -> Endpoints {
    let at = |endpoint: SocketAddr| SocketAddr::new(address, endpoint.port());
    Endpoints {
        amqp: at(endpoints.amqp),
        amqps: at(endpoints.amqps),
        http: at(endpoints.http),
        https: endpoints.https.map(at),
    }
}

fn renamed(namespace: Namespace, address: IpAddr) -> Namespace {
    let at = |text: &str| endpoints::changed(text, |string| string.host = address.to_string());
    Namespace {
        connection_string: at(&namespace.connection_string),
        admin_connection_string: at(&namespace.admin_connection_string),
        ..namespace
    }
}
