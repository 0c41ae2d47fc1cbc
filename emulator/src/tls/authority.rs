//! A certificate authority: one key, one certificate, and the certificates it issues.
//!
//! Everything but the key is the same everywhere, so that only key and certificate are kept. The authority that is kept for
//! a user is constrained to names that mean this machine, and to those of the service (RFC 5280 §4.2.1.10): a stolen key
//! cannot impersonate any other server.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::tz::Offset;
use rcgen::{
    BasicConstraints, Certificate, CertificateParams, CidrSubnet, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    NameConstraints, PublicKeyData as _, SanType, date_time_ymd,
};
use ring::signature::{ECDSA_P256_SHA256_ASN1, UnparsedPublicKey};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use yasna::{ASN1Error, ASN1ErrorKind};

use super::Chain;

/// The domains for which a constrained authority may issue certificates, with all their subdomains.
const PERMITTED: [&str; 2] = ["localhost", "servicebus.windows.net"];
/// The extension that constrains an authority, id-ce 30, in DER.
const NAME_CONSTRAINTS: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x1e];
const SERVER: &str = "Service Bus emulator";
const DAY: i64 = 24 * 60 * 60;
/// Clients' clocks may be slow.
const BEFORE: i64 = DAY;
/// Some systems trust no certificate that is valid for longer than 398 days.
const AFTER: i64 = 396 * DAY;

/// The names for which an authority may issue certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Loopback addresses, `localhost`, `servicebus.windows.net` and their subdomains.
    Local,
    /// Any name.
    Any,
}

/// An authority with its key.
pub(crate) struct Authority {
    key: KeyPair,
    pem: String,
    scope: Scope,
}

impl Authority {
    /// Creates an authority in memory.
    pub(crate) fn make(scope: Scope) -> Result<Self, rcgen::Error> {
        let key = KeyPair::generate()?;
        let pem = description(scope).self_signed(&key)?.pem();
        Ok(Self { key, pem, scope })
    }

    /// Restores the authority with this certificate and this key, both in PEM; the error describes what is wrong with them.
    pub(crate) fn restore(pem: String, key: &str) -> Result<Self, String> {
        let key = KeyPair::from_pem(key).map_err(|error| format!("the key: {error}"))?;
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes())
            .map_err(|error| format!("the certificate: {error}"))?;
        if !has(&certificate, key.der_bytes()) {
            return Err("the certificate is that of another key".to_owned());
        }
        if !is_intact(&pem, &certificate, &key) {
            return Err("the certificate is damaged".to_owned());
        }
        let scope = match has(&certificate, &NAME_CONSTRAINTS) {
            true => Scope::Local,
            false => Scope::Any,
        };
        Ok(Self { key, pem, scope })
    }

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn key_pem(&self) -> String {
        self.key.serialize_pem()
    }

    /// Issues a certificate with a key of its own for a server with these names, valid around `now` in seconds since the
    /// Unix epoch. Leaves out names that a certificate cannot have, because namespaces may have names that hosts may not;
    /// and names beyond its scope, because clients refuse a certificate for a single one of them.
    pub(crate) fn issue<'a>(
        &self,
        names: impl Iterator<Item = &'a String>,
        now: i64,
    ) -> Result<Chain, rcgen::Error> {
        let mut server = CertificateParams::default();
        server.distinguished_name = named(SERVER);
        let may = |name: &&String| self.scope == Scope::Any || is_local(name);
        let names: BTreeSet<_> = names
            .filter(may)
            .map(|name| name.to_ascii_lowercase())
            .collect();
        server.subject_alt_names = names.iter().filter_map(|name| alternative(name)).collect();
        let day = |seconds| {
            let (year, month, day) = date(seconds);
            date_time_ymd(year, month, day)
        };
        server.not_before = day(now - BEFORE);
        server.not_after = day(now + AFTER);
        server.is_ca = IsCa::ExplicitNoCa;
        server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // OpenSSL in strict mode, as in Python, requires the identifier of the authority.
        server.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let issuer = Issuer::new(description(self.scope), &self.key);
        let certificate: Certificate = server.signed_by(&key, &issuer)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok((vec![certificate.der().clone()], key.into()))
    }
}

fn has(der: &[u8], bytes: &[u8]) -> bool {
    der.windows(bytes.len()).any(|part| part == bytes)
}

