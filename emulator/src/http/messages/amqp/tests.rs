//! Round trips of messages through JSON.

use super::*;

fn value(json: Value, plain: &str) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    write(&json, plain, &mut out)?;
    Ok(out)
}

#[test]
fn every_type_of_value_converts_from_and_to_json() {
    for json in [
        json!(null),
        json!(true),
        json!("text"),
        json!({"ubyte": 255}),
        json!({"ushort": 65535}),
        json!({"uint": 70000}),
        json!({"ulong": "18446744073709551615"}),
        json!({"byte": -128}),
        json!({"short": -300}),
        json!({"int": -5}),
        json!({"long": "9007199254740992"}),
        json!({"long": "-9007199254740992"}),
        json!({"long": 9007199254740991_i64}),
        json!({"double": 1e17}),
        json!({"double": 3.8939683381872185e162}),
        json!({"float": 0.5}),
        json!({"double": 1.25}),
        json!({"double": "NaN"}),
        json!({"double": "-inf"}),
        json!({"double": "-0"}),
        json!({"float": "-0"}),
        json!({"timestamp": -1}),
        json!({"char": "é"}),
        json!({"uuid": "00000000-0000-0000-0000-00000000000a"}),
        json!({"binary": "AP8="}),
        json!({"symbol": "s"}),
        json!({"list": [{"int": 1}, {"list": []}, null]}),
        json!({"map": [["a", {"int": 1}], [{"long": 2}, "b"]]}),
        json!({"described": [{"symbol": "com.microsoft:timespan"}, {"long": 600}]}),
        // An array of two ints, and a decimal.
        json!({"encoded": "4AoCcQAAAAEAAAAC"}),
        json!({"encoded": "dAAAAAA="}),
    ] {
        let encoded = value(json.clone(), "string").expect("it is a value");
        let decoded = value::to_json(&encoded, "string").expect("it decodes");
        assert_eq!(decoded, json);
        let read = serde_json::from_str(&decoded.to_string()).expect("it is JSON");
        let again = value(read, "string").expect("it is a value");
        assert_eq!(again, encoded, "{json}");
    }
}

#[test]
fn a_plain_json_value_has_the_type_of_its_field() {
    for (json, plain, typed) in [
        (json!("a"), "symbol", json!({"symbol": "a"})),
        (json!("AP8="), "binary", json!({"binary": "AP8="})),
        (json!(7), "uint", json!({"uint": 7})),
        (json!(7), "timestamp", json!({"timestamp": 7})),
        (json!(7), "string", json!({"long": 7})),
        (json!(7.5), "string", json!({"double": 7.5})),
    ] {
        assert_eq!(value(json, plain), value(typed, "string"), "{plain}");
    }
}

#[test]
fn an_invalid_json_value_is_refused_with_its_type() {
    for (json, expected) in [
        (json!({"ubyte": 256}), "256 is not of the type ubyte"),
        (json!({"int": "x"}), "\"x\" is not of the type int"),
        (json!({"char": "ab"}), "\"ab\" is not of the type char"),
        (json!({"uuid": "x"}), "\"x\" is not of the type uuid"),
        (json!({"encoded": "cQAA"}), "is not of the type encoded"),
        (json!({"thing": 1}), "there is no AMQP type \"thing\""),
        (json!({"map": [1]}), "1 is not a pair"),
        (json!({"int": 1, "long": 2}), "an object with one member"),
        (json!([1]), "an object with one member"),
    ] {
        let refused = value(json.clone(), "string").expect_err("it is none");
        assert!(refused.contains(expected), "{json}: {refused}");
    }
}

#[test]
fn an_unchanged_section_keeps_its_encoding() {
    let mut encoded = b"\x00\x53\x70\xc0\x04\x02\x41\x50\x09".to_vec();
    // A ulong of eight bytes that would fit into one, and a text with four bytes of length.
    encoded.extend(b"\x00\x53\x72\xc1\x0d\x02\xa3\x01x\x80\0\0\0\0\0\0\0\x07");
    encoded.extend(b"\x00\x53\x74\xc1\x0a\x02\xa1\x01k\xb1\0\0\0\x01v");
    encoded.extend(b"\x00\x53\x75\xa0\x02hi");
    let message = editable(encoded.clone()).expect("it decodes");
    assert_eq!(
        message.header,
        Some(json!({"durable": true, "priority": 9}))
    );
    assert_eq!(
        message.message_annotations,
        Some(json!({"x": {"ulong": 7}}))
    );
    assert_eq!(message.body, Some(json!({"text": "hi"})));
    assert_eq!(encode(&message), Ok(encoded.clone()));
    let mut changed = message.clone();
    edit(
        &mut changed,
        &json!({"body": {"text": "ho"}, "application_properties": {"k": null}}),
    )
    .expect("an edit");
    let kept = encoded.len() - b"\x00\x53\x74\xc1\x0a\x02\xa1\x01k\xb1\0\0\0\x01v".len() - 7;
    let expected = [&encoded[..kept], b"\x00\x53\x75\xa0\x02ho"].concat();
    assert_eq!(encode(&changed), Ok(expected));
    let without = AmqpMessage {
        amqp: None,
        ..message
    };
    let fresh = encode(&without).expect("a message");
    assert_ne!(fresh, encoded);
    assert_eq!(to_json(&fresh).expect("it decodes"), without);
}

