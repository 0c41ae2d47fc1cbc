//! JSON web tokens that the emulator issues, for clients that request theirs from a directory or a managed identity.
//!
//! They are signed with a key that this process generates on first use and never exports, so no other emulator accepts them.
//! A token that claims this issuer without that signature is always rejected.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::SystemRandom;
use serde_json::json;

/// The issuer: the claim `iss`.
pub(crate) const ISSUER: &str = "https://servicebus-emulator.localhost/";
/// The lifetime of a token in seconds: a day, as for a managed identity.
pub const LIFETIME: i64 = 24 * 60 * 60;
/// The tenant, the application and the object of the only identity.
const IDENTITY: &str = "5b5e0e5b-0000-4000-8000-000000000001";

static KEY: OnceLock<Key> = OnceLock::new();

/// Issues a token for an audience, valid from `now` on, in seconds since the Unix epoch. Returns an error if the system has
/// no random numbers for the key.
pub fn issue(audience: &str, now: i64) -> Result<String, Unspecified> {
    let key = match KEY.get() {
        Some(key) => key,
        None => {
            let made = Key::generate(HMAC_SHA256, &SystemRandom::new())?;
            KEY.get_or_init(|| made)
        }
    };
    let part = |value: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    let header = part(json!({"alg": "HS256", "typ": "JWT"}));
    let claims = part(json!({
        "iss": ISSUER,
        "aud": audience,
        "iat": now,
        "nbf": now,
        "exp": now + LIFETIME,
        "tid": IDENTITY,
        "appid": IDENTITY,
        "oid": IDENTITY,
        "sub": IDENTITY,
    }));
    let signed = format!("{header}.{claims}");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(sign(key, signed.as_bytes()));
    Ok(format!("{signed}.{signature}"))
}

/// Returns whether this process has signed the text.
pub(crate) fn is_signed(signed: &str, signature: &[u8]) -> bool {
    let key = KEY.get();
    key.is_some_and(|key| verify(key, signed.as_bytes(), signature).is_ok())
}