/// Returns whether the text contains the certificate and nothing else, and the key has signed it.
fn is_intact(pem: &str, certificate: &CertificateDer<'_>, key: &KeyPair) -> bool {
    let text = String::from_iter(pem.lines());
    let base64 = STANDARD.encode(certificate);
    if text != format!("-----BEGIN CERTIFICATE-----{base64}-----END CERTIFICATE-----") {
        return false;
    }
    let parts = yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|reader| {
            let signed = reader.next().read_der()?;
            let algorithm = reader.next().read_der()?;
            let (signature, bits) = reader.next().read_bitvec_bytes()?;
            // The signed part names the algorithm too.
            match has(&signed, &algorithm) && bits == 8 * signature.len() {
                true => Ok((signed, signature)),
                false => Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
            }
        })
    });
    let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key.der_bytes());
    parts.is_ok_and(|(signed, signature)| key.verify(&signed, &signature).is_ok())
}

/// Returns the certificate parameters of every authority with this scope.
fn description(scope: Scope) -> CertificateParams {
    let mut authority = CertificateParams::default();
    let name = match scope {
        Scope::Local => "Service Bus emulator CA, for tests only",
        Scope::Any => "Service Bus emulator CA of one run, for tests only",
    };
    authority.distinguished_name = named(name);
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority.not_before = date_time_ymd(2020, 1, 1);
    authority.not_after = date_time_ymd(2049, 12, 31);
    authority.name_constraints = (scope == Scope::Local).then(|| NameConstraints {
        permitted_subtrees: permitted(),
        excluded_subtrees: Vec::new(),
    });
    authority
}

fn permitted() -> Vec<GeneralSubtree> {
    let addresses = [
        CidrSubnet::V4([127, 0, 0, 0], [255, 0, 0, 0]),
        CidrSubnet::V6(Ipv6Addr::LOCALHOST.octets(), [255; 16]),
    ];
    let domains = PERMITTED.map(|domain| GeneralSubtree::DnsName(domain.to_owned()));
    let addresses = addresses.map(GeneralSubtree::IpAddress);
    addresses.into_iter().chain(domains).collect()
}

