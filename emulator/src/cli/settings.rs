//! What `client-settings` prints: for each namespace what clients are set to that insist on the service's names.

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};

use super::RunOptions;
use crate::client_settings::{self, ClientSettings};
use crate::config::Config;
use crate::options::{AMQPS_PORT, StartError};
use crate::tls::authority_file;

/// What clients are set to of an emulator that is run with these options and this configuration. Where they leave a port
/// to chance, or out, it is the one that such clients know.
pub fn run_client_settings(options: RunOptions, config: &Config) -> Result<String, StartError> {
    let common = address(&options.host)?;
    let chosen = |port: Option<u16>| port.filter(|&port| port != 0);
    let amqps = chosen(options.amqps_port).unwrap_or(AMQPS_PORT);
    // Every port takes TLS.
    let http = chosen(Some(options.http_port)).filter(|&port| port == client_settings::HTTPS_PORT);
    let https = chosen(options.https_port).or(http);
    let ca_file = authority_file(options.tls).map_err(StartError::Tls)?;
    let mut text = String::new();
    if https.is_none() {
        text.push_str("The emulator must be run with --https-port 443.\n\n");
    }
    for namespace in &config.namespaces {
        let Some(key) = namespace.keys.first() else {
            continue;
        };
        let own = namespace.address.as_ref();
        let own = own.and_then(|own| own.to_string().parse().ok());
        let at = |port| SocketAddr::new(own.unwrap_or(common), port);
        let https = https.unwrap_or(client_settings::HTTPS_PORT);
        let (amqps, https) = (at(amqps), at(https));
        let settings = ClientSettings::new(&namespace.name, key, amqps, https, ca_file.clone());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{settings}");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

/// The address by which a client of this machine reaches an emulator that listens there.
fn address(host: &str) -> Result<IpAddr, StartError> {
    let unknown = |source| StartError::Host {
        host: host.to_owned(),
        source,
    };
    // Of the two that it stands for, the one that every client tries.
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let mut addresses = (host, 0).to_socket_addrs().map_err(unknown)?;
    let first = addresses.next();
    let address = first.ok_or_else(|| unknown(io::Error::other("it has no address")))?;
    Ok(match address.ip().is_unspecified() {
        true => Ipv4Addr::LOCALHOST.into(),
        false => address.ip(),
    })
}
