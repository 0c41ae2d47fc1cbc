//! Which operations faults match.

use serde_json::{Value, json};
use servicebus_control_api::{EffectKind, Filter, Pick, Property, Random};

use super::*;

fn fault(entity: Option<&str>, nth: u64) -> Fault {
    Fault {
        operation: Operation::Discharge,
        filter: Filter {
            entity: entity.map(str::to_owned),
            ..Filter::default()
        },
        pick: counted(nth, 1, Some(1)),
    }
}

fn counted(nth: u64, every: u64, times: Option<u64>) -> Pick {
    Pick::Counted {
        nth,
        every,
        times,
        effect: Effect::LoseReply,
    }
}

fn discharge(entities: &[&str]) -> MatchContext<'static> {
    MatchContext {
        operations: vec![Operation::Discharge],
        entities: entities.iter().map(|&entity| entity.to_owned()).collect(),
        ..MatchContext::default()
    }
}

/// What a message meets that has these traits.
fn send(id: &str, session: &str, property: (&str, Value)) -> MatchContext<'static> {
    MatchContext {
        operations: vec![Operation::Send],
        entities: vec!["orders".to_owned()],
        messages: vec![Traits {
            id: Some(id.to_owned()),
            session: Some(session.to_owned()),
            properties: vec![(property.0.to_owned(), property.1)],
            ..Traits::default()
        }],
        client: Some("worker".into()),
        ..MatchContext::default()
    }
}

#[test]
fn a_fault_is_applied_once_at_the_nth_operation_on_its_entity() {
    let faults = Faults::default();
    faults.add(fault(Some("Orders"), 2));
    let is_hit = |entities: &[&str]| faults.find_match(&discharge(entities)).then.is_some();
    assert!(!is_hit(&["orders"]));
    assert!(!is_hit(&["other"]));
    assert!(!is_hit(&[]));
    assert!(is_hit(&["other", "orders"]));
    assert!(!is_hit(&["orders"]));
    let [scripted] = &faults.all()[..] else {
        panic!("one was added");
    };
    let counts = [scripted.matched, scripted.elsewhere, scripted.hits];
    assert_eq!(counts, [3, 2, 1]);
}

#[test]
fn the_first_of_two_matching_faults_is_applied() {
    let faults = Faults::default();
    let first = faults.add(fault(None, 1)).unwrap();
    let second = faults.add(fault(None, 1)).unwrap();
    assert_ne!(first.id, second.id);
    assert!(faults.find_match(&discharge(&[])).then.is_some());
    assert_eq!(faults.find_match(&discharge(&[])), MatchedFaults::default());
    let hits: Vec<_> = faults.all().iter().map(|fault| fault.hits).collect();
    assert_eq!(hits, [1, 0]);
}

#[test]
fn a_delay_and_another_effect_apply_to_one_operation() {
    let faults = Faults::default();
    let wait = Wait::Real(std::time::Duration::from_secs(1));
    let slow = Fault {
        pick: Pick::counted(None, None, None, Effect::Delay(wait)),
        ..fault(None, 1)
    };
    faults.add(slow);
    faults.add(fault(None, 1));
    let matched = faults.find_match(&discharge(&[]));
    assert_eq!(matched.first.unwrap().effect, Effect::Delay(wait));
    assert_eq!(matched.then.unwrap().effect, Effect::LoseReply);
}

#[test]
fn every_nth_operation_has_the_fault_a_limited_number_of_times() {
    let faults = Faults::default();
    let pick = |nth, every, times| Fault {
        pick: counted(nth, every, times),
        ..fault(None, 1)
    };
    let is_hit = |fault| {
        faults.clear();
        faults.add(fault);
        let numbers = 1..=9;
        let is_hit = numbers.filter(|_| faults.find_match(&discharge(&[])).then.is_some());
        is_hit.collect::<Vec<_>>()
    };
    assert_eq!(is_hit(pick(3, 1, Some(2))), [3, 4]);
    assert_eq!(is_hit(pick(2, 3, None)), [2, 5, 8]);
    assert_eq!(is_hit(pick(4, 4, Some(1))), [4]);
}

#[test]
fn an_operation_without_the_filtered_property_counts_as_different() {
    let faults = Faults::default();
    let on_send = |filter| Fault {
        operation: Operation::Send,
        filter,
        ..fault(None, 1)
    };
    let text = |text: &str| Some(text.to_owned());
    let filters = [
        Filter {
            message_id: text("m"),
            ..Filter::default()
        },
        Filter {
            session_id: text("s"),
            ..Filter::default()
        },
        Filter {
            property: Some(Property {
                name: "n".into(),
                value: json!(7),
            }),
            ..Filter::default()
        },
        Filter {
            client: text("worker"),
            ..Filter::default()
        },
    ];
    for filter in filters {
        faults.clear();
        let is_of_client = filter.client.is_some();
        faults.add(on_send(filter));
        assert_eq!(faults.needs_messages(), !is_of_client);
        let mut other = send("x", "x", ("n", json!("7")));
        other.client = Some("other".into());
        assert_eq!(faults.find_match(&other), MatchedFaults::default());
        assert!(
            faults
                .find_match(&send("m", "s", ("n", json!(7.0))))
                .then
                .is_some()
        );
        let scripted = &faults.all()[0];
        assert_eq!([scripted.matched, scripted.different], [1, 1]);
    }
}

