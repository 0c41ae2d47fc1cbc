//! SASL PLAIN: the name of a key and the key itself (RFC 4616).

use ring::hmac;

use super::error::quote;
use super::{Claims, Key, TokenError};

/// Longest response that is read, in bytes.
const MAX_LENGTH: usize = 4096;

/// Judges an initial response, `authzid NUL authcid NUL passwd`: the name of the key and its rights.
pub fn verify_plain(response: &[u8], keys: &[Key]) -> Result<(String, Claims), TokenError> {
    let (name, password) = read(response)?;
    let mut named = keys.iter().filter(|key| key.name == name).peekable();
    if named.peek().is_none() {
        return Err(TokenError::UnknownKey(quote(name)));
    }
    named
        .find(|key| is_same(key.key.as_bytes(), password))
        .map(|key| (key.name.clone(), key.claims))
        .ok_or_else(|| TokenError::WrongPassword(quote(name)))
}

/// The name of the key that a response claims to know, before anything is proved.
pub(crate) fn claimed_name(response: &[u8]) -> Option<&str> {
    read(response).ok().map(|(name, _)| name)
}

fn read(response: &[u8]) -> Result<(&str, &[u8]), TokenError> {
    if response.len() > MAX_LENGTH {
        return Err(TokenError::Malformed("the SASL PLAIN response is too long"));
    }
    let mut parts = response.split(|&byte| byte == 0);
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(name), Some(password), None) => {
            let name = str::from_utf8(name)
                .map_err(|_| TokenError::Malformed("the name of SASL PLAIN is not UTF-8"))?;
            Ok((name, password))
        }
        _ => Err(TokenError::Malformed(
            "a SASL PLAIN response is an authorization identity, a name and a password with NUL between",
        )),
    }
}

/// Compares digests, whose comparison takes the same time wherever they differ.
fn is_same(expected: &[u8], given: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"SASL PLAIN");
    let digest = hmac::sign(&key, given);
    hmac::verify(&key, expected, digest.as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_the_password() {
        let keys = [Key::well_known()];
        let name = "RootManageSharedAccessKey".to_owned();
        let judged = |response: &[u8]| verify_plain(response, &keys);
        let accepted = Ok((name.clone(), Claims::ALL));
        assert_eq!(
            judged(b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
            accepted
        );
        assert_eq!(
            judged(b"any\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
            accepted
        );
        let wrong = Err(TokenError::WrongPassword(name));
        assert_eq!(judged(b"\0RootManageSharedAccessKey\0SAS_KEY_VALU"), wrong);
        assert_eq!(judged(b"\0RootManageSharedAccessKey\0"), wrong);
        assert_eq!(
            judged(b"\0Root\0SAS_KEY_VALUE"),
            Err(TokenError::UnknownKey("Root".into()))
        );
        assert_eq!(claimed_name(b"\0Root\0x"), Some("Root"));
    }

    #[test]
    fn other_responses_are_malformed() {
        let long = [b'a'; MAX_LENGTH + 1];
        for response in [&b""[..], b"a", b"a\0b", b"a\0b\0c\0d", b"\0\xff\0c", &long] {
            let refused = verify_plain(response, &[Key::well_known()]);
            assert!(
                matches!(refused, Err(TokenError::Malformed(_))),
                "{response:?}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn no_response_panics(response: Vec<u8>) {
            let _ = verify_plain(&response, &[Key::well_known()]);
        }
    }
}
