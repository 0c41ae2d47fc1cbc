use super::*;

#[test]
fn filters_of_old_clients_are_understood() {
    use Property::*;
    let starts = |text: &str| Selection::StartsWith(Path, text.into());
    let many = Selection::Is(MessageCount, Operator::Gt, Literal::Number(10.0));
    for (text, selection) in [
        ("startswith(path, 'a') eq true", starts("a")),
        ("startsWith( Path ,'it''s')", starts("it's")),
        (
            "startswith(path,'a') eq false",
            Selection::Not(starts("a").into()),
        ),
        ("messageCount Gt 10", many.clone()),
        ("(messagecount gt '10')", many.clone()),
        (
            "accessedAt Lt datetime'1970-01-01T00:00:01Z'",
            Selection::Is(AccessedAt, Operator::Lt, Literal::Instant(1000)),
        ),
        (
            "createdAt ge '1970-01-01T00:00:01'",
            Selection::Is(CreatedAt, Operator::Ge, Literal::Instant(1000)),
        ),
        (
            "path eq 'a' Or messageCount gt 10 And startswith(path,'b') eq true",
            Selection::Or(
                Selection::Is(Path, Operator::Eq, Literal::Text("a".into())).into(),
                Selection::And(many.into(), starts("b").into()).into(),
            ),
        ),
    ] {
        assert_eq!(Selection::parse(text), Ok(selection), "{text}");
    }
}

#[test]
fn other_filters_are_refused() {
    let refused = Selection::parse("size gt 1").unwrap_err();
    assert_eq!(refused.status, 400);
    let text = format!("{refused:?}");
    assert!(
        text.contains(
            "Invalid Filter. The specified property 'size' does not exist or is not allowed."
        ),
        "{text}"
    );
    for text in [
        "path",
        "path eq",
        "path eq 1",
        "path like 'a'",
        "messageCount gt 'many'",
        "createdAt lt 'soon'",
        "startswith(path)",
        "startswith(path,'a'",
        "startswith(path,'a') eq 1",
        "path eq 'a",
        "path eq 'a' path eq 'b'",
        "path eq 'a' and",
        "path = 'a'",
        ")",
        &"(".repeat(100),
        &"a".repeat(3000),
    ] {
        let refused = Selection::parse(text);
        assert!(refused.is_err(), "{text}: {refused:?}");
    }
}

proptest::proptest! {
    #[test]
    fn no_filter_panics(text in "[a-z('), 0-9=é-]{0,60}") {
        let _ = Selection::parse(&text);
    }
}