#[test]
fn large_integers_of_a_property_are_compared_exactly() {
    let property = |value| Property {
        name: "n".into(),
        value,
    };
    for (wanted, is_hit) in [
        (9_007_199_254_740_992_u64, false),
        (9_007_199_254_740_993, true),
    ] {
        let faults = Faults::default();
        faults.add(Fault {
            operation: Operation::Send,
            filter: Filter {
                property: Some(property(json!(wanted))),
                ..Filter::default()
            },
            ..fault(None, 1)
        });
        let matched = faults.find_match(&send("m", "s", ("n", json!(9_007_199_254_740_993_u64))));
        assert_eq!(matched.then.is_some(), is_hit, "{wanted}");
    }
}

/// The fault of an exploration counts what has its key in the log, where a batch has the id of its first message.
#[test]
fn a_planned_fault_counts_operations_as_the_log_shows_them() {
    let planned = |operation, nth, effect| {
        let faults = Faults::default();
        faults.add_planned(Fault {
            operation,
            filter: Filter {
                message_id: Some("m".to_owned()),
                ..Filter::default()
            },
            pick: Pick::counted(Some(nth), None, None, effect),
        });
        faults
    };
    let is_hit = |faults: &Faults, context| faults.find_match(&context).then.is_some();
    let single = |id| send(id, "s", ("n", json!(7)));
    let mut batch = single("first");
    batch.messages.extend(single("m").messages);
    let faults = planned(Operation::Send, 1, Effect::LoseReply);
    assert!(!is_hit(&faults, batch));
    assert!(is_hit(&faults, single("m")));
    let delivery = |has_other_receiver| MatchContext {
        operations: vec![Operation::Deliver],
        has_other_receiver,
        ..single("m")
    };
    let faults = planned(Operation::Deliver, 2, Effect::Elsewhere);
    assert!(!is_hit(&faults, delivery(false)));
    assert!(is_hit(&faults, delivery(true)));
    let completion = MatchContext {
        operations: vec![Operation::Complete, Operation::Settle],
        ..single("m")
    };
    let faults = planned(Operation::Settle, 1, Effect::LoseReply);
    assert!(!is_hit(&faults, completion));
}

#[test]
fn a_random_fault_selects_the_same_operations_again() {
    let is_hit = |seed| {
        let faults = Faults::default();
        faults.add(Fault {
            pick: Pick::Random {
                random: Random {
                    seed,
                    probability: 0.3,
                },
                effects: vec![Effect::LoseReply],
            },
            ..fault(None, 1)
        });
        let numbers = 1..=100;
        let is_hit = numbers.filter(|_| {
            // Operations elsewhere change nothing.
            faults.find_match(&discharge(&["audit"]));
            faults.find_match(&discharge(&["orders"])).then.is_some()
        });
        is_hit.collect::<Vec<_>>()
    };
    let first = is_hit(7);
    assert!((10..60).contains(&first.len()), "{first:?}");
    assert_eq!(is_hit(7), first);
    assert_ne!(is_hit(8), first);
}

#[test]
fn a_removed_fault_is_not_applied() {
    let faults = Faults::default();
    let id = faults.add(fault(None, 1)).unwrap().id;
    assert!(faults.any());
    assert!(faults.remove(id));
    assert!(!faults.remove(id));
    assert!(!faults.any());
    assert_eq!(faults.find_match(&discharge(&[])), MatchedFaults::default());
    faults.add(fault(None, 1));
    faults.clear();
    assert_eq!(faults.find_match(&discharge(&[])), MatchedFaults::default());
}

#[test]
fn the_number_of_faults_is_limited() {
    let faults = Faults::default();
    for _ in 0..MAX {
        assert!(faults.add(fault(None, 1)).is_some());
    }
    assert_eq!(faults.add(fault(None, 1)), None);
}

#[test]
fn every_operation_can_be_delayed_and_every_effect_has_an_operation() {
    for operation in Operation::all() {
        assert!(operation.allows(EffectKind::Delay), "{operation:?}");
    }
    for kind in EffectKind::all() {
        let mut operations = Operation::all();
        assert!(
            operations.any(|operation| operation.allows(kind)),
            "{kind:?}"
        );
    }
}
