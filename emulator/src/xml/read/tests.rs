use super::super::CONNECT;
use super::*;

#[test]
fn names_are_resolved_whatever_their_prefixes() {
    let text = format!(
        "<?xml version='1.0'?>\n<ns0:entry xmlns:ns0=\"{}\"><ns0:content>\
         <QueueDescription xmlns=\"{CONNECT}\" xmlns:p4=\"{INSTANCE}\">\
         <a p4:nil=\"true\"/><b p4:type=\"l28:string\" xmlns:l28=\"{}\">x &amp; <!-- no -->&#x41;<![CDATA[<]]></b>\
         <c p4:type=\"SqlFilter\"/><x:d xmlns:x=\"urn:other\"/></QueueDescription></ns0:content></ns0:entry>",
        super::super::ATOM,
        super::super::SCHEMA,
    );
    let root = read(text.as_bytes()).unwrap();
    assert_eq!((root.space, root.name.as_str()), (Space::Atom, "entry"));
    let content = root.child(Space::Atom, "content").unwrap();
    let description = content.part("QueueDescription").unwrap();
    assert_eq!(description.part("a"), None, "nil is nothing");
    assert_eq!(description.part("d"), None, "another vocabulary's");
    let b = description.part("b").unwrap();
    assert_eq!(b.text, "x & A<");
    let expected = XsiType {
        space: Space::Schema,
        name: "string".into(),
    };
    assert_eq!(b.xsi_type, Some(expected));
    let c = description.part("c").unwrap().xsi_type.as_ref().unwrap();
    assert_eq!((c.space, c.name.as_str()), (Space::Connect, "SqlFilter"));
}

#[test]
fn what_is_not_one_whole_document_is_refused() {
    for text in [
        "",
        "text",
        "<a>",
        "</a>",
        "<a></b>",
        "<a/><b/>",
        "<a/>text",
        "<a b=1/>",
        "<a b='1' b='2'/>",
        "<p:a/>",
        "<a xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:type='p:string'/>",
        "<a",
        "<a>&",
        "<a>&lt</a>",
        "{}",
    ] {
        let refused = read(text.as_bytes());
        assert!(
            matches!(
                refused,
                Err(ReadError::Malformed { .. } | ReadError::NotOneRoot)
            ),
            "{text}: {refused:?}"
        );
    }
    assert_eq!(read(b"<a>\xff</a>"), Err(ReadError::NotUtf8(3)));
    assert_eq!(read(b"<a>&#1;</a>"), Err(ReadError::Character(1)));
    assert_eq!(
        read("<a>\u{1}</a>".as_bytes()),
        Err(ReadError::Character(1))
    );
}

#[test]
fn entities_are_never_expanded() {
    let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbb\"><!ENTITY c \"&b;&b;\">]><a>&c;</a>";
    assert_eq!(read(bomb.as_bytes()), Err(ReadError::DocumentType));
    for (text, name) in [("<a>&b;</a>", "b"), ("<a>&#xD800;</a>", "#xD800")] {
        assert_eq!(read(text.as_bytes()), Err(ReadError::Entity(name.into())));
    }
}

#[test]
fn depth_and_number_are_bounded() {
    let nested = |depth: usize| "<a>".repeat(depth) + &"</a>".repeat(depth);
    assert!(read(nested(MAX_DEPTH).as_bytes()).is_ok());
    let deep = nested(MAX_DEPTH + 1);
    assert_eq!(read(deep.as_bytes()), Err(ReadError::TooDeep));
    let many = format!("<a>{}</a>", "<b/>".repeat(MAX_ELEMENTS));
    assert_eq!(read(many.as_bytes()), Err(ReadError::TooMany));
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "[<>/a-c&;#x0-9:='\" !\\[\\]?-]{0,80}") {
        let _ = read(text.as_bytes());
    }
}
