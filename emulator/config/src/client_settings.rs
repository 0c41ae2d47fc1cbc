//! Settings for clients that require a host of `*.servicebus.windows.net`. They take only the name of a namespace, no port
//! and no CA certificate, so all of these must be set around them.
//!
//! The binary prints these settings, and the harness has them for each of its namespaces.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use crate::auth::{ConnectionString, Key};
use crate::{AMQPS_PORT, HTTPS_PORT};

/// The domain of the service's namespaces.
const DOMAIN: &str = "servicebus.windows.net";
/// The trust store that the printed `keytool` command creates if the emulator has written none.
const TRUST_STORE: &str = "servicebus-emulator.p12";
/// The default password of Java's trust stores. The one that the emulator writes accepts any.
const TRUST_STORE_PASSWORD: &str = "changeit";

/// The settings of clients that use the service's name and ports of a namespace.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSettings {
    /// The service's name of the namespace: `sbemulatorns.servicebus.windows.net`. It must resolve to the address of
    /// [`Self::amqps`].
    pub host: String,
    /// The emulator's listener for port 5671 of the host.
    pub amqps: SocketAddr,
    /// The listener for port 443: administration and WebSockets.
    pub https: SocketAddr,
    /// The connection string with that host and without a port.
    pub connection_string: String,
    /// The file with the CA certificate to trust, in PEM; `None` if the emulator was given a certificate, whose CA is
    /// trusted already, or stores no file on this machine.
    pub ca_file: Option<PathBuf>,
    /// The Java trust store with the same certificate, beside that file; `None` without that file, or if it could not be
    /// written.
    pub trust_store: Option<PathBuf>,
}

impl ClientSettings {
    /// Creates the settings for a key of a namespace.
    pub fn new(
        namespace: &str,
        key: &Key,
        amqps: SocketAddr,
        https: SocketAddr,
        ca_file: Option<PathBuf>,
    ) -> Self {
        let host = format!("{}.{DOMAIN}", namespace.to_ascii_lowercase());
        let connection_string = ConnectionString {
            development_emulator: false,
            ..ConnectionString::for_emulator(&host, None, key)
        };
        Self {
            connection_string: connection_string.to_string(),
            host,
            amqps,
            https,
            trust_store: ca_file.as_deref().and_then(trust_store),
            ca_file,
        }
    }

    /// Returns the line of the hosts file that maps the host to the address.
    pub fn hosts_line(&self) -> String {
        format!("{} {}", self.amqps.ip(), self.host)
    }

    /// Returns the environment variables of a client process: the connection string, and the CA certificate for OpenSSL, Go,
    /// Node.js and Python's `requests`. Java reads no such variable, see [`Self::trust_store`]; nor does the Python SDK's
    /// AMQP, which trusts the bundle that `python3 -m certifi` prints.
    pub fn env(&self) -> Vec<(&'static str, String)> {
        let mut env = vec![(
            "SERVICEBUS_CONNECTION_STRING",
            self.connection_string.clone(),
        )];
        if let Some(file) = &self.ca_file {
            let names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"];
            env.extend(names.map(|name| (name, file.display().to_string())));
        }
        env
    }

    /// Returns the arguments with which `keytool` adds the CA certificate to a trust store at this path, which it creates if
    /// necessary with the password `changeit`; `None` without a [`Self::ca_file`].
    pub fn keytool(&self, trust_store: &str) -> Option<Vec<String>> {
        let file = self.ca_file.as_ref()?.display().to_string();
        let arguments = [
            "-importcert",
            "-noprompt",
            "-alias",
            "servicebus-emulator",
            "-file",
            &file,
            "-storetype",
            "PKCS12",
            "-storepass",
            TRUST_STORE_PASSWORD,
            "-keystore",
            trust_store,
        ];
        Some(arguments.map(str::to_owned).to_vec())
    }

    /// Returns the options with which `java` trusts only the certificates in a store.
    pub fn java_options(trust_store: &str) -> [String; 2] {
        [
            format!("-Djavax.net.ssl.trustStore={trust_store}"),
            format!("-Djavax.net.ssl.trustStorePassword={TRUST_STORE_PASSWORD}"),
        ]
    }

