//! A certificate authority: one key, one certificate, and the certificates it issues.
//!
//! Everything about it but the key is the same everywhere and always, so that key and certificate are all that is
//! kept. It is for test programs: nobody should trust it on a machine that does more.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::Offset;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _, SanType,
    date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};

use super::Chain;

const AUTHORITY: &str = "Service Bus emulator CA, for tests only";
const SERVER: &str = "Service Bus emulator";
const DAY: i64 = 24 * 60 * 60;
/// Clients may have clocks that are slow.
const BEFORE: i64 = DAY;
/// Some systems trust no certificate that holds for longer than 398 days.
const AFTER: i64 = 396 * DAY;

/// An authority that can issue.
pub(super) struct Authority {
    key: KeyPair,
    pem: String,
    /// Where its certificate can be read, unless it is in memory alone.
    file: Option<PathBuf>,
}

impl Authority {
    /// A new one, in memory.
    pub(super) fn make() -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let pem = description().self_signed(&key)?.pem();
        Ok(Self {
            key,
            pem,
            file: None,
        })
    }

    /// The one with this certificate and this key, both in PEM; the error says what is wrong with them.
    pub(super) fn restore(pem: String, key: &str) -> Result<Self, String> {
        let key = KeyPair::from_pem(key).map_err(|error| format!("the key: {error}"))?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| format!("the certificate: {error}"))?;
        let public = key.der_bytes();
        if !certificate.windows(public.len()).any(|part| part == public) {
            return Err("the certificate is that of another key".to_owned());
        }
        Ok(Self {
            key,
            pem,
            file: None,
        })
    }

    /// The same with its certificate in a file.
    pub(super) fn in_file(self, file: PathBuf) -> Self {
        Self {
            file: Some(file),
            ..self
        }
    }

    /// Its certificate in PEM.
    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Its key in PEM.
    pub(super) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    pub(super) fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// A certificate with a key of its own for a server of these names, around `now` in seconds since the Unix epoch.
    /// Names that cannot stand in a certificate are left out: namespaces may be called what hosts may not.
    pub(super) fn issue<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        now: i64,
    ) -> Result<Chain, rcgen::Error> {
        let mut server = CertificateParams::default();
        server.distinguished_name = named(SERVER);
        server.subject_alt_names = names.filter_map(|name| alternative(name)).collect();
        let day = |seconds| {
            let (year, month, day) = date(seconds);
            date_time_ymd(year, month, day)
        };
        server.not_before = day(now - BEFORE);
        server.not_after = day(now + AFTER);
        server.is_ca = IsCa::ExplicitNoCa;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // OpenSSL in its strict mode, which is Python's, wants to be led to the authority.
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(description(), &self.key);
        let certificate: Certificate = server.signed_by(&key, &issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok((vec![certificate.der().clone()], key.into()))
    }
}

/// What every authority of ours says of itself.
fn description() -> CertificateParams {
    let mut authority = CertificateParams::default();
    authority.distinguished_name = named(AUTHORITY);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.not_before = date_time_ymd(2020, 1, 1);
    authority.not_after = date_time_ymd(2049, 12, 31);
    authority
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn alternative(name: &str) -> Option<SanType> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(SanType::IpAddress(address));
    }
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    if name.is_empty() || name.len() > 253 || !name.bytes().all(is_legal) {
        return None;
    }
    name.to_ascii_lowercase()
        .try_into()
        .ok()
        .map(SanType::DnsName)
}

/// The date in UTC, and the first of all where there is none so far away.
fn date(seconds: i64) -> (i32, u8, u8) {
    let instant = Timestamp::from_second(seconds).unwrap_or_default();
    let date = Offset::UTC.to_datetime(instant).date();
    (date.year().into(), date.month() as u8, date.day() as u8)
}

#[cfg(test)]
mod tests;
