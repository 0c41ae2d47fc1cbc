use super::*;

fn token(claims: &str) -> String {
    let encode = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    format!(
        "{}.{}.{}",
        encode(r#"{"alg":"RS256"}"#),
        encode(claims),
        encode("signature")
    )
}

#[test]
fn a_token_lives_until_its_expiry() {
    let fixed = "eyJhbGciOiJSUzI1NiJ9.eyJhdWQiOiJodHRwczovL3NlcnZpY2VidXMuYXp1cmUubmV0IiwiZXhwIjoxOTAwMDAwMDAwfQ.c2ln";
    assert_eq!(check(fixed, 1_899_999_999), Ok(1_900_000_000));
    let expired = TokenError::Expired {
        expired_at: 1_900_000_000,
        now: 1_900_000_000,
    };
    assert_eq!(check(fixed, 1_900_000_000), Err(expired));
    assert_eq!(check(&token(r#"{"exp":12.5}"#), 0), Ok(12));
    assert_eq!(check(&token(r#"{"exp":1e300}"#), 0), Ok(i64::MAX));
}

#[test]
fn a_token_of_the_future_is_refused() {
    let token = token(r#"{"exp":2000,"nbf":1000}"#);
    assert_eq!(check(&token, 700), Ok(2000));
    let early = TokenError::Malformed("the JSON web token is not valid yet");
    assert_eq!(check(&token, 699), Err(early));
}

#[test]
fn other_texts_are_malformed() {
    let table = [
        "",
        "abc",
        "a.b",
        "a.b.c.d",
        "!.e30.",
        ".. ",
        "..",
        "e30.e30.e30",
        &token("{}"),
        &token(r#"{"exp":"1"}"#),
        &token("[1]"),
        &token(&"[".repeat(100_000)),
    ]
    .map(str::to_owned);
    for text in table {
        assert!(
            matches!(check(&text, 0), Err(TokenError::Malformed(_))),
            "{text:.80}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[a-zA-Z0-9_.=-]{0,60}") {
        let _ = check(&text, 0);
    }
}