#[test]
fn numbers_as_javascript_writes_them_keep_the_encoding_of_their_section() {
    // A whole double, and a text with four bytes of length.
    let mut encoded = b"\x00\x53\x74\xc1\x16\x04\xa1\x01d\x82\x40\x24\0\0\0\0\0\0".to_vec();
    encoded.extend(b"\xa1\x01t\xb1\0\0\0\x01v");
    let mut message = editable(encoded.clone()).expect("it decodes");
    let shown = json!({"d": {"double": 10.0}, "t": "v"});
    assert_eq!(message.application_properties, Some(shown));
    message.application_properties = Some(json!({"d": {"double": 10}, "t": "v"}));
    assert_eq!(encode(&message), Ok(encoded.clone()));
    for other in [
        json!({"d": {"long": 10}, "t": "v"}),
        json!({"d": {"double": 11}, "t": "v"}),
    ] {
        message.application_properties = Some(other);
        assert_ne!(encode(&message), Ok(encoded.clone()));
    }
}

#[test]
fn maps_with_keys_other_than_text_become_pairs() {
    let message = AmqpMessage {
        message_annotations: Some(json!([[{"ulong": 1}, "a"], ["x", "b"], ["x", "c"]])),
        ..AmqpMessage::default()
    };
    let encoded = encode(&message).expect("a message");
    assert_eq!(to_json(&encoded).expect("it decodes"), message);
    let mut message = editable(encoded).expect("it decodes");
    let refused = edit(&mut message, &json!({"message_annotations": {"x": null}}));
    assert!(refused.expect_err("no names").contains("array of pairs"));
}

#[test]
fn bodies_of_every_kind_convert_from_and_to_json() {
    for (body_json, bytes) in [
        (json!({"data": ["/w==", "AA=="]}), &b"\xff\0"[..]),
        (json!({"text": "<img>"}), b"<img>"),
        (json!({"value": "v"}), b"v"),
        (json!({"value": {"binary": "AP8="}}), b"\0\xff"),
        (
            json!({"value": {"list": [{"int": 1}]}}),
            br#"{"list":[{"int":1}]}"#,
        ),
        (
            json!({"sequences": [["a"], ["b"]]}),
            br#"{"sequences":[["a"],["b"]]}"#,
        ),
    ] {
        let message = AmqpMessage {
            body: Some(body_json.clone()),
            ..AmqpMessage::default()
        };
        let encoded = encode(&message).expect("a message");
        assert_eq!(to_json(&encoded).expect("it decodes"), message);
        assert_eq!(body(&encoded).expect("it decodes"), bytes, "{body_json}");
    }
}

#[test]
fn an_invalid_json_message_is_refused_with_its_path() {
    for (message, expected) in [
        (
            json!({"header": {"priority": 256}}),
            "header.priority: 256 is not of the type ubyte",
        ),
        (
            json!({"header": {"speed": 1}}),
            "header: \"speed\" is none of durable, priority",
        ),
        (
            json!({"properties": []}),
            "properties: it must be an object",
        ),
        (
            json!({"footer": 1}),
            "footer: it must be an object or an array of pairs",
        ),
        (
            json!({"application_properties": {"a": {"int": "x"}}}),
            "application_properties, \"a\": \"x\" is not of the type int",
        ),
        (
            json!({"body": {"omitted": 3}}),
            "text, data, value or sequences",
        ),
        (json!({"body": {"data": ["?"]}}), "must be base64"),
        (json!({"amqp": "AAA="}), "amqp: "),
    ] {
        let read = serde_json::from_value(message.clone()).expect("the form is right");
        let refused = encode(&read).expect_err("it is none");
        assert!(refused.contains(expected), "{message}: {refused}");
    }
}

#[test]
fn too_deeply_nested_values_are_refused_before_conversion() {
    let mut nested = vec![0x45];
    for _ in 0..10_000 {
        let size = nested.len() as u32 + 4;
        nested = [
            &[0xd0][..],
            &size.to_be_bytes(),
            &1_u32.to_be_bytes(),
            &nested,
        ]
        .concat();
    }
    let encoded = [&b"\x00\x53\x77"[..], &nested].concat();
    assert!(editable(encoded).is_err());
    let message = AmqpMessage {
        amqp: Some([&b"\x00\x53\x77"[..], &nested].concat().into()),
        ..AmqpMessage::default()
    };
    assert!(encode(&message).is_err());
}
