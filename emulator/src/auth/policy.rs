//! The rules of one namespace for who may enter.
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
    pub(crate) fn decided(self, keys: &[Key], is_local: bool) -> Self {
        let have_all_rights = || keys.iter().all(|key| key.claims == Claims::ALL);
        match self {
            Self::Unset if is_local && have_all_rights() => Self::Accept,
            Self::Unset => Self::Issued,
            set @ (Self::Issued | Self::Accept | Self::Refuse | Self::Check(_)) => set,
        }
    }

    /// The word for it: `accept`, `refuse` or `check`; none where nothing was set.
    pub(crate) fn word(&self) -> Option<&'static str> {
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

impl Policy<'_> {
    /// Judges a token that a client shows for an audience (the `name` of put-token) at `now`, in seconds
    /// since the Unix epoch. What kind of token it is shows its text, not the type that was said.
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
            return Ok(Acceptance {
                key_name: None,
                audience_path,
                of_entity: false,
                claims: Claims::ALL,
                expires_at: i64::MAX,
            });
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
    pub(crate) fn accept_plain_at(
        &self,
        response: &[u8],
        now: i64,
    ) -> Result<Acceptance, TokenError> {
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
            audience_path: String::new(),
            of_entity: false,
            claims,
            expires_at: i64::MAX,
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
            // Names are the namespace's or the entity's; what is wrong is said of the one that is known.
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
        // What is no token at all is told as that.
        let issued = jwt::verify_issued(token, now)?;
        let expires_at = match (self.jwt, issued) {
            (Jwt::Issued | Jwt::Accept | Jwt::Check(_), Some(expires_at)) => expires_at,
            (Jwt::Accept, None) => jwt::check(token, now)?,
            (Jwt::Check(keys), None) => jwt::verify(token, keys, now)?,
            // Where nothing was decided nothing was said to be accepted.
            (Jwt::Unset | Jwt::Refuse, _) | (Jwt::Issued, None) => {
                return Err(TokenError::JwtRefused);
            }
        };
        Ok(Acceptance {
            key_name: None,
            audience_path,
            of_entity: false,
            claims: Claims::ALL,
            expires_at,
        })
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
mod tests {
    use super::*;
    use crate::auth::issued_token;

    const JWT: &str = "e30.eyJleHAiOjE5MDAwMDAwMDB9.c2ln";
    const NOW: i64 = 1_800_000_000;

    fn policy(keys: &[Key]) -> Policy<'_> {
        Policy {
            keys,
            entity_keys: &[],
            token_check: TokenCheck::Signature,
            jwt: &Jwt::Accept,
        }
    }

    #[test]
    fn a_signature_gives_the_rights_of_its_key_where_it_covers() {
        let keys = [Key::well_known()];
        let token = sas::sign("amqps://localhost/orders", &keys[0], NOW + 60);
        let accepted = policy(&keys).accept_token(&token, "sb://localhost/Orders/$management", NOW);
        let expected = Acceptance {
            key_name: Some("RootManageSharedAccessKey".into()),
            audience_path: "orders/$management".into(),
            of_entity: false,
            claims: Claims::ALL,
            expires_at: NOW + 60,
        };
        assert_eq!(accepted, Ok(expected));
        let refused = policy(&keys)
            .accept_token(&token, "sb://localhost/invoices", NOW)
            .unwrap_err();
        let text = "the token is for \"orders\" and does not cover \"invoices\"";
        assert_eq!(refused.to_string(), text);
    }

    #[test]
    fn the_path_of_an_entity_has_no_host() {
        let keys = [Key::well_known()];
        let may = |resource: &str, path: &str| {
            let token = sas::sign(resource, &keys[0], NOW + 60);
            policy(&keys).accept_token_for(&token, path, NOW).is_ok()
        };
        for host in ["localhost", "127.0.0.1", "a.servicebus.windows.net", "::1"] {
            let path = format!("/{host}/x");
            assert!(!may("sb://localhost/x", &path), "{path}");
            assert!(may(&format!("sb://localhost/{host}"), &path), "{path}");
            assert!(may("sb://localhost/", &path), "{path}");
        }
        assert!(may("sb://localhost/x", "/X/subscriptions/s"));
        assert!(!may("sb://localhost/x", "/sb://localhost/x"));
    }

    #[test]
    fn a_key_of_an_entity_counts_after_those_of_the_namespace() {
        let namespace = [Key::well_known()];
        let own = |key: &str| Key {
            key: key.into(),
            claims: Claims::NONE,
            ..Key::well_known()
        };
        let entity = [own("primary"), own("secondary")];
        let policy = Policy {
            entity_keys: &entity,
            ..policy(&namespace)
        };
        let judge = |key: &Key| {
            let token = sas::sign("sb://localhost/orders", key, NOW + 60);
            policy.accept_token(&token, "sb://localhost/orders", NOW)
        };
        let of_entity = |key: &Key| judge(key).map(|accepted| accepted.of_entity);
        assert_eq!(of_entity(&namespace[0]), Ok(false));
        assert_eq!(of_entity(&entity[0]), Ok(true));
        assert_eq!(of_entity(&entity[1]), Ok(true));
        let bad = TokenError::BadSignature("RootManageSharedAccessKey".into());
        assert_eq!(judge(&own("wrong")), Err(bad));
        // Not for the whole namespace: that is no path of an entity.
        assert!(
            policy
                .accept_plain(b"\0RootManageSharedAccessKey\0primary")
                .is_err()
        );
    }

    #[test]
    fn json_web_tokens_follow_the_setting() {
        let accepted = policy(&[])
            .accept_token(JWT, "sb://localhost/orders", NOW)
            .unwrap();
        assert_eq!((accepted.key_name, accepted.claims), (None, Claims::ALL));
        assert_eq!(accepted.expires_at, 1_900_000_000);
        let strict = Policy {
            jwt: &Jwt::Refuse,
            ..policy(&[])
        };
        assert_eq!(
            strict.accept_token(JWT, "", NOW),
            Err(TokenError::JwtRefused)
        );
    }

    #[test]
    fn unsigned_tokens_are_accepted_where_they_give_no_client_more() {
        let limited = Key {
            claims: Claims::SEND,
            ..Key::well_known()
        };
        let [whole, mixed] = [vec![Key::well_known()], vec![Key::well_known(), limited]];
        for (set, keys, is_local, expected) in [
            (Jwt::Unset, &whole, true, Jwt::Accept),
            (Jwt::Unset, &whole, false, Jwt::Issued),
            (Jwt::Unset, &mixed, true, Jwt::Issued),
            (Jwt::Accept, &mixed, false, Jwt::Accept),
            (Jwt::Refuse, &whole, true, Jwt::Refuse),
        ] {
            assert_eq!(set.decided(keys, is_local), expected);
        }
        let undecided = Policy {
            jwt: &Jwt::Unset,
            ..policy(&[])
        };
        let refused = undecided.accept_token(JWT, "", NOW);
        assert_eq!(refused, Err(TokenError::JwtRefused));
    }

    #[test]
    fn what_the_emulator_issued_is_accepted_by_its_signature() {
        let token = issued_token::issue("https://servicebus.azure.net", NOW).unwrap();
        let judge = |jwt: &Jwt, token: &str, now: i64| {
            let accepted = Policy { jwt, ..policy(&[]) }.accept_token(token, "", now);
            accepted.map(|accepted| accepted.expires_at)
        };
        let end = NOW + issued_token::LIFETIME;
        for jwt in [Jwt::Issued, Jwt::Accept] {
            assert_eq!(judge(&jwt, &token, NOW), Ok(end), "{jwt:?}");
            assert!(judge(&jwt, &token, end).is_err(), "{jwt:?}");
        }
        assert_eq!(
            judge(&Jwt::Refuse, &token, NOW),
            Err(TokenError::JwtRefused)
        );
        // Another emulator's, whose key is not this one's.
        let (signed, _) = token.rsplit_once('.').unwrap();
        let foreign = judge(&Jwt::Accept, &format!("{signed}.c2ln"), NOW);
        assert!(
            matches!(foreign, Err(TokenError::BadSignature(_))),
            "{foreign:?}"
        );
        assert_eq!(judge(&Jwt::Issued, JWT, NOW), Err(TokenError::JwtRefused));
    }

    #[test]
    fn without_a_check_everybody_may_enter() {
        let open = Policy {
            token_check: TokenCheck::None,
            ..policy(&[])
        };
        let accepted = open
            .accept_token("nothing", "sb://localhost/orders", NOW)
            .unwrap();
        assert_eq!(
            (accepted.claims, accepted.expires_at),
            (Claims::ALL, i64::MAX)
        );
        assert_eq!(
            open.accept_plain(b"\0me\0x"),
            Ok(("me".into(), Claims::ALL))
        );
        assert_eq!(open.accept_plain(b"?"), Ok((String::new(), Claims::ALL)));
    }

    #[test]
    fn oversized_tokens_are_refused_before_they_are_read() {
        let token = "a".repeat(MAX_TOKEN_LENGTH + 1);
        let refused = policy(&[]).accept_token(&token, "", NOW);
        assert!(matches!(refused, Err(TokenError::Malformed(_))));
    }

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
