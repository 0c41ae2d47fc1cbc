//! Sources and targets: what is read of them, and what an answer has in place of them.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_amqp::{AttachReply, AttachRequest, LinkId};

use crate::peer::*;

/// Codes of sources and targets.
const SOURCE: u64 = 0x28;
const TARGET: u64 = 0x29;

fn described(descriptor: Descriptor, value: Value) -> Value {
    Value::Described(Box::new(Described { descriptor, value }))
}

fn attach_with(
    peer: &mut Peer,
    role: bool,
    source: Value,
    target: Value,
) -> (LinkId, AttachRequest) {
    let fields = attach_between("name", 0, role, source, target);
    peer.frame(0, ATTACH, &fields);
    peer.attached()
}

/// A source with these fields behind its address.
fn source_with(fields: &[Value]) -> Value {
    composite(SOURCE, [&[text("from")], fields].concat())
}

/// The properties of a node that lasts as long as a policy says.
fn node(policy: Value) -> Value {
    map([(symbol("lifetime-policy"), policy)])
}

#[test]
fn durability_and_lifetime_policy_of_a_terminus_are_decoded() {
    let policy = |code| described(Descriptor::Code(code), list([]));
    let dynamic = |policy| [uint(0), Value::Null, Value::Null, true.into(), node(policy)];
    let named = described(Descriptor::Name("x".into()), list([]));
    for (fields, (is_durable, is_dynamic, lifetime)) in [
        (&[][..], (false, false, None)),
        (&[uint(0)], (false, false, None)),
        (&[uint(1)], (true, false, None)),
        (&[uint(2)], (true, false, None)),
        (&dynamic(policy(0x2b)), (false, true, Some(0x2b))),
        (&dynamic(policy(0x2e)), (false, true, Some(0x2e))),
        (&dynamic(named), (false, true, Some(0))),
        (&dynamic(Value::Null), (false, true, Some(0))),
    ] {
        let mut peer = Peer::new();
        let (_, request) = attach_with(&mut peer, RECEIVER, source_with(fields), target("to"));
        let terminus_lifetime = request.terminus_lifetime();
        assert_eq!(
            (
                terminus_lifetime.is_durable,
                terminus_lifetime.is_dynamic,
                terminus_lifetime.lifetime_policy
            ),
            (is_durable, is_dynamic, lifetime),
            "{fields:?}"
        );
    }
}

#[test]
fn modes_and_capabilities_have_other_fields_in_sources_than_in_targets() {
    let mut fields = vec![Value::Null; 10];
    fields[5] = symbol("copy");
    fields[9] = symbol("queue");
    let of_source = source_with(&fields);
    let mut fields = vec![text("to")];
    fields.resize(6, Value::Null);
    fields.push(symbol("topic"));
    let of_target = composite(TARGET, fields);
    for role in [SENDER, RECEIVER] {
        let mut peer = Peer::new();
        let (_, request) = attach_with(&mut peer, role, of_source.clone(), of_target.clone());
        assert_eq!(request.distribution_mode(), Some("copy"));
        let has = ["queue", "topic"].map(|name| request.has_capability(name));
        assert_eq!(has, [role == RECEIVER, role == SENDER]);
    }
}

#[test]
fn termini_with_symbolic_descriptors_are_decoded() {
    let named = |name: &str, fields| described(Descriptor::Name(name.into()), list(fields));
    let filter = map([(symbol("f"), Value::Int(5))]);
    let mut fields = vec![text("from")];
    fields.resize(7, Value::Null);
    fields.push(filter);
    let source = named("amqp:source:list", fields);
    let mut peer = Peer::new();
    let coordinator = named("amqp:coordinator:list", vec![]);
    let (_, request) = attach_with(&mut peer, SENDER, source, coordinator);
    assert!(request.is_coordinator());
    assert_eq!(request.source_address(), Some("from"));
    assert_eq!(request.filter("f"), Some(&Value::Int(5)));
    let mut peer = Peer::new();
    let own = named("amqp:target:list", vec![text("to")]);
    let (_, request) = attach_with(&mut peer, SENDER, named("amqp:source:list", vec![]), own);
    assert!(!request.is_coordinator());
    assert_eq!(request.address(), Some("to"));
}

#[test]
fn the_attach_of_a_dynamic_node_has_its_address() {
    for role in [SENDER, RECEIVER] {
        let dynamic = |code| {
            let fields = [Value::Null, uint(1), Value::Null, Value::Null, true.into()];
            composite(code, fields)
        };
        let mut peer = Peer::new();
        let (link, _) = attach_with(&mut peer, role, dynamic(SOURCE), dynamic(TARGET));
        let reply = AttachReply {
            address: Some("temporary".to_owned()),
            ..AttachReply::default()
        };
        peer.connection.accept_attach(link, reply);
        let answer = &peer.frames()[0];
        for (place, code, is_own) in [(5, SOURCE, role == RECEIVER), (6, TARGET, role == SENDER)] {
            if is_own {
                let (own, fields) = described_list(&answer.fields[place]);
                assert_eq!(own, code);
                assert_eq!(fields[..2], [text("temporary"), uint(1)]);
                assert_eq!(fields[4], true.into());
            } else {
                assert_eq!(answer.fields[place], dynamic(code));
            }
        }
    }
}

#[test]
fn a_receiver_without_a_source_gets_the_source_of_its_subscription() {
    let mut peer = Peer::new();
    let (link, request) = attach_with(&mut peer, RECEIVER, Value::Null, target("to"));
    assert!(!request.has_source());
    let reply = AttachReply {
        subscription: Some(("prices".to_owned(), &["topic", "shared", "global"])),
        ..AttachReply::default()
    };
    peer.connection.accept_attach(link, reply);
    let answer = peer.only();
    let (code, fields) = described_list(&answer.fields[5]);
    assert_eq!((code, fields.len()), (SOURCE, 11));
    assert_eq!(fields[..3], [text("prices"), uint(2), symbol("never")]);
    assert_eq!(fields[6], symbol("copy"));
    let capabilities = ["topic", "shared", "global"].map(symbol).to_vec();
    assert_eq!(fields[10], Value::Array(capabilities.into()));
}