    fn write_authority(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(file) = &self.ca_file else {
            return writeln!(
                formatter,
                "Authority, no file here: that of the certificate that the emulator was given, else what it answers at /$emulator/v1/ca.pem"
            );
        };
        let file = quoted(&file.display().to_string());
        writeln!(formatter, "Authority, by a variable")?;
        for (name, value) in self.env().iter().skip(1) {
            let reader = match *name {
                "SSL_CERT_FILE" => "OpenSSL; Go, except on macOS and Windows",
                "REQUESTS_CA_BUNDLE" => "Python: requests, and with it the SDK's administration",
                _ => "Node.js",
            };
            writeln!(formatter, "  export {name}={}    # {reader}", quoted(value))?;
        }
        writeln!(
            formatter,
            "  with either of the first two, a program trusts no other authority"
        )?;
        writeln!(
            formatter,
            "Authority, for AMQP of the Python SDK\n  cat {file} >> \"$(python3 -m certifi)\""
        )?;
        self.write_trust_store(formatter)
    }

    fn write_trust_store(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "Authority, for Java")?;
        let store = match (&self.trust_store, self.keytool(TRUST_STORE)) {
            (Some(store), _) => quoted(&store.display().to_string()),
            (None, keytool) => {
                let words = keytool.unwrap_or_default();
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                writeln!(formatter, "  keytool {}", words.join(" "))?;
                TRUST_STORE.to_owned()
            }
        };
        let options = Self::java_options(&store).join(" ");
        writeln!(formatter, "  export JAVA_TOOL_OPTIONS=\"{options}\"")
    }
}

/// Returns the trust store that the emulator has written beside a certificate file.
fn trust_store(ca_file: &Path) -> Option<PathBuf> {
    let store = ca_file.with_extension("p12");
    store.is_file().then_some(store)
}

/// Quotes a word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-:\\".contains(c);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

impl fmt::Display for ClientSettings {
    /// Writes the text for people, with shell commands.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            formatter,
            "Name, a line of /etc/hosts (on Windows of %SystemRoot%\\System32\\drivers\\etc\\hosts)\n  {}",
            self.hosts_line()
        )?;
        writeln!(formatter, "Ports")?;
        for (port, address, purpose) in [
            (AMQPS_PORT, self.amqps, "AMQP"),
            (HTTPS_PORT, self.https, "administration and WebSockets"),
        ] {
            let elsewhere = match address.port() == port {
                true => "",
                false => "; connections must be redirected there",
            };
            writeln!(formatter, "  {port} for {purpose}: {address}{elsewhere}")?;
        }
        writeln!(formatter, "Connection string\n  {}", self.connection_string)?;
        self.write_authority(formatter)
    }
}

impl fmt::Debug for ClientSettings {
    /// Omits the key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ClientSettings")
            .field("host", &self.host)
            .field("amqps", &self.amqps)
            .field("https", &self.https)
            .field("ca_file", &self.ca_file)
            .field("trust_store", &self.trust_store)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(https: u16, ca_file: Option<&str>) -> ClientSettings {
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let key = Key::well_known();
        ClientSettings::new("Shop", &key, at(5671), at(https), ca_file.map(Into::into))
    }

    #[test]
    fn client_settings_are_the_service_name_ports_and_ca() {
        let settings = settings(443, Some("/home/me/a cache/ca.pem"));
        assert_eq!(
            settings.hosts_line(),
            "127.0.0.1 shop.servicebus.windows.net"
        );
        let text = settings.to_string();
        for line in [
            "  127.0.0.1 shop.servicebus.windows.net",
            "  5671 for AMQP: 127.0.0.1:5671",
            "  443 for administration and WebSockets: 127.0.0.1:443",
            "  Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE",
            "  export SSL_CERT_FILE='/home/me/a cache/ca.pem'    # OpenSSL; Go, except on macOS and Windows",
            "  export NODE_EXTRA_CA_CERTS='/home/me/a cache/ca.pem'    # Node.js",
            "  cat '/home/me/a cache/ca.pem' >> \"$(python3 -m certifi)\"",
            "  keytool -importcert -noprompt -alias servicebus-emulator -file '/home/me/a cache/ca.pem' -storetype PKCS12 -storepass changeit -keystore servicebus-emulator.p12",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nis not in\n{text}"
            );
        }
        assert!(!format!("{settings:?}").contains("SAS_KEY_VALUE"));
    }

    #[test]
    fn client_settings_show_other_ports_and_a_given_certificate() {
        let settings = settings(5300, None);
        let text = settings.to_string();
        assert!(
            text.contains("127.0.0.1:5300; connections must be redirected there"),
            "{text}"
        );
        assert!(
            text.contains("no file here: that of the certificate"),
            "{text}"
        );
        assert_eq!(settings.keytool("store"), None);
        assert_eq!(settings.env().len(), 1);
    }
}
