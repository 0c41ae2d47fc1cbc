//! Random topics with random rules: every expected copy is somewhere, once, in order, and there is no other.

use proptest::prelude::*;
use servicebus_broker::filter::{Encoded, Filter, Rule, Value};
use servicebus_broker::{EventKind, SubQueue};

use crate::bus::{START, message, rules, secs, text};
use crate::world::{World, acting, correlation, rule, sql};

const SUBSCRIPTIONS: [&str; 3] = [
    "t/Subscriptions/a",
    "t/Subscriptions/b",
    "t/Subscriptions/c",
];
/// What an action can fail on: only with messages whose number is 3.
const FAILING_ACTION: &str = "SET x = 1 / (n - 3)";

/// A filter whose result for a number the test knows.
#[derive(Debug, Clone, Copy)]
enum Select {
    All,
    None,
    /// By a correlation filter.
    Is(i64),
    /// By a condition.
    Below(i64),
    /// All but one, on which it fails.
    FailsOn(i64),
}

#[derive(Debug, Clone, Copy)]
struct Chosen {
    select: Select,
    action: Option<&'static str>,
}

#[derive(Debug, Clone)]
enum Step {
    Send(Vec<i64>),
    Schedule(i64, u64),
    Add(usize, usize, Chosen),
    Remove(usize, usize),
    Advance(u64),
    /// Just before a subscription is reached the next time.
    Meanwhile(usize, Box<Self>),
}

/// What is expected of one subscription: ids of live messages, and of dead ones with their reasons.
#[derive(Debug, Clone, Default, PartialEq)]
struct Held {
    alive: Vec<String>,
    dead: Vec<(String, String)>,
}

impl Select {
    fn filter(self) -> Filter {
        match self {
            Self::All => Filter::True,
            Self::None => Filter::False,
            Self::Is(number) => correlation(servicebus_broker::filter::Correlation {
                properties: vec![("N".into(), Encoded::from(&Value::Signed(number)))],
                ..Default::default()
            }),
            Self::Below(number) => sql(&format!("n < {number}")),
            Self::FailsOn(number) => sql(&format!("1 / (n - {number}) > -5")),
        }
    }

    /// Whether it selects a number; none when it fails.
    fn says(self, number: i64) -> Option<bool> {
        match self {
            Self::All => Some(true),
            Self::None => Some(false),
            Self::Is(other) => Some(number == other),
            Self::Below(limit) => Some(number < limit),
            Self::FailsOn(other) => (number != other).then_some(true),
        }
    }
}

impl Chosen {
    fn rule(self, name: &str) -> Rule {
        let filter = self.select.filter();
        match self.action {
            Some(action) => acting(name, filter, action),
            None => rule(name, filter),
        }
    }
}

fn select() -> impl Strategy<Value = Select> {
    prop_oneof![
        Just(Select::All),
        Just(Select::None),
        (0..6i64).prop_map(Select::Is),
        (0..6i64).prop_map(Select::Below),
        (0..6i64).prop_map(Select::FailsOn),
    ]
}

fn chosen() -> impl Strategy<Value = Chosen> {
    let actions = [None, None, Some("SET color = 'red'"), Some(FAILING_ACTION)];
    let action = prop::sample::select(actions.to_vec());
    (select(), action).prop_map(|(select, action)| Chosen { select, action })
}

fn small_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => prop::collection::vec(0..6i64, 1..5).prop_map(Step::Send),
        2 => (0..6i64, 1..60u64).prop_map(|(number, after)| Step::Schedule(number, after)),
        3 => (0..3usize, 0..4usize, chosen()).prop_map(|(s, r, chosen)| Step::Add(s, r, chosen)),
        1 => (0..3usize, 0..4usize).prop_map(|(s, r)| Step::Remove(s, r)),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => small_step(),
        2 => (0..60u64).prop_map(Step::Advance),
        1 => (0..3usize, small_step()).prop_map(|(s, step)| Step::Meanwhile(s, Box::new(step))),
    ]
}

fn take(world: &mut World, step: Step) {
    let name = |rule: usize| format!("r{rule}");
    match step {
        Step::Send(numbers) => {
            let messages: Vec<_> = numbers.into_iter().map(numbered).collect();
            world.post_all("t", &messages).unwrap();
        }
        Step::Schedule(number, after) => {
            let at = world.now + secs(after);
            world.post("t", &numbered(number).scheduled_at(at)).unwrap();
        }
        Step::Add(subscription, rule, chosen) => {
            let _ = world.add_rule(SUBSCRIPTIONS[subscription], chosen.rule(&name(rule)));
        }
        Step::Remove(subscription, rule) => {
            let _ = world.remove_rule(SUBSCRIPTIONS[subscription], &name(rule));
        }
        Step::Advance(by) => world.advance(secs(by)),
        Step::Meanwhile(subscription, step) => {
            let at = SUBSCRIPTIONS[subscription];
            world.interrupt_before(at, move |world| take(world, *step));
        }
    }
}

