//! What the executable is asked to do: by `cargo bench`, by `cargo test`, by a test runner, or by itself when it
//! starts itself again in another role.

use crate::secured_echo::Wrapping;

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// Say what can be run, as test runners ask.
    List,
    /// A filter that means none of this.
    Nothing,
    /// Be the echo server.
    Echo,
    /// Be the echo server over TLS.
    SecuredEcho(Wrapping),
    /// Send and receive this many messages through the harness and say how long it took.
    RoundTrip(usize),
    /// Measure the sections whose names contain one of these, or all; keep the numbers if that is asked for.
    Measure(Effort, Vec<String>, bool),
    /// Hold what is measured now against the numbers that were kept, in the sections whose names contain one of these, or all.
    Check(Vec<String>),
    /// Draw what was kept.
    Plot,
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Everything once, with tiny sizes: proves that it runs.
    Quick,
    /// What gives numbers.
    Full,
}

impl Effort {
    /// One of two sizes.
    pub(crate) fn pick<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }

    /// How often each number is taken.
    pub(crate) fn rounds(self) -> usize {
        self.pick(1, 5)
    }
}

/// Tells a role from the arguments of cargo; given to [`crate::process`].
pub(crate) const ROLE: &str = "--role";

/// Reads the arguments of this process.
pub(crate) fn read() -> Order {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let is_set = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let free = || {
        arguments
            .iter()
            .filter(|argument| !argument.starts_with("--"))
    };
    if is_set(ROLE) {
        return role(&arguments);
    }
    if is_set("--list") {
        // Asked a second time for what is ignored, it has nothing to add.
        return if is_set("--ignored") {
            Order::Nothing
        } else {
            Order::List
        };
    }
    if is_set("--bench") && !is_set("--test") {
        let sections = free().cloned().collect();
        return match (is_set("--check"), is_set("--plot")) {
            (true, _) => Order::Check(sections),
            (false, true) => Order::Plot,
            (false, false) => Order::Measure(Effort::Full, sections, is_set("--save")),
        };
    }
    let meant = |name: &String| "measure".contains(name.as_str());
    if free().next().is_some() && !free().any(meant) {
        return Order::Nothing;
    }
    Order::Measure(Effort::Quick, Vec::new(), false)
}

fn role(arguments: &[String]) -> Order {
    let mut rest = arguments
        .iter()
        .skip_while(|argument| *argument != ROLE)
        .skip(1);
    match (rest.next().map(String::as_str), rest.next()) {
        (Some("echo"), None) => Order::Echo,
        (Some("echo-tls"), None) => Order::SecuredEcho(Wrapping::Tls),
        (Some("echo-websocket"), None) => Order::SecuredEcho(Wrapping::WebSocket),
        (Some("round-trip"), Some(messages)) => {
            Order::RoundTrip(messages.parse().expect("a number of messages"))
        }
        other => panic!("{other:?} is no role"),
    }
}
