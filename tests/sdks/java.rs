//! `azure-messaging-servicebus` for Java.

use std::env;
use std::path::Path;
use std::process::Command;

every_case!(crate::driver::Sdk::Java);

mod over_tls {
    every_kind_of_link!(crate::driver::Sdk::Java, TLS);

    // With a credential it knows nothing but TLS.
    test_of!(connection: crate::driver::Sdk::Java, TLS, connection { token_credential, expired_token, closes });
}

// It knows no WebSocket without TLS; with the connection string of an emulator it trusts every certificate.
mod over_websocket {
    every_kind_of_link!(crate::driver::Sdk::Java, WEBSOCKET);
}

mod over_websocket_and_tls {
    every_kind_of_link!(crate::driver::Sdk::Java, SECURED_WEBSOCKET);

    test_of!(connection: crate::driver::Sdk::Java, SECURED_WEBSOCKET, connection { closes });
}

// What other SDKs have not, or only some of them.
test_of!(annotated: crate::driver::Sdk::Java, SETTINGS, send {
    annotated, arrays, again, again_durably,
});
test_of!(lock_auto_renewed: crate::driver::Sdk::Java, SETTINGS, locks { auto_renewed });
test_of!(deferral_with_properties: crate::driver::Sdk::Java, SETTINGS, deferral { properties });

test_of!(processors: crate::driver::Sdk::Java, SETTINGS, processors {
    completes, abandons, settles, reports, stops,
});
test_of!(processors_of_sessions: crate::driver::Sdk::Java, SESSIONS, processors { sessions });

test_of!(asynchronous: crate::driver::Sdk::Java, SETTINGS, asynchronous { completes, settles, goes_on });
test_of!(asynchronous_sessions: crate::driver::Sdk::Java, SESSIONS, asynchronous { sessions });

test_of!(transactions: crate::driver::Sdk::Java, SETTINGS, transactions {
    sends, settles, rolls_back, schedules, across_entities, over,
});

// Its rule manager has them all at once, and no pages.
test_of!(topics_rules: crate::driver::Sdk::Java, TOPICS, rules {
    configured, enumerates, takes_effect, action, duplicate, unknown, malformed, not_found,
});

test_of!(observed: crate::driver::Sdk::Java, OBSERVED, observed { entity_type });
test_of!(observed_via: crate::driver::Sdk::Java, SETTINGS, observed { received_via, other_partition });
test_of!(observed_basic: crate::driver::Sdk::Java, BASIC, observed { no_transactions });

/// The program of all cases.
pub(crate) fn command(environment: &Path) -> Command {
    program(environment, "cases.Main")
}

/// A program by its main class. Its memory is bounded: as many cases as have turns at once are light.
pub(crate) fn program(environment: &Path, class: &str) -> Command {
    program_with(environment, &["-Xmx512m"], class)
}

/// A program by its main class, with these options of the virtual machine.
pub(crate) fn program_with(environment: &Path, options: &[&str], class: &str) -> Command {
    let path = env::join_paths([
        environment.join("classes"),
        environment.join("libraries").join("*"),
    ]);
    let mut command = Command::new("java");
    command
        .args(options)
        .args(["-XX:+UseSerialGC", "-cp"])
        .arg(path.expect("target/sdks has no separators of paths in its name"))
        .arg(class);
    command
}
