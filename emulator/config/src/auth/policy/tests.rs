//! Tests of which tokens and keys are accepted, and of the errors for others.

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
fn a_sas_token_gives_the_rights_of_its_key_for_the_covered_paths() {
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
fn the_host_of_a_token_resource_is_ignored() {
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
fn entity_keys_are_tried_after_the_keys_of_the_namespace() {
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
    // Not the whole namespace, which is not the path of an entity.
    assert!(
        policy
            .accept_plain(b"\0RootManageSharedAccessKey\0primary")
            .is_err()
    );
}

#[test]
fn the_jwt_setting_decides_on_json_web_tokens() {
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
fn unsigned_tokens_are_accepted_if_every_key_has_all_rights() {
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
fn a_token_issued_by_the_emulator_is_accepted_by_its_signature() {
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
    // A token of another emulator, with another key.
    let (signed, _) = token.rsplit_once('.').unwrap();
    let foreign = judge(&Jwt::Accept, &format!("{signed}.c2ln"), NOW);
    assert!(
        matches!(foreign, Err(TokenError::BadSignature(_))),
        "{foreign:?}"
    );
    assert_eq!(judge(&Jwt::Issued, JWT, NOW), Err(TokenError::JwtRefused));
}

#[test]
fn without_a_token_check_every_client_may_connect() {
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
fn the_password_of_sasl_plain_is_the_key() {
    let keys = [Key::well_known()];
    let name = "RootManageSharedAccessKey".to_owned();
    let verified = |response: &[u8]| verify_plain(response, &keys);
    let accepted = Ok((name.clone(), Claims::ALL));
    assert_eq!(
        verified(b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
        accepted
    );
    assert_eq!(
        verified(b"any\0RootManageSharedAccessKey\0SAS_KEY_VALUE"),
        accepted
    );
    let wrong = Err(TokenError::WrongPassword(name));
    assert_eq!(
        verified(b"\0RootManageSharedAccessKey\0SAS_KEY_VALU"),
        wrong
    );
    assert_eq!(verified(b"\0RootManageSharedAccessKey\0"), wrong);
    assert_eq!(
        verified(b"\0Root\0SAS_KEY_VALUE"),
        Err(TokenError::UnknownKey("Root".into()))
    );
    assert_eq!(claimed_name(b"\0Root\0x"), Some("Root"));
}

#[test]
fn invalid_sasl_plain_responses_are_malformed() {
    let long = [b'a'; MAX_LENGTH + 1];
    for response in [&b""[..], b"a", b"a\0b", b"a\0b\0c\0d", b"\0\xff\0c", &long] {
        let refused = verify_plain(response, &[Key::well_known()]);
        assert!(
            matches!(refused, Err(TokenError::Malformed(_))),
            "{response:?}"
        );
    }
}
