//! What `cargo test` runs of each SDK: links of every kind, transports and administration, a few cases each. The feature
//! `matrices` adds all the others, and other versions of SDKs.

use crate::driver::{self, Sdk, Settings, run_all};

/// A test per SDK, by its name.
macro_rules! smoke_of {
    ($($test:ident: $sdk:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $test() {
                run(Sdk::$sdk).await;
            }
        )*
    };
}

smoke_of! {
    python_blocking: PythonBlocking,
    python_asynchronous: PythonAsynchronous,
    javascript: JavaScript,
    go: Go,
    java: Java,
    dotnet: DotNet,
}

const CASES: [(Settings, &[&str]); 5] = [
    (
        driver::SETTINGS,
        &[
            "send.properties",
            "receive.peek_lock",
            "settle.dead_letters",
            "locks.renews",
            "scheduling.by_request",
            "deferral.by_number",
            "not_found.sender",
        ],
    ),
    (driver::TOPICS, &["topics.filtered", "admin.used_at_once"]),
    (
        driver::SESSIONS,
        &["sessions.by_id", "session_state.set_and_read"],
    ),
    (driver::TLS, &["send.single"]),
    (driver::SECURED_WEBSOCKET, &["send.single"]),
];

async fn run(sdk: Sdk) {
    for (settings, cases) in CASES {
        run_all(sdk, settings, cases).await;
    }
}
