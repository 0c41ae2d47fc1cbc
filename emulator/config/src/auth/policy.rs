//! How one namespace judges tokens.
//!
//! SASL PLAIN: the name of a key and the key itself (RFC 4616).

use std::sync::Arc;

use ring::hmac;

use super::{Claims, Key, KeySet, TokenError, audience_path, covers, jwt, quote, sas};

/// Longest token that is read, in bytes.
const MAX_TOKEN_LENGTH: usize = 64 * 1024;

/// Whether shared access signatures are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenCheck {
    /// Key name, signature, expiry and audience must be right.
    #[default]
    Signature,
    /// Every client has every right.
    None,
}

/// Whether JSON web tokens are accepted, each with every right.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Jwt {
    /// As [`Self::Accept`] where every key of the namespace has all rights and the emulator is reached over loopback
    /// addresses alone; else as [`Self::Issued`], because a token without a signature has every right.
    #[default]
    Unset,
    /// Those alone that the emulator has issued itself.
    Issued,
    /// By their shape and expiry only.
    Accept,
    /// Never.
    Refuse,
    /// When a key of the set has signed them.
    Check(Arc<KeySet>),
}

impl Jwt {
    /// What holds for a namespace with these keys, of an emulator that `is_local`: reached from this machine alone.
    pub fn decided(self, keys: &[Key], is_local: bool) -> Self {
        let have_all_rights = || keys.iter().all(|key| key.claims == Claims::ALL);
        match self {
            Self::Unset if is_local && have_all_rights() => Self::Accept,
            Self::Unset => Self::Issued,
            set @ (Self::Issued | Self::Accept | Self::Refuse | Self::Check(_)) => set,
        }
    }

    /// The word for it: `accept`, `refuse` or `check`; none where nothing was set.
    pub fn word(&self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Accept => Some("accept"),
            Self::Issued | Self::Refuse => Some("refuse"),
            Self::Check(_) => Some("check"),
        }
    }
}

/// The rules of a namespace.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    /// The keys that can sign for the whole namespace.
    pub keys: &'a [Key],
    /// The keys of the entity that a token is shown for: what they sign holds there and below, and nowhere else.
    pub entity_keys: &'a [Key],
    /// Whether signatures are checked.
    pub token_check: TokenCheck,
    /// Whether JSON web tokens are accepted.
    pub jwt: &'a Jwt,
}

/// What an accepted token gives: what [`super::Grants::put`] wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    /// The key that signed; none for a JSON web token, or where nothing is checked.
    pub key_name: Option<String>,
    /// The path that was asked for.
    pub audience_path: String,
    /// Whether it was signed with a key of the entity that is asked for.
    pub of_entity: bool,
    /// The rights at that path and below.
    pub claims: Claims,
    /// Their end, in seconds since the Unix epoch.
    pub expires_at: i64,
}

impl Acceptance {
    /// All rights, by no key.
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
    /// Judges a token that a client shows for an audience (the `name` of put-token) at `now`, in seconds
    /// since the Unix epoch. Its text shows what kind of token it is, not the type that the client names.
    pub fn accept_token(
        &self,
        token: &str,
        audience: &str,
        now: i64,
    ) -> Result<Acceptance, TokenError> {
        self.accept_token_at(token, audience_path(audience), now)
    }

    /// The same for the entity at a path, which has no scheme and no host, even where it looks like a URI.
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

    /// Judges a SASL PLAIN response: the name of the key and its rights in the whole namespace.
    pub fn accept_plain(&self, response: &[u8]) -> Result<(String, Claims), TokenError> {
        match self.token_check {
            TokenCheck::Signature => verify_plain(response, self.keys),
            TokenCheck::None => {
                let name = claimed_name(response).unwrap_or_default();
                Ok((name.to_owned(), Claims::ALL))
            }
        }
    }

    /// The same with what it gives: rights in the whole namespace, by a key for ever, by the token of the user `$jwt` as
    /// long as that lives at `now`, in seconds since the Unix epoch (spec/jms.md).
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
            // A name is one of the namespace or of the entity: the error is that of the one that knows it.
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
        // A text that is no token at all has an error of its own.
        let issued = jwt::verify_issued(token, now)?;
        let expires_at = match (self.jwt, issued) {
            (Jwt::Issued | Jwt::Accept | Jwt::Check(_), Some(expires_at)) => expires_at,
            (Jwt::Accept, None) => jwt::check(token, now)?,
            (Jwt::Check(keys), None) => jwt::verify(token, keys, now)?,
            // Without a setting no kind of token is accepted.
            (Jwt::Unset | Jwt::Refuse, _) | (Jwt::Issued, None) => {
                return Err(TokenError::JwtRefused);
            }
        };
        Ok(Acceptance::of_all(audience_path, expires_at))
    }
}

/// Longest response that is read, in bytes.
const MAX_LENGTH: usize = 16 * 1024;
/// The user whose password is a JSON web token.
const TOKEN_USER: &str = "$jwt";
/// What Microsoft's library for JMS leaves behind the key of an emulator's connection string, whose rest it takes for it.
const BEHIND_KEY: [&[u8]; 3] = [
    b";UseDevelopmentEmulator=true;",
    b";UseDevelopmentEmulator=true",
    b";",
];

/// Judges an initial response, `authzid NUL authcid NUL passwd`: the name of the key and its rights.
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
mod tests;
