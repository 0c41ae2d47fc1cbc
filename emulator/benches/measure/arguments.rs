//! The arguments of the executable: from `cargo bench`, `cargo test`, a test runner, or itself when it starts itself in
//! another role.

use crate::secured_echo::Wrapping;

/// The task of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Order {
    /// List the benchmarks, as test runners ask.
    List,
    /// Do nothing: the filter matches no benchmark.
    Nothing,
    /// Run the echo server.
    Echo,
    /// Run the echo server over TLS.
    SecuredEcho(Wrapping),
    /// Send and receive this many messages through the harness, and print how long it took.
    RoundTrip(usize),
    /// Measure the sections whose names contain one of these texts, or all; save the numbers if asked.
    Measure(Effort, Vec<String>, bool),
    /// Compare new measurements with the saved numbers, in the sections whose names contain one of these texts, or all.
    Check(Vec<String>),
    /// Draw the saved numbers.
    Plot,
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Everything once, with tiny sizes, to prove that it runs.
    Quick,
    /// Sizes that give usable numbers.
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

    /// Returns how often each number is measured.
    pub(crate) fn rounds(self) -> usize {
        self.pick(1, 5)
    }
}

/// Separates a role from cargo's arguments; passed to [`crate::process`].
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
        // The second call, for ignored tests, has nothing to add.
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
        other => panic!("{other:?} is not a role"),
    }
}
