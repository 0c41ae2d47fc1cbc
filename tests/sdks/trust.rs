//! What the TLS of other languages makes of the kept authority's name constraints: Python's, Node's and .NET's is OpenSSL's,
//! and Java's its own; and Java's trust store. The emulator itself issues nothing beyond them; here a thief of the key does.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use rcgen::{CertificateParams, DistinguishedName, DnType, Issuer, KeyPair};
use servicebus_emulator::auth::Key;
use servicebus_emulator::{ClientSettings, Emulator, Options, TlsOptions};
use tokio::process::Command;

use crate::dotnet;
use crate::environment::{self, Language};
use crate::java;

/// What the kept authority is called.
const AUTHORITY: &str = "Service Bus emulator CA, for tests only";

/// What OpenSSL says of a name beyond them.
const VIOLATION: &str = "permitted subtree violation";

#[tokio::test]
async fn python() {
    let Some(environment) = environment::ready(Language::Python).await else {
        return;
    };
    let script = environment::scripts(Language::Python).join("trust.py");
    assert_handshakes("python", Some(VIOLATION), || {
        let mut command = Command::new(environment::python(&environment));
        command.arg(&script);
        command
    })
    .await;
}

#[tokio::test]
async fn javascript() {
    if environment::ready(Language::JavaScript).await.is_none() {
        return;
    }
    let script = environment::scripts(Language::JavaScript).join("trust.js");
    assert_handshakes("javascript", Some(VIOLATION), || {
        let mut command = Command::new("node");
        command.arg(&script);
        command
    })
    .await;
}

#[tokio::test]
async fn dotnet() {
    let Some(environment) = environment::ready(Language::DotNet).await else {
        return;
    };
    const REFUSAL: &str = "The remote certificate is invalid because of errors in the certificate chain: \
                           HasNotPermittedNameConstraint";
    assert_handshakes("dotnet", Some(REFUSAL), || {
        Command::from(dotnet::command(&environment))
    })
    .await;
}

/// Java looks for constraints in the certificates below the one that it is told to trust, and not in that itself: its
/// users are told so. Should that change the README has to.
#[tokio::test]
async fn java_accepts_every_certificate_of_the_ca() {
    let Some(environment) = environment::ready(Language::Java).await else {
        return;
    };
    assert_handshakes("java", None, || {
        let mut command = Command::from(java::program(&environment, "cases.Handshake"));
        command.kill_on_drop(true);
        command
    })
    .await;
}

/// The trust store that the emulator writes has what one has that `keytool` makes of the same authority.
#[tokio::test]
async fn java_reads_the_trust_store() {
    if environment::ready(Language::Java).await.is_none() {
        return;
    }
    let directory = authority("trust-store").await;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 5671));
    let ca_file = Some(directory.join("ca.pem"));
    let settings = ClientSettings::new("shop", &Key::well_known(), at, at, ca_file);
    let made = directory.join("made.p12").display().to_string();
    keytool(&settings.keytool(&made).expect("there is an authority")).await;
    let written = settings.trust_store.expect("it is written");
    let list = async |store: &str| {
        let options = [
            "-list",
            "-rfc",
            "-keystore",
            store,
            "-storepass",
            "changeit",
        ];
        let listed = keytool(&options.map(str::to_owned)).await;
        let entries = listed
            .lines()
            .filter(|line| line.starts_with("Alias name:"));
        let entries: Vec<String> = entries.map(str::to_owned).collect();
        let certificate = listed.find("-----BEGIN").expect("a certificate");
        (entries, listed[certificate..].trim().to_owned())
    };
    let [written, made] = [
        list(&written.display().to_string()).await,
        list(&made).await,
    ];
    assert_eq!(written.0, ["Alias name: servicebus-emulator"]);
    assert_eq!(written, made);
    fs::remove_dir_all(&directory).expect("it can be removed");
}

async fn keytool(arguments: &[String]) -> String {
    let output = Command::new("keytool").args(arguments).output().await;
    let output = output.expect("it is part of the JDK");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Has a language shake hands with a server of each name; those beyond the constraints are refused with these words.
async fn assert_handshakes(language: &str, refusal: Option<&str>, program: impl Fn() -> Command) {
    let directory = authority(language).await;
    for (name, is_believed) in [
        ("localhost", true),
        ("orders.localhost", true),
        ("any.servicebus.windows.net", true),
        ("example.org", false),
        ("notlocalhost", false),
    ] {
        let [certificate, key] = issue_certificate(&directory, name);
        let mut command = program();
        command
            .arg(directory.join("ca.pem"))
            .arg(&certificate)
            .arg(&key);
        let output = command.arg(name).output().await.expect("it runs");
        let stdout = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let expected = match is_believed {
            true => "trusted",
            false => refusal.unwrap_or("trusted"),
        };
        assert_eq!(stdout, expected, "{name}: {output:?}");
    }
    fs::remove_dir_all(&directory).expect("it can be removed");
}

/// A directory in which an emulator keeps an authority.
async fn authority(language: &str) -> PathBuf {
    let name = format!("trust-{language}-{}", std::process::id());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let options = Options {
        tls: TlsOptions {
            directory: Some(directory.clone()),
            ..TlsOptions::default()
        },
        amqp_port: 0,
        amqps_port: Some(0),
        http_port: 0,
        ..Options::default()
    };
    let emulator = Emulator::start(options).await.expect("it starts");
    emulator.ca_certificate_pem().expect("it is made");
    emulator.stop().await;
    directory
}

/// A certificate for a name and its key, issued with the authority's key elsewhere.
fn issue_certificate(directory: &Path, name: &str) -> [PathBuf; 2] {
    let authority = fs::read_to_string(directory.join("ca-key.pem")).expect("it is kept");
    let authority = KeyPair::from_pem(&authority).expect("a key");
    let mut issuer = CertificateParams::default();
    issuer.distinguished_name = DistinguishedName::new();
    issuer
        .distinguished_name
        .push(DnType::CommonName, AUTHORITY);
    let issuer = Issuer::new(issuer, &authority);
    let mut server = CertificateParams::new([name.to_owned()]).expect("a name");
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().expect("a key");
    let certificate = server.signed_by(&key, &issuer).expect("it is signed");
    let files = [
        (name, "pem", certificate.pem()),
        (name, "key", key.serialize_pem()),
    ];
    files.map(|(name, kind, text)| {
        let file = directory.join(format!("{name}.{kind}"));
        fs::write(&file, text).expect("a file can be written");
        file
    })
}
