//! JSON web tokens that the emulator signs itself, for clients that ask a directory or a managed identity for theirs.
//!
//! They are signed with a key that this process makes when it needs one and shows to none, so that no other emulator accepts
//! them. What says that it was minted and was not signed with that key is refused wherever it is shown.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::SystemRandom;
use serde_json::json;

/// Who signs: the claim `iss`.
pub(crate) const ISSUER: &str = "https://servicebus-emulator.localhost/";
/// How long a token lasts, in seconds: a day, as those of a managed identity do.
pub(crate) const LIFETIME: i64 = 24 * 60 * 60;
/// The tenant, the application and the object of the one identity that there is.
const IDENTITY: &str = "5b5e0e5b-0000-4000-8000-000000000001";

static KEY: LazyLock<Key> = LazyLock::new(|| {
    Key::generate(HMAC_SHA256, &SystemRandom::new()).expect("the system has random numbers")
});

/// A token for an audience, which is accepted from `now` on; seconds since the Unix epoch.
pub(crate) fn mint(audience: &str, now: i64) -> String {
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
    let signature = sign(&KEY, signed.as_bytes());
    format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(signature))
}

/// Whether this process has signed that.
pub(crate) fn is_signed(signed: &str, signature: &[u8]) -> bool {
    verify(&KEY, signed.as_bytes(), signature).is_ok()
}