fn numbered(number: i64) -> crate::bus::MessageBuilder {
    message(&number.to_string()).property("n", &Value::Signed(number))
}

/// What these rules make of messages with these numbers.
fn expected(rules: &[Chosen], keeps: bool, numbers: &[i64]) -> Held {
    let mut held = Held::default();
    for &number in numbers {
        let id = number.to_string();
        let fails = |reason: &str| (id.clone(), reason.to_owned());
        let (mut shared, mut failed) = (false, false);
        for Chosen { select, action } in rules {
            match (select.says(number), *action) {
                (None, _) => failed = keeps,
                (Some(true), Some(FAILING_ACTION)) if number == 3 => {
                    held.dead
                        .extend(keeps.then(|| fails("RuleActionException")));
                }
                (Some(true), Some(_)) => held.alive.push(id.clone()),
                (Some(true), None) => shared = true,
                (Some(false), _) => {}
            }
        }
        held.dead.extend(failed.then(|| fails("FilterException")));
        held.alive.extend(shared.then_some(id));
    }
    held
}

fn found(world: &World, name: &str) -> Held {
    let dead = world.peek(name, SubQueue::DeadLetter);
    let reason = |message: &_| text(message, "DeadLetterReason").unwrap();
    Held {
        alive: world.queued(name),
        dead: dead
            .iter()
            .map(|(_, message)| (message.id().into_owned(), reason(message)))
            .collect(),
    }
}

proptest! {
    #[test]
    fn every_subscription_holds_the_messages_its_rules_match(
        keeps in any::<bool>(),
        rules in prop::collection::vec(prop::collection::vec(chosen(), 0..5), 3),
        numbers in prop::collection::vec(0..6i64, 0..150),
    ) {
        let mut world = World::topic(&[]);
        for (name, rules) in SUBSCRIPTIONS.into_iter().zip(&rules) {
            let named = rules.iter().enumerate().map(|(at, rule)| rule.rule(&at.to_string()));
            let change = |own: &mut servicebus_broker::EntityDescription| {
                own.dead_lettering_on_filter_evaluation_exceptions = keeps;
            };
            world.subscribe_by(name, change, named);
        }
        let messages: Vec<_> = numbers.iter().copied().map(numbered).collect();
        world.post_all("t", &messages).unwrap();
        for (name, rules) in SUBSCRIPTIONS.into_iter().zip(&rules) {
            let (mut found, mut expected) = (found(&world, name), expected(rules, keeps, &numbers));
            prop_assert_eq!(&found.alive, &expected.alive);
            found.dead.sort();
            expected.dead.sort();
            prop_assert_eq!(found.dead, expected.dead);
        }
    }

    #[test]
    fn every_accepted_message_reaches_a_selecting_receiver_in_order(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::topic(&["t/Subscriptions/all"]);
        world.declare("q", rules());
        world.subscribe("t/Subscriptions/on", |own| own.forward_to = Some("q".parse().unwrap()));
        for name in SUBSCRIPTIONS {
            world.select(name, []);
        }
        for step in steps {
            take(&mut world, step);
        }
        world.advance(secs(100));
        prop_assert!(!world.entity("t").is_forwarding());
        let published = world.events.iter().filter(|event| event.kind == EventKind::Published).count();
        let all = world.peek("t/Subscriptions/all", SubQueue::Active);
        let numbers: Vec<_> = all.iter().map(|(properties, _)| properties.enqueued_sequence_number).collect();
        prop_assert_eq!(numbers.len(), published);
        prop_assert!(numbers.is_sorted_by(|a, b| a < b), "{:?}", numbers);
        prop_assert_eq!(world.queued("q"), world.queued("t/Subscriptions/all"));
        prop_assert!(world.now > START);
        for name in SUBSCRIPTIONS {
            let held = world.peek(name, SubQueue::Active);
            let places: Vec<_> = held.iter().map(|(properties, _)| properties.enqueued_sequence_number).collect();
            prop_assert!(places.is_sorted(), "{} {:?}", name, places);
            prop_assert!(places.iter().all(|place| numbers.contains(place)));
        }
    }
}