/// Returns whether a name or address is within [`Scope::Local`].
pub(crate) fn is_local(name: &str) -> bool {
    if let Ok(address) = name.parse::<IpAddr>() {
        return address.is_loopback();
    }
    let name = name.to_ascii_lowercase();
    PERMITTED.iter().any(|domain| {
        let below = name.strip_suffix(domain);
        below.is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
    })
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

/// Returns whether a certificate can have this name or address.
pub(crate) fn is_certifiable(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
    let is_name = !name.is_empty() && name.len() <= 253 && name.bytes().all(is_legal);
    is_name || name.parse::<IpAddr>().is_ok()
}

fn alternative(name: &str) -> Option<SanType> {
    if let Ok(address) = name.parse::<IpAddr>() {
        return Some(SanType::IpAddress(address));
    }
    let name = Some(name).filter(|name| is_certifiable(name))?;
    name.try_into().ok().map(SanType::DnsName)
}

/// Returns the date in UTC, or the first date if it is out of range.
fn date(seconds: i64) -> (i32, u8, u8) {
    let instant = Timestamp::from_second(seconds).unwrap_or_default();
    let date = Offset::UTC.to_datetime(instant).date();
    (date.year().into(), date.month() as u8, date.day() as u8)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::{ServerName, UnixTime};
    use rustls::{CertificateError, RootCertStore};

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn made(scope: Scope) -> Authority {
        Authority::make(scope).unwrap()
    }

    #[test]
    fn a_ca_is_restored_from_its_key_and_certificate() {
        for scope in [Scope::Local, Scope::Any] {
            let made = Authority::make(scope).unwrap();
            let restored = Authority::restore(made.pem().to_owned(), &made.key_pem()).unwrap();
            assert_eq!(restored.pem(), made.pem());
            assert_eq!(restored.key_pem(), made.key_pem());
            assert_eq!(restored.scope(), scope);
        }
    }

    #[test]
    fn an_invalid_ca_certificate_or_key_is_refused_with_the_reason() {
        let [one, other] = [Scope::Local, Scope::Any].map(made);
        for (certificate, key, reason) in [
            (
                one.pem(),
                other.key_pem(),
                "the certificate is that of another key",
            ),
            ("nothing", one.key_pem(), "the certificate: "),
            (one.pem(), "nothing".to_owned(), "the key: "),
        ] {
            let restored = Authority::restore(certificate.to_owned(), &key);
            let error = restored.map(|_| ()).unwrap_err();
            assert!(error.starts_with(reason), "{error}");
        }
    }

    #[test]
    fn names_invalid_in_a_certificate_are_omitted() {
        let names = ["localhost", "::1", "two words", "ä", "", "*.example.org"].map(str::to_owned);
        let kept: Vec<_> = names.iter().filter_map(|name| alternative(name)).collect();
        assert_eq!(kept.len(), 3, "{kept:?}");
        let (chain, _) = made(Scope::Any).issue(names.iter(), NOW).unwrap();
        assert_eq!(chain.len(), 1);
    }

    #[test]
    fn certificate_dates_are_in_utc() {
        assert_eq!(date(NOW), (2027, 1, 15));
        assert_eq!(date(i64::MAX), (1970, 1, 1));
    }

    /// Returns why a client that trusts an authority refuses the certificate of a server with this name; `None` if it
    /// accepts it.
    fn refusal(
        authority: &Authority,
        certificate: &CertificateDer<'_>,
        name: &str,
    ) -> Option<String> {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(default_provider());
        let client = WebPkiServerVerifier::builder_with_provider(roots.into(), provider);
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(NOW as u64));
        let client = client.build().unwrap();
        let error = client
            .verify_server_cert(certificate, &[], &name, &[], now)
            .err()?;
        if let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = &error {
            return Some(other.to_string());
        }
        Some(error.to_string())
    }

    const LOCAL: [&str; 6] = [
        "127.0.0.1",
        "127.255.3.4",
        "::1",
        "localhost",
        "orders.localhost",
        "orders.servicebus.windows.net",
    ];
    const FOREIGN: [&str; 7] = [
        "128.0.0.1",
        "10.0.0.1",
        "::2",
        "orders",
        "example.com",
        "notlocalhost",
        "servicebus.windows.net.example.com",
    ];

    #[test]
    fn a_constrained_ca_is_trusted_for_local_names_only() {
        let authority = made(Scope::Local);
        for name in LOCAL {
            assert!(is_local(name), "{name}");
            let names = [name.to_owned(), "*.servicebus.windows.net".to_owned()];
            let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
            assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
        }
        for name in FOREIGN {
            assert!(!is_local(name), "{name}");
            let names = [name.to_owned(), "localhost".to_owned()];
            let (chain, _) = forged(&authority, &names);
            for judge in [name, "localhost"] {
                let refusal = refusal(&authority, &chain[0], judge);
                assert!(
                    refusal.is_some_and(|why| why.contains("NameConstraint")),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_damaged_certificate_is_refused() {
        let made = made(Scope::Local);
        let (pem, key) = (made.pem().as_bytes(), made.key_pem());
        for at in 0..pem.len() {
            let mut damaged = pem.to_vec();
            damaged[at] ^= 1;
            let damaged = String::from_utf8(damaged).unwrap();
            let kept = Authority::restore(damaged, &key).is_ok();
            assert!(!kept, "{at}");
        }
    }

    /// Issues what the owner of a constrained authority's stolen key can sign.
    fn forged(stolen: &Authority, names: &[String]) -> Chain {
        let mut server = CertificateParams::new(names).unwrap();
        server.not_before = date_time_ymd(2026, 1, 1);
        server.not_after = date_time_ymd(2028, 1, 1);
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(description(Scope::Local), &stolen.key);
        let certificate = server.signed_by(&key, &issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        (vec![certificate.der().clone()], key.into())
    }

    #[test]
    fn a_certificate_omits_names_outside_the_scope_of_its_ca() {
        let names = LOCAL.iter().chain(&FOREIGN).map(|name| (*name).to_owned());
        let names: Vec<_> = names.collect();
        let authority = made(Scope::Local);
        let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
        for name in LOCAL {
            assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
        }
        let authority = made(Scope::Any);
        let (chain, _) = authority.issue(names.iter(), NOW).unwrap();
        for name in LOCAL.iter().chain(&FOREIGN) {
            assert_eq!(refusal(&authority, &chain[0], name), None, "{name}");
        }
    }
}
