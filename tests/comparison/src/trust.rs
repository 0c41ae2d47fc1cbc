//! The authorities that the clients of a case trust: those of the system, and that of the recorder.

use std::{ffi::OsStr, fs, io, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The environment variable by which SDKs and the harness find the authorities to trust.
pub(super) const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// Characters in a line of PEM (RFC 7468 §2).
const LINE: usize = 64;

/// Writes a file with those of a file, else those that the environment or the system names, and with the recorder's own.
pub(super) fn write(to: &Path, said: Option<&OsStr>) -> io::Result<()> {
    let mut authorities = match said {
        Some(file) => fs::read_to_string(file)?,
        None => of_system(),
    };
    // What it is for does not count, only its authority.
    let recorder =
        servicebus_emulator::vouched("localhost".to_owned()).map_err(io::Error::other)?;
    authorities += "\n";
    authorities += &recorder.authority;
    fs::write(to, authorities)
}

/// Those that the environment names, else those of the system.
fn of_system() -> String {
    let found = rustls_native_certs::load_native_certs();
    found.certs.iter().map(|found| pem(found)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines = Vec::from_iter(lines).join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_in_lines() {
        let text = pem(&[0; 60]);
        let lengths = text.lines().map(str::len);
        assert_eq!(Vec::from_iter(lengths), [27, 64, 16, 25]);
    }
}
