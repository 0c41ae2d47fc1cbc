//! JSON web tokens that the emulator signs itself, for clients that ask a directory or a managed identity for theirs.
//!
//! They are signed with a key that this process makes when it needs one and shows to none, so that no other emulator accepts
//! them. What says that it was issued here and was not signed with that key is refused wherever it is shown.

use std::sync::OnceLock;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::error::Unspecified;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::SystemRandom;
use serde_json::json;

/// Who signs: the claim `iss`.
pub(crate) const ISSUER: &str = "https://servicebus-emulator.localhost/";
/// How long a token lasts, in seconds: a day, as those of a managed identity do.
pub const LIFETIME: i64 = 24 * 60 * 60;
/// The tenant, the application and the object of the one identity that there is.
const IDENTITY: &str = "5b5e0e5b-0000-4000-8000-000000000001";

static KEY: OnceLock<Key> = OnceLock::new();

/// A token for an audience, which is accepted from `now` on; seconds since the Unix epoch. An error where the system has no
/// random numbers for the key.
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

/// Whether this process has signed that.
pub(crate) fn is_signed(signed: &str, signature: &[u8]) -> bool {
    let key = KEY.get();
    key.is_some_and(|key| verify(key, signed.as_bytes(), signature).is_ok())
}
