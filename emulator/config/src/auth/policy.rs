//! How a namespace validates tokens and SASL PLAIN, the name of a key with the key itself (RFC 4616).

use std::sync::Arc;

use ring::hmac;

use super::{Claims, Key, KeySet, TokenError, audience_path, covers, jwt, quote, sas};

/// The maximum length of a token in bytes.
const MAX_TOKEN_LENGTH: usize = 64 * 1024;

/// Whether shared access signatures are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenCheck {
    /// Key name, signature, expiry and audience must be valid.
    #[default]
    Signature,
    /// Every client has every right.
    None,
}

/// Which JSON web tokens are accepted, each with every right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Jwt {
    /// As [`Self::Accept`] if every key of the namespace has all rights and the emulator only listens on loopback addresses;
    /// else as [`Self::Issued`], because a token without a signature has every right.
    #[default]
    Unset,
    /// Only tokens that the emulator has issued.
    Issued,
    /// Tokens with a valid form and expiry.
    Accept,
    /// No tokens.
    Refuse,
    /// Tokens that a key of the set has signed.
    Check(Arc<KeySet>),
}

impl Jwt {
    /// Resolves [`Self::Unset`] for a namespace with these keys, of an emulator that `is_local`: reachable from this machine
    /// only.
    pub fn decided(self, keys: &[Key], is_local: bool) -> Self {
        let have_all_rights = || keys.iter().all(|key| key.claims == Claims::ALL);
        match self {
            Self::Unset if is_local && have_all_rights() => Self::Accept,
            Self::Unset => Self::Issued,
            set @ (Self::Issued | Self::Accept | Self::Refuse | Self::Check(_)) => set,
        }
    }

    /// Returns the word in a configuration: `accept`, `refuse` or `check`; `None` if unset.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Accept => Some("accept"),
            Self::Issued | Self::Refuse => Some("refuse"),
            Self::Check(_) => Some("check"),
        }
    }
}

/// The policy of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// The keys of the whole namespace.
    pub keys: &'a [Key],
    /// The keys of the token's entity, whose tokens apply only to it and below.
    pub entity_keys: &'a [Key],
    /// Whether signatures are checked.
    pub token_check: TokenCheck,
    /// Which JSON web tokens are accepted.
    pub jwt: &'a Jwt,
}

/// The result of an accepted token, for [`super::Grants::put`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// The name of the key that signed; `None` for a JSON web token, or without a check.
    pub key_name: Option<String>,
    /// The requested path.
    pub audience_path: String,
    /// Whether a key of the requested entity signed it.
    pub of_entity: bool,
    /// The rights at that path and below.
    pub claims: Claims,
    /// When they expire, in seconds since the Unix epoch.
    pub expires_at: i64,
}

impl Acceptance {
    /// Returns all rights, without a key.
    fn of_all(audience_path: String, expires_at: i64) -> Self {
        Self {
            key_name: None,
            audience_path,
            of_entity: false,
            claims: Claims::ALL,
            expires_at,
        }
    }
}

