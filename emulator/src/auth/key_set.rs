//! A key set against which the signatures of JSON web tokens are checked (RFC 7517).
//!
//! What a key is decides which algorithms it may check, never what a token says of itself: a token that names another
//! algorithm than its key has, or none, is refused.

use std::path::PathBuf;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;

/// Largest key set that is read, in bytes.
pub(crate) const MAX_KEY_SET_SIZE: u64 = 1024 * 1024;

/// The keys that may sign JSON web tokens, and for whom tokens must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeySet {
    /// Where it was read from.
    pub file: PathBuf,
    /// Who must be meant; anybody unless set.
    pub audience: Option<String>,
    keys: Vec<PublicKey>,
}

/// One key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PublicKey {
    id: Option<String>,
    /// The only algorithm that it is for, where it says so.
    algorithm: Option<String>,
    material: Material,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Material {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// Points uncompressed.
    P256(Vec<u8>),
    P384(Vec<u8>),
}

/// How it stands in the file; what we do not need is not read.
#[derive(Deserialize)]
struct Written {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    n: Option<String>,
    e: Option<String>,
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct WrittenSet {
    keys: Vec<Written>,
}

impl KeySet {
    /// Reads the text of a file; the error says what is wrong with it. Keys of other kinds are left out, as RFC 7517
    /// has it, but one must be left.
    pub fn parse(text: &str, file: PathBuf, audience: Option<String>) -> Result<Self, String> {
        let set: WrittenSet = serde_json::from_str(text)
            .map_err(|error| format!("it is no JSON web key set: {error}"))?;
        let keys: Vec<PublicKey> = set.keys.into_iter().filter_map(PublicKey::read).collect();
        if keys.is_empty() {
            return Err("it has no key of type RSA, or EC on P-256 or P-384, to check with".into());
        }
        Ok(Self {
            file,
            audience,
            keys,
        })
    }

    /// Whether one of the keys has signed `signed` with the algorithm that the token names. A token that names a key
    /// means that one.
    pub(super) fn verifies(
        &self,
        algorithm: &str,
        id: Option<&str>,
        signed: &str,
        signature: &[u8],
    ) -> bool {
        let named = |key: &&PublicKey| match (&key.id, id) {
            (Some(own), Some(meant)) => own == meant,
            (None, _) | (_, None) => true,
        };
        let mut keys = self.keys.iter().filter(named);
        keys.any(|key| key.verifies(algorithm, signed.as_bytes(), signature))
    }
}

impl PublicKey {
    fn read(written: Written) -> Option<Self> {
        if written.usage.as_deref().is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decode = |text: Option<String>| {
            BASE64_URL_SAFE_NO_PAD
                .decode(text?.trim_end_matches('='))
                .ok()
        };
        let material = match (written.kty.as_str(), written.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                modulus: decode(written.n)?,
                exponent: decode(written.e)?,
            },
            ("EC", Some("P-256")) => {
                Material::P256(point(&decode(written.x)?, &decode(written.y)?))
            }
            ("EC", Some("P-384")) => {
                Material::P384(point(&decode(written.x)?, &decode(written.y)?))
            }
            _ => return None,
        };
        Some(Self {
            id: written.kid,
            algorithm: written.alg,
            material,
        })
    }

    fn verifies(&self, algorithm: &str, signed: &[u8], signature: &[u8]) -> bool {
        if self
            .algorithm
            .as_deref()
            .is_some_and(|own| own != algorithm)
        {
            return false;
        }
        let checked = match (&self.material, algorithm) {
            (Material::Rsa { modulus, exponent }, _) => {
                let Some(parameters) = rsa(algorithm) else {
                    return false;
                };
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(parameters, signed, signature)
            }
            (Material::P256(point), "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(signed, signature)
            }
            (Material::P384(point), "ES384") => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(signed, signature)
            }
            (Material::P256(_) | Material::P384(_), _) => return false,
        };
        checked.is_ok()
    }
}

fn rsa(algorithm: &str) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_2048_8192_SHA256,
        "RS384" => &RSA_PKCS1_2048_8192_SHA384,
        "RS512" => &RSA_PKCS1_2048_8192_SHA512,
        "PS256" => &RSA_PSS_2048_8192_SHA256,
        "PS384" => &RSA_PSS_2048_8192_SHA384,
        "PS512" => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}

fn point(x: &[u8], y: &[u8]) -> Vec<u8> {
    [&[4], x, y].concat()
}

#[cfg(test)]
mod tests;
