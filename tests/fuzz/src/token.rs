//! Tokens and connection strings: no text panics, only what a key has signed is accepted, and what is written is read.

use std::sync::{Arc, LazyLock};

use servicebus_emulator::auth::{
    Claims, ConnectionString, Jwt, Key, KeySet, Policy, TokenCheck, audience_path, covers, sas,
    verify_plain,
};

use crate::{Input, altered, altered_text, input};

/// Before any token of the fixtures ends, in seconds since the Unix epoch.
const NOW: i64 = 1_000;

struct Seeds {
    tokens: Vec<Vec<u8>>,
    plain_responses: Vec<Vec<u8>>,
    key_sets: Vec<Vec<u8>>,
    connection_strings: Vec<Vec<u8>>,
    audiences: Vec<Vec<u8>>,
    own: KeySet,
}

static SEEDS: LazyLock<Seeds> = LazyLock::new(|| {
    let mut tokens = input::files("tokens", ".jwt");
    tokens.push(sas::sign("sb://localhost/q", &Key::well_known(), 2_000).into_bytes());
    tokens.push(b"eyJhbGciOiJub25lIn0.eyJleHAiOjk5OTl9.".to_vec());
    let key_sets = input::files("tokens", ".json");
    let own = KeySet::parse(&String::from_utf8_lossy(&key_sets[0]), None)
        .expect("the keys of the fixtures");
    let text = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    Seeds {
        tokens,
        plain_responses: text(&["\0RootManageSharedAccessKey\0SAS_KEY_VALUE"]),
        key_sets,
        connection_strings: text(&[
            "Endpoint=sb://localhost:5672;SharedAccessKeyName=k;SharedAccessKey=SAS_KEY_VALUE;UseDevelopmentEmulator=true;",
            "Endpoint=sb://[::1]:5672;SharedAccessSignature=SharedAccessSignature sr=a;EntityPath=q",
        ]),
        audiences: text(&[
            "sb://localhost/q",
            "amqps://host:5671/Orders%2Fa/$management",
            "q?x=1",
            "http%3a%2f%2fh%2fq",
        ]),
        own,
    }
});

/// A text of one of these kinds.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    match input.below(5) {
        0 => token(&mut input),
        1 => connection_string(&mut input),
        2 => key_set(&mut input),
        3 => signed(&mut input),
        _ => audience(&mut input),
    }
}

fn token(input: &mut Input<'_>) {
    let audience = String::from_utf8_lossy(input.seed(&SEEDS.audiences)).into_owned();
    let token = altered(input, &SEEDS.tokens);
    let keys = [Key::well_known()];
    let response = altered(input, &SEEDS.plain_responses);
    if let Ok((name, _)) = verify_plain(&response, &keys) {
        assert_eq!(name, keys[0].name);
    }
    let token = String::from_utf8_lossy(&token);
    for jwt in [
        Jwt::Accept,
        Jwt::Refuse,
        Jwt::Check(Arc::new(SEEDS.own.clone())),
    ] {
        let policy = Policy {
            keys: &keys,
            entity_keys: &[],
            token_check: TokenCheck::Signature,
            jwt: &jwt,
        };
        match policy.accept_token(&token, &audience, NOW) {
            Ok(accepted) => {
                assert!(accepted.expires_at > NOW, "{token}: {accepted:?}");
                assert!(sas::is_sas(&token) || jwt != Jwt::Refuse);
            }
            Err(error) => {
                let text = error.to_string();
                assert!(text.len() < 1024, "{text}");
                assert!(!text.contains(&keys[0].key), "the key is told");
            }
        }
    }
    let _ = sas::claimed_key_name(&token);
}

/// What is signed is accepted for what it was signed for, until it ends and by no other key.
fn signed(input: &mut Input<'_>) {
    let key = Key {
        name: input.word(24),
        key: input.word(24),
        claims: Claims::ALL,
    };
    let resource = altered_text(input, &SEEDS.audiences);
    let token = sas::sign(&resource, &key, NOW + 1);
    let verified = sas::verify(&token, std::slice::from_ref(&key), NOW).expect("what was signed");
    assert_eq!(
        (&verified.key_name, verified.expires_at),
        (&key.name, NOW + 1)
    );
    assert!(
        sas::verify(&token, std::slice::from_ref(&key), NOW + 1).is_err(),
        "it has ended"
    );
    let other = Key {
        key: format!("{}x", key.key),
        ..key
    };
    assert!(sas::verify(&token, &[other], NOW).is_err(), "another key");
}

fn connection_string(input: &mut Input<'_>) {
    let text = altered_text(input, &SEEDS.connection_strings);
    if let Ok(read) = text.parse::<ConnectionString>() {
        let written = read.to_string();
        let again = written.parse::<ConnectionString>();
        assert_eq!(
            again.as_ref(),
            Ok(&read),
            "{text:?} is written as {written:?}"
        );
    }
}

fn key_set(input: &mut Input<'_>) {
    let text = altered_text(input, &SEEDS.key_sets);
    match KeySet::parse(&text, None) {
        Ok(set) => assert!(!set.is_empty() && set.len() <= text.len()),
        Err(error) => assert!(error.len() < 1024, "{error}"),
    }
}

fn audience(input: &mut Input<'_>) {
    let text = altered_text(input, &SEEDS.audiences);
    let path = audience_path(&text);
    assert!(!path.starts_with('/') && !path.ends_with('/'));
    assert!(covers(&path, &path), "{path:?} does not cover itself");
    assert!(covers(&path, &format!("{path}/$management")));
    assert!(covers("", &text));
}
