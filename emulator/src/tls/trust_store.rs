//! A trust store for Java: a PKCS#12 file (RFC 7292) with certificates to trust and no key.
//!
//! It is neither encrypted nor authenticated, because certificates are public and the directory is its owner's. Every JDK
//! reads it, with any password or with none.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq, Tag, construct_der};

/// PKCS#7 data.
const DATA: &[u64] = &[1, 2, 840, 113_549, 1, 7, 1];
const CERTIFICATE_BAG: &[u64] = &[1, 2, 840, 113_549, 1, 12, 10, 1, 3];
const X509_CERTIFICATE: &[u64] = &[1, 2, 840, 113_549, 1, 9, 22, 1];
/// The alias of an entry.
const FRIENDLY_NAME: &[u64] = &[1, 2, 840, 113_549, 1, 9, 20];
/// Java's own attribute: the JDK trusts no certificate of such a file without it.
const TRUSTED_KEY_USAGE: &[u64] = &[2, 16, 840, 1, 113_894, 746_875, 1, 1];
const ANY_EXTENDED_KEY_USAGE: &[u64] = &[2, 5, 29, 37, 0];
const VERSION: u8 = 3;
const ALIAS: &str = "servicebus-emulator";

/// The trust store of certificates in PEM: the same bytes for the same certificates.
pub(super) fn encode(pem: &str) -> Vec<u8> {
    let certificates: Vec<CertificateDer<'_>> = CertificateDer::pem_slice_iter(pem.as_bytes())
        .filter_map(Result::ok)
        .collect();
    let entries = construct_der(|writer| {
        writer.write_sequence(|entries| {
            for (number, certificate) in (1..).zip(&certificates) {
                entry(entries.next(), number, certificate);
            }
        });
    });
    let safe = construct_der(|writer| writer.write_sequence(|parts| data(parts.next(), &entries)));
    construct_der(|writer| {
        writer.write_sequence(|file| {
            file.next().write_u8(VERSION);
            data(file.next(), &safe);
        });
    })
}

/// Bytes as the content of PKCS#7.
fn data(writer: DERWriter<'_>, content: &[u8]) {
    writer.write_sequence(|parts| typed(parts, DATA, |value| value.write_bytes(content)));
}

/// A certificate under an alias of its own: `servicebus-emulator`, `servicebus-emulator-2`.
fn entry(writer: DERWriter<'_>, number: u32, certificate: &[u8]) {
    let alias = match number {
        1 => ALIAS.to_owned(),
        _ => format!("{ALIAS}-{number}"),
    };
    writer.write_sequence(|bag| {
        typed(bag, CERTIFICATE_BAG, |value| {
            value.write_sequence(|parts| {
                typed(parts, X509_CERTIFICATE, |value| {
                    value.write_bytes(certificate)
                });
            });
        });
        bag.next().write_set_of(|attributes| {
            attribute(attributes.next(), FRIENDLY_NAME, |value| {
                value.write_bmp_string(&alias)
            });
            attribute(attributes.next(), TRUSTED_KEY_USAGE, |value| {
                value.write_oid(&identifier(ANY_EXTENDED_KEY_USAGE));
            });
        });
    });
}

/// An identifier of a type, and a value of it under the explicit tag 0.
fn typed(parts: &mut DERWriterSeq<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    parts.next().write_oid(&identifier(kind));
    parts.next().write_tagged(Tag::context(0), value);
}

fn attribute(writer: DERWriter<'_>, kind: &[u64], value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|parts| {
        parts.next().write_oid(&identifier(kind));
        parts.next().write_set_of(|values| value(values.next()));
    });
}

fn identifier(components: &[u64]) -> ObjectIdentifier {
    ObjectIdentifier::from_slice(components)
}
