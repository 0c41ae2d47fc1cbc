//! `Azure.Messaging.ServiceBus` for .NET.

use std::path::{Path, PathBuf};
use std::process::Command;

every_case!(crate::driver::Sdk::DotNet);

// With a credential it knows nothing but TLS, and no WebSocket without TLS but that of an emulator.
over_every_transport!(
    crate::driver::Sdk::DotNet,
    every_kind_of_link,
    connection {
        token_credential,
        expired_token
    }
);

// What other SDKs have not, or only some of them.
test_of!(annotated: crate::driver::Sdk::DotNet, SETTINGS, send { annotated });
test_of!(deferral_with_properties: crate::driver::Sdk::DotNet, SETTINGS, deferral { properties });

test_of!(processors: crate::driver::Sdk::DotNet, SETTINGS, processors {
    completes, abandons, settles, reports, stops,
});
test_of!(processors_of_sessions: crate::driver::Sdk::DotNet, SESSIONS, processors { sessions });

test_of!(transactions: crate::driver::Sdk::DotNet, SETTINGS, transactions {
    sends, settles, rolls_back, schedules, across_entities,
});

test_of!(topics_rules: crate::driver::Sdk::DotNet, TOPICS, rules {
    configured, enumerates, takes_effect, action, duplicate, unknown, malformed, not_found,
});

test_of!(sessions_cancelled: crate::driver::Sdk::DotNet, SESSIONS, sessions { cancelled });

test_of!(observed: crate::driver::Sdk::DotNet, OBSERVED, observed {
    dates, rule_that_exists,
});
test_of!(observed_in_transactions: crate::driver::Sdk::DotNet, SETTINGS, observed { received_via, other_partition });
test_of!(observed_basic: crate::driver::Sdk::DotNet, BASIC, observed { no_transactions });

/// The program of all cases.
pub(crate) fn command(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("cases"));
    command
        // Where it keeps the authority that it trusts.
        .env("HOME", environment)
        .env("DOTNET_ROOT", packages().join("dotnet"))
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1");
    command
}

/// Compiles it, with packages that are fetched if need be.
pub(crate) fn compile(environment: &Path, sources: &[PathBuf]) -> tokio::process::Command {
    let mut command = tokio::process::Command::new("python3");
    command
        .arg(toolchain())
        .args([&packages(), environment])
        .args(sources);
    command
}

/// Fetches .NET and the SDK, and compiles with them.
pub(crate) fn toolchain() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("harness/dotnet/toolchain.py")
}

/// Where the packages are kept, for the tests of the harness for .NET too.
fn packages() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("dotnet/core")
}