impl Policy<'_> {
    /// Validates a token for an audience (the `name` of put-token) at `now`, in seconds since the Unix epoch. The text of
    /// the token determines its kind, not the type that the client sends.
    pub fn accept_token(
        &self,
        token: &str,
        audience: &str,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        self.accept_token_at(token, audience_path(audience), now)
    }

    /// As [`Self::accept_token`], for the entity at a path, which has no scheme and no host even if it looks like a URI.
    pub fn accept_token_for(
        &self,
        token: &str,
        entity_path: &str,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        let path = entity_path.trim_matches('/').to_lowercase();
        self.accept_token_at(token, path, now)
    }

    fn accept_token_at(
        &self,
        token: &str,
        audience_path: String,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        if self.token_check == TokenCheck::None {
            return Ok(Acceptance::of_all(audience_path, i64::MAX));
        }
        if token.len() > MAX_TOKEN_LENGTH {
            return Err(TokenError::Malformed("it is longer than 64 KiB"));
        }
        if sas::is_sas(token) {
            self.accept_signature(token, audience_path, now)
        } else {
            self.accept_jwt(token, audience_path, now)
        }
    }

    /// Validates a SASL PLAIN response; returns the name of the key and its rights in the whole namespace.
    pub fn accept_plain(&self, response: &[u8]) -> Result<(String, Claims), TokenError> {
        match self.token_check {
            TokenCheck::Signature => verify_plain(response, self.keys),
            TokenCheck::None => {
                let name = claimed_name(response).unwrap_or_default();
                Ok((name.to_owned(), Claims::ALL))
            }
        }
    }

    /// As [`Self::accept_plain`], with all that it gives: rights in the whole namespace, unlimited for a key, and until the
    /// expiry of its token for the user `$jwt`. `now` is in seconds since the Unix epoch (spec/jms.md).
    pub fn accept_plain_at(&self, response: &[u8], now: i64) -> Result<Acceptance, TokenError> {
        if self.token_check == TokenCheck::Signature
            && let Ok((TOKEN_USER, token)) = read(response)
        {
            let token = str::from_utf8(token)
                .map_err(|_| TokenError::Malformed("the token of SASL PLAIN is not UTF-8"))?;
            return self.accept_jwt(token, String::new(), now);
        }
        let (name, claims) = self.accept_plain(response)?;
        Ok(Acceptance {
            key_name: Some(name),
            claims,
            ..Acceptance::of_all(String::new(), i64::MAX)
        })
    }

    fn accept_signature(
        &self,
        token: &str,
        audience_path: String,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        let (verified, of_entity) = match sas::verify(token, self.keys, now) {
            Ok(verified) => (verified, false),
            // A name belongs to the namespace or to the entity; the error comes from the one that has the name.
            Err(error) => match (sas::verify(token, self.entity_keys, now), &error) {
                (Ok(verified), _) => (verified, true),
                (Err(own), TokenError::UnknownKey(_)) => return Err(own),
                (Err(_), _) => return Err(error),
            },
        };
        if !covers(&verified.audience_path, &audience_path) {
            return Err(TokenError::Audience {
                signed: quote(&verified.audience_path),
                claimed: quote(&audience_path),
            });
        }
        Ok(Acceptance {
            key_name: Some(verified.key_name),
            audience_path,
            of_entity,
            claims: verified.claims,
            expires_at: verified.expires_at,
        })
    }

    fn accept_jwt(
        &self,
        token: &str,
        audience_path: String,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        // A text that is not a token has an error of its own.
        let issued = jwt::verify_issued(token, now)?;
        let expires_at = match (self.jwt, issued) {
            (Jwt::Issued | Jwt::Accept | Jwt::Check(_), Some(expires_at)) => expires_at,
            (Jwt::Accept, None) => jwt::check(token, now)?,
            (Jwt::Check(keys), None) => jwt::verify(token, keys, now)?,
            // An undecided `Unset` accepts no token.
            (Jwt::Unset | Jwt::Refuse, _) | (Jwt::Issued, None) => {
                return Err(TokenError::JwtRefused);
            }
        };
        Ok(Acceptance::of_all(audience_path, expires_at))
    }
}

/// The maximum length of a response in bytes.
const MAX_LENGTH: usize = 16 * 1024;
/// The user name for a JSON web token as password.
const TOKEN_USER: &str = "$jwt";
/// Suffixes that Microsoft's library for JMS appends to the key, because it takes the rest of an emulator's connection
/// string for a part of it.
const BEHIND_KEY: [&[u8]; 3] = [
    b";UseDevelopmentEmulator=true;",
    b";UseDevelopmentEmulator=true",
    b";",
];

/// Validates an initial response, `authzid NUL authcid NUL passwd`; returns the name of the key and its rights.
pub fn verify_plain(response: &[u8], keys: &[Key]) -> Result<(String, Claims), TokenError> {
    let (name, password) = read(response)?;
    let mut endings = BEHIND_KEY.into_iter();
    let password = endings
        .find_map(|ending| password.strip_suffix(ending))
        .unwrap_or(password);
    let mut named = keys.iter().filter(|key| key.name == name).peekable();
    if named.peek().is_none() {
        return Err(TokenError::UnknownKey(quote(name)));
    }
    named
        .find(|key| is_same(key.key.as_bytes(), password))
        .map(|key| (key.name.clone(), key.claims))
        .ok_or_else(|| TokenError::WrongPassword(quote(name)))
}

/// Returns the key name of a response, which is not validated.
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

/// Compares digests, which takes the same time wherever they differ.
fn is_same(expected: &[u8], given: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"SASL PLAIN");
    let digest = hmac::sign(&key, given);
    hmac::verify(&key, expected, digest.as_ref()).is_ok()
}

#[cfg(test)]
mod tests;
